// Package guest holds facts about Proxmox VE guests as plain values: configurations, volumes, volume ids, sizes, mount
// points, networks and the block that pvrx keeps in a guest's notes. It is pure: no clock, no network, no framework.
package guest

import "strconv"

// VMID is the number under which a cluster knows a guest, 100 to 999999999. Zero means none.
type VMID int

// String returns the decimal form that Proxmox uses in paths and volume names.
func (id VMID) String() string { return strconv.Itoa(int(id)) }

// Kind says whether a guest is a container or a virtual machine. The zero value is invalid.
type Kind uint8

// The kinds of guests.
const (
	KindContainer Kind = iota + 1
	KindVM
)

// String returns the short word for people: "CT" or "VM".
func (k Kind) String() string {
	switch k {
	case KindContainer:
		return "CT"
	case KindVM:
		return "VM"
	}
	return "guest"
}

// Path returns the word that Proxmox uses for the kind in API paths and in cluster/resources: "lxc" or "qemu".
func (k Kind) Path() string {
	switch k {
	case KindContainer:
		return "lxc"
	case KindVM:
		return "qemu"
	}
	return ""
}

// Ref says where a guest is.
type Ref struct {
	VMID VMID
	Kind Kind
	Node string
}

// Presence is the answer to "does this guest exist?". Unknown is never read as absent.
type Presence uint8

// The answers.
const (
	PresenceUnknown Presence = iota + 1
	Absent
	Present
)

// String returns "unknown", "absent" or "present".
func (p Presence) String() string {
	switch p {
	case PresenceUnknown:
		return "unknown"
	case Absent:
		return "absent"
	case Present:
		return "present"
	}
	return "invalid"
}

// Listed is a row of cluster/resources: what one shared read says about a guest.
type Listed struct {
	Ref
	Name     string // hostname or VM name
	Status   string // "running", "stopped", "unknown" (node offline)
	Lock     string
	Tags     string
	Pool     string // only with Pool.Audit
	Template bool
	HAState  string
}

// Guest is what the reads of one guest found. Sections that were not asked for are nil.
type Guest struct {
	Ref
	Running   bool
	Config    Config   // current values (current=1)
	Pending   []Change // differences between the current and the pending section
	Snapshots []Snapshot
}

// Change is one pending difference of a running guest: a new value, or a delete.
type Change struct {
	Key    string
	Value  string // the pending value; empty for a delete
	Delete bool
}

// Snapshot is one snapshot of a guest with its own configuration.
type Snapshot struct {
	Name        string
	Parent      string
	Description string
	Time        int64 // seconds since 1970
	Config      Config
}

// Storage is what is known of one storage on one node.
type Storage struct {
	Name      string
	Type      StorageType
	Content   []string // content types it is configured for: "rootdir", "images", "vztmpl", "backup", ...
	Enabled   bool
	Active    bool
	Shared    bool
	Available Bytes
	Total     Bytes
	// ChainSnapshots is the option snapshot-as-volume-chain, which blocks renaming while snapshots exist.
	ChainSnapshots bool
}

// Has reports whether the storage is configured for a content type.
func (s Storage) Has(content string) bool {
	for _, c := range s.Content {
		if c == content {
			return true
		}
	}
	return false
}

// StoredVolume is a row of a storage's content list.
type StoredVolume struct {
	ID        VolumeID
	Owner     VMID // as the storage says; 0 when it has none
	Content   string
	Format    string
	Size      Bytes
	Created   int64 // seconds since 1970
	Notes     string
	Protected bool
	Parent    string // base volume of a linked clone
}
