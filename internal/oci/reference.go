package oci

import (
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// Reference names an image as people write it: "repo:tag", "repo@digest" or "repo:tag@digest". It is comparable, and its parts
// are complete: the registry is never implied.
type Reference struct {
	// Registry is the registry's host, with its port when it has one: "docker.io", "registry.lan:5000".
	Registry string
	// Repository is the path in the registry: "library/nginx".
	Repository string
	// Tag is the tag, "" for none.
	Tag string
	// Digest is the digest, "" for none.
	Digest Digest
}

const dockerHub = "docker.io"

var (
	hostPattern      = regexp.MustCompile(`^(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*|\[[0-9a-f:]+\])(?::[0-9]{1,5})?$`)
	componentPattern = regexp.MustCompile(`^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$`)
	tagPattern       = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
)

// ParseReference reads a reference. A name without a registry is Docker Hub's, and there one without a namespace is in
// "library", as Docker reads it. A tag or a digest must be written: an implied "latest" would move unseen.
func ParseReference(text string) (Reference, error) {
	bad := func(words, remedy string) error {
		return &Error{Op: "read image reference \"" + clip(text) + "\"", Problem: ProblemReference, Words: words, Remedy: remedy}
	}
	if strings.Contains(text, "://") {
		return Reference{}, bad("it is a URL", "write it as registry/repository:tag, without a scheme")
	}
	var ref Reference
	rest, digest, pinned := strings.Cut(text, "@")
	if pinned {
		var err error
		if ref.Digest, err = ParseDigest(digest); err != nil {
			return Reference{}, bad(err.Error(), "")
		}
	}
	if colon := strings.LastIndexByte(rest, ':'); colon > strings.LastIndexByte(rest, '/') {
		rest, ref.Tag = rest[:colon], rest[colon+1:]
		if !tagPattern.MatchString(ref.Tag) {
			return Reference{}, bad("\""+clip(ref.Tag)+"\" is not a tag", "a tag has at most 128 letters, digits, dots, dashes and underscores")
		}
	}
	ref.Registry, ref.Repository = dockerHub, rest
	if host, path, deeper := strings.Cut(rest, "/"); deeper && (host == "localhost" || strings.ContainsAny(host, ".:")) {
		ref.Registry, ref.Repository = canonicalRegistry(host), path
	}
	if !hostPattern.MatchString(ref.Registry) {
		return Reference{}, bad("\""+clip(ref.Registry)+"\" is not the host of a registry", "")
	}
	if ref.Registry == dockerHub && !strings.Contains(ref.Repository, "/") {
		ref.Repository = "library/" + ref.Repository
	}
	if len(ref.Repository) > 255 {
		return Reference{}, bad("the name of the repository is longer than 255 characters", "")
	}
	for component := range strings.SplitSeq(ref.Repository, "/") {
		if !componentPattern.MatchString(component) {
			return Reference{}, bad("\""+clip(strings.TrimPrefix(ref.Repository, "library/"))+"\" is not the name of a repository", "names are lower-case letters and digits, separated by dots, dashes, underscores and slashes")
		}
	}
	if ref.Tag == "" && ref.Digest == "" {
		return Reference{}, bad("it has neither a tag nor a digest", "write the tag that is meant, for example "+clip(text)+":latest")
	}
	return ref, nil
}

// canonicalRegistry returns the one spelling of a registry's host by which everything about it is kept.
func canonicalRegistry(host string) string {
	host = strings.ToLower(strings.TrimSpace(host))
	if host == name.DefaultRegistry || host == "registry-1.docker.io" {
		return dockerHub
	}
	return host
}

// Name returns registry and repository: what stays the same when an image is updated.
func (r Reference) Name() string { return r.Registry + "/" + r.Repository }

// String returns the whole reference, nothing implied. ParseReference reads it back to the same value.
func (r Reference) String() string {
	text := r.Name()
	if r.Tag != "" {
		text += ":" + r.Tag
	}
	if r.Digest != "" {
		text += "@" + r.Digest.String()
	}
	return text
}

// At returns the reference of the same repository by digest alone.
func (r Reference) At(d Digest) Reference {
	return Reference{Registry: r.Registry, Repository: r.Repository, Digest: d}
}
