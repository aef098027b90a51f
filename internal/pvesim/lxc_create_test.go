package pvesim

import (
	"maps"
	"strings"
	"testing"
)

func TestCreateDefaults(t *testing.T) { // pve-facts §5, pve-observed 20
	c, d := demoClient(t)
	c.ends("OK", "POST", "/nodes/pve1/lxc", "vmid=200", "ostemplate="+DemoTemplate13, "rootfs=local-lvm:1",
		"net0=name=eth0,bridge=vmbr0,ip=dhcp", "tags=B;a;b", "description=one\ntwo\n\n", "onboot=0")
	got := d.Config(200)
	mac := parseProps(got["net0"], "").value("hwaddr")
	want := map[string]string{
		"arch": "amd64", "ostype": "debian", "hostname": "CT200", "memory": "512", "swap": "512", "unprivileged": "1",
		"rootfs": "local-lvm:vm-200-disk-0,size=1G", "net0": "name=eth0,bridge=vmbr0,hwaddr=" + mac + ",ip=dhcp,type=veth",
		"tags": "a;b", "description": "one\ntwo\n", "onboot": "0",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	root, _ := d.Volume("local-lvm:vm-200-disk-0")
	if root.Content["/etc/debian_version"] != "13" || root.Content["/etc/hostname"] != "CT200" {
		t.Errorf("root file system: %v", root.Content)
	}
}

func TestA7AbsentKeysHaveMeanings(t *testing.T) { // hazards A7
	c, d := demoClient(t)
	d.AddContainer(ContainerSpec{VMID: 300, Config: map[string]string{"rootfs": "local-lvm:1", "unprivileged": "", "swap": ""}})
	got := c.config("300")
	if _, there := got["unprivileged"]; there {
		t.Error("a privileged container shows unprivileged")
	}
	c.ends("OK", "POST", "/nodes/pve1/lxc", "vmid=301", "ostemplate="+DemoTemplate13, "rootfs=local-lvm:1")
	if cfg := d.Config(301); cfg["unprivileged"] != "1" || cfg["swap"] != "512" {
		t.Errorf("created with %v", cfg)
	}
	c.ends("OK", "POST", "/nodes/pve1/lxc", "vmid=302", "ostemplate="+DemoTemplate13, "rootfs=local-lvm:1", "unprivileged=0", "swap=0")
	if cfg := d.Config(302); cfg["unprivileged"] != "" || cfg["swap"] != "0" {
		t.Errorf("created with %v", cfg)
	}
	c.token = d.Token
	c.refused(403, "Permission check failed (/, Sys.Modify)", "POST", "/nodes/pve1/lxc", "vmid=303", "ostemplate="+DemoTemplate13, "rootfs=local-lvm:1", "unprivileged=0")
}

func TestTemplateWritesIntoMountedVolumes(t *testing.T) { // pve-facts §5.5
	c, d := demoClient(t)
	must(d.AddVolume("pve1", "tank:subvol-200-keep", 1<<30))
	must(d.WriteVolume("tank:subvol-200-keep", "/customers", "kept"))
	must(d.WriteVolume("tank:subvol-200-keep", "/from-template", "older"))
	before, _ := d.Volume("tank:subvol-200-keep")
	// existing files stay, even so the volume is written to as soon as it lacks one
	c.ends("OK", "POST", "/nodes/pve1/lxc", "vmid=200", "ostemplate="+DemoTemplate13, "rootfs=local-lvm:1", "mp0=tank:subvol-200-keep,mp=/srv/data,ro=1")
	after, _ := d.Volume("tank:subvol-200-keep")
	if after.Digest() != before.Digest() {
		t.Errorf("an existing file was overwritten: %v", after.Content)
	}
	c.ends("OK", "POST", "/nodes/pve1/lxc", "vmid=201", "ostemplate="+DemoTemplate13, "rootfs=local-lvm:1", "mp0=tank:1,mp=/srv/data,ro=1")
	if data, ok := d.ReadFile(201, "/srv/data/from-template"); !ok || data != "debian 13" {
		t.Error("the template did not write into the mount")
	}
	must(d.AddTemplate("pve1", "local:vztmpl/app.tar", 1<<20, Template{OSType: "alpine", Files: map[string]string{"/srv/data/customers": "of the image"}, OCI: &OCIImage{
		Entrypoint: []string{"/app"}, Whiteouts: []string{"/srv/data"},
	}}))
	must(d.AddVolume("pve1", "tank:subvol-202-keep", 1<<30))
	must(d.WriteVolume("tank:subvol-202-keep", "/customers", "kept"))
	c.ends("OK", "POST", "/nodes/pve1/lxc", "vmid=202", "ostemplate=local:vztmpl/app.tar", "rootfs=local-lvm:1", "mp0=tank:subvol-202-keep,mp=/srv/data", "ostype=unmanaged")
	if got, _ := d.ReadFile(202, "/srv/data/customers"); got != "of the image" {
		t.Errorf("an image overwrites: %q", got)
	}
}

func TestCreateRefusals(t *testing.T) { // pve-facts §5.1, §5.2
	c, d := demoClient(t)
	base := []string{"vmid=200", "ostemplate=" + DemoTemplate13}
	for _, tc := range []struct {
		params []string
		status int
		reason string
		field  string
	}{
		{[]string{"rootfs=nosuch:1"}, 500, "storage 'nosuch' does not exist", ""},
		{[]string{"rootfs=backup:1"}, 400, "Parameter verification failed.", "storage"},
		{[]string{"mp0=local-lvm:1,mp=/x"}, 500, "mount points configured, but 'rootfs' not set - aborting", ""},
		{[]string{"rootfs=local-lvm:1", "pool=nosuch"}, 403, "Permission check failed (pool 'nosuch' does not exist)", ""},
		{[]string{"rootfs=local-lvm:1", "mp0=/srv/x,mp=/x"}, 403, "Permission check failed (mount point type bind is only allowed for root@pam)", ""},
		{[]string{"rootfs=local-lvm:1", "password=1234"}, 400, "Parameter verification failed.", "password"},
		{[]string{"rootfs=local-lvm:1", "ssh-public-keys=nonsense"}, 500, "SSH public key validation error", ""},
	} {
		r := c.refused(tc.status, tc.reason, "POST", "/nodes/pve1/lxc", append(base, tc.params...)...)
		if tc.field != "" && r.errors[tc.field] == "" {
			t.Errorf("%v: errors %v", tc.params, r.errors)
		}
	}
	d.SetQuorum(false)
	c.refused(500, "cluster not ready - no quorum?", "POST", "/nodes/pve1/lxc", append(base, "rootfs=local-lvm:1")...)
	d.SetQuorum(true)
	c.refused(500, "VM 7131 already exists on node 'pve1'", "POST", "/nodes/pve1/lxc", "vmid=7131", "ostemplate="+DemoTemplate13)
	if d.Config(200) != nil {
		t.Error("something was made")
	}
}

func TestCreateCleansUp(t *testing.T) { // pve-facts §5.4
	c, d := demoClient(t)
	must(d.AddTemplate("pve1", "local:vztmpl/odd.tar.gz", 1<<20, Template{Unknown: true, Files: map[string]string{"/a": "b"}}))
	world := d.Dump()
	c.ends("unable to create CT 200 - unable to detect OS distribution", "POST", "/nodes/pve1/lxc", "vmid=200", "ostemplate=local:vztmpl/odd.tar.gz", "rootfs=local-lvm:1")
	c.ends("unable to create CT 200 - volume 'local:vztmpl/nosuch.tar.gz' does not exist", "POST", "/nodes/pve1/lxc", "vmid=200", "ostemplate=local:vztmpl/nosuch.tar.gz", "rootfs=local-lvm:1")
	if d.Dump() != world {
		t.Error("a failed create left something")
	}
	d.FillStorage("local-lvm")
	if exit := c.task("POST", "/nodes/pve1/lxc", "vmid=200", "ostemplate="+DemoTemplate13, "rootfs=local-lvm:1"); !strings.HasSuffix(exit, "failed: exit code 2") {
		t.Errorf("on a full storage: %s", exit)
	}
	if d.Dump() != world {
		t.Error("a create without room left something")
	}
}

func TestB6CreateKilled(t *testing.T) { // hazards B6, pve-facts §5.4
	for at, want := range map[string]struct{ lock, orphan bool }{
		"stub":      {lock: true},
		"allocated": {lock: true, orphan: true},
		"extracted": {},
	} {
		t.Run(at, func(t *testing.T) {
			c, d := demoClient(t)
			c.srv.Inject(Fault{Kind: FaultTaskKill, At: at, Method: "POST", Path: "/lxc$"})
			c.ends("unexpected status", "POST", "/nodes/pve1/lxc", "vmid=200", "ostemplate="+DemoTemplate13, "rootfs=local-lvm:1", "description=mine")
			got := d.Config(200)
			_, made := d.Volume("local-lvm:vm-200-disk-0")
			if want.lock {
				if !maps.Equal(got, map[string]string{"lock": "create"}) || made != want.orphan {
					t.Errorf("left %v, volume %t", got, made)
				}
				for _, call := range [][]string{{"DELETE", web200}, {"PUT", web200 + "/config", "delete=lock"}} {
					c.refused(500, "CT is locked (create)", call[0], call[1], call[2:]...)
				}
				c.ends("CT is locked (create)", "POST", web200+"/status/start")
				return
			}
			if got["lock"] != "" || got["description"] != "mine\n" || got["hostname"] != "" || got["memory"] != "" {
				t.Errorf("half made: %v", got)
			}
		})
	}
}

const web200 = "/nodes/pve1/lxc/200"

func TestC2CreateTakesMuch(t *testing.T) { // hazards C2
	c, d := demoClient(t)
	c.ends("OK", "POST", "/nodes/pve1/lxc", "vmid=200", "ostemplate="+DemoTemplate13, "rootfs=local-lvm:1", "protection=1", "lock=create")
	if got := d.Config(200); got["lock"] != "create" || got["protection"] != "1" {
		t.Errorf("created with %v", got)
	}
}

func TestC3RootfsOptionsAreKept(t *testing.T) { // hazards C3
	c, d := demoClient(t)
	c.ends("OK", "POST", "/nodes/pve1/lxc", "vmid=200", "ostemplate="+DemoTemplate13, "rootfs=local-lvm:1,acl=1,mountoptions=noatime;nosuid,quota=0,replicate=0")
	if got := d.Config(200)["rootfs"]; got != "local-lvm:vm-200-disk-0,acl=1,mountoptions=noatime;nosuid,quota=0,replicate=0,size=1G" {
		t.Errorf("rootfs %s", got)
	}
}

func TestRestoreOverwrites(t *testing.T) { // pve-facts §5.3, pve-observed 16, hazards A2
	c, d := demoClient(t)
	d.SetRunning(5004, false)
	archive := d.Backup(5004, "backup", "", false)
	kept, _ := d.Volume(d.VolumeOf(5004, "mp1"))
	c.refused(500, "CT 5004 already exists on node 'pve1'", "POST", "/nodes/pve1/lxc", "vmid=5004", "ostemplate="+archive, "restore=1")
	c.ends("OK", "POST", "/nodes/pve1/lxc", "vmid=5004", "ostemplate="+archive, "restore=1", "force=1", "storage=local-lvm")
	if _, ok := d.VolumeByIdentity(kept.Identity); ok {
		t.Error("a volume of the old container survived")
	}
	again, _ := d.Volume(d.VolumeOf(5004, "mp1"))
	if len(again.Content) != 0 {
		t.Errorf("a mount that was not backed up came back with %v", again.Content)
	}
	if got, _ := d.ReadFile(5004, "/var/vmail/inbox"); got != "letters" {
		t.Errorf("the backup's data: %q", got)
	}
	// with a rootfs in the request nothing else is made, and the saved data lands inside of it
	c.ends("OK", "POST", "/nodes/pve1/lxc", "vmid=5004", "ostemplate="+archive, "restore=1", "force=1", "rootfs=local-lvm:8")
	root, _ := d.Volume(d.VolumeOf(5004, "rootfs"))
	if d.VolumeOf(5004, "mp0") != "" || root.Content["/var/vmail/inbox"] != "letters" {
		t.Errorf("mp0 %q, root file system %v", d.VolumeOf(5004, "mp0"), root.Content)
	}
	c.ends("OK", "POST", "/nodes/pve1/lxc", "vmid=5010", "ostemplate="+archive, "restore=1", "storage=local-lvm", "unique=1", "hostname=copy")
	if got := d.Config(5010); got["hostname"] != "copy" || strings.Contains(got["net0"], "BC:24:11:00:50:04") {
		t.Errorf("unique restore: %v", got)
	}
}

func TestOCICreate(t *testing.T) { // pve-facts §10.7, hazards C7, C8
	c, d := demoClient(t)
	must(d.AddTemplate("pve1", "local:vztmpl/app.tar", 1<<20, Template{OCI: &OCIImage{
		Entrypoint: []string{"/entry.sh", "arg one"}, Cmd: []string{"--flag"}, Env: []string{"A=image", "B=2"}, User: true, UID: 1000, GID: 1000, WorkingDir: "/data",
	}}))
	c.ends("OK", "POST", "/nodes/pve1/lxc", "vmid=200", "ostemplate=local:vztmpl/app.tar", "rootfs=local-lvm:1", "ostype=unmanaged", "entrypoint=/bin/false", "env=STALE=1", "net0=name=eth0,bridge=vmbr0")
	got := d.Config(200)
	if got["entrypoint"] != "/entry.sh 'arg one' --flag" || got["env"] != "A=image\x00B=2" || got["cmode"] != "console" || !strings.Contains(got["net0"], "host-managed=1") {
		t.Errorf("config %q", got)
	}
	c.ends("OK", "POST", web200+"/status/start")
	c.ends("OK", "POST", web200+"/status/stop")
	archive := d.Backup(200, "backup", "", false)
	c.ends("WARNINGS: 1", "POST", "/nodes/pve1/lxc", "vmid=201", "ostemplate="+archive, "restore=1", "storage=local-lvm")
	if strings.Contains(string(c.ok("GET", "/nodes/pve1/lxc/201/config")), "lxc.init.uid") {
		t.Error("a token restored raw keys")
	}
}
