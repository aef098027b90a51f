package preview

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

const noon = 1796100000

// surveyed is a cluster with nothing half done: web1 with a volume of its own, and db2.
func surveyed() *SurveyFacts {
	f := &SurveyFacts{
		Now: noon, AllSeen: true, ParkingFrom: 900000, ParkingTo: 909999, Occupied: map[guest.VMID]guest.Presence{},
		Replicated: Known[map[guest.VMID]bool]{OK: true, Value: map[guest.VMID]bool{}},
	}
	f.guest(5001, "web1", "rootfs", "local-lvm:vm-5001-disk-0", "mp0", "local-lvm:vm-5001-disk-1,mp=/srv/data")
	f.guest(5002, "db2", "rootfs", "local-lvm:vm-5002-disk-0")
	for _, id := range []string{"local-lvm:vm-5001-disk-0", "local-lvm:vm-5001-disk-1"} {
		f.volume(id, 5001)
	}
	f.volume("local-lvm:vm-5002-disk-0", 5002)
	return f
}

// guest puts a container into the cluster; keys alternate with values.
func (f *SurveyFacts) guest(id guest.VMID, name string, config ...string) *SurveyedGuest {
	g := SurveyedGuest{
		Listed: guest.Listed{Ref: guest.Ref{VMID: id, Kind: guest.KindContainer, Node: "pve1"}, Name: name, Status: "stopped"},
		Read:   true, Values: map[string]string{},
	}
	for i := 0; i < len(config); i += 2 {
		g.Values[config[i]] = config[i+1]
	}
	for _, n := range guest.Volumes(guest.KindContainer, guest.Config{Values: g.Values}) {
		g.Named = append(g.Named, SectionVolume{Named: n})
	}
	f.Guests = append(f.Guests, g)
	return &f.Guests[len(f.Guests)-1]
}

func (f *SurveyFacts) of(id guest.VMID) *SurveyedGuest {
	i := slices.IndexFunc(f.Guests, func(g SurveyedGuest) bool { return g.VMID == id })
	return &f.Guests[i]
}

func (f *SurveyFacts) volume(id string, owner guest.VMID) *SurveyedVolume {
	f.Volumes = append(f.Volumes, SurveyedVolume{
		StoredVolume: guest.StoredVolume{ID: volumeID(id), Owner: owner, Content: "rootdir", Size: 100 * guest.GiB, Created: noon - 3*86400},
		Node:         "pve1", Type: guest.StorageLVMThin,
	})
	return &f.Volumes[len(f.Volumes)-1]
}

// parked is the cluster after a create failed: web1 is gone and its mp0 waits on CT 900012.
func parked() (*SurveyFacts, *guest.Journal) {
	f := surveyed()
	_, j := stuck()
	j.Holder, j.Started, j.Updated, j.Made = 900012, noon-7200, noon-7200, true
	j.Config["hostname"] = "web1"
	f.Guests = slices.DeleteFunc(f.Guests, func(g SurveyedGuest) bool { return g.VMID == 5001 })
	f.Volumes = slices.DeleteFunc(f.Volumes, func(v SurveyedVolume) bool { return v.Owner == 5001 })
	p := f.guest(900012, "pvrx-parking-5001", "rootfs", "local-lvm:vm-900012-disk-0", "mp0", "local-lvm:vm-900012-disk-1,mp=/srv/data", "unused0", "local-lvm:vm-900012-disk-2")
	p.Guard, p.Notes.Journal = true, &j
	for _, id := range []string{"local-lvm:vm-900012-disk-0", "local-lvm:vm-900012-disk-1", "local-lvm:vm-900012-disk-2"} {
		f.volume(id, 900012)
	}
	f.Occupied[5001] = guest.Absent
	return f, &j
}

func says(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q is missing from\n%s", w, text)
		}
	}
}

func only[T any](t *testing.T, rows []T) T {
	t.Helper()
	if len(rows) != 1 {
		t.Fatalf("%d rows: %+v", len(rows), rows)
	}
	return rows[0]
}

func TestSurveyOfAQuietClusterIsEmpty(t *testing.T) {
	t.Parallel()
	r := Survey(*surveyed())
	if len(r.Operations)+len(r.Parking)+len(r.Unnamed)+len(r.Archives)+len(r.Problems)+len(r.Unseen) > 0 {
		t.Errorf("%+v", r)
	}
	if r.Summary != "Nothing is half done and nothing was left behind." {
		t.Errorf("%q", r.Summary)
	}
}

func TestSurveyTellsAHalfDoneOperation(t *testing.T) {
	t.Parallel()
	f, _ := parked()
	r := Survey(*f)
	o := only(t, r.Operations)
	if o.State != OperationStuck || o.Exists != guest.Absent || o.Age != "2 hours" || o.Label != "CT 5001 web1" || o.Stage != "create" || !slices.Equal(o.Holders, []guest.VMID{900012}) {
		t.Errorf("%+v", o)
	}
	want := []HeldVolume{{"mp0", "local-lvm:vm-900012-disk-1", 900012, 100 * guest.GiB}, {"unused0", "local-lvm:vm-900012-disk-2", 900012, 100 * guest.GiB}}
	if !slices.Equal(o.Volumes, want) {
		t.Errorf("%+v, want %+v", o.Volumes, want)
	}
	says(t, o.Remedy, `reconcile = { operation = "op-5001-20261201-3f2a", action = "resume" }`, "CT 5001 does not exist now", "no way back", `id = "5001"`)
	p := only(t, r.Parking)
	if p.Operation != o.Operation || p.Guest != 5001 || !p.Guarded || len(p.Holds) != 2 || p.Age != "3 days" {
		t.Errorf("%+v", p)
	}
	says(t, p.Remedy, o.Operation, "neither start nor destroy")
	if len(r.Unnamed) > 0 {
		t.Errorf("what waits on the parking guest is named: %+v", r.Unnamed)
	}
	if want := "CT 5001 web1: op-5001-20261201-3f2a stopped at stage 8 of 12 (create), last written 2 hours ago"; r.Summary != want {
		t.Errorf("%q, want %q", r.Summary, want)
	}
}

func TestSurveyStates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state guest.JournalState
		until int64
		want  OperationState
		word  string
	}{
		{guest.JournalDoing, noon + 60, OperationInProgress, "wait"},
		{guest.JournalUndoing, noon + 60, OperationTakingBack, "wait"},
		{guest.JournalDoing, noon - 60, OperationOverdue, "nobody works on it"},
		{guest.JournalUndoing, noon - 60, OperationOverdue, "nobody works on it"},
		{guest.JournalStuck, noon + 60, OperationStuck, "until a person says so"},
		{guest.JournalWaiting, noon - 60, OperationAwaitingTrust, "action = \"accept\""},
	} {
		f, j := parked()
		j.State, j.Until = c.state, c.until
		o := only(t, Survey(*f).Operations)
		if o.State != c.want {
			t.Errorf("%s until %d is %s, want %s", c.state, c.until-noon, o.State, c.want)
		}
		says(t, o.Remedy, c.word)
	}
	if OperationState(0).String() != "invalid" || OperationState(9).verb() != "is" {
		t.Error("a state that is none has a name")
	}
}

func TestSurveyFindsAVolumeThatAMoveLost(t *testing.T) {
	t.Parallel()
	f, j := parked()
	p := f.of(900012)
	delete(p.Values, "mp0")
	p.Named = slices.DeleteFunc(p.Named, func(n SectionVolume) bool { return n.Key == "mp0" })
	r := Survey(*f)
	o := only(t, r.Operations)
	if o.Volumes[0].Holder != 0 {
		t.Errorf("%+v", o.Volumes)
	}
	says(t, o.Remedy, "No configuration names mp0", "A resume finds them")
	v := only(t, r.Unnamed)
	if v.Operation != j.Operation || v.Volume != "local-lvm:vm-900012-disk-1" {
		t.Errorf("%+v", v)
	}
	says(t, v.Remedy, "go on with the operation first")
	if strings.Contains(v.Remedy, "free") || strings.Contains(v.Remedy, "rescan") {
		t.Errorf("it proposes to touch what a resume looks for: %s", v.Remedy)
	}
}

func TestSurveyCountsARecordOnlyWhereItBelongs(t *testing.T) {
	t.Parallel()
	back := func(f *SurveyFacts) *SurveyedGuest {
		f.volume("local-lvm:vm-5001-disk-0", 5001)
		return f.guest(5001, "web1", "rootfs", "local-lvm:vm-5001-disk-0")
	}
	f, j := parked()
	back(f) // the notes of web1 were overwritten: the parking guest still says what is going on
	if o := only(t, Survey(*f).Operations); o.Exists != guest.Present {
		t.Errorf("%+v", o)
	}
	f, _ = parked()
	back(f)
	f.of(900012).Name = "shop" // a guest that carries a copied record, and is no parking guest by its name
	r := Survey(*f)
	if len(r.Operations) > 0 {
		t.Errorf("a copy in a stranger's notes binds web1: %+v", r.Operations)
	}
	says(t, only(t, r.Problems).Sentence, j.Operation, "CT 5001 knows nothing of")

	f, j = parked()
	older := *j
	older.Sequence, older.Stage, older.Holder = j.Sequence-1, "destroy", 5001
	back(f).Notes.Journal = &older
	if o := only(t, Survey(*f).Operations); o.Stage != "create" || len(o.Holders) != 2 {
		t.Errorf("the newest copy counts: %+v", o)
	}

	f = surveyed()
	elsewhere := *j
	f.of(5002).Notes.Journal = &elsewhere // claims to be about 5001, to be parked on 900012, and stands in db2's notes
	r = Survey(*f)
	if len(r.Operations)+len(r.Parking) > 0 || only(t, r.Problems).Kind != "misplaced" {
		t.Errorf("%+v", r)
	}
}

func TestSurveyProposesNothingDestructiveForWhatARecordOnlyClaims(t *testing.T) {
	t.Parallel()
	f := surveyed()
	_, j := parked()
	forged := *j
	forged.Parking, forged.Holder, forged.Guest = 5002, 5001, 5001 // a tenant points at another tenant's guest
	f.of(5001).Notes.Journal = &forged
	r := Survey(*f)
	if len(r.Parking) > 0 {
		t.Errorf("db2 is called a parking guest: %+v", r.Parking)
	}
	for _, o := range r.Operations {
		if strings.Contains(o.Remedy, "destroy 5002") || strings.Contains(o.Remedy, "unlock") {
			t.Errorf("%s", o.Remedy)
		}
	}
}

func TestSurveyOfAParkingGuestThatWasLeft(t *testing.T) {
	t.Parallel()
	f := surveyed()
	p := f.guest(900012, "pvrx-parking-5001", "rootfs", "local-lvm:vm-900012-disk-0")
	p.Guard = true
	f.volume("local-lvm:vm-900012-disk-0", 900012)
	if want := "No operation uses it and it holds nothing. As root on pve1: pct set 900012 --protection 0 && pct destroy 900012."; only(t, Survey(*f).Parking).Remedy != want {
		t.Errorf("%q", Survey(*f).Parking[0].Remedy)
	}

	p.Values["mp3"] = "local-lvm:vm-900012-disk-1,mp=/srv/data"
	p.Named = append(p.Named, SectionVolume{Named: guest.Named{Key: "mp3", ID: volumeID("local-lvm:vm-900012-disk-1")}})
	f.volume("local-lvm:vm-900012-disk-1", 900012)
	says(t, only(t, Survey(*f).Parking).Remedy, "pct set 900012 --protection 0 && pct move-volume 900012 mp3 --target-vmid 5001 --target-volume mp3; when it holds nothing any more: pct destroy 900012")
	says(t, Survey(*f).Summary, "a parking guest without an operation, holds mp3 (local-lvm:vm-900012-disk-1, 100 GiB)")

	f.of(5001).Values["mp3"] = "tank:subvol-5001-disk-0,mp=/x" // the key is taken: which belongs there is for a person to say
	r := only(t, Survey(*f).Parking).Remedy
	says(t, r, "Do not destroy it")
	f.of(900012).Read = false
	says(t, only(t, Survey(*f).Parking).Remedy, "leave it alone")
}

func TestSurveyOfVolumesThatNobodyNames(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(f *SurveyFacts, v *SurveyedVolume)
		words   string
		certain bool
	}{
		"its guest is there": {func(*SurveyFacts, *SurveyedVolume) {}, "pct rescan --vmid 5001", true},
		"its guest is gone": {func(f *SurveyFacts, v *SurveyedVolume) {
			v.ID, v.Owner = volumeID("local-lvm:vm-5009-disk-0"), 5009
			f.Occupied[5009] = guest.Absent
		}, "pvesm free local-lvm:vm-5009-disk-0", true},
		"its guest is hidden": {func(f *SurveyFacts, v *SurveyedVolume) {
			v.ID, v.Owner = volumeID("local-lvm:vm-5009-disk-0"), 5009
			f.Occupied[5009], f.AllSeen = guest.PresenceUnknown, false
		}, "a login that sees all", false},
		"a guest could not be read":  {func(f *SurveyFacts, _ *SurveyedVolume) { f.of(5002).Read = false }, "a login that sees all", false},
		"on another node":            {func(_ *SurveyFacts, v *SurveyedVolume) { v.Node = "pve2" }, "a migration or a replication left", true},
		"a VM's":                     {func(f *SurveyFacts, _ *SurveyedVolume) { f.of(5001).Kind = guest.KindVM }, "qm rescan --vmid 5001", true},
		"its owner only in its name": {func(_ *SurveyFacts, v *SurveyedVolume) { v.Owner = 0 }, "pct rescan --vmid 5001", true},
	} {
		f := surveyed()
		v := f.volume("local-lvm:vm-5001-disk-7", 5001)
		c.change(f, v)
		got := only(t, Survey(*f).Unnamed)
		if got.Certain != c.certain || got.Age != "3 days" {
			t.Errorf("%s: %+v", name, got)
		}
		if !strings.Contains(got.Remedy, c.words) || strings.Contains(got.Remedy, "free") && !c.certain {
			t.Errorf("%s: %s", name, got.Remedy)
		}
	}
	f := surveyed()
	f.volume("local-lvm:vm-5001-disk-1", 5001).Node = "pve2"
	f.Replicated.Value[5001] = true
	f.of(5001).Named = append(f.of(5001).Named, SectionVolume{Named: guest.Named{Key: "mp8", ID: volumeID("local-lvm:vm-5001-disk-8")}, Section: "before"})
	f.volume("local-lvm:vm-5001-disk-8", 5001) // a snapshot names it
	if r := Survey(*f); len(r.Unnamed) > 0 {
		t.Errorf("%+v", r.Unnamed)
	}
}

func TestA4SurveyNamesArchivesOfParkingGuests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		owner guest.VMID
		notes string
		left  bool
		of    guest.VMID
	}{
		"of the range":                {900077, "", true, 0},
		"of a parking guest":          {900012, "", true, 5001},
		"by its notes":                {7001, "pvrx-parking-5001", true, 5001},
		"an ordinary one":             {5002, "db2", false, 0},
		"of a guest in the range":     {900099, "", false, 0},
		"notes that say it of itself": {5002, "pvrx-parking-5001", true, 5001},
	} {
		f, _ := parked()
		f.guest(900099, "shop")
		a := f.volume("local:backup/vzdump-lxc-1-2026_12_01-06_00_00.tar.zst", c.owner)
		a.Content, a.Notes, a.Type = "backup", c.notes, guest.StorageDir
		r := Survey(*f)
		if !c.left {
			if len(r.Archives) > 0 {
				t.Errorf("%s: %+v", name, r.Archives)
			}
			continue
		}
		got := only(t, r.Archives)
		if got.Guest != c.of {
			t.Errorf("%s: %+v", name, got)
		}
		says(t, got.Remedy, "Keep it until there is a newer archive", "pvesm free local:backup/vzdump-lxc-1")
	}
}

func TestSurveyFilters(t *testing.T) {
	t.Parallel()
	f, _ := parked()
	f.volume("local-lvm:vm-5002-disk-9", 5002)
	for _, c := range []struct {
		guest                        guest.VMID
		node                         string
		operations, parking, unnamed int
	}{{0, "", 1, 1, 1}, {5001, "", 1, 1, 0}, {900012, "", 1, 1, 0}, {5002, "", 0, 0, 1}, {0, "pve1", 1, 1, 1}, {0, "pve2", 0, 0, 0}, {5002, "pve1", 0, 0, 1}} {
		f.Guest, f.Node = c.guest, c.node
		r := Survey(*f)
		if got := []int{len(r.Operations), len(r.Parking), len(r.Unnamed)}; !slices.Equal(got, []int{c.operations, c.parking, c.unnamed}) {
			t.Errorf("guest %d node %q: %v", c.guest, c.node, got)
		}
		if narrowed := c.guest != 0 || c.node != ""; narrowed != strings.Contains(r.Summary, "was asked for") {
			t.Errorf("%q", r.Summary)
		}
	}
}

func TestSurveyTellsProblemsAndWhatItDidNotSee(t *testing.T) {
	t.Parallel()
	f := surveyed()
	f.of(5002).Notes.Problems = []guest.Problem{{Kind: guest.ProblemDamaged, Block: guest.BlockJournal, Sentence: "the journal block cannot be used"}}
	f.Unseen = []string{"storage nfs on node pve2 is not active", "storage nfs on node pve2 is not active"}
	r := Survey(*f)
	if p := only(t, r.Problems); p.VMID != 5002 || p.Kind != "damaged" {
		t.Errorf("%+v", p)
	}
	only(t, r.Unseen)
	says(t, r.Summary, "CT 5002 db2: the journal block cannot be used", "Not seen: storage nfs")
}

// TestSurveyPrintsNoControlCharacters: names, notes and errors are other people's text.
func TestSurveyPrintsNoControlCharacters(t *testing.T) {
	t.Parallel()
	f, j := parked()
	const evil = "x\x1b[2J\u202e\x07y"
	j.Error, j.Stage, j.Node, j.Backup = evil, evil, evil, evil
	j.Config["hostname"] = evil
	f.of(5002).Name, f.of(5002).Node = evil, evil
	f.of(5002).Notes.Problems = []guest.Problem{{Kind: guest.ProblemNewer, Sentence: evil}}
	f.of(900012).Status = evil
	f.Unseen = []string{evil}
	a := f.volume("local:backup/vzdump-lxc-900012-2026_12_01-06_00_00.tar.zst", 900012)
	a.Content, a.Notes, a.Node = "backup", evil, evil
	f.volume("local-lvm:vm-5002-disk-7", 5002).Node = evil
	r := Survey(*f)
	for _, bad := range []string{"\x1b", "\x07", "\u202e"} {
		if text := strings.ReplaceAll(fmt.Sprintf("%+v", r), "\n", " "); strings.Contains(text, bad) {
			t.Errorf("%q is in %q", bad, text)
		}
	}
}

func TestSurveySpeaksOfVMsInTheirWords(t *testing.T) {
	t.Parallel()
	f := surveyed()
	vm := f.guest(7131, "id01", "scsi0", "local-lvm:vm-7131-disk-0")
	vm.Kind, vm.Named = guest.KindVM, []SectionVolume{{Named: guest.Named{Key: "scsi0", ID: volumeID("local-lvm:vm-7131-disk-0")}}}
	p := f.guest(900013, "pvrx-parking-7131")
	p.Kind, p.Guard = guest.KindVM, true
	p.Named = []SectionVolume{{Named: guest.Named{Key: "scsi2", ID: volumeID("tank:vm-900013-disk-0")}}}
	f.volume("local-lvm:vm-7131-disk-0", 7131)
	f.volume("tank:vm-900013-disk-0", 900013).Type = guest.StorageZFSPool
	says(t, only(t, Survey(*f).Parking).Remedy, "volumes of VM 7131", "qm set 900013 --protection 0 && qm disk move 900013 scsi2 --target-vmid 7131 --target-disk scsi2", "qm destroy 900013")
	f.of(7131).Values["scsi2"] = "tank:vm-7131-disk-0"
	says(t, only(t, Survey(*f).Parking).Remedy, "qm disk move VMID KEY --target-vmid VMID --target-disk KEY", "Do not destroy it")

	f.of(7131).Notes.Journal = &guest.Journal{
		Operation: "op-7131-20261201-3f2a", Kind: "replace", Guest: 7131, Parking: 9131, Holder: 7131, Node: "pve1", State: guest.JournalStuck, Stage: "hand over scsi2",
		Replace: true, Snapshot: "pre-rebuild", Config: map[string]string{"name": "id01"},
		Parked: []guest.ParkedVolume{{Key: "scsi2", Value: "tank:vm-7131-disk-0,size=40G"}},
	}
	fresh := f.guest(9131, "id01")
	fresh.Kind, fresh.Lock, fresh.Bare = guest.KindVM, "create", true
	o := only(t, Survey(*f).Operations)
	if o.Label != "VM 7131 id01" || o.Volumes[0].Holder != 7131 || o.Volumes[0].Key != "scsi2" {
		t.Errorf("%+v", o)
	}
	says(t, o.Remedy, "pvrx_vm_rebuild", "qm unlock 9131 && qm destroy 9131", `"rollback_data" also returns the kept disks to snapshot pre-rebuild`)
	for _, g := range Survey(*f).Parking {
		if g.VMID == 9131 {
			t.Errorf("the new VM is called a parking guest: %+v", g)
		}
	}
}
