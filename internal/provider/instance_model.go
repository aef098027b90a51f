package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// instanceModel is pvrx_oci_instance.
type instanceModel struct {
	VMID           types.Int64  `tfsdk:"vmid"`
	Hostname       types.String `tfsdk:"hostname"`
	Image          types.String `tfsdk:"image"`
	Platform       types.String `tfsdk:"platform"`
	Follows        types.String `tfsdk:"update"`
	Triggers       types.Map    `tfsdk:"triggers"`
	Node           types.String `tfsdk:"node"`
	ArchiveStorage types.String `tfsdk:"archive_storage"`
	Rootfs         types.Object `tfsdk:"rootfs"`

	Cores        types.Int64   `tfsdk:"cores"`
	CPULimit     types.Float64 `tfsdk:"cpulimit"`
	CPUUnits     types.Int64   `tfsdk:"cpuunits"`
	Memory       types.String  `tfsdk:"memory"`
	Swap         types.String  `tfsdk:"swap"`
	Networks     types.Map     `tfsdk:"networks"`
	Nameserver   types.String  `tfsdk:"nameserver"`
	SearchDomain types.String  `tfsdk:"searchdomain"`
	Features     types.Set     `tfsdk:"features"`
	Tags         types.Set     `tfsdk:"tags"`
	Description  types.String  `tfsdk:"description"`
	Pool         types.String  `tfsdk:"pool"`
	OnBoot       types.Bool    `tfsdk:"onboot"`
	Startup      types.Object  `tfsdk:"startup"`
	Protection   types.Bool    `tfsdk:"protection"`
	Console      types.Object  `tfsdk:"console"`
	Started      types.Bool    `tfsdk:"started"`

	Environment          types.Map    `tfsdk:"environment"`
	EnvironmentWO        types.Map    `tfsdk:"environment_wo"`
	EnvironmentWOVersion types.Int64  `tfsdk:"environment_wo_version"`
	Entrypoint           types.String `tfsdk:"entrypoint"`
	Volumes              types.Map    `tfsdk:"volumes"`
	HostDirectories      types.Map    `tfsdk:"host_directories"`
	Devices              types.Map    `tfsdk:"devices"`

	HealthCheck        types.Object `tfsdk:"health_check"`
	OnFailure          types.String `tfsdk:"on_failure"`
	Backup             types.Object `tfsdk:"backup"`
	Stop               types.Object `tfsdk:"stop"`
	DeletionProtection types.Bool   `tfsdk:"deletion_protection"`
	Erase              types.Map    `tfsdk:"erase"`
	Drop               types.Set    `tfsdk:"drop"`
	Allow              types.Set    `tfsdk:"allow"`
	Adopt              types.Bool   `tfsdk:"adopt"`
	Reconcile          types.Object `tfsdk:"reconcile"`
	Timeouts           types.Object `tfsdk:"timeouts"`

	instanceComputed
}

// instanceComputed is all that is computed.
type instanceComputed struct {
	Status          types.String `tfsdk:"status"`
	CurrentNode     types.String `tfsdk:"current_node"`
	Digest          types.String `tfsdk:"digest"`
	PlatformDigest  types.String `tfsdk:"platform_digest"`
	AvailableDigest types.String `tfsdk:"available_digest"`
	UpdateAvailable types.Bool   `tfsdk:"update_available"`
	Addresses       types.Map    `tfsdk:"addresses"`
	Installed       types.Object `tfsdk:"installed"`
	Preview         types.Object `tfsdk:"preview"`
	LastOperation   types.Object `tfsdk:"last_operation"`
}

func (m *instanceModel) id() guest.VMID { return guest.VMID(m.VMID.ValueInt64()) }

// common is what an instance has in common with every guest resource.
func (m *instanceModel) common() guestModel {
	return guestModel{
		VMID: m.VMID, Name: m.Hostname, Triggers: m.Triggers, Erase: m.Erase, Drop: m.Drop, Allow: m.Allow, Adopt: m.Adopt,
		Backup: m.Backup, Stop: m.Stop, HealthCheck: m.HealthCheck, Reconcile: m.Reconcile, Timeouts: m.Timeouts,
	}
}

// decisive are the arguments whose values decide what a plan shows. Image, triggers and values of variables may come from
// resources that do not exist yet: they count as changed.
func (m *instanceModel) decisive() map[string]attr.Value {
	return map[string]attr.Value{
		"vmid": m.VMID, "hostname": m.Hostname, "platform": m.Platform, "update": m.Follows, "node": m.Node,
		"archive_storage": m.ArchiveStorage, "rootfs": m.Rootfs, "volumes": m.Volumes, "host_directories": m.HostDirectories,
		"devices": m.Devices, "erase": m.Erase, "drop": m.Drop, "allow": m.Allow, "adopt": m.Adopt, "backup": m.Backup,
		"reconcile": m.Reconcile, "deletion_protection": m.DeletionProtection, "on_failure": m.OnFailure, "started": m.Started,
		"environment_wo_version": m.EnvironmentWOVersion, "entrypoint": m.Entrypoint, "networks": m.Networks, "cores": m.Cores,
		"cpulimit": m.CPULimit, "cpuunits": m.CPUUnits, "memory": m.Memory, "swap": m.Swap, "nameserver": m.Nameserver,
		"searchdomain": m.SearchDomain, "features": m.Features, "tags": m.Tags, "description": m.Description, "pool": m.Pool,
		"onboot": m.OnBoot, "startup": m.Startup, "protection": m.Protection, "console": m.Console,
	}
}

type (
	networkModel struct {
		Bridge   types.String  `tfsdk:"bridge"`
		Address  types.String  `tfsdk:"address"`
		Gateway  types.String  `tfsdk:"gateway"`
		Address6 types.String  `tfsdk:"address6"`
		Gateway6 types.String  `tfsdk:"gateway6"`
		MAC      types.String  `tfsdk:"mac"`
		Tag      types.Int64   `tfsdk:"tag"`
		MTU      types.Int64   `tfsdk:"mtu"`
		Firewall types.Bool    `tfsdk:"firewall"`
		Rate     types.Float64 `tfsdk:"rate"`
	}
	startupModel struct {
		Order types.Int64  `tfsdk:"order"`
		Up    types.String `tfsdk:"up"`
		Down  types.String `tfsdk:"down"`
	}
	consoleModel struct {
		Enabled types.Bool   `tfsdk:"enabled"`
		Mode    types.String `tfsdk:"mode"`
		TTYs    types.Int64  `tfsdk:"ttys"`
	}
	instanceVolumeModel struct {
		Storage  types.String `tfsdk:"storage"`
		Size     types.String `tfsdk:"size"`
		Backup   types.Bool   `tfsdk:"backup"`
		ReadOnly types.Bool   `tfsdk:"read_only"`
		Options  types.Set    `tfsdk:"options"`
	}
	hostDirectoryModel struct {
		Source   types.String `tfsdk:"source"`
		ReadOnly types.Bool   `tfsdk:"read_only"`
	}
	deviceModel struct {
		Path      types.String `tfsdk:"path"`
		Mode      types.String `tfsdk:"mode"`
		UID       types.Int64  `tfsdk:"uid"`
		GID       types.Int64  `tfsdk:"gid"`
		DenyWrite types.Bool   `tfsdk:"deny_write"`
	}
)
