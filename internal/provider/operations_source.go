package provider

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// operationsSource answers what operations left half done in the cluster, for whoever has nothing but an endpoint.
type operationsSource struct{ session *session }

var _ datasource.DataSourceWithConfigure = (*operationsSource)(nil)

func newOperationsSource() datasource.DataSource { return &operationsSource{} }

// operationsModel is data.pvrx_operations.
type operationsModel struct {
	VMID       types.Int64  `tfsdk:"vmid"`
	Node       types.String `tfsdk:"node"`
	Summary    types.String `tfsdk:"summary"`
	Operations types.List   `tfsdk:"operations"`
	Parking    types.List   `tfsdk:"parking_guests"`
	Unnamed    types.List   `tfsdk:"unnamed_volumes"`
	Archives   types.List   `tfsdk:"archives"`
	Problems   types.List   `tfsdk:"problems"`
	Unseen     types.List   `tfsdk:"unseen"`
}

// The rows of the lists.
var (
	heldType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"key": types.StringType, "volume": types.StringType, "holder": types.Int64Type, "size_bytes": types.Int64Type,
	}}
	operationType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"operation": types.StringType, "kind": types.StringType, "vmid": types.Int64Type, "guest": types.StringType,
		"guest_exists": types.BoolType, "node": types.StringType, "parking_vmid": types.Int64Type, "status": types.StringType,
		"stage": types.StringType, "stage_index": types.Int64Type, "stages": types.Int64Type, "error": types.StringType,
		"started": types.StringType, "updated": types.StringType, "until": types.StringType, "age": types.StringType,
		"volumes": types.ListType{ElemType: heldType}, "backup": types.StringType, "reconcile": types.StringType,
		"remedy": types.StringType,
	}}
	parkingType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"vmid": types.Int64Type, "guest": types.StringType, "node": types.StringType, "of": types.Int64Type, "operation": types.StringType,
		"status": types.StringType, "guarded": types.BoolType, "created": types.StringType, "age": types.StringType,
		"holds": types.ListType{ElemType: heldType}, "remedy": types.StringType,
	}}
	unnamedType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"volume": types.StringType, "node": types.StringType, "owner": types.Int64Type, "owner_exists": types.BoolType,
		"operation": types.StringType, "size_bytes": types.Int64Type, "created": types.StringType, "age": types.StringType,
		"certain": types.BoolType, "remedy": types.StringType,
	}}
	archiveType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"archive": types.StringType, "node": types.StringType, "vmid": types.Int64Type, "of": types.Int64Type,
		"size_bytes": types.Int64Type, "created": types.StringType, "age": types.StringType, "protected": types.BoolType,
		"notes": types.StringType, "remedy": types.StringType,
	}}
	problemType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"vmid": types.Int64Type, "guest": types.StringType, "node": types.StringType, "kind": types.StringType,
		"found": types.StringType, "remedy": types.StringType,
	}}
)

func (d *operationsSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_operations"
}

func (d *operationsSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	if req.ProviderData == nil {
		return // asked before the provider is configured
	}
	s, ok := req.ProviderData.(*session)
	if !ok {
		resp.Diagnostics.AddError("internal error", fmt.Sprintf("The provider handed over a %T.", req.ProviderData))
		return
	}
	d.session = s
}

// Read looks through the cluster. What may not be seen is part of the answer, never an error.
func (d *operationsSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m operationsModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	found, err := d.session.containers.Survey(d.session.masked(ctx), recipe.Scope{Guest: guest.VMID(m.VMID.ValueInt64()), Node: m.Node.ValueString()})
	if err != nil {
		resp.Diagnostics.AddError("The cluster cannot be looked through", sentence(err.Error()))
		return
	}
	m.Summary = types.StringValue(found.Summary)
	m.Operations = rows(operationType, found.Operations, showOperation)
	m.Parking = rows(parkingType, found.Parking, showParking)
	m.Unnamed = rows(unnamedType, found.Unnamed, showUnnamed)
	m.Archives = rows(archiveType, found.Archives, showArchive)
	m.Problems = rows(problemType, found.Problems, showProblem)
	unseen := make([]attr.Value, 0, len(found.Unseen))
	for _, what := range found.Unseen {
		unseen = append(unseen, types.StringValue(what))
	}
	m.Unseen = types.ListValueMust(types.StringType, unseen)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// rows makes a list, empty when there is nothing: a policy counts it.
func rows[T any](of types.ObjectType, found []T, show func(T) map[string]attr.Value) types.List {
	all := make([]attr.Value, 0, len(found))
	for _, f := range found {
		all = append(all, types.ObjectValueMust(of.AttrTypes, show(f)))
	}
	return types.ListValueMust(of, all)
}

func showHeld(v preview.HeldVolume) map[string]attr.Value {
	return map[string]attr.Value{
		"key": types.StringValue(v.Key), "volume": types.StringValue(v.Volume), "holder": number(int64(v.Holder)), "size_bytes": number(int64(v.Size)),
	}
}

func showOperation(o preview.SurveyedOperation) map[string]attr.Value {
	return map[string]attr.Value{
		"operation": types.StringValue(o.Operation), "kind": types.StringValue(o.Kind), "vmid": number(int64(o.Guest)), "guest": types.StringValue(o.Label),
		"guest_exists": known(o.Exists), "node": text(o.Node), "parking_vmid": number(int64(o.Parking)), "status": types.StringValue(o.State.String()),
		"stage": text(o.Stage), "stage_index": number(int64(o.Index)), "stages": number(int64(o.Stages)), "error": text(o.Error),
		"started": moment(o.Started), "updated": moment(o.Updated), "until": moment(o.Until), "age": text(o.Age),
		"volumes": rows(heldType, o.Volumes, showHeld), "backup": text(o.Backup), "reconcile": types.StringValue(o.Reconcile),
		"remedy": types.StringValue(o.Remedy),
	}
}

func showParking(p preview.ParkingGuest) map[string]attr.Value {
	return map[string]attr.Value{
		"vmid": number(int64(p.VMID)), "guest": types.StringValue(p.Label), "node": text(p.Node), "of": number(int64(p.Guest)),
		"operation": text(p.Operation), "status": text(p.Status), "guarded": types.BoolValue(p.Guarded), "created": moment(p.Created),
		"age": text(p.Age), "holds": rows(heldType, p.Holds, showHeld), "remedy": types.StringValue(p.Remedy),
	}
}

func showUnnamed(v preview.UnnamedVolume) map[string]attr.Value {
	return map[string]attr.Value{
		"volume": types.StringValue(v.Volume), "node": text(v.Node), "owner": number(int64(v.Owner)), "owner_exists": known(v.Exists),
		"operation": text(v.Operation), "size_bytes": number(int64(v.Size)), "created": moment(v.Created), "age": text(v.Age),
		"certain": types.BoolValue(v.Certain), "remedy": types.StringValue(v.Remedy),
	}
}

func showArchive(a preview.LeftArchive) map[string]attr.Value {
	return map[string]attr.Value{
		"archive": types.StringValue(a.Archive), "node": text(a.Node), "vmid": number(int64(a.VMID)), "of": number(int64(a.Guest)),
		"size_bytes": number(int64(a.Size)), "created": moment(a.Created), "age": text(a.Age), "protected": types.BoolValue(a.Protected),
		"notes": text(a.Notes), "remedy": types.StringValue(a.Remedy),
	}
}

func showProblem(p preview.BlockProblem) map[string]attr.Value {
	return map[string]attr.Value{
		"vmid": number(int64(p.VMID)), "guest": types.StringValue(p.Label), "node": text(p.Node), "kind": types.StringValue(p.Kind),
		"found": types.StringValue(p.Sentence), "remedy": types.StringValue(p.Remedy),
	}
}

// known is null when it could not be determined.
func known(p guest.Presence) types.Bool {
	switch p {
	case guest.Present:
		return types.BoolValue(true)
	case guest.Absent:
		return types.BoolValue(false)
	case guest.PresenceUnknown:
	}
	return types.BoolNull()
}

// moment is a time in RFC 3339, null for 0.
func moment(seconds int64) types.String {
	if seconds <= 0 {
		return types.StringNull()
	}
	return types.StringValue(time.Unix(seconds, 0).UTC().Format(time.RFC3339))
}

func (d *operationsSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	list := func(of types.ObjectType, about string) schema.ListAttribute {
		return schema.ListAttribute{Computed: true, ElementType: of, MarkdownDescription: about}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "What operations left half done in the cluster, who holds what now, and what to do about each.",
		Attributes: map[string]schema.Attribute{
			"vmid": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "Report only what concerns this guest or parking guest.",
				Validators: []validator.Int64{int64validator.Between(100, 999999999)},
			},
			"node": schema.StringAttribute{Optional: true, MarkdownDescription: "Report only what is on this node or on a shared storage."},
			"summary": schema.StringAttribute{
				Computed: true, MarkdownDescription: "Some lines for people, most urgent first.",
			},
			"operations": list(operationType, "Operations that have a record in a guest's notes. `status`: `in_progress`, `taking_back`, "+
				"`overdue` (its time is over and its process is dead), `awaiting_trust` or `stuck`. `volumes`: what is to be kept, and of a VM the old system disks, and which guest names it now "+
				"(`holder` null: nobody, a move was cut short). `guest_exists` null: cannot be seen. `age`: since the record was last written. "+
				"`reconcile`: the argument to paste into the guest's block. `remedy`: what to do."),
			"parking_guests": list(parkingType, "Parking guests, whose each is (`of`), what it `holds` beside its own root file system, and "+
				"the `operation` that uses it (null: none does, it was left behind)."),
			"unnamed_volumes": list(unnamedType, "Volumes that have an owner and that no guest's configuration, pending change or snapshot names. "+
				"`certain` false: a guest that may name it could not be read."),
			"archives": list(archiveType, "Backups that were made of a parking guest: they hold data of the guest `of` under a VMID that nobody looks for."),
			"problems": list(problemType, "Blocks in notes that are `damaged`, `truncated`, `duplicated`, `foreign`, `newer`, `older`, `misplaced` or "+
				"`stray`: reported, and obeyed by nobody."),
			"unseen": schema.ListAttribute{
				Computed: true, ElementType: types.StringType,
				MarkdownDescription: "What could not be looked at, with the right that is missing. Nothing in it counts as absent.",
			},
		},
	}
}
