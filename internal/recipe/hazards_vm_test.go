package recipe_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// refusedVM: both ways refuse with a code, and nothing is sent.
func refusedVM(t *testing.T, code string, spoil func(*world)) {
	t.Helper()
	for _, s := range vmScenes() {
		w := newVMWorld()
		spoil(w)
		before := w.dumpVM()
		_, err := w.applyVM(t, s.req())
		if err == nil || !strings.Contains(err.Error(), code) {
			t.Errorf("%s: %v, want %s", s.name, err, code)
		}
		if n := w.server.Mutations(); n > 0 || w.dumpVM() != before {
			t.Errorf("%s: %d changes were sent", s.name, n)
		}
	}
}

func TestA1VMDiskThatAnotherVMUses(t *testing.T) {
	for _, key := range []string{"scsi0", "scsi2"} {
		refusedVM(t, "volume_shared", func(w *world) {
			w.cluster.AddVM(pvesim.VMSpec{VMID: 7180, Config: map[string]string{"name": "other", "scsi5": w.cluster.VolumeOf(7131, key) + ",size=8G"}})
		})
	}
}

func TestA4VMBackupJobInTheWindow(t *testing.T) {
	refusedVM(t, "backup_window", func(w *world) {
		w.cluster.AddBackupJob("nightly", map[string]string{"vmid": "7131", "storage": "local"}, w.clock.Add(time.Minute))
	})
}

func TestA6VMStorageThatIsGone(t *testing.T) {
	refusedVM(t, "storage_unavailable", func(w *world) {
		w.cluster.AddStorage(pvesim.StorageSpec{ID: "att1", Type: "dir", Content: []string{"images"}})
		w.cluster.SetConfig(7131, "unused0", "att1:7131/vm-7131-disk-0.raw")
		w.cluster.RemoveStorage("att1")
	})
}

// A parking VM that came to hold something else is not destroyed, whether a key of it names the volume or only its storage does:
// the operation stops and says what it holds.
func TestA3VMParkingThatHoldsSomethingElse(t *testing.T) {
	const theirs = "local-lvm:vm-907131-disk-7"
	for name, key := range map[string]string{"attached": "scsi9", "unused": "unused3", "on the storage only": ""} {
		w := newVMWorld()
		w.server.Inject(pvesim.Fault{Kind: pvesim.FaultWorld, Method: "POST", Path: "/7131/status/start$", World: func(c *pvesim.Cluster) {
			if err := c.AddVolume("pve1", theirs, 1<<30); err != nil {
				panic(err)
			}
			if key != "" {
				c.SetConfig(907131, key, theirs)
			}
		}})
		_, err := w.applyVM(t, recipe.Request{Want: wantsVM()})
		if err == nil || !strings.Contains(err.Error(), theirs) {
			t.Errorf("%s: it says %v", name, err)
		}
		if _, there := w.cluster.Volume(theirs); !there || w.server.FaultsStruck() == 0 {
			t.Errorf("%s: %s is gone", name, theirs)
		}
	}
}

// A storage that went away since makes accept refuse to destroy the old VM: what it owns there cannot be seen, and Proxmox would
// leave it behind without an owner.
func TestA6VMAcceptWhileAStorageIsGone(t *testing.T) {
	w := newVMWorld()
	r, err := w.applyVM(t, recipe.Request{Want: wantsVMReplaced()})
	mustVM(t, r, err, recipe.StatusAwaitingTrust)
	w.cluster.AddStorage(pvesim.StorageSpec{ID: "att1", Type: "dir", Content: []string{"images"}})
	w.cluster.SetConfig(7131, "unused7", "att1:7131/vm-7131-disk-0.raw")
	w.cluster.RemoveStorage("att1")
	mutations := w.server.Mutations()
	if _, err := w.reconcileVM(t, wantsVMReplaced(), r.Operation, "accept"); err == nil || !strings.Contains(err.Error(), "att1:7131/vm-7131-disk-0.raw") {
		t.Errorf("it says %v", err)
	}
	if n := w.server.Mutations() - mutations; n > 0 {
		t.Errorf("%d changes were sent", n)
	}
}

func TestB2VMTaskOverManyGuests(t *testing.T) {
	refusedVM(t, "task_running", func(w *world) { w.cluster.StartTask("pve1", "vzdump", "", "root@pam") })
}

// A move dies after the rename while an orphan of the same size lies under the same VMID: the new disk is told from it by
// what the record says was there before.
func TestFaultsVMB5HoleBesideAnOrphanOfEqualSize(t *testing.T) {
	w := newVMWorld()
	if err := w.cluster.AddVolume("pve1", "local-lvm:vm-7131-disk-7", 32<<30); err != nil {
		t.Fatal(err)
	}
	b := base{start: w}
	w = b.freshVM()
	if _, err := w.applyVM(t, recipe.Request{Want: wantsVM()}); err != nil {
		t.Fatal(err)
	}
	var moves []int
	for _, r := range w.server.Requests() {
		if strings.HasSuffix(r.Path, "/move_disk") {
			moves = append(moves, r.Mutation)
		}
	}
	if len(moves) == 0 {
		t.Fatal("no disk was moved")
	}
	for _, at := range []string{"renamed", "source-written"} {
		for _, n := range moves {
			w := b.freshVM()
			w.server.Inject(pvesim.Fault{Kind: pvesim.FaultTaskKill, At: at, Mutation: n})
			_, err := w.applyVM(t, recipe.Request{Want: wantsVM()})
			if w.server.FaultsStruck() == 0 {
				t.Errorf("%s at change %d: the worker was not killed", at, n)
			}
			w.server.ClearFaults()
			for range 3 {
				j := w.recordVM(t, 7131)
				if err == nil || j == nil {
					break
				}
				_, err = w.reconcileVM(t, wantsVM(), j.Operation, "resume")
			}
			if err == nil && w.content(7131, "scsi0", "/etc/os-release") != "VERSION_ID=13" {
				t.Errorf("%s at change %d: scsi0 is %s", at, n, w.cluster.Config(7131)["scsi0"])
			}
			if v, ok := w.cluster.Volume("local-lvm:vm-7131-disk-7"); !ok || w.cluster.VolumeOf(7131, "scsi0") == v.ID || w.cluster.VolumeOf(7131, "scsi1") == v.ID {
				t.Errorf("%s at change %d: the orphan was taken or deleted", at, n)
			}
		}
	}
}

// The same where a kept disk is handed over and handed back: the orphan is never taken for it, and the disk that comes back is
// the one that went.
func TestFaultsVMB5HandedOverBesideAnOrphanOfEqualSize(t *testing.T) {
	w := newVMWorld()
	const orphan = "tank:vm-7131-disk-7"
	if err := w.cluster.AddVolume("pve1", orphan, 40<<30); err != nil {
		t.Fatal(err)
	}
	b := base{start: w}
	w = b.freshVM()
	kept, _ := w.cluster.Volume(w.cluster.VolumeOf(7131, "scsi2"))
	r, err := w.applyVM(t, recipe.Request{Want: wantsVMReplaced()})
	mustVM(t, r, err, recipe.StatusAwaitingTrust)
	forward := w.server.Mutations()
	if _, err := w.reconcileVM(t, wantsVM(), r.Operation, "rollback"); err != nil {
		t.Fatal(err)
	}
	moves := 0
	for _, q := range w.server.Requests() {
		if !strings.HasSuffix(q.Path, "/move_disk") {
			continue
		}
		moves++
		for _, at := range []string{"renamed", "source-written"} {
			w := b.freshVM()
			w.server.Inject(pvesim.Fault{Kind: pvesim.FaultTaskKill, At: at, Mutation: q.Mutation})
			_, err := w.applyVM(t, recipe.Request{Want: wantsVMReplaced()})
			for range 3 {
				j := w.recordVM(t, 7131, 9131)
				if j == nil {
					break
				}
				_, err = w.reconcileVM(t, wantsVM(), j.Operation, "rollback")
				if err != nil {
					_, err = w.reconcileVM(t, wantsVM(), j.Operation, "resume")
				}
			}
			if w.server.FaultsStruck() == 0 {
				t.Errorf("%s at change %d (of %d forward): the worker was not killed", at, q.Mutation, forward)
			}
			back, _ := w.cluster.Volume(w.cluster.VolumeOf(7131, "scsi2"))
			if lost := w.lost(); len(lost) > 0 || back.Identity != kept.Identity {
				t.Errorf("%s at change %d: %v, scsi2 is %s (%v)", at, q.Mutation, lost, back.ID, err)
			}
			if v, ok := w.cluster.Volume(orphan); !ok || v.Owner != 7131 {
				t.Errorf("%s at change %d: the orphan was taken or deleted", at, q.Mutation)
			}
		}
	}
	if moves < 2 {
		t.Errorf("%d disks were moved", moves)
	}
}

// Neither way moves a cloud-init drive: Proxmox would do it, and it would be one no more.
func TestC10VMCloudInitDriveIsNeverMoved(t *testing.T) {
	for _, s := range vmScenes() {
		w := newVMWorld()
		r, err := w.applyVM(t, s.req())
		mustVM(t, r, err, recipe.StatusAwaitingTrust)
		for _, q := range w.server.Requests() {
			if strings.HasSuffix(q.Path, "/move_disk") && (q.Params["disk"] == "ide0" || q.Params["disk"] == "ide2") {
				t.Errorf("%s: %s was moved", s.name, q.Params["disk"])
			}
		}
		if !strings.Contains(w.cluster.Config(7131)["ide0"], "vm-7131-cloudinit") {
			t.Errorf("%s: ide0 is %q", s.name, w.cluster.Config(7131)["ide0"])
		}
	}
}

// Our snapshot carries no tag of ours, covers kept disks only, and its text leads whoever finds it to reconcile.
func TestC11VMSnapshotSaysHowToReturnToIt(t *testing.T) {
	w := newVMWorld()
	req := recipe.Request{Want: wantsVM()}
	req.Want.VM.Snapshot = true
	r, err := w.applyVM(t, req)
	mustVM(t, r, err, recipe.StatusAwaitingTrust)
	found := false
	for _, q := range w.server.Requests() {
		if q.Method == "POST" && strings.HasSuffix(q.Path, "/snapshot") {
			found = true
			if text := q.Params["description"]; !strings.Contains(text, "reconcile") || !strings.Contains(text, r.Operation) || !strings.Contains(text, "kept disks only") {
				t.Errorf("the snapshot says %q", text)
			}
		}
	}
	if !found {
		t.Error("no snapshot was taken")
	}
	v, _ := w.cluster.Volume(w.cluster.VolumeOf(7131, "scsi2"))
	old, _ := w.cluster.Volume(w.cluster.Config(7131)["unused0"])
	if len(v.Snapshots) != 1 || len(old.Snapshots) != 0 {
		t.Errorf("it covers scsi2 %v and the old scsi0 %v", v.Snapshots, old.Snapshots)
	}
	if strings.Contains(w.cluster.Config(7131)["tags"], "pvrx") {
		t.Errorf("tags %q", w.cluster.Config(7131)["tags"])
	}
}

// An older snapshot of the user's keeps the old system disk: accept leaves it, says so, and ends all the same.
func TestC12VMOlderSnapshotKeepsTheOldDisk(t *testing.T) {
	w := newVMWorld()
	w.cluster.Snapshot(7131, "before-upgrade")
	old := w.cluster.VolumeOf(7131, "scsi0")
	r, err := w.applyVM(t, recipe.Request{Want: wantsVM()})
	mustVM(t, r, err, recipe.StatusAwaitingTrust)
	if !strings.Contains(strings.Join(r.Preview.Warnings, " "), "before-upgrade") {
		t.Errorf("the plan does not say it: %v", r.Preview.Warnings)
	}
	r, err = w.reconcileVM(t, wantsVM(), r.Operation, "accept")
	mustVM(t, r, err, recipe.StatusReady)
	if _, there := w.cluster.Volume(old); !there || !strings.Contains(strings.Join(r.Warnings, " "), "before-upgrade") {
		t.Errorf("the old disk is there: %v; warnings %v", there, r.Warnings)
	}
}

// Somebody starts the VM right before its disks are taken off: the task ends well and proves nothing. What waits is reverted,
// and everything is taken back.
func TestC13VMStartedBeforeTheDetach(t *testing.T) {
	b := vmScenes()[0].baseVM(t)
	for i, q := range b.sent {
		if q.Method != "POST" || !strings.HasSuffix(q.Path, "/7131/config") {
			continue
		}
		w := b.freshVM()
		w.server.Inject(pvesim.Fault{Kind: pvesim.FaultWorld, Mutation: i + 1, World: func(c *pvesim.Cluster) { c.SetRunning(7131, true) }})
		_, err := w.applyVM(t, b.req())
		if err == nil {
			t.Error("it went through on a running VM")
		}
		reverted := false
		for _, r := range w.server.Requests() {
			reverted = reverted || strings.Contains(r.Params["revert"], "scsi0")
		}
		if !reverted {
			t.Error("what waits for the next stop was not reverted")
		}
		if now := w.dumpVM(); now != b.before {
			t.Errorf("not as before (%v):\n%s", err, difference(b.before, now))
		}
		return
	}
	t.Error("no detach was sent")
}

// Keys of unused disks are used again. Whoever rearranged them while the VM waited for trust loses nothing: accept deletes the old
// disks by their volume ids, wherever they stand, and what stands in their place stays.
func TestC13VMUnusedKeysThatWereUsedAgain(t *testing.T) {
	w := newVMWorld()
	old := []string{w.cluster.VolumeOf(7131, "scsi0"), w.cluster.VolumeOf(7131, "scsi1")}
	r, err := w.applyVM(t, recipe.Request{Want: wantsVM()})
	mustVM(t, r, err, recipe.StatusAwaitingTrust)
	const theirs = "local-lvm:vm-7131-disk-9"
	if err := w.cluster.AddVolume("pve1", theirs, 1<<30); err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{"unused0": theirs, "unused1": old[0], "unused4": old[1]} {
		w.cluster.SetConfig(7131, key, value)
	}
	r, err = w.reconcileVM(t, wantsVM(), r.Operation, "accept")
	mustVM(t, r, err, recipe.StatusReady)
	for _, id := range old {
		if _, there := w.cluster.Volume(id); there {
			t.Errorf("%s is still there", id)
		}
	}
	if _, there := w.cluster.Volume(theirs); !there || w.cluster.Config(7131)["unused0"] != theirs {
		t.Errorf("%s is there: %v; unused0 is %q", theirs, there, w.cluster.Config(7131)["unused0"])
	}
}

// A disk that somebody put under the key of a new one while the VM waited for trust is not the operation's: a rollback stops there.
func TestC13VMRollbackLeavesWhatSomebodyElsePutThere(t *testing.T) {
	w := newVMWorld()
	r, err := w.applyVM(t, recipe.Request{Want: wantsVM()})
	mustVM(t, r, err, recipe.StatusAwaitingTrust)
	const theirs = "local-lvm:vm-7131-disk-9"
	if err := w.cluster.AddVolume("pve1", theirs, 1<<30); err != nil {
		t.Fatal(err)
	}
	w.cluster.SetConfig(7131, "unused5", w.cluster.VolumeOf(7131, "scsi1"))
	w.cluster.SetConfig(7131, "scsi1", theirs+",size=1G")
	if _, err := w.reconcileVM(t, wantsVM(), r.Operation, "rollback"); err == nil || !strings.Contains(err.Error(), theirs) {
		t.Errorf("it says %v", err)
	}
	if w.cluster.VolumeOf(7131, "scsi1") != theirs {
		t.Errorf("scsi1 is %q", w.cluster.Config(7131)["scsi1"])
	}
}

// An old disk that somebody attached again while the VM waited for trust is in use: accept does not delete it.
func TestC13VMOldDiskThatIsInUseAgain(t *testing.T) {
	w := newVMWorld()
	old := w.cluster.VolumeOf(7131, "scsi1")
	r, err := w.applyVM(t, recipe.Request{Want: wantsVM()})
	mustVM(t, r, err, recipe.StatusAwaitingTrust)
	w.cluster.SetConfig(7131, "unused1", "")
	w.cluster.SetConfig(7131, "scsi9", old+",size=4G")
	if _, err := w.reconcileVM(t, wantsVM(), r.Operation, "accept"); err == nil || !strings.Contains(err.Error(), "scsi9") {
		t.Errorf("it says %v", err)
	}
	if _, there := w.cluster.Volume(old); !there {
		t.Error("a disk in use was deleted")
	}
}

func TestC14VMOneDiskUnderTwoKeys(t *testing.T) {
	refusedVM(t, "mount_unclassified", func(w *world) {
		w.cluster.SetConfig(7131, "sata1", w.cluster.VolumeOf(7131, "scsi2")+",size=40G")
	})
}

// A disk that a snapshot uses cannot be handed over: said at the plan, before anything stops.
func TestC14VMReplacedKeptDiskInASnapshot(t *testing.T) {
	w := newVMWorld()
	w.cluster.Snapshot(7131, "daily")
	if _, err := w.applyVM(t, recipe.Request{Want: wantsVMReplaced()}); err == nil || !strings.Contains(err.Error(), "kept_in_snapshot") || w.server.Mutations() > 0 {
		t.Errorf("%v after %d changes", err, w.server.Mutations())
	}
}
