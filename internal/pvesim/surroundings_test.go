package pvesim

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestB9FirewallReplay(t *testing.T) { // hazards B9
	c, d := demoClient(t)
	fw := web + "/firewall"
	var rules []map[string]any
	if err := json.Unmarshal(c.ok("GET", fw+"/rules"), &rules); err != nil {
		t.Fatal(err)
	}
	if rules[2]["ipversion"] != 4.0 || rules[2]["pos"] != 2.0 || rules[3]["enable"] != 0.0 {
		t.Errorf("rules: %v", rules)
	}
	want := d.Firewall(5001)
	d.SetFirewall(5001, FirewallSpec{})
	if r := c.do("POST", fw+"/rules", "type=in", "action=ACCEPT", "source=192.0.2.10", "ipversion=4"); r.errors["ipversion"] != textUnknownKey {
		t.Errorf("ipversion: %v", r.errors)
	}
	if r := c.do("POST", fw+"/rules", "type=in", "action=ACCEPT", "source=monitor"); r.errors["source"] != "no such alias 'monitor'" {
		t.Errorf("a rule before its alias: %v", r.errors)
	}
	c.ok("PUT", fw+"/options", "enable=1", "policy_in=DROP", "policy_out=ACCEPT")
	c.ok("POST", fw+"/aliases", "name=office", "cidr=203.0.113.0/24")
	c.ok("POST", fw+"/aliases", "name=monitor", "cidr=192.0.2.10")
	c.ok("POST", fw+"/ipset", "name=admins")
	for _, e := range []string{"203.0.113.7", "203.0.113.8"} {
		c.ok("POST", fw+"/ipset/admins", "cidr="+e)
	}
	c.ok("POST", fw+"/ipset/admins", "cidr=203.0.113.9", "nomatch=1")
	// a new rule goes on top
	for i := len(rules) - 1; i >= 0; i-- {
		var params []string
		for k, v := range rules[i] {
			if k != "pos" && k != "digest" && k != "ipversion" {
				text, _ := json.Marshal(v)
				params = append(params, k+"="+strings.Trim(string(text), `"`))
			}
		}
		c.ok("POST", fw+"/rules", params...)
	}
	if got := d.Firewall(5001); got != want {
		t.Errorf("replayed:\n%s\nwant:\n%s", got, want)
	}
	c.ok("POST", fw+"/rules", "type=out", "action=DROP")
	if got := string(c.ok("GET", fw+"/rules/0")); !strings.Contains(got, `"enable":0`) {
		t.Errorf("a new rule is %s", got)
	}
}

func TestB12HA(t *testing.T) { // hazards B12
	c, d := demoClient(t)
	d.AddHA(5003, map[string]string{"state": "stopped", "comment": "c", "max_restart": "2"})
	d.AddHARule("pin", map[string]string{"type": "node-affinity", "resources": "ct:5003", "nodes": "pve1"})
	c.ok("DELETE", "/cluster/ha/resources/ct:5003", "purge=0")
	if !strings.Contains(d.Dump(), "ha-rule pin") {
		t.Error("purge=0 deleted the rule")
	}
	c.ends("OK", "DELETE", "/nodes/pve1/lxc/5003")
	c.refused(500, "resource 'ct:5003' does not exist in cluster", "POST", "/cluster/ha/resources", "sid=ct:5003")
	d.AddContainer(ContainerSpec{VMID: 5003, Config: map[string]string{"rootfs": "local-lvm:1"}})
	c.ok("POST", "/cluster/ha/resources", "sid=ct:5003", "state=stopped")
	c.ok("DELETE", "/cluster/ha/resources/ct:5003")
	if strings.Contains(d.Dump(), "ha-rule pin") {
		t.Error("the default deletes the rule")
	}
	c.token = d.Token
	c.refused(403, "Permission check failed (/, Sys.Console)", "POST", "/cluster/ha/resources", "sid=ct:5003")
}

func TestB14Leases(t *testing.T) { // hazards B14
	c, d := demoClient(t)
	d.AddVnet("dhcpzone", "vnet0", "10.9.0.0/24", "10.9.0.50", "10.9.0.52")
	mac := "BC:24:11:AA:00:01"
	create := func(vmid string) string {
		return c.task("POST", "/nodes/pve1/lxc", "vmid="+vmid, "ostemplate="+DemoTemplate13, "rootfs=local-lvm:1", "net0=name=eth0,bridge=vnet0,hwaddr="+mac+",ip=dhcp")
	}
	create("300")
	create("301")
	if got := d.Leases(); len(got) != 2 {
		t.Fatalf("leases %v", got)
	}
	// a look-up by address finds the younger lease, so destroying the older guest frees that one
	c.ends("OK", "DELETE", "/nodes/pve1/lxc/300")
	if got := d.Leases(); len(got) != 1 || !strings.HasPrefix(got[0], "vnet0 10.9.0.50 ") {
		t.Errorf("leases %v", got)
	}
	c.ok("PUT", "/cluster/sdn/vnets/vnet0/ips", "zone=dhcpzone", "ip=10.9.0.52", "mac="+mac, "vmid=301")
	if got := string(c.ok("GET", "/cluster/sdn/ipams/pve/status")); !strings.Contains(got, "10.9.0.52") || strings.Contains(got, "10.9.0.50") {
		t.Errorf("leases: %s", got)
	}
}

func TestA5BackupsPruneByDefault(t *testing.T) { // hazards A4, A5, pve-facts §9.1
	c, d := demoClient(t)
	d.AddStorage(StorageSpec{ID: "backup", Type: "dir", Content: []string{"backup"}, Options: map[string]string{"path": "/srv/backup", "prune-backups": "keep-last=1"}})
	first := d.Backup(5004, "backup", "first", false)
	c.ends("job errors", "POST", "/nodes/pve1/vzdump", "vmid=5004", "storage=backup", "remove=0")
	c.ends("OK", "POST", "/nodes/pve1/vzdump", "vmid=5004", "storage=backup", "remove=0", "protected=1", "notes-template=pvrx {{guestname}}")
	if _, ok := d.Volume(first); !ok {
		t.Fatal("remove=0 removed the first backup")
	}
	c.ends("OK", "POST", "/nodes/pve1/vzdump", "vmid=5004", "storage=backup")
	if _, ok := d.Volume(first); ok {
		t.Error("the default kept the first backup")
	}
	if !strings.Contains(d.Dump(), `protected=true notes="pvrx mail1"`) {
		t.Error("the protected backup is gone")
	}
}

func TestA2BackupExcludesPaths(t *testing.T) { // hazards A2
	c, d := demoClient(t)
	d.WriteFile(5004, "/etc/config", "kept")
	c.ends("OK", "POST", "/nodes/pve1/vzdump", "vmid=5004", "storage=backup", "exclude-path=/var/vmail/?*", "exclude-path=/srv/*")
	var archive string
	for _, v := range d.Volumes() {
		if v.Type == "backup" && v.Owner == 5004 {
			archive = v.ID
		}
	}
	if files := d.BackupFiles(archive, "mp0"); len(files) != 0 {
		t.Errorf("mp0 holds %v", files)
	}
	if files := d.BackupFiles(archive, "rootfs"); files["/etc/config"] != "kept" {
		t.Errorf("rootfs holds %v", files)
	}
	if d.BackupFiles(archive, "mp1") != nil {
		t.Error("a mount without backup=1 is in the archive")
	}
}

func TestBackupIsLocked(t *testing.T) { // pve-facts §9.1
	c, d := demoClient(t)
	d.Lock(5004, "snapshot")
	c.ends("job errors", "POST", "/nodes/pve1/vzdump", "vmid=5004", "storage=backup")
	d.Lock(5004, "")
	c.srv.Inject(Fault{Kind: FaultTaskKill, At: "locked", Path: "/vzdump$"})
	c.ends("unexpected status", "POST", "/nodes/pve1/vzdump", "vmid=5004", "storage=backup")
	if d.Config(5004)["lock"] != "backup" {
		t.Error("a killed backup leaves its lock")
	}
}

func TestBackupJobs(t *testing.T) {
	c, d := demoClient(t)
	at := d.now().Add(time.Hour)
	d.AddBackupJob("web", map[string]string{"pool": "web", "storage": "backup", "schedule": "hourly"}, at)
	var jobs []map[string]any
	if err := json.Unmarshal(c.ok("GET", "/cluster/backup"), &jobs); err != nil {
		t.Fatal(err)
	}
	if jobs[1]["id"] != "web" || jobs[1]["next-run"] != float64(at.Unix()) || jobs[1]["pool"] != "web" {
		t.Errorf("jobs %v", jobs)
	}
	if got := string(c.ok("GET", "/cluster/backup/web/included_volumes")); !strings.Contains(got, `"id":5001`) || strings.Contains(got, `"id":5002`) {
		t.Errorf("included: %s", got)
	}
}

func TestPools(t *testing.T) { // pve-observed 25
	c, d := demoClient(t)
	c.refused(500, "update pools failed: VM 5001 is already a pool member", "PUT", "/pools", "poolid=web", "vms=5001")
	c.ok("PUT", "/pools", "poolid=web", "vms=5002")
	c.refused(500, "delete pool failed: pool 'web' is not empty (contains VM 5001)", "DELETE", "/pools", "poolid=web")
	c.ok("PUT", "/pools", "poolid=web", "vms=5001", "delete=1")
	if d.PoolOf(5001) != "" || d.PoolOf(5002) != "web" {
		t.Errorf("pools %q, %q", d.PoolOf(5001), d.PoolOf(5002))
	}
}

func TestTaskAccess(t *testing.T) { // pve-facts §8.5
	c, d := demoClient(t)
	var upid string
	if err := json.Unmarshal(c.ok("POST", "/nodes/pve1/lxc/5003/status/start"), &upid); err != nil {
		t.Fatal(err)
	}
	var log []struct{ T string }
	if err := json.Unmarshal(c.ok("GET", "/nodes/pve1/tasks/"+upid+"/log", "limit=0"), &log); err != nil || log[len(log)-1].T != "TASK OK" {
		t.Errorf("log %v, %v", log, err)
	}
	if r := c.do("GET", "/nodes/pve2/tasks/"+upid+"/status"); r.errors["upid"] != "no such task" {
		t.Errorf("on the wrong node: %v", r.errors)
	}
	c.token = d.AddToken("ann@pve", "x", map[string][]string{"/vms": {"VM.PowerMgmt"}})
	c.refused(403, "Permission check failed (/nodes/pve1, Sys.Audit)", "GET", "/nodes/pve1/tasks/"+upid+"/status")
	c.ends("OK", "POST", "/nodes/pve1/lxc/5003/status/stop")
}

func TestCloneOfTheWorldIsApart(t *testing.T) {
	d := NewDemo()
	before := d.Dump()
	n := d.Clone()
	if n.Dump() != before {
		t.Fatal("a clone differs from its original")
	}
	c := newClient(t, n, d.RootToken)
	c.ok("PUT", web+"/config", "description=changed", "memory=512")
	c.ok("POST", web+"/firewall/rules", "type=in", "action=DROP")
	c.ends("OK", "POST", web+"/status/stop")
	c.ends("OK", "DELETE", web)
	n.WriteFile(5004, "/var/vmail/inbox", "other")
	n.AddACL("/", "user", "ops@pve", "Administrator", true)
	if d.Dump() != before {
		t.Error("changing the clone changed the original")
	}
}

func TestDumpShowsWhatMatters(t *testing.T) {
	for name, change := range map[string]func(*Demo){
		"content":  func(d *Demo) { d.WriteFile(5001, "/srv/data/customers", "gone") },
		"config":   func(d *Demo) { d.SetConfig(5001, "cores", "9") },
		"power":    func(d *Demo) { d.SetRunning(5001, false) },
		"acl":      func(d *Demo) { d.AddACL("/vms/1", "user", "ops@pve", "NoAccess", false) },
		"pool":     func(d *Demo) { d.AddPool("web", 5002) },
		"firewall": func(d *Demo) { d.SetFirewall(5002, FirewallSpec{Options: map[string]string{"enable": "1"}}) },
		"volume":   func(d *Demo) { must(d.AddVolume("pve1", "tank:subvol-1-disk-0", 1)) },
		"snapshot": func(d *Demo) { d.Snapshot(5003, "s") },
		"pending":  func(d *Demo) { d.SetPending(5001, "arch", "arm64", false) },
		"storage":  func(d *Demo) { d.RemoveStorage("nas") },
		"node":     func(d *Demo) { d.SetNodeOnline("pve2", false) },
	} {
		d := NewDemo()
		before := d.Dump()
		change(d)
		if d.Dump() == before {
			t.Errorf("%s: a change does not show", name)
		}
	}
	d := NewDemo()
	if out := d.Dump(IgnoreGuests(5001), IgnoreKeys("cores"), IgnoreLines("node ")); strings.Contains(out, "5001-disk") || strings.Contains(out, " cores: ") || strings.Contains(out, "\nnode ") {
		t.Error("what is to be ignored shows")
	}
}

func TestNodeAndClusterStatus(t *testing.T) {
	c, d := demoClient(t)
	d.SetQuorum(false)
	if got := string(c.ok("GET", "/cluster/status")); !strings.Contains(got, `"quorate":0`) {
		t.Errorf("status %s", got)
	}
	d.SetNodeOnline("pve2", false)
	if got := string(c.ok("GET", "/nodes")); !strings.Contains(got, `"status":"offline"`) {
		t.Errorf("nodes %s", got)
	}
	if got := string(c.ok("GET", "/version")); !strings.Contains(got, `"version":"9.2.11"`) {
		t.Errorf("version %s", got)
	}
	if got := string(c.ok("GET", "/cluster/nextid")); got != `"100"` {
		t.Errorf("next id %s", got)
	}
}
