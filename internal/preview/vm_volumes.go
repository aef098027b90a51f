package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// collectVM finds every drive that any section of the configuration names, current before pending before snapshots.
func (j *judge) collectVM() {
	g := j.f.Guest
	seen := map[guest.VolumeID]bool{}
	disks, bad := guest.Disks(g.Config)
	for _, d := range disks {
		j.addDisk(seen, d, "")
	}
	for _, b := range bad {
		j.unreadable(b, "")
	}
	changes := slices.Clone(g.Pending)
	slices.SortFunc(changes, func(a, b guest.Change) int { return guest.CompareKeys(a.Key, b.Key) })
	for _, c := range changes {
		if c.Delete || !guest.IsDiskKey(c.Key) {
			continue
		}
		d, err := guest.ParseDisk(c.Key, c.Value)
		if err != nil {
			j.unreadable(guest.BadKey{Key: c.Key, Value: c.Value, Why: err.Error()}, pendingSection)
			continue
		}
		j.addDisk(seen, d, pendingSection)
	}
	snapshots := slices.Clone(g.Snapshots)
	slices.SortFunc(snapshots, func(a, b guest.Snapshot) int { return guest.CompareKeys(a.Name, b.Name) })
	for _, s := range snapshots {
		disks, _ := guest.Disks(s.Config)
		for _, d := range disks {
			j.addDisk(seen, d, s.Name)
		}
	}
}

// addDisk takes a drive that could be read. In the current section each key counts; elsewhere only volumes that are new.
func (j *judge) addDisk(seen map[guest.VolumeID]bool, d guest.Disk, section string) {
	path := "-"
	if serial := d.Options["serial"]; serial != "" {
		path = "serial " + serial
	}
	v := volume{key: d.Key, section: section, Fate: Fate{Key: inSection(d.Key, section), Volume: d.Source, Path: path}}
	id, isVolume := d.Volume()
	switch {
	case !isVolume, d.CDROM:
		if section == "" {
			j.volumes = append(j.volumes, v)
		}
		return
	case section != "" && seen[id]:
		return
	}
	seen[id] = true
	v.id = id
	v.Mounted.SizeText = d.Options["size"]
	j.identify(&v)
	v.Mounted = guest.Mount{} // a mount point is not what it is
	j.volumes = append(j.volumes, v)
}

// drive is the current drive under a key, as its configuration says.
func (j *judge) drive(key string) (guest.Disk, bool) {
	value, set := j.f.Guest.Config.Get(key)
	if !set {
		return guest.Disk{}, false
	}
	d, err := guest.ParseDisk(key, value)
	return d, err == nil
}

// decideVM gives every drive its two fates and its reason.
func (j *judge) decideVM() {
	consent := j.consents()
	doubled := j.doubled()
	for i := range j.volumes {
		v := &j.volumes[i]
		_, system := j.w.VM.SystemDisks[v.key]
		d, current := j.drive(v.key)
		switch {
		case v.section == "" && len(doubled[v.id]) > 1 && v.id != (guest.VolumeID{}):
			v.set(DataUnknown, MountDropped, fmt.Sprintf("%s name the same volume", list(doubled[v.id])))
			j.block(Blocker{
				Code: CodeMountUnclassified, Subject: v.Key, Found: fmt.Sprintf("%s name the same volume %s.", list(doubled[v.id]), v.Volume),
				Remedy: "Remove all but one of these keys: Proxmox takes such a volume for one that a snapshot uses.",
			})
		case v.trouble != "":
			j.decideUnclassified(v)
		case v.section != "":
			j.decideElsewhereVM(v)
		case current && d.CloudInit:
			v.set(DataKept, MountRecreated, "made by Proxmox, never data")
		case current && d.CDROM:
			v.set(DataKept, MountKept, "a CD-ROM, never data")
			j.refer(v)
		case v.id == (guest.VolumeID{}):
			j.decidePassedThrough(v)
		case j.foreign(*v):
			v.set(DataExcluded, MountKept, fmt.Sprintf("belongs to guest %d", v.Owner))
			j.refer(v)
		case system:
			v.set(DataErased, MountRecreated, "set aside as the way back; accept erases it")
			v.Path = "until accept"
		case consent[v.key]:
			v.set(DataErased, MountDropped, "erase names it; set aside as the way back, accept erases it")
			v.Path = "until accept"
		case j.replacing():
			j.decideHandedOver(v)
		default:
			v.set(DataKept, MountKept, "never touched")
		}
	}
}

// refer handles what a replacement can only name again.
func (j *judge) refer(v *volume) {
	if !j.replacing() {
		return
	}
	v.Mount = MountReattached
	switch may, missing := j.mayRefer(*v); {
	case v.id == (guest.VolumeID{}):
	case j.dropped(v.key):
		v.Mount = MountDropped
	case v.Data == DataExcluded && strings.HasPrefix(v.key, "unused"):
		v.Mount = MountDropped
	case v.Data == DataExcluded && !may:
		v.Mount = MountDropped
		j.cannotSet(v.key, fmt.Sprintf("%s (%s) belongs to guest %d and cannot be named by the new VM: %s", v.key, v.Volume, v.Owner, missing))
	}
}

// decidePassedThrough handles paths of the host: only root@pam with a password may set them again.
func (j *judge) decidePassedThrough(v *volume) {
	v.set(DataHostManaged, MountKept, "the host's, never touched")
	if !j.replacing() || v.Volume == "none" || v.Volume == "cdrom" {
		return
	}
	v.Mount = MountReattached
	if !j.f.Login.RootTicket {
		v.Mount = MountDropped
		j.cannotSet(v.key, fmt.Sprintf("%s is passed through (%s), which only root@pam with a password may set; this login is %s", v.key, v.Volume, j.login()))
	}
}

// decideHandedOver handles the disks that move to the new VM.
func (j *judge) decideHandedOver(v *volume) {
	v.set(DataPreserved, MountReattached, fmt.Sprintf("handed to VM %d by renaming, same key", j.f.Parking.VMID))
	storage := j.f.Storages[v.id.Storage]
	if ok, why := v.shape.Renamable(storage.Type, storage.ChainSnapshots, j.heldBy(v.id) != ""); !ok {
		j.block(Blocker{
			Code: CodeNotPreservable, Subject: v.Key, Attribute: "erase",
			Found:  fmt.Sprintf("%s (%s, %s) cannot be handed over: %s.", v.key, v.Volume, v.Size.GiB(), why),
			Remedy: fmt.Sprintf("Move it to another storage, rebuild in place, or, if it may go, add %s = %q to erase.", v.key, v.Volume),
		})
		return
	}
	if name := j.heldBy(v.id); name != "" {
		j.block(Blocker{
			Code: CodeKeptInSnapshot, Subject: v.Key, Found: fmt.Sprintf("Snapshot %s holds %s (%s), and Proxmox moves no disk that a snapshot uses.", name, v.key, v.Volume),
			Remedy: "Delete the snapshot, or rebuild in place.",
		})
	}
}

// heldBy is the first snapshot of this VM that names a volume, "" for none.
func (j *judge) heldBy(id guest.VolumeID) string {
	for _, s := range j.f.Guest.Snapshots {
		for _, n := range guest.Volumes(guest.KindVM, s.Config) {
			if n.ID == id {
				return s.Name
			}
		}
	}
	return ""
}

// decideElsewhereVM handles volumes that only the pending section or a snapshot names.
func (j *judge) decideElsewhereVM(v *volume) {
	where := "snapshot " + v.section
	if v.section == pendingSection {
		where = "the pending section"
	}
	switch {
	case j.foreign(*v):
		v.set(DataExcluded, MountKept, fmt.Sprintf("belongs to guest %d; only %s names it", v.Owner, where))
	case !j.replacing():
		v.set(DataKept, MountKept, "only "+where+" names it")
	default:
		v.set(DataErased, MountDropped, "only "+where+" names it: it goes with the old VM at accept")
		if v.shape.State {
			return
		}
		j.block(Blocker{
			Code: CodeNotPreservable, Subject: v.Key, Found: fmt.Sprintf("%s (%s, %s) is named by %s only and cannot be handed over from there.", v.key, v.Volume, v.Size.GiB(), where),
			Remedy: "Apply or revert the change, or delete the snapshot, first.",
		})
	}
}
