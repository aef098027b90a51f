package oci

import (
	"context"
	"encoding/binary"
	"io"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// madeUp is a layer of any size that takes no memory: its content is counted out as it is read.
type madeUp struct {
	seed, size int64
	digest     v1.Hash
}

func makeUp(t testing.TB, seed, size int64) *madeUp {
	t.Helper()
	m := &madeUp{seed: seed, size: size}
	digest, _, err := v1.SHA256(m.read())
	noError(t, err)
	m.digest = digest
	return m
}

func (m *madeUp) read() io.Reader { return io.LimitReader(&counter{seed: m.seed}, m.size) }

func (m *madeUp) Digest() (v1.Hash, error)             { return m.digest, nil }
func (m *madeUp) DiffID() (v1.Hash, error)             { return m.digest, nil }
func (m *madeUp) Size() (int64, error)                 { return m.size, nil }
func (m *madeUp) MediaType() (types.MediaType, error)  { return types.OCIUncompressedLayer, nil }
func (m *madeUp) Compressed() (io.ReadCloser, error)   { return io.NopCloser(m.read()), nil }
func (m *madeUp) Uncompressed() (io.ReadCloser, error) { return io.NopCloser(m.read()), nil }

// counter is endless content: every KiB begins with its number, so that a byte in the wrong place shows.
type counter struct{ seed, at int64 }

func (c *counter) Read(p []byte) (int, error) {
	clear(p)
	for start := c.at &^ 1023; start < c.at+int64(len(p)); start += 1024 {
		var number [8]byte
		binary.LittleEndian.PutUint64(number[:], uint64(c.seed+start))
		for i, digit := range number {
			if to := start + int64(i) - c.at; to >= 0 && to < int64(len(p)) {
				p[to] = digit
			}
		}
	}
	c.at += int64(len(p))
	return len(p), nil
}

// shelf keeps small blobs in memory and makes the large ones up.
type shelf struct {
	registry.BlobHandler
	mu    sync.Mutex
	large map[v1.Hash]*madeUp
}

func (s *shelf) Get(ctx context.Context, repo string, h v1.Hash) (io.ReadCloser, error) {
	s.mu.Lock()
	m := s.large[h]
	s.mu.Unlock()
	if m != nil {
		return m.Compressed()
	}
	return s.BlobHandler.Get(ctx, repo, h)
}

func (s *shelf) Stat(ctx context.Context, repo string, h v1.Hash) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.large[h]; m != nil {
		return m.size, nil
	}
	return s.BlobHandler.(registry.BlobStatHandler).Stat(ctx, repo, h)
}

func (s *shelf) Put(ctx context.Context, repo string, h v1.Hash, rc io.ReadCloser) error {
	return s.BlobHandler.(registry.BlobPutHandler).Put(ctx, repo, h, rc)
}

// large returns a registry with an image of four layers that together have size bytes.
func large(t testing.TB, size int64) (*lab, Image) {
	t.Helper()
	s := &shelf{BlobHandler: registry.NewInMemoryBlobHandler(), large: map[v1.Hash]*madeUp{}}
	l := newLab(t, registry.WithBlobHandler(s))
	var layers []v1.Layer
	for i := range int64(4) {
		m := makeUp(t, i<<40, size/4)
		s.large[m.digest] = m
		layers = append(layers, m)
	}
	digest := l.push("large:1", imageOf(t, amd64, true, layers...))
	return l, Image{Reference: l.ref("large:1"), Digest: digest, Manifest: digest, Platform: amd64}
}

// held returns how much memory the process holds, in bytes.
func held() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64()) - int64(s[1].Value.Uint64())
}

// peak returns by how much the memory held grew at most while do ran.
func peak(do func()) int64 {
	debug.FreeOSMemory()
	before, most := held(), int64(0)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			most = max(most, held())
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	do()
	close(stop)
	<-stopped
	return most - before
}

func TestFetchTakesNoMoreMemoryForALargeImage(t *testing.T) {
	l, image := large(t, 160<<20)
	r := l.resolver(nil)
	grown := peak(func() {
		a, err := r.Fetch(context.Background(), image, t.TempDir(), nil)
		noError(t, err)
		defer a.Close()
		if _, err := io.Copy(io.Discard, a.Reader()); err != nil {
			t.Error(err)
		}
	})
	if grown > 64<<20 {
		t.Errorf("an image of 160 MiB takes %d MiB of memory", grown>>20)
	}
}

// BenchmarkFetch fetches an image of 2 GiB and reports the most memory that it took, with the registry in the same process.
func BenchmarkFetch(b *testing.B) {
	const size = 2 << 30
	l, image := large(b, size)
	b.SetBytes(size)
	most := int64(0)
	for b.Loop() {
		most = max(most, peak(func() { fetchOnce(b, l, image) }))
	}
	b.ReportMetric(float64(most)/(1<<20), "MiB-peak")
	if most > 64<<20 {
		b.Errorf("%d MiB of memory", most>>20)
	}
}

// BenchmarkBesideCrane fetches the same image in turn with ours and as "crane pull" does, and reports our throughput as a share
// of its. Both leave one file.
func BenchmarkBesideCrane(b *testing.B) {
	const size = 512 << 20
	l, image := large(b, size)
	var ours, theirs time.Duration
	for b.Loop() {
		began := time.Now()
		fetchOnce(b, l, image)
		ours += time.Since(began)
		began = time.Now()
		pulled, err := crane.Pull(l.host+"/large:1", crane.Insecure)
		noError(b, err)
		noError(b, crane.Save(pulled, "large:1", filepath.Join(b.TempDir(), "crane.tar")))
		theirs += time.Since(began)
	}
	b.ReportMetric(theirs.Seconds()/ours.Seconds(), "of-crane")
	b.ReportMetric(size*float64(b.N)/ours.Seconds()/1e6, "MB/s")
}

func fetchOnce(b *testing.B, l *lab, image Image) {
	b.Helper()
	a, err := l.resolver(nil).Fetch(context.Background(), image, b.TempDir(), nil)
	noError(b, err)
	noError(b, a.Close())
}

// BenchmarkParseReference is what every plan does for every instance.
func BenchmarkParseReference(b *testing.B) {
	for b.Loop() {
		if _, err := ParseReference("ghcr.io/home-assistant/home-assistant:2026.1@" + someDigest); err != nil {
			b.Fatal(err)
		}
	}
}
