package provider

import (
	"maps"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/objectvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

var (
	hostName  = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)
	ownedKey  = regexp.MustCompile(`^(mp|unused)(0|[1-9][0-9]{0,2})$`)
	configKey = regexp.MustCompile(`^[a-z][a-z0-9_.-]*$`)
	storageID = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]*[A-Za-z0-9]$`)
)

// guestAttributes are the attributes that every guest resource has. A kind adds its own.
func guestAttributes(own map[string]schema.Attribute) map[string]schema.Attribute {
	all := map[string]schema.Attribute{
		"vmid": schema.Int64Attribute{
			Required:            true,
			MarkdownDescription: "VMID of the guest. It cannot be changed: another guest is another resource.",
			Validators:          []validator.Int64{int64validator.Between(100, 999999999)},
		},
		"name": schema.StringAttribute{
			Required: true,
			MarkdownDescription: "The guest's name as it is now (a container's hostname). It is the check that `vmid` means the " +
				"right guest: when the guest calls itself otherwise, the plan is refused (`name_mismatch`).",
			Validators: []validator.String{stringvalidator.RegexMatches(hostName, "must be a host name")},
		},
		"triggers": schema.MapAttribute{
			ElementType:         types.StringType,
			Optional:            true,
			MarkdownDescription: "Any strings. A change makes a reinstall due.",
		},
		"erase": schema.MapAttribute{
			ElementType: types.StringType,
			Optional:    true,
			MarkdownDescription: "Volumes that may be erased with the guest: key to whole volume id, or `\"*\"` for whatever is " +
				"there. Volumes stay unless they are named here. An entry is used up by the operation that acted on it, since " +
				"Proxmox gives a freed disk number to the next volume; only `\"*\"` renews itself.",
			Validators: []validator.Map{
				mapvalidator.KeysAre(stringvalidator.RegexMatches(ownedKey, "must be the key of a volume, such as mp1 or unused0")),
				mapvalidator.ValueStringsAre(isConsented()),
			},
		},
		"drop": schema.SetAttribute{
			ElementType: types.StringType,
			Optional:    true,
			MarkdownDescription: "Keys that the new guest does without, such as `mp3` or `dev0`: what these credentials cannot set " +
				"again (bind mounts, devices, features, hook scripts, raw `lxc.*` lines). The data behind a dropped mount stays.",
			Validators: []validator.Set{setvalidator.ValueStringsAre(
				stringvalidator.RegexMatches(configKey, "must be a key of the guest's configuration, such as mp3 or dev0"))},
		},
		"allow": schema.SetAttribute{
			ElementType: types.StringType,
			Optional:    true,
			MarkdownDescription: "Codes of blockers that are waived: `guests_unseen`, `snapshots_present`, `ha_managed`, " +
				"`protected_backup`, `backup_window`.",
			Validators: []validator.Set{setvalidator.ValueStringsAre(isWaivable())},
		},
		"adopt": schema.BoolAttribute{
			Optional: true,
			MarkdownDescription: "Record a guest that has no record of its own as it is, as if it had been installed from this " +
				"configuration. Nothing is done to it. Once something is recorded this means nothing. Default: `false`.",
		},
		"rehearse_only": schema.BoolAttribute{
			Optional: true,
			MarkdownDescription: "Only rehearse: the new guest is made on a spare VMID, started, stopped and removed again. The " +
				"guest itself goes on running and the operation stays due. Default: `false`.",
		},
		"backup":       backupAttribute(),
		"stop":         stopAttribute(),
		"health_check": healthAttribute(),
		"reconcile":    reconcileAttribute(),
		"timeouts":     timeoutsAttribute(),
	}
	maps.Copy(all, computedAttributes())
	maps.Copy(all, own)
	return all
}

func timeoutsAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		Optional:            true,
		MarkdownDescription: "How long things may take.",
		Attributes: map[string]schema.Attribute{
			"operation": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Time for the whole operation, from its start; waiting for its turn does not count. Past " +
					"the point of no return an operation is finished even when its time is over. Default: `\"2h\"`.",
				Validators: []validator.String{isDuration()},
			},
		},
	}
}

func backupAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "Make a backup before anything is touched. It is protected, prunes nothing, and must be found on the " +
			"storage afterwards. Mounts whose volumes are kept anyway are left out of it.",
		Attributes: map[string]schema.Attribute{
			"storage": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "Storage for the archive.",
				Validators:          []validator.String{stringvalidator.RegexMatches(storageID, "must be the name of a storage")},
			},
			"mode": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "`snapshot`, `suspend` or `stop`. Default: `\"snapshot\"`.",
				Validators:          []validator.String{stringvalidator.OneOf("snapshot", "suspend", "stop")},
			},
			"compress": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "`zstd`, `gzip`, `lzo` or `0` for none. Default: `\"zstd\"`.",
				Validators:          []validator.String{stringvalidator.OneOf("0", "gzip", "lzo", "zstd")},
			},
			"keep": schema.Int64Attribute{
				Optional:            true,
				MarkdownDescription: "How many backups made by pvrx for this guest stay. Default: all.",
				Validators:          []validator.Int64{int64validator.AtLeast(1)},
			},
		},
	}
}

func stopAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		Optional:            true,
		MarkdownDescription: "How a running guest is stopped.",
		Attributes: map[string]schema.Attribute{
			"timeout": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Time to shut down. Default: `\"60s\"`.",
				Validators:          []validator.String{isDuration()},
			},
			"force": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "End it when it does not shut down in time; otherwise the operation is given up and undone. " +
					"Default: `false`.",
			},
		},
	}
}

func healthAttribute() schema.Attribute {
	address := schema.StringAttribute{
		Optional:            true,
		MarkdownDescription: "Address to ask. Default: one of the guest's own.",
		Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
	}
	port := schema.Int64Attribute{
		Required:            true,
		MarkdownDescription: "Port.",
		Validators:          []validator.Int64{int64validator.Between(1, 65535)},
	}
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "What must hold before the operation counts as done. Without it the guest must be seen running. A " +
			"guest that was stopped stays stopped and is not checked.",
		Attributes: map[string]schema.Attribute{
			"running_for": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "The guest must have been running for this long.",
				Validators:          []validator.String{isDuration()},
			},
			"tcp": schema.SingleNestedAttribute{
				Optional:            true,
				MarkdownDescription: "A TCP connection must be accepted.",
				Attributes:          map[string]schema.Attribute{"port": port, "address": address},
			},
			"http": schema.SingleNestedAttribute{
				Optional:            true,
				MarkdownDescription: "A page must be answered. Either this or `tcp`.",
				Validators:          []validator.Object{objectvalidator.ConflictsWith(path.MatchRelative().AtParent().AtName("tcp"))},
				Attributes: map[string]schema.Attribute{
					"port":    port,
					"address": address,
					"path": schema.StringAttribute{
						Optional:            true,
						MarkdownDescription: "Path of the page. Default: `\"/\"`.",
						Validators:          []validator.String{stringvalidator.RegexMatches(regexp.MustCompile(`^/`), "must start with /")},
					},
					"status": schema.Int64Attribute{
						Optional:            true,
						MarkdownDescription: "Status that must be answered. Default: any from 200 to 399.",
						Validators:          []validator.Int64{int64validator.Between(100, 599)},
					},
					"tls": schema.BoolAttribute{
						Optional:            true,
						MarkdownDescription: "Ask by HTTPS. The certificate is not verified. Default: `false`.",
					},
				},
			},
			"timeout": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Time to become healthy. Default: `\"2m\"`.",
				Validators:          []validator.String{isDuration()},
			},
		},
	}
}

func reconcileAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "What to do about one operation that stopped half-way. It is bound to that operation: when it is " +
			"finished, this means nothing and can be removed.",
		Attributes: map[string]schema.Attribute{
			"operation": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "Id of the operation, as the refused plan names it.",
				Validators:          []validator.String{isOperation()},
			},
			"action": schema.StringAttribute{
				Required: true,
				MarkdownDescription: "`resume` goes on, `rollback` goes back (to the operation's own backup, once the guest was " +
					"destroyed), `close` ends the record after you repaired things by hand.",
				Validators: []validator.String{stringvalidator.OneOf("resume", "rollback", "close")},
			},
		},
	}
}
