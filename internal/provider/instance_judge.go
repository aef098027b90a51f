package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// newRootfs is the size of a new root file system that nothing is said about.
const newRootfs = 4 * guest.GiB

// judgeNew decides what a create does: it installs, or takes up what is this container already. Anything else is refused.
func (r *instanceResource) judgeNew(ctx context.Context, configured *instanceModel) (v verdict, diags diag.Diagnostics) {
	w, diags := r.wantFrom(ctx, configured)
	if diags.HasError() {
		return v, diags
	}
	name := r.called(configured, recipe.Observation{})
	seen, err := r.operator().Observe(ctx, configured.id())
	if err != nil {
		diags.AddError(name+": it cannot be looked at", sentence(err.Error()))
		return v, diags
	}
	v = verdict{want: w, seen: seen, from: configured.id()}
	if configured.ours(seen) && seen.Journal == nil {
		v.due = dueAdoption
		return v, diags
	}
	w.Instance.Create = true
	if v.want.Rootfs.Size == 0 {
		v.want.Rootfs.Size = newRootfs
	}
	if seen.Presence == guest.Absent && seen.Journal == nil { // otherwise it is refused, whatever the image is
		var more diag.Diagnostics
		w.Instance.Image, more = r.image(ctx, configured, nil, instanceMemo{})
		if diags.Append(more...); diags.HasError() {
			return v, diags
		}
	}
	v.due = dueOperation
	if v.preview, err = r.operator().Plan(ctx, seen, v.want.Want); err != nil {
		diags.AddError(name+": what would happen cannot be determined", sentence(err.Error()))
		return v, diags
	}
	v.preview.Blockers = preview.Foremost(v.preview.Blockers)
	diags.Append(blocked(v.preview.Blockers)...)
	if !diags.HasError() && v.preview.Operation != preview.OpInstall {
		// Whatever the judgement says, a create touches nothing that is there.
		diags.AddAttributeError(path.Root("vmid"), name+" exists and is not in this state",
			"Paste this, and the plan shows what would be done to it:\n\n"+importBlock("oci_instance", configured.id()))
	}
	return v, diags
}

// remembered reads the memo that a refresh wrote; without one nothing can be compared.
func remembered(ctx context.Context, name string, from private) (m memo, diags diag.Diagnostics) {
	m, found, diags := recall(ctx, from)
	if !found && !diags.HasError() {
		diags.AddError(name+": nothing is recorded of how it looks", "The plan was made without refreshing, and what was seen of the "+
			"guest before is lost. Nothing was touched. Plan again without -refresh=false.")
	}
	return m, diags
}

// wantFrom turns a configuration into values, and refuses what is decisive and unknown.
func (r *instanceResource) wantFrom(ctx context.Context, configured *instanceModel) (wanted, diag.Diagnostics) {
	if diags := refuseUnknown(configured.decisive()); diags.HasError() {
		return wanted{}, diags
	}
	return configured.want(ctx)
}

// judge decides what is due for a container that is in state, given what Read recorded and what is seen now.
func (r *instanceResource) judge(ctx context.Context, configured *instanceModel, m memo, seen recipe.Observation) (v verdict, diags diag.Diagnostics) {
	w, diags := r.wantFrom(ctx, configured)
	if diags.HasError() {
		return v, diags
	}
	last := m.instance()
	w.Spent, w.Instance.Known, w.Instance.KnownAt = m.Spent, last.Known, last.KnownAt
	v = verdict{want: w, seen: seen, from: configured.id()}
	name := r.called(configured, seen)
	open := seen.Journal
	var err error
	if w.reconcile != nil && open != nil && w.reconcile.Operation == open.Operation {
		v.due = dueReconcile
		v.preview, err = r.operator().PlanReconcile(ctx, seen, w.Want, *w.reconcile)
	} else {
		v.due = dueOperation
		var more diag.Diagnostics
		w.Instance.Image, more = r.image(ctx, configured, applicationOf(seen.Contract, seen.Foreign), last)
		if diags.Append(more...); diags.HasError() {
			return v, diags
		}
		v.preview, err = r.operator().Plan(ctx, seen, w.Want)
	}
	if err != nil {
		diags.AddError(name+": what would happen cannot be determined", sentence(err.Error()))
		return v, diags
	}
	v.preview.Blockers = preview.Foremost(v.preview.Blockers)
	v.preview = v.heldBack()
	if v.preview.Operation == 0 && len(v.preview.Blockers) == 0 && open == nil {
		v.due = dueNothing
		return v, diags
	}
	diags.Append(r.admit(&v, m, name)...)
	return v, diags
}

// heldBack is the preview, and an empty one for a container whose update was rolled back when the configuration still has the
// arguments that came with the refused image: they may be meant for that one only.
func (v verdict) heldBack() preview.Preview {
	c := v.seen.Contract
	if v.preview.Operation != preview.OpModify || c == nil || !slices.Contains(c.Declined, v.want.Install().Hash()) {
		return v.preview
	}
	var held []string
	for _, change := range v.preview.Changes {
		held = append(held, change.What)
	}
	if !slices.Contains(held, "environment") && !slices.Contains(held, "entrypoint") {
		return v.preview
	}
	return preview.Preview{Warnings: []string{fmt.Sprintf("the update to %s was rolled back and is not tried again until image or "+
		"triggers change; what came with it stays as it was, since it may be meant for that image only: %s", v.want.Instance.Image.Reference, list(held))}}
}

// admit refuses an operation on a container that is not as the plan saw it, that is being worked on, or that is blocked.
func (r *instanceResource) admit(v *verdict, m memo, name string) (diags diag.Diagnostics) {
	if changed := m.instanceChanges(v.seen); len(changed) > 0 {
		diags.AddError(name+" has changed since the plan",
			strings.Join(changed, "\n")+"\n\nNothing was touched. Plan again (without -refresh=false).")
		return diags
	}
	if j := v.seen.Journal; j != nil && v.due != dueReconcile && len(v.preview.Blockers) == 0 {
		// Whatever the judgement says, an open operation is never stepped over.
		diags.AddError(name+": an operation is in progress (operation_in_flight)",
			fmt.Sprintf("%s stands at stage %d of %d, %s. Wait until it ends, then plan again.", j.Operation, j.Index, j.Of, j.Stage))
		return diags
	}
	switch {
	case len(v.preview.Blockers) == 0:
	case r.session.skipBlocked:
		v.due = dueBlocked
	default:
		diags.Append(blocked(v.preview.Blockers)...)
	}
	return diags
}

// judgeRemoval looks at the container and judges its removal, from the arguments that the state holds: a removal has no
// configuration. Nothing is due when it is gone already.
func (r *instanceResource) judgeRemoval(ctx context.Context, state *instanceModel, m memo) (v verdict, diags diag.Diagnostics) {
	w, diags := state.want(ctx)
	if diags.HasError() {
		return v, diags
	}
	last := m.instance()
	w.Spent, w.Instance.Known, w.Instance.KnownAt = m.Spent, last.Known, last.KnownAt
	name := r.called(state, recipe.Observation{})
	seen, err := r.operator().Observe(ctx, state.id())
	if err != nil {
		diags.AddError(name+": it cannot be looked at", sentence(err.Error()))
		return v, diags
	}
	v = verdict{due: dueOperation, want: w, seen: seen, from: state.id()}
	if seen.Presence == guest.Absent && seen.Journal == nil {
		v.due = dueNothing
		return v, diags
	}
	if v.preview, err = r.operator().PlanRemove(ctx, seen, w.Want); err != nil {
		diags.AddError(name+": what would be removed cannot be determined", sentence(err.Error()))
		return v, diags
	}
	v.preview.Blockers = preview.Foremost(v.preview.Blockers)
	if len(v.preview.Blockers) > 0 {
		// Its block is gone, so the errors stand on no argument of it.
		for _, b := range v.preview.Blockers {
			diags.AddError(b.Title, b.Text())
		}
		return v, diags
	}
	diags.Append(r.admit(&v, m, r.called(state, seen))...)
	return v, diags
}
