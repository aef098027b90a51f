package preview

import (
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// stuck is the operation of the examples: destroyed, the create failed, mp0 and unused0 wait on CT 900012.
func stuck() (Facts, guest.Journal) {
	f, _ := web1()
	j := *journal(guest.JournalStuck, f.Now)
	j.Error, j.Digest = "storage 'local-lvm' is full", "d1"
	j.Config = f.Guest.Config.Clone().Values
	j.Parked = []guest.ParkedVolume{
		{Key: "mp0", Value: j.Config["mp0"], Parked: "local-lvm:vm-900012-disk-1", To: 900012},
		{Key: "unused0", Value: j.Config["unused0"], Parked: "local-lvm:vm-900012-disk-2", To: 900012},
	}
	j.Refs = []string{"mp1"}
	j.Doomed = []string{"local-lvm:vm-5001-disk-0"}
	j.Wanted.Template = template
	f.Presence = guest.Absent
	f.Guest.Config, f.Guest.Pending = guest.Config{}, nil
	for _, id := range []string{"local-lvm:vm-5001-disk-0", "local-lvm:vm-5001-disk-1", "local-lvm:vm-5001-disk-7"} {
		delete(f.Volumes, volumeID(id))
	}
	f.stored("local-lvm:vm-900012-disk-0", 900012, 9*guest.GiB)
	f.stored("local-lvm:vm-900012-disk-1", 900012, 100*guest.GiB)
	f.stored("local-lvm:vm-900012-disk-2", 900012, 4*guest.GiB)
	parked := func(key string) []User { return []User{{VMID: 900012, Kind: guest.KindContainer, Key: key}} }
	f.Users[volumeID("local-lvm:vm-900012-disk-0")] = parked("rootfs")
	f.Users[volumeID("local-lvm:vm-900012-disk-1")] = parked("mp0")
	f.Users[volumeID("local-lvm:vm-900012-disk-2")] = parked("unused0")
	return f, j
}

// whole is the same guest before anything was destroyed.
func whole() (Facts, guest.Journal) {
	f, _ := web1()
	_, j := stuck()
	j.Digest, j.Stage, j.Index = "", "stop", 4
	for i := range j.Parked {
		j.Parked[i].Parked, j.Parked[i].To = "", 0
	}
	return f, j
}

func TestResumeBringsBackWhatWaits(t *testing.T) {
	t.Parallel()
	f, j := stuck()
	p := Reconcile(OpResume, j, f)
	wantOnly(t, p)
	wantFate(t, p, "mp0", DataPreserved, MountReattached)
	wantFate(t, p, "unused0", DataPreserved, MountReattached)
	wantFate(t, p, "mp1", DataExcluded, MountReattached)
	wantFate(t, p, "mp2", DataHostManaged, MountDropped)
	wantFate(t, p, "rootfs", DataErased, MountRecreated)
	if v := fateOf(t, p, "mp0"); v.Volume != "local-lvm:vm-900012-disk-1" || v.Size != 100*guest.GiB {
		t.Errorf("mp0 is %+v", v)
	}
	if want := "CT 5001 web1: resume op-5001-20261201-3f2a, now at stage 8 of 12 (create): erases rootfs (9 GiB), keeps 2 volumes (104 GiB), 1 mount dropped"; p.Summary != want {
		t.Errorf("summary\n%s, want\n%s", p.Summary, want)
	}
}

func TestResumeRefusesWhenVolumesAreNotWhereTheRecordSays(t *testing.T) {
	t.Parallel()
	f, j := stuck()
	delete(f.Volumes, volumeID("local-lvm:vm-900012-disk-1"))
	j.Parked[0].Before = []string{"local-lvm:vm-900012-disk-0", "local-lvm:vm-900012-disk-2"}
	p := Reconcile(OpResume, j, f)
	wantOnly(t, p, CodeMountUnclassified)
	wantFate(t, p, "mp0", DataUnknown, MountDropped)
	// Exactly one new volume at the receiving guest: the move was made, its record was not.
	f.stored("local-lvm:vm-900012-disk-5", 900012, 100*guest.GiB)
	wantOnly(t, Reconcile(OpResume, j, f))
	f.stored("local-lvm:vm-900012-disk-6", 900012, 100*guest.GiB)
	wantOnly(t, Reconcile(OpResume, j, f), CodeMountUnclassified)
	f, j = stuck()
	f.edit("local-lvm", func(s *guest.Storage) { s.Active = false })
	wantOnly(t, Reconcile(OpResume, j, f), CodeStorageUnavailable)
}

func TestResumeNeedsTheTemplateUntilTheGuestIsMade(t *testing.T) {
	t.Parallel()
	f, j := stuck()
	f.TemplateKnown, f.Template = guest.Absent, guest.StoredVolume{}
	wantOnly(t, Reconcile(OpResume, j, f), CodeTemplateMissing)
	j.New = true
	wantOnly(t, Reconcile(OpResume, j, f))
	j.New, j.Back = false, true // taking back needs no template
	wantOnly(t, Reconcile(OpResume, j, f))
}

func TestReconcileRefusesAnotherGuestUnderTheVMID(t *testing.T) {
	t.Parallel()
	f, j := whole()
	f.set("hostname", "somebody")
	wantOnly(t, Reconcile(OpResume, j, f), CodeNameMismatch)
	f, j = whole()
	f.WrongType = true
	wantOnly(t, Reconcile(OpResume, j, f), CodeGuestWrongType)
	f, j = whole()
	f.Presence = guest.PresenceUnknown
	wantOnly(t, Reconcile(OpResume, j, f), CodeNodeOffline)
}

func TestRollbackBeforeThePointOfNoReturnKeepsTheOldSystem(t *testing.T) {
	t.Parallel()
	f, j := whole()
	p := Reconcile(OpRollback, j, f)
	wantOnly(t, p)
	wantFate(t, p, "rootfs", DataKept, MountKept)
	if len(p.Erased()) != 0 {
		t.Errorf("erases %v", p.Erased())
	}
	j.Digest = "d1" // a destroy was asked for, and the guest is exactly as it was: it was refused
	wantOnly(t, Reconcile(OpRollback, j, f))
	j.Digest = "d0"
	wantOnly(t, Reconcile(OpRollback, j, f), CodeNeedsReconcile)
}

func TestRollbackPastItNeedsTheBackup(t *testing.T) {
	t.Parallel()
	f, j := stuck()
	p := Reconcile(OpRollback, j, f)
	wantOnly(t, p, CodeNeedsReconcile)
	if b := p.Blockers[0]; strings.Contains(b.Remedy, "rollback") || !strings.Contains(b.Remedy, "resume") {
		t.Errorf("%q", b.Remedy)
	}
	j.Backup = "pbs:backup/ct/5001/2026-12-01T05:53:10Z"
	wantOnly(t, Reconcile(OpRollback, j, f), CodeNeedsReconcile) // not listed any more
	f.Volumes[volumeID(j.Backup)] = guest.StoredVolume{ID: volumeID(j.Backup), Owner: 5001, Content: "backup", Protected: true}
	p = Reconcile(OpRollback, j, f)
	wantOnly(t, p)
	wantFate(t, p, "mp0", DataPreserved, MountReattached)
	if want := "returns from pbs:backup/ct/5001/2026-12-01T05:53:10Z, as it was then"; p.AlsoLost["root file system"] != want {
		t.Errorf("%q", p.AlsoLost["root file system"])
	}
	delete(f.Volumes, volumeID(j.Backup))
	f.Backups = Known[[]guest.StoredVolume]{Why: "Datastore.Audit on /storage/pbs"}
	wantOnly(t, Reconcile(OpRollback, j, f), CodePrivileges) // unseen is not gone
}

func TestCloseRefusesWhileParkingHoldsData(t *testing.T) {
	t.Parallel()
	f, j := stuck()
	p := Reconcile(OpClose, j, f)
	wantOnly(t, p, CodeParkingHoldsData)
	if b := p.Blockers[0]; !strings.Contains(b.Found, "local-lvm:vm-900012-disk-1 (100 GiB) and local-lvm:vm-900012-disk-2 (4 GiB)") || strings.Contains(b.Found, "disk-0") {
		t.Errorf("%q", b.Found)
	}
	wantFate(t, p, "mp0", DataKept, MountDropped)
	if b := p.Blockers[0]; b.Title != "CT 5001 web1: the parking guest still holds data (parking_holds_data)" || b.Code.Waivable() {
		t.Errorf("%q", b.Title)
	}

	// Somebody named them elsewhere: then nothing is lost from sight.
	for _, id := range []string{"local-lvm:vm-900012-disk-1", "local-lvm:vm-900012-disk-2"} {
		f.Users[volumeID(id)] = append(f.Users[volumeID(id)], User{VMID: 5002, Kind: guest.KindContainer, Key: "mp8"})
	}
	wantOnly(t, Reconcile(OpClose, j, f))

	// What cannot be seen counts as held.
	f, j = stuck()
	delete(f.Volumes, volumeID("local-lvm:vm-900012-disk-1"))
	delete(f.Volumes, volumeID("local-lvm:vm-900012-disk-2"))
	wantOnly(t, Reconcile(OpClose, j, f), CodeParkingHoldsData)

	// Everything is back: the parking guest has its own root file system only.
	f, j = whole()
	f.stored("local-lvm:vm-900012-disk-0", 900012, 9*guest.GiB)
	f.Users[volumeID("local-lvm:vm-900012-disk-0")] = []User{{VMID: 900012, Kind: guest.KindContainer, Key: "rootfs"}}
	p = Reconcile(OpClose, j, f)
	wantOnly(t, p)
	for _, v := range p.Volumes {
		if v.Data == DataErased || v.Mount != MountKept {
			t.Errorf("%s is %s %s", v.Key, v.Data, v.Mount)
		}
	}
}

func TestReconcileRefusesOtherActions(t *testing.T) {
	t.Parallel()
	for _, op := range []Operation{0, OpReinstall, OpGrow, OpAccept, OpRollbackData, OpClose + 1} {
		f, j := stuck()
		wantOnly(t, Reconcile(op, j, f), CodeNeedsReconcile)
	}
}

func TestHalfDoneOperationIsTold(t *testing.T) {
	t.Parallel()
	f, j := stuck()
	_, w := web1()
	f.Elsewhere = &j
	j.Backup = "pbs:backup/ct/5001/2026-12-01T05:53:10Z"
	p := Container(f, w)
	wantOnly(t, p, CodeNeedsReconcile)
	b := p.Blockers[0]
	for _, words := range []string{
		"op-5001-20261201-3f2a stopped at stage 8 of 12, create: storage 'local-lvm' is full.", "CT 5001 does not exist now.",
		"Its mp0 and unused0 wait on CT 900012.", `reconcile = { operation = "op-5001-20261201-3f2a", action = "resume" }`,
		`"rollback" (rootfs from pbs:backup/ct/5001/2026-12-01T05:53:10Z)`, `"close"`,
	} {
		if !strings.Contains(b.Text(), words) {
			t.Errorf("%q is missing from\n%s", words, b.Text())
		}
	}
	if b.Title != "CT 5001 web1: an operation stopped half-way (needs_reconcile)" || b.Attribute != "reconcile" {
		t.Errorf("%q %q", b.Title, b.Attribute)
	}
	// The newer copy of a record counts, wherever it is.
	f, _ = web1()
	older, newer := journal(guest.JournalDoing, f.Now+60), journal(guest.JournalStuck, f.Now+60)
	newer.Sequence, newer.Stage = 10, "return mp0"
	f.Journal.Journal, f.Elsewhere = older, newer
	p = Container(f, w)
	wantOnly(t, p, CodeNeedsReconcile)
	if !strings.Contains(p.Blockers[0].Found, "return mp0") {
		t.Errorf("%q", p.Blockers[0].Found)
	}
	// A stale copy of another guest's record is reported and obeyed by nobody.
	f, _ = web1()
	f.Journal.Problems = []guest.Problem{{Kind: guest.ProblemForeign, Block: guest.BlockJournal, Sentence: "A journal of CT 5002 is here."}}
	p = Container(f, w)
	wantOnly(t, p)
	if len(p.Warnings) != 1 {
		t.Errorf("warnings %q", p.Warnings)
	}
}
