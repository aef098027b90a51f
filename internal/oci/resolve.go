package oci

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Image is a reference resolved for one platform. It holds what a plan records; Fetch needs nothing else.
type Image struct {
	// Reference is what was asked for.
	Reference Reference
	// Digest is what the tag names: an index of several platforms, or a manifest.
	Digest Digest
	// Manifest is the manifest of the platform; the same as Digest when there is no index.
	Manifest Digest
	// Platform is the wanted platform. Without an index, whether the image is made for it shows when its configuration is read.
	Platform Platform
	// Offered lists the platforms of the index, in its order; nil without one.
	Offered []Platform
}

// found is what a tag or digest names.
type found struct {
	digest Digest
	media  types.MediaType
}

// manifest is a manifest or index as the registry keeps it.
type manifest struct {
	raw    []byte
	digest Digest
	media  types.MediaType
}

// Digest returns the digest that a reference names now: the index's for an image of several platforms. It costs one HEAD, which
// registries do not count against their limits. When tag and digest are both given and disagree, it is an error that names both.
func (r *Resolver) Digest(ctx context.Context, ref Reference) (Digest, error) {
	f, err := r.find(ctx, "resolve "+ref.String(), ref)
	return f.digest, err
}

// Resolve returns the image that a reference names for a platform. An index is read once; no blob is ever asked for.
func (r *Resolver) Resolve(ctx context.Context, ref Reference, want Platform) (Image, error) {
	op := "resolve " + ref.String() + " for " + want.String()
	f, err := r.find(ctx, op, ref)
	if err != nil {
		return Image{}, err
	}
	image := Image{Reference: ref, Digest: f.digest, Manifest: f.digest, Platform: want}
	switch {
	case isImage(f.media):
		return image, nil
	case !f.media.IsIndex():
		return Image{}, &Error{
			Op: op, Problem: ProblemUnsupported, Words: fmt.Sprintf("it is no image but \"%s\"", clip(string(f.media))),
			Remedy: "images of the formats OCI and Docker schema 2 can be used",
		}
	}
	entries, offered, err := r.index(ctx, op, ref.At(f.digest))
	if err != nil {
		return Image{}, err
	}
	at := want.choose(offered)
	if at < 0 {
		return Image{}, wrongPlatform(op, want, offered)
	}
	image.Offered, image.Manifest = offered, Digest(entries[at].Digest.String())
	return image, nil
}

// find asks the registry what a reference names.
func (r *Resolver) find(ctx context.Context, op string, ref Reference) (found, error) {
	f, err := r.found.get(ctx, ref, func() (found, error) { return r.ask(ctx, op, ref) })
	return f, r.translate(ctx, op, ref, err)
}

func (r *Resolver) ask(ctx context.Context, op string, ref Reference) (found, error) {
	repo, err := r.repository(ctx, ref)
	if err != nil {
		return found{}, err
	}
	identifier := ref.Tag
	if identifier == "" {
		identifier = ref.Digest.String()
	}
	f, complete, err := repo.head(ctx, identifier)
	if err == nil && !complete {
		var m manifest
		m, err = repo.manifest(ctx, identifier)
		f = found{digest: m.digest, media: m.media}
	}
	if err != nil {
		return found{}, err
	}
	switch {
	case ref.Digest == "" || ref.Digest == f.digest:
		return f, nil
	case ref.Tag == "":
		return found{}, &damagedError{what: "manifest " + ref.Digest.String(), found: "the registry answers with " + f.digest.String()}
	}
	return r.agree(ctx, op, ref, f)
}

// agree decides about a tag whose digest is not the one beside it. People also pin one platform's manifest beside the tag of its
// index; then both name the same image.
func (r *Resolver) agree(ctx context.Context, op string, ref Reference, tag found) (found, error) {
	if tag.media.IsIndex() {
		entries, _, err := r.index(ctx, op, ref.At(tag.digest))
		if err != nil {
			return found{}, err
		}
		for _, e := range entries {
			if e.Digest.String() == ref.Digest.String() {
				return found{digest: ref.Digest, media: e.MediaType}, nil
			}
		}
	}
	return found{}, &Error{
		Op: op, Problem: ProblemMismatch,
		Words:  fmt.Sprintf("tag %s now names %s, not %s", ref.Tag, tag.digest, ref.Digest),
		Remedy: "write the digest that is meant, or leave out the tag",
	}
}

// index returns the images of an index that a platform can be told of, and their platforms. Attestations are no images.
func (r *Resolver) index(ctx context.Context, op string, ref Reference) ([]v1.Descriptor, []Platform, error) {
	m, err := r.manifest(ctx, op, ref)
	if err != nil {
		return nil, nil, err
	}
	index, err := v1.ParseIndexManifest(bytes.NewReader(m.raw))
	if err != nil {
		return nil, nil, &Error{Op: op, Problem: ProblemUnsupported, Words: "its index cannot be read: " + clip(err.Error())}
	}
	var entries []v1.Descriptor
	var offered []Platform
	for _, e := range index.Manifests {
		p, ok := platformOf(e.Platform)
		_, unread := ParseDigest(e.Digest.String())
		if !ok || unread != nil || !isImage(e.MediaType) || attests(e) {
			continue
		}
		entries, offered = append(entries, e), append(offered, p)
	}
	return entries, offered, nil
}

func attests(e v1.Descriptor) bool {
	return e.Annotations["vnd.docker.reference.type"] != "" || e.Platform.OS == "unknown"
}

func isImage(media types.MediaType) bool {
	return media == types.OCIManifestSchema1 || media == types.DockerManifestSchema2
}

// manifest reads a manifest or index by digest, once.
func (r *Resolver) manifest(ctx context.Context, op string, ref Reference) (manifest, error) {
	m, err := r.manifests.get(ctx, ref, func() (manifest, error) {
		repo, err := r.repository(ctx, ref)
		if err != nil {
			return manifest{}, err
		}
		var m manifest
		err = twice(ctx, func() error {
			m, err = repo.manifest(ctx, ref.Digest.String())
			return err
		})
		return m, err
	})
	return m, r.translate(ctx, op, ref, err)
}

func wrongPlatform(op string, want Platform, offered []Platform) *Error {
	words := "it offers no platform that can be told"
	var names []string
	for _, p := range offered {
		if name := p.String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		words = "it is made for " + shorten(strings.Join(names, ", "), 300) + ", not for " + want.String()
	}
	return &Error{Op: op, Problem: ProblemPlatform, Words: words, Remedy: "choose another image, or a node of another architecture"}
}
