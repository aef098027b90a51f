package preview

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// judgeBusy asks whether something or somebody holds the guest at the moment, or forbids touching it.
func (j *judge) judgeBusy() {
	j.judgeProtection()
	j.judgeLock()
	var keys []string
	for _, c := range j.f.Guest.Pending {
		keys = append(keys, c.Key)
	}
	j.judgePending(keys)
	j.judgeTasks()
}

func (j *judge) judgeProtection() {
	if on := j.f.Guest.Config.Values["protection"]; on != "" && on != "0" {
		may := "if it may be reinstalled"
		if j.w.Instance != nil {
			may = "if that may be done to it"
		}
		j.block(Blocker{
			Code: CodeProtected, Subject: j.id().String(), Found: fmt.Sprintf(j.kind()+" %d has protection = %s.", j.id(), on),
			Remedy: "Take the protection off in Proxmox " + may + "; pvrx never lifts it.",
		})
	}
}

func (j *judge) judgeLock() {
	if lock := j.f.Guest.Config.Values["lock"]; lock != "" {
		j.block(Blocker{
			Code: CodeLocked, Subject: j.id().String(), Found: fmt.Sprintf(j.kind()+" %d is locked (%s).", j.id(), lock),
			Remedy: "Wait until the task that locked it ends, or see with \"pct unlock\" on the node why none does.",
		})
	}
}

// judgePending blocks on changes that wait for a restart and that nobody here asked for.
func (j *judge) judgePending(keys []string) {
	if len(keys) == 0 {
		return
	}
	guest.SortKeys(keys)
	j.block(Blocker{
		Code: CodePendingChanges, Subject: j.id().String(), Found: fmt.Sprintf("Changes of %s wait for a restart of "+j.kind()+" %d.", list(slices.Compact(keys)), j.id()),
		Remedy: "Restart the guest to apply them, or revert them.",
	})
}

// judgeTasks matches running tasks by what they work on. A job over several guests carries no VMID, so that it is matched by
// its type alone; a move carries both guests in its id (hazard B2).
func (j *judge) judgeTasks() {
	if !j.f.Tasks.OK {
		j.unseen("running tasks of node "+orUnknown(j.f.Guest.Node), j.f.Tasks.Why, "Sys.Audit on /nodes/"+orUnknown(j.f.Guest.Node))
		return
	}
	for _, t := range j.f.Tasks.Value {
		if !works(t, j.id()) && (j.f.Parking.VMID == 0 || !works(t, j.f.Parking.VMID)) {
			continue
		}
		on := "on it"
		if t.ID == "" {
			on = "on many guests of the node, this one perhaps among them"
		}
		j.block(Blocker{
			Code: CodeTaskRunning, Subject: j.id().String(), Found: fmt.Sprintf("Task %s of %s works %s (%s).", t.Type, t.User, on, t.UPID),
			Remedy: "Plan again when it has ended.",
		})
	}
}

// works reports whether a task works on a guest, or may. Consoles only look.
func works(t Task, id guest.VMID) bool {
	switch t.Type {
	case "vncproxy", "vncshell", "spiceproxy", "spiceshell", "termproxy":
		return false
	case "vzdump", "startall", "stopall", "suspendall", "migrateall":
		if t.ID == "" {
			return true
		}
	}
	if t.Type == "move_volume" || t.Type == "qmmove" { // "100-mp0>9000-mp0"
		return slices.ContainsFunc(strings.Split(t.ID, ">"), func(side string) bool {
			owner, _, _ := strings.Cut(side, "-")
			return owner == id.String()
		})
	}
	return t.ID == id.String()
}

// records are the operations in progress on this guest, wherever they were found: the newer copy of each. The one that asks
// is not among them.
func (j *judge) records() []guest.Journal {
	newest := map[string]guest.Journal{}
	for _, r := range []*guest.Journal{j.f.Journal.Journal, j.f.Elsewhere} {
		if r == nil || r.Guest != j.id() && !(r.Replace && r.Parking == j.id()) || r.Operation == j.w.Operation {
			continue
		}
		if have, ok := newest[r.Operation]; !ok || r.Sequence > have.Sequence {
			newest[r.Operation] = *r
		}
	}
	records := make([]guest.Journal, 0, len(newest))
	for _, op := range sortedKeys(newest) {
		records = append(records, newest[op])
	}
	return records
}

// operating reports whether an operation of ours or another's has this guest, so that its absence is expected.
func (j *judge) operating() bool {
	return j.w.Operation != "" || len(j.records()) > 0
}

// judgeRecords blocks while an operation has the guest. One that is stuck, or whose time is over, waits for a person.
func (j *judge) judgeRecords() {
	for _, r := range j.records() {
		if r.State == guest.JournalWaiting {
			j.block(Blocker{
				Code: CodeAwaitingTrust, Subject: r.Operation, Attribute: "reconcile", Found: fmt.Sprintf("%s of %s is done and waits for a verdict; the old system disks are still there.", r.Operation, utc(r.Updated)),
				Remedy: fmt.Sprintf("Say so first: reconcile = { operation = %q, action = \"accept\" }, or \"rollback\", or \"rollback_data\".", r.Operation),
			})
			continue
		}
		code, remedy := CodeOperationInFlight, fmt.Sprintf("Wait until it ends (at the latest %s). If its process is dead, say how to go on: %s.", utc(r.Until), choices(r))
		if r.State == guest.JournalStuck || j.f.Now > r.Until {
			code, remedy = CodeNeedsReconcile, fmt.Sprintf("Nothing else will be done to it until you say so: %s.", choices(r))
		}
		j.block(Blocker{Code: code, Subject: r.Operation, Attribute: "reconcile", Found: j.stands(r), Remedy: remedy})
	}
	for _, foreign := range []bool{false, true} {
		p, found := j.f.Journal.Problem(guest.BlockJournal, foreign)
		switch {
		case !found:
		case foreign:
			j.warn("%s The operation takes it out.", p.Sentence)
		default:
			j.block(Blocker{
				Code: CodeNeedsReconcile, Subject: orUnknown(p.Operation), Found: p.Sentence,
				Remedy: "Whether an operation is half done cannot be told from it. Look at the guest and at its parking guest, then take the block out of the notes by hand.",
			})
		}
	}
}

// stands says in sentences where an operation is and where the guest is.
func (j *judge) stands(r guest.Journal) string {
	verb := "stopped"
	if r.State != guest.JournalStuck && j.f.Now <= r.Until {
		verb = "is"
	}
	text := fmt.Sprintf("%s %s at stage %d of %d, %s", r.Operation, verb, r.Index, r.Of, r.Stage)
	if r.Error != "" {
		text += ": " + strings.TrimSuffix(r.Error, ".")
	}
	text += "."
	if j.f.Presence == guest.Absent {
		text += fmt.Sprintf(" "+j.kind()+" %d does not exist now.", r.Guest)
	}
	if waiting := waiting(r); len(waiting) > 0 && r.Parking != 0 {
		text += fmt.Sprintf(" Its %s wait on "+j.kind()+" %d.", list(waiting), r.Parking)
	}
	return text
}

// waiting are the keys whose volumes are on the parking guest.
func waiting(r guest.Journal) []string {
	var keys []string
	for _, p := range r.Parked {
		if p.Parked != "" && p.Now == "" {
			keys = append(keys, p.Key)
		}
	}
	return keys
}

func choices(r guest.Journal) string {
	text := fmt.Sprintf("reconcile = { operation = %q, action = \"resume\" }", r.Operation)
	switch {
	case r.App != nil && r.Kind != OpRemove.String():
		text += ", or \"rollback\""
	case r.Backup != "":
		text += fmt.Sprintf(", or \"rollback\" (rootfs from %s)", r.Backup)
	}
	return text + ", or \"close\""
}

func utc(seconds int64) string { return time.Unix(seconds, 0).UTC().Format("2006-01-02 15:04 MST") }
