package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
	"github.com/pvrx/terraform-provider-pvrx/internal/run"
)

// lookTime bounds the look at a guest after its operation, whose own time may be over.
const lookTime = 30 * time.Second

// Update does what the plan showed, if that is still what is due; else it only records the arguments.
func (r *guestResource[M, P]) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var planned, configured, prior M
	resp.Diagnostics.Append(req.Plan.Get(ctx, &planned)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &configured)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &prior)...)
	if resp.Diagnostics.HasError() {
		return
	}
	w, diags := r.wantFrom(ctx, &configured)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	plan, state := P(&planned).common(), P(&prior).common()
	if leftAlone(plan.Preview) {
		resp.Diagnostics.Append(resp.State.Set(ctx, &planned)...)
		return
	}
	seen, _, diags := recall(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	v, leave, diags := r.enter(ctx, w, state, req.Private)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	defer leave()
	switch v.due {
	case dueNothing, dueAdoption:
		resp.Diagnostics.Append(resp.State.Set(ctx, &planned)...)
		return
	case dueBlocked: // since the plan
		resp.Diagnostics.Append(blocked(v.preview.Blockers)...)
		return
	case dueOperation, dueGrow, dueReconcile:
	}
	result, err := r.operate(ctx, v, seen, installedFrom(state.Installed))
	name := r.called(plan, v.seen)
	for _, warning := range result.Warnings {
		resp.Diagnostics.AddWarning(name+": "+firstLine(warning), warning)
	}
	if err == nil && !v.reached(result.Status) {
		err = fmt.Errorf("the operation ended as %s, which no plan showed", result.Status)
	}
	if err != nil {
		resp.Diagnostics.Append(failed(r.kind.guest, name, v, result, err)...)
		r.recordFailure(state, v, result)
		resp.Diagnostics.Append(resp.State.Set(ctx, &prior)...)
		resp.Diagnostics.Append(afterFailure(seen, v, result).keep(ctx, resp.Private)...)
		return
	}
	now := r.lookAfter(ctx, w.VMID, v, result)
	r.recordSuccess(plan, v, result, now)
	resp.Diagnostics.Append(resp.State.Set(ctx, &planned)...)
	after := remember(now, seen.Spent).spend(consumed(v))
	resp.Diagnostics.Append(after.keep(ctx, resp.Private)...)
}

// leftAlone reports whether the plan showed blockers: then nothing is done, even if they are gone by now.
func leftAlone(shown types.Object) bool {
	if shown.IsNull() || shown.IsUnknown() {
		return false
	}
	return !shown.Attributes()["blockers"].IsNull()
}

// enter waits for the guest's turn and judges again what is due, so that the judgement is as fresh as the operation's
// start. Nothing due needs no turn.
func (r *guestResource[M, P]) enter(ctx context.Context, w wanted, state *guestModel, from private) (v verdict, leave func(), diags diag.Diagnostics) {
	m, found, diags := recall(ctx, from)
	if diags.HasError() {
		return v, nil, diags
	}
	if found && !r.mayOperate(w, m, state) {
		v, diags = r.judge(ctx, w, state, from)
		return v, func() {}, diags
	}
	leave, diags = r.session.turn(ctx, called(r.kind.guest, w.VMID, w.Name))
	if diags.HasError() {
		return v, nil, diags
	}
	v, diags = r.judge(ctx, w, state, from)
	if diags.HasError() {
		leave()
		return v, nil, diags
	}
	return v, leave, diags
}

// turn waits until an operation may start.
func (s *session) turn(ctx context.Context, name string) (leave func(), diags diag.Diagnostics) {
	leave, err := s.gate.Enter(ctx)
	var halt *run.Halt
	switch {
	case errors.As(err, &halt):
		diags.AddError(name+": not started, because another operation stopped half-way",
			fmt.Sprintf("%s on guest %s needs reconciling, and stop_after_failure is true: no further operation starts in this run. "+
				"Nothing was touched here; it stays due.", halt.Operation, halt.Guest))
	case err != nil:
		diags.AddError(name+": not started", "The run was cancelled while this operation waited for its turn. Nothing was touched; it stays due.")
	}
	return leave, diags
}

// mayOperate reports whether an operation can come of the judgement, so that a turn is needed.
func (r *guestResource[M, P]) mayOperate(w wanted, m memo, state *guestModel) bool {
	pending, installed := recipe.Pending(m.observation(), w.recorded(), installedFrom(state.Installed))
	larger := w.Rootfs.Size.CeilMiB() > m.RootfsSize && m.RootfsSize > 0
	if m.Open != nil && m.Open.Waiting && w.reconcile == nil && !pending && w.VMID == state.id() {
		return false
	}
	return m.Open != nil || w.VMID != state.id() || ((pending || larger) && !(w.Adopt && installed == nil))
}

// operate runs the operation within its time, which starts now.
func (r *guestResource[M, P]) operate(ctx context.Context, v verdict, planned memo, installed *guest.Install) (recipe.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, v.want.Timeout)
	defer cancel()
	req := v.want.request(planned.Acknowledged, installed)
	if v.due == dueReconcile {
		req.Reconcile = v.want.reconcile
	}
	r.session.operations.Add(1)
	defer r.session.operations.Add(-1)
	result, err := r.operator().Apply(r.session.masked(ctx, v.want.password), req)
	if result.Status == recipe.StatusNeedsReconcile {
		r.session.gate.StoppedHalfWay(v.want.VMID, result.Operation)
	}
	return result, err
}

// failed says where the guest is and what to do next. The recipe's error names what happened.
func failed(kind guest.Kind, name string, v verdict, result recipe.Result, err error) (diags diag.Diagnostics) {
	var told *recipe.Failure
	switch {
	case errors.As(err, &told):
		diags.AddError(told.Summary, sentence(told.Detail))
		return diags
	case result.Status != recipe.StatusNeedsReconcile:
		diags.AddError(fmt.Sprintf("%s: %s failed", name, v.preview.Operation), sentence(err.Error()))
		return diags
	}
	stands := fmt.Sprintf("%s stopped at stage %d of %d, %s: %s", result.Operation, result.Index, result.Of, result.Stage, sentence(err.Error()))
	where := "Whether " + called(kind, v.want.VMID, "") + " exists could not be determined; do not take it as free."
	if result.Exists != nil && *result.Exists {
		where = called(kind, v.want.VMID, "") + " exists."
	} else if result.Exists != nil {
		where = called(kind, v.want.VMID, "") + " does not exist now."
	}
	if result.Parking != 0 {
		where += fmt.Sprintf(" What was set aside waits on %s %s; do not delete or start it.", kind, result.Parking)
	}
	diags.AddError(name+": an operation stopped half-way (needs_reconcile)", stands+"\n"+where+
		"\nNothing else will be done to it until you say so:\n\n"+reconcileLine(result.Operation, "resume")+"\n\nor \"rollback\" or \"close\".")
	return diags
}

// reconcileLine is the argument to paste.
func reconcileLine(operation, action string) string {
	return fmt.Sprintf("  reconcile = { operation = %q, action = %q }", operation, action)
}

// recordFailure keeps the old arguments, so that the next plan still shows what is wanted, and says how far it came.
func (r *guestResource[M, P]) recordFailure(state *guestModel, v verdict, result recipe.Result) {
	state.Preview = types.ObjectNull(previewType)
	if result.Status != "" {
		state.Status = types.StringValue(string(result.Status))
	}
	if result.Operation != "" {
		state.LastOperation = showLastOperation(v.preview.Operation, v.preview, result)
	}
	if result.Installed != nil {
		state.Installed = showInstalled(result.Installed, 0)
	}
}

// afterFailure is the memo after a failure: the next refresh makes a better one.
func afterFailure(before memo, v verdict, result recipe.Result) memo {
	m := before
	if !result.Acknowledged.Zero() {
		m.Acknowledged = result.Acknowledged
	}
	if result.Status == recipe.StatusNeedsReconcile {
		m.Open = &openOperation{ID: result.Operation, Stage: result.Stage, Exists: result.Exists}
		// Past the point of no return what was to be erased may be: the consent counts as used.
		m = m.spend(consumed(v))
	}
	return m
}

// consumed are the consents that an operation uses: what it erases because the configuration names it.
func consumed(v verdict) map[string]string {
	used := map[string]string{}
	if v.want.RehearseOnly || v.due == dueGrow {
		return used
	}
	for key, volume := range v.preview.Erased() {
		if _, named := v.want.Erase[key]; named {
			used[key] = volume
		}
	}
	return used
}

// recordSuccess completes what the plan left open.
func (r *guestResource[M, P]) recordSuccess(plan *guestModel, v verdict, result recipe.Result, now recipe.Observation) {
	if plan.Installed.IsUnknown() || holdsUnknown(plan.Installed) {
		install, at := result.Installed, int64(0)
		if now.Contract != nil {
			install, at = &now.Contract.Installed, now.Contract.At
		}
		plan.Installed = showInstalled(install, at)
	}
	if v.want.RehearseOnly && plan.Installed.IsUnknown() {
		plan.Installed = types.ObjectNull(installedType)
	}
	shown := v.preview
	if plan.Preview.IsUnknown() || holdsUnknown(plan.Preview) {
		plan.Preview = showPreview(shown, false)
	}
	done := result
	done.Stage, done.Parking, done.Exists = "", 0, new(true)
	if v.want.Backup == nil && v.due != dueReconcile {
		done.Backup = ""
	}
	plan.Status = types.StringValue(string(result.Status))
	plan.LastOperation = showLastOperation(shown.Operation, shown, done)
}

// lookAfter looks at the guest once more, for fresh acknowledgements and the contract as written. When it cannot, what the
// operation itself reported stands in.
func (r *guestResource[M, P]) lookAfter(ctx context.Context, id guest.VMID, v verdict, result recipe.Result) recipe.Observation {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer cancel()
	seen, err := r.operator().Observe(ctx, id)
	if err != nil {
		seen = v.seen
		seen.Acknowledged = preview.Acknowledgements{}
		seen.Journal = nil
		if !result.Acknowledged.Zero() {
			seen.Acknowledged = result.Acknowledged
		}
	}
	return seen
}
