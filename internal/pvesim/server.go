package pvesim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Request is one request the server has seen, as tests want to look at it.
type Request struct {
	// N counts all requests from 1, Mutation those that are not GET (0 for a GET).
	N, Mutation int
	Method      string
	// Path is without /api2/json; Template is the route that matched, "" for none.
	Path, Template string
	// Params are query, body and path variables, secrets included.
	Params map[string]string
	// Header is the request's header, for tests of what a client sends.
	Header http.Header
	// User is who asked, token id included; "" when authentication failed.
	User string
	// Status and Reason are the status line; Status 0: no answer was sent.
	Status int
	Reason string
	// UPID is the task the request started, if it answered one.
	UPID string
	// Fault is what befell the request, zero for nothing.
	Fault FaultKind
}

// Mutates tells whether the request could change anything: whatever is not a GET, but for logging
// in.
func (r Request) Mutates() bool {
	return r.Method != http.MethodGet && r.Path != "/access/ticket"
}

// Server answers the API of one cluster.
type Server struct {
	c      *Cluster
	router router
	secret []byte

	// Before and After, when set, are called around every request, outside all locks: a test may
	// change the world there. Set them before the first request.
	Before, After func(Request)

	// Latency is added to every request.
	Latency time.Duration

	mu        sync.Mutex
	faults    []*armed
	struck    int
	requests  []*Request
	mutations int

	tcp *listener
}

// NewServer makes a server over a cluster. It answers through [Server.RoundTrip] and
// [Server.Handler] at once, and over HTTPS after [Server.Start].
func NewServer(c *Cluster) *Server {
	s := &Server{c: c, secret: []byte("pvesim ticket secret")}
	s.routes()
	return s
}

// Cluster is the world behind the server.
func (s *Server) Cluster() *Cluster { return s.c }

// Requests are all requests so far, in the order they arrived.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Request, len(s.requests))
	for i, r := range s.requests {
		out[i] = *r
	}
	return out
}

// Mutations is how many requests so far could have changed something.
func (s *Server) Mutations() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mutations
}

// ResetRequests forgets the requests seen so far; counting starts again.
func (s *Server) ResetRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests, s.mutations = nil, 0
}

// errNoAnswer is how a request ends that the server never answers.
var errNoAnswer = errors.New("connection closed by the server")

// maxBody is how much Proxmox takes in one request that is no upload.
const maxBody = 512 << 10

const apiPrefix = "/api2/json"

// reply is an answer before it becomes bytes.
type reply struct {
	status int
	reason string
	body   []byte
}

// answer handles one request. hangup gives a channel that is closed when the client has given up;
// it is asked for only when there is nothing else left to do for this connection.
func (s *Server) answer(req *http.Request, hangup func() <-chan struct{}) (reply, error) {
	rec := &Request{Method: req.Method, Header: req.Header}
	rec.Path = strings.TrimPrefix(req.URL.Path, apiPrefix)
	k := &call{srv: s, c: s.c, method: req.Method, path: rec.Path}

	rt, vars := s.router.find(req.Method, rec.Path)
	known := strings.HasPrefix(req.URL.Path, apiPrefix+"/")
	if rt == nil || !known {
		rt, vars = nil, map[string]string{}
	} else {
		rec.Template, k.op = rt.op.Path, rt.op
	}
	k.vars = vars
	parseErr := k.readParams(req)
	rec.Params = maps.Clone(k.params)
	if parseErr == nil {
		for n, v := range vars {
			if old, ok := k.params[n]; ok && old != v {
				parseErr = paramError(n, "duplicate parameter (already defined in URI) with conflicting values!")
			}
			k.params[n], rec.Params[n] = v, v
		}
	}

	s.mu.Lock()
	s.requests = append(s.requests, rec)
	rec.N = len(s.requests)
	if rec.Mutates() {
		s.mutations++
		rec.Mutation = s.mutations
	}
	f := s.strike(rec)
	if f != nil {
		rec.Fault = f.Kind
	}
	seen := *rec
	s.mu.Unlock()

	if s.Latency > 0 {
		time.Sleep(s.Latency)
	}
	if s.Before != nil {
		s.Before(seen)
	}
	out, err := s.withFault(f, hangup, func() reply { return s.handle(k, rt, req, parseErr, f) })
	s.mu.Lock()
	rec.User = k.who.full
	if err == nil {
		rec.Status, rec.Reason = out.status, out.reason
		rec.UPID = upidIn(out.body)
	}
	seen = *rec
	s.mu.Unlock()
	if s.After != nil {
		s.After(seen)
	}
	return out, err
}

// upidIn finds the task an answer names.
func upidIn(body []byte) string {
	_, rest, ok := bytes.Cut(body, []byte(`{"data":"UPID:`))
	if !ok {
		return ""
	}
	upid, _, _ := bytes.Cut(rest, []byte(`"`))
	return "UPID:" + string(upid)
}

// withFault lets a fault befall a request around what it does.
func (s *Server) withFault(f *Fault, hangup func() <-chan struct{}, do func() reply) (reply, error) {
	if f == nil {
		return do(), nil
	}
	fixed := reply{status: f.Status, reason: firstLine(f.Text)}
	fixed.body, _ = json.Marshal(map[string]any{"data": nil, "message": f.Text + "\n"})
	switch f.Kind {
	case FaultStatus:
		return fixed, nil
	case FaultStatusAfter:
		do()
		return fixed, nil
	case FaultReset:
		return reply{}, errNoAnswer
	case FaultLoseAnswer:
		do()
		return reply{}, errNoAnswer
	case FaultDelay:
		time.Sleep(f.Delay)
		return do(), nil
	case FaultHang:
		<-hangup()
		return reply{}, errNoAnswer
	case FaultHangAfter:
		do()
		<-hangup()
		return reply{}, errNoAnswer
	case FaultWorld:
		f.World(s.c)
		return do(), nil
	case FaultWorldAfter:
		out := do()
		f.World(s.c)
		return out, nil
	case FaultTaskFail, FaultTaskFailAfter, FaultTaskWarn, FaultTaskLost, FaultTaskLostAfter, FaultTaskKill, FaultTaskNode:
		// the task suffers it, not the request
	}
	return do(), nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// handle runs the request under the cluster's lock and shapes the answer.
func (s *Server) handle(k *call, rt *route, req *http.Request, parseErr error, f *Fault) reply {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.c.settle()
	if f != nil && f.Kind.onTask() {
		k.fault = f
	}
	data, err := s.dispatch(k, rt, req, parseErr)
	if err != nil {
		return errorReply(err)
	}
	env := map[string]any{"data": data}
	if l, ok := data.(listed); ok {
		env["data"], env["total"] = l.data, l.total
	}
	return reply{status: http.StatusOK, reason: "OK", body: mustJSON(env)}
}

// dispatch is Proxmox's order: who asks, what for, may they, on which node, with which parameters.
func (s *Server) dispatch(k *call, rt *route, req *http.Request, parseErr error) (any, error) {
	open := rt != nil && rt.allow.world
	if err := s.authenticate(k, req, open); err != nil {
		return nil, err
	}
	if rt == nil {
		return nil, notImplemented(k.method, k.path)
	}
	if parseErr != nil {
		return nil, parseErr
	}
	if rt.op.NoToken && k.who.token != "" {
		return nil, &apiError{status: http.StatusForbidden, text: fmt.Sprintf("URI '%s' not available with API token, need proper ticket.", req.URL.Path)}
	}
	if err := rt.allow.check(k); err != nil {
		return nil, err
	}
	if n, ok := k.vars["node"]; ok {
		if n == "localhost" {
			k.vars["node"], k.params["node"] = k.c.local, k.c.local
		} else if err := k.c.reach(n); err != nil {
			return nil, err
		}
	}
	if bad := k.op.check(k.params); bad != nil {
		return nil, paramErrors(bad)
	}
	if err := k.checkJSONTypes(); err != nil {
		return nil, err
	}
	return rt.handle(k)
}

// reach checks that a node named in a path answers.
func (c *Cluster) reach(name string) error {
	n := c.nodes[name]
	if n == nil {
		return die("hostname lookup '%s' failed - failed to get address info for: %s: Name or service not known", name, name)
	}
	if !n.online {
		return &apiError{status: 595, text: "No route to host"}
	}
	return nil
}

// RoundTrip answers a request without any network, which makes the server an
// [http.RoundTripper]. A connection that the server would have closed is an error.
//
// A client that gives up gets its context's error at once, while the request goes on as it would
// on a real server.
func (s *Server) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	type outcome struct {
		r   reply
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		r, err := s.answer(req, ctx.Done)
		if req.Body != nil {
			req.Body.Close()
		}
		done <- outcome{r, err}
	}()
	select {
	case o := <-done:
		if o.err != nil {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			return nil, o.err
		}
		return o.r.response(req), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Handler answers through net/http, which cannot send Proxmox's reason phrases: only the JSON body
// has the error text then. A request that gets no answer panics with [http.ErrAbortHandler].
func (s *Server) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r, err := s.answer(req, req.Context().Done)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		maps.Copy(w.Header(), r.header())
		w.WriteHeader(r.status)
		_, _ = w.Write(r.body) // a client that is gone is no concern of the server
	})
}

// Client is an HTTP client whose requests reach the server without any network.
func (s *Server) Client() *http.Client { return &http.Client{Transport: s} }
