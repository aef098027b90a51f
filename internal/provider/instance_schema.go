package provider

import (
	"maps"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-validators/float64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

var (
	networkKey  = regexp.MustCompile(`^net([0-9]|[12][0-9]|3[01])$`)
	deviceKey   = regexp.MustCompile(`^dev(0|[1-9][0-9]{0,2})$`)
	bridgeName  = regexp.MustCompile(`^[-_.A-Za-z0-9]+$`)
	macAddress  = regexp.MustCompile(`^[0-9A-Fa-f][02468ACEace](:[0-9A-Fa-f]{2}){5}$`)
	featureForm = regexp.MustCompile(`^(nesting|keyctl|fuse|mknod|force_rw_sys)$|^mount=[a-zA-Z0-9_]+(;[a-zA-Z0-9_]+)*$`)
	tagForm     = regexp.MustCompile(`^[a-z0-9_][a-z0-9_.+-]*$`)
	deviceMode  = regexp.MustCompile(`^0[0-7]{3}$`)
)

// instanceSchema is the schema of pvrx_oci_instance.
func instanceSchema() schema.Schema {
	attributes := map[string]schema.Attribute{
		"vmid": schema.Int64Attribute{
			Required:            true,
			MarkdownDescription: "VMID of the container. It cannot be changed: another container is another resource.",
			Validators:          []validator.Int64{int64validator.Between(100, 999999999)},
		},
		"hostname": schema.StringAttribute{
			Required:            true,
			MarkdownDescription: "Host name of the container. A container that is there already is only taken up when it has this name.",
			Validators:          []validator.String{stringvalidator.RegexMatches(hostName, "must be a host name"), stringvalidator.LengthAtMost(255)},
		},
		"node": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "Node to make the container on. It is needed while the container does not exist, and means nothing " +
				"afterwards: a container that was migrated is followed (`current_node`).",
			Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
		},
		"archive_storage": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "Storage with content `vztmpl` that the image's archive is uploaded to. Default: the node's only one; " +
				"where there are several the plan is refused and lists them.",
			Validators: []validator.String{stringvalidator.RegexMatches(storageID, "must be the name of a storage")},
		},
		"rootfs": schema.SingleNestedAttribute{
			Optional:            true,
			MarkdownDescription: "The root file system. Everything in it is gone after an update.",
			Attributes: map[string]schema.Attribute{
				"storage": schema.StringAttribute{
					Optional:            true,
					MarkdownDescription: "Storage. Default: the node's only one with content `rootdir`. Another one than now makes an update due.",
					Validators:          []validator.String{stringvalidator.RegexMatches(storageID, "must be the name of a storage")},
				},
				"size": schema.StringAttribute{
					Optional:            true,
					MarkdownDescription: "Size with a unit, such as `\"8GiB\"`. Default: `\"4GiB\"`. It never shrinks.",
					Validators:          []validator.String{isSize()},
				},
			},
		},
		"started": schema.BoolAttribute{
			Optional:            true,
			MarkdownDescription: "Whether the container shall run. Default: `true`.",
		},
		"health_check": healthAttribute(),
		"on_failure": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "What an update does when the new container is not healthy: `rollback` makes the container again from " +
				"the image it had, with its volumes as they are by then; `hold` leaves it as `needs_reconcile`. Default: `\"rollback\"`.",
			Validators: []validator.String{stringvalidator.OneOf("rollback", "hold")},
		},
		"backup":    backupAttribute(),
		"stop":      stopAttribute(),
		"reconcile": reconcileAttribute(),
		"deletion_protection": schema.BoolAttribute{
			Optional: true,
			MarkdownDescription: "Refuse to remove the container with this resource. To remove it set this to `false`, apply, and then " +
				"remove the block. Default: `true`.",
		},
		"timeouts": timeoutsAttribute(),
	}
	maps.Copy(attributes, instanceImageAttributes())
	maps.Copy(attributes, instanceSettingAttributes())
	maps.Copy(attributes, instanceDataAttributes())
	maps.Copy(attributes, instanceConsentAttributes())
	maps.Copy(attributes, instanceComputedAttributes())
	return schema.Schema{
		MarkdownDescription: "An application container made from an OCI image: installs, updates, changes and removes it. An update makes the " +
			"container again from the new image under the same VMID and keeps its volumes; when it is not healthy afterwards, it is " +
			"made again from the image before. The image is pinned by its digest.",
		Attributes: attributes,
	}
}

func instanceImageAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"image": schema.StringAttribute{
			Required: true,
			MarkdownDescription: "The image: `docker.io/library/nginx:1.27`, `…@sha256:…`, or both. A tag is resolved when this argument " +
				"changes, and the digest is recorded; a tag that moves later only sets `update_available`.",
			Validators: []validator.String{isImage()},
		},
		"platform": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "Platform to take from an image of several: `linux/arm64`, `linux/arm64/v8`. It cannot change afterwards. " +
				"Default: what the node has, and `\"linux/amd64\"` where the login may not ask (`Sys.Audit` on the node).",
			Validators: []validator.String{isPlatform()},
		},
		"update": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "`pinned` stays at the recorded digest until `image` changes; `follow` resolves the tag at every plan, and " +
				"another digest makes an update due. Default: `\"pinned\"`.",
			Validators: []validator.String{stringvalidator.OneOf("pinned", "follow")},
		},
		"triggers": schema.MapAttribute{
			ElementType:         types.StringType,
			Optional:            true,
			MarkdownDescription: "Any strings. A change makes an update due, from the digest that is recorded.",
		},
		"entrypoint": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "Command line to start instead of the image's entrypoint and command, quoted as for a shell: " +
				"`\"/usr/bin/app --config '/etc/my app.conf'\"`.",
			Validators: []validator.String{stringvalidator.LengthAtLeast(1), isPrintable()},
		},
		"environment": schema.MapAttribute{
			ElementType: types.StringType,
			Optional:    true,
			MarkdownDescription: "Variables over those of the image. A variable that is taken out here, or that a new image does not have, is " +
				"gone. `PVRX_CONTRACT` is pvrx's own.",
			Validators: []validator.Map{mapvalidator.KeysAre(isVariable()), mapvalidator.ValueStringsAre(isValue())},
		},
		"environment_wo": schema.MapAttribute{
			ElementType: types.StringType,
			Optional:    true,
			Sensitive:   true,
			WriteOnly:   true,
			MarkdownDescription: "Secret variables: in no plan and no state. Whoever has `VM.Audit` with `VM.Config.Options` on the container, or " +
				"a backup of it, can read them. A change is written when `environment_wo_version` changes too, or with the next update.",
			Validators: []validator.Map{mapvalidator.KeysAre(isVariable()), mapvalidator.ValueStringsAre(isValue())},
		},
		"environment_wo_version": schema.Int64Attribute{
			Optional:            true,
			MarkdownDescription: "Any number; a change writes `environment_wo` anew.",
			Validators:          []validator.Int64{int64validator.AtLeast(0)},
		},
	}
}

func instanceSettingAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"cores": schema.Int64Attribute{
			Optional: true, MarkdownDescription: "Cores. What is left out of `cores`, `cpulimit`, `cpuunits`, `memory` and `swap` may be changed elsewhere and stays.",
			Validators: []validator.Int64{int64validator.Between(1, 8192)},
		},
		"cpulimit": schema.Float64Attribute{
			Optional: true, MarkdownDescription: "Limit of processor time, in cores; 0 for none.",
			Validators: []validator.Float64{float64validator.Between(0, 8192)},
		},
		"cpuunits": schema.Int64Attribute{
			Optional: true, MarkdownDescription: "Weight of processor time against other guests.",
			Validators: []validator.Int64{int64validator.Between(0, 500000)},
		},
		"memory": schema.StringAttribute{
			Optional: true, MarkdownDescription: "Memory with a unit, such as `\"512MiB\"`.", Validators: []validator.String{isMemory(16)},
		},
		"swap": schema.StringAttribute{
			Optional: true, MarkdownDescription: "Swap with a unit, or `\"0\"` for none.", Validators: []validator.String{isMemory(0)},
		},
		"networks": schema.MapNestedAttribute{
			Optional:            true,
			MarkdownDescription: "Network interfaces, by key: `net0` is `eth0` in the container. One that is taken out of here goes; one that somebody else added stays.",
			Validators:          []validator.Map{mapvalidator.KeysAre(stringvalidator.RegexMatches(networkKey, "must be the key of a network, net0 to net31"))},
			NestedObject:        schema.NestedAttributeObject{Attributes: networkAttributes()},
		},
		"nameserver": schema.StringAttribute{
			Optional: true, MarkdownDescription: "Name servers, separated by spaces. Default: the node's.", Validators: []validator.String{isAddressList()},
		},
		"searchdomain": schema.StringAttribute{
			Optional: true, MarkdownDescription: "Search domains, separated by spaces. Default: the node's.",
			Validators: []validator.String{stringvalidator.RegexMatches(regexp.MustCompile(`^[A-Za-z0-9.-]+( [A-Za-z0-9.-]+)*$`), "must be domain names, separated by one space")},
		},
		"features": schema.SetAttribute{
			ElementType: types.StringType, Optional: true,
			MarkdownDescription: "Features, such as `nesting` or `mount=nfs`. All but `nesting` need a login of `root@pam` with its password.",
			Validators: []validator.Set{setvalidator.ValueStringsAre(stringvalidator.RegexMatches(featureForm,
				"must be nesting, keyctl, fuse, mknod, force_rw_sys, or mount= and kinds of file systems"))},
		},
		"tags": schema.SetAttribute{
			ElementType: types.StringType, Optional: true, MarkdownDescription: "Tags, in lower case.",
			Validators: []validator.Set{setvalidator.ValueStringsAre(stringvalidator.RegexMatches(tagForm, "must be a tag in lower case"))},
		},
		"description": schema.StringAttribute{
			Optional: true, MarkdownDescription: "Notes. The record that pvrx keeps stands beside them.",
			Validators: []validator.String{stringvalidator.LengthBetween(1, 4096)},
		},
		"pool": schema.StringAttribute{
			Optional: true, MarkdownDescription: "Pool.", Validators: []validator.String{stringvalidator.RegexMatches(poolForm, "must be the name of a pool")},
		},
		"onboot": schema.BoolAttribute{Optional: true, MarkdownDescription: "Start with the node."},
		"startup": schema.SingleNestedAttribute{
			Optional: true, MarkdownDescription: "Order among the guests of a node when it starts and shuts down.",
			Attributes: map[string]schema.Attribute{
				"order": schema.Int64Attribute{Optional: true, MarkdownDescription: "Place in the order.", Validators: []validator.Int64{int64validator.AtLeast(0)}},
				"up":    schema.StringAttribute{Optional: true, MarkdownDescription: "Time to wait before the next guest is started.", Validators: []validator.String{isDuration()}},
				"down":  schema.StringAttribute{Optional: true, MarkdownDescription: "Time to wait for its shutdown.", Validators: []validator.String{isDuration()}},
			},
		},
		"protection": schema.BoolAttribute{
			Optional: true, MarkdownDescription: "Proxmox's own protection: while it is on, neither an update nor a removal is possible.",
		},
		"console": schema.SingleNestedAttribute{
			Optional: true, MarkdownDescription: "The console. A change takes a restart.",
			Attributes: map[string]schema.Attribute{
				"enabled": schema.BoolAttribute{Optional: true, MarkdownDescription: "Attach a console device."},
				"mode": schema.StringAttribute{
					Optional: true, MarkdownDescription: "`console`, `shell` or `tty`.", Validators: []validator.String{stringvalidator.OneOf("console", "shell", "tty")},
				},
				"ttys": schema.Int64Attribute{Optional: true, MarkdownDescription: "Number of terminals.", Validators: []validator.Int64{int64validator.Between(0, 6)}},
			},
		},
	}
}

func networkAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"bridge": schema.StringAttribute{
			Required: true, MarkdownDescription: "Bridge or virtual network.", Validators: []validator.String{stringvalidator.RegexMatches(bridgeName, "must be the name of a bridge")},
		},
		"address":  schema.StringAttribute{Optional: true, MarkdownDescription: "IPv4: `dhcp`, `manual`, or an address with its prefix, `10.0.0.5/24`.", Validators: []validator.String{isInterfaceAddress(4)}},
		"gateway":  schema.StringAttribute{Optional: true, MarkdownDescription: "IPv4 gateway.", Validators: []validator.String{isAddress(4)}},
		"address6": schema.StringAttribute{Optional: true, MarkdownDescription: "IPv6: `dhcp`, `auto`, `manual`, or an address with its prefix.", Validators: []validator.String{isInterfaceAddress(6)}},
		"gateway6": schema.StringAttribute{Optional: true, MarkdownDescription: "IPv6 gateway.", Validators: []validator.String{isAddress(6)}},
		"mac": schema.StringAttribute{
			Optional: true, MarkdownDescription: "Hardware address. Default: one that Proxmox makes, and that updates keep.",
			Validators: []validator.String{stringvalidator.RegexMatches(macAddress, "must be a unicast hardware address such as bc:24:11:01:02:03")},
		},
		"tag":      schema.Int64Attribute{Optional: true, MarkdownDescription: "VLAN.", Validators: []validator.Int64{int64validator.Between(1, 4094)}},
		"mtu":      schema.Int64Attribute{Optional: true, MarkdownDescription: "MTU.", Validators: []validator.Int64{int64validator.Between(64, 65535)}},
		"firewall": schema.BoolAttribute{Optional: true, MarkdownDescription: "Whether the container's firewall watches it."},
		"rate":     schema.Float64Attribute{Optional: true, MarkdownDescription: "Limit in megabytes a second.", Validators: []validator.Float64{float64validator.AtLeast(0)}},
	}
}

func instanceDataAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"volumes": schema.MapNestedAttribute{
			Optional: true,
			MarkdownDescription: "Volumes, by path in the container. They are kept by every update. A new one is empty, belongs to root and holds " +
				"`lost+found`. One that is taken out of here goes only when `erase` names it.",
			Validators: []validator.Map{mapvalidator.KeysAre(isMountPath())},
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"storage": schema.StringAttribute{
					Required: true, MarkdownDescription: "Storage. A volume is never moved to another one.",
					Validators: []validator.String{stringvalidator.RegexMatches(storageID, "must be the name of a storage")},
				},
				"size": schema.StringAttribute{
					Required: true, MarkdownDescription: "Size with a unit. A larger one grows the volume in place; it never shrinks.", Validators: []validator.String{isSize()},
				},
				"backup":    schema.BoolAttribute{Optional: true, MarkdownDescription: "Whether Proxmox's backups of the container hold it. Default: `true`."},
				"read_only": schema.BoolAttribute{Optional: true, MarkdownDescription: "Mount it read-only. Default: `false`."},
				"options": schema.SetAttribute{
					ElementType: types.StringType, Optional: true, MarkdownDescription: "Mount options: `discard`, `lazytime`, `noatime`, `nodev`, `noexec`, `nosuid`.",
					Validators: []validator.Set{setvalidator.ValueStringsAre(stringvalidator.OneOf("discard", "lazytime", "noatime", "nodev", "noexec", "nosuid"))},
				},
			}},
		},
		"host_directories": schema.MapNestedAttribute{
			Optional: true,
			MarkdownDescription: "Directories of the node, by path in the container. They need a login of `root@pam` with its password. They are " +
				"outside of every update, rollback and backup.",
			Validators: []validator.Map{mapvalidator.KeysAre(isMountPath())},
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"source":    schema.StringAttribute{Required: true, MarkdownDescription: "Directory on the node.", Validators: []validator.String{isMountPath()}},
				"read_only": schema.BoolAttribute{Optional: true, MarkdownDescription: "Mount it read-only. Default: `false`."},
			}},
		},
		"devices": schema.MapNestedAttribute{
			Optional:            true,
			MarkdownDescription: "Devices of the node, by key: `dev0`. They need a login of `root@pam` with its password.",
			Validators:          []validator.Map{mapvalidator.KeysAre(stringvalidator.RegexMatches(deviceKey, "must be the key of a device, such as dev0"))},
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"path": schema.StringAttribute{
					Required: true, MarkdownDescription: "Device on the node: `/dev/ttyUSB0`.",
					Validators: []validator.String{stringvalidator.RegexMatches(regexp.MustCompile(`^/dev/[^,\s]+$`), "must be a path below /dev")},
				},
				"mode": schema.StringAttribute{
					Optional: true, MarkdownDescription: "Access mode in the container: `\"0660\"`.", Validators: []validator.String{stringvalidator.RegexMatches(deviceMode, "must be an access mode such as 0660")},
				},
				"uid":        schema.Int64Attribute{Optional: true, MarkdownDescription: "Owner in the container.", Validators: []validator.Int64{int64validator.AtLeast(0)}},
				"gid":        schema.Int64Attribute{Optional: true, MarkdownDescription: "Group in the container.", Validators: []validator.Int64{int64validator.AtLeast(0)}},
				"deny_write": schema.BoolAttribute{Optional: true, MarkdownDescription: "Refuse to write to it."},
			}},
		},
	}
}

func instanceConsentAttributes() map[string]schema.Attribute {
	shared := guestAttributes(nil)
	return map[string]schema.Attribute{
		"erase": schema.MapAttribute{
			ElementType: types.StringType,
			Optional:    true,
			MarkdownDescription: "Volumes that may go, because `volumes` does not name them any more: key to whole volume id, or `\"*\"`. An entry " +
				"is used up by the operation that acted on it.",
			Validators: []validator.Map{
				mapvalidator.KeysAre(stringvalidator.RegexMatches(ownedKey, "must be the key of a volume, such as mp1 or unused0")),
				mapvalidator.ValueStringsAre(isConsented()),
			},
		},
		"drop": shared["drop"],
		"allow": schema.SetAttribute{
			ElementType:         types.StringType,
			Optional:            true,
			MarkdownDescription: "Codes of blockers that are waived: `image_volume_unbacked`, `guests_unseen`, `snapshots_present`, `ha_managed`, `protected_backup`, `backup_window`.",
			Validators:          []validator.Set{setvalidator.ValueStringsAre(isWaivable())},
		},
		"adopt": schema.BoolAttribute{
			Optional: true,
			MarkdownDescription: "Take up a container as it is that was restored under another VMID, restored over itself, or rolled back to a " +
				"snapshot. Only the record in its notes is written. Once that is done this means nothing. Default: `false`.",
		},
	}
}

func instanceComputedAttributes() map[string]schema.Attribute {
	shared := computedAttributes()
	return map[string]schema.Attribute{
		"status":         shared["status"],
		"installed":      shared["installed"],
		"preview":        shared["preview"],
		"last_operation": shared["last_operation"],
		"current_node":   schema.StringAttribute{Computed: true, MarkdownDescription: "Node that the container is on."},
		"digest": schema.StringAttribute{
			Computed: true, MarkdownDescription: "Digest that the container is made from, as the reference named it: of an index of several platforms, or of a manifest.",
		},
		"platform_digest": schema.StringAttribute{Computed: true, MarkdownDescription: "Digest of the platform's own manifest."},
		"available_digest": schema.StringAttribute{
			Computed: true, MarkdownDescription: "Digest that the reference in `image` names in the registry now. Null when the registry could not say.",
		},
		"update_available": schema.BoolAttribute{
			Computed: true, MarkdownDescription: "Whether the reference names another digest now. Null when the registry could not say.",
		},
		"addresses": schema.MapAttribute{
			Computed: true, ElementType: types.ListType{ElemType: types.StringType},
			MarkdownDescription: "Addresses that the container's interfaces have, by network key. Empty while it does not run.",
		},
	}
}
