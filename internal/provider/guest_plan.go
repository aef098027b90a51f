package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// ModifyPlan shows what an apply would do. The CLIs call it at plan and again at apply, in another process, with the same
// prior state: both calls must come to the same result or refuse.
func (r *guestResource[M, P]) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if r.session == nil {
		return // the provider's configuration is not known yet; its own error says so
	}
	switch {
	case req.Plan.Raw.IsNull():
		r.planForget(ctx, req, resp)
	case req.State.Raw.IsNull():
		r.planCreate(ctx, req, resp)
	default:
		r.planUpdate(ctx, req, resp)
	}
}

// planForget says that deleting the resource is only forgetting it, because the CLI says "will be destroyed".
func (r *guestResource[M, P]) planForget(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var m M
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	state := P(&m).common()
	detail := "The CLI says \"will be destroyed\" since it knows no other word. The guest stays as it is; this state forgets it."
	if status := state.Status.ValueString(); status == string(recipe.StatusNeedsReconcile) || status == string(recipe.StatusInProgress) {
		detail += "\n\nAn operation on it is open. Its record stays in Proxmox, and an import finds it again."
	}
	resp.Diagnostics.AddWarning(r.called(state, recipe.Observation{})+" is only forgotten; nothing is touched", detail)
}

// planUpdate is the only plan that can lead to an operation.
func (r *guestResource[M, P]) planUpdate(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var planned, configured, prior M
	resp.Diagnostics.Append(req.Plan.Get(ctx, &planned)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &configured)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &prior)...)
	if resp.Diagnostics.HasError() {
		return
	}
	plan, state := P(&planned).common(), P(&prior).common()
	w, diags := r.wantFrom(ctx, &configured)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	if plan.id() != state.id() && (r.kind.moves == nil || !r.kind.moves(&prior, &configured)) {
		resp.Diagnostics.AddAttributeError(path.Root("vmid"),
			fmt.Sprintf("%s: vmid cannot change to %s", r.called(state, recipe.Observation{}), plan.id()),
			fmt.Sprintf("This resource is guest %s, and another guest is another resource. Put vmid back, or remove this block (the "+
				"guest is only forgotten) and import guest %s under a block of its own.", state.id(), plan.id()))
		return
	}
	if r.session.blocks.Plan(plan.id()) {
		resp.Diagnostics.Append(duplicate(r.called(plan, recipe.Observation{}), plan.id())...)
		return
	}
	v, diags := r.judge(ctx, w, state, req.Private)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(r.report(plan, v)...)
	if resp.Diagnostics.HasError() {
		return
	}
	r.planComputed(plan, state, v)
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &planned)...)
}

// wantFrom turns a configuration into values, and refuses what is decisive and unknown.
func (r *guestResource[M, P]) wantFrom(ctx context.Context, configured *M) (wanted, diag.Diagnostics) {
	common := P(configured).common()
	decisive := common.decisive()
	for name, value := range r.kind.decisive(configured) {
		decisive[name] = value
	}
	if diags := refuseUnknown(decisive); diags.HasError() {
		return wanted{}, diags
	}
	w, diags := common.wantCommon(ctx)
	diags.Append(r.kind.want(ctx, configured, &w)...)
	return w, diags
}

// planComputed fills in everything computed: what is known of it already, and what only the apply can tell.
func (r *guestResource[M, P]) planComputed(plan, state *guestModel, v verdict) {
	plan.Node, plan.Status, plan.Installed = state.Node, state.Status, state.Installed
	plan.LastOperation, plan.Preview = state.LastOperation, state.Preview
	switch v.due {
	case dueNothing:
	case dueAdoption:
		install := v.want.recorded()
		plan.Installed = showInstalled(&install, 0)
		if v.want.installUnknown() {
			plan.Installed = types.ObjectUnknown(installedType)
		}
	case dueBlocked:
		// Left alone, and shown in every plan until it is done.
		plan.Preview = showPreview(v.preview, v.want.installUnknown())
	case dueOperation, dueGrow, dueReconcile:
		plan.Preview = showPreview(v.preview, v.want.installUnknown())
		plan.Status = types.StringUnknown()
		if status := v.reaches(); status != "" {
			plan.Status = types.StringValue(string(status))
		}
		plan.Installed = v.plannedInstall(state.Installed)
		plan.LastOperation = plannedOperation(state.LastOperation, v)
	}
}

// report is the verdict in diagnostics: blockers as errors on the argument that would fix them, what would be done as a
// warning whose summary starts with the guest.
func (r *guestResource[M, P]) report(plan *guestModel, v verdict) (diags diag.Diagnostics) {
	name := r.called(plan, v.seen)
	switch v.due {
	case dueNothing:
		if v.waiting != nil {
			diags.AddWarning(v.waiting.verdictDue(name))
		}
		if v.declined {
			diags.AddWarning(name+": this install was rolled back and is not done again",
				"The guest records that it refused this install. It becomes due again when template or triggers change.")
		}
		if v.seen.Presence == guest.Absent {
			diags.AddWarning(name+" does not exist",
				"Nothing is due, so nothing is refused; but nothing in the cluster has this VMID. Remove the block if it is gone for good.")
		}
	case dueAdoption:
		diags.AddWarning(name+" is recorded as it is", "Nothing records what it was made from, and adopt is true: it counts as installed "+
			"from this configuration. Nothing is touched.")
	case dueBlocked:
		diags.Append(leftAloneWarning(name, v)...)
	case dueOperation, dueGrow, dueReconcile:
		diags.AddWarning(v.preview.Summary, v.detail())
		for _, warning := range v.preview.Warnings {
			diags.AddWarning(name+": "+firstLine(warning), warning)
		}
	}
	return diags
}

// leftAloneWarning says why a guest is skipped.
func leftAloneWarning(name string, v verdict) (diags diag.Diagnostics) {
	var codes, found []string
	for _, b := range v.preview.Blockers {
		codes = append(codes, b.Code.String())
		found = append(found, b.Title+"\n"+b.Text())
	}
	diags.AddWarning(fmt.Sprintf("%s: left alone (%s)", name, strings.Join(codes, ", ")),
		strings.Join(found, "\n\n")+"\n\nIt stays due. Other guests go on, since blocked_guests is \"skip\".")
	return diags
}

// blocked turns blockers into errors, each on the argument that would fix it.
func blocked(blockers []preview.Blocker) (diags diag.Diagnostics) {
	for _, b := range blockers {
		if b.Attribute == "" {
			diags.AddError(b.Title, b.Text())
			continue
		}
		at := path.Empty()
		for i, step := range strings.Split(b.Attribute, ".") {
			if i == 0 {
				at = path.Root(step)
				continue
			}
			at = at.AtName(step)
		}
		diags.AddAttributeError(at, b.Title, b.Text())
	}
	return diags
}

// duplicate refuses a second block for one guest.
func duplicate(name string, id guest.VMID) (diags diag.Diagnostics) {
	diags.AddAttributeError(path.Root("vmid"), fmt.Sprintf("%s: two blocks name it (%s)", name, preview.CodeDuplicate),
		fmt.Sprintf("Another block of this configuration names VMID %s too, and both would work on the guest. Remove one of them; "+
			"if it was renamed, a moved block keeps them one.", id))
	return diags
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
