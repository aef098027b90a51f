package provider

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// shelf is a registry in this process, spoken to over HTTP, that notes what it is asked and can be put away.
type shelf struct {
	t    testing.TB
	host string

	mu    sync.Mutex
	asked []string // "HEAD manifests", "GET manifests", "GET blobs"
	away  bool
	user  string // "user:password" that it wants, "" for none
	// spoil, when set, answers a request for a layer in the registry's place.
	spoil func(w http.ResponseWriter, layer []byte)
}

func newShelf(t testing.TB) *shelf {
	t.Helper()
	s := &shelf{t: t}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		away, user, spoil := s.away, s.user, s.spoil
		for _, part := range []string{"manifests", "blobs"} {
			if strings.Contains(r.URL.Path, "/"+part) {
				s.asked = append(s.asked, r.Method+" "+part)
			}
		}
		s.mu.Unlock()
		given, password, _ := r.BasicAuth()
		switch {
		case away:
			w.WriteHeader(http.StatusBadGateway)
		case user != "" && given+":"+password != user:
			w.Header().Set("WWW-Authenticate", `Basic realm="shelf"`)
			w.WriteHeader(http.StatusUnauthorized)
		case spoil != nil && r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/"):
			kept := httptest.NewRecorder()
			inner.ServeHTTP(kept, r)
			if layer := kept.Body.Bytes(); !bytes.HasPrefix(layer, []byte("{")) { // an image's configuration is JSON
				spoil(w, layer)
				return
			}
			inner.ServeHTTP(w, r)
		default:
			inner.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	s.host = strings.TrimPrefix(server.URL, "http://")
	return s
}

// putAway makes the registry answer nothing of use, or brings it back.
func (s *shelf) putAway(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

// spoiled makes the registry answer requests for layers in another way; nil restores it.
func (s *shelf) spoiled(how func(w http.ResponseWriter, layer []byte)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spoil = how
}

// lock makes the registry ask for a login.
func (s *shelf) lock(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.user = user
}

// forget drops what was asked so far.
func (s *shelf) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = nil
}

// count returns how often something was asked.
func (s *shelf) count(what string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.asked {
		if a == what {
			n++
		}
	}
	return n
}

// ref is the whole reference of a name on this registry.
func (s *shelf) ref(text string) string { return s.host + "/" + text }

// block is the part of the provider block that lets it be spoken to.
func (s *shelf) block() string {
	return fmt.Sprintf("registries = { %q = { plain_http = true } }", s.host)
}

// put puts an image under a tag and returns its digest.
func (s *shelf) put(text string, image v1.Image) string {
	s.t.Helper()
	ref, err := name.ParseReference(s.ref(text), name.Insecure)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := remote.Write(ref, image); err != nil {
		s.t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		s.t.Fatal(err)
	}
	s.forget()
	return digest.String()
}

// imageFor is a small image with a program and a file that says its version; equal words make equal images.
func imageFor(t testing.TB, version string, config v1.Config) v1.Image {
	t.Helper()
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	for _, file := range [][2]string{{"app/run", "program"}, {"version", version}} {
		if err := w.WriteHeader(&tar.Header{Name: file[0], Mode: 0o755, Size: int64(len(file[1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(file[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", "amd64", config
	if len(config.Entrypoint) == 0 {
		file.Config.Entrypoint = []string{"/app/run"}
	}
	if image, err = mutate.ConfigFile(image, file); err != nil {
		t.Fatal(err)
	}
	return mutate.ConfigMediaType(mutate.MediaType(image, types.OCIManifestSchema1), types.OCIConfigJSON)
}

// imageConfig is an ordinary configuration.
func imageConfig() v1.Config { return v1.Config{Env: []string{"PATH=/bin"}} }
