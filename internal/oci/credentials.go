package oci

import (
	"context"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// keys finds the credentials of a registry.
type keys struct {
	given  map[string]Credentials
	docker bool
}

func newKeys(s Settings) keys {
	k := keys{given: map[string]Credentials{}, docker: s.DockerConfig}
	for registry, c := range s.Credentials {
		k.given[canonicalRegistry(registry)] = c
	}
	return k
}

// of returns what to log in with at ref's registry, and where it is from. A credential helper is a program of its own and may
// never end, so it is waited for only as long as ctx lives.
func (k keys) of(ctx context.Context, ref Reference, repo name.Repository) (authn.Authenticator, error) {
	if c, ok := k.given[ref.Registry]; ok {
		return authn.FromConfig(authn.AuthConfig{Username: c.Username, Password: c.Password}), nil
	}
	if !k.docker {
		return authn.Anonymous, nil
	}
	type answer struct {
		auth authn.Authenticator
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		auth, err := authn.Resolve(ctx, authn.DefaultKeychain, repo)
		answered <- answer{auth, err}
	}()
	select {
	case a := <-answered:
		if a.err != nil {
			return nil, &Error{
				Problem: ProblemSettings,
				Words:   "the Docker configuration gives no answer about " + ref.Registry + ": " + clip(a.err.Error()),
				Remedy:  "repair it, or give the credentials of this registry explicitly",
			}
		}
		return a.auth, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// hide removes given secrets from text that came from elsewhere.
func (k keys) hide(text string) string {
	for _, c := range k.given {
		if len(c.Password) >= 4 {
			text = strings.ReplaceAll(text, c.Password, "***")
		}
	}
	return text
}
