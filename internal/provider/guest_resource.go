package provider

import (
	"context"
	"fmt"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// kind is what one kind of guest adds to the generic resource: its schema, and what its configuration wants.
type kind[M any] struct {
	name     string // "container_reinstall"
	guest    guest.Kind
	schema   func() schema.Schema
	operator func(*session) operator
	// want adds the kind's own arguments to the common ones.
	want func(ctx context.Context, m *M, w *wanted) diag.Diagnostics
	// fill completes an imported model with what the guest itself says, so that a plan shows only what differs.
	fill func(m *M, seen recipe.Observation)
	// decisive are the kind's own arguments that must be known at plan.
	decisive func(m *M) map[string]attr.Value
	// moves reports whether another vmid is more than a mistake; nil: it never is.
	moves func(from, to *M) bool
}

// noun is the kind of guest for people.
func (k kind[M]) noun() string {
	if k.guest == guest.KindVM {
		return "virtual machine"
	}
	return "container"
}

// modelOf ties a kind's model to the common one.
type modelOf[M any] interface {
	*M
	model
}

// guestResource holds the semantics of every guest resource, once: only an update touches a guest, and only when what is
// wanted differs from what the guest records. Create reads, delete forgets, nothing forces a replacement.
type guestResource[M any, P modelOf[M]] struct {
	kind    kind[M]
	session *session
}

var (
	_ resource.ResourceWithConfigure   = (*guestResource[containerReinstallModel, *containerReinstallModel])(nil)
	_ resource.ResourceWithModifyPlan  = (*guestResource[containerReinstallModel, *containerReinstallModel])(nil)
	_ resource.ResourceWithImportState = (*guestResource[containerReinstallModel, *containerReinstallModel])(nil)
)

func (r *guestResource[M, P]) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + r.kind.name
}

func (r *guestResource[M, P]) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = r.kind.schema()
}

func (r *guestResource[M, P]) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	if req.ProviderData == nil {
		return // asked before the provider is configured
	}
	s, ok := req.ProviderData.(*session)
	if !ok {
		resp.Diagnostics.AddError("internal error", fmt.Sprintf("The provider handed over a %T.", req.ProviderData))
		return
	}
	r.session = s
}

func (r *guestResource[M, P]) operator() operator { return r.kind.operator(r.session) }

// ImportState takes the VMID. What the guest is, Read finds out.
func (r *guestResource[M, P]) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	importVMID(ctx, req, resp)
}

// importVMID reads the id of an import: the VMID, whatever the resource.
func importVMID(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	id, err := strconv.ParseInt(req.ID, 10, 32)
	if err != nil || id < 100 || id > 999999999 {
		resp.Diagnostics.AddError(fmt.Sprintf("cannot import %q", req.ID),
			"The id is the VMID of the guest: a number from 100 to 999999999, such as \"5001\".")
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("vmid"), id)...)
}

// Read looks at the guest with one config read. It never drops the resource: while an operation is between destroy and
// create the guest is missing, and that is no reason to forget it. It sees no configuration, so it cannot know what is due:
// the preview of an earlier plan is cleared, so that the next plan prints its own in full.
func (r *guestResource[M, P]) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m M
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	state := P(&m).common()
	r.session.blocks.Read(state.id())
	seen, err := r.operator().Observe(ctx, state.id())
	if err != nil {
		resp.Diagnostics.AddError(r.called(state, seen)+": it cannot be looked at", sentence(err.Error()))
		return
	}
	imported := state.Status.IsNull()
	if imported {
		refused := importable(r.kind.noun(), r.called(state, seen), state.id(), seen)
		if resp.Diagnostics.Append(refused...); resp.Diagnostics.HasError() {
			return
		}
		if state.Name.IsNull() {
			state.Name = text(seen.Name)
		}
		r.kind.fill(&m, seen)
	}
	for _, problem := range seen.Problems {
		resp.Diagnostics.AddWarning(r.called(state, seen)+": its notes hold a block that is not used", sentence(problem))
	}
	r.show(state, seen)
	state.Preview = types.ObjectNull(previewType)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	before, _, diags := recall(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(remember(seen, before.Spent).keep(ctx, resp.Private)...)
}

// importable refuses to import what is not there, is no guest of this kind, or cannot be seen.
func importable(noun, name string, id guest.VMID, seen recipe.Observation) (diags diag.Diagnostics) {
	switch {
	case seen.WrongType:
		diags.AddError(name+" is not a "+noun,
			fmt.Sprintf("VMID %s belongs to a guest of another kind. Correct the id of the import.", id))
	case seen.Journal != nil:
		// An operation is open: importing is how a lost state finds its way back to it.
	case seen.Presence == guest.Absent:
		diags.AddError(name+" does not exist", "Nothing in the cluster has this VMID. Correct the id of the import.")
	case seen.Presence != guest.Present:
		diags.AddError(name+": whether it exists cannot be determined",
			"A node does not answer, or the login may not see the guest. Nothing was imported; try again when it can be seen.")
	}
	return diags
}

// show writes what was seen into the computed attributes, as far as it was seen.
func (r *guestResource[M, P]) show(state *guestModel, seen recipe.Observation) {
	if seen.Ref.Node != "" {
		state.Node = types.StringValue(seen.Ref.Node)
	}
	if c := seen.Contract; c != nil {
		state.Installed = showInstalled(&c.Installed, c.At)
	}
	if state.Installed.IsUnknown() || state.Installed.IsNull() {
		state.Installed = showInstalled(installedFrom(state.Installed), 0)
	}
	state.Status = types.StringValue(string(statusOf(seen, recipe.Status(state.Status.ValueString()))))
	if state.LastOperation.IsUnknown() || state.LastOperation.IsNull() {
		state.LastOperation = types.ObjectNull(lastOperationType)
	}
}

// statusOf is a guest's status as it was seen, given the one that is recorded.
func statusOf(seen recipe.Observation, before recipe.Status) recipe.Status {
	if j := seen.Journal; j != nil {
		switch j.State {
		case guest.JournalStuck:
			return recipe.StatusNeedsReconcile
		case guest.JournalWaiting:
			return recipe.StatusAwaitingTrust
		case guest.JournalDoing, guest.JournalUndoing:
		}
		return recipe.StatusInProgress
	}
	switch before {
	case recipe.StatusReady, recipe.StatusRolledBack:
		return before
	case recipe.StatusNeedsReconcile, recipe.StatusInProgress, recipe.StatusAwaitingTrust:
		// Ended elsewhere, by another pipeline or by hand.
	}
	if seen.Contract != nil && len(seen.Contract.Declined) > 0 {
		return recipe.StatusRolledBack
	}
	return recipe.StatusReady
}

// Delete forgets.
func (r *guestResource[M, P]) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {
}

// called names the guest for a summary: by what it calls itself, else by what it should be called.
func (r *guestResource[M, P]) called(m *guestModel, seen recipe.Observation) string {
	name := seen.Name
	if name == "" {
		name = m.Name.ValueString()
	}
	return called(r.kind.guest, m.id(), name)
}
