package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-validators/datasourcevalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// previewSource answers what a reinstall of any container, or a rebuild of any VM, would do, without managing it.
type previewSource struct{ session *session }

var (
	_ datasource.DataSourceWithConfigure        = (*previewSource)(nil)
	_ datasource.DataSourceWithConfigValidators = (*previewSource)(nil)
)

func newPreviewSource() datasource.DataSource { return &previewSource{} }

// previewSourceModel is data.pvrx_preview.
type previewSourceModel struct {
	VMID     types.Int64  `tfsdk:"vmid"`
	Template types.String `tfsdk:"template"`
	Name     types.String `tfsdk:"name"`
	Triggers types.Map    `tfsdk:"triggers"`
	Rootfs   types.Object `tfsdk:"rootfs"`
	Erase    types.Map    `tfsdk:"erase"`
	Drop     types.Set    `tfsdk:"drop"`
	Allow    types.Set    `tfsdk:"allow"`
	Backup   types.Object `tfsdk:"backup"`

	SystemDisks  types.Map    `tfsdk:"system_disks"`
	ReplacesVMID types.Int64  `tfsdk:"replaces_vmid"`
	Identity     types.String `tfsdk:"identity"`
	Snapshot     types.Bool   `tfsdk:"snapshot"`

	Node    types.String `tfsdk:"node"`
	Due     types.Bool   `tfsdk:"due"`
	Preview types.Object `tfsdk:"preview"`
	Volumes types.Map    `tfsdk:"volumes"`
}

func (d *previewSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_preview"
}

func (d *previewSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
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

// ConfigValidators demand one kind of guest: a template is for containers, system disks are for VMs.
func (d *previewSource) ConfigValidators(context.Context) []datasource.ConfigValidator {
	return []datasource.ConfigValidator{
		datasourcevalidator.ExactlyOneOf(path.MatchRoot("template"), path.MatchRoot("system_disks")),
		datasourcevalidator.Conflicting(path.MatchRoot("template"), path.MatchRoot("replaces_vmid")),
		datasourcevalidator.Conflicting(path.MatchRoot("template"), path.MatchRoot("identity")),
		datasourcevalidator.Conflicting(path.MatchRoot("template"), path.MatchRoot("snapshot")),
		datasourcevalidator.Conflicting(path.MatchRoot("system_disks"), path.MatchRoot("rootfs")),
	}
}

// want turns the arguments into values: the same arguments mean the same as those of the resource.
func (m *previewSourceModel) want(ctx context.Context) (w wanted, kind guest.Kind, diags diag.Diagnostics) {
	common := guestModel{VMID: m.VMID, Triggers: m.Triggers, Erase: m.Erase, Drop: m.Drop, Allow: m.Allow, Backup: m.Backup, Name: m.Name}
	w, diags = common.wantCommon(ctx)
	if m.SystemDisks.IsNull() {
		asked := containerReinstallModel{guestModel: common, Template: m.Template, Rootfs: m.Rootfs}
		diags.Append(asked.want(ctx, &w)...)
		return w, guest.KindContainer, diags
	}
	asked := vmRebuildModel{guestModel: common, SystemDisks: m.SystemDisks, ReplacesVMID: m.ReplacesVMID, Identity: m.Identity, Snapshot: m.Snapshot}
	diags.Append(asked.want(ctx, &w)...)
	return w, guest.KindVM, diags
}

// Read judges the reinstall or rebuild as the resource's plan would. Blockers are part of the answer, never an error.
func (d *previewSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m previewSourceModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	w, kind, diags := m.want(ctx)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	op, id := d.session.containers, w.VMID
	if kind == guest.KindVM {
		op = vmsOf(d.session.containers)
		if w.VM.Replaces != 0 {
			id = w.VM.Replaces
		}
	}
	name := called(kind, id, w.Name)
	seen, err := op.Observe(ctx, id)
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("vmid"), name+": it cannot be looked at", sentence(err.Error()))
		return
	}
	if w.Name == "" {
		w.Name = seen.Name
	}
	p, err := op.Plan(ctx, seen, w.Want)
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("vmid"), name+": what would happen cannot be determined", sentence(err.Error()))
		return
	}
	m.Name = text(w.Name)
	m.Node = text(seen.Ref.Node)
	m.Due = types.BoolValue(id != w.VMID || seen.Contract == nil || !seen.Contract.Installed.Same(w.recorded()))
	m.Preview = showPreview(p, false)
	m.Volumes = showVolumes(p.Volumes)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}
