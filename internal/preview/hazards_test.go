package preview

import (
	"slices"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

func TestA1VolumeSharedWithAnotherGuest(t *testing.T) {
	t.Parallel()
	users := map[string]User{
		"CT 5002 (mp0)":                  {VMID: 5002, Kind: guest.KindContainer, Key: "mp0"},
		"VM 7001 (scsi1)":                {VMID: 7001, Kind: guest.KindVM, Key: "scsi1"},
		"CT 5002 (mp0, pending)":         {VMID: 5002, Kind: guest.KindContainer, Key: "mp0", Section: "pending"},
		"CT 5002 (mp0, snapshot before)": {VMID: 5002, Kind: guest.KindContainer, Key: "mp0", Section: "before"},
	}
	for words, user := range users {
		for _, volume := range []string{"local-lvm:vm-5001-disk-0", "local-lvm:vm-5001-disk-1", "local-lvm:vm-5001-disk-7"} {
			for _, consent := range []bool{false, true} { // whatever its fate
				f, w := web1()
				if consent {
					erase(&w, "mp0", "*")
					erase(&w, "unused0", "*")
				}
				w.Allow = []string{"volume_shared", "guests_unseen"}
				w.Drop = append(w.Drop, "mp0", "unused0")
				f.Users[volumeID(volume)] = []User{user}
				b := find(t, Container(f, w).Blockers, CodeVolumeShared)
				if !strings.Contains(b.Found, words) || !strings.Contains(b.Found, volume) {
					t.Errorf("%q does not name %s and %s", b.Found, words, volume)
				}
			}
		}
	}
	t.Run("unreferenced here", func(t *testing.T) {
		t.Parallel()
		f, w := web1()
		f.stored("local-lvm:vm-5001-disk-9", 5001, guest.GiB)
		f.Users[volumeID("local-lvm:vm-5001-disk-9")] = []User{users["CT 5002 (mp0)"]}
		wantOnly(t, Container(f, w), CodeVolumeShared)
	})
	t.Run("guests unseen are named", func(t *testing.T) {
		t.Parallel()
		f, w := web1()
		f.Unseen = []guest.VMID{5009, 5003}
		if b := find(t, Container(f, w).Blockers, CodeGuestsUnseen); !strings.Contains(b.Found, "guests 5003 and 5009") {
			t.Errorf("%q", b.Found)
		}
	})
}

func TestA4BackupJobInTheWindow(t *testing.T) {
	t.Parallel()
	for name, job := range map[string]BackupJob{
		"the guest":         {ID: "nightly", Covers: []guest.VMID{5001}},
		"the parking guest": {ID: "nightly", Covers: []guest.VMID{900000}},
		"all or a pool":     {ID: "nightly", All: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, w := web1()
			job.NextRun = f.Now + 600
			f.Jobs.Value = []BackupJob{job}
			wantOnly(t, Container(f, w), CodeBackupWindow)
			w.Allow = []string{"backup_window"}
			wantOnly(t, Container(f, w))
		})
	}
	t.Run("one that runs already is not waivable", func(t *testing.T) {
		t.Parallel()
		f, w := web1()
		f.Tasks.Value = []Task{{Type: "vzdump", ID: "5001"}}
		w.Allow = []string{"backup_window", "task_running"}
		wantOnly(t, Container(f, w), CodeTaskRunning)
	})
}

func TestA5BackupLimitLeavesNoRoom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit, now int
		blocks     bool
	}{{5, 4, false}, {5, 5, true}, {1, 1, true}, {0, 0, true}, {-1, 99, false}} {
		f, w := web1()
		w.Backup = &Backup{Storage: "pbs"}
		f.BackupStorage.Value.ProtectedLimit, f.BackupStorage.Value.ProtectedNow = c.limit, c.now
		if got := has(Container(f, w).Blockers, CodeBackupLimit); got != c.blocks {
			t.Errorf("limit %d, %d protected: blocked %t", c.limit, c.now, got)
		}
		w.Operation = "op-5001-20261201-3f2a" // the last look: the archive is made already
		wantOnly(t, Container(f, w))
	}
}

func TestA6StorageUnavailableForEveryVolume(t *testing.T) {
	t.Parallel()
	kinds := map[string]func(f *Facts){
		"gone":            func(f *Facts) { delete(f.Storages, "tank") },
		"disabled":        func(f *Facts) { f.edit("tank", func(s *guest.Storage) { s.Enabled = false }) },
		"inactive":        func(f *Facts) { f.edit("tank", func(s *guest.Storage) { s.Active = false }) },
		"without rootdir": func(f *Facts) { f.edit("tank", func(s *guest.Storage) { s.Content = []string{"images"} }) },
		"silent":          func(f *Facts) { delete(f.Listed, "tank") },
	}
	places := map[string]func(f *Facts, w *Want){
		"own mount":     func(f *Facts, _ *Want) { f.set("mp3", "tank:subvol-5001-disk-3,mp=/x,size=1G") },
		"unused":        func(f *Facts, _ *Want) { f.set("unused3", "tank:subvol-5001-disk-3") },
		"foreign mount": func(f *Facts, _ *Want) { f.set("mp3", "tank:subvol-5002-disk-3,mp=/x,size=1G") },
		"erased mount": func(f *Facts, w *Want) {
			f.set("mp3", "tank:subvol-5001-disk-3,mp=/x,size=1G")
			erase(w, "mp3", "*")
		},
		"pending": func(f *Facts, _ *Want) {
			f.Guest.Pending = []guest.Change{{Key: "mp3", Value: "tank:subvol-5001-disk-3,mp=/x,size=1G"}}
		},
	}
	for place, name := range places {
		for kind, fail := range kinds {
			t.Run(place+"/"+kind, func(t *testing.T) {
				t.Parallel()
				f, w := web1()
				f.stored("tank:subvol-5001-disk-3", 5001, guest.GiB)
				f.stored("tank:subvol-5002-disk-3", 5002, guest.GiB)
				name(&f, &w)
				w.Drop = append(w.Drop, "mp3")
				fail(&f)
				b := find(t, Container(f, w).Blockers, CodeStorageUnavailable)
				if b.Subject != "tank" || !strings.Contains(b.Found, "3") {
					t.Errorf("%+v", b)
				}
			})
		}
	}
}

func TestA7PrivilegedStaysPrivileged(t *testing.T) {
	t.Parallel()
	f, w := web1()
	f.unset("unprivileged")
	f.unset("swap")
	f.unset("features")
	carried := Carry(f, w)
	if carried["unprivileged"] != "0" || carried["swap"] != "0" {
		t.Errorf("absent keys are sent as %v", carried)
	}
	wantOnly(t, Container(f, w), CodePrivileges) // a privileged create needs Sys.Modify on /
	f.grant("/", "Sys.Modify")
	wantOnly(t, Container(f, w))

	f, w = web1()
	w.Drop = append(w.Drop, "unprivileged", "swap") // drop cannot flip the mapping
	if carried := Carry(f, w); carried["unprivileged"] != "1" || carried["swap"] != "512" {
		t.Errorf("set keys are sent as %v", carried)
	}

	f, w = web1()
	f.Guest.Config.Raw = [][2]string{{"lxc.idmap", "u 0 100000 1000"}, {"lxc.idmap", "u 1000 1000 1"}}
	wantOnly(t, Container(f, w), CodeIDMapDiffers, CodeNotRecreatable)
	w.Drop = append(w.Drop, "lxc.idmap")
	wantOnly(t, Container(f, w), CodeIDMapDiffers)
	w.Drop = append(w.Drop, "mp1")
	erase(&w, "mp0", "*")
	erase(&w, "unused0", "*")
	wantOnly(t, Container(f, w)) // nothing is kept whose owners could change
}

func TestB2RunningTasksAreMatchedByTypeAndNode(t *testing.T) {
	t.Parallel()
	for name, task := range map[string]Task{
		"a job over many guests has no id": {UPID: "UPID:pve1:1:2:3:vzdump::root@pam", Type: "vzdump", User: "root@pam"},
		"a move out carries both":          {Type: "move_volume", ID: "5001-mp0>9000-mp0"},
		"a move in carries both":           {Type: "move_volume", ID: "9000-mp0>5001-mp0"},
		"stop of all guests of the node":   {Type: "stopall"},
		"a snapshot":                       {Type: "vzsnapshot", ID: "5001"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, w := web1()
			f.Tasks.Value = []Task{{Type: "vzdump", ID: "7777"}, task}
			wantOnly(t, Container(f, w), CodeTaskRunning)
		})
	}
	t.Run("unseen is unknown, and named", func(t *testing.T) {
		t.Parallel()
		f, w := web1()
		f.Tasks = Known[[]Task]{Why: "Sys.Audit on /nodes/pve1"}
		p := Container(f, w)
		wantOnly(t, p, CodePrivileges)
		if b := find(t, p.Blockers, CodePrivileges); !strings.Contains(b.Text(), "Sys.Audit on /nodes/pve1") {
			t.Errorf("%q", b.Text())
		}
	})
}

func TestB8OCIKeysAreNotCarried(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"entrypoint", "env", "cmode"} {
		f, w := web1()
		f.set(key, "x")
		wantOnly(t, Container(f, w), CodeNotRecreatable)
		w.Drop = append(w.Drop, key)
		p := Container(f, w)
		wantOnly(t, p)
		if _, sent := Carry(f, w)[key]; sent || Carried(key) {
			t.Errorf("%s is carried", key)
		}
		if p.AlsoLost[key] == "" {
			t.Errorf("the loss of %s is not shown", key)
		}
	}
	for _, key := range []string{"ostype", "arch"} {
		f, w := web1()
		f.set(key, "unmanaged")
		wantOnly(t, Container(f, w))
		if _, sent := Carry(f, w)[key]; sent || !NeverCarried(key) {
			t.Errorf("%s is carried", key)
		}
	}
}

func TestB9NotesLeaveRoomForTheRecord(t *testing.T) {
	t.Parallel()
	for own, blocks := range map[int]bool{0: false, guest.NotesLimit - JournalBudget: false, guest.NotesLimit - JournalBudget + 1: true, guest.NotesLimit: true} {
		f, w := web1()
		f.Journal.User = strings.Repeat("ä", own) // characters, not bytes
		if got := has(Container(f, w).Blockers, CodeNotesTooLong); got != blocks {
			t.Errorf("%d characters: blocked %t", own, got)
		}
	}
}

// The budget holds a guest with forty volumes, a firewall aside, and the contract beside the record.
func TestB9TheBudgetHoldsALargeRecord(t *testing.T) {
	t.Parallel()
	f, _ := web1()
	j := *journal(guest.JournalStuck, 1)
	j.Operation, j.Runner, j.Error = "op-5001-20261201-3f2a", "a1b2c3d4", strings.Repeat("error 17 ", 33)
	j.Wanted = guest.Install{Template: template, Triggers: map[string]string{"again": "2026-12-01"}, RootfsStorage: "local-lvm"}
	j.Installed = &j.Wanted
	j.Config = f.Guest.Config.Clone().Values
	delete(j.Config, "description")
	for i := range 40 {
		key := "mp" + guest.VMID(i).String()
		value := "local-lvm:vm-5001-disk-" + guest.VMID(i+1).String() + ",mp=/srv/data" + guest.VMID(i*7919).String() + ",backup=1,size=100G"
		j.Config[key] = value
		j.Parked = append(j.Parked, guest.ParkedVolume{Key: key, Value: value, Parked: "local-lvm:vm-900012-disk-" + guest.VMID(i+1).String(), To: 900012})
	}
	c := guest.Contract{Version: 1, Guest: 5001, Instance: "op-5001-20261201-3f2a", Installed: j.Wanted, Spent: map[string]string{"mp1": "local-lvm:vm-5001-disk-2"}}
	n := guest.Length(guest.Notes{}.WithJournal(&j).WithContract(&c).String())
	t.Logf("record and contract take %d characters", n)
	if n > JournalBudget {
		t.Errorf("record and contract take %d characters of %d", n, JournalBudget)
	}
}

func TestB10RightsMustOutliveTheGuest(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/vms/5001", "/vms/900000"} {
		f, w := web1()
		delete(f.Privileges.Lasting, path) // held, but only on exactly that path or through a pool
		p := Container(f, w)
		wantOnly(t, p, CodePrivileges)
		if b := find(t, p.Blockers, CodePrivileges); b.Subject != path || !strings.Contains(b.Found, "VM.Allocate") || !strings.Contains(b.Remedy, "/vms with propagation") {
			t.Errorf("%+v", b)
		}
	}
	t.Run("the parking pool is enough", func(t *testing.T) {
		t.Parallel()
		f, w := web1()
		f.Parking.Pool = "spare"
		f.grant("/pool/spare", "VM.Allocate", "VM.Audit", "VM.Config.CPU", "VM.Config.Disk", "VM.Config.Memory", "VM.Config.Network", "VM.Config.Options", "VM.PowerMgmt")
		delete(f.Privileges.Held, "/vms/900000")
		delete(f.Privileges.Lasting, "/vms/900000")
		wantOnly(t, Container(f, w))
	})
	t.Run("what is used before the destroy need not last", func(t *testing.T) {
		t.Parallel()
		f, w := web1()
		f.snapshot("daily")
		w.Allow = []string{"snapshots_present"}
		delete(f.Privileges.Lasting["/vms/5001"], "VM.Snapshot")
		wantOnly(t, Container(f, w))
		f.revoke("/vms/5001", "VM.Snapshot")
		wantOnly(t, Container(f, w), CodePrivileges)
	})
}

func TestB11ListsThatRightsEmpty(t *testing.T) {
	t.Parallel()
	for name, hide := range map[string]func(f *Facts){
		"pool": func(f *Facts) { f.Pool = Known[string]{Why: "Pool.Audit on /pool is missing"} },
		"ACL":  func(f *Facts) { f.ACL = Known[[]ACLEntry]{Why: "Sys.Audit on /access is missing"} },
		"backups": func(f *Facts) {
			f.Backups = Known[[]guest.StoredVolume]{Why: "Datastore.Audit on /storage/pbs is missing"}
		},
		"tasks":       func(f *Facts) { f.Tasks = Known[[]Task]{Why: "Sys.Audit on /nodes/pve1 is missing"} },
		"HA":          func(f *Facts) { f.HA = Known[HA]{Why: "Sys.Audit on / is missing"} },
		"replication": func(f *Facts) { f.Replicated = Known[bool]{Why: "VM.Audit on /vms/5001 is missing"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, w := web1()
			hide(&f)
			w.Drop = append(w.Drop, name, strings.ToLower(name)) // no drop overrides it
			w.Allow = []string{"privileges", "protected_backup", "ha_managed"}
			p := Container(f, w)
			wantOnly(t, p, CodePrivileges)
			if b := p.Blockers[0]; !strings.Contains(b.Found, "is missing") {
				t.Errorf("the missing right is not named: %q", b.Found)
			}
		})
	}
	t.Run("an entry that cannot be granted again", func(t *testing.T) {
		t.Parallel()
		f, w := web1()
		f.ACL.Value = []ACLEntry{{Path: "/vms/5001", Who: "ops@pve", Role: "PVEVMUser", Missing: "VM.Console is not held"}}
		p := Container(f, w)
		wantOnly(t, p, CodePrivileges)
		if got := p.AlsoLost["ACL"]; got != "lost: ops@pve PVEVMUser, which this login may not grant" {
			t.Errorf("ACL: %q", got)
		}
	})
}

func TestB12HAAndReplicationAtPlan(t *testing.T) {
	t.Parallel()
	f, w := web1()
	f.HA.Value = HA{Managed: true, State: "ignored"} // no state makes a destroy possible
	w.Allow = []string{"ha_managed"}
	wantOnly(t, Container(f, w), CodePrivileges) // Sys.Console on / is checked at plan
	f.grant("/", "Sys.Console")
	wantOnly(t, Container(f, w))
	w.Allow = nil
	wantOnly(t, Container(f, w), CodeHAManaged)
	f, w = web1()
	f.Replicated.Value = true
	w.Allow = []string{"replicated"}
	wantOnly(t, Container(f, w), CodeReplicated)
}

func TestB13TagsThatThePolicyForbids(t *testing.T) {
	t.Parallel()
	f, w := web1()
	f.RegisteredTags = []string{"prod", "other"}
	p := Container(f, w)
	wantOnly(t, p, CodePrivileges)
	if b := p.Blockers[0]; b.Subject != "tags" || !strings.Contains(b.Found, "prod") || strings.Contains(b.Found, "web,") {
		t.Errorf("%+v", b)
	}
	f.grant("/", "Sys.Modify")
	wantOnly(t, Container(f, w))
	f, w = web1()
	f.RegisteredTags = []string{"other"}
	wantOnly(t, Container(f, w))
}

func TestC1OneVolumeUnderTwoKeys(t *testing.T) {
	t.Parallel()
	f, w := web1()
	f.set("mp5", "local-lvm:vm-5001-disk-1,mp=/again,size=100G")
	p := Container(f, w)
	wantOnly(t, p, CodeMountUnclassified)
	wantFate(t, p, "mp0", DataUnknown, MountDropped)
	wantFate(t, p, "mp5", DataUnknown, MountDropped)
	t.Run("a foreign unused volume is never moved", func(t *testing.T) {
		t.Parallel()
		f, w := web1()
		f.set("unused3", "local-lvm:vm-5002-disk-8")
		p := Container(f, w)
		wantOnly(t, p, CodeNotRecreatable)
		wantFate(t, p, "unused3", DataExcluded, MountDropped)
		w.Drop = append(w.Drop, "unused3")
		wantOnly(t, Container(f, w))
	})
}

func TestC2TheListOfCarriedKeysIsClosed(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"lock", "template", "protection", "digest", "parent", "snaptime", "lxc", "unused0", "unused17", "ostype", "arch"} {
		if Carried(key) || !NeverCarried(key) {
			t.Errorf("%s may reach the new guest", key)
		}
	}
	for _, key := range []string{
		"cores", "cpulimit", "cpuunits", "memory", "swap", "net0", "net31", "nameserver", "searchdomain", "hostname", "features",
		"description", "startup", "onboot", "timezone", "console", "tty", "tags", "debug", "unprivileged",
	} {
		if !Carried(key) || NeverCarried(key) {
			t.Errorf("%s is lost", key)
		}
	}
	for _, key := range []string{"foo", "rootfs", "mp0", "net", "net01", "unused", "", "lxc.idmap"} {
		if Carried(key) || NeverCarried(key) {
			t.Errorf("%q is on a list", key)
		}
	}
	f, w := web1()
	f.set("foo", "bar")
	wantOnly(t, Container(f, w), CodeNotRecreatable)
	w.Drop = append(w.Drop, "foo")
	wantOnly(t, Container(f, w))
	if sent := Carry(f, w); sent["foo"] != "" || sent["lock"] != "" || sent["description"] != "" {
		t.Errorf("sent %v", sent)
	}
}

func TestC3RootfsOptionsAreShownAndKept(t *testing.T) {
	t.Parallel()
	f, w := web1()
	f.set("rootfs", "local-lvm:vm-5001-disk-0,acl=1,mountoptions=noatime;nosuid,quota=0,replicate=0,size=8704M")
	p := Container(f, w)
	wantOnly(t, p)
	m := fateOf(t, p, "rootfs").Mounted
	for option, value := range map[string]string{"acl": "1", "mountoptions": "noatime;nosuid", "quota": "0", "replicate": "0"} {
		if m.Options[option] != value {
			t.Errorf("%s = %q, want %q", option, m.Options[option], value)
		}
	}
}

func TestC15ExcludedMountsNeedRightsOrConsent(t *testing.T) {
	t.Parallel()
	f, w := web1()
	wantFate(t, Container(f, w), "mp1", DataExcluded, MountReattached)
	f.revoke("/vms/5002", "VM.Config.Disk")
	p := Container(f, w)
	wantOnly(t, p, CodeNotRecreatable)
	wantFate(t, p, "mp1", DataExcluded, MountDropped)
	if b := p.Blockers[0]; b.Attribute != "drop" || !strings.Contains(b.Found, "VM.Config.Disk on /vms/5002") {
		t.Errorf("%+v", b)
	}
	w.Drop = append(w.Drop, "mp1")
	p = Container(f, w)
	wantOnly(t, p)
	wantFate(t, p, "mp1", DataExcluded, MountDropped)
	f.grant("/storage/local-lvm", "Datastore.Allocate") // enough on its own
	w.Drop = []string{"mp2"}
	p = Container(f, w)
	wantOnly(t, p)
	wantFate(t, p, "mp1", DataExcluded, MountReattached)
	var asked []string
	for _, n := range Needs(f, w) {
		asked = append(asked, n.Paths...)
	}
	for _, path := range []string{"/vms/5002", "/storage/local-lvm"} {
		if !slices.Contains(asked, path) {
			t.Errorf("%s is not asked for", path)
		}
	}
}
