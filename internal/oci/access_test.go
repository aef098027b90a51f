package oci

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

const (
	pullUser     = "puller"
	pullPassword = "correct-horse"
)

// guarded lets nobody in without the password, by the way that registries with accounts have (a token bought at a realm) or by
// the plain one.
func guarded(bearer bool) func(http.ResponseWriter, *http.Request, http.Handler) {
	knows := func(r *http.Request) bool {
		user, password, ok := r.BasicAuth()
		return ok && user == pullUser && password == pullPassword
	}
	refuse := func(w http.ResponseWriter, challenge string) {
		w.Header().Set("WWW-Authenticate", challenge)
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, `{"errors":[{"code":"UNAUTHORIZED","message":"wrong password %s"}]}`, pullPassword)
	}
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		switch {
		case !bearer && !knows(r):
			refuse(w, `Basic realm="lab"`)
		case bearer && r.URL.Path == "/token" && knows(r):
			_, _ = io.WriteString(w, `{"token":"ticket"}`)
		case bearer && r.URL.Path == "/token":
			w.WriteHeader(http.StatusUnauthorized)
		case bearer && r.Header.Get("Authorization") != "Bearer ticket":
			refuse(w, fmt.Sprintf(`Bearer realm="http://%s/token",service="lab"`, r.Host))
		default:
			next.ServeHTTP(w, r)
		}
	}
}

func TestCredentials(t *testing.T) {
	for name, bearer := range map[string]bool{"basic": false, "bearer": true} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			digest := l.push("app:1", small(t))
			l.misbehave(guarded(bearer))
			with := func(user, password string) error {
				r := l.resolver(func(s *Settings) {
					s.Credentials = map[string]Credentials{strings.ToUpper(l.host): {Username: user, Password: password}}
				})
				image, err := r.Resolve(context.Background(), l.ref("app:1"), amd64)
				if err != nil {
					return err
				}
				a, err := r.Fetch(context.Background(), image, t.TempDir(), nil)
				if err != nil {
					return err
				}
				if a.Manifest != digest {
					t.Errorf("fetched %s, want %s", a.Manifest, digest)
				}
				return a.Close()
			}
			noError(t, with(pullUser, pullPassword))
			err := with(pullUser, "not-"+pullPassword)
			wantProblem(t, err, ProblemDenied, "401", "give credentials for "+l.host)
			if strings.Contains(err.Error(), "not-"+pullPassword) {
				t.Errorf("%q shows the password", err)
			}
			_, err = l.resolver(nil).Resolve(context.Background(), l.ref("app:1"), amd64)
			wantProblem(t, err, ProblemDenied)
		})
	}
}

// A registry that repeats the password it was given does not get it into an error.
func TestPasswordsAreHidden(t *testing.T) {
	l := newLab(t)
	l.misbehave(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if !strings.Contains(r.URL.Path, "/manifests/") {
			next.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusMethodNotAllowed)
		_, _ = fmt.Fprintf(w, `{"errors":[{"code":"DENIED","message":"%s"}]}`, pullPassword)
	})
	r := l.resolver(func(s *Settings) {
		s.Credentials = map[string]Credentials{l.host: {Username: pullUser, Password: pullPassword}}
	})
	_, err := r.Resolve(context.Background(), l.ref("app:1"), amd64)
	wantProblem(t, err, ProblemUnreachable, "405", "***")
	if strings.Contains(err.Error(), pullPassword) {
		t.Errorf("%q shows the password", err)
	}
}

func TestHalfCredentialsAreRefused(t *testing.T) {
	for _, c := range []Credentials{{Username: "x"}, {Password: "secret-word"}, {}} {
		_, err := NewResolver(Settings{Credentials: map[string]Credentials{"ghcr.io": c}})
		wantProblem(t, err, ProblemSettings, "ghcr.io", "user name or password is missing")
		if strings.Contains(err.Error(), "secret-word") {
			t.Errorf("%q shows the password", err)
		}
	}
}

// dockerConfig makes the Docker configuration of whoever runs this hold what is given.
func dockerConfig(t *testing.T, config map[string]any) {
	t.Helper()
	folder := t.TempDir()
	raw, err := json.Marshal(config)
	noError(t, err)
	noError(t, os.WriteFile(filepath.Join(folder, "config.json"), raw, 0o600))
	t.Setenv("DOCKER_CONFIG", folder)
	t.Setenv("HOME", folder)
	t.Setenv("XDG_RUNTIME_DIR", folder)
	t.Setenv("REGISTRY_AUTH_FILE", "")
}

func TestDockerConfiguration(t *testing.T) {
	l := newLab(t)
	l.push("app:1", small(t))
	l.misbehave(guarded(false))
	use := func(s *Settings) { s.DockerConfig = true }
	auth := base64.StdEncoding.EncodeToString([]byte(pullUser + ":" + pullPassword))

	dockerConfig(t, map[string]any{"auths": map[string]any{l.host: map[string]string{"auth": auth}}})
	_, err := l.resolver(use).Resolve(context.Background(), l.ref("app:1"), amd64)
	noError(t, err)
	_, err = l.resolver(nil).Resolve(context.Background(), l.ref("app:1"), amd64)
	wantProblem(t, err, ProblemDenied)
	// What is given explicitly goes first.
	_, err = l.resolver(func(s *Settings) {
		use(s)
		s.Credentials = map[string]Credentials{l.host: {Username: "other", Password: "other"}}
	}).Resolve(context.Background(), l.ref("app:1"), amd64)
	wantProblem(t, err, ProblemDenied)
}

func TestCredentialHelper(t *testing.T) {
	l := newLab(t)
	l.push("app:1", small(t))
	l.misbehave(guarded(false))
	use := func(s *Settings) { s.DockerConfig = true }
	dockerConfig(t, map[string]any{"credHelpers": map[string]string{l.host: "pvrxlab"}})
	folder := t.TempDir()
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))

	_, err := l.resolver(use).Resolve(context.Background(), l.ref("app:1"), amd64)
	wantProblem(t, err, ProblemSettings, "Docker configuration", "give the credentials of this registry explicitly")

	answer := fmt.Sprintf("#!/bin/sh\ncat >/dev/null\necho '{\"ServerURL\":\"x\",\"Username\":%q,\"Secret\":%q}'\n", pullUser, pullPassword)
	noError(t, os.WriteFile(filepath.Join(folder, "docker-credential-pvrxlab"), []byte(answer), 0o700))
	_, err = l.resolver(use).Resolve(context.Background(), l.ref("app:1"), amd64)
	noError(t, err)
}

// Nothing leaves without TLS unless that was said, not even where others would guess it from the address.
func TestPlainHTTPOnlyWhereNamed(t *testing.T) {
	l := newLab(t)
	l.push("app:1", small(t))
	r := l.resolver(func(s *Settings) {
		s.PlainHTTP = nil
		s.Credentials = map[string]Credentials{l.host: {Username: pullUser, Password: pullPassword}}
	})
	_, err := r.Resolve(context.Background(), l.ref("app:1"), amd64)
	wantProblem(t, err, ProblemUnreachable, l.host, "plain HTTP")
	if n := l.count("GET v2") + l.count("HEAD manifests"); n != 0 {
		t.Errorf("%d requests were sent without TLS", n)
	}
}

// tlsLab is a registry with a certificate of its own authority.
func tlsLab(t *testing.T, handler http.Handler) (host, ca string) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	ca = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	return strings.TrimPrefix(server.URL, "https://"), ca
}

func TestOwnAuthorityOnlyWhereNamed(t *testing.T) {
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	host, ca := tlsLab(t, inner)
	plain := httptest.NewServer(inner)
	defer plain.Close()
	pushed, err := name.ParseReference(strings.TrimPrefix(plain.URL, "http://")+"/app:1", name.Insecure)
	noError(t, err)
	noError(t, remote.Write(pushed, small(t)))
	ref, err := ParseReference(host + "/app:1")
	noError(t, err)

	resolve := func(s Settings) error {
		r, err := NewResolver(s)
		noError(t, err)
		image, err := r.Resolve(context.Background(), ref, amd64)
		if err != nil {
			return err
		}
		a, err := r.Fetch(context.Background(), image, t.TempDir(), nil)
		if err != nil {
			return err
		}
		return a.Close()
	}
	noError(t, resolve(Settings{CACert: map[string]string{host: ca}}))
	wantProblem(t, resolve(Settings{}), ProblemUnreachable, "certificate", "give the CA certificate of registry "+host)
	wantProblem(t, resolve(Settings{CACert: map[string]string{"elsewhere.lan": ca}}), ProblemUnreachable, "certificate")
	wantProblem(t, resolve(Settings{PlainHTTP: []string{host}}), ProblemUnreachable)

	_, err = NewResolver(Settings{CACert: map[string]string{"a.lan": "not PEM"}})
	wantProblem(t, err, ProblemSettings, "a.lan", "no PEM certificate")
}

// Registries keep blobs elsewhere and say so. Credentials do not travel along, and neither into the machine itself.
func TestRedirects(t *testing.T) {
	elsewhere := newLab(t)
	l := newLab(t)
	digest := l.push("app:1", small(t))
	elsewhere.push("app:1", small(t))
	redirect := func(to string) func(http.ResponseWriter, *http.Request, http.Handler) {
		inner := guarded(false)
		return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			inner(w, r, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, "/blobs/") {
					http.Redirect(w, r, to+r.URL.Path+"?X-Amz-Signature=0123456789abcdef", http.StatusTemporaryRedirect)
					return
				}
				next.ServeHTTP(w, r)
			}))
		}
	}
	known := func(plain ...string) func(*Settings) {
		return func(s *Settings) {
			s.PlainHTTP = append(s.PlainHTTP, plain...)
			s.Credentials = map[string]Credentials{l.host: {Username: pullUser, Password: pullPassword}}
		}
	}
	image := Image{Reference: l.ref("app:1"), Digest: digest, Manifest: digest, Platform: amd64}

	// To a name, as registries do. The blobs there are another image's, so that nothing of them is accepted.
	var leaked bool
	elsewhere.misbehave(func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		leaked = leaked || r.Header.Get("Authorization") != ""
		w.WriteHeader(http.StatusNotFound)
	})
	port := elsewhere.host[strings.LastIndexByte(elsewhere.host, ':'):]
	l.misbehave(redirect("http://localhost" + port))
	_, err := l.resolver(known("localhost"+port)).Fetch(context.Background(), image, t.TempDir(), nil)
	wantProblem(t, err, ProblemMissing, "404")
	if leaked || elsewhere.count("GET blobs") == 0 {
		t.Errorf("credentials leaked: %v, after %d requests", leaked, elsewhere.count("GET blobs"))
	}
	if strings.Contains(err.Error(), "X-Amz") {
		t.Errorf("%q shows the signature", err)
	}

	// To where no TLS is, unnamed.
	_, err = l.resolver(known()).Fetch(context.Background(), image, t.TempDir(), nil)
	wantProblem(t, err, ProblemUnreachable, "plain HTTP to localhost"+port+" is not allowed")
	if strings.Contains(err.Error(), "X-Amz") {
		t.Errorf("%q shows the signature", err)
	}

	// To the address where clouds keep their machines' secrets.
	l.misbehave(redirect("http://169.254.169.254"))
	_, err = l.resolver(known("169.254.169.254")).Fetch(context.Background(), image, t.TempDir(), nil)
	wantProblem(t, err, ProblemUnreachable, "local address 169.254.169.254")
}

func TestRetryAfterIsReadInBothForms(t *testing.T) {
	for text, want := range map[string]bool{"0": true, "12": true, "": false, "soon": false, "-1": false, "Wed, 21 Oct 2099 07:28:00 GMT": true} {
		answer := &http.Response{Header: http.Header{"Retry-After": {text}}}
		if _, told := retryAfter(answer, time.Now()); told != want {
			t.Errorf("%q: told %v", text, told)
		}
	}
}

func TestEveryProblemHasAName(t *testing.T) {
	seen := map[string]bool{}
	for p := ProblemReference; p <= ProblemCancelled; p++ {
		if seen[p.String()] || p.String() == "invalid" {
			t.Errorf("problem %d is called %s", p, p)
		}
		seen[p.String()] = true
	}
	if Problem(0).String() != "invalid" || (ProblemCancelled+1).String() != "invalid" {
		t.Error("what is no problem has a name")
	}
}
