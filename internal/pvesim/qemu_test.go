package pvesim

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// vmWorld has VM 201 with a system disk and a kept one, VM 202 with a disk, and an image to import.
func vmWorld(t *testing.T) (*Cluster, *client) {
	c := NewCluster(Options{})
	c.AddStorage(StorageSpec{ID: "local", Type: "dir", Content: []string{"images", "rootdir", "import", "iso", "backup"}, Options: map[string]string{"path": "/var/lib/vz"}})
	c.AddStorage(StorageSpec{ID: "thin", Type: "lvmthin", Options: map[string]string{"vgname": "vg"}})
	c.AddVM(VMSpec{VMID: 201, Config: map[string]string{
		"name": "db", "scsi0": "thin:8", "scsi1": "thin:20,discard=on,iothread=1,serial=DATA", "net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0",
		"boot": "order=scsi0;net0", "scsihw": "virtio-scsi-single",
	}, Files: map[string]map[string]string{"scsi0": {"/os": "old"}, "scsi1": {"/data": "precious"}}})
	c.AddVM(VMSpec{VMID: 202, Config: map[string]string{"scsi0": "thin:1", "boot": "order=scsi0"}})
	if err := c.AddImage(c.local, "local:import/cloud.qcow2", 1000, 2<<30, map[string]string{"/os": "new"}); err != nil {
		t.Fatal(err)
	}
	return c, newClient(t, c, c.AddToken("root@pam", "all", nil))
}

func (c *client) vm(vmid string, query ...string) map[string]any {
	c.t.Helper()
	var conf map[string]any
	if err := json.Unmarshal(c.ok("GET", "/nodes/pve1/qemu/"+vmid+"/config", query...), &conf); err != nil {
		c.t.Fatal(err)
	}
	return conf
}

func (c *client) mustTask(method, path string, params ...string) {
	c.t.Helper()
	if exit := c.task(method, path, params...); exit != exitOK {
		c.t.Fatalf("%s %s %v: %s", method, path, params, exit)
	}
}

// The whole way: a new system disk made on a parking VM, the old one detached, a snapshot of what
// stays, the new one moved over, and back again.
func TestVMRebuildInPlace(t *testing.T) {
	c, k := vmWorld(t)
	data, _ := c.Volume(c.VolumeOf(201, "scsi1"))
	before := k.vm("201")
	k.mustTask("POST", "/nodes/pve1/qemu", "vmid=9201", "scsi0=thin:0,import-from=local:import/cloud.qcow2,discard=on,ssd=1")
	k.mustTask("PUT", "/nodes/pve1/qemu/9201/resize", "disk=scsi0", "size=8G")
	k.mustTask("POST", "/nodes/pve1/qemu/201/config", "delete=scsi0")
	if conf := k.vm("201"); conf["unused0"] != "thin:vm-201-disk-0" || conf["boot"] != "order=net0" {
		t.Errorf("after the detach: %v", conf)
	}
	k.mustTask("POST", "/nodes/pve1/qemu/201/snapshot", "snapname=pre")
	k.mustTask("POST", "/nodes/pve1/qemu/9201/move_disk", "disk=scsi0", "target-vmid=201", "digest="+c.Digest(9201), "target-digest="+c.Digest(201))
	k.mustTask("POST", "/nodes/pve1/qemu/201/config", "boot=order=scsi0;net0")
	k.mustTask("POST", "/nodes/pve1/qemu/201/status/start")
	after := k.vm("201")
	for _, key := range []string{"net0", "smbios1", "vmgenid", "scsi1"} {
		if before[key] != after[key] {
			t.Errorf("%s was %v and is %v", key, before[key], after[key])
		}
	}
	if after["scsi0"] != "thin:vm-201-disk-2,discard=on,size=8G,ssd=1" || after["boot"] != "order=scsi0;net0" {
		t.Errorf("the new system: %v, boot %v", after["scsi0"], after["boot"])
	}
	if v, _ := c.Volume(c.VolumeOf(201, "scsi0")); v.Content["/os"] != "new" {
		t.Errorf("the new disk holds %v", v.Content)
	}
	if v, ok := c.VolumeByIdentity(data.Identity); !ok || v.ID != data.ID || v.Content["/data"] != "precious" {
		t.Errorf("the kept disk is %+v", v)
	}
	if len(driveKeys(c.Config(9201), true)) != 0 {
		t.Errorf("the parking VM still has %v", c.Config(9201))
	}
	k.mustTask("POST", "/nodes/pve1/qemu/201/status/stop")
	k.mustTask("POST", "/nodes/pve1/qemu/201/config", "delete=scsi0")
	k.mustTask("POST", "/nodes/pve1/qemu/201/snapshot/pre/rollback")
	k.mustTask("POST", "/nodes/pve1/qemu/201/config", "scsi0=thin:vm-201-disk-0", "boot=order=scsi0;net0")
	if v, _ := c.Volume(c.VolumeOf(201, "scsi0")); v.Content["/os"] != "old" {
		t.Errorf("the way back leads to %v", v.Content)
	}
}

// A disk that another VM names is erased under it by its owner's destruction.
func TestA1DestroyErasesADiskThatAnotherVMUses(t *testing.T) {
	c, k := vmWorld(t)
	k.mustTask("POST", "/nodes/pve1/qemu/202/config", "scsi5="+c.VolumeOf(201, "scsi1"))
	k.mustTask("DELETE", "/nodes/pve1/qemu/201")
	if exit := k.task("POST", "/nodes/pve1/qemu/202/status/start"); exit != "volume 'thin:vm-201-disk-1' does not exist" {
		t.Errorf("start of the other VM: %s", exit)
	}
}

// A destroy goes through although a disk cannot be freed: a warning, the VM is gone, the disk stays.
func TestA6VMDestroyLeavesADiskItCannotFree(t *testing.T) {
	c, k := vmWorld(t)
	volid := c.VolumeOf(201, "scsi1")
	c.AddStorage(StorageSpec{ID: "thin", Type: "lvmthin", Unreachable: true, Options: map[string]string{"vgname": "vg"}})
	if exit := k.task("DELETE", "/nodes/pve1/qemu/201"); !strings.HasPrefix(exit, "WARNINGS: ") {
		t.Errorf("destroy: %s", exit)
	}
	k.refused(500, "Configuration file 'nodes/pve1/qemu-server/201.conf' does not exist", "GET", "/nodes/pve1/qemu/201/config")
	if _, ok := c.Volume(volid); !ok {
		t.Errorf("%s is gone", volid)
	}
}

// Over an existing VM, a restore destroys by key what the archive has under that key, whatever it is
// by now.
func TestA2RestoreDestroysByKey(t *testing.T) {
	c, k := vmWorld(t)
	archive := c.Backup(201, "local", "", false)
	k.mustTask("POST", "/nodes/pve1/qemu/201/config", "scsi0=thin:1")
	fresh, _ := c.Volume(c.VolumeOf(201, "scsi0"))
	kept, _ := c.Volume(c.VolumeOf(201, "scsi1"))
	k.mustTask("POST", "/nodes/pve1/qemu/201/config", "scsi7=thin:1")
	extra, _ := c.Volume(c.VolumeOf(201, "scsi7"))
	k.refused(500, "unable to restore VM 201 - VM 201 already exists on node 'pve1'", "POST", "/nodes/pve1/qemu", "vmid=201", "archive="+archive)
	k.mustTask("POST", "/nodes/pve1/qemu", "vmid=201", "archive="+archive, "force=1")
	for name, v := range map[string]Volume{"the new scsi0": fresh, "the kept scsi1": kept} {
		if _, ok := c.VolumeByIdentity(v.Identity); ok {
			t.Errorf("%s survived", name)
		}
	}
	if _, ok := c.VolumeByIdentity(extra.Identity); !ok || !strings.Contains(strings.Join(sortedKeys(c.Config(201)), " "), "unused0") {
		t.Errorf("the disk that the archive knows nothing of: %v", c.Config(201))
	}
	if v, _ := c.Volume(c.VolumeOf(201, "scsi0")); v.Content["/os"] != "old" {
		t.Errorf("restored %v", v.Content)
	}
}

// A cloud-init drive moves, and is an ordinary disk with user data in it from then on.
func TestC10CloudInitDriveLosesItsMeaning(t *testing.T) {
	c, k := vmWorld(t)
	k.mustTask("POST", "/nodes/pve1/qemu/201/config", "ide2=thin:cloudinit", "ciuser=joe")
	if got := c.Config(201)["ide2"]; got != "thin:vm-201-cloudinit,media=cdrom" {
		t.Fatalf("ide2 is %s", got)
	}
	k.refused(400, "Parameter verification failed.", "PUT", "/nodes/pve1/qemu/201/config", "sata0=thin:cloudinit,color=red")
	k.refused(500, "sata0 - cloud-init drive is already attached at 'ide2'", "PUT", "/nodes/pve1/qemu/201/config", "sata0=thin:cloudinit")
	k.mustTask("POST", "/nodes/pve1/qemu/201/move_disk", "disk=ide2", "target-vmid=202")
	if got := c.Config(202)["ide2"]; got != "thin:vm-202-disk-1,media=cdrom,size=4M" {
		t.Errorf("after the move: %s", got)
	}
	k.mustTask("DELETE", "/nodes/pve1/qemu/202")
	if _, ok := c.Volume("thin:vm-202-disk-1"); !ok {
		t.Error("destroy took the moved cloud-init drive along")
	}
}

// On a running VM a detach that cannot be done live ends well and stays pending until the stop.
func TestC13DetachOfARunningVMStaysPending(t *testing.T) {
	c, k := vmWorld(t)
	k.mustTask("POST", "/nodes/pve1/qemu/201/config", "ide0=thin:1")
	k.mustTask("POST", "/nodes/pve1/qemu/201/status/start")
	k.mustTask("POST", "/nodes/pve1/qemu/201/config", "delete=ide0")
	if _, shown := k.vm("201")["ide0"]; shown {
		t.Error("the coming configuration shows ide0")
	}
	if _, shown := k.vm("201", "current=1")["ide0"]; !shown {
		t.Error("the present configuration hides ide0")
	}
	k.mustTask("POST", "/nodes/pve1/qemu/201/config", "delete=scsi1")
	if got := c.Config(201)["unused0"]; got != "thin:vm-201-disk-1" {
		t.Errorf("a scsi disk is unplugged at once: unused0 is %q", got)
	}
	k.mustTask("POST", "/nodes/pve1/qemu/201/status/stop")
	if conf := c.Config(201); conf["ide0"] != "" || conf["unused1"] != "thin:vm-201-disk-2" {
		t.Errorf("after the stop: %v", conf)
	}
}

// The same disk under two keys is refused with words about snapshots that do not exist.
func TestC14DiskUnderTwoKeys(t *testing.T) {
	c, k := vmWorld(t)
	k.mustTask("POST", "/nodes/pve1/qemu/201/config", "scsi9="+c.VolumeOf(201, "scsi1"))
	k.refused(500, "Can't move disk used by a snapshot to another VM", "POST", "/nodes/pve1/qemu/201/move_disk", "disk=scsi1", "target-vmid=202")
}

// An empty archive lets force replace the configuration of a VM, protected or not.
func TestEmptyArchiveReplacesAProtectedVM(t *testing.T) {
	c, k := vmWorld(t)
	c.SetConfig(201, "protection", "1")
	disk := c.VolumeOf(201, "scsi1")
	k.mustTask("POST", "/nodes/pve1/qemu", "vmid=201", "archive=", "force=1")
	if conf := c.Config(201); conf["scsi1"] != "" || conf["protection"] != "" {
		t.Errorf("the configuration is %v", conf)
	}
	if _, ok := c.Volume(disk); !ok {
		t.Errorf("%s is gone", disk)
	}
}

func TestImportNeedsTheRightToClone(t *testing.T) {
	c, _ := vmWorld(t)
	rights := map[string][]string{
		"/vms/300": {"VM.Allocate", "VM.Config.Disk"}, "/storage/thin": {"Datastore.AllocateSpace"}, "/storage/local": {"Datastore.Audit"},
	}
	k := newClient(t, c, c.AddToken("someone@pve", "a", rights))
	source := "scsi0=thin:0,import-from=" + c.VolumeOf(201, "scsi0")
	k.refused(403, "Permission check failed (/vms/201, VM.Clone)", "POST", "/nodes/pve1/qemu", "vmid=300", source)
	k.mustTask("POST", "/nodes/pve1/qemu", "vmid=300", "scsi0=thin:0,import-from=local:import/cloud.qcow2")
	rights["/vms/301"], rights["/vms/201"] = rights["/vms/300"], []string{"VM.Clone"}
	k = newClient(t, c, c.AddToken("someone@pve", "b", rights))
	k.mustTask("POST", "/nodes/pve1/qemu", "vmid=301", source)
	if v, _ := c.Volume(c.VolumeOf(301, "scsi0")); v.Content["/os"] != "old" || v.Size != 8<<30 {
		t.Errorf("imported %+v", v)
	}
}

// A worker that dies between the three steps of a move leaves what the steps have done.
func TestMoveDiskCanBreakInBetween(t *testing.T) {
	for at, want := range map[string]struct{ inSource, volume string }{
		"renamed":        {"thin:vm-201-disk-1", "thin:vm-202-disk-1"},
		"source-written": {"", "thin:vm-202-disk-1"},
	} {
		c, k := vmWorld(t)
		data, _ := c.Volume(c.VolumeOf(201, "scsi1"))
		k.srv.Inject(Fault{Kind: FaultTaskKill, Path: "/move_disk$", At: at})
		if exit := k.task("POST", "/nodes/pve1/qemu/201/move_disk", "disk=scsi1", "target-vmid=202"); exit != exitLost {
			t.Errorf("%s: ended with %s", at, exit)
		}
		if got, _, _ := strings.Cut(c.Config(201)["scsi1"], ","); got != want.inSource {
			t.Errorf("%s: the source names %q", at, got)
		}
		if v, _ := c.VolumeByIdentity(data.Identity); v.ID != want.volume || c.Config(202)["scsi1"] != "" {
			t.Errorf("%s: the data is %s, the target names %q", at, v.ID, c.Config(202)["scsi1"])
		}
	}
}

func TestVMPower(t *testing.T) {
	c, k := vmWorld(t)
	k.mustTask("POST", "/nodes/pve1/qemu/202/status/start")
	if exit := k.task("POST", "/nodes/pve1/qemu/202/status/shutdown", "timeout=1"); exit != "VM quit/powerdown failed - got timeout" {
		t.Errorf("a VM without a system: %s", exit)
	}
	k.mustTask("POST", "/nodes/pve1/qemu/201/status/start")
	k.mustTask("POST", "/nodes/pve1/qemu/201/status/suspend")
	k.refused(500, "VM is paused - cannot shutdown", "POST", "/nodes/pve1/qemu/201/status/shutdown")
	k.mustTask("POST", "/nodes/pve1/qemu/201/status/resume")
	k.mustTask("POST", "/nodes/pve1/qemu/201/status/shutdown")
	if c.Running(201) {
		t.Error("VM 201 still runs")
	}
	k.refused(500, "VM 201 not running", "POST", "/nodes/pve1/qemu/201/status/reset")
	k.refused(500, "No QEMU guest agent configured", "POST", "/nodes/pve1/qemu/201/agent/ping")
}

// Clones have their own identity, linked ones hold on to their template.
func TestVMClones(t *testing.T) {
	c, k := vmWorld(t)
	k.mustTask("POST", "/nodes/pve1/qemu/201/clone", "newid=210", "name=copy")
	source, copied := c.Config(201), c.Config(210)
	for _, key := range []string{"net0", "smbios1", "vmgenid"} {
		if source[key] == copied[key] {
			t.Errorf("%s of the clone is the source's: %s", key, copied[key])
		}
	}
	if v, _ := c.Volume(c.VolumeOf(210, "scsi1")); v.Content["/data"] != "precious" || v.Owner != 210 {
		t.Errorf("the clone's disk is %+v", v)
	}
	k.mustTask("POST", "/nodes/pve1/qemu/210/template")
	k.refused(500, "parameter 'storage' not allowed for linked clones", "POST", "/nodes/pve1/qemu/210/clone", "newid=211", "storage=local")
	k.mustTask("POST", "/nodes/pve1/qemu/210/clone", "newid=211")
	if got := c.VolumeOf(211, "scsi1"); got != "thin:vm-211-disk-1" {
		t.Errorf("the linked clone's disk is %s", got)
	}
	k.refused(500, "unable to create VM 211: config file already exists", "POST", "/nodes/pve1/qemu/210/clone", "newid=211")
}

// While a task works on a VM, changes of that VM wait for it, and its effect is not seen before its end.
func TestVMChangesWaitForTasks(t *testing.T) {
	c, k := vmWorld(t)
	c.SetTaskDuration(30 * time.Millisecond)
	var upid string
	if err := json.Unmarshal(k.ok("POST", "/nodes/pve1/qemu/201/config", "scsi5=thin:1"), &upid); err != nil {
		t.Fatal(err)
	}
	if conf := k.vm("201"); conf["scsi5"] != nil {
		t.Errorf("scsi5 is there while the task runs: %v", conf["scsi5"])
	}
	k.ok("PUT", "/nodes/pve1/qemu/201/config", "memory=1024")
	if conf := k.vm("201"); conf["scsi5"] == nil || conf["memory"] != "1024" {
		t.Errorf("after both: %v", conf)
	}
	if exit := k.exit(upid); exit != exitOK {
		t.Errorf("the task: %s", exit)
	}
}
