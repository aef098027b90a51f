package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// previewSource answers what a reinstall would do, for any container, without managing it.
type previewSource struct{ session *session }

var _ datasource.DataSourceWithConfigure = (*previewSource)(nil)

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

// Read judges the reinstall as the resource's plan would. Blockers are part of the answer, never an error.
func (d *previewSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m previewSourceModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	// The same arguments mean the same as those of the resource.
	asked := containerReinstallModel{
		guestModel: guestModel{
			VMID: m.VMID, Triggers: m.Triggers, Erase: m.Erase, Drop: m.Drop, Allow: m.Allow, Backup: m.Backup,
			Name: m.Name,
		},
		Template: m.Template, Rootfs: m.Rootfs,
	}
	w, diags := asked.wantCommon(ctx)
	diags.Append(asked.want(ctx, &w)...)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	name := called(guest.KindContainer, w.VMID, w.Name)
	seen, err := d.session.containers.Observe(ctx, w.VMID)
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("vmid"), name+": it cannot be looked at", sentence(err.Error()))
		return
	}
	if w.Name == "" {
		w.Name = seen.Name
	}
	p, err := d.session.containers.Plan(ctx, seen, w.Want)
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("vmid"), name+": what would happen cannot be determined", sentence(err.Error()))
		return
	}
	m.Name = text(w.Name)
	m.Node = text(seen.Ref.Node)
	m.Due = types.BoolValue(seen.Contract == nil || !seen.Contract.Installed.Same(w.recorded()))
	m.Preview = showPreview(p, false)
	m.Volumes = showVolumes(p.Volumes)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (d *previewSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	names := schema.MapAttribute{ElementType: types.StringType, Optional: true}
	erase, triggers := names, names
	erase.MarkdownDescription = "As on the resource: key to volume id, or `\"*\"`."
	triggers.MarkdownDescription = "As on the resource; only for `due`."
	set := func(about string) schema.SetAttribute {
		return schema.SetAttribute{ElementType: types.StringType, Optional: true, MarkdownDescription: about}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "What reinstalling a container from a template would do, asked without managing it.",
		Attributes: map[string]schema.Attribute{
			"vmid": schema.Int64Attribute{
				Required: true, MarkdownDescription: "VMID of the container.",
				Validators: []validator.Int64{int64validator.Between(100, 999999999)},
			},
			"template": schema.StringAttribute{
				Required: true, MarkdownDescription: "Volume id of the template.",
				Validators: []validator.String{stringvalidator.RegexMatches(templateID, "must be the whole volume id of a template")},
			},
			"name": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "The container's hostname. When given, another one there is the blocker `name_mismatch`.",
			},
			"triggers": triggers,
			"rootfs": schema.SingleNestedAttribute{
				Optional: true, MarkdownDescription: "As on the resource.",
				Attributes: map[string]schema.Attribute{
					"storage": schema.StringAttribute{Optional: true, MarkdownDescription: "Storage."},
					"size":    schema.StringAttribute{Optional: true, MarkdownDescription: "Size with a unit.", Validators: []validator.String{isSize()}},
				},
			},
			"erase": erase,
			"drop":  set("As on the resource."),
			"allow": set("As on the resource."),
			"backup": schema.SingleNestedAttribute{
				Optional: true, MarkdownDescription: "As on the resource: whether there is room for one is judged too.",
				Attributes: map[string]schema.Attribute{
					"storage":  schema.StringAttribute{Required: true, MarkdownDescription: "Storage for the archive."},
					"mode":     schema.StringAttribute{Optional: true, MarkdownDescription: "`snapshot`, `suspend` or `stop`."},
					"compress": schema.StringAttribute{Optional: true, MarkdownDescription: "`zstd`, `gzip`, `lzo` or `0`."},
					"keep":     schema.Int64Attribute{Optional: true, MarkdownDescription: "How many of ours stay."},
				},
			},
			"node": schema.StringAttribute{Computed: true, MarkdownDescription: "Node that the container is on."},
			"due": schema.BoolAttribute{
				Computed: true, MarkdownDescription: "Whether the container records another install than this one, or none.",
			},
			"preview": schema.ObjectAttribute{
				Computed: true, AttributeTypes: previewType,
				MarkdownDescription: "What would happen, as in the resource's `preview`. What may not be seen is `unknown` and a blocker " +
					"that names the missing privilege.",
			},
			"volumes": schema.MapAttribute{
				Computed: true, ElementType: volumeType,
				MarkdownDescription: "Every volume by key: `volume`, `owner`, `data`, `mount`, `size_bytes`, `path`, `reason`.",
			},
		},
	}
}
