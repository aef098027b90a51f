package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pvrx/terraform-provider-pvrx/internal/oci"
)

// imageSource answers what a reference to an image names now, and what the image says about itself.
type imageSource struct{ session *session }

var _ datasource.DataSourceWithConfigure = (*imageSource)(nil)

func newImageSource() datasource.DataSource { return &imageSource{} }

// imageSourceModel is data.pvrx_oci_image.
type imageSourceModel struct {
	Image    types.String `tfsdk:"image"`
	Platform types.String `tfsdk:"platform"`

	Pinned         types.String `tfsdk:"pinned"`
	Digest         types.String `tfsdk:"digest"`
	PlatformDigest types.String `tfsdk:"platform_digest"`
	Platforms      types.List   `tfsdk:"platforms"`
	Entrypoint     types.List   `tfsdk:"entrypoint"`
	Command        types.List   `tfsdk:"command"`
	Environment    types.List   `tfsdk:"environment"`
	Volumes        types.List   `tfsdk:"volumes"`
	Ports          types.List   `tfsdk:"ports"`
	User           types.String `tfsdk:"user"`
	WorkDir        types.String `tfsdk:"working_directory"`
	StopSignal     types.String `tfsdk:"stop_signal"`
	Labels         types.Map    `tfsdk:"labels"`
}

func (d *imageSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_oci_image"
}

func (d *imageSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
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

// Read asks the registry: the tag, the index if there is one, the manifest and the image's configuration. No layer is fetched.
func (d *imageSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m imageSourceModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx = d.session.masked(ctx)
	image, config, err := d.inspect(ctx, m.Image.ValueString(), m.Platform.ValueString())
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("image"), "The image cannot be resolved", sentence(err.Error()))
		return
	}
	named := image.Reference
	named.Digest = image.Digest
	offered := []string{image.Platform.String()}
	if image.Offered != nil {
		offered = nil
		for _, p := range image.Offered {
			offered = append(offered, p.String())
		}
	}
	m.Pinned, m.Digest, m.PlatformDigest = text(named.String()), text(image.Digest.String()), text(image.Manifest.String())
	m.Platforms, m.Entrypoint, m.Command = textList(offered), textList(config.Entrypoint), textList(config.Cmd)
	m.Environment, m.Volumes, m.Ports = textList(config.Env), textList(config.Volumes), textList(config.Ports)
	m.User, m.WorkDir, m.StopSignal, m.Labels = text(config.User), text(config.WorkDir), text(config.StopSignal), textMap(config.Labels)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (d *imageSource) inspect(ctx context.Context, reference, platform string) (image oci.Image, config oci.Config, err error) {
	ref, err := oci.ParseReference(reference)
	if err != nil {
		return image, config, err
	}
	want, err := platformOf(platform, "", "")
	if err != nil {
		return image, config, err
	}
	if image, err = d.session.images.Resolve(ctx, ref, want); err != nil {
		return image, config, err
	}
	config, err = d.session.images.Inspect(ctx, image)
	return image, config, err
}

// textList is a list, empty when there is nothing.
func textList(words []string) types.List {
	rows := make([]attr.Value, 0, len(words))
	for _, w := range words {
		rows = append(rows, types.StringValue(w))
	}
	return types.ListValueMust(types.StringType, rows)
}

func (d *imageSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	one := func(about string) schema.StringAttribute {
		return schema.StringAttribute{Computed: true, MarkdownDescription: about}
	}
	several := func(about string) schema.ListAttribute {
		return schema.ListAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: about}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "What a reference to an OCI image names now, and what the image says about itself. Nothing is downloaded but its description.",
		Attributes: map[string]schema.Attribute{
			"image": schema.StringAttribute{
				Required: true, MarkdownDescription: "The reference: `docker.io/library/nginx:1.27`, `…@sha256:…`, or both.", Validators: []validator.String{isImage()},
			},
			"platform": schema.StringAttribute{
				Optional: true, MarkdownDescription: "Platform to take from an image of several. Default: `\"linux/amd64\"`.", Validators: []validator.String{isPlatform()},
			},
			"pinned":            one("The reference with the digest beside it, as `pvrx_oci_instance.image` takes it."),
			"digest":            one("Digest that the reference names: of an index of several platforms, or of a manifest."),
			"platform_digest":   one("Digest of the platform's own manifest."),
			"platforms":         several("Platforms that the image is made for."),
			"entrypoint":        several("Entrypoint."),
			"command":           several("Command: it follows the entrypoint."),
			"environment":       several("Variables, `NAME=value`, in the image's order."),
			"volumes":           several("Paths that the image declares as volumes (`VOLUME`): what is written there belongs on a volume of the instance."),
			"ports":             several("Ports, such as `80/tcp`."),
			"user":              one("User that it runs as. Null: root."),
			"working_directory": one("Working directory."),
			"stop_signal":       one("Signal that stops it."),
			"labels":            schema.MapAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: "Labels."},
		},
	}
}
