package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// previewSchema is the version of the preview's shape, for policies.
const previewSchema = 1

// The types of the computed objects. The schemas below describe the same objects for people.
var (
	blockerType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"code": types.StringType, "subject": types.StringType, "found": types.StringType, "remedy": types.StringType,
	}}
	previewType = map[string]attr.Type{
		"schema": types.Int64Type, "operation": types.StringType, "summary": types.StringType,
		"fates":  types.MapType{ElemType: types.StringType},
		"erased": types.MapType{ElemType: types.StringType}, "erased_bytes": types.Int64Type,
		"also_lost":     types.MapType{ElemType: types.StringType},
		"blockers":      types.ListType{ElemType: blockerType},
		"changes":       types.MapType{ElemType: types.StringType},
		"root_password": types.StringType, "precondition": types.StringType,
	}
	volumeType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"volume": types.StringType, "owner": types.Int64Type, "data": types.StringType, "mount": types.StringType,
		"size_bytes": types.Int64Type, "path": types.StringType, "reason": types.StringType,
	}}
	installedType = map[string]attr.Type{
		"template": types.StringType, "triggers": types.MapType{ElemType: types.StringType},
		"rootfs_storage": types.StringType, "when": types.StringType,
	}
	lastOperationType = map[string]attr.Type{
		"id": types.StringType, "kind": types.StringType, "summary": types.StringType, "status": types.StringType,
		"stage": types.StringType, "guest_exists": types.BoolType, "parking_vmid": types.Int64Type,
		"backup": types.StringType, "volumes": types.MapType{ElemType: volumeType},
	}
)

// computedAttributes are what every guest resource reports.
func computedAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"status": schema.StringAttribute{
			Computed: true,
			MarkdownDescription: "`ready`, `in_progress`, `needs_reconcile` (an operation stopped half-way; see `last_operation` and " +
				"`reconcile`), `awaiting_trust` (a VM's rebuild is done and waits for a verdict) or `rolled_back`.",
		},
		"node": schema.StringAttribute{
			Computed:            true,
			MarkdownDescription: "Node that the guest is on.",
		},
		"installed": schema.SingleNestedAttribute{
			Computed:            true,
			MarkdownDescription: "What the guest was made from, as its own notes record it. Null when nothing is recorded.",
			Attributes: map[string]schema.Attribute{
				"template":       schema.StringAttribute{Computed: true, MarkdownDescription: "Volume id of the template; of a VM, what each system disk was made from; of an application container, the image by its digest."},
				"triggers":       schema.MapAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: "The triggers then."},
				"rootfs_storage": schema.StringAttribute{Computed: true, MarkdownDescription: "Storage of the root file system."},
				"when":           schema.StringAttribute{Computed: true, MarkdownDescription: "Time of the install, RFC 3339 in UTC."},
			},
		},
		"preview": schema.SingleNestedAttribute{
			Computed: true,
			MarkdownDescription: "What the next apply does to the guest; null when that is nothing. It is forgotten at the next " +
				"refresh: outputs should read `last_operation`.",
			Attributes: previewAttributes(),
		},
		"last_operation": schema.SingleNestedAttribute{
			Computed:            true,
			MarkdownDescription: "The last operation of this resource: what was shown, and how far it came.",
			Attributes: map[string]schema.Attribute{
				"id":      schema.StringAttribute{Computed: true, MarkdownDescription: "Id, as `reconcile.operation` takes it."},
				"kind":    schema.StringAttribute{Computed: true, MarkdownDescription: "What was done: `reinstall`, `grow`, `resume` and so on."},
				"summary": schema.StringAttribute{Computed: true, MarkdownDescription: "The summary that the plan showed."},
				"status":  schema.StringAttribute{Computed: true, MarkdownDescription: "Status that it ended with."},
				"stage":   schema.StringAttribute{Computed: true, MarkdownDescription: "Stage that it stopped at; null when it came to its end."},
				"guest_exists": schema.BoolAttribute{
					Computed:            true,
					MarkdownDescription: "Whether the guest existed when it ended. Null: could not be determined.",
				},
				"parking_vmid": schema.Int64Attribute{Computed: true, MarkdownDescription: "Spare VMID where volumes wait; null when none do."},
				"backup":       schema.StringAttribute{Computed: true, MarkdownDescription: "Volume id of the backup that it made."},
				"volumes": schema.MapNestedAttribute{
					Computed:            true,
					MarkdownDescription: "What the plan showed for each volume.",
					NestedObject:        schema.NestedAttributeObject{Attributes: volumeAttributes()},
				},
			},
		},
	}
}

func previewAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"schema":    schema.Int64Attribute{Computed: true, MarkdownDescription: "Version of this object's shape, for policies."},
		"operation": schema.StringAttribute{Computed: true, MarkdownDescription: "`reinstall`, `grow`, `rebuild`, `replace`, `install`, `update`, `modify`, `adopt`, `remove`, `resume`, `rollback`, `rollback_data`, `accept` or `close`."},
		"summary":   schema.StringAttribute{Computed: true, MarkdownDescription: "One line that starts with the guest."},
		"fates": schema.MapAttribute{
			Computed:    true,
			ElementType: types.StringType,
			MarkdownDescription: "Key to one line for people: what happens to the data, what happens to the mount, size, volume, " +
				"path.",
		},
		"erased":       schema.MapAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: "Key to volume id of all that is erased."},
		"erased_bytes": schema.Int64Attribute{Computed: true, MarkdownDescription: "Size of all that is erased."},
		"also_lost": schema.MapAttribute{
			Computed:            true,
			ElementType:         types.StringType,
			MarkdownDescription: "What else a destroy takes away: `returns`, or `lost:` and why.",
		},
		"blockers": schema.ListNestedAttribute{
			Computed:            true,
			MarkdownDescription: "Reasons not to go on. Null when there are none.",
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"code":    schema.StringAttribute{Computed: true, MarkdownDescription: "Code, which never changes its word."},
				"subject": schema.StringAttribute{Computed: true, MarkdownDescription: "What it is about."},
				"found":   schema.StringAttribute{Computed: true, MarkdownDescription: "What was found."},
				"remedy":  schema.StringAttribute{Computed: true, MarkdownDescription: "What to do."},
			}},
		},
		"changes": schema.MapAttribute{
			Computed: true, ElementType: types.StringType,
			MarkdownDescription: "Of an application container: what is changed, from what to what, and what that takes. Null when nothing is.",
		},
		"root_password": schema.StringAttribute{
			Computed:            true,
			MarkdownDescription: "`given` or `none`: a saved plan that was made with a password is not applied without it.",
		},
		"precondition": schema.StringAttribute{
			Computed:            true,
			MarkdownDescription: "Hash of what the plan saw of the guest. The apply is refused when the guest differs.",
		},
	}
}

func volumeAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"volume":     schema.StringAttribute{Computed: true, MarkdownDescription: "Volume id, or path on the host."},
		"owner":      schema.Int64Attribute{Computed: true, MarkdownDescription: "VMID that the volume belongs to; null when it has none."},
		"data":       schema.StringAttribute{Computed: true, MarkdownDescription: "`erased`, `preserved`, `kept`, `excluded`, `host_managed` or `unknown`."},
		"mount":      schema.StringAttribute{Computed: true, MarkdownDescription: "`recreated`, `reattached`, `kept` or `dropped`."},
		"size_bytes": schema.Int64Attribute{Computed: true, MarkdownDescription: "Size; null when there is none to tell."},
		"path":       schema.StringAttribute{Computed: true, MarkdownDescription: "Mount path; `-` for unused volumes."},
		"reason":     schema.StringAttribute{Computed: true, MarkdownDescription: "Why."},
	}
}
