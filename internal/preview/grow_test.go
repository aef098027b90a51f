package preview

import (
	"slices"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

func TestGrowTouchesNothingElse(t *testing.T) {
	t.Parallel()
	f, w := web1()
	w.Rootfs = Rootfs{Size: 16 * guest.GiB, SizeText: "16GiB"}
	p := GrowOnly(f, w)
	wantOnly(t, p)
	if p.Operation != OpGrow || p.ErasedBytes != 0 || len(p.Erased()) != 0 || len(p.AlsoLost) != 0 {
		t.Errorf("%+v", p)
	}
	for _, key := range []string{"rootfs", "mp0", "mp1", "unused0"} {
		wantFate(t, p, key, DataKept, MountKept)
	}
	wantFate(t, p, "mp2", DataHostManaged, MountKept)
	if want := "CT 5001 web1: grow rootfs from 9 GiB to 16 GiB: keeps 4 volumes (163 GiB)"; p.Summary != want {
		t.Errorf("summary\n%s, want\n%s", p.Summary, want)
	}
}

func TestGrowIsBlockedByWhatBlocksAResizeOnly(t *testing.T) {
	t.Parallel()
	blocks := []Code{
		CodeGuestMissing, CodeGuestWrongType, CodeNameMismatch, CodeDuplicate, CodeNodeOffline, CodeNoQuorum, CodeUnsupportedVersion,
		CodeRunningInsideTarget, CodeOperationInFlight, CodeNeedsReconcile, CodeLocked, CodeTaskRunning, CodeIsTemplate,
		CodeStorageUnavailable, CodeRootfsShrink, CodeSizeUnreadable,
	}
	for _, r := range reasons() {
		f, w := web1()
		w.Rootfs = Rootfs{Size: 16 * guest.GiB, SizeText: "16GiB"}
		w.Drop, w.Erase = nil, nil
		r.make(&f, &w)
		p := GrowOnly(f, w)
		if got := has(p.Blockers, r.code); got && !slices.Contains(append(blocks, CodeMountUnclassified, CodeSpace, CodePrivileges), r.code) {
			t.Errorf("%s (%s) blocks a resize", r.code, r.name)
		} else if !got && slices.Contains(blocks, r.code) && !slices.Contains([]string{"wanted rootfs storage", "wanted backup storage", "content list silent"}, r.name) {
			t.Errorf("%s (%s) does not block a resize: %v", r.code, r.name, codesOf(p.Blockers))
		}
		for _, v := range p.Volumes {
			if v.Data == DataErased || v.Mount == MountDropped {
				t.Errorf("%s: a resize gives %s the fate %s %s", r.name, v.Key, v.Data, v.Mount)
			}
		}
	}
}

func TestGrowNeedsRoomForTheDifferenceOnly(t *testing.T) {
	t.Parallel()
	f, w := web1()
	w.Rootfs = Rootfs{Size: 16 * guest.GiB, SizeText: "16GiB"}
	f.edit("local-lvm", func(s *guest.Storage) { s.Available = 7680 * guest.MiB }) // 16 GiB - 8.5 GiB
	wantOnly(t, GrowOnly(f, w))
	f.edit("local-lvm", func(s *guest.Storage) { s.Available-- })
	wantOnly(t, GrowOnly(f, w), CodeSpace)
	f, w = web1()
	w.Rootfs = Rootfs{Size: 16 * guest.GiB, SizeText: "16GiB"}
	f.revoke("/vms/5001", "VM.Config.Disk")
	wantOnly(t, GrowOnly(f, w), CodePrivileges)
	f.Privileges = Privileges{}
	wantOnly(t, GrowOnly(f, w), CodePrivileges)
}
