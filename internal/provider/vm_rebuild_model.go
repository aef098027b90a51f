package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
)

// vmRebuildModel is pvrx_vm_rebuild.
type vmRebuildModel struct {
	guestModel

	SystemDisks  types.Map    `tfsdk:"system_disks"`
	ReplacesVMID types.Int64  `tfsdk:"replaces_vmid"`
	Identity     types.String `tfsdk:"identity"`
	Snapshot     types.Bool   `tfsdk:"snapshot"`
	CloudInit    types.Object `tfsdk:"cloud_init"`
	Guards       types.Object `tfsdk:"guards"`
}

type (
	systemDiskModel struct {
		Image    types.String       `tfsdk:"image"`
		Template *templateDiskModel `tfsdk:"template"`
		Blank    types.Bool         `tfsdk:"blank"`
		Size     types.String       `tfsdk:"size"`
		Storage  types.String       `tfsdk:"storage"`
		Options  types.Map          `tfsdk:"options"`
	}
	templateDiskModel struct {
		VMID types.Int64  `tfsdk:"vmid"`
		Disk types.String `tfsdk:"disk"`
	}
	cloudInitModel struct {
		Regenerate    types.Bool   `tfsdk:"regenerate"`
		User          types.String `tfsdk:"user"`
		PasswordWO    types.String `tfsdk:"password_wo"`
		SSHPublicKeys types.List   `tfsdk:"ssh_public_keys"`
	}
	guardsModel struct {
		StateBackendVMID types.Int64 `tfsdk:"state_backend_vmid"`
	}
)

// want adds to what is common what a VM is rebuilt from.
func (m *vmRebuildModel) want(ctx context.Context, w *wanted) (diags diag.Diagnostics) {
	vm := preview.VMWant{
		SystemDisks: map[string]preview.SystemDisk{}, Replaces: guest.VMID(m.ReplacesVMID.ValueInt64()),
		NewIdentity: m.Identity.ValueString() == "new", Snapshot: m.Snapshot.ValueBool(),
	}
	w.VM = &vm
	for key, element := range m.SystemDisks.Elements() {
		object, ok := element.(types.Object)
		if !ok || object.IsUnknown() {
			w.sourceUnknown = true
			continue
		}
		var d systemDiskModel
		diags.Append(part(ctx, object, &d)...)
		disk, unknown, more := d.want(ctx, path.Root("system_disks").AtMapKey(key))
		diags.Append(more...)
		vm.SystemDisks[key] = disk
		w.sourceUnknown = w.sourceUnknown || unknown
	}
	var c cloudInitModel
	diags.Append(part(ctx, m.CloudInit, &c)...)
	vm.Cloud = preview.CloudInit{Keep: !c.Regenerate.IsNull() && !c.Regenerate.ValueBool(), User: c.User.ValueString(), PasswordGiven: !c.PasswordWO.IsNull()}
	if !c.SSHPublicKeys.IsNull() && !c.SSHPublicKeys.IsUnknown() {
		diags.Append(c.SSHPublicKeys.ElementsAs(ctx, &vm.Cloud.Keys, false)...)
	}
	w.PasswordGiven, w.password = vm.Cloud.PasswordGiven, c.PasswordWO.ValueString()
	var g guardsModel
	diags.Append(part(ctx, m.Guards, &g)...)
	vm.StateBackend = guest.VMID(g.StateBackendVMID.ValueInt64())
	return diags
}

// want turns one disk into values; unknown says that what it is made from is not known yet.
func (d systemDiskModel) want(ctx context.Context, at path.Path) (disk preview.SystemDisk, unknown bool, diags diag.Diagnostics) {
	disk = preview.SystemDisk{Image: d.Image.ValueString(), Blank: d.Blank.ValueBool(), Storage: d.Storage.ValueString()}
	unknown = d.Image.IsUnknown()
	given := 0
	for _, is := range []bool{!d.Image.IsNull(), d.Template != nil, d.Blank.ValueBool()} {
		if is {
			given++
		}
	}
	if given != 1 {
		diags.AddAttributeError(at, "one of image, template and blank makes a disk", "Give exactly one of image, template and blank = true.")
	}
	if d.Template != nil {
		disk.Template = preview.TemplateDisk{VMID: guest.VMID(d.Template.VMID.ValueInt64()), Disk: d.Template.Disk.ValueString()}
		unknown = unknown || d.Template.VMID.IsUnknown()
	}
	if text := d.Size.ValueString(); text != "" {
		size, err := guest.ParseRequest(text)
		if err != nil {
			diags.AddAttributeError(at.AtName("size"), "size is not usable", sentence(err.Error()))
		}
		disk.Size, disk.SizeText = size, text
	}
	if !d.Options.IsNull() {
		disk.Options = map[string]string{}
		diags.Append(texts(ctx, d.Options, &disk.Options)...)
	}
	return disk, unknown, diags
}

// moves reports whether a changed vmid means what only a VM's can mean: a replacement, or giving one up.
func (m *vmRebuildModel) moves(to *vmRebuildModel) bool {
	replaced := !to.ReplacesVMID.IsNull() && to.ReplacesVMID.Equal(m.VMID)
	givenUp := to.ReplacesVMID.IsNull() && !m.ReplacesVMID.IsNull() && to.VMID.Equal(m.ReplacesVMID)
	return replaced || givenUp
}

func (m *vmRebuildModel) decisiveVM() map[string]attr.Value {
	return map[string]attr.Value{
		"replaces_vmid": m.ReplacesVMID, "identity": m.Identity, "snapshot": m.Snapshot, "guards": m.Guards,
	}
}
