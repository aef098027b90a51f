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
	Changes      []Change // of an application container: what changes, and what that takes
}

// Change is one difference between what an application container is and what is wanted.
type Change struct {
	What     string // "memory", "net0", "environment", "volume /data", "image"
	From, To string // in words; secrets are never in them
	Takes    Takes
}

// Takes says what a change takes. The zero value is invalid.
type Takes uint8

// What a change takes.
const (
	TakesNothing Takes = iota + 1 // it is made while the container runs
	TakesRestart
	TakesRootfs // a new root file system
)

// String returns the words of a plan.
func (t Takes) String() string {
	switch t {
	case TakesNothing:
		return "live"
	case TakesRestart:
		return "restart"
	case TakesRootfs:
		return "new root file system"
	}
	return "invalid"
}
