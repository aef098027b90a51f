package provider

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// ModifyPlan shows what an apply would do. The CLIs call it at plan and again at apply, in another process.
func (r *instanceResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if r.session == nil {
		return // the provider's configuration is not known yet; its own error says so
	}
	switch {
	case req.Plan.Raw.IsNull():
		r.planRemove(ctx, req, resp)
	case req.State.Raw.IsNull():
		r.planCreate(ctx, req, resp)
	default:
		r.planUpdate(ctx, req, resp)
	}
}

// planCreate shows an install, or that a container which is this one already is taken up.
func (r *instanceResource) planCreate(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var planned, configured instanceModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &planned)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &configured)...)
	if resp.Diagnostics.HasError() {
		return
	}
	id, name := planned.id(), r.called(&planned, recipe.Observation{})
	before, _, diags := recall(ctx, req.Private)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	if before.Version != 0 || r.session.blocks.InState(id) {
		resp.Diagnostics.AddAttributeError(path.Root("vmid"), name+": it is in this state already, and is never replaced",
			"The plan would remove it and make it again: -replace, a tainted resource, or a block that got another address. To make it "+
				"again from its image change triggers, which keeps its volumes. Leave out -replace, run \"untaint\", or add a moved block.")
		return
	}
	if r.session.blocks.Plan(id) {
		resp.Diagnostics.Append(duplicate(name, id)...)
		return
	}
	v, diags := r.judgeNew(ctx, &configured)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	c := &planned.instanceComputed
	*c = instanceComputed{
		Status: types.StringValue(string(recipe.StatusReady)), CurrentNode: text(v.want.Instance.Node),
		Digest: types.StringUnknown(), PlatformDigest: types.StringUnknown(), AvailableDigest: types.StringUnknown(), UpdateAvailable: types.BoolUnknown(),
		Addresses: types.MapUnknown(addressesType), Installed: types.ObjectUnknown(installedType),
		Preview: types.ObjectNull(previewType), LastOperation: types.ObjectNull(lastOperationType),
	}
	if v.due == dueAdoption {
		app := v.seen.Contract.App
		c.Status, c.CurrentNode = types.StringValue(string(statusOf(v.seen, ""))), types.StringUnknown() // it may move before the apply
		c.Digest, c.PlatformDigest = text(app.Digest), text(app.Manifest)
		c.Installed = showInstalled(&v.seen.Contract.Installed, v.seen.Contract.At)
		resp.Diagnostics.AddWarning(r.called(&planned, v.seen)+" is recorded as it is",
			"It is there already: its record names this VMID, and hostname and repository are the configured ones. Nothing is touched. "+
				"What differs from this configuration is shown by the next plan.")
	} else {
		r.planImage(c, v)
		c.Preview, c.LastOperation = showInstancePreview(v.preview, configured.unsureAbout()), types.ObjectUnknown(lastOperationType)
		resp.Diagnostics.Append(reportOperation(name, v)...)
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &planned)...)
}

// planImage fills in the digests that the operation leads to.
func (r *instanceResource) planImage(c *instanceComputed, v verdict) {
	image := v.want.Instance.Image
	c.Digest, c.PlatformDigest = types.StringValue(image.Digest), types.StringValue(image.Manifest)
	c.AvailableDigest, c.UpdateAvailable = types.StringValue(image.Digest), types.BoolValue(false)
	if v.want.sourceUnknown {
		c.Digest, c.PlatformDigest, c.AvailableDigest = types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
		c.UpdateAvailable = types.BoolUnknown()
	}
	if v.want.installUnknown() {
		c.Installed = types.ObjectUnknown(installedType)
	}
}

// planUpdate shows what an apply makes of the container that is in state.
func (r *instanceResource) planUpdate(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var planned, configured, prior instanceModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &planned)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &configured)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &prior)...)
	if resp.Diagnostics.HasError() {
		return
	}
	name := r.called(&prior, recipe.Observation{})
	if planned.VMID.IsUnknown() {
		resp.Diagnostics.Append(refuseUnknown(configured.decisive())...)
		return
	}
	if planned.id() != prior.id() {
		resp.Diagnostics.AddAttributeError(path.Root("vmid"), fmt.Sprintf("%s: vmid cannot change to %s", name, planned.id()),
			fmt.Sprintf("This resource is container %s, and another container is another resource. Put vmid back.", prior.id()))
		return
	}
	if r.session.blocks.Plan(planned.id()) {
		resp.Diagnostics.Append(duplicate(name, planned.id())...)
		return
	}
	m, diags := remembered(ctx, name, req.Private)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	seen, err := r.session.looks.take(ctx, planned.id(), r.operator().Observe)
	if err != nil {
		resp.Diagnostics.AddError(name+": it cannot be looked at", sentence(err.Error()))
		return
	}
	v, diags := r.judge(ctx, &configured, m, seen)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(r.report(&planned, v)...)
	planned.instanceComputed = r.plannedComputed(&configured, &prior, v)
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &planned)...)
}

// plannedComputed fills in everything computed: what is known of it already, and what only the apply can tell.
func (r *instanceResource) plannedComputed(configured, prior *instanceModel, v verdict) instanceComputed {
	c := prior.instanceComputed
	unsure := configured.unsureAbout()
	switch v.due {
	case dueNothing:
		return c
	case dueBlocked:
		// Left alone, and shown in every plan until it is done.
		c.Preview = showInstancePreview(v.preview, unsure)
		return c
	case dueOperation, dueReconcile, dueGrow, dueAdoption:
	}
	c.Preview = showInstancePreview(v.preview, unsure)
	c.Status = types.StringUnknown()
	if status := v.reaches(); status != "" {
		c.Status = types.StringValue(string(status))
	}
	c.LastOperation = plannedOperation(c.LastOperation, v)
	switch op := v.preview.Operation; {
	case op == preview.OpInstall || op == preview.OpUpdate:
		c.Installed = v.plannedInstall(c.Installed)
		c.Addresses = types.MapUnknown(addressesType)
		r.planImage(&c, v)
	case op == preview.OpModify || op == preview.OpAdopt:
		if disturbsNetwork(v.preview.Changes) {
			c.Addresses = types.MapUnknown(addressesType)
		}
		if op == preview.OpAdopt {
			c.Installed = adopted(c.Installed, v)
		}
	default:
		c.Digest, c.PlatformDigest, c.UpdateAvailable = types.StringUnknown(), types.StringUnknown(), types.BoolUnknown()
		c.Installed, c.Addresses, c.CurrentNode = types.ObjectUnknown(installedType), types.MapUnknown(addressesType), types.StringUnknown()
	}
	if unsure && v.preview.Operation == preview.OpModify {
		// A value that turns out to be the present one changes nothing: then neither a preview nor an operation follows.
		c.Preview, c.Status, c.LastOperation = types.ObjectUnknown(previewType), types.StringUnknown(), types.ObjectUnknown(lastOperationType)
		c.Addresses = types.MapUnknown(addressesType)
	}
	return c
}

// adopted is what installed will be: of a container that was restored elsewhere the same, but for where it is and when that was
// recorded.
func adopted(before types.Object, v verdict) types.Object {
	if v.seen.Foreign == nil || before.IsNull() || before.IsUnknown() {
		return types.ObjectUnknown(installedType)
	}
	parts := before.Attributes()
	parts["rootfs_storage"], parts["when"] = types.StringUnknown(), types.StringUnknown()
	return types.ObjectValueMust(installedType, parts)
}

// disturbsNetwork reports whether the addresses may be others afterwards.
func disturbsNetwork(changes []preview.Change) bool {
	return slices.ContainsFunc(changes, func(c preview.Change) bool {
		name, _, indexed := guest.SplitKey(c.What)
		return c.Takes != preview.TakesNothing || c.What == "started" || (indexed && name == "net")
	})
}

// planRemove shows what a removal takes away, and refuses what must not be removed.
func (r *instanceResource) planRemove(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var state instanceModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	m, diags := remembered(ctx, r.called(&state, recipe.Observation{}), req.Private)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	v, diags := r.judgeRemoval(ctx, &state, m)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	if v.due == dueNothing {
		resp.Diagnostics.AddWarning(r.called(&state, v.seen)+" does not exist any more", "It is only taken out of the state.")
		return
	}
	resp.Diagnostics.Append(reportOperation(r.called(&state, v.seen), v)...)
}
