package pvesim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
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
	default:
		return do(), nil
	}
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

func mustJSON(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("pvesim: answer that is no JSON: %v", err))
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

func errorReply(err error) reply {
	e := asAPIError(err)
	out := reply{status: e.status, reason: firstLine(e.text)}
	if e.bare {
		return out
	}
	message := e.text
	if !e.exact && !strings.HasSuffix(message, "\n") {
		message += "\n"
	}
	env := map[string]any{"data": nil, "message": message}
	if len(e.fields) > 0 {
		env["errors"] = e.fields
	}
	out.body = mustJSON(env)
	return out
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

// readParams collects the parameters of query and body.
func (k *call) readParams(req *http.Request) error {
	k.params, k.lists, k.boolParams = map[string]string{}, map[string][]string{}, map[string]bool{}
	query, err := parseForm(req.URL.RawQuery)
	if err != nil {
		return &apiError{status: http.StatusBadRequest, text: "bad request", bare: true}
	}
	k.addForm(query)
	typ, _, _ := strings.Cut(req.Header.Get("Content-Type"), ";")
	if typ == "multipart/form-data" && strings.HasSuffix(k.path, "/upload") {
		return k.readUpload(req)
	}
	var body []byte
	if req.Body != nil {
		if body, err = io.ReadAll(io.LimitReader(req.Body, maxBody+1)); err != nil {
			return &apiError{status: http.StatusBadRequest, text: "bad request", bare: true}
		}
	}
	if len(body) == 0 {
		return nil
	}
	if req.Method == http.MethodGet || req.Method == http.MethodDelete {
		return &apiError{status: http.StatusNotImplemented, text: fmt.Sprintf("Unexpected content for method '%s'", req.Method)}
	}
	if len(body) > maxBody {
		return &apiError{status: http.StatusNotImplemented, text: "for data too large"}
	}
	switch typ {
	case "application/json":
		return k.addJSON(body)
	case "application/x-www-form-urlencoded", "":
		form, err := parseForm(string(body))
		if err != nil {
			return &apiError{status: http.StatusBadRequest, text: "bad request", bare: true}
		}
		k.addForm(form)
		return nil
	default:
		return &apiError{status: http.StatusNotImplemented, text: fmt.Sprintf("upload Content-Type '%s' not implemented", typ)}
	}
}

type formPair struct{ key, value string }

func (k *call) addForm(form []formPair) {
	for _, p := range form {
		k.lists[p.key] = append(k.lists[p.key], p.value)
	}
	for key, vals := range k.lists {
		k.params[key] = strings.Join(vals, "\x00")
	}
}

func (k *call) addJSON(body []byte) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var m map[string]any
	if err := dec.Decode(&m); err != nil {
		return &apiError{status: http.StatusBadRequest, text: "bad request", bare: true}
	}
	for key, v := range m {
		switch v := v.(type) {
		case string:
			k.params[key] = v
		case json.Number:
			k.params[key] = v.String()
		case bool:
			k.params[key] = "0"
			if v {
				k.params[key] = "1"
			}
			k.boolParams[key] = true
		case []any:
			for _, e := range v {
				k.lists[key] = append(k.lists[key], fmt.Sprint(e))
			}
			k.params[key] = strings.Join(k.lists[key], "\x00")
		default:
			return paramError(key, "got unexpected value")
		}
	}
	return nil
}

// checkJSONTypes refuses a JSON boolean where the schema wants anything but a boolean.
func (k *call) checkJSONTypes() error {
	for name := range k.boolParams {
		if p := k.op.arg(name); p != nil && p.Type != "boolean" {
			return paramError(name, fmt.Sprintf("type check ('%s') failed - got '%s'", p.Type, k.params[name]))
		}
	}
	return nil
}

// response makes the reply an HTTP answer whose status line carries Proxmox's words.
func (r reply) response(req *http.Request) *http.Response {
	h := http.Header{}
	h.Set("Server", "pve-api-daemon/3.0")
	h.Set("Cache-Control", "max-age=0")
	if len(r.body) > 0 {
		h.Set("Content-Type", "application/json;charset=UTF-8")
	}
	return &http.Response{
		Status: strconv.Itoa(r.status) + " " + statusText(r.reason), StatusCode: r.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(bytes.NewReader(r.body)), ContentLength: int64(len(r.body)),
		Request: req,
	}
}

// statusText is a reason phrase that can stand in a status line.
func statusText(s string) string {
	if i := strings.IndexAny(s, "\r\n"); i >= 0 {
		s = s[:i]
	}
	return s
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
		resp := r.response(req)
		maps.Copy(w.Header(), resp.Header)
		w.WriteHeader(r.status)
		w.Write(r.body)
	})
}

// Client is an HTTP client whose requests reach the server without any network.
func (s *Server) Client() *http.Client { return &http.Client{Transport: s} }
