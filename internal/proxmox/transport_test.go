package proxmox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// node is a real server on this machine that counts what reaches it.
type node struct {
	*httptest.Server
	reads, changes atomic.Int32
}

func newNode(t *testing.T, status int) *node {
	t.Helper()
	n := &node{}
	n.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			n.reads.Add(1)
		} else {
			n.changes.Add(1)
		}
		if status == 0 { // break the connection after the request was read
			if _, err := io.ReadAll(r.Body); err != nil {
				t.Error(err)
			}
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(status)
		if _, err := io.WriteString(w, `{"data":{"digest":"d"}}`); err != nil {
			t.Log(err)
		}
	}))
	n.Config.ErrorLog = log.New(io.Discard, "", 0)
	n.StartTLS()
	t.Cleanup(n.Close)
	return n
}

func (n *node) ca() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: n.Certificate().Raw}))
}

// closedPort returns an address on which nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	wantNoError(t, err)
	defer l.Close()
	return "https://" + l.Addr().String()
}

func realHost(t *testing.T, change func(*Settings), endpoints ...string) *Host {
	t.Helper()
	return hostOver(t, nil, func(s *Settings) {
		s.Endpoints, s.Insecure = endpoints, true
		if change != nil {
			change(s)
		}
	})
}

// What never left may go to another node; what may have arrived is not repeated, unless it only reads.
func TestFailover(t *testing.T) {
	ctx := context.Background()
	set := func(h *Host) error { return h.SetConfig(ctx, ct, map[string]string{"cores": "1"}, nil, "") }
	read := func(h *Host) error { _, err := h.Config(ctx, ct); return err }

	t.Run("first node does not listen", func(t *testing.T) {
		second := newNode(t, 200)
		h := realHost(t, nil, closedPort(t), second.URL)
		wantNoError(t, set(h))
		wantNoError(t, read(h))
		if second.changes.Load() != 1 {
			t.Errorf("%d changes", second.changes.Load())
		}
	})
	for _, status := range []int{0, 502, 503, 504, 595, 596} {
		t.Run(http.StatusText(status)+" from the first node", func(t *testing.T) {
			first, second := newNode(t, status), newNode(t, 200)
			h := realHost(t, nil, first.URL, second.URL)
			wantOutcome(t, set(h), guest.OutcomeUnknown)
			if first.changes.Load()+second.changes.Load() != 1 {
				t.Errorf("the change arrived %d and %d times", first.changes.Load(), second.changes.Load())
			}
			h = realHost(t, nil, first.URL, second.URL)
			wantNoError(t, read(h))
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		h := realHost(t, nil, closedPort(t), closedPort(t))
		wantOutcome(t, set(h), guest.OutcomeUnreachable)
		wantOutcome(t, read(h), guest.OutcomeUnreachable)
	})
	t.Run("one node that cuts every connection", func(t *testing.T) {
		only := newNode(t, 0)
		h := realHost(t, nil, only.URL)
		wantOutcome(t, set(h), guest.OutcomeUnknown)
		if only.changes.Load() != 1 {
			t.Errorf("the change arrived %d times", only.changes.Load())
		}
	})
}

func TestTrust(t *testing.T) {
	n := newNode(t, 200)
	sum := sha256.Sum256(n.Certificate().Raw)
	pin := colons(sum[:])
	for _, c := range []struct {
		name   string
		change func(*Settings)
		ok     bool
	}{
		{"nothing said: the certificate is checked", func(s *Settings) {}, false},
		{"insecure", func(s *Settings) { s.Insecure = true }, true},
		{"own authority", func(s *Settings) { s.CACert = n.ca() }, true},
		{"fingerprint", func(s *Settings) { s.Fingerprint = pin }, true},
		{"fingerprint without colons, lower case", func(s *Settings) { s.Fingerprint = hex.EncodeToString(sum[:]) }, true},
		{"another fingerprint", func(s *Settings) { s.Fingerprint = strings.Repeat("AB", 32) }, false},
		{"another fingerprint is not outvoted", func(s *Settings) { s.Fingerprint, s.Insecure, s.CACert = strings.Repeat("AB", 32), true, n.ca() }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := realHost(t, func(s *Settings) { s.Insecure = false; c.change(s) }, n.URL)
			before := n.changes.Load()
			err := h.SetConfig(context.Background(), ct, map[string]string{"cores": "1"}, nil, "")
			if c.ok {
				wantNoError(t, err)
				return
			}
			wantOutcome(t, err, guest.OutcomeUnreachable)
			if n.changes.Load() != before {
				t.Error("the request was sent to a server that is not trusted")
			}
		})
	}
}

// A server that takes a request and never answers: of a change nothing is known, and it is not sent again.
func TestSilence(t *testing.T) {
	release := make(chan struct{})
	var arrived atomic.Int32
	s := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived.Add(1)
		<-release
	}))
	defer s.Close()
	defer close(release)
	h := realHost(t, func(s *Settings) { s.Pace.Request = time.Second }, s.URL)
	wantOutcome(t, h.SetConfig(context.Background(), ct, map[string]string{"cores": "1"}, nil, ""), guest.OutcomeUnknown)
	_, err := h.Config(context.Background(), ct)
	wantOutcome(t, err, guest.OutcomeUnreachable)
	if arrived.Load() != 2 {
		t.Errorf("%d requests arrived", arrived.Load())
	}
}

// A cancellation does not tear down a change that is under way: its answer is still taken. A read is given up at once.
func TestCancellationDoesNotTearDownAChange(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	h := hostOver(t, during(func(r *http.Request) error {
		cancel()
		return r.Context().Err()
	}), nil)
	wantNoError(t, h.SetConfig(ctx, ct, map[string]string{"cores": "1"}, nil, ""))
	ctx, cancel = context.WithCancel(context.Background())
	defer cancel()
	_, err := h.Config(ctx, ct)
	wantOutcome(t, err, guest.OutcomeUnreachable)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v does not say that it was cancelled", err)
	}
}

// during is a transport that answers, unless what it is told to do meanwhile fails.
type during func(*http.Request) error

func (d during) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := d(r); err != nil {
		return nil, err
	}
	return &http.Response{Status: "200 OK", StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"data":null}`)), Request: r}, nil
}
