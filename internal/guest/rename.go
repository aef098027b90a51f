package guest

// Renamable reports whether Proxmox can hand the volume to another guest by renaming it, without a copy; when it cannot, why
// says so for people. chainSnapshots is the storage's option snapshot-as-volume-chain, hasSnapshots whether any exist.
func (v Volume) Renamable(t StorageType, chainSnapshots, hasSnapshots bool) (ok bool, why string) {
	switch {
	case v.CloudInit:
		return false, "a cloud-init drive is made by Proxmox and cannot be moved to another guest"
	case v.State:
		return false, "saved memory cannot be moved to another guest"
	case v.IsBase:
		return false, "the disk of a template cannot be moved to another guest"
	}
	switch t {
	case StorageDir, StorageNFS, StorageCIFS, StorageBtrfs:
		if v.Format == "subvol" {
			return false, "a subvolume on a storage of type " + t.String() + " cannot be renamed by Proxmox"
		}
	case StorageLVM, StorageLVMThin, StorageZFSPool, StorageRBD:
	case StorageZFS, StorageISCSI, StorageISCSIDirect, StorageESXi, StorageCephFS, StoragePBS:
		return false, "Proxmox cannot rename volumes on a storage of type " + t.String()
	default:
		return false, "storage type \"" + clip(t.String()) + "\" is not known"
	}
	if chainSnapshots && hasSnapshots {
		return false, "the storage keeps snapshots as a volume chain, and a volume with snapshots cannot be renamed there"
	}
	return true, ""
}

// CanSnapshot reports whether Proxmox can take a snapshot of a volume of that format on a storage of that type.
func CanSnapshot(t StorageType, format string) bool {
	switch t {
	case StorageDir, StorageNFS, StorageCIFS, StorageLVM:
		return format == "qcow2"
	case StorageBtrfs:
		return format == "raw" || format == "subvol" || format == "qcow2"
	case StorageLVMThin, StorageRBD, StorageZFS:
		return format == "raw"
	case StorageZFSPool:
		return format == "raw" || format == "subvol"
	case StorageCephFS, StorageISCSI, StorageISCSIDirect, StorageESXi, StoragePBS:
		return false
	}
	return false
}
