package preview

import (
	"maps"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// An erasure spent once never erases again, though Proxmox gives the same number to the next volume.
func TestConsentIsSpentByTheOperationThatUsedIt(t *testing.T) {
	t.Parallel()
	f, w := web1()
	erase(&w, "mp0", "local-lvm:vm-5001-disk-1")
	erase(&w, "unused0", "*")
	erase(&w, "mp9", "local-lvm:vm-5001-disk-9") // absent: not used
	p := Container(f, w)
	wantOnly(t, p)
	wantFate(t, p, "mp0", DataErased, MountDropped)
	wantFate(t, p, "unused0", DataErased, MountDropped)
	if got, want := p.Erased(), map[string]string{
		"rootfs": "local-lvm:vm-5001-disk-0", "mp0": "local-lvm:vm-5001-disk-1", "unused0": "local-lvm:vm-5001-disk-7",
	}; !maps.Equal(got, want) {
		t.Errorf("erased %v", got)
	}
	if p.ErasedBytes != 8704*guest.MiB+104*guest.GiB {
		t.Errorf("erases %d bytes", p.ErasedBytes)
	}

	spent := map[string]string{"mp0": "local-lvm:vm-5001-disk-1", "rootfs": "local-lvm:vm-5001-disk-0"}
	erase(&w, "rootfs", "local-lvm:vm-5001-disk-0") // goes in any case: no consent, so never spent
	f.Journal.Contract = &guest.Contract{Guest: 5001, Spent: spent}
	p = Container(f, w) // the key exists again, with the same id
	wantOnly(t, p, CodeEraseSpent)
	wantFate(t, p, "mp0", DataPreserved, MountReattached)
	wantFate(t, p, "unused0", DataErased, MountDropped) // "*" renews itself
	f.unset("mp0")
	wantOnly(t, Container(f, w))
	f.set("mp0", "local-lvm:vm-5001-disk-1,mp=/srv/data,size=100G")
	erase(&w, "mp0", "*")
	wantOnly(t, Container(f, w))
	f.Journal.Contract.Guest = 5002 // a copy of another guest's contract says nothing here
	erase(&w, "mp0", "local-lvm:vm-5001-disk-1")
	wantOnly(t, Container(f, w))
}

// What cannot be preserved blocks until erase names it; drop and allow do not help.
func TestUnpreservableNeedsErase(t *testing.T) {
	t.Parallel()
	f, w := web1()
	f.set("mp3", "local:5001/subvol-5001-disk-3.subvol,mp=/x")
	f.stored("local:5001/subvol-5001-disk-3.subvol", 5001, guest.GiB)
	w.Drop = append(w.Drop, "mp3")
	w.Allow = []string{"not_preservable"}
	wantOnly(t, Container(f, w), CodeNotPreservable)
	erase(&w, "mp3", "local:5001/subvol-5001-disk-3.subvol")
	wantOnly(t, Container(f, w))
}

func TestAllowIsEnoughForSnapshots(t *testing.T) {
	t.Parallel()
	f, w := web1()
	f.edit("local-lvm", func(s *guest.Storage) { s.ChainSnapshots = true })
	f.snapshot("daily")
	w.Allow = []string{"snapshots_present"}
	p := Container(f, w)
	wantOnly(t, p)
	wantFate(t, p, "mp0", DataPreserved, MountReattached)
}
