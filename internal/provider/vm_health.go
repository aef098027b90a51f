package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// vmHealthModel is the health check of a VM.
type vmHealthModel struct {
	healthModel

	GuestAgent types.Bool `tfsdk:"guest_agent"`
	SSH        *tcpModel  `tfsdk:"ssh"`
}

// healthOf reads a health check of either kind of guest.
func healthOf(ctx context.Context, object types.Object) (*recipe.Health, diag.Diagnostics) {
	if _, vm := object.AttributeTypes(ctx)["guest_agent"]; !vm {
		var h healthModel
		diags := part(ctx, object, &h)
		return wantHealth(h), diags
	}
	var h vmHealthModel
	diags := part(ctx, object, &h)
	health := wantHealth(h.healthModel)
	health.Agent = h.GuestAgent.ValueBool()
	if h.SSH != nil {
		health.SSH = int(h.SSH.Port.ValueInt64())
		if address := h.SSH.Address.ValueString(); address != "" {
			health.Host = address
		}
	}
	return health, diags
}
