package preview

import (
	"fmt"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// GrowOnly judges growing the root file system in place: the wanted size is larger than the present one and nothing else is
// pending. Nothing is stopped, moved or erased, so that only what stands in the way of a resize blocks.
func GrowOnly(f Facts, w Want) Preview {
	j := newJudge(f, w)
	j.judgeIdentity()
	j.judgeRecords()
	if j.readable() {
		j.collect()
		for i := range j.volumes {
			j.volumes[i].keep()
		}
		j.judgeGrowth()
	}
	p := j.preview(OpGrow)
	p.Summary = j.summary(fmt.Sprintf("grow rootfs from %s to %s", j.rootfs().Size.GiB(), j.wantedSize().GiB()), p)
	return p
}

func (v *volume) keep() {
	data := DataKept
	if v.id == (guest.VolumeID{}) && v.trouble == "" {
		data = DataHostManaged
	}
	v.set(data, MountKept, "not touched")
}

func (j *judge) judgeGrowth() {
	root := j.rootfs()
	switch {
	case root.id == (guest.VolumeID{}), root.trouble != "":
		j.block(Blocker{
			Code: CodeMountUnclassified, Subject: "rootfs", Found: fmt.Sprintf("rootfs (%s) cannot be classified: %s.", root.Volume, orUnknown(root.trouble)),
			Remedy: "Correct the key on the guest first.",
		})
		return
	case j.foreign(root):
		j.block(Blocker{
			Code: CodeMountUnclassified, Subject: "rootfs", Found: fmt.Sprintf("rootfs (%s) belongs to guest %d; Proxmox grows a guest's own volumes only.", root.Volume, root.Owner),
			Remedy: "Sort out by hand who owns it.",
		})
		return
	}
	if lock := j.f.Guest.Config.Values["lock"]; lock != "" {
		j.block(Blocker{Code: CodeLocked, Subject: j.id().String(), Found: fmt.Sprintf("CT %d is locked (%s).", j.id(), lock), Remedy: "Wait until the task that locked it ends."})
	}
	j.judgeTasks()
	if why := j.unavailable(root.id.Storage, "rootdir"); why != "" {
		j.block(Blocker{Code: CodeStorageUnavailable, Subject: root.id.Storage, Found: fmt.Sprintf("Storage %s, named by rootfs, %s.", root.id.Storage, why), Remedy: "Bring the storage back first."})
	}
	j.judgeSize()
	s := j.f.Storages[root.id.Storage]
	if need := max(0, j.wantedSize()-root.Size); s.Total > 0 && need > s.Available {
		j.block(Blocker{
			Code: CodeSpace, Subject: root.id.Storage, Attribute: "rootfs.size", Found: fmt.Sprintf("Growing rootfs needs %s on %s; it has %s.", exact(need), root.id.Storage, exact(s.Available)),
			Remedy: "Free space there, or ask for less.",
		})
	}
	if j.f.Login.RootTicket {
		return
	}
	if !j.f.Privileges.OK {
		j.unseen("privileges", j.f.Privileges.Why, "the rights that the guide lists")
		return
	}
	j.lacking([]Need{
		{Privileges: []string{"VM.Config.Disk"}, Paths: []string{j.path()}, For: "growing rootfs"},
		{Privileges: []string{"Datastore.AllocateSpace"}, Paths: []string{"/storage/" + root.id.Storage}, For: "growing rootfs"},
	})
}
