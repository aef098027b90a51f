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
		if now := w.dumpVM(); now != b.before {
			t.Errorf("not as before (%v):\n%s", err, difference(b.before, now))
		}
		return
	}
	t.Error("no detach was sent")
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
