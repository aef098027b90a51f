package oci

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// lab is a registry in this process, spoken to over HTTP, that notes what it is asked and can be told to misbehave.
type lab struct {
	t    testing.TB
	host string

	mu     sync.Mutex
	asked  []string // "HEAD manifests", "GET manifests", "GET blobs", "GET v2"
	behave func(http.ResponseWriter, *http.Request, http.Handler)
}

func newLab(t testing.TB, options ...registry.Option) *lab {
	t.Helper()
	l := &lab{t: t}
	inner := registry.New(append(options, registry.Logger(log.New(io.Discard, "", 0)))...)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind := "v2"
		for _, part := range []string{"manifests", "blobs", "token"} {
			if strings.Contains(r.URL.Path, "/"+part) {
				kind = part
			}
		}
		l.mu.Lock()
		l.asked = append(l.asked, r.Method+" "+kind)
		behave := l.behave
		l.mu.Unlock()
		if behave != nil {
			behave(w, r, inner)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	l.host = strings.TrimPrefix(server.URL, "http://")
	return l
}

// misbehave replaces the registry's handler; nil restores it.
func (l *lab) misbehave(behave func(http.ResponseWriter, *http.Request, http.Handler)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.behave = behave
}

// forget drops what was asked so far.
func (l *lab) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = nil
}

// count returns how often something was asked.
func (l *lab) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, a := range l.asked {
		if a == what {
			n++
		}
	}
	return n
}

func (l *lab) ref(text string) Reference {
	l.t.Helper()
	ref, err := ParseReference(l.host + "/" + text)
	noError(l.t, err)
	return ref
}

func (l *lab) named(text string) name.Reference {
	l.t.Helper()
	ref, err := name.ParseReference(l.host+"/"+text, name.Insecure)
	noError(l.t, err)
	return ref
}

// push puts an image under a tag and returns its digest.
func (l *lab) push(text string, image v1.Image) Digest {
	l.t.Helper()
	noError(l.t, remote.Write(l.named(text), image))
	digest, err := image.Digest()
	noError(l.t, err)
	l.forget()
	return Digest(digest.String())
}

// pushIndex puts an index under a tag and returns its digest.
func (l *lab) pushIndex(text string, index v1.ImageIndex) Digest {
	l.t.Helper()
	noError(l.t, remote.WriteIndex(l.named(text), index))
	digest, err := index.Digest()
	noError(l.t, err)
	l.forget()
	return Digest(digest.String())
}

// resolver returns a resolver that may speak plain HTTP to the lab and does not wait long.
func (l *lab) resolver(change func(*Settings)) *Resolver {
	l.t.Helper()
	s := Settings{
		PlainHTTP: []string{l.host},
		Patience:  Patience{Answer: 20 * time.Second, Stall: 20 * time.Second, RetryAfter: 3 * time.Second, Pause: time.Millisecond},
	}
	if change != nil {
		change(&s)
	}
	r, err := NewResolver(s)
	noError(l.t, err)
	return r
}

// imageOf builds an image for a platform, all in the media types of OCI or all in Docker's.
func imageOf(t testing.TB, p Platform, oci bool, layers ...v1.Layer) v1.Image {
	t.Helper()
	image := empty.Image
	image, err := mutate.AppendLayers(image, layers...)
	noError(t, err)
	file, err := image.ConfigFile()
	noError(t, err)
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Variant = p.OS, p.Architecture, p.Variant
	file.Config = v1.Config{
		Entrypoint: []string{"/entry.sh", "arg one"}, Cmd: []string{"--flag"}, Env: []string{"PATH=/usr/bin", "MODE=prod"},
		Volumes: map[string]struct{}{"/data": {}, "/cache": {}}, ExposedPorts: map[string]struct{}{"80/tcp": {}},
		User: "1000:1000", WorkingDir: "/srv", StopSignal: "SIGQUIT", Labels: map[string]string{"version": "1"},
	}
	image, err = mutate.ConfigFile(image, file)
	noError(t, err)
	if oci {
		return mutate.ConfigMediaType(mutate.MediaType(image, types.OCIManifestSchema1), types.OCIConfigJSON)
	}
	return image
}

func layerOf(t testing.TB, size int64, media types.MediaType) v1.Layer {
	t.Helper()
	layer, err := random.Layer(size, media)
	noError(t, err)
	return layer
}

// small is an ordinary OCI image of two small layers.
func small(t testing.TB) v1.Image {
	t.Helper()
	return imageOf(t, amd64, true, layerOf(t, 3000, types.OCILayer), layerOf(t, 70_000, types.OCILayer))
}

var (
	amd64 = Platform{OS: "linux", Architecture: "amd64"}
	arm64 = Platform{OS: "linux", Architecture: "arm64"}
)

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantProblem checks an error's problem and that its words hold what a person needs.
func wantProblem(t testing.TB, err error, want Problem, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s", want)
	}
	if got := ProblemOf(err); got != want {
		t.Fatalf("problem %s, want %s: %v", got, want, err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q lacks %q", err, w)
		}
	}
}

// asOCI is a layer under OCI's name for its media type.
type asOCI struct{ v1.Layer }

// MediaType returns OCI's name.
func (asOCI) MediaType() (types.MediaType, error) { return types.OCILayer, nil }
