package pvesim

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

// httpsClient is a client over a real connection that trusts the server's own certificate.
func httpsClient(t *testing.T, c *client) *client {
	t.Helper()
	endpoint, err := c.srv.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.srv.Close)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(c.srv.CertificatePEM()) {
		t.Fatal("the certificate is no PEM")
	}
	n := *c
	n.base = endpoint
	n.http = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	t.Cleanup(n.http.CloseIdleConnections)
	return &n
}

// The error text stands in the status line and in the body (pve-recorded, section 6).
func TestHTTPSCarriesReasonPhrase(t *testing.T) {
	c, d := demoClient(t)
	c = httpsClient(t, c)
	d.Lock(5001, "backup")
	r := c.refused(500, "CT is locked (backup)", "PUT", web+"/config", "memory=300")
	if r.message != "CT is locked (backup)\n" || string(r.data) != "null" {
		t.Errorf("body: data %s, message %q", r.data, r.message)
	}
	// the connection is still good for another request
	c.ok("GET", web+"/config")
}

func TestCallErrors(t *testing.T) {
	c, d := demoClient(t)
	for _, tc := range []struct {
		name         string
		status       int
		reason       string
		method, path string
		params       []string
		field, text  string
	}{
		{name: "unknown path", status: 501, reason: "Method 'GET /nosuch' not implemented", method: "GET", path: "/nosuch"},
		{name: "unknown method", status: 501, reason: "Method 'POST /version' not implemented", method: "POST", path: "/version"},
		{name: "unknown node", status: 500, reason: "hostname lookup 'nonode' failed - failed to get address info for: nonode: Name or service not known", method: "GET", path: "/nodes/nonode/lxc"},
		{name: "unknown guest", status: 500, reason: "Configuration file 'nodes/pve1/lxc/999.conf' does not exist", method: "GET", path: "/nodes/pve1/lxc/999/config"},
		{name: "guest on another node", status: 500, reason: "Configuration file 'nodes/pve2/lxc/5001.conf' does not exist", method: "GET", path: "/nodes/pve2/lxc/5001/config"},
		{name: "unknown parameter", status: 400, reason: "Parameter verification failed.", method: "PUT", path: web + "/config", params: []string{"bogus=1"}, field: "bogus", text: textUnknownKey},
		{name: "missing parameter", status: 400, reason: "Parameter verification failed.", method: "POST", path: "/nodes/pve1/lxc", params: []string{"vmid=200"}, field: "ostemplate", text: textMissing},
		{name: "another value than the path's", status: 400, reason: "Parameter verification failed.", method: "GET", path: web + "/config", params: []string{"vmid=5002"}, field: "vmid", text: "duplicate parameter (already defined in URI) with conflicting values!"},
		{name: "no options", status: 500, reason: "no options specified", method: "PUT", path: web + "/config"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := c.refused(tc.status, tc.reason, tc.method, tc.path, tc.params...)
			if tc.field != "" && r.errors[tc.field] != tc.text {
				t.Errorf("errors %v, want %s: %s", r.errors, tc.field, tc.text)
			}
		})
	}
	d.SetNodeOnline("pve2", false)
	c.refused(595, "No route to host", "GET", "/nodes/pve2/lxc")
}

// A body on DELETE is refused (pve-facts §4.1), JSON booleans only fit booleans (§8.7).
func TestBodies(t *testing.T) {
	c, _ := demoClient(t)
	for _, tc := range []struct {
		method, path, typ, body string
		status                  int
		reason                  string
	}{
		{"DELETE", web, "application/x-www-form-urlencoded", "purge=1", 501, "Unexpected content for method 'DELETE'"},
		{"PUT", web + "/config", "application/json", `{"onboot":true,"memory":512}`, 200, "OK"},
		{"PUT", web + "/config", "application/json", `{"hostname":true}`, 400, "Parameter verification failed."},
		{"PUT", web + "/config", "application/json", `{"hostname":null}`, 400, "Parameter verification failed."},
		{"PUT", web + "/config", "application/x-www-form-urlencoded", "description=" + strings.Repeat("x", 600<<10), 501, "for data too large"},
	} {
		req := c.request(tc.method, tc.path)
		n, err := http.NewRequestWithContext(t.Context(), tc.method, req.URL.String(), strings.NewReader(tc.body))
		if err != nil {
			t.Fatal(err)
		}
		n.Header = req.Header
		n.Header.Set("Content-Type", tc.typ)
		resp, err := c.http.Do(n)
		if err != nil {
			t.Fatal(err)
		}
		if r := read(t, resp); r.status != tc.status || r.reason != tc.reason {
			t.Errorf("%s %s %.40s: %d %s %v", tc.method, tc.path, tc.body, r.status, r.reason, r.errors)
		}
	}
}

func TestFaultsBeforeAndAfterTheEffect(t *testing.T) {
	for _, tc := range []struct {
		fault   Fault
		status  int // 0: no answer
		exit    string
		effect  bool
		comment string
	}{
		{fault: Fault{Kind: FaultStatus, Status: 500, Text: "CT is locked (backup)"}, status: 500},
		{fault: Fault{Kind: FaultStatus, Status: 403, Text: "Permission check failed"}, status: 403},
		{fault: Fault{Kind: FaultStatusAfter, Status: 596, Text: "Broken pipe"}, status: 596, effect: true},
		{fault: Fault{Kind: FaultReset}},
		{fault: Fault{Kind: FaultLoseAnswer}, effect: true},
		{fault: Fault{Kind: FaultDelay, Delay: time.Millisecond}, status: 200, exit: "OK", effect: true},
		{fault: Fault{Kind: FaultTaskFail, Text: "no space left on device"}, status: 200, exit: "no space left on device"},
		{fault: Fault{Kind: FaultTaskFailAfter, Text: "command failed"}, status: 200, exit: "command failed", effect: true},
		{fault: Fault{Kind: FaultTaskWarn, Text: "hm"}, status: 200, exit: "WARNINGS: 1", effect: true},
		{fault: Fault{Kind: FaultTaskLost}, status: 200, exit: "unexpected status"},
		{fault: Fault{Kind: FaultTaskLostAfter}, status: 200, exit: "unexpected status", effect: true},
		{fault: Fault{Kind: FaultTaskNode, Node: "pve2"}, status: 200, exit: "OK", effect: true},
		{fault: Fault{Kind: FaultWorld, World: func(c *Cluster) { c.Lock(5003, "disk") }}, status: 200, exit: "CT is locked (disk)"},
		{fault: Fault{Kind: FaultWorldAfter, World: func(c *Cluster) { c.Lock(5003, "disk") }}, status: 200, exit: "OK", effect: true},
	} {
		t.Run(tc.fault.Kind.String(), func(t *testing.T) {
			for _, overNetwork := range []bool{false, true} {
				c, d := demoClient(t)
				if overNetwork {
					c = httpsClient(t, c)
				}
				tc.fault.Method, tc.fault.Path = "POST", "/5003/status/start$"
				c.srv.Inject(tc.fault)
				r, err := c.try("POST", "/nodes/pve1/lxc/5003/status/start")
				if (err != nil) != (tc.status == 0) || err == nil && r.status != tc.status {
					t.Fatalf("network %t: status %d, error %v", overNetwork, r.status, err)
				}
				if tc.exit != "" {
					upid := strings.Trim(string(r.data), `"`)
					if tc.fault.Node != "" && !strings.HasPrefix(upid, "UPID:"+tc.fault.Node+":") {
						t.Errorf("UPID %s", upid)
					}
					if got := c.exit(upid); got != tc.exit {
						t.Errorf("task ended %q, want %q", got, tc.exit)
					}
				}
				if d.Running(5003) != tc.effect {
					t.Errorf("network %t: effect %t, want %t", overNetwork, d.Running(5003), tc.effect)
				}
				reqs := c.srv.Requests()
				if reqs[0].Fault != tc.fault.Kind || reqs[0].Status != tc.status {
					t.Errorf("recorded as %v, status %d", reqs[0].Fault, reqs[0].Status)
				}
			}
		})
	}
}

func TestFaultHangsUntilTheClientGivesUp(t *testing.T) {
	for _, after := range []bool{false, true} {
		for _, overNetwork := range []bool{false, true} {
			c, d := demoClient(t)
			if overNetwork {
				c = httpsClient(t, c)
			}
			kind := FaultHang
			if after {
				kind = FaultHangAfter
			}
			c.srv.Inject(Fault{Kind: kind, Method: "POST"})
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, err := c.http.Do(c.request("POST", "/nodes/pve1/lxc/5003/status/start").WithContext(ctx))
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("after %t, network %t: error %v", after, overNetwork, err)
			}
			if d.Running(5003) != after {
				t.Errorf("after %t, network %t: running %t", after, overNetwork, d.Running(5003))
			}
		}
	}
}

func TestFaultConditions(t *testing.T) {
	c, _ := demoClient(t)
	c.srv.Inject(Fault{Kind: FaultStatus, Status: 500, Text: "second", Path: "/config$", Skip: 1})
	c.srv.Inject(Fault{Kind: FaultStatus, Status: 500, Text: "named", Params: map[string]string{"memory": "700"}, Times: -1})
	c.srv.Inject(Fault{Kind: FaultStatus, Status: 500, Text: "third change", Mutation: 3})
	c.ok("GET", web+"/config")
	c.refused(500, "second", "GET", web+"/config")
	c.ok("GET", web+"/config")
	c.refused(500, "named", "PUT", web+"/config", "memory=700")
	c.refused(500, "named", "PUT", web+"/config", "memory=700")
	c.refused(500, "third change", "PUT", web+"/config", "memory=512")
	c.ok("PUT", web+"/config", "memory=512")
	if c.srv.FaultsStruck() != 4 || c.srv.Mutations() != 4 {
		t.Errorf("%d faults, %d mutations", c.srv.FaultsStruck(), c.srv.Mutations())
	}
}

func TestHooksMayChangeTheWorld(t *testing.T) {
	c, d := demoClient(t)
	c.srv.Before = func(r Request) {
		if r.Method == "PUT" {
			d.Lock(5001, "migrate")
		}
	}
	c.srv.After = func(r Request) {
		if r.Status == 500 {
			d.Lock(5001, "")
		}
	}
	c.refused(500, "CT is locked (migrate)", "PUT", web+"/config", "memory=512")
	if d.Config(5001)["lock"] != "" {
		t.Error("the hook after the request did not run")
	}
}

// A task that takes time shows as running, is found by its type, and makes a change of its guest
// wait (pve-observed 22).
func TestTaskDuration(t *testing.T) {
	d := NewDemoWith(Options{TaskDuration: 40 * time.Millisecond})
	c := newClient(t, d.Cluster, d.RootToken)
	upid := strings.Trim(string(c.ok("POST", "/nodes/pve1/lxc", "vmid=200", "ostemplate="+DemoTemplate13, "rootfs=local-lvm:1")), `"`)
	if got := c.exit(upid); got != "running" {
		t.Fatalf("status %q", got)
	}
	if got := c.config("200"); got["lock"] != "create" || len(got) != 2 {
		t.Errorf("configuration of a guest in the making: %v", got)
	}
	if got := string(c.ok("GET", "/nodes/pve1/tasks", "source=active", "typefilter=vzcreate")); !strings.Contains(got, `"status":"RUNNING"`) {
		t.Errorf("running tasks: %s", got)
	}
	c.refused(500, "CT 200 already exists on node 'pve1'", "POST", "/nodes/pve1/lxc", "vmid=200", "ostemplate="+DemoTemplate13, "rootfs=local-lvm:1")
	c.ok("PUT", "/nodes/pve1/lxc/200/config", "memory=700")
	if got := c.exit(upid); got != "OK" {
		t.Errorf("status %q", got)
	}
	if m := d.Config(200)["memory"]; m != "700" {
		t.Errorf("memory %q", m)
	}
}

// Stopping a create leaves nothing, stopping a copy leaves its lock (hazards D, pve-facts §8.5).
func TestStopTask(t *testing.T) {
	d := NewDemoWith(Options{TaskDuration: time.Hour})
	c := newClient(t, d.Cluster, d.RootToken)
	stop := func(upid string) string {
		c.ok("DELETE", "/nodes/pve1/tasks/"+upid)
		return c.exit(upid)
	}
	upid := strings.Trim(string(c.ok("POST", "/nodes/pve1/lxc", "vmid=200", "ostemplate="+DemoTemplate13, "rootfs=local-lvm:1")), `"`)
	if got := stop(upid); got != "unable to create CT 200 - received interrupt" || d.Config(200) != nil {
		t.Errorf("create: %s, left %v", got, d.Config(200))
	}
	upid = strings.Trim(string(c.ok("POST", "/nodes/pve1/lxc/5003/move_volume", "volume=rootfs", "storage=tank")), `"`)
	if got := stop(upid); got != "unexpected status" || d.Config(5003)["lock"] != "disk" {
		t.Errorf("copy: %s, lock %q", got, d.Config(5003)["lock"])
	}
}

func TestFaultedCreateLeavesNoStub(t *testing.T) { // pve-facts §5.4
	c, d := demoClient(t)
	c.srv.Inject(Fault{Kind: FaultTaskFail, Text: "unable to create CT 200 - no space", Path: "/lxc$", Method: "POST"})
	c.ends("unable to create CT 200 - no space", "POST", "/nodes/pve1/lxc", "vmid=200", "ostemplate="+DemoTemplate13, "rootfs=local-lvm:1")
	if d.Config(200) != nil {
		t.Errorf("left %v", d.Config(200))
	}
}
