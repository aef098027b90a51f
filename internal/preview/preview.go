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
