package guest

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// VolumeID names a volume the way Proxmox does, "storage:name". It is comparable. An id is only ever echoed as Proxmox
// returned it, never built: what the name looks like is the storage's business.
type VolumeID struct{ Storage, Name string }

// String returns the text that Proxmox uses, or "" for the zero id.
func (id VolumeID) String() string {
	if id == (VolumeID{}) {
		return ""
	}
	return id.Storage + ":" + id.Name
}

var volumeIDPattern = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9\-_.]*[A-Za-z0-9]):(.+)$`)

// ParseVolumeID splits a volume id. Absolute paths (bind mounts, devices) and the words "none" and "cdrom" are not ids.
func ParseVolumeID(text string) (VolumeID, error) {
	m := volumeIDPattern.FindStringSubmatch(text)
	if m == nil || strings.ContainsRune(text, ',') || strings.ContainsFunc(text, unicode.IsControl) {
		return VolumeID{}, fmt.Errorf("cannot read volume id %q: not of the form storage:name", clip(text))
	}
	return VolumeID{Storage: m[1], Name: m[2]}, nil
}

// StorageType is the plugin that serves a storage, as Proxmox spells it. The zero value is invalid.
type StorageType string

// The storage types whose volume names pvrx can read.
const (
	StorageDir         StorageType = "dir"
	StorageNFS         StorageType = "nfs"
	StorageCIFS        StorageType = "cifs"
	StorageCephFS      StorageType = "cephfs"
	StorageBtrfs       StorageType = "btrfs"
	StorageLVM         StorageType = "lvm"
	StorageLVMThin     StorageType = "lvmthin"
	StorageZFSPool     StorageType = "zfspool"
	StorageRBD         StorageType = "rbd"
	StorageZFS         StorageType = "zfs" // ZFS over iSCSI
	StorageISCSI       StorageType = "iscsi"
	StorageISCSIDirect StorageType = "iscsidirect"
	StorageESXi        StorageType = "esxi"
	StoragePBS         StorageType = "pbs"
)

// String returns the type as Proxmox spells it.
func (t StorageType) String() string { return string(t) }
