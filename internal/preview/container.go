package preview

import "github.com/pvrx/terraform-provider-pvrx/internal/guest"

// Container judges the reinstall of a container. It is total: whatever the facts are, every volume has a fate with a reason
// and every reason not to go on is named.
func Container(f Facts, w Want) Preview { return Preview{Operation: OpReinstall} }

// GrowOnly judges growing the root file system in place: the wanted size is larger and nothing else is pending.
func GrowOnly(f Facts, w Want) Preview { return Preview{Operation: OpGrow} }

// Reconcile judges what resume, rollback or close would do to the operation in a journal. In f, Users and Volumes cover the
// parking guest too; Guest is the guest itself, which may be absent.
func Reconcile(action Operation, j guest.Journal, f Facts) Preview { return Preview{Operation: action} }

// Need is a privilege that an operation uses.
type Need struct {
	Privilege string
	Paths     []string // held on any of them is enough
	Lasting   bool     // must not hang on what the destroy removes
	For       string   // what it is used for
}

// Needs lists the privileges that the reinstall uses, with the paths to ask for.
func Needs(f Facts, w Want) []Need { return nil }

// Carried reports whether a key of the configuration is set again on the new guest as it was.
func Carried(key string) bool { return false }

// NeverCarried reports whether a key must never reach the new guest.
func NeverCarried(key string) bool { return false }

// AbsentMeans says what a create must be sent for keys that are absent, because its own default differs.
func AbsentMeans() map[string]string { return nil }

// Carry returns what the create of the new guest is sent: the carried keys as they are, what absence means, without what
// was dropped. Volume keys and notes are not among them.
func Carry(f Facts, w Want) map[string]string { return nil }

// Difference is one way in which a guest is no longer what a plan saw.
type Difference struct{ Key, Was, Now string }

// Text is a whole sentence.
func (d Difference) Text() string { return "" }

// Compare lists what changed since a was taken.
func (a Acknowledgements) Compare(now Acknowledgements) []Difference { return nil }

// CompareDuring is Compare without what the journal says this operation changed itself: parked keys, waived snapshots.
func (a Acknowledgements) CompareDuring(now Acknowledgements, j guest.Journal) []Difference { return nil }

// Fates is one padded line for each volume.
func (p Preview) Fates() map[string]string { return nil }

// Erased maps each erased key to its volume id.
func (p Preview) Erased() map[string]string { return nil }

// Table is the fates as an indented table.
func (p Preview) Table() string { return "" }
