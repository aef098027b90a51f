package proxmox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// sent is a request as a scripted server saw it.
type sent struct {
	Method, Path, Query string
	Host                string
	Params              map[string]any
	Header              http.Header
}

func (s sent) String() string { return s.Method + " " + s.Path }

// answer is what a scripted server says: a status line with reason, and a body; or the connection breaks.
type answer struct {
	status string // "200 OK", "500 CT is locked (backup)"
	body   string
	broken error // the connection breaks after the request was delivered
	header http.Header
}

func data(value string) answer { return answer{status: "200 OK", body: `{"data":` + value + `}`} }

// died is Proxmox's answer when something died: the first line in the status line, all of it in the body.
func died(words string) answer {
	first, _, _ := strings.Cut(words, "\n")
	body, err := json.Marshal(map[string]any{"data": nil, "message": words + "\n"})
	if err != nil {
		panic(err)
	}
	return answer{status: "500 " + first, body: string(body)}
}

// script is a server in the same process.
type script struct {
	mu       sync.Mutex
	requests []sent
	respond  func(sent) answer
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	seen := sent{Method: r.Method, Path: strings.TrimPrefix(r.URL.EscapedPath(), "/api2/json"), Query: r.URL.RawQuery, Host: r.URL.Host, Header: r.Header.Clone()}
	if r.Body != nil {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(raw, &seen.Params); err != nil {
			return nil, fmt.Errorf("the body is not a JSON object: %w", err)
		}
	}
	s.mu.Lock()
	s.requests = append(s.requests, seen)
	s.mu.Unlock()
	a := s.respond(seen)
	if a.broken != nil {
		return nil, a.broken
	}
	code := 0
	if _, err := fmt.Sscan(a.status, &code); err != nil {
		return nil, err
	}
	header := a.header
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{
		Status: a.status, StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
		Body: io.NopCloser(strings.NewReader(a.body)), Request: r,
	}, nil
}

// count returns how many requests of a method there were; "" counts all that could change something.
func (s *script) count(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.requests {
		if r.Method == method || method == "" && r.Method != http.MethodGet && r.Path != ticketPath {
			n++
		}
	}
	return n
}

func (s *script) all() []sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]sent(nil), s.requests...)
}

const testToken = "ci@pve!pvrx=11111111-2222-3333-4444-555555555555"

// quick is a pace for tests.
func quick() Pace {
	return Pace{
		Request: 2 * time.Second, PollFirst: time.Millisecond, PollMost: 2 * time.Millisecond,
		LockFirst: time.Millisecond, LockMost: 2 * time.Millisecond, Locked: 200 * time.Millisecond,
		Blind: 300 * time.Millisecond, Find: 150 * time.Millisecond, Grace: 150 * time.Millisecond, Settle: 200 * time.Millisecond,
	}
}

func hostOver(t testing.TB, transport http.RoundTripper, change func(*Settings)) *Host {
	t.Helper()
	s := Settings{Endpoints: []string{"https://pve.test:8006"}, APIToken: testToken, Transport: transport, Pace: quick()}
	if change != nil {
		change(&s)
	}
	h, err := Connect(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// scripted returns a host whose server answers as respond says.
func scripted(t testing.TB, respond func(sent) answer) (*Host, *script) {
	t.Helper()
	s := &script{respond: respond}
	return hostOver(t, s, nil), s
}

var ct = guest.Ref{VMID: 5001, Kind: guest.KindContainer, Node: "pve1"}

func wantOutcome(t testing.TB, err error, want guest.Outcome) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s", want)
	}
	if got := guest.OutcomeOf(err); got != want {
		t.Fatalf("outcome %s, want %s: %v", got, want, err)
	}
}

func wantNoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var errCut = errors.New("connection reset by peer")

// unreached is a transport that never gets a connection, and says so the way the network does.
type unreached struct{ err error }

func (u unreached) RoundTrip(*http.Request) (*http.Response, error) { return nil, u.err }

// A transport that does not tell whether it sent anything is taken to have sent it.
func TestUntoldSendingCountsAsSent(t *testing.T) {
	told := false
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{WroteHeaders: func() { told = true }})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://pve.test/", nil)
	wantNoError(t, err)
	_, err = (&watched{base: unreached{errCut}, clock: &clock{}}).RoundTrip(r)
	if err == nil || !told {
		t.Fatalf("told=%v err=%v", told, err)
	}
}
