package oci

import (
	"sync"
	"time"
)

// Settings say how registries are reached. Registries are named by host, as in references ("docker.io", "registry.lan:5000").
type Settings struct {
	// Credentials holds what to log in with, by registry. It goes before the Docker configuration.
	Credentials map[string]Credentials
	// DockerConfig lets the Docker (or Podman) configuration of whoever runs this, and its credential helpers, supply
	// credentials for registries that Credentials does not name.
	DockerConfig bool
	// PlainHTTP names the hosts that are spoken to without TLS. Nothing else ever is, whatever its address.
	PlainHTTP []string
	// CACert holds PEM certificates to trust beside the system's, by registry.
	CACert map[string]string
	// UserAgent names the program to registries; "" leaves a default.
	UserAgent string
	// Patience says how long to wait for what.
	Patience Patience
}

// Credentials are what a registry asks for: a user name, and a password or an access token in its place.
type Credentials struct{ Username, Password string }

// String returns the user's name alone, so that no message can show the rest.
func (c Credentials) String() string { return c.Username }

// GoString is String, for the same reason.
func (c Credentials) GoString() string { return c.Username }

// Patience says how long the resolver waits. A zero field stands for its default.
type Patience struct {
	Answer     time.Duration // for the head of an answer; default 30 s
	Stall      time.Duration // for the next bytes of an answer; default 60 s
	RetryAfter time.Duration // what a registry may ask for with Retry-After, summed up over one request; default 60 s
	Pause      time.Duration // before a request that failed on the way is sent again, growing; default 400 ms
}

func (p Patience) withDefaults() Patience {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&p.Answer, 30 * time.Second}, {&p.Stall, time.Minute}, {&p.RetryAfter, time.Minute}, {&p.Pause, 400 * time.Millisecond},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	return p
}

// Resolver answers questions about images, each only once: what a registry said of a reference, a refusal too, holds for the
// resolver's life, so one run of a plan or apply shares one resolver. It is safe for concurrent use.
type Resolver struct {
	settings Settings
	keys     keys
	limits   *limits

	mu           sync.Mutex
	transports   map[string]*wire
	repositories memo[string, *repository]
	found        memo[Reference, found]
	manifests    memo[Reference, manifest]
	configs      memo[Reference, configBlob]
}

// NewResolver checks the settings and returns a resolver. It sends nothing.
func NewResolver(s Settings) (*Resolver, error) {
	s.Patience = s.Patience.withDefaults()
	r := &Resolver{settings: s, keys: newKeys(s), limits: &limits{until: map[string]time.Time{}}, transports: map[string]*wire{}}
	r.found.refusals = true
	for registry, c := range s.Credentials {
		if c.Username == "" || c.Password == "" {
			return nil, &Error{
				Op: "log in to registry " + clip(registry), Problem: ProblemSettings,
				Words: "user name or password is missing", Remedy: "give both; a registry that takes a token wants it as the password",
			}
		}
	}
	for registry := range s.CACert {
		if _, err := r.transport(canonicalRegistry(registry)); err != nil {
			return nil, err
		}
	}
	return r, nil
}
