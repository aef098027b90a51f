package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// containerReinstallModel is pvrx_container_reinstall.
type containerReinstallModel struct {
	guestModel

	Template       types.String `tfsdk:"template"`
	Rootfs         types.Object `tfsdk:"rootfs"`
	RootPasswordWO types.String `tfsdk:"root_password_wo"`
	SSHPublicKeys  types.List   `tfsdk:"ssh_public_keys"`
}

// want adds to what is common what a container is installed from. Only an unknown template may stay unknown.
func (m *containerReinstallModel) want(ctx context.Context, w *wanted) (diags diag.Diagnostics) {
	w.source, w.sourceUnknown = m.Template.ValueString(), m.Template.IsUnknown()
	w.Template = w.source

	var rootfs rootfsModel
	diags.Append(part(ctx, m.Rootfs, &rootfs)...)
	w.Rootfs.Storage = rootfs.Storage.ValueString()
	if text := rootfs.Size.ValueString(); text != "" {
		size, err := guest.ParseRequest(text)
		if err != nil {
			diags.AddAttributeError(path.Root("rootfs").AtName("size"), "rootfs.size is not usable", sentence(err.Error()))
		}
		w.Rootfs.Size, w.Rootfs.SizeText = size, text
	}
	w.PasswordGiven = !m.RootPasswordWO.IsNull()
	w.password = m.RootPasswordWO.ValueString()
	if !m.SSHPublicKeys.IsNull() && !m.SSHPublicKeys.IsUnknown() {
		diags.Append(m.SSHPublicKeys.ElementsAs(ctx, &w.keys, false)...)
	}
	return diags
}

// recorded is the wanted install as the contract would say it.
func (w *wanted) recorded() guest.Install {
	return w.Install()
}

// part reads an optional object; null and unknown leave target as it is.
func part(ctx context.Context, object types.Object, target any) diag.Diagnostics {
	if object.IsNull() || object.IsUnknown() {
		return nil
	}
	return object.As(ctx, target, basetypes.ObjectAsOptions{UnhandledNullAsEmpty: true, UnhandledUnknownAsEmpty: true})
}
