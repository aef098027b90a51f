package preview

import (
	"cmp"
	"slices"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// Blocker is one named reason not to go on, with what was found and what to do about it.
type Blocker struct {
	Code Code
	// Title is one line that starts with the guest and ends with the code.
	Title string
	// Subject is what it is about: a guest, a key, a volume id, a storage, a path.
	Subject string
	// Attribute is the argument that would fix it: "erase", "drop", "allow", "rootfs.size", "name", "vmid", "template",
	// "reconcile", "backup.storage", ...; empty when no argument can.
	Attribute string
	// Found says what was found, with ids and numbers; Remedy says what to do. Both are whole sentences.
	Found  string
	Remedy string
}

// Text returns one paragraph for people: what was found, then what to do.
func (b Blocker) Text() string { return b.Found + " " + b.Remedy }

// sortBlockers puts blockers into the order of the codes and drops repetitions, so that the order of reads cannot show.
func sortBlockers(all []Blocker) []Blocker {
	slices.SortFunc(all, func(a, b Blocker) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), guest.CompareKeys(a.Subject, b.Subject), cmp.Compare(a.Found, b.Found))
	})
	return slices.Compact(all)
}

// Foremost keeps only what an open operation says when there is one: everything else follows from it.
func Foremost(blockers []Blocker) []Blocker {
	for _, b := range blockers {
		if b.Code == CodeNeedsReconcile || b.Code == CodeOperationInFlight || b.Code == CodeAwaitingTrust {
			return []Blocker{b}
		}
	}
	return blockers
}
