package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Schema describes the arguments, which mean what they mean on the resources, and the answer.
func (d *previewSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	names := schema.MapAttribute{ElementType: types.StringType, Optional: true}
	erase, triggers := names, names
	erase.MarkdownDescription = "As on the resource: key to volume id, or `\"*\"`."
	triggers.MarkdownDescription = "As on the resource; only for `due`."
	set := func(about string) schema.SetAttribute {
		return schema.SetAttribute{ElementType: types.StringType, Optional: true, MarkdownDescription: about}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "What reinstalling a container from a template, or rebuilding a VM, would do, asked without managing it.",
		Attributes: map[string]schema.Attribute{
			"vmid": schema.Int64Attribute{
				Required: true, MarkdownDescription: "VMID of the container or VM; with `replaces_vmid`, of the VM to be made.",
				Validators: []validator.Int64{int64validator.Between(100, 999999999)},
			},
			"template": schema.StringAttribute{
				Optional: true, MarkdownDescription: "For a container: volume id of the template.",
				Validators: []validator.String{stringvalidator.RegexMatches(templateID, "must be the whole volume id of a template")},
			},
			"name": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "The container's hostname, or the VM's name. When given, another one there is the blocker `name_mismatch`.",
			},
			"triggers": triggers,
			"rootfs": schema.SingleNestedAttribute{
				Optional: true, MarkdownDescription: "As on `pvrx_container_reinstall`.",
				Attributes: map[string]schema.Attribute{
					"storage": schema.StringAttribute{Optional: true, MarkdownDescription: "Storage."},
					"size":    schema.StringAttribute{Optional: true, MarkdownDescription: "Size with a unit.", Validators: []validator.String{isSize()}},
				},
			},
			"system_disks": schema.MapNestedAttribute{
				Optional:            true,
				MarkdownDescription: "For a VM: the disks that would be replaced, by key, as on `pvrx_vm_rebuild`.",
				Validators:          []validator.Map{mapvalidator.SizeAtLeast(1), mapvalidator.KeysAre(stringvalidator.RegexMatches(diskKey, "must be the key of a disk, such as scsi0"))},
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"image": schema.StringAttribute{
						Optional: true, MarkdownDescription: "Volume id of an image of content type `import`.",
						Validators: []validator.String{stringvalidator.RegexMatches(imageID, "must be the whole volume id of an image, such as local:import/debian-13.qcow2")},
					},
					"template": schema.SingleNestedAttribute{
						Optional: true, MarkdownDescription: "A disk of a template, or of another VM.",
						Attributes: map[string]schema.Attribute{
							"vmid": schema.Int64Attribute{Required: true, MarkdownDescription: "VMID of the template."},
							"disk": schema.StringAttribute{Required: true, MarkdownDescription: "Key of the disk there."},
						},
					},
					"blank":   schema.BoolAttribute{Optional: true, MarkdownDescription: "An empty disk."},
					"size":    schema.StringAttribute{Optional: true, MarkdownDescription: "Size with a unit.", Validators: []validator.String{isSize()}},
					"storage": schema.StringAttribute{Optional: true, MarkdownDescription: "Storage for the new disk."},
					"options": schema.MapAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: "Drive options."},
				}},
			},
			"replaces_vmid": schema.Int64Attribute{Optional: true, MarkdownDescription: "For a VM: the one that `vmid` would replace."},
			"identity": schema.StringAttribute{
				Optional: true, MarkdownDescription: "For a replacement: `copy` or `new`.",
				Validators: []validator.String{stringvalidator.OneOf("copy", "new")},
			},
			"snapshot": schema.BoolAttribute{Optional: true, MarkdownDescription: "For a VM: whether a snapshot of the kept disks would be taken."},
			"erase":    erase,
			"drop":     set("As on the resource."),
			"allow":    set("As on the resource."),
			"backup": schema.SingleNestedAttribute{
				Optional: true, MarkdownDescription: "As on the resource: whether there is room for one is judged too.",
				Attributes: map[string]schema.Attribute{
					"storage":  schema.StringAttribute{Required: true, MarkdownDescription: "Storage for the archive."},
					"mode":     schema.StringAttribute{Optional: true, MarkdownDescription: "`snapshot`, `suspend` or `stop`."},
					"compress": schema.StringAttribute{Optional: true, MarkdownDescription: "`zstd`, `gzip`, `lzo` or `0`."},
					"keep":     schema.Int64Attribute{Optional: true, MarkdownDescription: "How many of ours stay."},
				},
			},
			"node": schema.StringAttribute{Computed: true, MarkdownDescription: "Node that the guest is on."},
			"due": schema.BoolAttribute{
				Computed: true, MarkdownDescription: "Whether the guest records another install than this one, or none.",
			},
			"preview": schema.ObjectAttribute{
				Computed: true, AttributeTypes: previewType,
				MarkdownDescription: "What would happen, as in the resource's `preview`. What may not be seen is `unknown` and a blocker " +
					"that names the missing privilege.",
			},
			"volumes": schema.MapAttribute{
				Computed: true, ElementType: volumeType,
				MarkdownDescription: "Every volume by key: `volume`, `owner`, `data`, `mount`, `size_bytes`, `path`, `reason`.",
			},
		},
	}
}
