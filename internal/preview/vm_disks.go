package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// judgeSystemDisks asks whether each disk that is to be replaced is there, and whether what replaces it can be made.
func (j *judge) judgeSystemDisks() {
	for _, key := range j.systemKeys() {
		j.judgeSystemKey(key)
		j.judgeSource(key)
		if target := j.diskStorage(key); target != "" {
			if why := j.unavailable(target, "images"); why != "" {
				j.block(Blocker{
					Code: CodeStorageUnavailable, Subject: target, Attribute: "system_disks." + key + ".storage", Found: fmt.Sprintf("Storage %s, wanted for %s, %s.", target, key, why),
					Remedy: "Choose a storage of the VM's node with content type images, or leave storage out to keep the present one.",
				})
			}
			if !j.replacing() && !j.renames(target) {
				j.warn("storage %s cannot rename volumes: %s is imported after the stop, so the VM is down for as long as that takes", target, key)
			}
		}
		if i := slices.IndexFunc(j.volumes, func(v volume) bool { return v.Key == key }); i >= 0 {
			if name := j.heldBy(j.volumes[i].id); name != "" {
				j.warn("snapshot %s holds the old %s: accept leaves that disk until the snapshot is deleted, and a rollback to it in Proxmox brings the old system back", name, key)
			}
		}
	}
}

// renames reports whether new disks on a storage can be made on a parking VM and handed over.
func (j *judge) renames(storage string) bool {
	s := j.f.Storages[storage]
	ok, _ := guest.Volume{Format: "raw"}.Renamable(s.Type, false, false)
	return ok
}

// LateDisk reports whether a new disk on a storage must be made after the stop.
func LateDisk(s guest.Storage) bool {
	ok, _ := guest.Volume{Format: "raw"}.Renamable(s.Type, false, false)
	return !ok
}

func (j *judge) judgeSystemKey(key string) {
	attribute := "system_disks"
	d, set := j.drive(key)
	name, _, _ := guest.SplitKey(key)
	switch {
	case !guest.IsDiskKey(key), name == "unused", name == "vmstate", set && (d.CDROM || d.CloudInit):
		j.block(Blocker{
			Code: CodeNotADisk, Subject: key, Attribute: attribute, Found: fmt.Sprintf("%s is no disk with a system on it: CD-ROMs, cloud-init drives and unused entries are never replaced.", key),
			Remedy: "Name ideN, sataN, scsiN, virtioN, efidisk0 or tpmstate0 of a disk.",
		})
		return
	case !set:
		j.block(Blocker{
			Code: CodeSystemKeyMissing, Subject: key, Attribute: attribute, Found: fmt.Sprintf("VM %d has no %s.", j.id(), key),
			Remedy: "Correct the key: a rebuild replaces disks that are there.",
		})
		return
	}
	i := slices.IndexFunc(j.volumes, func(v volume) bool { return v.Key == key })
	if i >= 0 && !j.owned(j.volumes[i]) && j.volumes[i].trouble == "" {
		j.block(Blocker{
			Code: CodeNotRecreatable, Subject: key, Attribute: attribute, Found: fmt.Sprintf("%s (%s) is not VM %d's own: shared or passed through, it could not be set aside and given back.", key, d.Source, j.id()),
			Remedy: "Only the VM's own disks can be replaced.",
		})
	}
}

func (j *judge) judgeSource(key string) {
	d, attribute := j.w.VM.SystemDisks[key], "system_disks."+key
	state := key == "efidisk0" || key == "tpmstate0"
	source := j.f.Sources[key]
	switch {
	case d.Blank && d.Size == 0 && !state:
		j.block(Blocker{
			Code: CodeDiskSize, Subject: key, Attribute: attribute + ".size", Found: fmt.Sprintf("%s is to be blank and has no size.", key),
			Remedy: "Give a size.",
		})
	case d.Blank, d.Image == "" && d.Template.VMID == 0:
	case source.Volume.ID == (guest.VolumeID{}):
		j.block(Blocker{
			Code: CodeImageMissing, Subject: key, Attribute: attribute, Found: fmt.Sprintf("%s, which %s is made from, cannot be used: %s.", d.Text(), key, orUnknown(strings.TrimSuffix(source.Why, "."))),
			Remedy: "Put the image (content type import), or the template, on the VM's node, or correct the entry.",
		})
	case d.Size > 0 && d.Size.CeilMiB() < source.Volume.Size:
		j.block(Blocker{
			Code: CodeDiskSize, Subject: key, Attribute: attribute + ".size", Found: fmt.Sprintf("%s has %s, size = %q asks for %d.", d.Text(), exact(source.Volume.Size), d.SizeText, int64(d.Size)),
			Remedy: fmt.Sprintf("Ask for at least %s, or leave size out.", atLeast(source.Volume.Size)),
		})
	}
}

// judgeVMStorages asks whether every storage answers that the operation looks at.
func (j *judge) judgeVMStorages() {
	named := map[string][]string{}
	for _, v := range j.volumes {
		if v.id != (guest.VolumeID{}) && isStored(v.section) {
			named[v.id.Storage] = append(named[v.id.Storage], v.Key)
		}
	}
	for _, name := range sortedKeys(named) {
		why := j.unavailable(name, "images")
		if why == "" && !j.f.Listed[name] {
			why = "does not answer with a list of its content"
		}
		if why != "" {
			j.block(Blocker{
				Code: CodeStorageUnavailable, Subject: name, Found: fmt.Sprintf("Storage %s, named by %s, %s.", name, list(named[name]), why),
				Remedy: "Bring the storage back, or take the keys off the VM, first: neither VM would start.",
			})
		}
	}
}

// BootDevices are the devices that a VM boots from in their order; without an order Proxmox tries disks, CD-ROMs, networks.
func BootDevices(c guest.Config) []string {
	boot := strings.TrimSpace(c.Values["boot"])
	if order, ok := strings.CutPrefix(boot, "order="); ok {
		return strings.FieldsFunc(order, func(r rune) bool { return r == ';' })
	}
	if _, set := c.Get("boot"); set && boot == "" {
		return nil
	}
	var devices []string
	if first := c.Values["bootdisk"]; first != "" {
		devices = append(devices, first)
	}
	for _, key := range c.Keys() {
		if name, _, indexed := guest.SplitKey(key); indexed && slices.Contains([]string{"ide", "sata", "scsi", "virtio", "net"}, name) && !slices.Contains(devices, key) {
			devices = append(devices, key)
		}
	}
	return devices
}

// judgeBoot asks whether anything in the boot order can be booted from afterwards.
func (j *judge) judgeBoot() {
	devices := BootDevices(j.f.Guest.Config)
	if slices.ContainsFunc(devices, j.bootable) {
		return
	}
	j.block(Blocker{
		Code: CodeNothingToBoot, Subject: "boot", Attribute: "system_disks", Found: fmt.Sprintf("The boot order (%s) would name nothing with a system on it.", orUnknown(strings.Join(devices, ", "))),
		Remedy: "Put an installer's CD-ROM or a network card into the boot order first, or make a boot disk from an image.",
	})
}

func (j *judge) bootable(key string) bool {
	if name, _, indexed := guest.SplitKey(key); indexed && name == "net" {
		_, set := j.f.Guest.Config.Get(key)
		return set
	}
	d, set := j.drive(key)
	if system, named := j.w.VM.SystemDisks[key]; named {
		return set && !system.Blank
	}
	if !set || d.CloudInit || d.Source == "none" || d.Source == "cdrom" {
		return false
	}
	return !slices.ContainsFunc(j.volumes, func(v volume) bool { return v.Key == key && v.Mount == MountDropped })
}

// judgeVMSnapshots asks whether the snapshot that is asked for can be taken.
func (j *judge) judgeVMSnapshots() {
	if !j.w.VM.Snapshot {
		return
	}
	if j.replacing() {
		j.block(Blocker{
			Code: CodeSnapshotUnsupported, Subject: j.id().String(), Attribute: "snapshot", Found: "A disk with a snapshot cannot be handed to another VM.",
			Remedy: "Leave snapshot out, or rebuild in place.",
		})
		return
	}
	for _, v := range j.volumes {
		if v.section != "" || v.Data != DataKept || v.id == (guest.VolumeID{}) || strings.HasPrefix(v.key, "unused") || v.Mount == MountRecreated {
			continue
		}
		if ok, why := j.snapshotable(v); !ok {
			j.block(Blocker{
				Code: CodeSnapshotUnsupported, Subject: v.Key, Attribute: "snapshot", Found: fmt.Sprintf("%s (%s) %s.", v.key, v.Volume, why),
				Remedy: "Leave snapshot out, or move the disk to a storage and format that can.",
			})
		}
	}
}

func (j *judge) snapshotable(v volume) (ok bool, why string) {
	storage := j.f.Storages[v.id.Storage]
	if storage.ChainSnapshots || guest.CanSnapshot(storage.Type, v.shape.Format) {
		return true, ""
	}
	return false, fmt.Sprintf("is %s on a storage of type %s, which takes no snapshot of it", orUnknown(v.shape.Format), storage.Type)
}

// judgeVMSpace asks whether the new disks fit beside the old ones.
func (j *judge) judgeVMSpace() {
	if j.claimed() {
		return
	}
	need := map[string]guest.Bytes{}
	for _, key := range j.systemKeys() {
		need[j.diskStorage(key)] = add(need[j.diskStorage(key)], j.diskSize(key))
	}
	for _, name := range sortedKeys(need) {
		s, known := j.f.Storages[name]
		if known && s.Total > 0 && need[name] > s.Available {
			j.block(Blocker{
				Code: CodeSpace, Subject: name, Attribute: "system_disks", Found: fmt.Sprintf("The new disks need %s on %s, beside the old ones; it has %s.", exact(need[name]), name, exact(s.Available)),
				Remedy: "Free space there, or choose another storage.",
			})
		}
	}
}

// judgeTarget asks whether the new VMID is free and owns nothing.
func (j *judge) judgeTarget() {
	id := j.f.Parking.VMID
	if j.w.Operation != "" {
		return
	}
	if j.f.Target != guest.Absent {
		j.block(Blocker{
			Code: CodeTargetInUse, Subject: id.String(), Attribute: "vmid", Found: fmt.Sprintf("VMID %d is in use, or whether it is could not be determined.", id),
			Remedy: "Choose a free VMID for the new VM.",
		})
	}
	var left []string
	for vol, row := range j.f.Volumes {
		if row.Owner == id {
			left = append(left, vol.String())
		}
	}
	if len(left) > 0 {
		slices.Sort(left)
		j.block(Blocker{
			Code: CodeTargetInUse, Subject: id.String(), Attribute: "vmid", Found: fmt.Sprintf("VMID %d owns %s already, which the new VM would inherit.", id, list(left)),
			Remedy: "Remove these volumes or archives, or choose another VMID.",
		})
	}
}
