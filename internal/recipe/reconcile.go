package recipe

import (
	"context"
	"errors"
	"fmt"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
)

// reconcile does what a person decided about an operation that stopped half-way. Naming one that is over is inert.
func (c *Container) reconcile(ctx context.Context, req Request, seen Observation) (Result, error) {
	installed := installedNow(seen, req.Installed)
	if seen.Journal == nil || seen.Journal.Operation != req.Reconcile.Operation {
		return untouched(seen, installed), nil
	}
	action, ok := action(req.Reconcile.Action)
	if !ok {
		return standing(untouched(seen, installed), *seen.Journal), fmt.Errorf("cannot %q an operation on a container: the actions are resume, rollback and close", req.Reconcile.Action)
	}
	facts, err := c.reconcileFacts(ctx, c.Host, seen, req.Want)
	if err != nil {
		return standing(untouched(seen, installed), *seen.Journal), err
	}
	judged := reconciled(action, *seen.Journal, facts)
	if len(judged.Blockers) > 0 {
		r := standing(untouched(seen, installed), *seen.Journal)
		r.Preview = judged
		return r, admissible(Request{}, judged, title(seen))
	}
	o := c.resumed(req, seen, facts.Login)
	o.preview = judged
	switch action {
	case preview.OpResume:
		return o.resume(ctx)
	case preview.OpRollback:
		return o.rollBack(ctx)
	case preview.OpClose:
		return o.closeIt(ctx)
	case preview.OpReinstall, preview.OpGrow, preview.OpRebuild, preview.OpReplace, preview.OpInstall, preview.OpModify, preview.OpUpdate,
		preview.OpRemove, preview.OpAdopt, preview.OpRollbackData, preview.OpAccept:
	}
	return standing(untouched(seen, installed), *seen.Journal), errors.New("internal error: unreachable action")
}

// resume goes on where the record stands.
func (o *operation) resume(ctx context.Context) (Result, error) {
	if o.j.Secret && o.req.Password == "" && !o.j.New && !o.j.Dry {
		return standing(Result{}, o.j), &Failure{
			Summary: o.title() + ": the root password must be given again",
			Detail:  o.j.Operation + " was begun with root_password_wo, which no record holds. Give it again to resume; without it the new guest would have no root password. Nothing was done.",
		}
	}
	engine := o.engine()
	return o.report(ctx, engine.Resume(ctx, o.position()))
}

// rollBack takes an operation back that has not crossed the point of no return; past it, the guest is rebuilt from the
// operation's own archive.
func (o *operation) rollBack(ctx context.Context) (Result, error) {
	engine := o.engine()
	if engine.Crossed(o.position()) {
		return o.restoreArchive(ctx)
	}
	o.j.Refused = o.j.Kind != kindRemove
	return o.report(ctx, engine.TakeBack(ctx, o.position()))
}

// closeIt ends an operation because a person asserts that all is well: the record goes, from wherever it is. It is refused
// while the parking guest holds a volume that nobody else names.
func (o *operation) closeIt(ctx context.Context) (Result, error) {
	contract := o.closing(ctx)
	for _, ref := range []guest.Ref{o.guest, o.parking} {
		if ref.VMID == 0 {
			continue
		}
		err := o.editNotes(ctx, ref, func(n *guest.Notes) (bool, error) {
			if n.Journal == nil || n.Journal.Operation != o.j.Operation {
				return false, nil
			}
			n.Journal = nil
			if contract != nil && ref == o.guest {
				n.Contract = contract
			}
			return true, nil
		})
		if err != nil && guest.OutcomeOf(err) != guest.OutcomeMissing {
			return standing(Result{}, o.j), fmt.Errorf("cannot take the record of %s out of the notes of %s %d: %w", o.j.Operation, ref.Kind, ref.VMID, err)
		}
	}
	now, err := o.look(ctx)
	if err != nil {
		return Result{Status: StatusReady, Operation: o.j.Operation, Changed: true}, err
	}
	r := untouched(now, installedNow(now, o.req.Installed))
	r.Operation, r.Parking, r.Preview, r.Changed = o.j.Operation, o.parking.VMID, o.preview, true
	return r, nil
}
