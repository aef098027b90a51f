package pvesim

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestDigestGuardsWrites(t *testing.T) { // pve-facts §1.8, pve-observed 8
	c, d := demoClient(t)
	digest := c.config("5001")["digest"].(string)
	c.ok("PUT", web+"/config", "description=mine", "digest="+digest)
	c.refused(500, textDigest, "PUT", web+"/config", "description=theirs", "digest="+digest)
	if got := d.Config(5001)["description"]; got != "mine\n" {
		t.Errorf("description %q", got)
	}
}

func TestRunningContainerChanges(t *testing.T) { // pve-observed 17, pve-facts §1.6
	c, d := demoClient(t)
	pending := func() string { return string(c.ok("GET", web+"/pending")) }
	c.ok("PUT", web+"/config", "delete=mp0", "memory=1024")
	if _, there := c.config("5001")["mp0"]; there {
		t.Error("GET shows a mount that is about to go")
	}
	if _, there := c.config("5001", "current=1")["mp0"]; !there {
		t.Error("GET current=1 hides the mount")
	}
	if got := c.config("5001", "current=1")["memory"]; got != 1024.0 {
		t.Errorf("memory %v was not changed at once", got)
	}
	if !strings.Contains(pending(), `"delete":1,"key":"mp0"`) {
		t.Errorf("pending: %s", pending())
	}
	c.ok("PUT", web+"/config", "revert=mp0")
	if strings.Contains(pending(), `"delete"`) {
		t.Errorf("pending: %s", pending())
	}
	c.ok("PUT", web+"/config", "delete=mp0")
	volid := d.VolumeOf(5001, "mp0")
	c.ends("OK", "POST", web+"/status/stop")
	if got := d.Config(5001); got["mp0"] != "" || got["unused1"] != volid {
		t.Errorf("after the stop: %v", got)
	}
}

func TestDetachAndAttach(t *testing.T) { // pve-observed 14, 15
	c, d := demoClient(t)
	d.SetRunning(5001, false)
	volid := d.VolumeOf(5001, "mp0")
	c.ok("PUT", web+"/config", "delete=mp0")
	if got := d.Config(5001)["unused1"]; got != volid {
		t.Errorf("unused1 %q", got)
	}
	c.ok("PUT", web+"/config", "mp0="+volid+",mp=/srv/data,size=7G")
	if got := d.Config(5001); got["unused1"] != "" || got["mp0"] != volid+",mp=/srv/data,size=100G" {
		t.Errorf("mp0 %q, unused1 %q", got["mp0"], got["unused1"])
	}
	c.ok("PUT", web+"/config", "mp0=tank:1,mp=/srv/data")
	if got := d.Config(5001); got["unused1"] != volid || !strings.HasPrefix(got["mp0"], "tank:subvol-5001-disk-1,") {
		t.Errorf("mp0 %q, unused1 %q", got["mp0"], got["unused1"])
	}
	c.ok("PUT", web+"/config", "delete=unused1")
	if _, ok := d.Volume(volid); ok {
		t.Error("deleting the unused key keeps the volume")
	}
	c.ok("PUT", web+"/config", "mp9=tank:subvol-5001-typo,mp=/typo")
	if got := d.Config(5001)["mp9"]; got != "tank:subvol-5001-typo,mp=/typo" {
		t.Errorf("mp9 %q", got)
	}
	c.ends("volume 'tank:subvol-5001-typo' does not exist", "POST", web+"/status/start")
}

func TestProtectedContainerKeepsItsVolumes(t *testing.T) { // pve-facts §1.8
	c, d := demoClient(t)
	d.Protect(5001, true)
	c.refused(500, "can't remove CT 5001 drive 'mp0' - protection mode enabled", "PUT", web+"/config", "delete=mp0")
	c.refused(500, "can't remove CT 5001 drive 'unused0' - protection mode enabled", "PUT", web+"/config", "delete=unused0")
	c.refused(500, "can't update CT 5001 drive 'mp8' - protection mode enabled", "PUT", web+"/config", "mp8=tank:1,mp=/eight")
	c.ends("OK", "PUT", web+"/resize", "disk=mp0", "size=+1G")
}

func TestDeleteRefusals(t *testing.T) {
	c, d := demoClient(t)
	before := d.Digest(5001)
	c.refused(500, "unable to delete required option 'rootfs'", "PUT", web+"/config", "delete=rootfs")
	c.refused(500, "unable to modify read-only option: 'unprivileged'", "PUT", web+"/config", "unprivileged=0")
	for _, tc := range [][3]string{
		{"delete=nosuch", "delete", "unknown option 'nosuch'"},
		{"revert=nosuch", "revert", "unknown option 'nosuch'"},
		{"delete=memory&memory=100", "delete", "you can't use '-memory' and -delete memory' at the same time"},
	} {
		r := c.do("PUT", web+"/config", strings.Split(tc[0], "&")...)
		if r.status != 400 || r.errors[tc[1]] != tc[2] {
			t.Errorf("%s: %d %v", tc[0], r.status, r.errors)
		}
	}
	if d.Digest(5001) != before {
		t.Error("a refusal changed the configuration")
	}
}

func TestB8StartFailures(t *testing.T) { // hazards B8
	for name, tc := range map[string]struct {
		before func(*Demo)
		want   string
	}{
		"entrypoint of another system": {func(d *Demo) { d.SetConfig(5003, "entrypoint", "/app/server --port 80") }, "startup for container '5003' failed"},
		"guard":                        {func(d *Demo) { d.SetConfig(5003, "entrypoint", "/bin/false") }, "unable to get PID for CT 5003 (not running?)"},
		"mount on a symbolic link":     {func(d *Demo) { d.SetConfig(5003, "mp0", "local-lvm:1,mp=/bin") }, "startup for container '5003' failed"},
		"quota":                        {func(d *Demo) { d.SetConfig(5003, "mp0", "local-lvm:1,mp=/q,quota=1") }, "Quotas are not supported by unprivileged containers."},
		"locked":                       {func(d *Demo) { d.Lock(5003, "backup") }, "CT is locked (backup)"},
		"made to fail":                 {func(d *Demo) { d.FailStart(5003, "lxc_init: no such device") }, "startup for container '5003' failed"},
	} {
		t.Run(name, func(t *testing.T) {
			c, d := demoClient(t)
			tc.before(d)
			c.ends(tc.want, "POST", "/nodes/pve1/lxc/5003/status/start")
			if d.Running(5003) {
				t.Error("it runs")
			}
		})
	}
}

func TestPower(t *testing.T) { // pve-facts §7.7
	c, d := demoClient(t)
	plain := "/nodes/pve1/lxc/5003/status"
	c.refused(500, "CT 5003 not running", "POST", plain+"/stop")
	c.ends("OK", "POST", plain+"/start")
	c.refused(500, "CT 5003 already running", "POST", plain+"/start")
	d.IgnoreShutdown(5003, true)
	c.ends("container did not stop", "POST", plain+"/shutdown")
	c.ends("OK", "POST", plain+"/shutdown", "forceStop=1")
	d.AddHA(5003, map[string]string{"state": "stopped"})
	c.ends("OK", "POST", plain+"/start")
	if !d.Running(5003) {
		t.Error("HA did not start it")
	}
	d.SetHALag(true)
	c.ends("OK", "POST", plain+"/stop")
	if !d.Running(5003) {
		t.Error("a queued stop is not a stop")
	}
}

func TestB7StartAll(t *testing.T) { // hazards B7
	c, d := demoClient(t)
	d.SetRunning(5001, false)
	d.SetRunning(5004, false)
	d.SetConfig(5004, "onboot", "0")
	c.ends("OK", "POST", "/nodes/pve1/startall")
	if !d.Running(5001) || d.Running(5004) || d.Running(5003) {
		t.Errorf("running: 5001 %t, 5004 %t, 5003 %t", d.Running(5001), d.Running(5004), d.Running(5003))
	}
	d.WriteFile(5001, "/srv/data/p", "new")
	if v, _ := d.Volume(d.VolumeOf(5001, "mp0")); v.Content["/p"] != "new" {
		t.Error("a file below a mount did not land in its volume")
	}
}

func TestSnapshots(t *testing.T) { // pve-facts §1.6, §7.8
	c, d := demoClient(t)
	c.ends("snapshot feature is not available", "POST", web+"/snapshot", "snapname=s1")
	plain := "/nodes/pve1/lxc/5003"
	d.SetConfig(5003, "mp0", "local-lvm:1,mp=/data")
	d.WriteFile(5003, "/data/a", "old")
	c.ok("PUT", plain+"/config", "description=notes before")
	c.ends("OK", "POST", plain+"/snapshot", "snapname=s1")
	if got := c.config("5003")["parent"]; got != "s1" {
		t.Errorf("parent %v", got)
	}
	d.WriteFile(5003, "/data/a", "new")
	c.ok("PUT", plain+"/config", "description=notes after", "memory=700")
	c.ok("PUT", plain+"/config", "mp1=local-lvm:1,mp=/later")
	later := d.VolumeOf(5003, "mp1")
	c.ends("OK", "POST", plain+"/snapshot/s1/rollback")
	got := d.Config(5003)
	if data, _ := d.ReadFile(5003, "/data/a"); data != "old" || got["memory"] != "512" {
		t.Errorf("after the rollback: %q, memory %s", data, got["memory"])
	}
	if got["description"] != "notes after\n" || got["unused0"] != later {
		t.Errorf("notes %q, unused0 %q", got["description"], got["unused0"])
	}
	c.ends("OK", "DELETE", plain+"/snapshot/s1")
	if d.Config(5003)["parent"] != "" {
		t.Error("the parent stays")
	}
}

func TestEnvNeedsARight(t *testing.T) { // hazards B11
	c, d := demoClient(t)
	d.SetConfig(5001, "env", "A=1\x00B=2")
	if got := c.config("5001")["env"]; got != "A=1\x00B=2" {
		t.Errorf("env %q", got)
	}
	c.token = d.AuditToken
	if got := c.config("5001")["env"]; got != "<hidden>" {
		t.Errorf("an auditor sees %q", got)
	}
}

func TestEnvMayRefuseTheWholeConfiguration(t *testing.T) { // measured on pve-container 6.1.10
	d := NewDemoWith(Options{EnvironmentRefused: true})
	c := newClient(t, d.Cluster, d.RootToken)
	d.SetConfig(5003, "env", "A=1")
	c.token = d.AuditToken
	const why = "Permission check failed (/vms/5003, VM.Config.Options)"
	c.refused(403, why, "GET", "/nodes/pve1/lxc/5003/config")
	c.refused(403, why, "GET", "/nodes/pve1/lxc/5003/config", "current=1")
	c.refused(403, why, "GET", "/nodes/pve1/lxc/5003/pending")
	c.ok("GET", "/nodes/pve1/lxc/5003/status/current")
	c.ok("GET", "/nodes/pve1/lxc/5004/config") // no environment, nothing to hide
	d.SetPending(5004, "env", "A=1", false)
	c.refused(403, "Permission check failed (/vms/5004, VM.Config.Options)", "GET", "/nodes/pve1/lxc/5004/pending")
}

func TestNotesHold8192Characters(t *testing.T) { // hazards B9
	c, _ := demoClient(t)
	c.ok("PUT", web+"/config", "description="+strings.Repeat("ä", 8192))
	if r := c.do("PUT", web+"/config", "description="+strings.Repeat("ä", 8193)); r.status != 400 {
		t.Errorf("8193 characters: %d", r.status)
	}
}

func TestValueTypes(t *testing.T) { // pve-facts §1.1: cpulimit is a string
	c, _ := demoClient(t)
	var got struct {
		Data struct {
			Cpulimit string
			Memory   int
			Onboot   int
			Cores    int
		}
	}
	if err := json.Unmarshal([]byte(c.do("GET", web+"/config").body), &got); err != nil {
		t.Fatal(err)
	}
	if got.Data.Cpulimit != "1.5" || got.Data.Memory != 2048 || got.Data.Onboot != 1 {
		t.Errorf("%+v", got.Data)
	}
}
