package preview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// OperationState says what a survey makes of an operation's record. The zero value is invalid.
type OperationState uint8

// The states.
const (
	// OperationInProgress: its time is not over and nobody said that it stopped.
	OperationInProgress OperationState = iota + 1
	// OperationTakingBack: the same, and it is taking back what it did.
	OperationTakingBack
	// OperationOverdue: its time is over and nobody said that it stopped: its process is dead.
	OperationOverdue
	// OperationAwaitingTrust: all is done, and a person must accept it or have it taken back.
	OperationAwaitingTrust
	// OperationStuck: it stopped and waits for a person.
	OperationStuck
)

// String returns the word that outputs use.
func (s OperationState) String() string {
	switch s {
	case OperationInProgress:
		return "in_progress"
	case OperationTakingBack:
		return "taking_back"
	case OperationOverdue:
		return "overdue"
	case OperationAwaitingTrust:
		return "awaiting_trust"
	case OperationStuck:
		return "stuck"
	}
	return "invalid"
}

func (s OperationState) verb() string {
	switch s {
	case OperationInProgress:
		return "is"
	case OperationTakingBack:
		return "is being taken back"
	case OperationOverdue:
		return "was abandoned"
	case OperationAwaitingTrust:
		return "is done and waits for a verdict"
	case OperationStuck:
		return "stopped"
	}
	return "is"
}

// SurveyedOperation is an operation that has a record somewhere in the cluster.
type SurveyedOperation struct {
	Operation, Kind string
	Guest, Parking  guest.VMID
	Of              guest.Kind // what the guest is
	Label           string     // the guest for people
	Node            string
	State           OperationState
	Stage           string
	Index, Stages   int
	Error           string
	Started         int64
	Updated         int64
	Until           int64
	Age             string         // since the record was last written
	Exists          guest.Presence // the guest, now
	Holders         []guest.VMID   // whose notes hold a copy of the record
	Volumes         []HeldVolume   // what is to be kept, and of a VM the old system disks; and who holds it now
	Backup          string
	// Reconcile is the argument to paste into the guest's block, to go on.
	Reconcile string
	// Remedy says what to do, in sentences and, where it comes to that, in commands.
	Remedy string
}

// readRecords collects every record that agrees with where it was found: in the notes of the guest it is about, or of the
// parking guest it names. A guest that is there and knows nothing of a record is not bound by it.
func (s *surveyor) readRecords() {
	newest := map[string]headRecord{}
	for _, g := range s.f.Guests {
		j := g.Notes.Journal
		if j == nil || (g.VMID != j.Guest && g.VMID != j.Parking) {
			continue
		}
		if g.VMID == j.Parking && !j.Replace { // else it is the new VM, and stays
			s.parking[g.VMID] = j.Guest
		}
		name := j.Guest.String() + " " + j.Operation
		have, ok := newest[name]
		holders := append(slices.Clone(have.holders), g.VMID)
		if !ok || j.Sequence > have.Sequence {
			have.Journal = *j
		}
		have.holders, have.kind = holders, g.Kind
		newest[name] = have
	}
	for _, g := range s.f.Guests {
		if about, ok := strings.CutPrefix(g.Name, ParkingPrefix); ok && s.parking[g.VMID] == 0 {
			s.parking[g.VMID], _ = vmid(about)
		}
	}
	for _, name := range sortedKeys(newest) {
		h := newest[name]
		if s.binds(h) {
			s.heads = append(s.heads, h)
		} else {
			s.strays = append(s.strays, h)
		}
	}
}

// binds reports whether a record counts for its guest: it is in the guest's own notes, or the guest's notes hold none and
// the parking guest has it, under the name that says whose parking guest it is; a guest that is gone has only that.
func (s *surveyor) binds(h headRecord) bool {
	owner, there := s.byID[h.Guest]
	if !there || !owner.Read || slices.Contains(h.holders, h.Guest) {
		return true
	}
	return owner.Notes.Journal == nil && s.byID[h.Parking].Name == ParkingPrefix+h.Guest.String()
}

// operations are the records that bind a guest.
func (s *surveyor) operations() []SurveyedOperation {
	var all []SurveyedOperation
	for _, h := range s.heads {
		if !s.wanted(h.Node, h.Guest, h.Parking) {
			continue
		}
		o := SurveyedOperation{
			Operation: h.Operation, Kind: h.Kind, Guest: h.Guest, Parking: h.Parking, Node: guest.Printable(h.Node), State: s.state(h),
			Stage: guest.Printable(h.Stage), Index: h.Index, Stages: h.Of, Of: h.kind, Error: guest.Printable(h.Error), Started: h.Started, Updated: h.Updated,
			Until: h.Until, Age: s.age(h.Updated), Exists: s.exists(h.Guest), Holders: h.holders, Volumes: s.kept(h), Backup: guest.Printable(h.Backup),
		}
		o.Label = strings.TrimRight(fmt.Sprintf("%s %d %s", h.kind, h.Guest, guest.Printable(h.Config["hostname"]+h.Config["name"])), " ")
		o.Reconcile = fmt.Sprintf("reconcile = { operation = %q, action = %q }", h.Operation, onward(o.State))
		o.Remedy = s.remedy(h, o)
		all = append(all, o)
	}
	slices.SortStableFunc(all, func(a, b SurveyedOperation) int {
		return cmp.Or(-cmp.Compare(a.State, b.State), cmp.Compare(a.Guest, b.Guest))
	})
	return all
}

// onward is the action that ends an operation the way it was meant to end.
func onward(state OperationState) string {
	if state == OperationAwaitingTrust {
		return OpAccept.String()
	}
	return OpResume.String()
}

func (s *surveyor) state(h headRecord) OperationState {
	switch {
	case h.State == guest.JournalWaiting:
		return OperationAwaitingTrust
	case h.State == guest.JournalStuck:
		return OperationStuck
	case s.f.Now > h.Until:
		return OperationOverdue
	case h.State == guest.JournalUndoing:
		return OperationTakingBack
	}
	return OperationInProgress
}

// kept are the volumes that an operation sets aside, and which guest names each now.
func (s *surveyor) kept(h headRecord) []HeldVolume {
	var volumes []HeldVolume
	for _, d := range h.Disks {
		if old, err := guest.ParseVolumeID(d.Was); err == nil {
			v := HeldVolume{Key: guest.Printable(d.Key) + " (old)", Volume: guest.Printable(d.Was)}
			for _, holder := range []guest.VMID{h.Parking, h.Guest} {
				if slices.ContainsFunc(s.byID[holder].Named, func(n SectionVolume) bool { return n.ID == old }) {
					v.Holder, v.Size = holder, s.size(s.byID[holder].Node, old)
				}
			}
			volumes = append(volumes, v)
		}
	}
	for _, p := range h.Parked {
		was, ok := volumeIn(h.kind, p.Key, p.Value)
		if !ok {
			continue
		}
		v := HeldVolume{Key: guest.Printable(p.Key), Volume: guest.Printable(where(p, was.String()))}
		for _, holder := range []guest.VMID{h.Parking, h.Guest} {
			id, ok := volumeIn(h.kind, p.Key, s.byID[holder].Values[p.Key])
			if !ok {
				continue
			}
			size := s.size(s.byID[holder].Node, id)
			if size == 0 && v.Holder != 0 {
				continue // a move leaves a dead name behind with one of the two
			}
			v.Volume, v.Holder, v.Size = guest.Printable(id.String()), holder, size
		}
		volumes = append(volumes, v)
	}
	return volumes
}

// volumeIn is the volume that a key's value names, in a guest of a kind.
func volumeIn(kind guest.Kind, key, value string) (id guest.VolumeID, ok bool) {
	if kind == guest.KindVM {
		d, err := guest.ParseDisk(key, value)
		if err != nil {
			return guest.VolumeID{}, false
		}
		return d.Volume()
	}
	m, err := guest.ParseMount(key, value)
	if err != nil {
		return guest.VolumeID{}, false
	}
	return m.Volume()
}

// tool is the command that root has for a kind of guest.
func tool(kind guest.Kind) string {
	if kind == guest.KindVM {
		return "qm"
	}
	return "pct"
}

// remedy says how a person goes on with an operation.
func (s *surveyor) remedy(h headRecord, o SurveyedOperation) string {
	var text []string
	say := func(format string, args ...any) { text = append(text, fmt.Sprintf(format, args...)) }
	switch o.State {
	case OperationInProgress, OperationTakingBack:
		say("It ends at the latest %s: wait. If its process is dead, go on as below.", utc(h.Until))
	case OperationOverdue:
		say("Its time ended %s and nobody works on it.", utc(h.Until))
	case OperationStuck:
		say("Nothing is done to it until a person says so.")
	case OperationAwaitingTrust:
		say("The new system runs, and the old system disks stay as the way back until a person has judged it. Accept it when it is good:")
	}
	switch o.Exists {
	case guest.Present:
		if g := s.byID[h.Guest]; g.Kind != h.kind {
			say("VMID %d belongs to a guest that the operation did not make: move it to another VMID first.", h.Guest)
		}
	case guest.Absent:
		say("%s %d does not exist now; do not take its VMID.", h.kind, h.Guest)
	case guest.PresenceUnknown:
		say("Whether %s %d exists cannot be seen with this login.", h.kind, h.Guest)
	}
	for _, id := range []guest.VMID{h.Guest, h.Parking} {
		if g, there := s.byID[id]; there && g.Lock == "create" && g.Bare && o.State != OperationInProgress {
			say("%s %d is the stub of a create that was killed; no API call removes it. As root on %s: %s unlock %d && %s destroy %d.", g.Kind, id, guest.Printable(g.Node), tool(g.Kind), id, tool(g.Kind), id)
		}
	}
	if lost := unheld(o.Volumes); len(lost) > 0 && o.State != OperationAwaitingTrust && s.read(h.Guest) && s.read(h.Parking) {
		say("No configuration names %s: a move was cut short. A resume finds them; nobody else should touch them.", list(lost))
	}
	say("To go on, put this into the block of %s %d and apply:\n\n  %s\n", h.kind, h.Guest, o.Reconcile)
	if h.kind == guest.KindVM {
		say("Instead of %q: \"rollback\" brings the old system back%s. The plan shows what each would do.", onward(o.State), withData(h))
		say("When no configuration has the guest any more, import it:\n\n  import {\n    to = pvrx_vm_rebuild.NAME\n    id = \"%d\"\n  }", h.Guest)
		return strings.Join(text, " ")
	}
	way := "\"rollback\" takes it back"
	if h.App != nil {
		say("Instead of \"resume\": %s; \"close\" only forgets it. The plan shows what each would do.", instanceWay(h))
		say("When no configuration has the container any more, import it:\n\n  import {\n    to = pvrx_oci_instance.NAME\n    id = \"%d\"\n  }", h.Guest)
		return strings.Join(text, " ")
	}
	if h.Digest != "" || h.New {
		if way = "there is no way back, since it made no backup"; h.Backup != "" {
			way = fmt.Sprintf("\"rollback\" brings the old system back from %s", guest.Printable(h.Backup))
		}
	}
	say("Instead of \"resume\": %s; \"close\" only forgets it. The plan shows what each would do.", way)
	say("When no configuration has the guest any more, import it:\n\n  import {\n    to = pvrx_container_reinstall.NAME\n    id = \"%d\"\n  }", h.Guest)
	return strings.Join(text, " ")
}

func withData(h headRecord) string {
	if h.Snapshot == "" {
		return ""
	}
	return fmt.Sprintf(", \"rollback_data\" also returns the kept disks to snapshot %s", guest.Printable(h.Snapshot))
}

// read reports whether a guest is not there, or its configuration was read.
func (s *surveyor) read(id guest.VMID) bool {
	g, listed := s.byID[id]
	return g.Read || !listed && s.exists(id) == guest.Absent
}

func unheld(volumes []HeldVolume) []string {
	var keys []string
	for _, v := range volumes {
		if v.Holder == 0 {
			keys = append(keys, v.Key)
		}
	}
	return keys
}
