package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// due says what an update would do. The zero value is invalid.
type due uint8

const (
	// dueNothing: the guest is not touched; arguments may be recorded.
	dueNothing due = iota + 1
	// dueAdoption: nothing is recorded of the guest, and it shall count as installed from this configuration.
	dueAdoption
	// dueOperation: what is wanted differs from what is there.
	dueOperation
	// dueGrow: only the root file system is to be larger.
	dueGrow
	// dueReconcile: an open operation is resumed, rolled back or closed.
	dueReconcile
	// dueBlocked: an operation is due and must not go on, and the guest is left alone.
	dueBlocked
)

// verdict is what a plan found out about one guest. An apply comes to the same one, from what is there then.
type verdict struct {
	due      due
	want     wanted
	seen     recipe.Observation // the memo's when nothing is due, else a live look
	preview  preview.Preview
	waiting  *openOperation // what is done and waits to be trusted, nil for nothing
	declined bool           // what is wanted was rolled back before
	from     guest.VMID     // the guest that is in state: another one than is wanted where a VM is replaced
}

// judge decides what is due for a guest. Nothing due costs no request: Read's memo tells. Otherwise the guest is looked at
// again and compared with the memo, so that at apply the user reads our sentence before the CLI's own.
func (r *guestResource[M, P]) judge(ctx context.Context, w wanted, state *guestModel, from private) (v verdict, diags diag.Diagnostics) {
	v.want, v.from = w, state.id()
	m, found, diags := recall(ctx, from)
	if diags.HasError() {
		return v, diags
	}
	name := called(r.kind.guest, w.VMID, state.Name.ValueString())
	if !found {
		diags.AddError(name+": nothing is recorded of how it looks", "The plan was made without refreshing, and what was seen of the "+
			"guest before is lost. Nothing was touched. Plan again without -refresh=false.")
		return v, diags
	}
	v.seen = m.observation()
	v.want.Spent = m.Spent
	recordedInstall := installedFrom(state.Installed)
	pending, installed := recipe.Pending(v.seen, w.recorded(), recordedInstall)
	pending = pending || w.installUnknown()
	larger := w.Rootfs.Size.CeilMiB() > m.RootfsSize && m.RootfsSize > 0
	switch {
	case m.Open != nil && w.reconcile != nil && w.reconcile.Operation == m.Open.ID:
		v.due = dueReconcile
	case w.VMID != v.from:
		v.due = dueOperation
	case m.Open != nil && m.Open.Waiting && !pending:
		v.due, v.waiting = dueNothing, m.Open // until it is accepted or taken back
		return v, diags
	case m.Open != nil:
		v.due = dueOperation
	case w.Adopt && installed == nil:
		v.due = dueAdoption
		return v, diags
	case pending:
		v.due = dueOperation
	case larger:
		v.due = dueGrow
	default:
		v.due = dueNothing
		v.declined = installed != nil && !installed.Same(w.recorded())
		return v, diags
	}
	diags.Append(r.look(ctx, &v, m, name)...)
	return v, diags
}

// look reads the guest live and judges what is due.
func (r *guestResource[M, P]) look(ctx context.Context, v *verdict, m memo, name string) (diags diag.Diagnostics) {
	op := r.operator()
	seen, err := op.Observe(ctx, v.from)
	if err != nil {
		diags.AddError(name+": it cannot be looked at", sentence(err.Error()))
		return diags
	}
	v.seen = seen
	if changed := m.changes(seen); len(changed) > 0 {
		diags.AddError(called(r.kind.guest, v.want.VMID, seen.Name)+" has changed since the plan",
			strings.Join(changed, "\n")+"\n\nNothing was touched. Plan again (without -refresh=false).")
		return diags
	}
	switch v.due {
	case dueReconcile:
		v.preview, err = op.PlanReconcile(ctx, seen, v.want.Want, *v.want.reconcile)
	case dueGrow:
		v.preview, err = op.PlanGrow(ctx, seen, v.want.Want)
	case dueNothing, dueAdoption, dueOperation, dueBlocked:
		v.preview, err = op.Plan(ctx, seen, v.want.Want)
	}
	if err != nil {
		diags.AddError(name+": what would happen cannot be determined", sentence(err.Error()))
		return diags
	}
	v.preview.Blockers = preview.Foremost(v.preview.Blockers)
	if j := seen.Journal; j != nil && v.due != dueReconcile && v.preview.Operation != preview.OpRollback && len(v.preview.Blockers) == 0 {
		// Whatever the judgement says, an open operation is never stepped over.
		diags.AddError(called(r.kind.guest, v.want.VMID, seen.Name)+": an operation is in progress (operation_in_flight)",
			fmt.Sprintf("%s stands at stage %d of %d, %s. Wait until it ends, then plan again.", j.Operation, j.Index, j.Of, j.Stage))
		return diags
	}
	if len(v.preview.Blockers) == 0 {
		return diags
	}
	if !r.session.skipBlocked {
		diags.Append(blocked(v.preview.Blockers)...)
		return diags
	}
	v.due = dueBlocked
	return diags
}

// changes says in sentences what differs between the memo and what is seen now.
func (m memo) changes(seen recipe.Observation) (changed []string) {
	if m.Presence == guest.Present && seen.Presence == guest.Absent {
		return []string{"It does not exist any more."}
	}
	for _, d := range m.Acknowledged.Compare(seen.Acknowledged) {
		changed = append(changed, d.Text())
	}
	then, now := "", ""
	if m.Open != nil {
		then = m.Open.ID
	}
	if seen.Journal != nil {
		now = seen.Journal.Operation
	}
	switch {
	case then == now:
	case now == "":
		changed = append(changed, fmt.Sprintf("Operation %s has ended.", then))
	default:
		changed = append(changed, fmt.Sprintf("Operation %s has begun.", now))
	}
	return changed
}

// reaches is the status that the operation ends with when all goes well; "" when the plan cannot know, because what is
// resumed may have been on its way back.
func (v verdict) reaches() recipe.Status {
	switch {
	case v.preview.Operation == preview.OpRollback, v.preview.Operation == preview.OpRollbackData:
		return recipe.StatusRolledBack
	case (v.preview.Operation == preview.OpRebuild || v.preview.Operation == preview.OpReplace) && !v.want.RehearseOnly:
		return recipe.StatusAwaitingTrust
	case v.preview.Operation == preview.OpResume:
		return ""
	}
	return recipe.StatusReady
}

// reached reports whether an operation that gave no error ended as the plan showed.
func (v verdict) reached(status recipe.Status) bool {
	if want := v.reaches(); want != "" {
		return status == want
	}
	return status == recipe.StatusReady || status == recipe.StatusRolledBack || status == recipe.StatusAwaitingTrust
}

// plannedInstall is what installed will be, as far as the plan knows.
func (v verdict) plannedInstall(before types.Object) types.Object {
	switch {
	case v.want.RehearseOnly, v.preview.Operation == preview.OpGrow, v.preview.Operation == preview.OpAccept:
		return before
	case (v.preview.Operation == preview.OpReinstall || v.preview.Operation == preview.OpUpdate) && !v.want.installUnknown() && !before.IsNull():
		// Only the time is not known yet: the plan shows what changes.
		install := v.want.recorded()
		if install.RootfsStorage == "" {
			install.RootfsStorage = storageOf(v.preview.Volumes)
		}
		parts := showInstalled(&install, 0).Attributes()
		parts["when"] = types.StringUnknown()
		if install.RootfsStorage == "" {
			parts["rootfs_storage"] = types.StringUnknown()
		}
		return types.ObjectValueMust(installedType, parts)
	}
	return types.ObjectUnknown(installedType)
}

// plannedOperation is what last_operation will be. An unknown object would print the whole old one as if it were deleted;
// so after a first operation only what differs from the last one is shown.
func plannedOperation(before types.Object, v verdict) types.Object {
	if before.IsNull() || before.IsUnknown() {
		return types.ObjectUnknown(lastOperationType)
	}
	planned := showLastOperation(v.preview.Operation, v.preview, recipe.Result{Status: v.reaches(), Exists: new(true)}).Attributes()
	planned["id"] = types.StringUnknown()
	if was, ok := before.Attributes()["volumes"].(types.Map); ok && len(was.Elements()) == 0 && len(v.preview.Volumes) > 0 {
		planned["volumes"] = types.MapUnknown(volumeType) // the preview shows them already
	}
	if v.reaches() == "" {
		planned["status"] = types.StringUnknown()
	}
	if v.want.Backup != nil || v.due == dueReconcile {
		planned["backup"] = types.StringUnknown()
	}
	if v.want.installUnknown() {
		planned["summary"] = types.StringUnknown()
	}
	return types.ObjectValueMust(lastOperationType, planned)
}

// detail is the text under the plan's warning.
func (v verdict) detail() string {
	paragraphs := []string{}
	if table := v.preview.Table(); table != "" {
		paragraphs = append(paragraphs, table)
	}
	return strings.Join(paragraphs, "\n\n")
}
