package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// planCreate says whether a create may record the guest. It never leads to an operation, so neither a lost state nor a
// replacement nor an unknown value can reinstall anything.
func (r *guestResource[M, P]) planCreate(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var planned, configured M
	resp.Diagnostics.Append(req.Plan.Get(ctx, &planned)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &configured)...)
	if resp.Diagnostics.HasError() {
		return
	}
	w, diags := r.wantFrom(ctx, &configured)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	plan := P(&planned).common()
	name := r.called(plan, recipe.Observation{})
	// A replacement plans twice, and the second time carries the private data of the first; a tainted resource carries
	// none, but this run has read it.
	before, _, diags := recall(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	if before.Version != 0 || r.session.blocks.InState(plan.id()) {
		resp.Diagnostics.AddAttributeError(path.Root("vmid"), name+": it is in this state already, and is never replaced",
			"The plan would forget it and take it up again: -replace, a tainted resource, or a block that got another address. A guest is "+
				"reinstalled by an update only: change triggers. Leave out -replace, run \"untaint\", or add a moved block.")
		return
	}
	if r.session.blocks.Plan(plan.id()) {
		resp.Diagnostics.Append(duplicate(name, plan.id())...)
		return
	}
	seen, err := r.operator().Observe(ctx, plan.id())
	if err != nil {
		resp.Diagnostics.AddError(name+": it cannot be looked at", sentence(err.Error()))
		return
	}
	install, at, diags := r.adoptable(plan, w, seen)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	plan.Status = types.StringValue(string(statusOf(seen, "")))
	plan.Node = types.StringUnknown() // it may move before the apply
	plan.Installed = showInstalled(install, at)
	plan.Preview = types.ObjectNull(previewType)
	plan.LastOperation = types.ObjectNull(lastOperationType)
	resp.Diagnostics.AddWarning(r.called(plan, seen)+" is recorded as it is", "Nothing is touched.")
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &planned)...)
}

// adoptable says what a guest counts as installed from when it is recorded by a create; the errors say why it cannot be.
func (r *guestResource[M, P]) adoptable(plan *guestModel, w wanted, seen recipe.Observation) (install *guest.Install, at int64, diags diag.Diagnostics) {
	name := r.called(plan, seen)
	at0 := path.Root("vmid")
	switch {
	case seen.WrongType:
		diags.AddAttributeError(at0, name+" is not a "+r.kind.noun()+" (guest_wrong_type)",
			fmt.Sprintf("VMID %s belongs to a guest of another kind. Correct vmid.", plan.id()))
	case seen.Presence == guest.Absent && seen.Journal == nil:
		diags.AddAttributeError(at0, name+" does not exist (guest_missing)",
			"Nothing in the cluster has this VMID, and this resource never makes a guest. Correct vmid.")
	case seen.Presence == guest.PresenceUnknown:
		diags.AddAttributeError(at0, name+": whether it exists cannot be determined",
			"A node does not answer, or the login may not see the guest. Nothing was recorded; plan again when it can be seen.")
	case seen.Name != "" && seen.Name != w.Name:
		diags.AddAttributeError(path.Root("name"), fmt.Sprintf("%s is not %s (name_mismatch)", called(r.kind.guest, plan.id(), ""), w.Name),
			fmt.Sprintf("%s calls itself %s. Correct vmid or name.", called(r.kind.guest, plan.id(), ""), seen.Name))
	case seen.Journal != nil:
		diags.AddAttributeError(at0, name+": an operation on it is open and it is not in this state (needs_reconcile)",
			fmt.Sprintf("%s stands at stage %d of %d, %s. Import the guest; the plan then shows how to go on:\n\n%s",
				seen.Journal.Operation, seen.Journal.Index, seen.Journal.Of, seen.Journal.Stage, importBlock(r.kind.name, plan.id())))
	case seen.Contract != nil && !w.installUnknown() && seen.Contract.Installed.Same(w.recorded()):
		return &seen.Contract.Installed, seen.Contract.At, diags
	case w.Adopt && seen.Contract != nil:
		return &seen.Contract.Installed, seen.Contract.At, diags
	case w.Adopt && w.installUnknown():
		diags.AddAttributeError(path.Root("adopt"), name+": what it shall count as installed from is not known at plan",
			"With adopt = true the guest is recorded as installed from this configuration. Use a template and triggers that are known.")
	case w.Adopt:
		recorded := w.recorded()
		return &recorded, 0, diags
	default:
		diags.AddAttributeError(at0, name+" exists and is not in this state",
			"This resource never touches a guest when it is created. Paste this, and the plan shows the reinstall:\n\n"+
				importBlock(r.kind.name, plan.id())+"\n\nTo record it as it is: adopt = true.")
	}
	return nil, 0, diags
}

// importBlock is the block to paste. A provider is not told the name of its block.
func importBlock(kind string, id guest.VMID) string {
	return fmt.Sprintf("  import {\n    to = pvrx_%s.NAME # the address of this block\n    id = \"%s\"\n  }", kind, id)
}

// Create records a guest that the plan found to be recordable. It looks again, and touches nothing.
func (r *guestResource[M, P]) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var planned, configured M
	resp.Diagnostics.Append(req.Plan.Get(ctx, &planned)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &configured)...)
	if resp.Diagnostics.HasError() {
		return
	}
	w, diags := r.wantFrom(ctx, &configured)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	plan := P(&planned).common()
	seen, err := r.operator().Observe(ctx, plan.id())
	if err != nil {
		resp.Diagnostics.AddError(r.called(plan, recipe.Observation{})+": it cannot be looked at", sentence(err.Error()))
		return
	}
	_, _, diags = r.adoptable(plan, w, seen)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	plan.Node = text(seen.Ref.Node)
	resp.Diagnostics.Append(resp.State.Set(ctx, &planned)...)
	resp.Diagnostics.Append(remember(seen, nil).keep(ctx, resp.Private)...)
}
