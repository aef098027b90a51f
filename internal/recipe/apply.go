package recipe

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/stage"
)

func (c *Container) apply(ctx context.Context, req Request) (Result, error) {
	seen, err := c.look(ctx, c.Host, req.Want.VMID)
	if err != nil {
		return Result{Status: StatusReady}, err
	}
	if req.Reconcile != nil {
		return c.reconcile(ctx, req, seen)
	}
	wanted := guest.Install{Template: req.Want.Template, Triggers: req.Want.Triggers, RootfsStorage: req.Want.Rootfs.Storage}
	due, installed := pending(seen, wanted, req.Installed)
	if !due && seen.Journal == nil && !req.Want.RehearseOnly {
		return c.grow(ctx, req, seen, installed)
	}
	facts, err := c.facts(ctx, c.Host, seen, req.Want, nil)
	if err != nil {
		return untouched(seen, installed), err
	}
	judged := preview.Container(facts, req.Want)
	if err := admissible(req, judged, title(seen)); err != nil {
		r := untouched(seen, installed)
		r.Preview = judged
		return refused(ctx, r, seen, c.lookAgain(seen.Ref.VMID), err)
	}
	o := c.begin(req, seen, facts, judged)
	if req.Want.RehearseOnly {
		return o.dryRun(ctx, seen, installed)
	}
	return o.report(ctx, o.engine().Run(ctx))
}

// admissible refuses an apply whose guest is not what the plan showed, or that a blocker forbids.
func admissible(req Request, judged preview.Preview, who string) error {
	if !req.Planned.Zero() {
		if diff := req.Planned.Compare(judged.Acknowledged); len(diff) > 0 {
			var text []string
			for _, d := range diff {
				text = append(text, d.Text())
			}
			return &Failure{Summary: who + " has changed since the plan", Detail: strings.Join(text, " ") + " Nothing was touched. Plan again.", cause: changedError{when: "since the plan", diff: diff}}
		}
	}
	blockers := preview.Foremost(judged.Blockers)
	if len(blockers) == 0 {
		return nil
	}
	cause := blockedError{blockers: blockers}
	return &Failure{Summary: who + ": blocked (" + blockers[0].Code.String() + ")", Detail: cause.Error() + " Nothing was touched.", cause: cause}
}

// grow enlarges the root file system in place, when that is all that is wanted.
func (c *Container) grow(ctx context.Context, req Request, seen Observation, installed *guest.Install) (Result, error) {
	r := untouched(seen, installed)
	if req.Want.Rootfs.Size == 0 {
		return r, nil
	}
	facts, err := c.facts(ctx, c.Host, seen, req.Want, nil)
	if err != nil {
		return r, err
	}
	size := req.Want.Rootfs.Size.CeilMiB()
	present := req.Want
	present.Rootfs.Size = 0
	if rootfsSize(facts, present) >= size {
		return r, nil
	}
	r.Preview = preview.GrowOnly(facts, req.Want)
	if err := admissible(req, r.Preview, title(seen)); err != nil {
		return r, err
	}
	r.Changed = true
	err = c.Host.Resize(ctx, seen.Ref, "rootfs", size)
	now, seenErr := c.look(ctx, c.Host, seen.Ref.VMID)
	if seenErr == nil {
		r.Acknowledged = now.Acknowledged
	}
	if err != nil {
		return r, &Failure{Summary: title(seen) + ": cannot grow rootfs to " + size.GiB(), Detail: err.Error() + ". Growing changes nothing else: plan again to see how large it is now.", cause: err}
	}
	// A grown volume is not a grown file system: Proxmox says so only in the task's log (hazard C16).
	if seen.Running {
		if total, err := c.Host.DiskTotal(ctx, seen.Ref); err == nil && total < size-size/8 {
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s: the volume has %s now, the file system reports %s: grow it inside the guest, or look at the resize task's log", title(seen), size.GiB(), total.GiB()))
		}
	}
	return r, nil
}

// dryRun rehearses and takes everything back.
func (o *operation) dryRun(ctx context.Context, seen Observation, installed *guest.Install) (Result, error) {
	o.j.Dry = true
	engine := o.rehearsal()
	report := engine.Run(ctx)
	if report.End == stage.Finished {
		if report = engine.TakeBack(ctx, report.At); errors.Is(report.Err, stage.ErrTakenBack) && report.End == stage.Undone {
			r := untouched(seen, installed)
			r.Preview, r.Warnings = o.preview, o.warnings
			return r, nil
		}
	}
	return o.report(ctx, report)
}

// report turns the engine's report into what goes into state, and an error into sentences: what was found, where the guest
// is now, what to do next.
func (o *operation) report(ctx context.Context, report stage.Report) (Result, error) {
	ctx = context.WithoutCancel(ctx)
	if o.goesBack(report) {
		return o.goBack(ctx, report)
	}
	if report.End == stage.Finished && o.j.Kind == kindRemove {
		o.removed(ctx)
	}
	r := Result{
		Operation: o.j.Operation, Parking: o.parking.VMID, Backup: o.j.Backup, Preview: o.preview, Warnings: o.warnings, Changed: o.started,
		Installed: o.j.Installed,
	}
	seen, err := o.look(ctx)
	if err == nil {
		r.Acknowledged = seen.Acknowledged
		switch seen.Presence {
		case guest.Present:
			r.Exists = new(bool)
			*r.Exists = true
		case guest.Absent:
			r.Exists = new(bool)
		case guest.PresenceUnknown:
		}
	}
	switch report.End {
	case stage.Finished:
		r.Status, r.Installed = StatusReady, &o.j.Wanted
		if o.j.State == guest.JournalWaiting {
			r.Status = StatusAwaitingTrust
		}
		if o.j.Kind == kindRollback {
			r.Status, r.Installed = StatusRolledBack, o.j.Installed
		}
		return r, nil
	case stage.Undone:
		r.Status = StatusReady
		if errors.Is(report.Err, stage.ErrTakenBack) {
			if !o.j.Dry || o.j.Refused { // a rehearsal that was resumed ended as it should
				r.Status = StatusRolledBack
			}
			return r, nil
		}
		if winner := o.lostTo(report.Err); winner != nil {
			return standing(r, *winner), o.lostFailure(*winner)
		}
		now := "Everything was taken back: " + o.asBefore() + " Correct the cause and apply again."
		switch {
		case o.started:
		case o.j.Backup != "":
			r.Operation, now = "", "Archive "+o.j.Backup+" was made and stays; nothing else was touched. Plan again."
		default:
			r.Operation, now = "", "Nothing was touched. Plan again."
		}
		return r, &Failure{Summary: o.title() + ": " + notDone(o.j.Kind), Detail: sentence(report.Err) + "\n\n" + now, cause: report.Err}
	case stage.Stuck:
	}
	r.Status, r.Stage, r.Index, r.Of = StatusNeedsReconcile, report.At.Stage, report.At.Index, report.At.Of
	if winner := o.lostTo(report.Err); winner != nil {
		r.Status, r.Operation = StatusInProgress, winner.Operation
	}
	return r, o.stuckFailure(report, r)
}

// lostTo is the record of the operation that has the guest instead of this one; nil when that is not why it ended.
func (o *operation) lostTo(err error) *guest.Journal {
	lost := new(lostError)
	if !errors.As(err, &lost) || lost.winner == nil || lost.winner.Operation == o.j.Operation {
		return nil
	}
	return lost.winner
}

// lostFailure says that another run was faster, and which.
func (o *operation) lostFailure(winner guest.Journal) error {
	did := "This run changed nothing."
	if o.started {
		did = "What this run had done was taken back."
	}
	return overtaken(o.title(), o.guest, winner, did)
}

// look observes the guest that the operation is about; for a finished replacement that is the new one.
func (o *operation) look(ctx context.Context) (Observation, error) {
	if o.guest.Kind == guest.KindContainer {
		return o.c.look(ctx, o.host, o.guest.VMID)
	}
	return (*VM)(o.c).look(ctx, o.host, o.subject().VMID)
}

func notDone(kind string) string {
	switch kind {
	case kindRebuild:
		return "not rebuilt"
	case kindReplace:
		return "not replaced"
	case kindInstall:
		return "not installed"
	case kindUpdate:
		return "not updated"
	case kindRemove:
		return "not removed"
	}
	return "not reinstalled"
}

func (o *operation) asBefore() string {
	if o.j.Kind == kindInstall {
		return "nothing of it is left."
	}
	if !o.j.Running {
		return "the guest is as it was."
	}
	return "the guest is as it was, and running."
}

func (o *operation) title() string {
	name := o.j.Config["hostname"]
	if o.guest.Kind == guest.KindVM {
		name = o.j.Config["name"]
	}
	if name == "" {
		return fmt.Sprintf("%s %d", o.guest.Kind, o.guest.VMID)
	}
	return fmt.Sprintf("%s %d %s", o.guest.Kind, o.guest.VMID, guest.Printable(name))
}

func title(seen Observation) string {
	if seen.Name == "" {
		return fmt.Sprintf("%s %d", seen.Ref.Kind, seen.Ref.VMID)
	}
	return fmt.Sprintf("%s %d %s", seen.Ref.Kind, seen.Ref.VMID, guest.Printable(seen.Name))
}

// stuckFailure says where a half-finished operation stands, who holds what, and how to go on.
func (o *operation) stuckFailure(report stage.Report, r Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s stopped at stage %d of %d, %s: %s\n", o.j.Operation, report.At.Index, report.At.Of, report.At.Stage, sentence(report.Err))
	switch {
	case r.Exists == nil:
		fmt.Fprintf(&b, "Whether %s %d exists now could not be determined.", o.guest.Kind, o.guest.VMID)
	case *r.Exists:
		fmt.Fprintf(&b, "%s %d exists now.", o.guest.Kind, o.guest.VMID)
	default:
		fmt.Fprintf(&b, "%s %d does not exist now.", o.guest.Kind, o.guest.VMID)
	}
	if held := o.held(); len(held) > 0 {
		fmt.Fprintf(&b, " Its volumes %s wait on %s %d.", strings.Join(held, ", "), o.parking.Kind, o.parking.VMID)
	}
	if o.j.Kind == kindInstall && !o.claimed {
		b.WriteString("\nNo record of it could be written. See that nothing of it is left, then apply again.")
		return &Failure{Summary: o.title() + ": an install stopped half-way", Detail: b.String(), cause: report.Err}
	}
	fmt.Fprintf(&b, "\nNothing else will be done to it until you say so:\n\n  reconcile = { operation = %q, action = \"resume\" }\n\nor \"rollback\" or \"close\".", o.j.Operation)
	return &Failure{Summary: o.title() + ": an operation stopped half-way (needs_reconcile)", Detail: b.String(), cause: report.Err}
}

// held are the keys whose volumes are with the parking guest as far as the record says.
func (o *operation) held() []string {
	var keys []string
	for _, p := range o.j.Parked {
		if p.Parked != "" && p.Now == "" {
			keys = append(keys, p.Key)
		}
	}
	return keys
}

func untouched(seen Observation, installed *guest.Install) Result {
	r := Result{Status: StatusReady, Installed: installed, Acknowledged: seen.Acknowledged}
	switch seen.Presence {
	case guest.Present:
		r.Exists = new(bool)
		*r.Exists = true
	case guest.Absent:
		r.Exists = new(bool)
	case guest.PresenceUnknown:
	}
	return r
}

// standing says in a result where an operation stands that somebody else began.
func standing(r Result, j guest.Journal) Result {
	r.Status = StatusInProgress
	switch j.State {
	case guest.JournalStuck:
		r.Status = StatusNeedsReconcile
	case guest.JournalWaiting:
		r.Status = StatusAwaitingTrust
	case guest.JournalDoing, guest.JournalUndoing:
	}
	r.Operation, r.Stage, r.Index, r.Of, r.Parking, r.Backup = j.Operation, j.Stage, j.Index, j.Of, j.Parking, j.Backup
	return r
}

func (c *Container) adopt(_ context.Context, seen Observation, installed guest.Install) (Result, error) {
	return untouched(seen, &installed), nil
}

// Failure is an error for people: a summary that starts with the guest, and paragraphs that say what was found, where the
// guest is now and what to do next.
type Failure struct {
	Summary, Detail string
	cause           error
}

func (f *Failure) Error() string { return f.Summary + ": " + f.Detail }

func (f *Failure) Unwrap() error { return f.cause }

// sentence makes one harmless line of an error that may carry Proxmox's words.
func sentence(err error) string {
	if err == nil {
		return ""
	}
	lines := strings.Split(err.Error(), "\n")
	for i := range lines {
		lines[i] = guest.Printable(lines[i])
	}
	return strings.TrimSuffix(strings.Join(lines, "; "), ".") + "."
}
