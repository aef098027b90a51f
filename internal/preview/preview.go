package preview

import "github.com/pvrx/terraform-provider-pvrx/internal/guest"

// Preview is everything a plan shows about one operation. It holds nothing volatile: the same facts give the same bytes.
type Preview struct {
	Operation    Operation
	Summary      string            // one line that starts with the guest
	Volumes      []Fate            // every volume, sorted: rootfs, mpN, unusedN, pending, snapshots
	AlsoLost     map[string]string // what else goes: "returns" or "lost: why"
	Blockers     []Blocker         // all of them, in the order of the table of codes
	Waived       []Blocker         // those that allow or drop waived
	Warnings     []string
	RootPassword string // "given" or "none"
	Precondition string // hash of the acknowledgements
	Acknowledged Acknowledgements
	ErasedBytes  guest.Bytes
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
