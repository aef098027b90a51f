package provider

import (
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

var (
	diskKey = regexp.MustCompile(`^(ide[0-3]|sata[0-5]|scsi([0-9]|[12][0-9]|30)|virtio([0-9]|1[0-5])|efidisk0|tpmstate0)$`)
	imageID = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]*:import/.+$`)
)

// vmRebuildSchema is the schema of pvrx_vm_rebuild.
func vmRebuildSchema() schema.Schema {
	vmid := []validator.Int64{int64validator.Between(100, 999999999)}
	return schema.Schema{
		MarkdownDescription: "Gives an existing virtual machine a clean operating system and keeps its data disks, in place or on a new VM. " +
			"A disk that `system_disks` does not name is never touched. Until you `accept`, the old system disks stay as the way back. " +
			"An operation is due when what the system disks shall be made from (or `triggers`) differs from what the VM records; importing, " +
			"creating and deleting the resource never touch it.",
		Attributes: guestAttributes(map[string]schema.Attribute{
			"vmid": schema.Int64Attribute{
				Required: true, Validators: vmid,
				MarkdownDescription: "VMID of the VM. To move to a new VM change it together with `replaces_vmid`; to give a replacement " +
					"up, put the old VMID back and take `replaces_vmid` out.",
			},
			"system_disks": schema.MapNestedAttribute{
				Required: true,
				MarkdownDescription: "The disks that are replaced, by key (`ide`, `sata`, `scsi`, `virtio`, `efidisk0`, `tpmstate0`), and what " +
					"each is made from: exactly one of `image`, `template` and `blank`. All other disks are kept.",
				Validators: []validator.Map{mapvalidator.SizeAtLeast(1), mapvalidator.KeysAre(stringvalidator.RegexMatches(diskKey, "must be the key of a disk, such as scsi0"))},
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"image": schema.StringAttribute{
						Optional:            true,
						MarkdownDescription: "Volume id of an image of content type `import` on the VM's node.",
						Validators:          []validator.String{stringvalidator.RegexMatches(imageID, "must be the whole volume id of an image, such as local:import/debian-13.qcow2")},
					},
					"template": schema.SingleNestedAttribute{
						Optional:            true,
						MarkdownDescription: "A disk of a template, or of another VM, on the same node. It is copied.",
						Attributes: map[string]schema.Attribute{
							"vmid": schema.Int64Attribute{Required: true, Validators: vmid, MarkdownDescription: "VMID of the template."},
							"disk": schema.StringAttribute{
								Required: true, MarkdownDescription: "Key of the disk there, such as `scsi0`.",
								Validators: []validator.String{stringvalidator.RegexMatches(diskKey, "must be the key of a disk, such as scsi0")},
							},
						},
					},
					"blank": schema.BoolAttribute{
						Optional:            true,
						MarkdownDescription: "An empty disk, for an installer or for scratch. It needs `size`, but for `efidisk0` and `tpmstate0`.",
					},
					"size": schema.StringAttribute{
						Optional: true, Validators: []validator.String{isSize()},
						MarkdownDescription: "Size with a unit, such as `\"32GiB\"`. Default: its source's.",
					},
					"storage": schema.StringAttribute{
						Optional:            true,
						MarkdownDescription: "Storage for the new disk. Default: the old disk's.",
						Validators:          []validator.String{stringvalidator.RegexMatches(storageID, "must be the name of a storage")},
					},
					"options": schema.MapAttribute{
						Optional: true, ElementType: types.StringType,
						MarkdownDescription: "Drive options as Proxmox names them, such as `{ discard = \"on\" }`. Default: the old disk's.",
					},
				}},
			},
			"erase": schema.MapAttribute{
				ElementType: types.StringType, Optional: true,
				MarkdownDescription: "Other disks that may go, and are not replaced: key to whole volume id, or `\"*\"`. They are set aside " +
					"like system disks and erased by `accept`.",
				Validators: []validator.Map{
					mapvalidator.KeysAre(stringvalidator.RegexMatches(diskKey, "must be the key of a disk, such as scsi2")),
					mapvalidator.ValueStringsAre(isConsented()),
				},
			},
			"replaces_vmid": schema.Int64Attribute{
				Optional: true, Validators: vmid,
				MarkdownDescription: "The VM that the one named by `vmid` takes the place of. It is then made with the old one's hardware, and the " +
					"kept disks are handed over by renaming. Default: rebuild in place.",
			},
			"identity": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.OneOf("copy", "new")},
				MarkdownDescription: "Of a replacement: `copy` keeps MAC addresses and smbios uuid and refuses to start while the old VM runs; " +
					"`new` makes new ones. Default: `\"copy\"`.",
			},
			"snapshot": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Take a snapshot of the kept disks once the system disks are off, so that `rollback_data` can return them. " +
					"Default: `false`.",
			},
			"cloud_init": schema.SingleNestedAttribute{
				Optional:            true,
				MarkdownDescription: "What the new system's cloud-init is given. What is left out stays as the VM has it.",
				Attributes: map[string]schema.Attribute{
					"regenerate": schema.BoolAttribute{Optional: true, MarkdownDescription: "Make the cloud-init drive anew when there is one. Default: `true`."},
					"user":       schema.StringAttribute{Optional: true, MarkdownDescription: "User to create.", Validators: []validator.String{stringvalidator.LengthAtLeast(1)}},
					"password_wo": schema.StringAttribute{
						Optional: true, Sensitive: true, WriteOnly: true, MarkdownDescription: "The user's password. It is stored nowhere by pvrx and never makes a rebuild due.",
						Validators: []validator.String{stringvalidator.LengthAtLeast(5)},
					},
					"ssh_public_keys": schema.ListAttribute{
						ElementType: types.StringType, Optional: true, MarkdownDescription: "Public keys for the user.",
						Validators: []validator.List{listvalidator.ValueStringsAre(stringvalidator.LengthAtLeast(1))},
					},
				},
			},
			"guards": schema.SingleNestedAttribute{
				Optional:            true,
				MarkdownDescription: "What must not be cut off.",
				Attributes: map[string]schema.Attribute{
					"state_backend_vmid": schema.Int64Attribute{
						Optional: true, Validators: vmid,
						MarkdownDescription: "The VM that holds the state of this run: it is refused (`holds_state`).",
					},
				},
			},
			"health_check": vmHealthAttribute(),
			"reconcile": schema.SingleNestedAttribute{
				Optional: true,
				MarkdownDescription: "What to do about one operation that stopped half-way or waits for trust. It is bound to that operation: " +
					"when it is over, this means nothing and can be removed.",
				Attributes: map[string]schema.Attribute{
					"operation": schema.StringAttribute{
						Required: true, MarkdownDescription: "Id of the operation, as the plan or `last_operation` names it.",
						Validators: []validator.String{isOperation()},
					},
					"action": schema.StringAttribute{
						Required: true,
						MarkdownDescription: "`accept` erases what was the way back; `rollback` gives the old system back; `rollback_data` also returns the " +
							"kept disks to the snapshot; `resume` goes on; `close` ends the record after you repaired things by hand.",
						Validators: []validator.String{stringvalidator.OneOf("accept", "rollback", "rollback_data", "resume", "close")},
					},
				},
			},
		}),
	}
}

// vmHealthAttribute adds what only VMs have to the health check.
func vmHealthAttribute() schema.Attribute {
	common, ok := healthAttribute().(schema.SingleNestedAttribute)
	if !ok {
		return healthAttribute()
	}
	common.Attributes["guest_agent"] = schema.BoolAttribute{
		Optional: true, MarkdownDescription: "The QEMU guest agent must answer. Default: `false`.",
	}
	common.Attributes["ssh"] = schema.SingleNestedAttribute{
		Optional:            true,
		MarkdownDescription: "An SSH server must greet.",
		Attributes: map[string]schema.Attribute{
			"port": schema.Int64Attribute{
				Required: true, MarkdownDescription: "Port.", Validators: []validator.Int64{int64validator.Between(1, 65535)},
			},
			"address": schema.StringAttribute{
				Optional: true, MarkdownDescription: "Address to ask. Default: one of the VM's own.", Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
			},
		},
	}
	return common
}
