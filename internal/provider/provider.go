// Package provider is how Terraform and OpenTofu see pvrx: schemas, plans, state. What happens to guests is decided below it.
package provider

import (
	"context"
	"sync/atomic"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/pvrx/terraform-provider-pvrx/internal/oci"
	"github.com/pvrx/terraform-provider-pvrx/internal/run"
)

// Address is the provider's address in registries.
const Address = "registry.opentofu.org/pvrx/pvrx"

// Provider is the provider of one process. It may be configured several times, one session each.
type Provider struct {
	version string
	// connect makes what a session works with; tests put another world in its place.
	connect func(ctx context.Context, s setup) (operator, error)
	// operations counts those at work now, over all sessions.
	operations atomic.Int64
}

var _ provider.Provider = (*Provider)(nil)

// New returns the provider; version is what it tells servers and the CLI.
func New(version string) *Provider {
	return &Provider{version: version, connect: connectProxmox}
}

// Factory returns what a server asks for a provider: always this one, so that the process knows its operations.
func (p *Provider) Factory() func() provider.Provider {
	return func() provider.Provider { return p }
}

// Operations says how many operations are at work now.
func (p *Provider) Operations() int64 { return p.operations.Load() }

// Metadata names the provider.
func (p *Provider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName, resp.Version = "pvrx", p.version
}

// Schema describes the provider block.
func (p *Provider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = providerSchema()
}

// Configure prepares one session. It sends nothing: the first read does.
func (p *Provider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var m providerModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	s, diags := m.setup(ctx, environment())
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	s.agent = "terraform-provider-pvrx/" + p.version
	containers, err := p.connect(ctx, s)
	if err != nil {
		resp.Diagnostics.AddError("The provider cannot be set up", sentence(err.Error()))
		return
	}
	s.registries.UserAgent = s.agent
	images, err := oci.NewResolver(s.registries)
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("registries"), "The registries cannot be set up", sentence(err.Error()))
		return
	}
	made := &session{
		containers:  containers,
		instances:   instancesOf(containers, archivesOf(containers, images)),
		images:      images,
		host:        hostOf(containers),
		gate:        run.NewGate(s.atOnce, s.stopAfterFailure),
		blocks:      &run.Blocks{},
		skipBlocked: s.skipBlocked,
		operations:  &p.operations,
		secrets:     s.secrets(),
	}
	resp.ResourceData, resp.DataSourceData = made, made
}

// Resources lists the resources.
func (p *Provider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{newContainerReinstall, newVMRebuild, newInstance}
}

// DataSources lists the data sources.
func (p *Provider) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{newPreviewSource, newOperationsSource, newImageSource}
}
