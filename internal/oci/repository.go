package oci

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// repository is one repository with a login that may pull from it.
type repository struct {
	base   string // "https://host/v2/path"
	client *http.Client
}

func (r *Resolver) repository(ctx context.Context, ref Reference) (*repository, error) {
	return r.repositories.get(ctx, ref.Name(), func() (*repository, error) {
		w, err := r.transport(ref.Registry)
		if err != nil {
			return nil, err
		}
		var options []name.Option
		if w.plain[ref.Registry] {
			options = append(options, name.Insecure)
		}
		registry, err := name.NewRegistry(ref.Registry, options...)
		if err != nil {
			return nil, &Error{Problem: ProblemReference, Words: clip(err.Error())}
		}
		repo := registry.Repo(ref.Repository)
		auth, err := r.keys.of(ctx, ref, repo)
		if err != nil {
			return nil, err
		}
		agent := transport.NewUserAgent(w, cmp.Or(r.settings.UserAgent, "pvrx"))
		carrier, err := transport.NewWithContext(ctx, registry, auth, agent, []string{repo.Scope(transport.PullScope)})
		if err != nil {
			return nil, err
		}
		scheme := "https"
		if w.plain[ref.Registry] {
			scheme = "http"
		}
		return &repository{
			base:   scheme + "://" + registry.RegistryStr() + "/v2/" + ref.Repository,
			client: &http.Client{Transport: carrier, CheckRedirect: checkRedirect},
		}, nil
	})
}

// checkRedirect follows registries to where they keep their blobs, but not into the machine that we run on or to the address
// under which clouds tell machines their secrets.
func checkRedirect(r *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("it redirects without end")
	}
	host := r.URL.Hostname()
	ip := net.ParseIP(host)
	if ip != nil && host != via[0].URL.Hostname() && (ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified()) {
		return fmt.Errorf("it redirects to the local address %s", host)
	}
	return nil
}

// mediaTypes is what we can make use of, indexes first: a HEAD for them answers with the digest that people pin.
func mediaTypes() string {
	accepted := []types.MediaType{types.OCIImageIndex, types.DockerManifestList, types.OCIManifestSchema1, types.DockerManifestSchema2}
	words := make([]string, len(accepted))
	for i, t := range accepted {
		words[i] = string(t)
	}
	return strings.Join(words, ",")
}

func (p *repository) ask(ctx context.Context, method, below string, header http.Header) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, p.base+below, nil)
	if err != nil {
		return nil, err
	}
	r.Header = header
	answer, err := p.client.Do(r)
	if err != nil {
		return nil, err
	}
	if err := transport.CheckError(answer, http.StatusOK); err != nil {
		_ = answer.Body.Close()
		return nil, err
	}
	return answer, nil
}

// head asks what a tag or digest names, without content: registries count manifests that are read, not looked up. complete is
// false when the registry answers without saying it.
func (p *repository) head(ctx context.Context, identifier string) (f found, complete bool, err error) {
	answer, err := p.ask(ctx, http.MethodHead, "/manifests/"+identifier, http.Header{"Accept": {mediaTypes()}})
	if refused := (*transport.Error)(nil); errors.As(err, &refused) && refused.StatusCode == http.StatusMethodNotAllowed {
		return found{}, false, nil
	}
	if err != nil {
		return found{}, false, err
	}
	defer answer.Body.Close()
	digest, unread := ParseDigest(answer.Header.Get("Docker-Content-Digest"))
	media := mediaType(answer)
	return found{digest: digest, media: media}, unread == nil && media != "", nil
}

// maxManifest bounds a manifest or index: registries themselves take no larger ones.
const maxManifest = 4 << 20

// manifest reads a manifest or index. Asked for by digest, it is what the digest names or an error.
func (p *repository) manifest(ctx context.Context, identifier string) (manifest, error) {
	answer, err := p.ask(ctx, http.MethodGet, "/manifests/"+identifier, http.Header{"Accept": {mediaTypes()}})
	if err != nil {
		return manifest{}, err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxManifest+1))
	if err != nil {
		return manifest{}, err
	}
	if len(raw) > maxManifest {
		return manifest{}, &Error{Problem: ProblemUnsupported, Words: "its manifest is larger than 4 MiB"}
	}
	m := manifest{raw: raw, digest: digestOf(raw), media: mediaType(answer)}
	if want, err := ParseDigest(identifier); err == nil && want != m.digest {
		return manifest{}, &damagedError{what: "manifest " + want.String(), found: "its content has the digest " + m.digest.String()}
	}
	return m, nil
}

// blob copies a blob to out, which must be read only after it returned without error: content is known to be right at its end.
func (p *repository) blob(ctx context.Context, want v1.Descriptor, out io.Writer, buffer []byte) error {
	answer, err := p.ask(ctx, http.MethodGet, "/blobs/"+want.Digest.String(), http.Header{"Accept-Encoding": {"identity"}})
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	damaged := func(format string, args ...any) error {
		return &damagedError{what: "blob " + want.Digest.String(), found: fmt.Sprintf(format, args...)}
	}
	if answer.ContentLength >= 0 && answer.ContentLength != want.Size {
		return damaged("it has %d bytes where %d are promised", answer.ContentLength, want.Size)
	}
	sum := sha256.New()
	n, err := copyBuffer(out, io.TeeReader(io.LimitReader(answer.Body, want.Size), sum), buffer)
	if err == nil && n == want.Size {
		// What follows is never written: it would stand in the place of something else.
		var more int
		if more, err = io.ReadFull(answer.Body, buffer[:1]); errors.Is(err, io.EOF) {
			err = nil
		}
		n += int64(more)
	}
	switch {
	case err == nil && n > want.Size:
		return damaged("it goes on after the %d bytes that are promised", want.Size)
	case err != nil && errors.Is(err, io.ErrUnexpectedEOF):
		return damaged("it ends after %d of %d bytes", n, want.Size)
	case err != nil:
		return err
	case n != want.Size:
		return damaged("it has %d bytes where %d are promised", n, want.Size)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want.Digest.Hex {
		return damaged("its content has the digest sha256:%s", got)
	}
	return nil
}

// copyBuffer copies with the caller's buffer and nothing else: no shortcut that would bring its own.
func copyBuffer(out io.Writer, in io.Reader, buffer []byte) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{in}, buffer)
}

// damagedError is content that is not what its digest names.
type damagedError struct{ what, found string }

func (e *damagedError) Error() string { return e.what + " is damaged: " + e.found }

func mediaType(answer *http.Response) types.MediaType {
	media, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
	return types.MediaType(strings.TrimSpace(media))
}

// hostOf returns the host of a failed request, "" when it cannot be told.
func hostOf(err error) string {
	var failed *url.Error
	if !errors.As(err, &failed) {
		return ""
	}
	u, err := url.Parse(failed.URL)
	if err != nil {
		return ""
	}
	return u.Host
}
