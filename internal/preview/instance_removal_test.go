package preview

import (
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

func TestRemovalShowsWhatGoesAndWhatStays(t *testing.T) {
	t.Parallel()
	f, w := vault()
	f.set("unused0", "local-lvm:vm-6001-disk-7")
	f.stored("local-lvm:vm-6001-disk-7", 6001, guest.GiB)
	f.set("mp1", "local-lvm:vm-6002-disk-1,mp=/theirs")
	f.stored("local-lvm:vm-6002-disk-1", 6002, guest.GiB)
	f.set("mp2", "/srv/media,mp=/media")
	f.set("dev0", "/dev/fuse")
	f.stored("local-lvm:vm-6001-disk-9", 6001, guest.GiB)
	f.Backups.Value = []guest.StoredVolume{{ID: volumeID("local:backup/a.tar")}, {ID: volumeID("local:backup/b.tar")}}
	f.Pool.Value, f.Firewall.Value, f.HA.Value = "apps", Firewall{Rules: 2}, HA{}
	p := InstanceRemoval(f, w)
	wantDue(t, p, OpRemove)
	wantFate(t, p, "rootfs", DataErased, MountDropped)
	wantFate(t, p, "mp0", DataErased, MountDropped)
	wantFate(t, p, "unused0", DataErased, MountDropped)
	wantFate(t, p, "mp1", DataExcluded, MountDropped)
	wantFate(t, p, "mp2", DataHostManaged, MountDropped)
	wantFate(t, p, "dev0", DataHostManaged, MountDropped)
	for what, fate := range map[string]string{
		"backups": "2 backups: kept", "host directory /media": "kept: /srv/media", "archive " + archiveOld: "deleted: no other container names it",
		"other volumes": "kept: local-lvm:vm-6001-disk-9, which no key of the container names", "pool": "lost: its membership of apps", "firewall": "lost",
	} {
		if p.AlsoLost[what] != fate {
			t.Errorf("%s: %q, want %q", what, p.AlsoLost[what], fate)
		}
	}
}

func TestRemovalKeepsArchivesOfOthers(t *testing.T) {
	t.Parallel()
	previous := "local:vztmpl/pvrx-nginx-ffff.tar"
	for name, c := range map[string]struct {
		make func(f *Facts)
		fate string
	}{
		"nobody's": {func(*Facts) {}, "deleted: no other container names it"},
		"another's": {func(f *Facts) {
			f.Instances.Value = []OtherInstance{{VMID: 6003, Archives: []string{archiveOld}}, {VMID: 6002, Archives: []string{archiveOld}}, {VMID: 6001, Archives: []string{previous}}}
		}, "kept: named by CT 6002 and CT 6003 as well"},
		"unseen":   {func(f *Facts) { f.Instances = Known[[]OtherInstance]{Why: "CT 6002 could not be read"} }, "kept: whether another container was made from it is unknown: CT 6002 could not be read"},
		"no right": {func(f *Facts) { f.revoke("/storage/local", "Datastore.Allocate") }, "kept: deleting it takes Datastore.Allocate on /storage/local"},
	} {
		f, w := vault()
		f.contract(func(_ *guest.Contract, app *guest.Application) { app.Previous = previous })
		c.make(&f)
		p := InstanceRemoval(f, w)
		wantDue(t, p, OpRemove)
		if got := p.AlsoLost["archive "+archiveOld]; got != c.fate {
			t.Errorf("%s: %q, want %q", name, got, c.fate)
		}
		if got := p.AlsoLost["archive "+previous]; got != c.fate && !strings.HasPrefix(got, "deleted") {
			t.Errorf("%s: the one before is %q", name, got)
		}
	}
}

func TestRemovalOfWhatIsGone(t *testing.T) {
	t.Parallel()
	f, w := vaultInstall()
	w.Instance.Create = false
	wantDue(t, InstanceRemoval(f, w), 0)
	f.Elsewhere = &guest.Journal{Operation: "op-6001-20261201-dddd", Kind: "update", Guest: 6001, State: guest.JournalStuck, App: &guest.Deployment{}}
	wantDue(t, InstanceRemoval(f, w), OpRemove, CodeNeedsReconcile)
	f, w = vault()
	f.Presence = guest.PresenceUnknown
	wantDue(t, InstanceRemoval(f, w), OpRemove, CodeNodeOffline)
}
