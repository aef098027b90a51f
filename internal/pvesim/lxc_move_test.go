package pvesim

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
)

// spare puts an empty parking guest beside the demo's guests.
func spare(d *Demo) {
	d.AddContainer(ContainerSpec{VMID: 9001, Config: map[string]string{"rootfs": "local-lvm:1"}})
}

func TestMoveKeepsDataOptionsAndIdentity(t *testing.T) { // pve-observed 1, pve-facts §6.1
	c, d := demoClient(t)
	spare(d)
	d.SetRunning(5001, false)
	before, _ := d.Volume(d.VolumeOf(5001, "mp0"))
	c.ends("OK", "POST", web+"/move_volume", "volume=mp0", "target-vmid=9001", "digest="+d.Digest(5001), "target-digest="+d.Digest(9001))
	if got := d.Config(9001)["mp0"]; got != "tank:subvol-9001-disk-0,mp=/srv/data,acl=1,backup=1,mountoptions=noatime;nosuid,size=100G" {
		t.Errorf("parked as %s", got)
	}
	if _, there := d.Config(5001)["mp0"]; there {
		t.Error("the source still has the key")
	}
	parked, _ := d.Volume(d.VolumeOf(9001, "mp0"))
	if parked.Identity != before.Identity || parked.Digest() != before.Digest() {
		t.Error("the data was not simply renamed")
	}
	c.ends("OK", "POST", "/nodes/pve1/lxc/9001/move_volume", "volume=mp0", "target-vmid=5001")
	after, _ := d.Volume(d.VolumeOf(5001, "mp0"))
	if after.Identity != before.Identity {
		t.Error("another volume came back")
	}
}

func TestMoveRefusals(t *testing.T) { // pve-facts §6.1: the texts, in their order
	for _, tc := range []struct {
		name   string
		before func(*Demo)
		params []string
		want   string
	}{
		{"both kinds", nil, []string{"volume=mp0", "target-vmid=9001", "storage=tank"}, "either set storage or target-vmid, but not both"},
		{"rootfs", nil, []string{"volume=rootfs", "target-vmid=9001", "target-volume=mp3"}, "Cannot move to/from 'rootfs'"},
		{"unused to used", nil, []string{"volume=unused0", "target-vmid=9001", "target-volume=mp3"}, "Moving an unused volume to a used one is not possible"},
		{"no target", nil, []string{"volume=mp0", "target-vmid=9999"}, "could not find CT 9999"},
		{"other node", func(d *Demo) { _ = d.MoveGuest(9001, "pve2") }, []string{"volume=mp0", "target-vmid=9001"}, "Both containers need to be on the same node"},
		{"source locked", func(d *Demo) { d.Lock(5001, "backup") }, []string{"volume=mp0", "target-vmid=9001"}, "CT is locked (backup)"},
		{"target locked", func(d *Demo) { d.Lock(9001, "snapshot") }, []string{"volume=mp0", "target-vmid=9001"}, "CT is locked (snapshot)"},
		{"template", func(d *Demo) { d.SetConfig(9001, "template", "1") }, []string{"volume=mp0", "target-vmid=9001"}, "Can't move volumes from or to template CT"},
		{"digest", nil, []string{"volume=mp0", "target-vmid=9001", "digest=0"}, "Container 5001: " + textDigest},
		{"target digest", nil, []string{"volume=mp0", "target-vmid=9001", "target-digest=0"}, "Container 9001: " + textDigest},
		{"no such key", nil, []string{"volume=mp7", "target-vmid=9001"}, "volume 'mp7' for container '5001' does not exist"},
		{"key taken", func(d *Demo) { d.SetConfig(9001, "mp0", "local-lvm:1,mp=/x") }, []string{"volume=mp0", "target-vmid=9001"}, "Target volume key 'mp0' is already in use for container '9001'"},
		{"in a snapshot", func(d *Demo) { d.Snapshot(5001, "s1") }, []string{"volume=mp0", "target-vmid=9001"}, "Cannot move volume used by a snapshot to another container"},
		{"bind mount", nil, []string{"volume=mp2", "target-vmid=9001"}, "Cannot move a bindmount or device mount to another container"},
		{"running", func(d *Demo) { d.SetRunning(5001, true) }, []string{"volume=mp0", "target-vmid=9001"}, "Cannot move in-use volume while the source CT is running - detach or shutdown first"},
		{"no rename", func(d *Demo) {
			d.AddStorage(StorageSpec{ID: "plain", Type: "dir"})
			d.SetConfig(5001, "mp5", "plain:0,mp=/five")
		}, []string{"volume=mp5", "target-vmid=9001"}, "Storage does not support moving of this disk to another container"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, d := demoClient(t)
			spare(d)
			d.SetRunning(5001, false)
			if tc.before != nil {
				tc.before(d)
			}
			world := d.Dump()
			c.refused(500, tc.want, "POST", web+"/move_volume", tc.params...)
			if d.Dump() != world {
				t.Error("the refusal changed something")
			}
		})
	}
}

func TestB4MoveHole(t *testing.T) { // hazards B4, pve-facts §6.3
	for name, hurt := range map[string]func(*Demo){
		"target protected":       func(d *Demo) { d.Protect(9001, true) },
		"storage lost rootdir":   func(d *Demo) { d.AddStorage(StorageSpec{ID: "tank", Type: "zfspool", Content: []string{"images"}}) },
		"killed between configs": nil,
	} {
		t.Run(name, func(t *testing.T) {
			c, d := demoClient(t)
			spare(d)
			d.SetRunning(5001, false)
			v, _ := d.Volume(d.VolumeOf(5001, "mp0"))
			want := "unexpected status"
			switch {
			case strings.HasPrefix(name, "target"):
				want = "can't update CT 9001 drive 'mp0' - protection mode enabled"
			case strings.HasPrefix(name, "storage"):
				want = "storage 'tank' does not allow content type 'rootdir' (Container)"
			default:
				c.srv.Inject(Fault{Kind: FaultTaskKill, At: "source-written", Path: "/move_volume$"})
			}
			if hurt != nil {
				hurt(d)
			}
			c.ends(want, "POST", web+"/move_volume", "volume=mp0", "target-vmid=9001")
			if d.Config(5001)["mp0"] != "" || d.Config(9001)["mp0"] != "" {
				t.Error("somebody's configuration names the volume")
			}
			lost, ok := d.VolumeByIdentity(v.Identity)
			if !ok || lost.Owner != 9001 {
				t.Errorf("the volume is %+v", lost)
			}
		})
	}
}

func TestMoveKilledAfterRename(t *testing.T) { // pve-facts §6.3: the source names what is gone
	c, d := demoClient(t)
	spare(d)
	d.SetRunning(5001, false)
	c.srv.Inject(Fault{Kind: FaultTaskKill, At: "renamed", Path: "/move_volume$"})
	c.ends("unexpected status", "POST", web+"/move_volume", "volume=mp0", "target-vmid=9001")
	if _, ok := d.Volume(d.VolumeOf(5001, "mp0")); ok || d.VolumeOf(5001, "mp0") == "" {
		t.Error("the source should name a volume that does not exist")
	}
}

func TestMoveIgnoresProtectionOfTheSource(t *testing.T) { // pve-observed 6
	c, d := demoClient(t)
	spare(d)
	d.SetRunning(5001, false)
	d.Protect(5001, true)
	c.ends("OK", "POST", web+"/move_volume", "volume=mp0", "target-vmid=9001")
}

func TestC1ForeignVolumeIsMoved(t *testing.T) { // hazards C1: it is renamed away from its owner
	c, d := demoClient(t)
	spare(d)
	d.SetRunning(5001, false)
	c.ends("OK", "POST", web+"/move_volume", "volume=mp1", "target-vmid=9001")
	if _, ok := d.Volume(d.VolumeOf(5002, "mp0")); ok {
		t.Error("5002 still has its volume")
	}
}

func TestB5NamesAreReused(t *testing.T) { // hazards B5, pve-facts §3.1: the lowest free number
	c, d := demoClient(t)
	spare(d)
	d.SetRunning(5001, false)
	must(d.AddVolume("pve1", "tank:subvol-9001-disk-0", 100<<30))
	c.ends("OK", "POST", web+"/move_volume", "volume=mp0", "target-vmid=9001")
	if got := d.VolumeOf(9001, "mp0"); got != "tank:subvol-9001-disk-1" {
		t.Errorf("moved to %s", got)
	}
}

func TestMoveTaskIsNotFoundByVMID(t *testing.T) { // hazards B2, pve-facts §6.1
	c, d := demoClient(t)
	spare(d)
	d.SetRunning(5001, false)
	c.ends("OK", "POST", web+"/move_volume", "volume=mp0", "target-vmid=9001")
	if got := string(c.ok("GET", "/nodes/pve1/tasks", "vmid=5001", "typefilter=move_volume")); got != "[]" {
		t.Errorf("found %s", got)
	}
	if got := string(c.ok("GET", "/nodes/pve1/tasks", "typefilter=move_volume")); !strings.Contains(got, `"id":"5001-mp0>9001-mp0"`) {
		t.Errorf("found %s", got)
	}
}

func TestDestroy(t *testing.T) { // pve-facts §4.1
	c, d := demoClient(t)
	d.SetRunning(5001, false)
	foreign, _ := d.Volume(d.VolumeOf(5001, "mp1"))
	must(d.AddVolume("pve1", "local-lvm:vm-5001-disk-9", 1<<30))
	d.AddBackupJob("mine", map[string]string{"vmid": "5001,5002", "storage": "backup"}, d.now())
	d.AddACL("/vms/5001/x", "user", "ops@pve", "PVEVMUser", true)
	c.ends("OK", "DELETE", web)
	dump := d.Dump()
	for _, gone := range []string{"lxc 5001", "acl /vms/5001 user", "tank:subvol-5001", "local-lvm:vm-5001-disk-0", "pool web guests=5001"} {
		if strings.Contains(dump, gone) {
			t.Errorf("%q is still there", gone)
		}
	}
	for _, kept := range []string{"local-lvm:vm-5001-disk-9", "backup:backup/vzdump-lxc-5001", "acl /vms/5001/x", "vmid=5001,5002"} {
		if !strings.Contains(dump, kept) {
			t.Errorf("%q is gone", kept)
		}
	}
	if v, ok := d.Volume(foreign.ID); !ok || v.Digest() != foreign.Digest() {
		t.Error("the other guest's volume was touched")
	}
}

func TestB3DestroyRefusals(t *testing.T) { // hazards B3, pve-facts §4.1: nothing has happened
	for _, tc := range []struct {
		before func(*Demo)
		want   string
	}{
		{func(d *Demo) { d.Protect(5001, true) }, "can't remove CT 5001 - protection mode enabled"},
		{func(d *Demo) { d.Lock(5001, "backup") }, "CT is locked (backup)"},
		{func(d *Demo) { d.AddHA(5001, map[string]string{"state": "ignored"}) }, "unable to remove CT 5001 - used in HA resources and purge parameter not set."},
		{func(d *Demo) { d.AddReplication("5001-0", "pve2") }, "There is a replication job '5001-0' for guest '5001' - Please remove that first."},
		{func(d *Demo) { d.SetRunning(5001, true) }, "unable to destroy CT 5001 - container is running"},
	} {
		c, d := demoClient(t)
		d.SetRunning(5001, false)
		tc.before(d)
		world := d.Dump()
		c.refused(500, tc.want, "DELETE", web)
		if d.Dump() != world {
			t.Errorf("%s: the refusal changed something", tc.want)
		}
	}
}

func TestA6DestroyDiesHalfWay(t *testing.T) { // hazards A6: rootfs gone, configuration still there
	for name, hurt := range map[string]struct {
		do   func(*Demo)
		want string
	}{
		"unused on a disabled storage": {func(d *Demo) {
			d.SetConfig(5001, "unused1", "nas:1")
			d.AddStorage(StorageSpec{ID: "nas", Type: "nfs", Disabled: true, Shared: true})
		}, "storage 'nas' is disabled"},
		"foreign mount on a removed storage": {func(d *Demo) {
			d.SetRawConfig(5001, "mp1", "gone:vm-5002-disk-1,mp=/srv/shared")
		}, "storage 'gone' does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			c, d := demoClient(t)
			d.SetRunning(5001, false)
			hurt.do(d)
			root := d.VolumeOf(5001, "rootfs")
			c.ends(hurt.want, "DELETE", web)
			if _, ok := d.Volume(root); ok {
				t.Error("the root file system is still there")
			}
			if d.VolumeOf(5001, "rootfs") != root {
				t.Error("the configuration changed")
			}
			c.ends(hurt.want, "DELETE", web)
		})
	}
}

func TestDestroyKilled(t *testing.T) { // pve-facts §4.1: the stub cannot be removed
	c, d := demoClient(t)
	d.SetRunning(5001, false)
	c.srv.Inject(Fault{Kind: FaultTaskKill, At: "volumes-freed", Method: "DELETE"})
	c.ends("unexpected status", "DELETE", web)
	if got := d.Config(5001); !maps.Equal(got, map[string]string{"lock": "destroyed"}) {
		t.Errorf("left: %v", got)
	}
	c.refused(500, "CT is locked (destroyed)", "DELETE", web)
	c.refused(500, "CT is locked (destroyed)", "PUT", web+"/config", "delete=lock")
}

func TestA1OwnVolumeMountedElsewhere(t *testing.T) { // hazards A1: erased under the other guest
	c, d := demoClient(t)
	d.SetRunning(5002, false)
	d.SetRunning(5001, false)
	c.ends("OK", "DELETE", "/nodes/pve1/lxc/5002")
	c.ends("volume '"+d.VolumeOf(5001, "mp1")+"' does not exist", "POST", web+"/status/start")
}

func TestResize(t *testing.T) { // pve-facts §2.4, pve-observed 7
	c, d := demoClient(t)
	for _, tc := range []struct{ key, size, want string }{
		{"rootfs", "8G", "unable to shrink disk size"},
		{"rootfs", "8704M", "disk is already at specified size"},
		{"rootfs", "8", "unable to shrink disk size"},
		{"mp1", "60G", "can't resize mount point owned by another container (5002)"},
	} {
		c.refused(500, tc.want, "PUT", web+"/resize", "disk="+tc.key, "size="+tc.size)
	}
	c.ends("OK", "PUT", web+"/resize", "disk=rootfs", "size=+512M")
	if got := d.Config(5001)["rootfs"]; !strings.HasSuffix(got, ",size=9G") {
		t.Errorf("rootfs %s", got)
	}
	if r := c.do("PUT", web+"/resize", "disk=rootfs", "size=9GiB"); r.errors["size"] != "value does not match the regex pattern" {
		t.Errorf("9GiB: %v", r.errors)
	}
}

func TestC16FilesystemDoesNotGrow(t *testing.T) { // hazards C16
	c, d := demoClient(t)
	status := func() float64 {
		var m struct{ Maxdisk float64 }
		if err := json.Unmarshal(c.ok("GET", web+"/status/current"), &m); err != nil {
			t.Fatal(err)
		}
		return m.Maxdisk
	}
	before := status()
	d.StickFilesystem(5001, "rootfs")
	c.ends("OK", "PUT", web+"/resize", "disk=rootfs", "size=+1G")
	if got := status(); got != before {
		t.Errorf("maxdisk %v, was %v", got, before)
	}
	if got := d.Config(5001)["rootfs"]; !strings.HasSuffix(got, ",size=9728M") {
		t.Errorf("rootfs %s", got)
	}
}
