package preview

import (
	"slices"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

func TestSoundGuestMayBeReinstalled(t *testing.T) {
	t.Parallel()
	f, w := web1()
	p := Container(f, w)
	wantOnly(t, p)
	wantFate(t, p, "rootfs", DataErased, MountRecreated)
	wantFate(t, p, "mp0", DataPreserved, MountReattached)
	wantFate(t, p, "mp1", DataExcluded, MountReattached)
	wantFate(t, p, "mp2", DataHostManaged, MountDropped)
	wantFate(t, p, "unused0", DataPreserved, MountReattached)
	if got, want := codesOf(p.Waived), []string{"not_recreatable"}; !slices.Equal(got, want) {
		t.Errorf("waived %v, want %v", got, want)
	}
	if p.ErasedBytes != 8704*guest.MiB {
		t.Errorf("erases %d bytes", p.ErasedBytes)
	}
	if p.RootPassword != "none" || p.Precondition == "" || p.Operation != OpReinstall {
		t.Errorf("password %q, precondition %q, operation %s", p.RootPassword, p.Precondition, p.Operation)
	}
	const summary = "CT 5001 web1: reinstall from debian-13-standard_13.1-1: erases rootfs (9 GiB), keeps 2 volumes (104 GiB), 1 mount dropped"
	if p.Summary != summary {
		t.Errorf("summary\n%s, want\n%s", p.Summary, summary)
	}
}

// The last section of the examples that users read.
func TestFatesReadAsATable(t *testing.T) {
	t.Parallel()
	f, w := web1()
	got := Container(f, w).Fates()
	want := map[string]string{
		"mp0":     "preserved    reattached 100 GiB  local-lvm:vm-5001-disk-1  /srv/data",
		"mp1":     "excluded     reattached  50 GiB  local-lvm:vm-5002-disk-1  /shared",
		"mp2":     "host_managed dropped          -  /mnt/media  /media",
		"rootfs":  "erased       recreated    9 GiB  local-lvm:vm-5001-disk-0  /",
		"unused0": "preserved    reattached   4 GiB  local-lvm:vm-5001-disk-7  -",
	}
	for key, line := range want {
		if got[key] != line {
			t.Errorf("%s\n%q, want\n%q", key, got[key], line)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d lines, want %d", len(got), len(want))
	}
}

func TestZeroFactsBlock(t *testing.T) {
	t.Parallel()
	p := Container(Facts{}, Want{})
	wantOnly(t, p, CodeNodeOffline, CodeNoQuorum, CodeUnsupportedVersion)
}

func TestEmptyFactsAreJudged(t *testing.T) {
	t.Parallel()
	for _, f := range []Facts{{}, {Presence: guest.Present}, {Presence: guest.Absent}, {Presence: guest.Present, WrongType: true}} {
		for name, p := range map[string]Preview{
			"reinstall": Container(f, Want{}), "grow": GrowOnly(f, Want{}), "resume": Reconcile(OpResume, guest.Journal{}, f),
			"rollback": Reconcile(OpRollback, guest.Journal{}, f), "close": Reconcile(OpClose, guest.Journal{}, f),
		} {
			if len(p.Blockers) == 0 || p.Summary == "" {
				t.Errorf("%s of %s facts: %+v", name, f.Presence, p)
			}
		}
		Needs(f, Want{})
	}
}

func TestMissingGuestHasNoFates(t *testing.T) {
	t.Parallel()
	f, w := web1()
	f.Presence = guest.Absent
	p := Container(f, w)
	wantOnly(t, p, CodeGuestMissing)
	if len(p.Volumes) != 0 || p.Precondition != "" {
		t.Errorf("fates %v, precondition %q of a guest that is not there", p.Volumes, p.Precondition)
	}
}

func TestPendingAndSnapshotVolumes(t *testing.T) {
	t.Parallel()
	f, w := web1()
	f.snapshot("daily")
	old := f.Guest.Snapshots[0].Config
	old.Values["mp5"] = "tank:subvol-5001-disk-3,mp=/old,size=1G"
	f.stored("tank:subvol-5001-disk-3", 5001, guest.GiB)
	f.stored("tank:subvol-5001-disk-4", 5001, guest.GiB)
	f.Guest.Pending = []guest.Change{
		{Key: "mp7", Value: "tank:subvol-5001-disk-4,mp=/new,size=1G"},
		{Key: "mp1", Delete: true},
		{Key: "mp8", Value: "tank:subvol-5002-disk-4,mp=/theirs,size=1G"},
	}
	w.Allow = []string{"snapshots_present"}
	p := Container(f, w)
	wantOnly(t, p, CodePendingChanges, CodeNotPreservable)
	wantFate(t, p, "mp7 (pending)", DataErased, MountDropped)
	wantFate(t, p, "mp8 (pending)", DataExcluded, MountDropped)
	wantFate(t, p, "mp5@daily", DataErased, MountDropped)
	var keys []string
	for _, v := range p.Volumes {
		keys = append(keys, v.Key)
	}
	if want := []string{"rootfs", "mp0", "mp1", "mp2", "unused0", "mp7 (pending)", "mp8 (pending)", "mp5@daily"}; !slices.Equal(keys, want) {
		t.Errorf("order %v, want %v", keys, want)
	}
}

func TestRootPasswordSaysWhetherItWasGiven(t *testing.T) {
	t.Parallel()
	f, w := web1()
	w.PasswordGiven = true
	if p := Container(f, w); p.RootPassword != "given" {
		t.Errorf("root password %q", p.RootPassword)
	}
}

func TestRootByPasswordPutsHostPathsBack(t *testing.T) {
	t.Parallel()
	f, w := web1()
	f.Login = Login{User: "root@pam", RootTicket: true, Version: "9.2.1"}
	f.Privileges = Privileges{}
	f.set("dev0", "/dev/dri/renderD128,mode=0660")
	f.set("hookscript", "local:snippets/hook.pl")
	f.set("features", "nesting=1,keyctl=1,fuse=1")
	w.Drop = nil
	p := Container(f, w)
	wantOnly(t, p)
	wantFate(t, p, "mp2", DataHostManaged, MountReattached)
	wantFate(t, p, "dev0", DataHostManaged, MountReattached)
	carried := Carry(f, w)
	for _, key := range []string{"dev0", "hookscript", "features"} {
		if carried[key] != f.Guest.Config.Values[key] {
			t.Errorf("%s is carried as %q", key, carried[key])
		}
	}
}

func TestAlsoLostNamesEverything(t *testing.T) {
	t.Parallel()
	f, w := web1()
	f.snapshot("daily")
	f.Firewall.Value = Firewall{Rules: 3}
	f.ACL.Value = []ACLEntry{{Path: "/vms/5001", Who: "ops@pve", Role: "PVEVMUser", CanRestore: true}}
	f.Pool.Value = "web"
	f.HA.Value = HA{Managed: true, State: "started"}
	f.Leases.Value = []Lease{{IP: "10.0.0.50"}}
	f.set("entrypoint", "/app")
	w.Drop = append(w.Drop, "entrypoint")
	got := Container(f, w).AlsoLost
	want := map[string]string{
		"root file system": "lost: users, passwords, SSH host keys, cron jobs and all other files on rootfs",
		"statistics":       "lost: the usage graphs begin anew",
		"snapshots":        "lost: 1 snapshot (daily)",
		"firewall":         "returns",
		"ACL":              "returns",
		"pool":             "returns",
		"HA":               "returns",
		"address leases":   "lost: 10.0.0.50 may change; compared and reported afterwards",
		"entrypoint":       "lost: drop gives it up",
	}
	for what, verdict := range want {
		if got[what] != verdict {
			t.Errorf("%s: %q, want %q", what, got[what], verdict)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%v", got)
	}
	f.Leases = Known[[]Lease]{Why: "Sys.Audit on / is missing"}
	if got := Container(f, w).AlsoLost["address leases"]; got != "unknown: Sys.Audit on / is missing" {
		t.Errorf("unread leases: %q", got)
	}
}
