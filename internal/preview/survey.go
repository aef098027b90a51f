package preview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// SurveyFacts is what was read of a whole cluster to find what operations left half done. What could not be read is in
// Unseen: a survey never takes unseen for absent.
type SurveyFacts struct {
	Now        int64 // seconds since 1970
	Guests     []SurveyedGuest
	Volumes    []SurveyedVolume              // guests' volumes, backups and templates; one on a shared storage once
	Replicated Known[map[guest.VMID]bool]    // guests whose copies on other nodes are there on purpose
	Occupied   map[guest.VMID]guest.Presence // VMIDs that a record names and no list shows: is there a guest after all?
	AllSeen    bool                          // no guest can hide: VM.Audit on /vms
	Unseen     []string                      // whole phrases: what could not be read, and the right or the node that is missing
	// ParkingFrom and ParkingTo bound the VMIDs that are given to parking guests.
	ParkingFrom, ParkingTo guest.VMID
	// Guest and Node narrow the report to one guest and to one node; 0 and "" do not.
	Guest guest.VMID
	Node  string
}

// SurveyedGuest is a guest of the cluster with what its configuration says, as far as that could be read.
type SurveyedGuest struct {
	guest.Listed
	Read   bool
	Lock   string // lock word in the configuration
	Bare   bool   // the configuration holds the lock and nothing else
	Guard  bool   // protection is set
	Notes  guest.Notes
	Values map[string]string // current storage keys
	Named  []SectionVolume   // in every section
}

// SectionVolume is a volume and where a guest names it.
type SectionVolume struct {
	guest.Named
	Section string // "", "pending" or the snapshot's name
}

// SurveyedVolume is a row of a storage's content list, and where it was listed.
type SurveyedVolume struct {
	guest.StoredVolume
	Node   string // "" on a shared storage: any
	Shared bool
	Type   guest.StorageType
}

// Report is what a survey found. Everything in it is printable text; nothing in it is obeyed by anything.
type Report struct {
	Operations []SurveyedOperation
	Parking    []ParkingGuest
	Unnamed    []UnnamedVolume
	Archives   []LeftArchive
	Problems   []BlockProblem
	Unseen     []string
	// Summary is some lines for people: what there is, and what comes first.
	Summary string
}

// HeldVolume is a volume of a guest, and which guest names it now: 0 is nobody.
type HeldVolume struct {
	Key    string
	Volume string
	Holder guest.VMID
	Size   guest.Bytes // 0 when no storage tells
}

// Survey judges a cluster: what is half done, who holds what, what was left behind, and what to do about each. It is for the
// person who has nothing but an endpoint; it proposes and changes nothing.
func Survey(f SurveyFacts) Report {
	s := newSurveyor(f)
	r := Report{
		Operations: s.operations(), Parking: s.parkingGuests(), Unnamed: s.unnamed(), Archives: append(s.archives(), s.imageArchives()...), Problems: s.problems(),
	}
	for _, what := range f.Unseen {
		r.Unseen = append(r.Unseen, guest.Printable(what))
	}
	slices.Sort(r.Unseen)
	r.Unseen = slices.Compact(r.Unseen)
	r.Summary = r.summary(f)
	return r
}

// surveyor is a survey at work.
type surveyor struct {
	f       SurveyFacts
	byID    map[guest.VMID]SurveyedGuest
	sizes   map[located]guest.Bytes
	heads   []headRecord // the newest copy of each record that binds a guest, by guest
	strays  []headRecord // records on a parking guest that its guest knows nothing of
	parking map[guest.VMID]guest.VMID
}

// located is a volume of one node, or of every node when it is on a shared storage.
type located struct {
	node string
	id   guest.VolumeID
}

// headRecord is the newest copy of a record, and whose notes hold it.
type headRecord struct {
	guest.Journal
	holders []guest.VMID
	kind    guest.Kind // of the guests involved
}

func newSurveyor(f SurveyFacts) *surveyor {
	s := &surveyor{f: f, byID: map[guest.VMID]SurveyedGuest{}, sizes: map[located]guest.Bytes{}, parking: map[guest.VMID]guest.VMID{}}
	for _, g := range f.Guests {
		s.byID[g.VMID] = g
	}
	for _, v := range f.Volumes {
		s.sizes[located{v.Node, v.ID}] = v.Size
	}
	s.readRecords()
	return s
}

// size is what the storage says of a volume that a guest on a node names; 0 when no storage tells.
func (s *surveyor) size(node string, id guest.VolumeID) guest.Bytes {
	if size, ok := s.sizes[located{node, id}]; ok {
		return size
	}
	return s.sizes[located{"", id}]
}

// wanted reports whether the filters let a finding about these guests on this node through.
func (s *surveyor) wanted(node string, about ...guest.VMID) bool {
	if s.f.Node != "" && node != "" && node != s.f.Node {
		return false
	}
	return s.f.Guest == 0 || slices.Contains(about, s.f.Guest)
}

// exists answers for a VMID that a record names.
func (s *surveyor) exists(id guest.VMID) guest.Presence {
	if _, listed := s.byID[id]; listed {
		return guest.Present
	}
	if p, asked := s.f.Occupied[id]; asked {
		return p
	}
	return guest.PresenceUnknown
}

// label names a guest for people.
func (s *surveyor) label(id guest.VMID) string {
	g, listed := s.byID[id]
	if !listed {
		return fmt.Sprintf("CT %d", id)
	}
	return strings.TrimRight(fmt.Sprintf("%s %d %s", g.Kind, id, guest.Printable(g.Name)), " ")
}

// age says in one rough word how long ago something was: "3 days".
func (s *surveyor) age(since int64) string {
	if since <= 0 {
		return ""
	}
	const minute, hour, day = 60, 3600, 86400
	switch ago := max(s.f.Now-since, 0); {
	case ago < 2*minute:
		return plural(int(ago), "second")
	case ago < 2*hour:
		return plural(int(ago/minute), "minute")
	case ago < 2*day:
		return plural(int(ago/hour), "hour")
	default:
		return plural(int(ago/day), "day")
	}
}

// summary says what there is, in the order in which a person should look at it.
func (r Report) summary(f SurveyFacts) string {
	var lines []string
	for _, o := range r.Operations {
		lines = append(lines, fmt.Sprintf("%s: %s %s at stage %d of %d (%s), last written %s ago", o.Label, o.Operation, o.State.verb(), o.Index, o.Stages, o.Stage, cmp.Or(o.Age, "an unknown time")))
	}
	for _, p := range r.Parking {
		if p.Operation == "" {
			lines = append(lines, fmt.Sprintf("%s: a parking guest without an operation, holds %s", p.Label, holds(p.Holds)))
		}
	}
	for _, p := range r.Problems {
		lines = append(lines, fmt.Sprintf("%s: %s", p.Label, p.Sentence))
	}
	if n := len(r.Unnamed); n > 0 {
		var sum guest.Bytes
		for _, v := range r.Unnamed {
			sum = add(sum, v.Size)
		}
		lines = append(lines, fmt.Sprintf("%s that no guest names (%s)", plural(n, "volume"), sum.GiB()))
	}
	images := 0
	for _, a := range r.Archives {
		if a.VMID == 0 {
			images++
		}
	}
	if n := len(r.Archives) - images; n > 0 {
		lines = append(lines, plural(n, "archive")+" of parking guests")
	}
	if images > 0 {
		lines = append(lines, plural(images, "image archive")+" that nothing is made from")
	}
	if len(lines) == 0 {
		lines = append(lines, "Nothing is half done and nothing was left behind.")
	}
	for _, what := range r.Unseen {
		lines = append(lines, "Not seen: "+what)
	}
	if f.Guest != 0 || f.Node != "" {
		lines = append(lines, "Only what concerns "+scope(f)+" was asked for.")
	}
	return strings.Join(lines, "\n")
}

func scope(f SurveyFacts) string {
	var parts []string
	if f.Guest != 0 {
		parts = append(parts, "guest "+f.Guest.String())
	}
	if f.Node != "" {
		parts = append(parts, "node "+guest.Printable(f.Node))
	}
	return list(parts)
}

func holds(volumes []HeldVolume) string {
	if len(volumes) == 0 {
		return "nothing but its own root file system"
	}
	var parts []string
	for _, v := range volumes {
		parts = append(parts, fmt.Sprintf("%s (%s, %s)", v.Key, v.Volume, v.Size.GiB()))
	}
	return list(parts)
}
