package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// guestModel is what every guest resource has, whatever its kind: the arguments that the semantics of guestResource look
// at, and all that is computed.
type guestModel struct {
	VMID         types.Int64  `tfsdk:"vmid"`
	Name         types.String `tfsdk:"name"`
	Triggers     types.Map    `tfsdk:"triggers"`
	Erase        types.Map    `tfsdk:"erase"`
	Drop         types.Set    `tfsdk:"drop"`
	Allow        types.Set    `tfsdk:"allow"`
	Adopt        types.Bool   `tfsdk:"adopt"`
	RehearseOnly types.Bool   `tfsdk:"rehearse_only"`
	Backup       types.Object `tfsdk:"backup"`
	Stop         types.Object `tfsdk:"stop"`
	HealthCheck  types.Object `tfsdk:"health_check"`
	Reconcile    types.Object `tfsdk:"reconcile"`
	Timeouts     types.Object `tfsdk:"timeouts"`

	Status        types.String `tfsdk:"status"`
	Node          types.String `tfsdk:"node"`
	Installed     types.Object `tfsdk:"installed"`
	Preview       types.Object `tfsdk:"preview"`
	LastOperation types.Object `tfsdk:"last_operation"`
}

func (m *guestModel) common() *guestModel { return m }

func (m *guestModel) id() guest.VMID { return guest.VMID(m.VMID.ValueInt64()) }

// model is a kind's own model around the common one.
type model interface{ common() *guestModel }

type (
	backupModel struct {
		Storage  types.String `tfsdk:"storage"`
		Mode     types.String `tfsdk:"mode"`
		Compress types.String `tfsdk:"compress"`
		Keep     types.Int64  `tfsdk:"keep"`
	}
	stopModel struct {
		Timeout types.String `tfsdk:"timeout"`
		Force   types.Bool   `tfsdk:"force"`
	}
	healthModel struct {
		RunningFor types.String `tfsdk:"running_for"`
		TCP        *tcpModel    `tfsdk:"tcp"`
		HTTP       *httpModel   `tfsdk:"http"`
		Timeout    types.String `tfsdk:"timeout"`
	}
	tcpModel struct {
		Port    types.Int64  `tfsdk:"port"`
		Address types.String `tfsdk:"address"`
	}
	httpModel struct {
		Port    types.Int64  `tfsdk:"port"`
		Path    types.String `tfsdk:"path"`
		Address types.String `tfsdk:"address"`
		Status  types.Int64  `tfsdk:"status"`
		TLS     types.Bool   `tfsdk:"tls"`
	}
	reconcileModel struct {
		Operation types.String `tfsdk:"operation"`
		Action    types.String `tfsdk:"action"`
	}
	timeoutsModel struct {
		Operation types.String `tfsdk:"operation"`
	}
	rootfsModel struct {
		Storage types.String `tfsdk:"storage"`
		Size    types.String `tfsdk:"size"`
	}
)
