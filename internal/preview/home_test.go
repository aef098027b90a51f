package preview

import (
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// TestReconcileSeesWhatIsBackAlready: the newest record was wiped from the parking guest by hand, and the older copy on the
// guest still says that its volumes wait there. They are back; that is seen, and closing is possible.
func TestReconcileSeesWhatIsBackAlready(t *testing.T) {
	t.Parallel()
	back := func() (Facts, guest.Journal) {
		f, j := stuck()
		now, _ := web1()
		f.Presence, f.Guest.Config = guest.Present, now.Guest.Config
		for _, id := range []string{"local-lvm:vm-900012-disk-1", "local-lvm:vm-900012-disk-2"} {
			delete(f.Volumes, volumeID(id))
			delete(f.Users, volumeID(id))
		}
		for i := range j.Parked {
			j.Parked[i].Before = []string{"local-lvm:vm-900012-disk-0", "local-lvm:vm-900012-disk-1", "local-lvm:vm-900012-disk-2"}
		}
		f.stored("local-lvm:vm-5001-disk-1", 5001, 100*guest.GiB)
		f.stored("local-lvm:vm-5001-disk-7", 5001, 4*guest.GiB)
		return f, j
	}
	f, j := back()
	wantOnly(t, Reconcile(OpResume, j, f))
	wantOnly(t, Reconcile(OpClose, j, f))

	f.Volumes[volumeID("local-lvm:vm-5001-disk-1")] = guest.StoredVolume{ID: volumeID("local-lvm:vm-5001-disk-1"), Owner: 5009, Content: "rootdir"}
	wantOnly(t, Reconcile(OpResume, j, f), CodeMountUnclassified)
	wantOnly(t, Reconcile(OpClose, j, f), CodeParkingHoldsData)

	f, j = back()
	f.set("mp0", "local-lvm:vm-5001-disk-1,mp=/elsewhere,size=100G")
	wantOnly(t, Reconcile(OpClose, j, f), CodeParkingHoldsData)
}
