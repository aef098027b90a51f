package preview

import (
	"slices"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// The operation asks once more right before the destroy: its own record, archive and parking guest are no reasons then, and
// everything else still is.
func TestTheLastLookIgnoresOnlyWhatIsOurOwn(t *testing.T) {
	t.Parallel()
	look := func() (Facts, Want) {
		f, w := web1()
		w.Backup = &Backup{Storage: "pbs"}
		f.BackupStorage.Value.ProtectedNow = 5 // with ours
		f.Backups.Value = []guest.StoredVolume{{Protected: true, Notes: BackupNotes("op-5001-20261201-3f2a")}}
		f.stored("local-lvm:vm-900000-disk-0", 900000, 9*guest.GiB)
		f.edit("local-lvm", func(s *guest.Storage) { s.Available = guest.GiB })
		f.Journal.User = string(slices.Repeat([]rune{'x'}, 6000))
		for _, key := range []string{"mp0", "unused0"} {
			f.unset(key)
		}
		return f, w
	}
	f, w := look()
	p := Container(f, w)
	wantOnly(t, p)
	if len(p.Warnings) != 1 {
		t.Errorf("our own archive is not shown: %q", p.Warnings)
	}
	f.set("lock", "backup")
	f.snapshot("oops")
	wantOnly(t, Container(f, w), CodeLocked, CodeSnapshotsPresent)
	f, w = look()
	w.Rootfs.Size = 10 * guest.GiB // more than what the old one frees and what is left
	wantOnly(t, Container(f, w), CodeSpace)
	f, w = look()
	f.Journal.Journal = journal(guest.JournalDoing, f.Now+60) // another operation's
	wantOnly(t, Container(f, w), CodeOperationInFlight)
	w.Operation = "op-5001-20261201-ffff"
	wantOnly(t, Container(f, w), CodeOperationInFlight)
	w.Operation = "op-5001-20261201-3f2a"
	wantOnly(t, Container(f, w))
}

func TestSpaceCountsTheParkingGuestAndTheNewDisk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		storage   string
		size      guest.Bytes
		available guest.Bytes
		blocks    bool
	}{
		{"local-lvm", 0, 8704 * guest.MiB, false},
		{"local-lvm", 0, 8704*guest.MiB - 1, true},
		{"local-lvm", 16 * guest.GiB, 16*guest.GiB + 7680*guest.MiB, false},
		{"local-lvm", 16 * guest.GiB, 16*guest.GiB + 7680*guest.MiB - 1, true},
		{"tank", 0, 2 * 8704 * guest.MiB, false},
		{"tank", 0, 2*8704*guest.MiB - 1, true}, // the old one frees nothing there
	} {
		f, w := web1()
		w.Rootfs = Rootfs{Storage: c.storage, Size: c.size}
		f.edit(c.storage, func(s *guest.Storage) { s.Available = c.available })
		if got := has(Container(f, w).Blockers, CodeSpace); got != c.blocks {
			t.Errorf("%d bytes on %s with %d free: blocked %t", c.size, c.storage, c.available, got)
		}
	}
	f, w := web1()
	f.edit("local-lvm", func(s *guest.Storage) { s.Available, s.Total = 0, 0 }) // the node told no numbers
	wantOnly(t, Container(f, w))
}

func TestForemostKeepsTheOpenOperation(t *testing.T) {
	t.Parallel()
	f, w := web1()
	f.set("lock", "create")
	f.set("protection", "1")
	f.Journal.Journal = journal(guest.JournalStuck, f.Now)
	p := Container(f, w)
	wantOnly(t, p, CodeNeedsReconcile, CodeProtected, CodeLocked)
	if got := Foremost(p.Blockers); len(got) != 1 || got[0].Code != CodeNeedsReconcile {
		t.Errorf("%v", codesOf(got))
	}
	if got := Foremost(p.Blockers[1:]); len(got) != 2 {
		t.Errorf("%v", codesOf(got))
	}
}

func TestRootfsShrinkSaysWhatToAskFor(t *testing.T) {
	t.Parallel()
	for size, least := range map[guest.Bytes]string{
		8704 * guest.MiB: "9GiB", 8 * guest.GiB: "8GiB", 8*guest.GiB + 1: "9GiB", 512 * guest.MiB: "512MiB", 512*guest.MiB + 1: "513MiB",
	} {
		if got := atLeast(size); got != least {
			t.Errorf("%d: %s, want %s", size, got, least)
		}
		if back, err := guest.ParseRequest(atLeast(size)); err != nil || back < size {
			t.Errorf("%s is no answer to %d bytes (%v)", atLeast(size), size, err)
		}
	}
	f, w := web1()
	w.Rootfs.Size = 8*guest.GiB + 511*guest.MiB // one MiB too little
	wantOnly(t, Container(f, w), CodeRootfsShrink)
}

func TestNeedsFollowTheGuest(t *testing.T) {
	t.Parallel()
	f, w := web1()
	f.set("net1", "name=eth1,bridge=vmbr1,trunks=10;20")
	f.unset("cores")
	var on []string
	for _, n := range Needs(f, w) {
		if !n.Optional {
			on = append(on, n.Privileges[0]+" "+n.Paths[len(n.Paths)-1])
		}
	}
	for _, want := range []string{"SDN.Use /sdn/zones/localnetwork/vmbr1/10", "SDN.Use /sdn/zones/localnetwork/vmbr1/20", "SDN.Use /sdn/zones/localnetwork/vmbr0", "VM.Config.Memory /vms/5001"} {
		if !slices.Contains(on, want) {
			t.Errorf("%s is not needed by %q", want, on)
		}
	}
	for _, not := range []string{"VM.Config.CPU /vms/5001", "Sys.Modify /", "VM.Snapshot /vms/5001", "VM.Backup /vms/5001", "Datastore.Audit /storage/tank"} {
		if slices.Contains(on, not) {
			t.Errorf("%s is needed", not)
		}
	}
}
