package pvesim

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestTokenLogin(t *testing.T) { // pve-observed 23
	c, d := demoClient(t)
	good := c.token
	for _, tc := range []struct{ token, reason string }{
		{"root@pam!demo=wrong", "Authentication failed!"},
		{"root@pam!nosuch=x", "Authentication failed!"},
		{"root@pam=x", "Authentication failed!"},
		{"", "No ticket"},
	} {
		c.token = tc.token
		r := c.refused(401, tc.reason, "GET", web+"/config")
		if r.body != "" {
			t.Errorf("%q: body %q", tc.token, r.body)
		}
	}
	c.token = good
	c.refused(403, "URI '/api2/json/access/ticket' not available with API token, need proper ticket.", "POST", "/access/ticket", "username=root@pam", "password="+d.Password)
}

// ticket logs in and gives the headers of a session.
func (c *client) ticket(user, password string, more ...string) (map[string]any, result) {
	c.t.Helper()
	token := c.token
	c.token = ""
	defer func() { c.token = token }()
	r := c.do("POST", "/access/ticket", append([]string{"username=" + user, "password=" + password}, more...)...)
	var m map[string]any
	if r.status == http.StatusOK {
		if err := json.Unmarshal(r.data, &m); err != nil {
			c.t.Fatal(err)
		}
	}
	return m, r
}

func TestTicketLogin(t *testing.T) { // pve-facts §8.8, pve-observed 23
	c, d := demoClient(t)
	if _, r := c.ticket("root@pam", "wrong"); r.status != 401 || r.reason != "authentication failure" {
		t.Errorf("wrong password: %d %s", r.status, r.reason)
	}
	session, _ := c.ticket("root@pam", d.Password)
	send := func(method string, csrf bool, params ...string) result {
		c.token = ""
		req := c.request(method, web+"/config", params...)
		req.Header.Set("Cookie", "PVEAuthCookie="+session["ticket"].(string))
		if csrf {
			req.Header.Set("CSRFPreventionToken", session["CSRFPreventionToken"].(string))
		}
		resp, err := c.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return read(t, resp)
	}
	if r := send("GET", false); r.status != 200 {
		t.Errorf("read: %d %s", r.status, r.reason)
	}
	if r := send("PUT", false, "memory=1024"); r.status != 401 || r.reason != "Permission denied - invalid csrf token" {
		t.Errorf("write without the header: %d %s", r.status, r.reason)
	}
	// what no token may do, root@pam himself may (pve-facts §5.7)
	for _, params := range [][]string{{"mp5=/srv/host,mp=/host"}, {"features=nesting=1,keyctl=1"}, {"dev0=/dev/fuse"}, {"hookscript=local:snippets/x.sh"}} {
		if r := send("PUT", true, params...); r.status != 200 {
			t.Errorf("%v: %d %s", params, r.status, r.reason)
		}
	}
	renewed, _ := c.ticket("root@pam", session["ticket"].(string))
	if renewed["ticket"] == nil {
		t.Error("a ticket does not renew itself")
	}
}

func TestSecondFactor(t *testing.T) {
	c, _ := demoClient(t)
	m, _ := c.ticket("tfa@pve", "tfa-password")
	if m["NeedTFA"] != 1.0 {
		t.Fatalf("no challenge: %v", m)
	}
	challenge := m["ticket"].(string)
	if _, r := c.ticket("tfa@pve", "totp:000000", "tfa-challenge="+challenge); r.status != 401 {
		t.Errorf("wrong code: %d", r.status)
	}
	if m, _ := c.ticket("tfa@pve", "totp:123456", "tfa-challenge="+challenge); m["NeedTFA"] != nil || m["ticket"] == nil {
		t.Errorf("right code: %v", m)
	}
}

func TestRootOnlyKeysRefuseTokens(t *testing.T) { // pve-facts §5.7, pve-observed 11
	c, d := demoClient(t)
	for param, why := range map[string]string{
		"mp5=/srv/host,mp=/host":            "mount point type bind is only allowed for root@pam",
		"mp5=/dev/sdb,mp=/host":             "mount point type device is only allowed for root@pam",
		"features=nesting=1,keyctl=1":       "changing feature flags (except nesting) is only allowed for root@pam",
		"dev0=/dev/fuse":                    "configuring device passthrough is only allowed for root@pam",
		"hookscript=local:snippets/hook.sh": "changing the hookscript is only allowed for root@pam",
	} {
		c.refused(403, "Permission check failed ("+why+")", "PUT", web+"/config", param)
	}
	d.SetConfig(5001, "unprivileged", "")
	c.refused(403, "Permission check failed (changing feature flags for privileged container is only allowed for root@pam)", "PUT", web+"/config", "features=nesting=0")
	d.SetRunning(5001, false)
	c.ok("PUT", web+"/config", "delete=mp2")
}

// Each method names the first missing privilege and its path (pve-recorded, perm).
func TestMissingPrivileges(t *testing.T) {
	for _, tc := range []struct {
		path, priv   string
		method, call string
		params       []string
		want         string
	}{
		{"/vms", "VM.Audit", "GET", web + "/config", nil, "/vms/5001, VM.Audit"},
		{"/vms", "VM.Allocate", "DELETE", web, nil, "/vms/5001, VM.Allocate"},
		{"/vms", "VM.PowerMgmt", "POST", web + "/status/stop", nil, "/vms/5001, VM.PowerMgmt"},
		{"/vms", "VM.Config.Disk", "POST", web + "/move_volume", []string{"volume=mp0", "target-vmid=5003"}, "/vms/5001, VM.Config.Disk"},
		{"/vms", "VM.Config.Memory", "PUT", web + "/config", []string{"memory=600"}, "/vms/5001, VM.Config.Memory"},
		{"/vms", "VM.Config.Options", "PUT", web + "/config", []string{"description=x"}, "/vms/5001, VM.Config.Options"},
		{"/vms", "VM.Config.Network", "PUT", web + "/config", []string{"hostname=x"}, "/vms/5001, VM.Config.Network"},
		{"/vms", "VM.Config.Network", "POST", web + "/firewall/rules", []string{"type=in", "action=ACCEPT"}, "/vms/5001, VM.Config.Network"},
		{"/vms", "VM.Config.CPU", "PUT", web + "/config", []string{"cores=1"}, "/vms/5001, VM.Config.CPU"},
		{"/vms", "VM.Snapshot", "POST", web + "/snapshot", []string{"snapname=s1"}, "/vms/5001, VM.Snapshot"},
		{"/storage/tank", "Datastore.AllocateSpace", "PUT", web + "/config", []string{"mp8=tank:1,mp=/x"}, "/storage/tank, Datastore.AllocateSpace"},
		{"/storage/tank", "Datastore.AllocateSpace", "PUT", web + "/resize", []string{"disk=mp0", "size=+1G"}, "/storage/tank, Datastore.AllocateSpace"},
		{"/sdn/zones/localnetwork", "SDN.Use", "PUT", web + "/config", []string{"net2=name=eth2,bridge=vmbr0"}, "/sdn/zones/localnetwork/vmbr0, SDN.Use"},
		{"/", "Sys.Audit", "GET", "/cluster/ha/resources", nil, "/, Sys.Audit"},
		{"/", "Sys.Audit", "GET", "/cluster/backup", nil, "/, Sys.Audit"},
	} {
		t.Run(tc.priv+" "+tc.call, func(t *testing.T) {
			d := NewDemo()
			c := newClient(t, d.Cluster, d.Token)
			full, _, _ := strings.Cut(d.Token, "=")
			rest := slices.DeleteFunc(slices.Clone(DemoRights()[tc.path]), func(p string) bool { return p == tc.priv })
			if len(rest) == 0 {
				rest = []string{"Mapping.Audit"}
			}
			d.SetRights(full, tc.path, rest...)
			c.refused(403, "Permission check failed ("+tc.want+")", tc.method, tc.call, tc.params...)
		})
	}
}

func TestPrivilegeSeparation(t *testing.T) { // pve-facts §8.8
	d := NewDemo()
	d.AddACL("/vms", "user", "ann@pve", "PVEVMAdmin", true)
	c := newClient(t, d.Cluster, d.AddToken("ann@pve", "all", nil))
	c.ok("GET", web+"/config")
	// a separated token without entries has nothing, whatever its user has
	c.token = d.AddToken("ann@pve", "sep", map[string][]string{})
	c.refused(403, "Permission check failed (/vms/5001, VM.Audit)", "GET", web+"/config")
	d.AddACL("/vms", "token", "ann@pve!sep", "PVEAuditor", true)
	c.ok("GET", web+"/config")
	// and what its user lacks it does not have either
	d.AddACL("/nodes", "token", "ann@pve!sep", "PVEAuditor", true)
	c.refused(403, "Permission check failed (/nodes/pve1, Sys.Audit)", "GET", "/nodes/pve1/status")
}

func TestDeeperEntriesReplace(t *testing.T) {
	d := NewDemo()
	c := newClient(t, d.Cluster, d.AddToken("ann@pve", "x", nil))
	d.AddACL("/vms", "user", "ann@pve", "PVEVMAdmin", true)
	d.AddACL("/vms/5001", "user", "ann@pve", "PVEAuditor", true)
	d.AddACL("/vms/5002", "user", "ann@pve", "NoAccess", true)
	c.ok("GET", web+"/config")
	c.refused(403, "Permission check failed (/vms/5001, VM.PowerMgmt)", "POST", web+"/status/stop")
	c.refused(403, "Permission check failed (/vms/5002, VM.Audit)", "GET", "/nodes/pve1/lxc/5002/config")
	d.AddACL("/nodes", "user", "ann@pve", "PVEAuditor", false)
	c.refused(403, "Permission check failed (/nodes/pve1, Sys.Audit)", "GET", "/nodes/pve1/status")
}

func TestPoolRightsGoWithTheGuest(t *testing.T) { // pve-facts §11, hazards B11
	d := NewDemo()
	d.AddACL("/pool/web", "user", "ann@pve", "PVEVMAdmin", true)
	d.AddACL("/storage", "user", "ann@pve", "PVEDatastoreUser", true)
	c := newClient(t, d.Cluster, d.AddToken("ann@pve", "x", nil))
	c.ok("GET", web+"/config")
	c.ends("OK", "POST", web+"/status/stop")
	c.ends("OK", "DELETE", web)
	create := []string{"vmid=5001", "ostemplate=" + DemoTemplate13, "rootfs=local-lvm:1"}
	c.refused(403, "Permission check failed", "POST", "/nodes/pve1/lxc", create...)
	c.refused(403, "Permission check failed (/vms/5001, VM.Config.Options)", "POST", "/nodes/pve1/lxc", append(create, "pool=web", "tags=a")...)
	c.ends("OK", "POST", "/nodes/pve1/lxc", append(create, "pool=web")...)
	c.ok("PUT", web+"/config", "tags=a")
}

func TestB11ListsAreFiltered(t *testing.T) { // hazards B11, B2, pve-observed 24
	d := NewDemo()
	d.Backup(5001, "backup", "", true)
	c := newClient(t, d.Cluster, d.AddToken("ann@pve", "x", map[string][]string{"/vms": {"VM.Audit", "VM.Config.Disk"}}))
	_, end := d.StartTask("pve1", "vzdump", "", "root@pam")
	defer end("OK")
	for path, want := range map[string]string{
		"/pools": "[]", "/access/acl": "[]", "/cluster/tasks": "[]", "/nodes/pve1/tasks": "[]", "/nodes/pve1/storage": "[]",
	} {
		if got := string(c.ok("GET", path)); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
	if got := string(c.ok("GET", "/cluster/resources", "type=vm")); strings.Contains(got, `"pool"`) || !strings.Contains(got, "lxc/5001") {
		t.Errorf("resources: %s", got)
	}
	c.refused(403, "Permission check failed (/storage/backup, Datastore.Audit|Datastore.AllocateSpace)", "GET", "/nodes/pve1/storage/backup/content")
}

func TestEffectivePermissions(t *testing.T) {
	d := NewDemo()
	c := newClient(t, d.Cluster, d.Token)
	var all map[string]map[string]int
	if err := json.Unmarshal(c.ok("GET", "/access/permissions"), &all); err != nil {
		t.Fatal(err)
	}
	if all["/vms"]["VM.Allocate"] != 1 || all["/"]["Sys.Audit"] != 1 || len(all["/vms/5001"]) == 0 {
		t.Errorf("permissions: %v", all)
	}
	if _, there := all["/vms"]["Sys.Audit"]; there {
		t.Error("an entry on /vms replaces the one on /")
	}
	var one map[string]map[string]int
	if err := json.Unmarshal(c.ok("GET", "/access/permissions", "path=/vms/123456"), &one); err != nil {
		t.Fatal(err)
	}
	if one["/vms/123456"]["VM.Config.Disk"] != 1 || len(one) != 1 {
		t.Errorf("permissions of a path: %v", one)
	}
	c.token = d.AuditToken
	c.refused(403, "Permission check failed (/vms/5001, Permissions.Modify|VM.Allocate)", "PUT", "/access/acl", "path=/vms/5001", "roles=PVEVMUser", "users=ops@pve")
}

func TestACLGrants(t *testing.T) { // pve-facts §11, hazards B11
	d := NewDemo()
	c := newClient(t, d.Cluster, d.AddToken("ann@pve", "x", map[string][]string{"/vms": {"VM.Allocate", "VM.Audit"}}))
	d.AddRole("Small", "VM.Audit")
	c.ok("PUT", "/access/acl", "path=/vms/5001", "roles=Small", "users=ops@pve")
	r := c.do("PUT", "/access/acl", "path=/vms/5001", "roles=PVEVMUser", "users=ops@pve")
	if r.status != 400 || !strings.HasPrefix(r.errors["role"], "Cannot add role 'PVEVMUser' - requires 'Permissions.Modify' or superset") {
		t.Errorf("%d %s %v", r.status, r.reason, r.errors)
	}
	c.ok("PUT", "/access/acl", "path=/vms/5001", "roles=Small", "users=ops@pve", "delete=1")
	if strings.Contains(d.Dump(), "ops@pve Small") {
		t.Error("the entry is still there")
	}
}

func TestB10DestroyTakesTheACLOfTheID(t *testing.T) { // hazards B10
	c, d := demoClient(t)
	d.AddACL("/vms/9001", "user", "ops@pve", "PVEVMUser", true)
	c.ends("OK", "POST", "/nodes/pve1/lxc", "vmid=9001", "ostemplate="+DemoTemplate13, "rootfs=local-lvm:1")
	c.ends("OK", "DELETE", "/nodes/pve1/lxc/9001")
	if strings.Contains(d.Dump(), "acl /vms/9001") {
		t.Error("the entry survived")
	}
}

func TestB13TagPolicy(t *testing.T) { // hazards B13
	for policy, want := range map[string]int{"user-allow=free": 200, "user-allow=none": 403, "user-allow=list,user-allow-list=new": 200, "user-allow=existing": 403} {
		d := NewDemo()
		d.SetOption("user-tag-access", policy)
		c := newClient(t, d.Cluster, d.Token)
		r := c.do("PUT", web+"/config", "tags=web;prod;new")
		if r.status != want || want == 403 && r.reason != "Permission check failed (/, Sys.Modify for modifying tag 'new')" {
			t.Errorf("%s: %d %s", policy, r.status, r.reason)
		}
	}
	d := NewDemo()
	d.SetOption("registered-tags", "gold")
	c := newClient(t, d.Cluster, d.Token)
	c.refused(403, "Permission check failed (/, Sys.Modify for modifying tag 'gold')", "PUT", web+"/config", "tags=web;prod;gold")
}
