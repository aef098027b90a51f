package recipe

import (
	"context"
	"errors"
	"fmt"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
)

// VM rebuilds virtual machines. In place: back up → claim → prepare → stop → detach → snapshot → attach each → configure →
// start → await trust. On a new VM: back up → claim → prepare → stop → retire → hand over each → configure → follow → start →
// await trust. There is no point of no return before an accept. Its fields are those of Container.
type VM Container

// container is the same site under its other name: what both kinds of recipes share is written for Container.
func (v *VM) container() *Container { return (*Container)(v) }

// Observe looks at a VM with one config read.
func (v *VM) Observe(ctx context.Context, id guest.VMID) (Observation, error) {
	return v.look(ctx, v.container().lists(), id)
}

// Plan judges a rebuild. Of a replacement it judges the VM that is replaced; a configuration that goes back to a VM whose
// replacement waits for trust asks for the replacement to be taken back.
func (v *VM) Plan(ctx context.Context, seen Observation, want preview.Want) (preview.Preview, error) {
	if givenUp(seen, want) {
		return v.PlanReconcile(ctx, seen, want, giveUp(seen))
	}
	facts, want, err := v.facts(ctx, v.container().lists(), seen, want)
	if err != nil {
		return preview.Preview{}, err
	}
	return preview.VM(facts, want), nil
}

// PlanGrow says nothing: disks of VMs are grown by whoever manages them.
func (v *VM) PlanGrow(_ context.Context, seen Observation, _ preview.Want) (preview.Preview, error) {
	return preview.Preview{Acknowledged: seen.Acknowledged}, nil
}

// PlanReconcile judges what a reconcile action would do to the operation in seen.Journal.
func (v *VM) PlanReconcile(ctx context.Context, seen Observation, want preview.Want, r Reconcile) (preview.Preview, error) {
	action, ok := vmAction(r.Action)
	if !ok {
		return preview.Preview{}, fmt.Errorf("cannot %q an operation on a VM: the actions are resume, rollback, rollback_data, accept and close", r.Action)
	}
	if seen.Journal == nil || seen.Journal.Operation != r.Operation {
		return preview.Preview{}, errors.New("the operation is not in progress")
	}
	facts, err := v.reconcileFacts(ctx, v.container().lists(), *seen.Journal, want)
	if err != nil {
		return preview.Preview{}, err
	}
	return preview.ReconcileVM(action, *seen.Journal, facts), nil
}

// Apply does the operation, or what Reconcile asks.
func (v *VM) Apply(ctx context.Context, req Request) (Result, error) {
	if req.Want.VM == nil {
		req.Want.VM = &preview.VMWant{}
	}
	seen, err := v.look(ctx, v.Host, req.Want.VMID)
	if err != nil {
		return Result{Status: StatusReady}, err
	}
	if req.Reconcile == nil && givenUp(seen, req.Want) {
		if err := v.planSawReplacement(ctx, req, seen); err != nil {
			return standing(untouched(seen, installedNow(seen, req.Installed)), *seen.Journal), err
		}
		r := giveUp(seen)
		req.Reconcile = &r
	}
	if req.Reconcile != nil {
		return v.reconcile(ctx, req, seen)
	}
	due, installed := pending(seen, req.Want.Install(), req.Installed)
	if seen.Presence == guest.Absent && req.Want.VM.Replaces != 0 {
		due = true
	}
	if !due && !req.Want.RehearseOnly {
		r := untouched(seen, installed)
		if seen.Journal != nil {
			r = standing(r, *seen.Journal)
		}
		return r, nil
	}
	facts, want, err := v.facts(ctx, v.Host, seen, req.Want)
	if err != nil {
		return untouched(seen, installed), err
	}
	req.Want = want
	judged := preview.VM(facts, want)
	old := seen
	if want.VM.Replaces != 0 {
		if old, err = v.look(ctx, v.Host, want.VM.Replaces); err != nil {
			return untouched(seen, installed), err
		}
	}
	if err := admissible(req, judged, title(old)); err != nil {
		r := untouched(seen, installed)
		r.Preview = judged
		before := old
		before.Journal = seen.Journal // a record that came between the two looks is another run's
		return refused(ctx, r, before, v.lookAgain(old.Ref.VMID), err)
	}
	o := v.begin(req, old, facts, judged)
	if req.Want.RehearseOnly {
		return o.dryRun(ctx, seen, installed)
	}
	return o.report(ctx, o.engine().Run(ctx))
}

// Survey looks through the whole cluster for what operations left half done.
func (v *VM) Survey(ctx context.Context, scope Scope) (preview.Report, error) {
	return v.container().Survey(ctx, scope)
}

// Adopt records the VM as it is.
func (v *VM) Adopt(ctx context.Context, seen Observation, installed guest.Install) (Result, error) {
	return v.container().adopt(ctx, seen, installed)
}

// givenUp reports whether the configuration names the old VM again while its replacement is under way or waits for trust.
func givenUp(seen Observation, want preview.Want) bool {
	return seen.Journal != nil && seen.Journal.Replace && seen.Journal.Kind == kindReplace && seen.Journal.Guest == want.VMID &&
		seen.Journal.State == guest.JournalWaiting && (want.VM == nil || want.VM.Replaces == 0)
}

// planSawReplacement refuses to take a replacement back for a plan that saw neither of its VMs as they are now: then it is
// another run's, and the plan showed something else.
func (v *VM) planSawReplacement(ctx context.Context, req Request, seen Observation) error {
	if req.Planned.Zero() || len(req.Planned.Compare(seen.Acknowledged)) == 0 {
		return nil
	}
	replacement, err := v.look(ctx, v.Host, seen.Journal.Parking)
	if err != nil {
		return err
	}
	if !replacement.Acknowledged.Zero() && len(req.Planned.Compare(replacement.Acknowledged)) == 0 {
		return nil
	}
	return overtaken(title(seen), seen.Ref, *seen.Journal, "This run changed nothing.")
}

func giveUp(seen Observation) Reconcile {
	return Reconcile{Operation: seen.Journal.Operation, Action: preview.OpRollback.String()}
}

func vmAction(word string) (preview.Operation, bool) {
	if word == preview.OpAccept.String() {
		return preview.OpAccept, true
	}
	if word == preview.OpRollbackData.String() {
		return preview.OpRollbackData, true
	}
	return action(word)
}

// reconcile does what a person decided about an operation. Naming one that is over is inert.
func (v *VM) reconcile(ctx context.Context, req Request, seen Observation) (Result, error) {
	installed := installedNow(seen, req.Installed)
	if seen.Journal == nil || seen.Journal.Operation != req.Reconcile.Operation {
		return untouched(seen, installed), nil
	}
	j := *seen.Journal
	action, ok := vmAction(req.Reconcile.Action)
	if !ok {
		return standing(untouched(seen, installed), j), fmt.Errorf("cannot %q an operation on a VM: the actions are resume, rollback, rollback_data, accept and close", req.Reconcile.Action)
	}
	facts, err := v.reconcileFacts(ctx, v.Host, j, req.Want)
	if err != nil {
		return standing(untouched(seen, installed), j), err
	}
	judged := preview.ReconcileVM(action, j, facts)
	if len(judged.Blockers) > 0 {
		r := standing(untouched(seen, installed), j)
		r.Preview = judged
		return r, admissible(Request{}, judged, title(seen))
	}
	o := v.container().resumed(req, seen, facts.Login)
	o.preview = judged
	switch action {
	case preview.OpResume:
		return o.report(ctx, o.engine().Resume(ctx, o.position()))
	case preview.OpRollback, preview.OpRollbackData:
		o.j.Refused = true
		o.j.Return = o.j.Return || action == preview.OpRollbackData
		return o.report(ctx, o.engine().TakeBack(ctx, o.position()))
	case preview.OpAccept:
		if o.j.Kind == kindAccept {
			return o.report(ctx, o.engine().Resume(ctx, o.position()))
		}
		o.j.Kind = kindAccept
		return o.report(ctx, o.engine().Run(ctx))
	case preview.OpClose:
		return o.closeIt(ctx)
	case preview.OpReinstall, preview.OpGrow, preview.OpRebuild, preview.OpReplace, preview.OpInstall, preview.OpModify, preview.OpUpdate, preview.OpRemove, preview.OpAdopt:
	}
	return standing(untouched(seen, installed), j), errors.New("internal error: unreachable action")
}
