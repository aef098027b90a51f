package oci

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	ocilayout "github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// archiveName is what Proxmox takes as a template's file name without changing it.
var archiveName = regexp.MustCompile(`^pvrx-[a-z0-9][a-z0-9._-]*-[0-9a-f]{12}\.tar$`)

func fetched(t testing.TB, r *Resolver, ref Reference, p Platform) (*Archive, Image) {
	t.Helper()
	image, err := r.Resolve(context.Background(), ref, p)
	noError(t, err)
	archive, err := r.Fetch(context.Background(), image, t.TempDir(), nil)
	noError(t, err)
	t.Cleanup(func() { noError(t, archive.Close()) })
	return archive, image
}

// unpacked reads an archive as Proxmox does, member by member, and checks what it says of itself.
func unpacked(t testing.TB, a *Archive) (names []string, members map[string][]byte) {
	t.Helper()
	sum := sha256.New()
	all, err := io.ReadAll(io.TeeReader(a.Reader(), sum))
	noError(t, err)
	if int64(len(all)) != a.Size || hex.EncodeToString(sum.Sum(nil)) != a.SHA256 {
		t.Fatalf("%d bytes, %d and %s are promised", len(all), a.Size, a.SHA256)
	}
	if !archiveName.MatchString(a.Name) {
		t.Errorf("Proxmox would change the name %q", a.Name)
	}
	members = map[string][]byte{}
	in := tar.NewReader(bytes.NewReader(all))
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		noError(t, err)
		content, err := io.ReadAll(in)
		noError(t, err)
		names, members[h.Name] = append(names, h.Name), content
	}
	return names, members
}

// image reads an archive's image with a reader that is not ours, which checks digests, sizes and unpacked layers.
func readBack(t testing.TB, members map[string][]byte) v1.Image {
	t.Helper()
	folder := t.TempDir()
	for name, content := range members {
		noError(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755))
		noError(t, os.WriteFile(filepath.Join(folder, name), content, 0o600))
	}
	path, err := ocilayout.FromPath(folder)
	noError(t, err)
	index, err := path.ImageIndex()
	noError(t, err)
	noError(t, validate.Index(index))
	m, err := index.IndexManifest()
	noError(t, err)
	if len(m.Manifests) != 1 || m.Manifests[0].MediaType != types.OCIManifestSchema1 || m.Manifests[0].Platform == nil {
		t.Fatalf("index.json holds %+v", m.Manifests)
	}
	image, err := index.Image(m.Manifests[0].Digest)
	noError(t, err)
	return image
}

func TestFetchOCIImage(t *testing.T) {
	l := newLab(t)
	shared := layerOf(t, 3000, types.OCILayer)
	source := imageOf(t, Platform{OS: "linux", Architecture: "arm64", Variant: "v8"}, true,
		shared, layerOf(t, 600_000, types.OCILayer), layerOf(t, 512, types.OCIUncompressedLayer), shared)
	digest := l.push("team/my_app:1", source)
	a, image := fetched(t, l.resolver(nil), l.ref("team/my_app:1"), arm64)

	names, members := unpacked(t, a)
	if names[0] != "oci-layout" || names[1] != "index.json" || len(names) != 2+1+1+3 {
		t.Errorf("members %v", names)
	}
	for _, name := range names[2:] {
		if !strings.HasPrefix(name, "blobs/sha256/") {
			t.Errorf("Proxmox does not look for %s", name)
		}
	}
	if want := "pvrx-my_app-" + digest.Short() + ".tar"; a.Name != want || a.Manifest != digest || image.Manifest != digest {
		t.Errorf("%s of %s, want %s of %s", a.Name, a.Manifest, want, digest)
	}
	back := digestOfImage(t, readBack(t, members))
	if back != digest {
		t.Errorf("the archive holds %s, want %s", back, digest)
	}
	c := a.Config
	if c.Platform.Variant != "v8" || fmt.Sprint(c.Entrypoint, c.Cmd, c.Env, c.Volumes, c.Ports) != "[/entry.sh arg one] [--flag] [PATH=/usr/bin MODE=prod] [/cache /data] [80/tcp]" ||
		c.User != "1000:1000" || c.WorkDir != "/srv" || c.StopSignal != "SIGQUIT" || c.Labels["version"] != "1" {
		t.Errorf("%+v", c)
	}
}

// Docker's media types are unknown to Proxmox. They are replaced in the manifest; every blob stays what it was.
func TestFetchDockerImage(t *testing.T) {
	l := newLab(t)
	source := imageOf(t, amd64, false, layerOf(t, 3000, types.DockerLayer), layerOf(t, 1000, types.DockerUncompressedLayer))
	digest := l.push("app:1", source)
	a, image := fetched(t, l.resolver(nil), l.ref("app:1"), amd64)
	_, members := unpacked(t, a)
	back := readBack(t, members)
	if image.Manifest != digest || a.Manifest == digest || digestOfImage(t, back) != a.Manifest {
		t.Errorf("source %s, archive %s", digest, a.Manifest)
	}
	was, err := source.Manifest()
	noError(t, err)
	is, err := back.Manifest()
	noError(t, err)
	if is.MediaType != types.OCIManifestSchema1 || is.Config.MediaType != types.OCIConfigJSON || is.Config.Digest != was.Config.Digest {
		t.Errorf("%+v", is)
	}
	for i, want := range []types.MediaType{types.OCILayer, types.OCIUncompressedLayer} {
		if is.Layers[i].MediaType != want || is.Layers[i].Digest != was.Layers[i].Digest {
			t.Errorf("layer %d: %+v", i, is.Layers[i])
		}
	}
}

// A file name on a storage stands for a digest. That can be trusted because the same image makes the same bytes, and its size is
// known without any of its blobs.
func TestArchiveIsTheSameEveryTime(t *testing.T) {
	l := newLab(t)
	index, forAMD, _ := manyPlatforms(t)
	l.pushIndex("app:1", index)
	first, image := fetched(t, l.resolver(nil), l.ref("app:1"), amd64)
	second, _ := fetched(t, l.resolver(nil), l.ref("app@"+forAMD.String()), amd64)
	if first.SHA256 != second.SHA256 || first.Name != second.Name {
		t.Errorf("%s %s, then %s %s", first.Name, first.SHA256, second.Name, second.SHA256)
	}
	l.forget()
	outline, err := l.resolver(nil).Outline(context.Background(), image)
	noError(t, err)
	if outline != first.Outline || l.count("GET blobs") != 0 || l.count("GET manifests") != 1 {
		t.Errorf("%+v, want %+v, after %d blobs", outline, first.Outline, l.count("GET blobs"))
	}
}

func TestInspect(t *testing.T) {
	l := newLab(t)
	l.push("app:1", small(t))
	r := l.resolver(nil)
	image, err := r.Resolve(context.Background(), l.ref("app:1"), amd64)
	noError(t, err)
	for range 2 {
		c, err := r.Inspect(context.Background(), image)
		noError(t, err)
		if c.User != "1000:1000" || c.Platform != amd64 {
			t.Errorf("%+v", c)
		}
	}
	if m, b := l.count("GET manifests"), l.count("GET blobs"); m != 1 || b != 1 {
		t.Errorf("%d manifests and %d blobs, want one and one", m, b)
	}
	image.Platform = arm64
	_, err = r.Inspect(context.Background(), image)
	wantProblem(t, err, ProblemPlatform, "made for linux/amd64, not for linux/arm64")
	_, err = r.Fetch(context.Background(), image, t.TempDir(), nil)
	wantProblem(t, err, ProblemPlatform)
}

// spoil damages what blobs above a size are answered with, the first times.
func spoil(times int, how func(http.ResponseWriter, []byte)) func(http.ResponseWriter, *http.Request, http.Handler) {
	var left atomic.Int64
	left.Store(int64(times))
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if !strings.Contains(r.URL.Path, "/blobs/") {
			next.ServeHTTP(w, r)
			return
		}
		kept := &keptAnswer{header: http.Header{}}
		next.ServeHTTP(kept, r)
		maps.Copy(w.Header(), kept.header)
		if kept.body.Len() < 50_000 || left.Add(-1) < 0 {
			w.WriteHeader(kept.status)
			_, _ = w.Write(kept.body.Bytes())
			return
		}
		how(w, kept.body.Bytes())
	}
}

type keptAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (k *keptAnswer) Header() http.Header         { return k.header }
func (k *keptAnswer) WriteHeader(status int)      { k.status = status }
func (k *keptAnswer) Write(b []byte) (int, error) { return k.body.Write(b) }

// However a blob is damaged: once, and it is fetched again; twice, and nothing is left but an error.
func TestDamagedBlob(t *testing.T) {
	for name, how := range map[string]func(http.ResponseWriter, []byte){
		"another byte": func(w http.ResponseWriter, b []byte) {
			b = bytes.Clone(b)
			b[len(b)/2] ^= 1
			_, _ = w.Write(b)
		},
		"cut off": func(w http.ResponseWriter, b []byte) { _, _ = w.Write(b[:len(b)/2]) },
		"short": func(w http.ResponseWriter, b []byte) {
			w.Header().Set("Content-Length", fmt.Sprint(len(b)/2))
			_, _ = w.Write(b[:len(b)/2])
		},
		"long": func(w http.ResponseWriter, b []byte) {
			w.Header().Del("Content-Length")
			_, _ = w.Write(append(bytes.Clone(b), "and more"...))
		},
		"of unsaid length": func(w http.ResponseWriter, b []byte) {
			w.Header().Del("Content-Length")
			_, _ = w.Write(b[:len(b)/2])
		},
		"broken off": func(w http.ResponseWriter, b []byte) {
			_, _ = w.Write(b[:len(b)/2])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.push("app:1", imageOf(t, amd64, true, layerOf(t, 1000, types.OCILayer), layerOf(t, 200_000, types.OCILayer), layerOf(t, 1000, types.OCILayer)))
			clean, _ := fetched(t, l.resolver(nil), l.ref("app:1"), amd64)

			l.misbehave(spoil(1, how))
			var last Progress
			r := l.resolver(nil)
			image, err := r.Resolve(context.Background(), l.ref("app:1"), amd64)
			noError(t, err)
			a, err := r.Fetch(context.Background(), image, t.TempDir(), func(p Progress) { last = p })
			noError(t, err)
			defer a.Close()
			unpacked(t, a)
			if a.SHA256 != clean.SHA256 {
				t.Error("the second try made another archive")
			}
			if last.Done != last.Total || last.Total != a.Download {
				t.Errorf("progress ended at %+v", last)
			}

			l.misbehave(spoil(2, how))
			folder := t.TempDir()
			_, err = l.resolver(nil).Fetch(context.Background(), image, folder, nil)
			wantProblem(t, err, ProblemDamaged, "blob sha256:")
			if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
				t.Errorf("%v is left behind (%v)", left, err)
			}
		})
	}
}

func TestDamagedManifest(t *testing.T) {
	l := newLab(t)
	l.push("app:1", small(t))
	image, err := l.resolver(nil).Resolve(context.Background(), l.ref("app:1"), amd64)
	noError(t, err)
	l.misbehave(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/manifests/") {
			w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
			_, _ = io.WriteString(w, `{"schemaVersion":2}`)
			return
		}
		next.ServeHTTP(w, r)
	})
	_, err = l.resolver(nil).Fetch(context.Background(), image, t.TempDir(), nil)
	wantProblem(t, err, ProblemDamaged, "manifest "+image.Manifest.String())
	if n := l.count("GET blobs"); n != 0 {
		t.Errorf("%d blobs of a manifest that is not the one", n)
	}
}

// C9: what a rollback needs is named by digest, so it is there however far its tag has moved.
func TestC9ThePreviousImageIsFetchedAfterItsTagMoved(t *testing.T) {
	l := newLab(t)
	old := l.push("app:1", small(t))
	r := l.resolver(nil)
	image, err := r.Resolve(context.Background(), l.ref("app:1"), amd64)
	noError(t, err)
	next := l.push("app:1", small(t))
	a, err := r.Fetch(context.Background(), image, t.TempDir(), nil)
	noError(t, err)
	defer a.Close()
	if a.Manifest != old {
		t.Errorf("fetched %s, resolved %s, the tag is at %s", a.Manifest, old, next)
	}
	// A later run finds it by what was recorded.
	later := Image{Reference: l.ref("app:1"), Digest: old, Manifest: old, Platform: amd64}
	b, err := l.resolver(nil).Fetch(context.Background(), later, t.TempDir(), nil)
	noError(t, err)
	defer b.Close()
	if b.SHA256 != a.SHA256 {
		t.Error("it is another archive")
	}
}

func TestBlobThatStalls(t *testing.T) {
	l := newLab(t)
	l.push("app:1", imageOf(t, amd64, true, layerOf(t, 200_000, types.OCILayer)))
	release := make(chan struct{})
	defer close(release)
	l.misbehave(spoil(10, func(w http.ResponseWriter, b []byte) {
		_, _ = w.Write(b[:len(b)/2])
		_ = http.NewResponseController(w).Flush()
		<-release
	}))
	r := l.resolver(func(s *Settings) { s.Patience.Stall = 50 * time.Millisecond })
	image, err := r.Resolve(context.Background(), l.ref("app:1"), amd64)
	noError(t, err)
	_, err = r.Fetch(context.Background(), image, t.TempDir(), nil)
	wantProblem(t, err, ProblemUnreachable, l.host+" stopped answering")

	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err = l.resolver(nil).Fetch(ctx, image, t.TempDir(), nil)
	wantProblem(t, err, ProblemCancelled)
}

func TestBlobThatIsGoneIsAskedForOnce(t *testing.T) {
	l := newLab(t)
	l.push("app:1", imageOf(t, amd64, true, layerOf(t, 200_000, types.OCILayer)))
	l.misbehave(spoil(10, func(w http.ResponseWriter, _ []byte) {
		w.Header().Del("Content-Length")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"errors":[{"code":"BLOB_UNKNOWN","message":"gone\u001b[31m\n"}]}`)
	}))
	r := l.resolver(nil)
	image, err := r.Resolve(context.Background(), l.ref("app:1"), amd64)
	noError(t, err)
	_, err = r.Fetch(context.Background(), image, t.TempDir(), nil)
	wantProblem(t, err, ProblemMissing, "404", "BLOB_UNKNOWN: gone")
	if strings.ContainsAny(err.Error(), "\x1b\n") {
		t.Errorf("%q repeats control characters", err)
	}
	if n := l.count("GET blobs"); n != 2 { // the configuration and the layer
		t.Errorf("%d blobs were asked for", n)
	}
}

func TestNoRoomForTheArchive(t *testing.T) {
	l := newLab(t)
	l.push("app:1", small(t))
	r := l.resolver(nil)
	image, err := r.Resolve(context.Background(), l.ref("app:1"), amd64)
	noError(t, err)
	_, err = r.Fetch(context.Background(), image, filepath.Join(t.TempDir(), "nowhere"), nil)
	wantProblem(t, err, ProblemDisk, "TMPDIR")
}

// Whatever a manifest claims, it costs no more than its own bytes to find out.
func TestStrangeManifestsAreRefused(t *testing.T) {
	good := func(t *testing.T) *v1.Manifest {
		m, err := small(t).Manifest()
		noError(t, err)
		return m.DeepCopy()
	}
	for name, c := range map[string]struct {
		change func(*v1.Manifest)
		words  string
	}{
		"a chart":         {func(m *v1.Manifest) { m.Config.MediaType = "application/vnd.cncf.helm.config.v1+json" }, "helm.config"},
		"foreign layer":   {func(m *v1.Manifest) { m.Layers[0].MediaType = types.DockerForeignLayer }, "layer 1"},
		"restricted":      {func(m *v1.Manifest) { m.Layers[1].MediaType = types.OCIRestrictedLayer }, "layer 2"},
		"another schema":  {func(m *v1.Manifest) { m.SchemaVersion = 1 }, "schema 1"},
		"negative size":   {func(m *v1.Manifest) { m.Layers[0].Size = -1 }, "-1 bytes"},
		"endless size":    {func(m *v1.Manifest) { m.Layers[0].Size = 1 << 62 }, "bytes"},
		"large config":    {func(m *v1.Manifest) { m.Config.Size = maxConfig + 1 }, "configuration is larger"},
		"odd digest":      {func(m *v1.Manifest) { m.Layers[0].Digest = v1.Hash{Algorithm: "sha512", Hex: strings.Repeat("0", 128)} }, "not a digest"},
		"too many layers": {func(m *v1.Manifest) { m.Layers = slices.Repeat(m.Layers, maxLayers) }, "layers"},
		"an index":        {func(m *v1.Manifest) { m.MediaType = types.OCIImageIndex }, "image.index"},
	} {
		t.Run(name, func(t *testing.T) {
			m := good(t)
			c.change(m)
			raw, err := json.Marshal(m)
			noError(t, err)
			_, err = contentOf(manifest{raw: raw, digest: digestOf(raw), media: types.OCIManifestSchema1})
			wantProblem(t, err, ProblemUnsupported, c.words)
		})
	}
	_, err := contentOf(manifest{raw: []byte("{"), media: types.OCIManifestSchema1})
	wantProblem(t, err, ProblemUnsupported)
}

func TestHugeManifestIsNotReadToItsEnd(t *testing.T) {
	l := newLab(t)
	l.push("app:1", small(t))
	image, err := l.resolver(nil).Resolve(context.Background(), l.ref("app:1"), amd64)
	noError(t, err)
	l.misbehave(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if !strings.Contains(r.URL.Path, "/manifests/") {
			next.ServeHTTP(w, r)
			return
		}
		for range 64 {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	})
	_, err = l.resolver(nil).Inspect(context.Background(), image)
	wantProblem(t, err, ProblemUnsupported, "larger than 4 MiB")
}

// An OCI manifest without a media type of its own is kept to the byte: what the registry calls it counts.
func TestManifestWithoutMediaType(t *testing.T) {
	m, err := small(t).Manifest()
	noError(t, err)
	m = m.DeepCopy()
	m.MediaType = ""
	raw, err := json.Marshal(m)
	noError(t, err)
	c, err := contentOf(manifest{raw: raw, digest: digestOf(raw), media: types.OCIManifestSchema1})
	noError(t, err)
	if !bytes.Equal(c.manifest, raw) || c.digest != digestOf(raw) {
		t.Error("it was written anew")
	}
}

func TestLayoutOfLargeLayers(t *testing.T) {
	c := content{manifest: []byte("{}"), digest: someDigest, config: v1.Descriptor{Digest: hashOf(someDigest), Size: 2}}
	for i, size := range []int64{9 << 30, 0, 511, 512, 513} {
		c.layers = append(c.layers, v1.Descriptor{Size: size, Digest: v1.Hash{Algorithm: "sha256", Hex: fmt.Sprintf("%064x", i)}})
	}
	l, err := layoutOf(c, configBlob{raw: []byte("{}"), config: Config{Platform: amd64}})
	noError(t, err)
	at := int64(0)
	for _, m := range l.members {
		if m.at != at || len(m.header)%block != 0 {
			t.Fatalf("a member stands at %d, want %d", m.at, at)
		}
		h, err := tar.NewReader(bytes.NewReader(m.header)).Next()
		if err != nil || h.Size != m.size {
			t.Fatalf("%+v, %v", h, err)
		}
		at += int64(len(m.header)) + (m.size+block-1)/block*block
	}
	if l.size != at+2*block || l.layers() != 9<<30+511+512+513 {
		t.Errorf("%d bytes, %d of layers", l.size, l.layers())
	}
}

// Archives of several images are fetched side by side by one resolver.
func TestFetchesSideBySide(t *testing.T) {
	l := newLab(t)
	var images []Digest
	for i := range 4 {
		images = append(images, l.push(fmt.Sprintf("app:%d", i), small(t)))
	}
	r := l.resolver(nil)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			image, err := r.Resolve(context.Background(), l.ref(fmt.Sprintf("app:%d", i%4)), amd64)
			if err != nil {
				t.Error(err)
				return
			}
			a, err := r.Fetch(context.Background(), image, t.TempDir(), nil)
			if err != nil {
				t.Error(err)
				return
			}
			if a.Manifest != images[i%4] {
				t.Errorf("%s, want %s", a.Manifest, images[i%4])
			}
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
