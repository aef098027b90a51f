package provider

import (
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

var templateID = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]*:vztmpl/[^/]+$`)

// containerReinstallSchema is the schema of pvrx_container_reinstall.
func containerReinstallSchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "Reinstalls an existing container from a template under the VMID it has, and keeps its data volumes. " +
			"An operation is due when the wanted install (`template`, `triggers`, `rootfs.storage`) differs from the one the " +
			"container records; importing, creating and deleting the resource never touch the container.",
		Attributes: guestAttributes(map[string]schema.Attribute{
			"template": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "Volume id of the template, on the container's node: `local:vztmpl/debian-13-standard_13.1-1_amd64.tar.zst`.",
				Validators: []validator.String{stringvalidator.RegexMatches(templateID,
					"must be the whole volume id of a template, such as local:vztmpl/debian-13-standard_13.1-1_amd64.tar.zst")},
			},
			"rootfs": schema.SingleNestedAttribute{
				Optional:            true,
				MarkdownDescription: "The new root file system. Default: as it is now.",
				Attributes: map[string]schema.Attribute{
					"storage": schema.StringAttribute{
						Optional:            true,
						MarkdownDescription: "Storage. Another one than now makes a reinstall due; leaving it out never does.",
						Validators:          []validator.String{stringvalidator.RegexMatches(storageID, "must be the name of a storage")},
					},
					"size": schema.StringAttribute{
						Optional: true,
						MarkdownDescription: "Size with a unit: `\"9GiB\"`, or K, M, G, T as Proxmox writes them. A larger size alone grows " +
							"the volume in place. It never shrinks: a smaller size is refused when a reinstall is due.",
						Validators: []validator.String{isSize()},
					},
				},
			},
			"root_password_wo": schema.StringAttribute{
				Optional:            true,
				Sensitive:           true,
				WriteOnly:           true,
				MarkdownDescription: "Password of root in the new system. It is stored nowhere and never makes a reinstall due.",
				Validators:          []validator.String{stringvalidator.LengthAtLeast(5)},
			},
			"ssh_public_keys": schema.ListAttribute{
				ElementType:         types.StringType,
				Optional:            true,
				WriteOnly:           true,
				MarkdownDescription: "Public keys for root in the new system. They are stored nowhere and never make a reinstall due.",
				Validators:          []validator.List{listvalidator.ValueStringsAre(stringvalidator.LengthAtLeast(1))},
			},
		}),
	}
}
