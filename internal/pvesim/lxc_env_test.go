package pvesim

import (
	"encoding/json"
	"strings"
	"testing"
)

// All of this was measured: hazards C7 and C8, and what a client must not send.
func TestC8EnvironmentAsItComesBack(t *testing.T) {
	for _, tc := range []struct{ sent, back string }{
		{"A=1\x00B=2", "A=1\x00B=2"},
		{"A=1\x00A=2", "A=1\x00A=2"},
		{"B=2\x00A=1", "B=2\x00A=1"},
		{"A=", "A="},
		{"A= x \x00B=2\t", "A= x\x00B=2"},
		{"A=a\tb", "A=a\tb"},
		{"1A=1", "1A=1"},
		{"A=\u00fc", "A=\u00fc"},
		{"A=\u00fc\u20ac", "A=\u00c3\u00bc\u00e2\u0082\u00ac"},
		{"A=" + strings.Repeat("x", 130000), "A=" + strings.Repeat("x", 130000)},
	} {
		c, _ := demoClient(t)
		c.ok("PUT", "/nodes/pve1/lxc/5003/config", "env="+tc.sent)
		if got := c.config("5003")["env"]; got != tc.back {
			t.Errorf("%.60q comes back as %.60q", tc.sent, got)
		}
	}
	for _, env := range []string{"", "A", "=1", "A=1\nB=2", "A=1\x00", "\x00A=1", "A=1\x00\x00B=2", "A=1\x7f", "A-B=1", "A.B=1", "A B=1"} {
		c, _ := demoClient(t)
		r := c.do("PUT", "/nodes/pve1/lxc/5003/config", "env="+env)
		if r.status != 400 || r.errors["env"] != "value does not match the regex pattern" {
			t.Errorf("%q: %d %v", env, r.status, r.errors)
		}
	}
}

// Of a running container the environment waits for its next start, and can be taken back until then.
func TestC8EnvironmentOfARunningContainerIsPending(t *testing.T) {
	const live, other = "A=1", "A=1\x00B=2"
	for name, tc := range map[string]struct {
		then     []string
		merged   string
		pending  string
		deleting bool
		stopped  string
	}{
		"changed":                    {nil, other, other, false, other},
		"changed back":               {[]string{"env=" + live}, live, "", false, live},
		"reverted":                   {[]string{"revert=env"}, live, "", false, live},
		"deleted":                    {[]string{"delete=env"}, "", "", true, ""},
		"deleted, and that reverted": {[]string{"delete=env", "revert=env"}, live, "", false, live},
	} {
		t.Run(name, func(t *testing.T) {
			c, d := demoClient(t)
			d.SetConfig(5001, "env", live)
			c.ok("PUT", web+"/config", "env="+other)
			for _, p := range tc.then {
				c.ok("PUT", web+"/config", p)
			}
			if got, _ := c.config("5001")["env"].(string); got != tc.merged {
				t.Errorf("the configuration shows %q", got)
			}
			if got := d.Config(5001)["env"]; got != live {
				t.Errorf("the program sees %q", got)
			}
			var rows []struct {
				Key     string
				Pending string
				Delete  int
			}
			var raw []json.RawMessage
			must(json.Unmarshal(c.ok("GET", web+"/pending"), &raw))
			for _, r := range raw {
				if strings.Contains(string(r), `"key":"env"`) {
					rows = append(rows, struct {
						Key     string
						Pending string
						Delete  int
					}{})
					must(json.Unmarshal(r, &rows[0]))
				}
			}
			if len(rows) != 1 || rows[0].Pending != tc.pending || (rows[0].Delete == 1) != tc.deleting {
				t.Errorf("pending: %+v", rows)
			}
			c.ends("OK", "POST", web+"/status/reboot")
			if got := d.Config(5001)["env"]; got != tc.stopped {
				t.Errorf("after a restart it is %q", got)
			}
		})
	}
}

// What else of a running container waits, and what does not.
func TestKeysOfARunningApplicationContainer(t *testing.T) {
	c, d := demoClient(t)
	d.SetConfig(5001, "cmode", "console")
	d.SetConfig(5001, "ostype", "unmanaged")
	for key, tc := range map[string]struct {
		value string
		live  bool
	}{
		"hostname": {"other", true}, "tags": {"x", true}, "cores": {"1", true}, "onboot": {"0", true}, "startup": {"order=9", true},
		"description": {"n", true}, "memory": {"3000", true}, "swap": {"1", true}, "cpulimit": {"1", true}, "cpuunits": {"50", true},
		"entrypoint": {"/x", false}, "cmode": {"tty", false}, "features": {"nesting=0", false}, "nameserver": {"192.0.2.9", false},
		"searchdomain": {"x.test", false}, "console": {"0", false}, "tty": {"1", false}, "timezone": {"host", false}, "arch": {"arm64", false},
	} {
		before := d.Config(5001)[key]
		c.ok("PUT", web+"/config", key+"="+tc.value)
		if now := d.Config(5001)[key]; (now != before) != tc.live {
			t.Errorf("%s: %q became %q", key, before, now)
		}
	}
}

// A network card is written as a whole: without its address it gets a new one, without host-managed an
// application container has no address after its next start.
func TestC8NetworkCardsAreReplacedAsAWhole(t *testing.T) {
	c, d := demoClient(t)
	must(d.AddTemplate("pve1", "local:vztmpl/app.tar", 1<<20, Template{OCI: &OCIImage{Entrypoint: []string{"/app"}}}))
	const net = "name=eth0,bridge=vmbr0,ip=192.0.2.200/24"
	c.ends("OK", "POST", "/nodes/pve1/lxc", "vmid=200", "ostemplate=local:vztmpl/app.tar", "rootfs=local-lvm:1", "ostype=unmanaged", "net0="+net)
	before := parseProps(d.Config(200)["net0"], "")
	if before.value("host-managed") != "1" {
		t.Fatalf("created with %v", before)
	}
	c.ends("OK", "POST", web200+"/status/start")
	if body := string(c.ok("GET", web200+"/interfaces")); !strings.Contains(body, "192.0.2.200") {
		t.Errorf("addresses: %s", body)
	}
	c.ok("PUT", web200+"/config", "net0="+net)
	after := parseProps(d.Config(200)["net0"], "")
	if after.value("host-managed") != "" || after.value("hwaddr") == before.value("hwaddr") {
		t.Errorf("changed to %v", after)
	}
	c.ends("OK", "POST", web200+"/status/reboot")
	if body := string(c.ok("GET", web200+"/interfaces")); strings.Contains(body, "192.0.2.200") {
		t.Errorf("addresses that nobody gives: %s", body)
	}
}

// C7: the environment, the entrypoint and the raw pairs go back with a snapshot, the notes do not. A restore
// by a token keeps the environment and loses the pairs.
func TestC7SnapshotsAndRestoresOfApplicationContainers(t *testing.T) {
	c, d := demoClient(t)
	must(d.AddTemplate("pve1", "local:vztmpl/app.tar", 1<<20, Template{OCI: &OCIImage{
		Entrypoint: []string{"/app"}, Env: []string{"PATH=/bin"}, User: true, UID: 1000, GID: 1000,
	}}))
	c.ends("OK", "POST", "/nodes/pve1/lxc", "vmid=200", "ostemplate=local:vztmpl/app.tar", "rootfs=local-lvm:1", "mp0=local-lvm:1,mp=/data,backup=1", "mp1=local-lvm:1,mp=/cache",
		"ostype=unmanaged", "description=one", "tags=t1")
	c.ok("PUT", web200+"/config", "env=PATH=/bin\x00ID=one")
	d.WriteFile(200, "/data/x", "data")
	d.WriteFile(200, "/cache/x", "cache")
	c.ends("OK", "POST", web200+"/status/start")
	c.ok("PUT", web200+"/config", "env=PATH=/bin\x00ID=pending")
	c.ends("OK", "POST", web200+"/snapshot", "snapname=s1")
	c.ends("OK", "POST", web200+"/status/reboot")
	c.ok("PUT", web200+"/config", "description=two", "tags=t2", "entrypoint=/other", "env=PATH=/bin\x00ID=two")
	c.ends("OK", "POST", web200+"/snapshot/s1/rollback")
	got := d.Config(200)
	if got["env"] != "PATH=/bin\x00ID=one" || got["entrypoint"] != "/app" || got["tags"] != "t1" || got["description"] != "two\n" || d.Running(200) {
		t.Errorf("after the rollback: %q, running %v", got, d.Running(200))
	}
	if merged := c.config("200")["env"]; merged != "PATH=/bin\x00ID=one" {
		t.Errorf("pending after the rollback: %q", merged)
	}
	archive := d.Backup(200, "backup", "", false)
	c.token = d.Token
	c.ends("WARNINGS: 1", "POST", "/nodes/pve1/lxc", "vmid=201", "ostemplate="+archive, "restore=1", "storage=tank")
	restored := c.config("201")
	for _, key := range []string{"env", "entrypoint", "cmode", "tags", "description", "ostype", "arch"} {
		if restored[key] != c.config("200")[key] {
			t.Errorf("%s was restored as %v", key, restored[key])
		}
	}
	if restored["lxc"] != nil {
		t.Errorf("raw pairs were restored: %v", restored["lxc"])
	}
	if data, _ := d.ReadFile(201, "/data/x"); data != "data" {
		t.Errorf("the backed-up volume holds %q", data)
	}
	if data, there := d.ReadFile(201, "/cache/x"); there {
		t.Errorf("the volume that was not backed up holds %q", data)
	}
}

// Users by name are looked up in the image.
func TestUsersOfImages(t *testing.T) {
	files := map[string]string{"/etc/passwd": "root:x:0:0::/:/bin/sh\napp:x:1000:1001::/:/bin/sh\n", "/etc/group": "root:x:0:\nstaff:x:50:\n"}
	for user, want := range map[string]OCIImage{
		"app": {UID: 1000, GID: 1001, NoGroup: true}, "1000": {UID: 1000, GID: 1001, NoGroup: true}, "app:staff": {UID: 1000, GID: 50},
		"app:7": {UID: 1000, GID: 7}, "7:8": {UID: 7, GID: 8},
	} {
		var got OCIImage
		got.resolveUser(user, files)
		if got.UID != want.UID || got.GID != want.GID || got.NoGroup != want.NoGroup {
			t.Errorf("%s: %+v", user, got)
		}
	}
}

// A backup holds the environment in clear, and whoever may make backups may read it there.
func TestC8BackupsShowTheEnvironment(t *testing.T) {
	c, d := demoClient(t)
	d.SetConfig(5003, "env", "A=1\x00SECRET=hidden")
	archive := d.Backup(5003, "backup", "", false)
	for _, tc := range []struct {
		privs []string
		want  string
	}{
		{[]string{"VM.Audit", "VM.Backup"}, ""},
		{[]string{"VM.Audit", "Datastore.AllocateSpace"}, ""},
		{[]string{"VM.Audit", "VM.Config.Options", "Datastore.AllocateSpace"}, ""},
		{[]string{"VM.Audit", "VM.Backup", "Datastore.AllocateSpace"}, "lxc.environment.runtime: SECRET=hidden\n"},
	} {
		c.token = d.AddToken("reader@pve", "t"+itoa(len(tc.privs))+tc.privs[1], map[string][]string{"/": tc.privs})
		r := c.do("GET", "/nodes/pve1/vzdump/extractconfig", "volume="+archive)
		if tc.want == "" {
			if r.status != 403 {
				t.Errorf("%v: %d %s", tc.privs, r.status, r.body)
			}
			continue
		}
		var text string
		if err := json.Unmarshal(r.data, &text); err != nil || !strings.Contains(text, tc.want) {
			t.Errorf("%v: %d %s, %v", tc.privs, r.status, r.body, err)
		}
	}
}
