package provider

import (
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

var (
	tokenForm       = regexp.MustCompile(`^[^@!=\s]+@[^@!=\s]+![^@!=\s]+=\S+$`)
	fingerprintForm = regexp.MustCompile(`^([0-9A-Fa-f]{2}:?){31}[0-9A-Fa-f]{2}$`)
	poolForm        = regexp.MustCompile(`^[A-Za-z0-9._/-]+$`)
)

// providerSchema describes the provider block. Everything can be left out where the environment says it.
func providerSchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "Reinstalls Proxmox VE guests in place and keeps the data that should stay.",
		Attributes: map[string]schema.Attribute{
			"endpoint": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Address of a node: `https://pve1.example.org:8006`. Environment: `PVRX_ENDPOINT`.",
				Validators:          []validator.String{isEndpoint()},
			},
			"additional_endpoints": schema.ListAttribute{
				ElementType:         types.StringType,
				Optional:            true,
				MarkdownDescription: "Other nodes of the same cluster, which stand in when one does not answer.",
				Validators:          []validator.List{listvalidator.ValueStringsAre(isEndpoint())},
			},
			"api_token": schema.StringAttribute{
				Optional:            true,
				Sensitive:           true,
				MarkdownDescription: "API token as Proxmox writes it: `user@realm!name=secret`. Environment: `PVRX_API_TOKEN`.",
				Validators:          []validator.String{stringvalidator.RegexMatches(tokenForm, "must have the form user@realm!name=secret")},
			},
			"username": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Instead of a token, a user with realm: `root@pam` may set what Proxmox lets no token set. " +
					"Environment: `PVRX_USERNAME`.",
				Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"password": schema.StringAttribute{
				Optional:            true,
				Sensitive:           true,
				MarkdownDescription: "Password of `username`. Environment: `PVRX_PASSWORD`.",
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"tls": schema.SingleNestedAttribute{
				Optional:            true,
				MarkdownDescription: "How the server's certificate is verified. Default: by the system's authorities.",
				Attributes: map[string]schema.Attribute{
					"ca_file": schema.StringAttribute{
						Optional:            true,
						MarkdownDescription: "File with PEM certificates to trust instead. Environment: `PVRX_CA_FILE`.",
						Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
					},
					"ca_certificate": schema.StringAttribute{
						Optional:            true,
						MarkdownDescription: "PEM certificates to trust instead, as text.",
						Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
					},
					"fingerprint": schema.StringAttribute{
						Optional:            true,
						MarkdownDescription: "SHA-256 fingerprint of the server's certificate; it replaces all other checks. Environment: `PVRX_FINGERPRINT`.",
						Validators: []validator.String{stringvalidator.RegexMatches(fingerprintForm,
							"must be 32 bytes in hexadecimal, with or without colons")},
					},
					"insecure": schema.BoolAttribute{
						Optional:            true,
						MarkdownDescription: "Accept any certificate. Default: `false`. Environment: `PVRX_INSECURE`.",
					},
				},
			},
			"max_concurrent_operations": schema.Int64Attribute{
				Optional: true,
				MarkdownDescription: "How many guests are worked on at once. Time spent waiting for a turn counts against no " +
					"timeout. Default: `1`.",
				Validators: []validator.Int64{int64validator.Between(1, 100)},
			},
			"stop_after_failure": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: "After an operation stopped half-way, start no further one in this run. Default: `true`.",
			},
			"blocked_guests": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "What a blocked guest does to the plan: `fail`, or `skip` to leave it alone with a warning and go " +
					"on with the others. Default: `\"fail\"`.",
				Validators: []validator.String{stringvalidator.OneOf("fail", "skip")},
			},
			"registries": registriesAttribute(),
			"parking": schema.SingleNestedAttribute{
				Optional:            true,
				MarkdownDescription: "Spare VMIDs for parking guests: where a new guest is rehearsed and kept volumes wait.",
				Attributes: map[string]schema.Attribute{
					"vmids": schema.StringAttribute{
						Optional:            true,
						MarkdownDescription: "Range of VMIDs. Default: `\"900000-900999\"`.",
						Validators:          []validator.String{isRange()},
					},
					"pool": schema.StringAttribute{
						Optional:            true,
						MarkdownDescription: "Pool that parking guests are made in; rights on it are enough for them. Default: none.",
						Validators:          []validator.String{stringvalidator.RegexMatches(poolForm, "must be the name of a pool")},
					},
				},
			},
		},
	}
}
