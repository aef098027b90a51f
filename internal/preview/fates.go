package preview

import (
	"fmt"
	"slices"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// decide gives every volume its two fates and its reason, and blocks what may not go on. An erasure that nobody consented
// to is always behind a blocker, but for the root file system: replacing that is the operation.
func (j *judge) decide() {
	consent := j.consents()
	doubled := j.doubled()
	for i := range j.volumes {
		v := &j.volumes[i]
		keys := doubled[v.id]
		switch {
		case v.section == "" && len(keys) > 1:
			v.set(DataUnknown, MountDropped, fmt.Sprintf("%s name the same volume", list(keys)))
			j.block(Blocker{
				Code: CodeMountUnclassified, Subject: v.Key, Found: fmt.Sprintf("%s name the same volume %s.", list(keys), v.Volume),
				Remedy: "Remove all but one of these keys from the guest: moving the volume for one would break the others.",
			})
		case v.trouble != "":
			j.decideUnclassified(v)
		case v.id == (guest.VolumeID{}):
			j.decideHost(v)
		case v.section != "":
			j.decideElsewhere(v)
		case v.key == "rootfs":
			j.decideRootfs(v)
		case j.foreign(*v):
			j.decideForeign(v)
		default:
			j.decideOwned(v, consent[v.key])
		}
	}
}

func (v *volume) set(d DataFate, m MountFate, reason string) {
	v.Data, v.Mount, v.Reason = d, m, guest.Printable(reason)
}

// doubled finds volumes that more than one current key names.
func (j *judge) doubled() map[guest.VolumeID][]string {
	keys := map[guest.VolumeID][]string{}
	for _, v := range j.volumes {
		if v.section == "" && v.id != (guest.VolumeID{}) {
			keys[v.id] = append(keys[v.id], v.key)
		}
	}
	for _, k := range keys {
		guest.SortKeys(k)
	}
	return keys
}

func (j *judge) decideUnclassified(v *volume) {
	v.set(DataUnknown, MountDropped, v.trouble)
	if _, there := j.f.Storages[v.id.Storage]; !there && v.id != (guest.VolumeID{}) && isStored(v.section) {
		return // storage_unavailable says it, with the remedy that helps
	}
	j.block(Blocker{
		Code: CodeMountUnclassified, Subject: v.Key, Found: fmt.Sprintf("%s (%s) cannot be classified: %s.", v.Key, v.Volume, v.trouble),
		Remedy: "Correct or remove the key on the guest; what cannot be classified is not touched.",
	})
}

func (j *judge) decideRootfs(v *volume) {
	if j.foreign(*v) {
		v.set(DataUnknown, MountDropped, fmt.Sprintf("the root file system belongs to guest %d", v.Owner))
		j.block(Blocker{
			Code: CodeMountUnclassified, Subject: v.Key, Found: fmt.Sprintf("rootfs (%s) belongs to guest %d, not to %d.", v.Volume, v.Owner, j.id()),
			Remedy: "A destroy would leave it behind and nothing here expects that: sort out by hand who owns it.",
		})
		return
	}
	v.set(DataErased, MountRecreated, "the root file system is replaced")
}

// decideHost handles bind mounts and devices: the host's data, never touched. Only root@pam with a password may set them.
func (j *judge) decideHost(v *volume) {
	if v.key == "rootfs" {
		v.set(DataUnknown, MountDropped, "the root file system is no volume")
		j.block(Blocker{
			Code: CodeMountUnclassified, Subject: v.Key, Found: fmt.Sprintf("rootfs is %s, which is no volume of a storage.", v.Volume),
			Remedy: "Only root file systems on a storage can be replaced.",
		})
		return
	}
	what := "bind mount"
	switch {
	case v.Mounted.Kind == guest.SourceDevice:
		what = "device mount"
	case v.Mounted.Kind == 0:
		what = "device"
	}
	switch {
	case j.dropped(v.key):
		v.set(DataHostManaged, MountDropped, "the host's; drop gives the mount up")
	case j.f.Login.RootTicket:
		v.set(DataHostManaged, MountReattached, "the host's; put back by root@pam")
	default:
		v.set(DataHostManaged, MountDropped, "the host's; only root@pam with a password can set it again")
	}
	if !j.f.Login.RootTicket {
		j.blockUnlessDropped(v.key, Blocker{
			Code: CodeNotRecreatable, Subject: v.Key, Attribute: "drop",
			Found:  fmt.Sprintf("%s is a %s (%s), which Proxmox lets only root@pam with a password set; this login is %s.", v.key, what, v.Volume, j.login()),
			Remedy: fmt.Sprintf("Add %q to drop to %s without it (the host's data stays), or log in as root@pam with a password.", v.key, j.deed()),
		})
	}
}

// decideForeign handles other guests' volumes: a destroy skips them, so only the mount is at stake (hazard C15).
func (j *judge) decideForeign(v *volume) {
	unused := v.Path == "-"
	may, missing := j.mayRefer(*v)
	switch {
	case j.dropped(v.key):
		v.set(DataExcluded, MountDropped, fmt.Sprintf("belongs to guest %d; drop gives the mount up", v.Owner))
	case !unused && may:
		v.set(DataExcluded, MountReattached, fmt.Sprintf("belongs to guest %d; put back by reference", v.Owner))
		return
	default:
		v.set(DataExcluded, MountDropped, fmt.Sprintf("belongs to guest %d; %s", v.Owner, missing))
	}
	if !unused && !j.f.Privileges.OK && !j.f.Login.RootTicket {
		return // nothing is known of our rights, which blocks by itself
	}
	if unused || !may {
		j.blockUnlessDropped(v.key, Blocker{
			Code: CodeNotRecreatable, Subject: v.Key, Attribute: "drop",
			Found:  fmt.Sprintf("%s (%s) belongs to guest %d: its data stays, but it cannot be named here again: %s.", v.key, v.Volume, v.Owner, missing),
			Remedy: fmt.Sprintf("Add %q to drop to %s without it, or grant what is missing.", v.key, j.deed()),
		})
	}
}

// decideOwned handles this guest's own volumes: preserved, unless consent says otherwise or Proxmox cannot move them.
func (j *judge) decideOwned(v *volume, consented bool) {
	if consented {
		v.set(DataErased, MountDropped, "erase names it")
		return
	}
	why, remedy := j.unpreservable(*v)
	if why == "" {
		v.set(DataPreserved, MountReattached, "set aside by renaming and brought back")
		if j.dropped(v.key) {
			j.warn("drop names %s, which is preserved: it is mounted again as it was", v.key)
		}
		return
	}
	v.set(DataErased, MountDropped, "it cannot be set aside: "+why)
	j.block(Blocker{
		Code: CodeNotPreservable, Subject: v.Key, Attribute: "erase",
		Found:  fmt.Sprintf("%s (%s, %s) cannot be set aside: %s.", v.key, v.Volume, v.Size.GiB(), why),
		Remedy: fmt.Sprintf("%s, or, if it may go, add %s = %q to erase.", remedy, v.key, v.Volume),
	})
}

// unpreservable says why Proxmox cannot hand the volume to the parking guest, and what would help; "" when it can. A
// snapshot that holds it is another blocker, so that allowing that one is enough.
func (j *judge) unpreservable(v volume) (why, remedy string) {
	for _, c := range j.f.Guest.Pending {
		if c.Key == v.key {
			return "a change of " + v.key + " is pending", "Restart the guest or revert the change first"
		}
	}
	storage := j.f.Storages[v.id.Storage]
	held := j.held(v.id) && !j.allowed(CodeSnapshotsPresent)
	if ok, why := v.shape.Renamable(storage.Type, storage.ChainSnapshots, held); !ok {
		return why, "Move it to another storage first"
	}
	return "", ""
}

// held reports whether a snapshot of this guest names the volume.
func (j *judge) held(id guest.VolumeID) bool {
	return slices.ContainsFunc(j.f.Guest.Snapshots, func(s guest.Snapshot) bool {
		return slices.ContainsFunc(guest.Volumes(guest.KindContainer, s.Config), func(n guest.Named) bool { return n.ID == id })
	})
}

// decideElsewhere handles volumes that only the pending section or a snapshot names.
func (j *judge) decideElsewhere(v *volume) {
	where := "snapshot " + v.section
	if v.section == pendingSection {
		where = "the pending section"
	}
	if j.foreign(*v) {
		v.set(DataExcluded, MountDropped, fmt.Sprintf("belongs to guest %d; only %s names it", v.Owner, where))
		return
	}
	if v.section == pendingSection {
		v.set(DataErased, MountDropped, "a destroy frees volumes of the pending section too")
	} else {
		v.set(DataErased, MountDropped, fmt.Sprintf("only %s names it: once that is deleted it is unused, and the destroy frees it", where))
	}
	j.block(Blocker{
		Code: CodeNotPreservable, Subject: v.Key,
		Found:  fmt.Sprintf("%s (%s, %s) is named by %s only and cannot be set aside from there.", v.key, v.Volume, v.Size.GiB(), where),
		Remedy: "Apply or revert the change, or delete the snapshot, yourself: the volume then has a key of its own and is preserved.",
	})
}

// isStored reports whether a destroy looks at the volumes of a section: the current and the pending one.
func isStored(section string) bool { return section == "" || section == pendingSection }
