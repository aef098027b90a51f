package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// Create installs the container, or takes up the one that is there as it is. What a failed install leaves is nothing, so a
// failure leaves no resource either: it would be tainted. One that stopped half-way has its record in Proxmox, and an import
// finds it.
func (r *instanceResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var planned, configured instanceModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &planned)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &configured)...)
	if resp.Diagnostics.HasError() {
		return
	}
	name := r.called(&planned, recipe.Observation{})
	leave, diags := r.session.turn(ctx, name)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	defer leave()
	v, diags := r.judgeNew(ctx, &configured)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	if installs := planned.Preview.IsUnknown() || !planned.Preview.IsNull(); installs != (v.due == dueOperation) {
		resp.Diagnostics.AddError(name+" has changed since the plan", "Whether it exists is another answer now. Nothing was touched. Plan again.")
		return
	}
	now := v.seen
	if v.due == dueOperation {
		result, err := r.operate(ctx, v, r.operator().Apply, v.want.request(preview.Acknowledgements{}, nil))
		resp.Diagnostics.Append(asWarnings(name, result.Warnings)...)
		if err != nil {
			resp.Diagnostics.Append(failedInstall(name, v, result, err)...)
			return
		}
		now = r.lookAfter(ctx, v, result)
		planned.LastOperation = finished(v, result)
	}
	r.settle(ctx, &planned, now)
	available, _ := r.available(ctx, planned.Image.ValueString())
	resp.Diagnostics.Append(resp.State.Set(ctx, &planned)...)
	resp.Diagnostics.Append(rememberInstance(now, memo{}, available).keep(ctx, resp.Private)...)
}

// failedInstall says what happened, and how an install that stopped half-way is found again.
func failedInstall(name string, v verdict, result recipe.Result, err error) diag.Diagnostics {
	diags := failed(guest.KindContainer, name, v, result, err)
	if result.Status == recipe.StatusNeedsReconcile {
		diags.AddWarning(name+" is not in this state", "To go on with its install, import it; the plan then shows how:\n\n"+
			importBlock("oci_instance", v.want.VMID))
	}
	return diags
}

// Update does what the plan showed, if that is still what is due; else it only records the arguments.
func (r *instanceResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var planned, configured, prior instanceModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &planned)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &configured)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &prior)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if planned.Preview.IsNull() || leftAlone(planned.Preview) {
		resp.Diagnostics.Append(resp.State.Set(ctx, &planned)...)
		return
	}
	name := r.called(&planned, recipe.Observation{})
	m, diags := remembered(ctx, name, req.Private)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	leave, diags := r.session.turn(ctx, name)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	defer leave()
	seen, err := r.operator().Observe(ctx, planned.id())
	if err != nil {
		resp.Diagnostics.AddError(name+": it cannot be looked at", sentence(err.Error()))
		return
	}
	v, diags := r.judge(ctx, &configured, m, seen)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	switch v.due {
	case dueBlocked: // since the plan
		resp.Diagnostics.Append(blocked(v.preview.Blockers)...)
		return
	case dueNothing:
		planned.Preview, planned.LastOperation = types.ObjectNull(previewType), prior.LastOperation
		r.settle(ctx, &planned, seen)
		resp.Diagnostics.Append(resp.State.Set(ctx, &planned)...)
		return
	case dueOperation, dueReconcile, dueGrow, dueAdoption:
	}
	r.update(ctx, &planned, &prior, m, v, resp)
}

// update runs the operation and records what it reached.
func (r *instanceResource) update(ctx context.Context, planned, prior *instanceModel, m memo, v verdict, resp *resource.UpdateResponse) {
	name := r.called(planned, v.seen)
	request := v.want.request(m.Acknowledged, installedFrom(prior.Installed))
	if v.due == dueReconcile {
		request.Reconcile = v.want.reconcile
	}
	result, err := r.operate(ctx, v, r.operator().Apply, request)
	resp.Diagnostics.Append(asWarnings(name, result.Warnings)...)
	if err == nil && !v.reached(result.Status) {
		err = fmt.Errorf("the operation ended as %s, which no plan showed", result.Status)
	}
	refused := v.due == dueOperation && result.Status == recipe.StatusRolledBack
	after := m
	switch {
	case err != nil && !refused:
		resp.Diagnostics.Append(failed(guest.KindContainer, name, v, result, err)...)
		prior.Preview = types.ObjectNull(previewType)
		if result.Status != "" {
			prior.Status = types.StringValue(string(result.Status))
		}
		if result.Operation != "" {
			prior.LastOperation = showLastOperation(v.preview.Operation, v.preview, result)
		}
		resp.Diagnostics.Append(resp.State.Set(ctx, prior)...)
		resp.Diagnostics.Append(afterFailure(m, v, result).keep(ctx, resp.Private)...)
		return
	case err != nil:
		// The update was taken back. Its arguments are kept, so that it is not tried again: the container records that it
		// refused this image.
		resp.Diagnostics.Append(failed(guest.KindContainer, name, v, result, err)...)
		image := v.want.Instance.Image
		after = after.declining(seenImage{Reference: image.Reference, Digest: image.Digest, Manifest: image.Manifest})
		planned.Digest, planned.PlatformDigest = types.StringUnknown(), types.StringUnknown()
		planned.Installed, planned.Addresses = types.ObjectUnknown(installedType), types.MapUnknown(addressesType)
	}
	if j := v.seen.Journal; v.due == dueReconcile && result.Status == recipe.StatusRolledBack && j != nil && j.App != nil {
		after = after.declining(seenImage{Reference: j.App.Next.Image, Digest: j.App.Next.Digest, Manifest: j.App.Next.Manifest})
	}
	now := r.lookAfter(ctx, v, result)
	planned.Status = types.StringValue(string(result.Status))
	planned.LastOperation = finished(v, result)
	if planned.Preview.IsUnknown() || holdsUnknown(planned.Preview) {
		planned.Preview = showInstancePreview(v.preview, false)
	}
	r.settle(ctx, planned, now)
	if refused {
		planned.Status = types.StringValue(string(recipe.StatusRolledBack))
		planned.showAvailable(planned.AvailableDigest.ValueString())
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, planned)...)
	kept := rememberInstance(now, after, m.instance().Available).spend(consumed(v))
	resp.Diagnostics.Append(kept.keep(ctx, resp.Private)...)
}

// finished is an operation that came to its end, as state keeps it.
func finished(v verdict, result recipe.Result) types.Object {
	result.Stage, result.Parking, result.Exists = "", 0, new(true)
	if v.want.Backup == nil && v.due != dueReconcile {
		result.Backup = ""
	}
	return showLastOperation(v.preview.Operation, v.preview, result)
}

// settle fills in what the plan left open, from what is there now.
func (r *instanceResource) settle(ctx context.Context, planned *instanceModel, now recipe.Observation) {
	c := &planned.instanceComputed
	seen := r.show(ctx, *c, now)
	for _, s := range []struct{ planned, seen *types.String }{
		{&c.Status, &seen.Status}, {&c.CurrentNode, &seen.CurrentNode}, {&c.Digest, &seen.Digest}, {&c.PlatformDigest, &seen.PlatformDigest},
	} {
		if s.planned.IsUnknown() {
			*s.planned = *s.seen
		}
	}
	if c.Addresses.IsUnknown() {
		c.Addresses = seen.Addresses
	}
	if holdsUnknown(c.Installed) {
		c.Installed = seen.Installed
	}
	if c.AvailableDigest.IsUnknown() || c.UpdateAvailable.IsUnknown() {
		digest := c.AvailableDigest.ValueString()
		if available, err := r.available(ctx, planned.Image.ValueString()); c.AvailableDigest.IsUnknown() && err == nil {
			digest = available.Digest
		}
		c.showAvailable(digest)
	}
	*c = completed(*c)
}

// Delete removes the container with what belongs to it. It judges again: a plan is not asked before every removal.
func (r *instanceResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state instanceModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	name := r.called(&state, recipe.Observation{})
	m, diags := remembered(ctx, name, req.Private)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	leave, diags := r.session.turn(ctx, name)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	defer leave()
	v, diags := r.judgeRemoval(ctx, &state, m)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() || v.due == dueNothing {
		return
	}
	result, err := r.operate(ctx, v, r.operator().Remove, v.want.request(m.Acknowledged, installedFrom(state.Installed)))
	resp.Diagnostics.Append(asWarnings(name, result.Warnings)...)
	if err != nil {
		resp.Diagnostics.Append(failed(guest.KindContainer, name, v, result, err)...)
	}
}

// operate runs an operation within its time, which starts now.
func (r *instanceResource) operate(ctx context.Context, v verdict, run func(context.Context, recipe.Request) (recipe.Result, error), req recipe.Request) (recipe.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, v.want.Timeout)
	defer cancel()
	r.session.operations.Add(1)
	defer r.session.operations.Add(-1)
	result, err := run(r.session.masked(ctx, v.want.secrets...), req)
	if result.Status == recipe.StatusNeedsReconcile {
		r.session.gate.StoppedHalfWay(v.want.VMID, result.Operation)
	}
	return result, err
}

// lookAfter looks at the container once more, for the record as written. When it cannot, what the operation reported stands in.
func (r *instanceResource) lookAfter(ctx context.Context, v verdict, result recipe.Result) recipe.Observation {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer cancel()
	seen, err := unshared(r.operator()).Observe(ctx, v.want.VMID)
	if err != nil {
		seen = v.seen
		seen.Acknowledged, seen.Journal = result.Acknowledged, nil
	}
	return seen
}

// unshared is an operator that reads every list anew: those that a run shares are older than what it made.
func unshared(op instanceOperator) instanceOperator {
	i, ok := op.(*recipe.Instance)
	if !ok {
		return op
	}
	fresh := *i
	fresh.Shared = nil
	return &fresh
}
