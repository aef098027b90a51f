package oci

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// manyPlatforms is an index of two platforms, one of them twice, with the attestations that builders add.
func manyPlatforms(t testing.TB) (index v1.ImageIndex, forAMD, forARM Digest) {
	t.Helper()
	amd := imageOf(t, amd64, true, layerOf(t, 2000, types.OCILayer))
	arm := imageOf(t, Platform{OS: "linux", Architecture: "arm64", Variant: "v8"}, true, layerOf(t, 2000, types.OCILayer))
	attestation := imageOf(t, amd64, true, layerOf(t, 100, types.OCILayer))
	index = mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex),
		mutate.IndexAddendum{Add: attestation, Descriptor: v1.Descriptor{
			Platform:    &v1.Platform{OS: "unknown", Architecture: "unknown"},
			Annotations: map[string]string{"vnd.docker.reference.type": "attestation-manifest"},
		}},
		mutate.IndexAddendum{Add: attestation, Descriptor: v1.Descriptor{
			Platform:    &v1.Platform{OS: "linux", Architecture: "amd64"},
			Annotations: map[string]string{"vnd.docker.reference.type": "attestation-manifest"},
		}},
		mutate.IndexAddendum{Add: arm, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "arm64", Variant: "v8"}}},
		mutate.IndexAddendum{Add: amd, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}}},
	)
	return index, digestOfImage(t, amd), digestOfImage(t, arm)
}

func digestOfImage(t testing.TB, image v1.Image) Digest {
	t.Helper()
	d, err := image.Digest()
	noError(t, err)
	return Digest(d.String())
}

func TestResolveIndex(t *testing.T) {
	l := newLab(t)
	index, forAMD, forARM := manyPlatforms(t)
	digest := l.pushIndex("app:1", index)
	r := l.resolver(nil)
	for want, manifest := range map[Platform]Digest{amd64: forAMD, arm64: forARM} {
		image, err := r.Resolve(context.Background(), l.ref("app:1"), want)
		noError(t, err)
		if image.Digest != digest || image.Manifest != manifest || len(image.Offered) != 2 {
			t.Errorf("%s: %+v, want %s in %s", want, image, manifest, digest)
		}
	}
	_, err := r.Resolve(context.Background(), l.ref("app:1"), Platform{OS: "linux", Architecture: "riscv64"})
	wantProblem(t, err, ProblemPlatform, "made for linux/arm64/v8, linux/amd64, not for linux/riscv64")
	if h, g, b := l.count("HEAD manifests"), l.count("GET manifests"), l.count("GET blobs"); h != 1 || g != 1 || b != 0 {
		t.Errorf("%d HEADs, %d manifests, %d blobs: want one, one, none", h, g, b)
	}
}

// What a plan asks of a pinned or unchanged image costs one HEAD and nothing that registries count.
func TestResolvingAsksForNoContent(t *testing.T) {
	l := newLab(t)
	digest := l.push("app:1", small(t))
	r := l.resolver(nil)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			image, err := r.Resolve(context.Background(), l.ref("app:1"), amd64)
			if err != nil || image.Digest != digest || image.Manifest != digest {
				t.Errorf("%+v, %v", image, err)
			}
			if d, err := r.Digest(context.Background(), l.ref("app:1")); err != nil || d != digest {
				t.Errorf("%s, %v", d, err)
			}
		})
	}
	all.Wait()
	if h, g, b := l.count("HEAD manifests"), l.count("GET manifests"), l.count("GET blobs"); h != 1 || g != 0 || b != 0 {
		t.Errorf("%d HEADs, %d manifests, %d blobs: want one, none, none", h, g, b)
	}
}

func TestTagAndDigest(t *testing.T) {
	l := newLab(t)
	index, forAMD, _ := manyPlatforms(t)
	digest := l.pushIndex("app:1", index)
	other := l.push("app:2", small(t))
	ctx := context.Background()

	image, err := l.resolver(nil).Resolve(ctx, l.ref("app:1@"+digest.String()), amd64)
	noError(t, err)
	if image.Digest != digest || image.Manifest != forAMD {
		t.Errorf("%+v", image)
	}
	// One platform's digest beside the tag of its index names the same image.
	image, err = l.resolver(nil).Resolve(ctx, l.ref("app:1@"+forAMD.String()), amd64)
	noError(t, err)
	if image.Digest != forAMD || image.Manifest != forAMD {
		t.Errorf("%+v", image)
	}
	_, err = l.resolver(nil).Resolve(ctx, l.ref("app:1@"+other.String()), amd64)
	wantProblem(t, err, ProblemMismatch, digest.String(), other.String(), "tag 1")
	_, err = l.resolver(nil).Digest(ctx, l.ref("app:2@"+digest.String()))
	wantProblem(t, err, ProblemMismatch, digest.String(), other.String())
	_, err = l.resolver(nil).Resolve(ctx, l.ref("app@"+someDigest), amd64)
	wantProblem(t, err, ProblemMissing, someDigest)
	_, err = l.resolver(nil).Resolve(ctx, l.ref("app:3"), amd64)
	wantProblem(t, err, ProblemMissing, l.host, "404", "check repository, tag and digest")
}

// Registries that answer a HEAD without a digest, or not at all, are asked for the manifest itself.
func TestManifestIsReadOnlyWhenItsHeadSaysTooLittle(t *testing.T) {
	for name, spoil := range map[string]func(http.ResponseWriter){
		"no digest": func(w http.ResponseWriter) { w.Header().Set("Content-Type", string(types.OCIManifestSchema1)) },
		"no HEAD":   func(w http.ResponseWriter) { w.WriteHeader(http.StatusMethodNotAllowed) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			digest := l.push("app:1", small(t))
			l.misbehave(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if r.Method == http.MethodHead {
					spoil(w)
					return
				}
				next.ServeHTTP(w, r)
			})
			image, err := l.resolver(nil).Resolve(context.Background(), l.ref("app:1"), amd64)
			noError(t, err)
			if image.Digest != digest || l.count("GET manifests") != 1 {
				t.Errorf("%+v after %d manifests", image, l.count("GET manifests"))
			}
		})
	}
}

// A registry that wants fewer requests is left alone: for as long as it says when that is short, else the answer is an error.
// Never is it asked for more instead.
func TestTooManyRequests(t *testing.T) {
	limited := func(after string, times int) func(http.ResponseWriter, *http.Request, http.Handler) {
		left := times
		return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if !strings.Contains(r.URL.Path, "/manifests/") || left == 0 {
				next.ServeHTTP(w, r)
				return
			}
			left--
			if after != "" {
				w.Header().Set("Retry-After", after)
			}
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}
	t.Run("soon", func(t *testing.T) {
		l := newLab(t)
		l.push("app:1", small(t))
		l.misbehave(limited("1", 1))
		began := time.Now()
		_, err := l.resolver(nil).Resolve(context.Background(), l.ref("app:1"), amd64)
		noError(t, err)
		if waited := time.Since(began); waited < 900*time.Millisecond {
			t.Errorf("it was asked again after %s", waited)
		}
	})
	for name, after := range map[string]string{"late": "3600", "unsaid": "", "a date": time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.push("app:1", small(t))
			l.push("app:2", small(t))
			l.misbehave(limited(after, 100))
			r := l.resolver(nil)
			for range 3 {
				_, err := r.Resolve(context.Background(), l.ref("app:1"), amd64)
				wantProblem(t, err, ProblemLimited, "429 Too Many Requests", "wait a while, or log in")
			}
			if h, g := l.count("HEAD manifests"), l.count("GET manifests"); h != 1 || g != 0 {
				t.Errorf("%d HEADs, %d manifests: want one and none", h, g)
			}
			if after == "" {
				return
			}
			// The registry said until when, for whatever image.
			_, err := r.Resolve(context.Background(), l.ref("app:2"), amd64)
			wantProblem(t, err, ProblemLimited)
			if h := l.count("HEAD manifests"); h != 1 {
				t.Errorf("%d HEADs: it was not left alone", h)
			}
		})
	}
}

func TestRegistryInTrouble(t *testing.T) {
	fail := func(status, times int) func(http.ResponseWriter, *http.Request, http.Handler) {
		return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if strings.Contains(r.URL.Path, "/manifests/") && times > 0 {
				times--
				w.WriteHeader(status)
				return
			}
			next.ServeHTTP(w, r)
		}
	}
	l := newLab(t)
	l.push("app:1", small(t))
	l.misbehave(fail(http.StatusInternalServerError, 2))
	_, err := l.resolver(nil).Resolve(context.Background(), l.ref("app:1"), amd64)
	noError(t, err)
	l.misbehave(fail(http.StatusBadGateway, 100))
	_, err = l.resolver(nil).Resolve(context.Background(), l.ref("app:1"), amd64)
	wantProblem(t, err, ProblemUnreachable, l.host, "502 Bad Gateway", "try again later")
}

func TestRegistryThatHangs(t *testing.T) {
	l := newLab(t)
	l.push("app:1", small(t))
	release := make(chan struct{})
	defer close(release)
	l.misbehave(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	short := func(s *Settings) { s.Patience.Answer = 50 * time.Millisecond }
	_, err := l.resolver(short).Resolve(context.Background(), l.ref("app:1"), amd64)
	wantProblem(t, err, ProblemUnreachable, l.host+" stopped answering")

	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	r := l.resolver(nil)
	_, err = r.Resolve(ctx, l.ref("app:1"), amd64)
	wantProblem(t, err, ProblemCancelled)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v does not tell that it was cancelled", err)
	}
	// Somebody else's question is not answered by that.
	l.misbehave(nil)
	_, err = r.Resolve(context.Background(), l.ref("app:1"), amd64)
	noError(t, err)
}

func TestNoRegistryThere(t *testing.T) {
	l := newLab(t)
	ref, err := ParseReference("127.0.0.1:1/app:1")
	noError(t, err)
	_, err = l.resolver(func(s *Settings) { s.PlainHTTP = []string{"127.0.0.1:1"} }).Resolve(context.Background(), ref, amd64)
	wantProblem(t, err, ProblemUnreachable, "127.0.0.1:1", "refused")
}

func TestForeignArtifactsAreNoImages(t *testing.T) {
	l := newLab(t)
	l.misbehave(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.Contains(r.URL.Path, "/manifests/") {
			w.Header().Set("Content-Type", "application/vnd.docker.distribution.manifest.v1+prettyjws")
			w.Header().Set("Docker-Content-Digest", someDigest)
			return
		}
		next.ServeHTTP(w, r)
	})
	_, err := l.resolver(nil).Resolve(context.Background(), l.ref("app:1"), amd64)
	wantProblem(t, err, ProblemUnsupported, "manifest.v1+prettyjws", "OCI and Docker schema 2")
}
