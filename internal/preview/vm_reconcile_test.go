package preview

import (
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// rebuilt is VM 7131 after a rebuild that waits for trust, and its record.
func rebuilt() (Facts, guest.Journal) {
	f, _ := id01()
	before := f.Guest.Config.Clone().Values
	const fresh, freshScratch = "local-lvm:vm-7131-disk-2", "local-lvm:vm-7131-disk-3"
	f.set("scsi0", fresh+",discard=on,size=32G")
	f.set("scsi1", freshScratch+",size=64G")
	f.set("unused0", sysDisk)
	f.set("unused1", scratch)
	f.set("parent", "pvrx-op")
	f.stored(fresh, 7131, 32*guest.GiB)
	f.stored(freshScratch, 7131, 64*guest.GiB)
	f.Guest.Snapshots = []guest.Snapshot{{Name: "pvrx-op", Time: 1796000000, Config: guest.Config{Values: map[string]string{"scsi2": before["scsi2"]}}}}
	j := *journal(guest.JournalWaiting, f.Now+60)
	j.Operation, j.Kind, j.Guest, j.Parking, j.Holder = "op-7131-20261201-3f2a", "rebuild", 7131, 907131, 7131
	j.Config, j.Snapshot, j.Doomed = before, "pvrx-op", []string{sysDisk, scratch}
	j.Disks = []guest.SystemDisk{
		{Key: "scsi0", Storage: "local-lvm", Was: sysDisk, Now: fresh}, {Key: "scsi1", Storage: "local-lvm", Was: scratch, Now: freshScratch},
	}
	return f, j
}

func TestVMVerdicts(t *testing.T) {
	t.Parallel()
	f, j := rebuilt()
	accept := ReconcileVM(OpAccept, j, f)
	wantOnly(t, accept)
	wantFate(t, accept, "scsi0 (old)", DataErased, MountDropped)
	wantFate(t, accept, "scsi2", DataKept, MountKept)
	if accept.AlsoLost["snapshot"] == "" || accept.ErasedBytes != 12*guest.GiB {
		t.Errorf("%v, %d bytes", accept.AlsoLost, accept.ErasedBytes)
	}
	back := ReconcileVM(OpRollback, j, f)
	wantOnly(t, back)
	wantFate(t, back, "scsi0", DataKept, MountReattached)
	wantFate(t, back, "scsi0 (new)", DataErased, MountDropped)
	data := ReconcileVM(OpRollbackData, j, f)
	wantOnly(t, data)
	if text := data.AlsoLost["changes on kept disks"]; !strings.Contains(text, "2026-") {
		t.Errorf("from when is not said: %q", text)
	}
	wantOnly(t, ReconcileVM(OpClose, j, f))
}

// What stands in the way of a verdict, each way.
func TestVMVerdictsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		name   string
		action Operation
		make   func(*Facts, *guest.Journal)
		code   Code
	}{
		{"resume of what is done", OpResume, func(*Facts, *guest.Journal) {}, CodeAwaitingTrust},
		{"accept of what is not done", OpAccept, func(_ *Facts, j *guest.Journal) { j.State = guest.JournalStuck }, CodeNeedsReconcile},
		{"rollback of what was accepted", OpRollback, func(_ *Facts, j *guest.Journal) { j.Kind, j.State = "accept", guest.JournalStuck }, CodeNeedsReconcile},
		{"rollback without the old disk", OpRollback, func(f *Facts, _ *guest.Journal) { delete(f.Volumes, volumeID(sysDisk)) }, CodeMountUnclassified},
		{"rollback_data without a snapshot", OpRollbackData, func(_ *Facts, j *guest.Journal) { j.Snapshot = "" }, CodeSnapshotUnsupported},
		{"rollback_data when it is gone", OpRollbackData, func(f *Facts, _ *guest.Journal) { f.Guest.Snapshots = nil }, CodeSnapshotUnsupported},
		{"rollback_data when there is a newer one", OpRollbackData, func(f *Facts, _ *guest.Journal) { f.set("parent", "newer") }, CodeSnapshotUnsupported},
		{"close while the parking VM holds something", OpClose, func(f *Facts, _ *guest.Journal) { f.stored("local-lvm:vm-907131-disk-0", 907131, guest.GiB) }, CodeParkingHoldsData},
		{"an unheard of action", OpGrow, func(*Facts, *guest.Journal) {}, CodeNeedsReconcile},
		{"accept while the old VM owns more", OpAccept, func(f *Facts, j *guest.Journal) { j.Replace = true }, CodeParkingHoldsData},
	} {
		f, j := rebuilt()
		r.make(&f, &j)
		if p := ReconcileVM(r.action, j, f); !has(p.Blockers, r.code) {
			t.Errorf("%s: blocked by %v, want %s", r.name, codesOf(p.Blockers), r.code)
		}
	}
}

// TestC12VMAcceptKeepsWhatASnapshotHolds: an old disk that a snapshot of the user's holds is not shown as going.
func TestC12VMAcceptKeepsWhatASnapshotHolds(t *testing.T) {
	t.Parallel()
	f, j := rebuilt()
	f.Guest.Snapshots = append(f.Guest.Snapshots, guest.Snapshot{Name: "mine", Config: guest.Config{Values: map[string]string{"scsi0": sysDisk}}})
	wantFate(t, ReconcileVM(OpAccept, j, f), "scsi0 (old)", DataKept, MountDropped)
}
