package preview

import (
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// stuckUpdate is an update that stopped after the old container was destroyed: its volume waits on CT 900012.
func stuckUpdate() (Facts, guest.Journal) {
	f, w := vaultUpdate()
	was := *f.Journal.Contract.App
	j := guest.Journal{
		Version: 1, Operation: "op-6001-20261201-eeee", Kind: "update", Guest: 6001, Parking: 900012, Holder: 900012, Node: "pve1",
		Stage: "start", Index: 11, Of: 12, State: guest.JournalStuck, Digest: "d1", New: true, Config: f.Guest.Config.Clone().Values,
		Wanted: w.Install(), Installed: &f.Journal.Contract.Installed, Doomed: []string{"local-lvm:vm-6001-disk-0"},
		Parked: []guest.ParkedVolume{{Key: "mp0", Value: f.Guest.Config.Values["mp0"], Parked: "local-lvm:vm-900012-disk-1", To: 900012}},
		App:    &guest.Deployment{Next: guest.Application{Archive: "local:vztmpl/pvrx-nginx-456789abcdef.tar"}, Was: &was},
	}
	delete(j.Config, "env")
	delete(f.Volumes, volumeID("local-lvm:vm-6001-disk-1"))
	f.stored("local-lvm:vm-900012-disk-1", 900012, 8*guest.GiB)
	f.Users[volumeID("local-lvm:vm-900012-disk-1")] = []User{{VMID: 900012, Kind: guest.KindContainer, Key: "mp0"}}
	f.Guest.Config.Digest = "d9"
	f.unset("mp0")
	f.Journal.Journal = nil
	return f, j
}

func TestAnUpdateIsTakenBackFromTheImageBefore(t *testing.T) {
	t.Parallel()
	f, j := stuckUpdate()
	j.App.New = []guest.NewVolume{{Key: "mp1", Path: "/log", Now: "local-lvm:vm-6001-disk-2"}, {Key: "mp2", Path: "/media", Value: "/srv/media,mp=/media"}}
	f.stored("local-lvm:vm-6001-disk-2", 6001, guest.GiB)
	p := ReconcileInstance(OpRollback, j, f)
	wantDue(t, p, OpRollback)
	wantFate(t, p, "rootfs", DataErased, MountRecreated)
	wantFate(t, p, "mp0", DataPreserved, MountReattached)
	wantFate(t, p, "mp1", DataErased, MountDropped)
	if !strings.Contains(p.AlsoLost["root file system"], "docker.io/library/nginx sha256:0123456789ab…") || !warned(p, "not rolled back") {
		t.Errorf("%v %q", p.AlsoLost, p.Warnings)
	}
	p = ReconcileInstance(OpResume, j, f)
	wantDue(t, p, OpResume)
	wantFate(t, p, "mp1", DataKept, MountKept)

	delete(f.Volumes, volumeID(archiveOld))
	if p := ReconcileInstance(OpRollback, j, f); len(p.Blockers) > 0 || !warned(p, archiveOld, "fetched again") {
		t.Errorf("%v %q", codesOf(p.Blockers), p.Warnings)
	}
	j.App.Was.Archive, j.App.Was.Digest = "", ""
	wantDue(t, ReconcileInstance(OpRollback, j, f), OpRollback, CodeNeedsReconcile)

	f, j = stuckUpdate()
	j.New = false
	j.State, j.Stage = guest.JournalStuck, "create"
	if p := ReconcileInstance(OpResume, j, f); len(p.Blockers) > 0 || !warned(p, "pvrx-nginx-456789abcdef.tar", "fetched again") {
		t.Errorf("%v %q", codesOf(p.Blockers), p.Warnings)
	}
	delete(f.Volumes, volumeID("local-lvm:vm-900012-disk-1"))
	wantDue(t, ReconcileInstance(OpResume, j, f), OpResume, CodeMountUnclassified)
	wantDue(t, ReconcileInstance(OpRollback, j, f), OpRollback, CodeMountUnclassified)
	wantDue(t, ReconcileInstance(OpClose, j, f), OpClose, CodeParkingHoldsData)
}

func TestAnInstallIsTakenBackByRemovingWhatItMade(t *testing.T) {
	t.Parallel()
	f, w := vault()
	j := guest.Journal{
		Version: 1, Operation: "op-6001-20261201-ffff", Kind: "install", Guest: 6001, Holder: 6001, Node: "pve1", Stage: "start", Index: 4, Of: 5,
		State: guest.JournalStuck, New: true, Wanted: w.Install(), Config: map[string]string{"hostname": "vault"}, App: &guest.Deployment{},
	}
	f.Journal.Contract = nil
	for action, fates := range map[Operation][2]string{OpRollback: {"erased", "dropped"}, OpResume: {"kept", "kept"}, OpClose: {"kept", "kept"}} {
		p := ReconcileInstance(action, j, f)
		wantDue(t, p, action)
		for _, v := range p.Volumes {
			if v.Data.String() != fates[0] || v.Mount.String() != fates[1] {
				t.Errorf("%s: %s is %s %s", action, v.Key, v.Data, v.Mount)
			}
		}
	}
	f.set("mp5", "local-lvm:vm-6002-disk-1,mp=/theirs")
	f.stored("local-lvm:vm-6002-disk-1", 6002, guest.GiB)
	wantFate(t, ReconcileInstance(OpRollback, j, f), "mp5", DataExcluded, MountDropped)
}

func TestARemovalGoesOnOrIsTakenBackWhileNothingIsRemoved(t *testing.T) {
	t.Parallel()
	f, _ := vault()
	j := guest.Journal{
		Version: 1, Operation: "op-6001-20261201-9999", Kind: "remove", Guest: 6001, Holder: 6001, Node: "pve1", Stage: "stop", Index: 2, Of: 3,
		State: guest.JournalStuck, Config: f.Guest.Config.Clone().Values, App: &guest.Deployment{Was: f.Journal.Contract.App},
	}
	p := ReconcileInstance(OpResume, j, f)
	wantDue(t, p, OpResume)
	wantFate(t, p, "rootfs", DataErased, MountDropped)
	wantFate(t, p, "mp0", DataErased, MountDropped)
	p = ReconcileInstance(OpRollback, j, f)
	wantDue(t, p, OpRollback)
	wantFate(t, p, "mp0", DataKept, MountKept)
	j.Digest = "another"
	p = ReconcileInstance(OpRollback, j, f)
	wantDue(t, p, OpRollback, CodeNeedsReconcile)
	if strings.Contains(p.Blockers[0].Remedy, "rollback") {
		t.Errorf("%q proposes what it refuses", p.Blockers[0].Remedy)
	}
}

func TestReconcileInstanceRefusesOtherActions(t *testing.T) {
	t.Parallel()
	f, j := stuckUpdate()
	for op := Operation(0); op <= OpClose+1; op++ {
		known := op == OpResume || op == OpRollback || op == OpClose
		if p := ReconcileInstance(op, j, f); has(p.Blockers, CodeNeedsReconcile) == known {
			t.Errorf("%s: %v", op, codesOf(p.Blockers))
		}
	}
}
