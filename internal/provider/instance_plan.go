package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework/diag"
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

// report is the verdict in diagnostics.
func (r *instanceResource) report(m *instanceModel, v verdict) (diags diag.Diagnostics) {
	name := r.called(m, v.seen)
	switch v.due {
	case dueNothing:
		diags.Append(asWarnings(name, v.preview.Warnings)...)
	case dueBlocked:
		diags.Append(leftAloneWarning(name, v)...)
	case dueOperation, dueReconcile, dueGrow, dueAdoption:
		diags.Append(reportOperation(name, v)...)
	}
	return diags
}

// reportOperation is what would be done, as a warning whose summary starts with the container.
func reportOperation(name string, v verdict) (diags diag.Diagnostics) {
	var paragraphs []string
	if changes := changeTable(v.preview.Changes); changes != "" {
		paragraphs = append(paragraphs, changes)
	}
	if table := v.detail(); table != "" && (v.preview.Operation != preview.OpModify || v.preview.ErasedBytes > 0) {
		paragraphs = append(paragraphs, table)
	}
	diags.AddWarning(v.preview.Summary, strings.Join(paragraphs, "\n\n"))
	diags.Append(asWarnings(name, v.preview.Warnings)...)
	return diags
}

// changeTable is a line for each change. It begins with a space, so that the CLIs leave its columns alone.
func changeTable(changes []preview.Change) string {
	width := 0
	for _, c := range changes {
		width = max(width, utf8.RuneCountInString(guest.Printable(c.What)))
	}
	rows := make([]string, 0, len(changes))
	for _, c := range changes {
		rows = append(rows, fmt.Sprintf("  %-*s  %s", width, guest.Printable(c.What), changeText(c)))
	}
	return strings.Join(rows, "\n")
}

// asWarnings are warnings whose summaries start with the guest and are no longer than the first thing that they say.
func asWarnings(name string, warnings []string) (diags diag.Diagnostics) {
	for _, warning := range warnings {
		said := strings.TrimPrefix(warning, name+": ")
		if said == warning {
			said = strings.TrimPrefix(warning, name+" ")
		}
		end := len(firstLine(said))
		for _, mark := range []string{": ", "; ", ". "} {
			if at := strings.Index(said, mark); at >= 0 {
				end = min(end, at)
			}
		}
		diags.AddWarning(name+": "+said[:end], sentence(warning))
	}
	return diags
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

// showInstancePreview is a preview without what application containers do not have; unsure says that what changes, and so the
// summary, is known at apply only.
func showInstancePreview(p preview.Preview, unsure bool) types.Object {
	p.RootPassword = ""
	shown := showPreview(p, unsure)
	if !unsure {
		return shown
	}
	parts := shown.Attributes()
	parts["changes"] = types.MapUnknown(types.StringType)
	return types.ObjectValueMust(previewType, parts)
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
