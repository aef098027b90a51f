package oci

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/proxmox"
)

// taker is a server that takes uploads, hashes the file as it comes and forgets it.
type taker struct {
	arrived atomic.Int64
	sum     atomic.Value // string
}

func (k *taker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const upid = "UPID:pve1:00000001:00000001:6B000000:imgcopy::root@pam!lab:"
	switch {
	case strings.HasSuffix(r.URL.Path, "/upload"):
		parts, err := r.MultipartReader()
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		for {
			part, err := parts.NextPart()
			if err != nil {
				break
			}
			if part.FormName() != "filename" {
				continue
			}
			sum := sha256.New()
			n, _ := copyBuffer(sum, part, make([]byte, 64<<10)) // what is missing shows in the sum
			k.arrived.Add(n)
			k.sum.Store(hex.EncodeToString(sum.Sum(nil)))
		}
		fmt.Fprintf(w, `{"data":%q}`, upid)
	case strings.HasSuffix(r.URL.Path, "/status"):
		fmt.Fprintf(w, `{"data":{"status":"stopped","exitstatus":"OK","upid":%q,"node":"pve1","type":"imgcopy","user":"root@pam"}}`, upid)
	case strings.HasSuffix(r.URL.Path, "/log"):
		_, _ = io.WriteString(w, `{"total":1,"data":[{"n":1,"t":"calculating checksum...OK, checksum verified"}]}`)
	default:
		_, _ = io.WriteString(w, `{"data":[]}`)
	}
}

// BenchmarkFetchAndUpload takes an image of 2 GiB the whole way, from the registry to a server over TLS, and reports the most
// memory that it took, with registry and server in the same process.
func BenchmarkFetchAndUpload(b *testing.B) {
	const size = 2 << 30
	l, image := large(b, size)
	k := &taker{}
	server := httptest.NewTLSServer(k)
	b.Cleanup(server.Close)
	ctx := context.Background()
	h, err := proxmox.Connect(ctx, proxmox.Settings{
		Endpoints: []string{server.URL}, APIToken: "root@pam!lab=00000000-0000-0000-0000-000000000000", Insecure: true,
	})
	noError(b, err)
	b.SetBytes(size)
	most, sending := int64(0), time.Duration(0)
	for b.Loop() {
		most = max(most, peak(func() {
			a, err := l.resolver(nil).Fetch(ctx, image, b.TempDir(), nil)
			noError(b, err)
			began := time.Now()
			_, err = h.UploadTemplate(ctx, "pve1", "local", a.Name, a.SHA256, a.Reader(), a.Size)
			noError(b, err)
			sending += time.Since(began)
			if got := k.sum.Load(); got != a.SHA256 || k.arrived.Swap(0) != a.Size {
				b.Fatalf("another file arrived: %v", got)
			}
			noError(b, a.Close())
		}))
	}
	b.ReportMetric(float64(most)/(1<<20), "MiB-peak")
	b.ReportMetric(size*float64(b.N)/sending.Seconds()/1e6, "MB/s-upload")
	if most > 64<<20 {
		b.Errorf("%d MiB of memory", most>>20)
	}
}
