package preview

import "github.com/pvrx/terraform-provider-pvrx/internal/guest"

// DataFate says what happens to the bytes of a volume. The zero value is invalid.
type DataFate uint8

// The fates of data.
const (
	// DataErased: owned by this guest and gone with it.
	DataErased DataFate = iota + 1
	// DataPreserved: owned by this guest, set aside and brought back.
	DataPreserved
	// DataKept: never touched.
	DataKept
	// DataExcluded: owned by another guest; a destroy skips it, so its data stays.
	DataExcluded
	// DataHostManaged: a directory or device of the host; never touched.
	DataHostManaged
	// DataUnknown: could not be classified; always comes with a blocker.
	DataUnknown
)

// String returns the word that plans and policies read.
func (d DataFate) String() string {
	switch d {
	case DataErased:
		return "erased"
	case DataPreserved:
		return "preserved"
	case DataKept:
		return "kept"
	case DataExcluded:
		return "excluded"
	case DataHostManaged:
		return "host_managed"
	case DataUnknown:
		return "unknown"
	}
	return "invalid"
}

// MountFate says what happens to the place where a volume is mounted, whatever happens to its data. The zero value is invalid.
type MountFate uint8

// The fates of mounts.
const (
	// MountRecreated: a new, empty volume takes the place.
	MountRecreated MountFate = iota + 1
	// MountReattached: the same volume is put back under the same key.
	MountReattached
	// MountKept: never taken away.
	MountKept
	// MountDropped: the new guest does not have it.
	MountDropped
)

// String returns the word that plans and policies read.
func (m MountFate) String() string {
	switch m {
	case MountRecreated:
		return "recreated"
	case MountReattached:
		return "reattached"
	case MountKept:
		return "kept"
	case MountDropped:
		return "dropped"
	}
	return "invalid"
}

// Fate is what happens to one volume: to its data, and separately to its mount.
type Fate struct {
	Key     string // "mp0"; "mp0 (pending)"; "mp0@snapshot"
	Volume  string // volume id, or the host path of a bind mount or device
	Owner   guest.VMID
	Data    DataFate
	Mount   MountFate
	Size    guest.Bytes // 0 when there is none to tell
	Path    string      // mount path; "-" for unused volumes
	Reason  string      // why, for people
	Mounted guest.Mount // the parsed value, with its options
}
