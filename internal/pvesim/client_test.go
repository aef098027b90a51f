package pvesim

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// client talks to a server the way a real client does, without a network unless it is told of one.
type client struct {
	t     *testing.T
	srv   *Server
	http  *http.Client
	base  string
	token string
}

func newClient(t *testing.T, c *Cluster, token string) *client {
	srv := NewServer(c)
	return &client{t: t, srv: srv, http: srv.Client(), base: "https://sim", token: token}
}

// result is one answer.
type result struct {
	status  int
	reason  string
	data    json.RawMessage
	message string
	errors  map[string]string
	body    string
}

func (r result) String() string { return r.reason }

func (c *client) request(method, path string, params ...string) *http.Request {
	c.t.Helper()
	form := url.Values{}
	for _, p := range params {
		k, v, _ := strings.Cut(p, "=")
		form.Add(k, v)
	}
	target, body := c.base+apiPrefix+path, io.Reader(nil)
	if method == http.MethodGet || method == http.MethodDelete {
		if len(form) > 0 {
			target += "?" + form.Encode()
		}
	} else {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, target, body)
	if err != nil {
		c.t.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "PVEAPIToken="+c.token)
	}
	return req
}

func (c *client) try(method, path string, params ...string) (result, error) {
	c.t.Helper()
	resp, err := c.http.Do(c.request(method, path, params...))
	if err != nil {
		return result{}, err
	}
	return read(c.t, resp), nil
}

func read(t *testing.T, resp *http.Response) result {
	t.Helper()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, reason, _ := strings.Cut(resp.Status, " ")
	r := result{status: resp.StatusCode, reason: reason, body: string(body)}
	var env struct {
		Data    json.RawMessage
		Message string
		Errors  map[string]string
	}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &env); err != nil {
			t.Fatalf("body %q: %v", body, err)
		}
	}
	r.data, r.message, r.errors = env.Data, env.Message, env.Errors
	return r
}

func (c *client) do(method, path string, params ...string) result {
	c.t.Helper()
	r, err := c.try(method, path, params...)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	return r
}

// ok is do for a call that must succeed; it gives the data.
func (c *client) ok(method, path string, params ...string) json.RawMessage {
	c.t.Helper()
	r := c.do(method, path, params...)
	if r.status != http.StatusOK {
		c.t.Fatalf("%s %s %v: %d %s %v", method, path, params, r.status, r.reason, r.errors)
	}
	return r.data
}

// refused is do for a call that must answer this status and text.
func (c *client) refused(status int, text, method, path string, params ...string) result {
	c.t.Helper()
	r := c.do(method, path, params...)
	if r.status != status || r.reason != text {
		c.t.Errorf("%s %s %v: got %d %q %v, want %d %q", method, path, params, r.status, r.reason, r.errors, status, text)
	}
	return r
}

// task runs a call that starts a task and gives how the task ended.
func (c *client) task(method, path string, params ...string) string {
	c.t.Helper()
	var upid string
	if err := json.Unmarshal(c.ok(method, path, params...), &upid); err != nil {
		c.t.Fatal(err)
	}
	return c.exit(upid)
}

func (c *client) exit(upid string) string {
	c.t.Helper()
	node := strings.Split(upid, ":")[1]
	var st struct{ Status, Exitstatus string }
	if err := json.Unmarshal(c.ok("GET", "/nodes/"+node+"/tasks/"+url.PathEscape(upid)+"/status"), &st); err != nil {
		c.t.Fatal(err)
	}
	if st.Status != "stopped" {
		return st.Status
	}
	return st.Exitstatus
}

// ends is task for one that must end this way.
func (c *client) ends(exit, method, path string, params ...string) {
	c.t.Helper()
	if got := c.task(method, path, params...); got != exit {
		c.t.Errorf("%s %s %v: task ended %q, want %q", method, path, params, got, exit)
	}
}

func (c *client) config(vmid string, params ...string) map[string]any {
	c.t.Helper()
	var m map[string]any
	if err := json.Unmarshal(c.ok("GET", "/nodes/pve1/lxc/"+vmid+"/config", params...), &m); err != nil {
		c.t.Fatal(err)
	}
	return m
}

func demoClient(t *testing.T) (*client, *Demo) {
	d := NewDemo()
	return newClient(t, d.Cluster, d.RootToken), d
}

const web = "/nodes/pve1/lxc/5001"
