package preview

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// judge collects what is to be said about one guest. Each file of questions adds to it and reads nothing another adds, but
// for volumes, which come first.
type judge struct {
	f        Facts
	w        Want
	volumes  []volume
	blockers []Blocker
	waived   []Blocker
	warnings []string
	lost     map[string]string
}

func newJudge(f Facts, w Want) *judge { return &judge{f: f, w: w, lost: map[string]string{}} }

// id is the guest that was asked for.
func (j *judge) id() guest.VMID {
	if j.w.VMID != 0 {
		return j.w.VMID
	}
	return j.f.Guest.VMID
}

// label names the guest for people, "CT 5001 web1"; the name is the configuration's while the guest cannot be seen.
func (j *judge) label() string {
	name := j.w.Name
	if j.readable() {
		name = j.f.Guest.Config.Name(j.f.Guest.Kind, j.id())
	}
	return strings.TrimRight(j.kind()+" "+j.id().String()+" "+guest.Printable(name), " ")
}

// kind is the short word for the kind of guest that is meant.
func (j *judge) kind() string {
	if j.w.VM != nil {
		return guest.KindVM.String()
	}
	return guest.KindContainer.String()
}

// deed is what makes a new root file system, as a verb.
func (j *judge) deed() string {
	if j.w.Instance != nil {
		return "update"
	}
	return "reinstall"
}

// readable reports whether there is a guest of the right kind whose configuration can be judged.
func (j *judge) readable() bool { return j.f.Presence == guest.Present && !j.f.WrongType }

// block adds a reason not to go on, unless the argument allow waives its code.
func (j *judge) block(b Blocker) {
	b = j.finish(b)
	if b.Code.Waivable() && slices.Contains(j.w.Allow, b.Code.String()) {
		j.waived = append(j.waived, b)
		return
	}
	j.blockers = append(j.blockers, b)
}

// blockUnlessDropped adds a reason that drop waives by naming the key.
func (j *judge) blockUnlessDropped(key string, b Blocker) {
	if j.dropped(key) {
		j.waived = append(j.waived, j.finish(b))
		return
	}
	j.block(b)
}

func (j *judge) finish(b Blocker) Blocker {
	b.Subject, b.Found, b.Remedy = guest.Printable(b.Subject), guest.Printable(b.Found), guest.Printable(b.Remedy)
	b.Title = fmt.Sprintf("%s: %s (%s)", j.label(), b.Code.title(b.Subject), b.Code)
	if b.Code == CodeNameMismatch {
		b.Title = guest.Printable(fmt.Sprintf("%s %d is not %s (%s)", j.kind(), j.id(), j.w.Name, b.Code)) // its own name would confuse here
	}
	return b
}

func (j *judge) dropped(key string) bool { return slices.Contains(j.w.Drop, key) }

// allowed reports whether the configuration waives a code.
func (j *judge) allowed(c Code) bool { return c.Waivable() && slices.Contains(j.w.Allow, c.String()) }

// claimed reports whether this judgement is asked for by the operation that holds the guest already: then its record, its
// backup and its parking guest are there, and need no room any more. A parking VMID is chosen because it owns nothing, so
// that one which owns volumes is at work.
func (j *judge) claimed() bool {
	if j.w.Operation != "" {
		return true
	}
	for _, row := range j.f.Volumes {
		if row.Owner == j.f.Parking.VMID && row.Owner != 0 && row.Content != "backup" {
			return true
		}
	}
	return false
}

func (j *judge) warn(format string, args ...any) {
	j.warnings = append(j.warnings, guest.Printable(fmt.Sprintf(format, args...)))
}

// preview hands out what was collected, in an order that does not depend on the order of the facts.
func (j *judge) preview(op Operation) Preview {
	p := Preview{
		Operation: op, AlsoLost: j.lost, Blockers: sortBlockers(j.blockers), Waived: sortBlockers(j.waived),
		RootPassword: "none",
	}
	if j.w.PasswordGiven {
		p.RootPassword = "given"
	}
	slices.Sort(j.warnings)
	p.Warnings = slices.Compact(j.warnings)
	slices.SortStableFunc(j.volumes, compareVolumes)
	for _, v := range j.volumes {
		p.Volumes = append(p.Volumes, v.Fate)
		if v.Data == DataErased {
			p.ErasedBytes = add(p.ErasedBytes, v.Size)
		}
	}
	if j.readable() {
		p.Acknowledged = Acknowledge(j.f.Guest)
		p.Precondition = p.Acknowledged.Precondition()
	}
	return p
}

// add sums sizes without wrapping: a sum that does not fit stays at the largest size.
func add(a, b guest.Bytes) guest.Bytes {
	const most = guest.Bytes(1<<63 - 1)
	if b > most-a {
		return most
	}
	return a + b
}

// exact shows a size as both numbers that people compare.
func exact(b guest.Bytes) string {
	return fmt.Sprintf("%d bytes (%s rounded up)", int64(b), b.GiB())
}

// list joins words in their order: "a", "a and b", "a, b and c".
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// plural counts: "1 volume", "2 volumes".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.SortedFunc(maps.Keys(m), guest.CompareKeys)
}
