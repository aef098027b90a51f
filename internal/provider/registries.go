package provider

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pvrx/terraform-provider-pvrx/internal/oci"
)

// registryModel is how one registry is reached.
type registryModel struct {
	Username      types.String `tfsdk:"username"`
	Password      types.String `tfsdk:"password"`
	PlainHTTP     types.Bool   `tfsdk:"plain_http"`
	CACertificate types.String `tfsdk:"ca_certificate"`
}

// registries reads how registries are reached. Those that are not named are reached as the Docker configuration says.
func (m *providerModel) registries(ctx context.Context, s *setup) (diags diag.Diagnostics) {
	s.registries = oci.Settings{DockerConfig: true, Credentials: map[string]oci.Credentials{}, CACert: map[string]string{}}
	for host, object := range objects(m.Registries) {
		var r registryModel
		diags.Append(part(ctx, object, &r)...)
		at := path.Root("registries").AtMapKey(host)
		switch {
		case r.Username.IsNull() != r.Password.IsNull():
			diags.AddAttributeError(at, "half a login", "Set both username and password, or neither.")
		case !r.Password.IsNull():
			s.registries.Credentials[host] = oci.Credentials{Username: r.Username.ValueString(), Password: r.Password.ValueString()}
		}
		if r.PlainHTTP.ValueBool() {
			s.registries.PlainHTTP = append(s.registries.PlainHTTP, host)
		}
		if ca := r.CACertificate.ValueString(); ca != "" {
			s.registries.CACert[host] = ca
		}
	}
	return diags
}

func registriesAttribute() schema.Attribute {
	return schema.MapNestedAttribute{
		Optional: true,
		MarkdownDescription: "How registries of OCI images are reached, by host and port: `\"registry.lan:5000\"`, `\"docker.io\"`. A registry " +
			"that is not named here is reached by HTTPS, with the credentials of the Docker configuration (and its helpers) of whoever runs this, if any.",
		Validators: []validator.Map{mapvalidator.KeysAre(isRegistry())},
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"username": schema.StringAttribute{
				Optional: true, MarkdownDescription: "User.", Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"password": schema.StringAttribute{
				Optional: true, Sensitive: true, MarkdownDescription: "Password or access token.", Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"plain_http": schema.BoolAttribute{Optional: true, MarkdownDescription: "Speak HTTP without TLS. Default: `false`, whatever the address."},
			"ca_certificate": schema.StringAttribute{
				Optional: true, MarkdownDescription: "PEM certificates to trust beside the system's.", Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
			},
		}},
	}
}

// isRegistry accepts the host of a registry.
func isRegistry() validator.String {
	return check{about: "the host of a registry, with its port if it has one", test: func(text string) error {
		if ref, err := oci.ParseReference(text + "/image:1"); err != nil || ref.Registry != text {
			return errors.New("write the host as references have it, with its port if it has one: registry.lan:5000, docker.io")
		}
		return nil
	}}
}
