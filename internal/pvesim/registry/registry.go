// Package registry serves OCI images to demos and tests: a real registry in this process, spoken to over
// plain HTTP, with images that are small enough to be read.
package registry

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Registry is a registry that answers. It keeps its images in memory.
type Registry struct {
	host   string
	server *http.Server
}

// Image is what an image is made of. Equal images have equal digests.
type Image struct {
	// Files are the programs and files it brings: absolute path to content. All of them can be executed.
	Files      map[string]string
	Entrypoint []string
	Env        []string
	WorkingDir string
	// Volumes are the paths that it declares as such.
	Volumes []string
}

// Start makes an empty registry listen on an address, such as "127.0.0.1:0". ctx bounds the start alone: it answers until Close.
func Start(ctx context.Context, address string) (*Registry, error) {
	listening, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", address, err)
	}
	r := &Registry{host: listening.Addr().String()}
	r.server = &http.Server{Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0))), ReadHeaderTimeout: time.Minute}
	go func() { _ = r.server.Serve(listening) }() // it always ends with an error, that of Close
	return r, nil
}

// Host is the registry as references name it: host and port.
func (r *Registry) Host() string { return r.host }

// Close stops it. What was in it is gone.
func (r *Registry) Close() error { return r.server.Close() }

// Push puts an image for linux/amd64 under a name and a tag ("guestbook:1"), in the place of another that was there, and
// returns its digest.
func (r *Registry) Push(tag string, i Image) (digest string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot push %s: %w", tag, err)
		}
	}()
	image, err := i.build()
	if err != nil {
		return "", err
	}
	to, err := name.NewTag(r.host+"/"+tag, name.Insecure)
	if err != nil {
		return "", err
	}
	if err := remote.Write(to, image); err != nil {
		return "", err
	}
	hash, err := image.Digest()
	return hash.String(), err
}

func (i Image) build() (v1.Image, error) {
	content, err := i.layer()
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", "amd64"
	file.Config = v1.Config{Entrypoint: i.Entrypoint, Env: i.Env, WorkingDir: i.WorkingDir, Volumes: map[string]struct{}{}}
	for _, path := range i.Volumes {
		file.Config.Volumes[path] = struct{}{}
	}
	if image, err = mutate.ConfigFile(image, file); err != nil {
		return nil, err
	}
	return mutate.ConfigMediaType(mutate.MediaType(image, types.OCIManifestSchema1), types.OCIConfigJSON), nil
}

func (i Image) layer() ([]byte, error) {
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	for _, path := range slices.Sorted(maps.Keys(i.Files)) {
		text := i.Files[path]
		header := &tar.Header{Name: strings.TrimPrefix(path, "/"), Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(text)), ModTime: time.Unix(0, 0)}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write([]byte(text)); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return content.Bytes(), err
}
