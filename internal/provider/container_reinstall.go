package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// newContainerReinstall is the resource pvrx_container_reinstall.
func newContainerReinstall() resource.Resource {
	return &guestResource[containerReinstallModel, *containerReinstallModel]{kind: kind[containerReinstallModel]{
		name:     "container_reinstall",
		guest:    guest.KindContainer,
		schema:   containerReinstallSchema,
		operator: func(s *session) operator { return s.containers },
		want: func(ctx context.Context, m *containerReinstallModel, w *wanted) diag.Diagnostics {
			return m.want(ctx, w)
		},
		fill: func(m *containerReinstallModel, seen recipe.Observation) {
			if m.Template.IsNull() && seen.Contract != nil {
				m.Template = text(seen.Contract.Installed.Template)
			}
		},
		decisive: func(m *containerReinstallModel) map[string]attr.Value {
			return map[string]attr.Value{"rootfs": m.Rootfs}
		},
	}}
}
