package recipe

import (
	"context"
	"errors"
	"fmt"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
)

func (c *Container) plan(ctx context.Context, seen Observation, want preview.Want) (preview.Preview, error) {
	facts, err := c.facts(ctx, c.lists(), seen, want, nil)
	if err != nil {
		return preview.Preview{}, err
	}
	return preview.Container(facts, want), nil
}

// PlanGrow judges growing the root file system in place, when nothing else is due.
func (c *Container) PlanGrow(ctx context.Context, seen Observation, want preview.Want) (preview.Preview, error) {
	facts, err := c.facts(ctx, c.lists(), seen, want, nil)
	if err != nil {
		return preview.Preview{}, err
	}
	return preview.GrowOnly(facts, want), nil
}

func (c *Container) planReconcile(ctx context.Context, seen Observation, want preview.Want, r Reconcile) (preview.Preview, error) {
	action, ok := action(r.Action)
	if !ok {
		return preview.Preview{}, fmt.Errorf("cannot %q an operation on a container: the actions are resume, rollback and close", r.Action)
	}
	if seen.Journal == nil || seen.Journal.Operation != r.Operation {
		return preview.Preview{}, errors.New("the operation is not in progress")
	}
	facts, err := c.reconcileFacts(ctx, c.lists(), seen, want)
	if err != nil {
		return preview.Preview{}, err
	}
	return reconciled(action, *seen.Journal, facts), nil
}

// reconciled judges an action on the operation of a record.
func reconciled(action preview.Operation, j guest.Journal, facts preview.Facts) preview.Preview {
	if j.App != nil {
		return preview.ReconcileInstance(action, j, facts)
	}
	return preview.Reconcile(action, j, facts)
}

// reconcileFacts reads what a reconcile looks at: the guest, when it exists, and the parking guest.
func (c *Container) reconcileFacts(ctx context.Context, lists Reader, seen Observation, want preview.Want) (preview.Facts, error) {
	facts, err := c.facts(ctx, lists, seen, want, seen.Journal)
	if err != nil {
		return facts, err
	}
	j := *seen.Journal
	g := &gathering{c: c, lists: lists, seen: Observation{Ref: guest.Ref{VMID: j.Guest, Kind: guest.KindContainer, Node: j.Node}, Config: seen.Config}, want: want, own: &j, f: &facts}
	if seen.Presence != guest.Present {
		if err := g.storages(ctx); err != nil {
			return facts, err
		}
		if err := g.neighbours(ctx); err != nil {
			return facts, err
		}
	}
	// What the parking guest names counts as named by it: close asks whether anybody else does.
	if j.Parking == 0 {
		return facts, nil
	}
	parking := guest.Listed{Ref: guest.Ref{VMID: j.Parking, Kind: guest.KindContainer, Node: j.Node}}
	users, err := g.named(ctx, parking)
	if err != nil && guest.OutcomeOf(err) != guest.OutcomeMissing {
		return facts, fmt.Errorf("cannot look at parking guest CT %d: %w", j.Parking, err)
	}
	for id, u := range users {
		facts.Users[id] = append(facts.Users[id], u...)
	}
	return facts, nil
}

func action(word string) (preview.Operation, bool) {
	for _, op := range []preview.Operation{preview.OpResume, preview.OpRollback, preview.OpClose} {
		if op.String() == word {
			return op, true
		}
	}
	return 0, false
}
