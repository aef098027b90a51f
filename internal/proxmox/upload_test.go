package proxmox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
)

const (
	archive       = "pvrx-nginx-0123456789ab.tar"
	archiveVolume = "local:vztmpl/" + archive
)

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// put uploads content to the simulated node's local storage.
func put(h *Host, content []byte, sum string) (guest.VolumeID, error) {
	return h.UploadTemplate(context.Background(), "pve1", "local", archive, sum, bytes.NewReader(content), int64(len(content)))
}

func TestUploadArrivesVerified(t *testing.T) {
	h, s := simulated(t)
	content := bytes.Repeat([]byte("layer"), 100_000)
	id, err := put(h, content, sumOf(content))
	wantNoError(t, err)
	stored, there := s.Cluster().Volume(archiveVolume)
	if id.String() != archiveVolume || !there || stored.Size != int64(len(content)) {
		t.Errorf("%s, there: %v, %d bytes", id, there, stored.Size)
	}
	if got := changes(s); len(got) != 1 {
		t.Errorf("sent %v", got)
	}
}

func TestUploadOfDamagedContentIsRefusedByTheServer(t *testing.T) {
	h, s := simulated(t)
	_, err := put(h, []byte("damaged on the way"), sumOf([]byte("what was meant")))
	wantOutcome(t, err, guest.OutcomeFailed)
	if !strings.Contains(err.Error(), "checksum mismatch") {
		t.Errorf("%v", err)
	}
	if _, there := s.Cluster().Volume(archiveVolume); there {
		t.Error("it was kept")
	}
}

// Only what pvrx names can be replaced or deleted by it.
func TestUploadsAndDeletionsAreAnnouncedByName(t *testing.T) {
	h, s := simulated(t)
	good := sumOf([]byte("x"))
	for name, call := range map[string]func() error{
		"another's template": func() error {
			_, err := h.UploadTemplate(context.Background(), "pve1", "local", "debian-13.tar", good, strings.NewReader("x"), 1)
			return err
		},
		"a path": func() error {
			_, err := h.UploadTemplate(context.Background(), "pve1", "local", "pvrx-/../x.tar", good, strings.NewReader("x"), 1)
			return err
		},
		"compressed": func() error {
			_, err := h.UploadTemplate(context.Background(), "pve1", "local", "pvrx-x.tar.gz", good, strings.NewReader("x"), 1)
			return err
		},
		"no checksum": func() error {
			_, err := h.UploadTemplate(context.Background(), "pve1", "local", archive, "", strings.NewReader("x"), 1)
			return err
		},
		"no size": func() error {
			_, err := h.UploadTemplate(context.Background(), "pve1", "local", archive, good, strings.NewReader(""), 0)
			return err
		},
		"deleting another's template": func() error {
			id, err := guest.ParseVolumeID(simTemplate)
			wantNoError(t, err)
			return h.DeleteTemplate(context.Background(), "pve1", id)
		},
		"deleting a disk": func() error {
			return h.DeleteTemplate(context.Background(), "pve1", guest.VolumeID{Storage: "local", Name: "5001/vm-5001-disk-0.raw"})
		},
		"deleting a backup": func() error {
			return h.DeleteTemplate(context.Background(), "pve1", guest.VolumeID{Storage: "local", Name: "backup/" + archive})
		},
	} {
		t.Run(name, func(t *testing.T) {
			wantOutcome(t, call(), guest.OutcomeRefused)
			if sent := changes(s); len(sent) != 0 {
				t.Errorf("sent %v", sent)
			}
		})
	}
}

func TestDeleteTemplate(t *testing.T) {
	h, s := simulated(t)
	content := []byte("an archive")
	id, err := put(h, content, sumOf(content))
	wantNoError(t, err)
	for range 2 { // gone already is as good
		wantNoError(t, h.DeleteTemplate(context.Background(), "pve1", id))
	}
	if _, there := s.Cluster().Volume(archiveVolume); there {
		t.Error("it is still there")
	}
	if _, there := s.Cluster().Volume(simTemplate); !there {
		t.Error("another template is gone")
	}
}

// Whatever happens to the answer of an upload, it is sent once, and its task is found.
func TestUploadWhoseAnswerIsLostIsFoundAndNotRepeated(t *testing.T) {
	for _, f := range []pvesim.Fault{
		{Kind: pvesim.FaultLoseAnswer},
		{Kind: pvesim.FaultStatusAfter, Status: 502, Text: "Bad Gateway"},
	} {
		t.Run(f.Kind.String(), func(t *testing.T) {
			h, s := simulated(t)
			f.Method, f.Path = http.MethodPost, "/upload$"
			s.Inject(f)
			content := []byte("an archive")
			_, err := put(h, content, sumOf(content))
			wantNoError(t, err)
			if got := changes(s); len(got) != 1 || s.FaultsStruck() != 1 {
				t.Errorf("sent %v", got)
			}
		})
	}
}

func TestUploadWithoutRights(t *testing.T) {
	_, s := simulated(t)
	h := hostOver(t, s, func(set *Settings) {
		set.APIToken = s.Cluster().AddToken("ci@pve", "pvrx", map[string][]string{"/storage/local": {"Datastore.Audit"}})
	})
	_, err := put(h, []byte("x"), sumOf([]byte("x")))
	wantOutcome(t, err, guest.OutcomeDenied)
	if !strings.Contains(err.Error(), "upload "+archive+" to storage local on node pve1") {
		t.Errorf("%v", err)
	}
}

// receiver is a server over real HTTP that takes an upload as answer says. Its tasks end well, with a log.
func receiver(t testing.TB, log string, take func(http.ResponseWriter, *http.Request) bool) (*Host, *atomic.Int64) {
	t.Helper()
	var uploads atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/upload"):
			uploads.Add(1)
			if take(w, r) {
				_, _ = io.WriteString(w, `{"data":"UPID:pve1:00000834:00050B0C:6B0E58A3:imgcopy::ci@pve!pvrx:"}`)
			}
		case strings.HasSuffix(r.URL.Path, "/status"):
			_, _ = io.WriteString(w, `{"data":{"status":"stopped","exitstatus":"OK"}}`)
		case strings.HasSuffix(r.URL.Path, "/log"):
			_, _ = fmt.Fprintf(w, `{"data":[{"n":1,"t":%q}]}`, log)
		default:
			_, _ = io.WriteString(w, `{"data":[]}`)
		}
	}))
	t.Cleanup(server.Close)
	h := hostOver(t, nil, func(s *Settings) { s.Endpoints, s.Transport = []string{server.URL}, nil })
	return h, &uploads
}

const verifiedLog = "calculating checksum...OK, checksum verified"

func TestUploadSendsItsPartsInTheOneOrder(t *testing.T) {
	var order []string
	content := []byte("an archive")
	h, _ := receiver(t, verifiedLog, func(_ http.ResponseWriter, r *http.Request) bool {
		kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil || kind != "multipart/form-data" || r.ContentLength <= 0 || r.Header.Get("Authorization") == "" {
			t.Errorf("%s of %d bytes: %v", kind, r.ContentLength, err)
		}
		parts := multipart.NewReader(r.Body, params["boundary"])
		for {
			part, err := parts.NextPart()
			if err != nil {
				return true
			}
			value, err := io.ReadAll(part)
			if err != nil {
				t.Error(err)
			}
			order = append(order, part.FormName()+"="+string(value)+part.FileName())
		}
	})
	_, err := put(h, content, sumOf(content))
	wantNoError(t, err)
	want := []string{"content=vztmpl", "checksum-algorithm=sha256", "checksum=" + sumOf(content), "filename=an archive" + archive}
	if strings.Join(order, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q, want %q", order, want)
	}
}

// A server that lost the checksum on the way keeps the file and says nothing about it.
func TestUploadThatNobodyComparedIsAnError(t *testing.T) {
	h, _ := receiver(t, "finished file import successfully", func(_ http.ResponseWriter, r *http.Request) bool {
		_, err := io.Copy(io.Discard, r.Body)
		return err == nil
	})
	_, err := put(h, []byte("x"), sumOf([]byte("x")))
	wantOutcome(t, err, guest.OutcomeFailed)
	if !strings.Contains(err.Error(), "without comparing") {
		t.Errorf("%v", err)
	}
}

// zeros is content of any size.
type zeros struct{}

func (zeros) ReadAt(p []byte, _ int64) (int, error) { clear(p); return len(p), nil }

func putZeros(ctx context.Context, h *Host, size int64) error {
	_, err := h.UploadTemplate(ctx, "pve1", "local", archive, sumOf(nil), zeros{}, size)
	return err
}

func TestUploadIsCancelledWhileItIsSent(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	h, uploads := receiver(t, verifiedLog, func(http.ResponseWriter, *http.Request) bool {
		close(arrived)
		<-release
		return false
	})
	h.pace.Request = time.Minute
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-arrived; cancel() }()
	began := time.Now()
	err := putZeros(ctx, h, 1<<30)
	wantOutcome(t, err, guest.OutcomeUnreachable)
	if !errors.Is(err, context.Canceled) || time.Since(began) > 20*time.Second || uploads.Load() != 1 {
		t.Errorf("%v after %s and %d uploads", err, time.Since(began), uploads.Load())
	}
	wantOutcome(t, putZeros(ctx, h, 1<<20), guest.OutcomeUnreachable)
	if uploads.Load() != 1 {
		t.Error("it was sent although it was cancelled before")
	}
}

// A server that takes no more bytes, or breaks off, has begun nothing: that is known, and nothing is sent again.
func TestUploadThatBreaksOff(t *testing.T) {
	for name, c := range map[string]struct {
		take  func(http.ResponseWriter, *http.Request) bool
		words string
	}{
		"stalls": {func(http.ResponseWriter, *http.Request) bool { time.Sleep(2 * time.Second); return false }, "takes no more bytes"},
		"breaks": {func(_ http.ResponseWriter, r *http.Request) bool {
			_, _ = io.CopyN(io.Discard, r.Body, 1<<20)
			panic(http.ErrAbortHandler)
		}, "broke off before all was sent"},
	} {
		t.Run(name, func(t *testing.T) {
			h, uploads := receiver(t, verifiedLog, c.take)
			h.pace.Request = 200 * time.Millisecond
			err := putZeros(context.Background(), h, 1<<30)
			wantOutcome(t, err, guest.OutcomeUnreachable)
			if !strings.Contains(err.Error(), c.words) || uploads.Load() != 1 {
				t.Errorf("%v after %d uploads", err, uploads.Load())
			}
		})
	}
}

// Once all is sent, no answer means that it may have been done.
func TestUploadWithoutAnswerIsUnknown(t *testing.T) {
	h, uploads := receiver(t, verifiedLog, func(_ http.ResponseWriter, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	})
	wantOutcome(t, putZeros(context.Background(), h, 1<<20), guest.OutcomeUnknown)
	if uploads.Load() != 1 {
		t.Errorf("%d uploads", uploads.Load())
	}
}

func TestUploadTakesNoMemoryOfTheArchivesSize(t *testing.T) {
	const size = 256 << 20
	var received atomic.Int64
	h, _ := receiver(t, verifiedLog, func(_ http.ResponseWriter, r *http.Request) bool {
		n, err := io.Copy(io.Discard, r.Body)
		received.Store(n)
		return err == nil
	})
	h.pace.Request = time.Minute
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	wantNoError(t, putZeros(context.Background(), h, size))
	runtime.ReadMemStats(&after)
	if received.Load() < size {
		t.Errorf("%d bytes arrived", received.Load())
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
		t.Errorf("an upload of 256 MiB allocates %d MiB", took>>20)
	}
}
