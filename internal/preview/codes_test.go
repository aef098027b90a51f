package preview

import (
	"slices"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// reason is one way to make a code fire on a guest that is sound otherwise.
type reason struct {
	code Code
	name string
	make func(f *Facts, w *Want)
	// also lists codes that the same facts cannot but raise as well.
	also []Code
}

func reasons() []reason {
	return []reason{
		{code: CodeGuestMissing, name: "absent", make: func(f *Facts, _ *Want) { f.Presence = guest.Absent }},
		{code: CodeGuestWrongType, name: "a VM", make: func(f *Facts, _ *Want) { f.WrongType = true }},
		{code: CodeNameMismatch, name: "another name", make: func(_ *Facts, w *Want) { w.Name = "db3" }},
		{code: CodeNameMismatch, name: "no hostname", make: func(f *Facts, _ *Want) { f.unset("hostname") }},
		{code: CodeDuplicate, name: "twice", make: func(f *Facts, _ *Want) { f.Duplicate = true }},
		{code: CodeNodeOffline, name: "node away", make: func(f *Facts, _ *Want) { f.NodeOnline = false }},
		{code: CodeNodeOffline, name: "presence unknown", make: func(f *Facts, _ *Want) { f.Presence = guest.PresenceUnknown }},
		{code: CodeNoQuorum, name: "no quorum", make: func(f *Facts, _ *Want) { f.Quorate = false }},
		{code: CodeUnsupportedVersion, name: "9.0", make: func(f *Facts, _ *Want) { f.Login.Version = "9.0.11" }},
		{code: CodeUnsupportedVersion, name: "8.4", make: func(f *Facts, _ *Want) { f.Login.Version = "8.4.1" }},
		{code: CodeUnsupportedVersion, name: "unreadable", make: func(f *Facts, _ *Want) { f.Login.Version = "v9" }},
		{code: CodeRunningInsideTarget, name: "our MAC", make: func(f *Facts, _ *Want) { f.Self.MACs = []string{"bc:24:11:00:50:01"} }},
		{code: CodeOperationInFlight, name: "in the notes", make: func(f *Facts, _ *Want) { f.Journal.Journal = journal(guest.JournalDoing, f.Now+60) }},
		{code: CodeOperationInFlight, name: "on a parking guest", make: func(f *Facts, _ *Want) { f.Elsewhere = journal(guest.JournalUndoing, f.Now+60) }},
		{code: CodeNeedsReconcile, name: "stuck", make: func(f *Facts, _ *Want) { f.Journal.Journal = journal(guest.JournalStuck, f.Now+60) }},
		{code: CodeNeedsReconcile, name: "its time is over", make: func(f *Facts, _ *Want) { f.Elsewhere = journal(guest.JournalDoing, f.Now-1) }},
		{code: CodeNeedsReconcile, name: "guest gone", make: func(f *Facts, _ *Want) {
			f.Presence = guest.Absent
			f.Elsewhere = journal(guest.JournalStuck, f.Now)
		}},
		{code: CodeNeedsReconcile, name: "damaged block", make: func(f *Facts, _ *Want) {
			f.Journal.Problems = []guest.Problem{{Kind: guest.ProblemDamaged, Block: guest.BlockJournal, Sentence: "the journal is damaged."}}
		}},
		{code: CodeProtected, name: "protection", make: func(f *Facts, _ *Want) { f.set("protection", "1") }},
		{code: CodeLocked, name: "backup", make: func(f *Facts, _ *Want) { f.set("lock", "backup") }},
		{code: CodeLocked, name: "a word nobody knows", make: func(f *Facts, _ *Want) { f.set("lock", "frobnicate") }},
		{code: CodeTaskRunning, name: "migration", make: func(f *Facts, _ *Want) {
			f.Tasks.Value = []Task{{UPID: "UPID:pve1:1:2:3:vzmigrate:5001:root@pam:", Type: "vzmigrate", ID: "5001", User: "root@pam"}}
		}},
		{code: CodeTaskRunning, name: "on the parking guest", make: func(f *Facts, _ *Want) {
			f.Tasks.Value = []Task{{UPID: "UPID:pve1:1:2:3:vzcreate:900000:root@pam:", Type: "vzcreate", ID: "900000", User: "root@pam"}}
		}},
		{code: CodeIsTemplate, name: "template", make: func(f *Facts, _ *Want) { f.set("template", "1") }},
		{code: CodePendingChanges, name: "memory", make: func(f *Facts, _ *Want) { f.Guest.Pending = []guest.Change{{Key: "memory", Value: "4096"}} }},
		{code: CodePendingChanges, name: "a delete of a mount", make: func(f *Facts, _ *Want) { f.Guest.Pending = []guest.Change{{Key: "mp0", Delete: true}} }, also: []Code{CodeNotPreservable}},
		{code: CodeMountUnclassified, name: "no volume id", make: func(f *Facts, _ *Want) { f.set("mp3", "what,mp=/x") }},
		{code: CodeMountUnclassified, name: "no path", make: func(f *Facts, _ *Want) { f.set("mp3", "local-lvm:vm-5001-disk-9") }},
		{code: CodeMountUnclassified, name: "shape unknown", make: func(f *Facts, _ *Want) { f.set("mp3", "local-lvm:strange,mp=/x") }},
		{code: CodeMountUnclassified, name: "two owners", make: func(f *Facts, _ *Want) { f.stored("local-lvm:vm-5001-disk-7", 5002, guest.GiB) }},
		{code: CodeMountUnclassified, name: "not listed", make: func(f *Facts, _ *Want) { delete(f.Volumes, volumeID("local-lvm:vm-5001-disk-1")) }},
		{code: CodeMountUnclassified, name: "no rootfs", make: func(f *Facts, _ *Want) { f.unset("rootfs") }},
		{code: CodeMountUnclassified, name: "rootfs of another guest", make: func(f *Facts, _ *Want) { f.set("rootfs", "local-lvm:vm-5002-disk-8,size=50G") }},
		{code: CodeMountUnclassified, name: "rootfs is a directory", make: func(f *Facts, _ *Want) { f.set("rootfs", "/srv/ct") }},
		{code: CodeMountUnclassified, name: "a broken network", make: func(f *Facts, _ *Want) { f.set("net1", "") }},
		{code: CodeMountUnclassified, name: "no owner", make: func(f *Facts, _ *Want) {
			f.Storages["san"] = guest.Storage{Name: "san", Type: guest.StorageISCSI, Content: []string{"rootdir"}, Enabled: true, Active: true}
			f.Listed["san"] = true
			f.set("mp3", "san:0.0.1.scsi-360,mp=/x")
		}},
		{code: CodeVolumeShared, name: "current", make: func(f *Facts, _ *Want) {
			f.Users[volumeID("local-lvm:vm-5001-disk-1")] = []User{{VMID: 5002, Kind: guest.KindContainer, Key: "mp4"}}
		}},
		{code: CodeGuestsUnseen, name: "no VM.Audit on /vms", make: func(f *Facts, _ *Want) { f.AllSeen = false }},
		{code: CodeGuestsUnseen, name: "unreadable", make: func(f *Facts, _ *Want) { f.Unseen = []guest.VMID{5003} }},
		{code: CodeLinkedBaseInUse, name: "a base", make: func(f *Facts, _ *Want) {
			f.Linked = map[guest.VolumeID][]guest.VMID{volumeID("local-lvm:vm-5001-disk-1"): {6001}}
		}},
		{code: CodeStorageUnavailable, name: "disabled", make: func(f *Facts, _ *Want) { f.edit("local-lvm", func(s *guest.Storage) { s.Enabled = false }) }},
		{code: CodeStorageUnavailable, name: "content list silent", make: func(f *Facts, _ *Want) { delete(f.Listed, "local-lvm") }},
		{code: CodeStorageUnavailable, name: "wanted rootfs storage", make: func(_ *Facts, w *Want) { w.Rootfs.Storage = "nowhere" }},
		{code: CodeStorageUnavailable, name: "wanted backup storage", make: func(_ *Facts, w *Want) { w.Backup = &Backup{Storage: "tank"} }},
		{code: CodeNotPreservable, name: "subvolume on dir", make: func(f *Facts, _ *Want) {
			f.set("mp3", "local:5001/subvol-5001-disk-3.subvol,mp=/x")
			f.stored("local:5001/subvol-5001-disk-3.subvol", 5001, 0)
		}},
		{code: CodeNotPreservable, name: "only a snapshot names it", make: func(f *Facts, w *Want) {
			f.snapshot("daily")
			f.Guest.Snapshots[0].Config.Values["mp9"] = "local-lvm:vm-5001-disk-9,mp=/old"
			f.stored("local-lvm:vm-5001-disk-9", 5001, guest.GiB)
		}, also: []Code{CodeSnapshotsPresent}},
		{code: CodeNotPreservable, name: "volume chain", make: func(f *Facts, _ *Want) {
			f.edit("local-lvm", func(s *guest.Storage) { s.ChainSnapshots = true })
			f.snapshot("daily")
		}, also: []Code{CodeSnapshotsPresent}},
		{code: CodeIDMapDiffers, name: "lxc.idmap", make: func(f *Facts, w *Want) {
			f.Guest.Config.Raw = [][2]string{{"lxc.idmap", "u 0 100000 65536"}}
			w.Drop = append(w.Drop, "lxc.idmap")
		}},
		{code: CodeEraseMismatch, name: "another volume", make: func(_ *Facts, w *Want) { erase(w, "mp0", "local-lvm:vm-5001-disk-2") }},
		{code: CodeEraseMismatch, name: "another guest's", make: func(_ *Facts, w *Want) { erase(w, "mp1", "local-lvm:vm-5002-disk-1") }},
		{code: CodeEraseMismatch, name: "a bind mount", make: func(_ *Facts, w *Want) { erase(w, "mp2", "*") }},
		{code: CodeEraseSpent, name: "contract", make: func(f *Facts, w *Want) {
			erase(w, "mp0", "local-lvm:vm-5001-disk-1")
			f.Journal.Contract = &guest.Contract{Guest: 5001, Spent: map[string]string{"mp0": "local-lvm:vm-5001-disk-1"}}
		}},
		{code: CodeEraseSpent, name: "state", make: func(_ *Facts, w *Want) {
			erase(w, "mp0", "local-lvm:vm-5001-disk-1")
			w.Spent = map[string]string{"mp0": "local-lvm:vm-5001-disk-1"}
		}},
		{code: CodeNotRecreatable, name: "bind mount", make: func(_ *Facts, w *Want) { w.Drop = nil }},
		{code: CodeNotRecreatable, name: "device", make: func(f *Facts, _ *Want) { f.set("dev0", "/dev/fuse") }},
		{code: CodeNotRecreatable, name: "hookscript", make: func(f *Facts, _ *Want) { f.set("hookscript", "local:snippets/x") }},
		{code: CodeNotRecreatable, name: "feature", make: func(f *Facts, _ *Want) { f.set("features", "keyctl=1,nesting=1") }},
		{code: CodeNotRecreatable, name: "raw key", make: func(f *Facts, _ *Want) { f.Guest.Config.Raw = [][2]string{{"lxc.apparmor.profile", "unconfined"}} }},
		{code: CodeNotRecreatable, name: "unknown key", make: func(f *Facts, _ *Want) { f.set("foo", "bar") }},
		{code: CodeNotRecreatable, name: "OCI key", make: func(f *Facts, _ *Want) { f.set("entrypoint", "/app") }},
		{code: CodeNotRecreatable, name: "foreign mount, no right", make: func(f *Facts, _ *Want) { f.revoke("/vms/5002", "VM.Config.Disk") }},
		{code: CodeSnapshotsPresent, name: "one", make: func(f *Facts, _ *Want) { f.snapshot("daily") }},
		{code: CodeSnapshotsPresent, name: "only the parent is known", make: func(f *Facts, _ *Want) { f.set("parent", "daily") }},
		{code: CodeHAManaged, name: "started", make: func(f *Facts, _ *Want) {
			f.HA.Value = HA{Managed: true, State: "started"}
			f.grant("/", "Sys.Console")
		}},
		{code: CodeReplicated, name: "job", make: func(f *Facts, _ *Want) { f.Replicated.Value = true }},
		{code: CodeProtectedBackup, name: "somebody's", make: func(f *Facts, _ *Want) {
			f.Backups.Value = []guest.StoredVolume{{ID: volumeID("pbs:backup/ct/5001/2026-11-01T00:00:00Z"), Protected: true, Notes: "before the audit"}}
		}},
		{code: CodeBackupWindow, name: "in half an hour", make: func(f *Facts, _ *Want) {
			f.Jobs.Value = []BackupJob{{ID: "nightly", NextRun: f.Now + 1800, Covers: []guest.VMID{5001}}}
		}},
		{code: CodeBackupWindow, name: "unreadable", make: func(f *Facts, _ *Want) { f.Jobs = Known[[]BackupJob]{Why: "Sys.Audit on / is missing"} }},
		{code: CodeBackupLimit, name: "full", make: func(f *Facts, w *Want) {
			w.Backup = &Backup{Storage: "pbs"}
			f.BackupStorage.Value.ProtectedNow = 5
		}},
		{code: CodeRootfsShrink, name: "8GiB", make: func(_ *Facts, w *Want) { w.Rootfs = Rootfs{Size: 8 * guest.GiB, SizeText: "8GiB"} }},
		{code: CodeSizeUnreadable, name: "not listed", make: func(f *Facts, _ *Want) { delete(f.Volumes, volumeID("local-lvm:vm-5001-disk-0")) }},
		{code: CodeSizeUnreadable, name: "the readings differ", make: func(f *Facts, _ *Want) { f.set("rootfs", "local-lvm:vm-5001-disk-0,size=8G") }},
		{code: CodeSizeUnreadable, name: "garbage", make: func(f *Facts, _ *Want) { f.set("rootfs", "local-lvm:vm-5001-disk-0,size=8g") }},
		{code: CodeSizeUnreadable, name: "no size", make: func(f *Facts, _ *Want) { f.stored("local-lvm:vm-5001-disk-0", 5001, 0) }},
		{code: CodeTemplateMissing, name: "not listed", make: func(f *Facts, _ *Want) { f.Template = guest.StoredVolume{}; f.TemplateKnown = guest.Absent }},
		{code: CodeTemplateMissing, name: "an ISO image", make: func(f *Facts, _ *Want) { f.Template.Content = "iso" }},
		{code: CodeTemplateMissing, name: "no volume id", make: func(_ *Facts, w *Want) { w.Template = "debian-13" }},
		{code: CodeTemplateMissing, name: "storage away", make: func(f *Facts, _ *Want) { f.edit("local", func(s *guest.Storage) { s.Active = false }) }},
		{code: CodeSpace, name: "rootfs", make: func(f *Facts, _ *Want) { f.edit("local-lvm", func(s *guest.Storage) { s.Available = 8 * guest.GiB }) }},
		{code: CodeSpace, name: "backup", make: func(f *Facts, w *Want) {
			w.Backup = &Backup{Storage: "pbs"}
			f.BackupStorage.Value.Available = guest.GiB
		}},
		{code: CodeNotesTooLong, name: "long notes", make: func(f *Facts, _ *Want) {
			f.Journal.User = string(slices.Repeat([]rune{'ä'}, guest.NotesLimit-JournalBudget+1))
		}},
		{code: CodeParkingUnavailable, name: "none free", make: func(f *Facts, _ *Want) { f.Parking = Parking{Why: "900000-900999 are all in use"} }},
		{code: CodePrivileges, name: "missing", make: func(f *Facts, _ *Want) { f.revoke("/vms/5001", "VM.Allocate") }},
		{code: CodePrivileges, name: "unknown", make: func(f *Facts, _ *Want) { f.Privileges = Privileges{Why: "403"} }},
	}
}

// edit changes a storage.
func (f *Facts) edit(name string, change func(*guest.Storage)) {
	s := f.Storages[name]
	change(&s)
	f.Storages[name] = s
}

// Every code fires when its reason is there and not otherwise, says what it found and what to do, and is waived by allow
// exactly when it may be.
func TestEveryCodeInBothDirections(t *testing.T) {
	t.Parallel()
	covered := map[Code]bool{CodeParkingHoldsData: true} // close only: TestCloseRefusesWhileParkingHoldsData
	for _, r := range reasons() {
		covered[r.code] = true
		t.Run(r.code.String()+"/"+r.name, func(t *testing.T) {
			t.Parallel()
			f, w := web1()
			if has(Container(f, w).Blockers, r.code) {
				t.Fatal("fires on a sound guest")
			}
			r.make(&f, &w)
			p := Container(f, w)
			want := append([]Code{r.code}, r.also...)
			slices.Sort(want)
			wantOnly(t, p, want...)
			b := find(t, p.Blockers, r.code)
			if b.Title == "" || b.Found == "" || b.Remedy == "" || b.Subject == "" {
				t.Errorf("incomplete: %+v", b)
			}
			w.Allow = append(w.Allow, r.code.String())
			p = Container(f, w)
			blocked, waived := has(p.Blockers, r.code), has(p.Waived, r.code)
			if blocked == r.code.Waivable() || waived != r.code.Waivable() && r.code != CodeNotRecreatable {
				t.Errorf("waivable %t: blocked %t, waived %t", r.code.Waivable(), blocked, waived)
			}
		})
	}
	for _, r := range vmReasons() {
		covered[r.code] = true // TestEveryVMCodeInBothDirections
	}
	for _, r := range instanceReasons() {
		covered[r.code] = true // TestEveryInstanceCodeInBothDirections
	}
	for _, c := range Codes() {
		if !covered[c] {
			t.Errorf("no reason for %s", c)
		}
	}
}

func TestCodesAreWordsAndComplete(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range Codes() {
		back, ok := ParseCode(c.String())
		if !ok || back != c || seen[c.String()] || c.String() == "invalid" || c.title("x") == "invalid" {
			t.Errorf("code %d is %q", c, c)
		}
		seen[c.String()] = true
	}
	if Code(0).String() != "invalid" || (lastCode+1).String() != "invalid" || (lastCode + 1).Waivable() {
		t.Error("a code that is not on the list has a name")
	}
	if _, ok := ParseCode("invalid"); ok {
		t.Error("\"invalid\" is a code")
	}
}

func TestEnumsHaveWordsAndAnInvalidZero(t *testing.T) {
	t.Parallel()
	for d := DataErased; d <= DataUnknown; d++ {
		if d.String() == "invalid" {
			t.Errorf("data fate %d has no word", d)
		}
	}
	for m := MountRecreated; m <= MountDropped; m++ {
		if m.String() == "invalid" {
			t.Errorf("mount fate %d has no word", m)
		}
	}
	for o := OpReinstall; o <= OpClose; o++ {
		if back, ok := ParseOperation(o.String()); !ok || back != o {
			t.Errorf("operation %d is %q", o, o)
		}
	}
	if DataFate(0).String() != "invalid" || MountFate(0).String() != "invalid" || Operation(0).String() != "invalid" {
		t.Error("a zero value has a word")
	}
}

// Codes that facts on the edge must not raise.
func TestCodesStaySilent(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(f *Facts, w *Want){
		"version 9.1":               func(f *Facts, _ *Want) { f.Login.Version = "9.1.0" },
		"version 10.0":              func(f *Facts, _ *Want) { f.Login.Version = "10.0~beta1" },
		"protection = 0":            func(f *Facts, _ *Want) { f.set("protection", "0") },
		"a console is open":         func(f *Facts, _ *Want) { f.Tasks.Value = []Task{{Type: "vncproxy", ID: "5001"}} },
		"a backup of another guest": func(f *Facts, _ *Want) { f.Tasks.Value = []Task{{Type: "vzdump", ID: "5002"}} },
		"a task of no guest":        func(f *Facts, _ *Want) { f.Tasks.Value = []Task{{Type: "aptupdate", ID: ""}} },
		"a move of guest 15001":     func(f *Facts, _ *Want) { f.Tasks.Value = []Task{{Type: "move_volume", ID: "15001-mp0>9000-mp5001"}} },
		"own backup is protected": func(f *Facts, _ *Want) {
			f.Backups.Value = []guest.StoredVolume{{Protected: true, Notes: BackupNotes("op-5001-20261101-aaaa")}}
		},
		"unprotected backup":  func(f *Facts, _ *Want) { f.Backups.Value = []guest.StoredVolume{{Notes: "nightly"}} },
		"job after the end":   func(f *Facts, _ *Want) { f.Jobs.Value = []BackupJob{{NextRun: f.Now + 3601, All: true}} },
		"job of others":       func(f *Facts, _ *Want) { f.Jobs.Value = []BackupJob{{NextRun: f.Now + 60, Covers: []guest.VMID{5002}}} },
		"job that never runs": func(f *Facts, _ *Want) { f.Jobs.Value = []BackupJob{{All: true}} },
		"same size":           func(_ *Facts, w *Want) { w.Rootfs = Rootfs{Size: 8704 * guest.MiB, SizeText: "8.5G"} },
		"size without size=":  func(f *Facts, _ *Want) { f.set("rootfs", "local-lvm:vm-5001-disk-0") },
		"notes just fit": func(f *Facts, _ *Want) {
			f.Journal.User = string(slices.Repeat([]rune{'ä'}, guest.NotesLimit-JournalBudget))
		},
		"erase of an absent key": func(_ *Facts, w *Want) { erase(w, "mp9", "local-lvm:vm-5001-disk-2") },
		"erase of rootfs":        func(_ *Facts, w *Want) { erase(w, "rootfs", "local-lvm:vm-5001-disk-0") },
		"spent and absent":       func(_ *Facts, w *Want) { erase(w, "mp9", "x:y"); w.Spent = map[string]string{"mp9": "x:y"} },
		"* is never spent":       func(_ *Facts, w *Want) { erase(w, "mp0", "*"); w.Spent = map[string]string{"mp0": "*"} },
		"template not known yet": func(f *Facts, w *Want) {
			w.Template = ""
			f.TemplateKnown = guest.PresenceUnknown
			f.Template = guest.StoredVolume{}
		},
		"backup with room":            func(_ *Facts, w *Want) { w.Backup = &Backup{Storage: "pbs"} },
		"unlimited protected backups": func(f *Facts, w *Want) { w.Backup = &Backup{Storage: "pbs"}; f.BackupStorage.Value.ProtectedLimit = -1 },
		"features dropped":            func(f *Facts, w *Want) { f.set("features", "fuse=1"); w.Drop = append(w.Drop, "features") },
		"features that are off":       func(f *Facts, _ *Want) { f.set("features", "fuse=0,nesting=1") },
		"raw key dropped": func(f *Facts, w *Want) {
			f.Guest.Config.Raw = [][2]string{{"lxc.a", "b"}}
			w.Drop = append(w.Drop, "lxc.a")
		},
		"foreign mount dropped": func(f *Facts, w *Want) { f.revoke("/vms/5002", "VM.Config.Disk"); w.Drop = append(w.Drop, "mp1") },
		"the journal that asks": func(f *Facts, w *Want) {
			f.Journal.Journal = journal(guest.JournalDoing, f.Now)
			w.Operation = "op-5001-20261201-3f2a"
		},
		"another guest's journal":      func(f *Facts, _ *Want) { j := journal(guest.JournalStuck, 0); j.Guest = 5002; f.Elsewhere = j },
		"another guest mounts another": func(f *Facts, _ *Want) { f.Users[volumeID("local-lvm:vm-5002-disk-3")] = []User{{VMID: 5002}} },
		"linked clone of another base": func(f *Facts, _ *Want) {
			f.Linked = map[guest.VolumeID][]guest.VMID{volumeID("local-lvm:base-1-disk-0"): {5001}}
		},
		"rights through the parking pool": func(f *Facts, _ *Want) {
			f.Privileges.Held["/pool/spare"], f.Privileges.Held["/vms/900000"] = f.Privileges.Held["/vms/900000"], nil
			f.Parking.Pool = "spare"
		},
		"bridge right on the VLAN": func(f *Facts, _ *Want) {
			f.set("net0", "name=eth0,bridge=vmbr1,tag=20")
			f.Zones = map[string]string{"vmbr1": "z1"}
			f.grant("/sdn/zones/z1/vmbr1/20", "SDN.Use")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, w := web1()
			change(&f, &w)
			wantOnly(t, Container(f, w))
		})
	}
}

func TestTimeoutDecidesTheBackupWindow(t *testing.T) {
	t.Parallel()
	f, w := web1()
	f.Jobs.Value = []BackupJob{{ID: "nightly", NextRun: f.Now + 3600, All: true}}
	for timeout, blocks := range map[time.Duration]bool{time.Minute: false, 59 * time.Minute: false, time.Hour: true, 2 * time.Hour: true} {
		w.Timeout = timeout
		if has(Container(f, w).Blockers, CodeBackupWindow) != blocks {
			t.Errorf("timeout %s: blocked %t, want %t", timeout, !blocks, blocks)
		}
	}
}
