package provider

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/oci"
	"github.com/pvrx/terraform-provider-pvrx/internal/proxmox"
)

// Where parking guests go unless the configuration says otherwise.
const parkingRange = "900000-900999"

// providerModel is the provider block.
type providerModel struct {
	Endpoint            types.String `tfsdk:"endpoint"`
	AdditionalEndpoints types.List   `tfsdk:"additional_endpoints"`
	APIToken            types.String `tfsdk:"api_token"`
	Username            types.String `tfsdk:"username"`
	Password            types.String `tfsdk:"password"`
	TLS                 types.Object `tfsdk:"tls"`
	MaxConcurrent       types.Int64  `tfsdk:"max_concurrent_operations"`
	StopAfterFailure    types.Bool   `tfsdk:"stop_after_failure"`
	BlockedGuests       types.String `tfsdk:"blocked_guests"`
	Parking             types.Object `tfsdk:"parking"`
	Registries          types.Map    `tfsdk:"registries"`
}

type tlsModel struct {
	CAFile        types.String `tfsdk:"ca_file"`
	CACertificate types.String `tfsdk:"ca_certificate"`
	Fingerprint   types.String `tfsdk:"fingerprint"`
	Insecure      types.Bool   `tfsdk:"insecure"`
}

type parkingModel struct {
	VMIDs types.String `tfsdk:"vmids"`
	Pool  types.String `tfsdk:"pool"`
}

// setup is the provider block and the environment as plain values.
type setup struct {
	proxmox.Settings

	parkingFrom, parkingTo guest.VMID
	parkingPool            string
	atOnce                 int
	stopAfterFailure       bool
	skipBlocked            bool
	agent                  string
	registries             oci.Settings
}

// secrets are the words that no log may show.
func (s setup) secrets() []string {
	_, secret, _ := strings.Cut(s.APIToken, "=")
	words := []string{s.APIToken, secret, s.Password}
	for _, c := range s.registries.Credentials {
		words = append(words, c.Password)
	}
	return words
}

// environment reads a variable of ours, else the one that people have set for another provider already.
func environment() func(name string) string {
	return func(name string) string {
		return cmp.Or(os.Getenv("PVRX_"+name), os.Getenv("PROXMOX_VE_"+name))
	}
}

// setup reads the block; what it leaves out comes from the environment, what both leave out has a default.
func (m *providerModel) setup(ctx context.Context, env func(string) string) (s setup, diags diag.Diagnostics) {
	if diags = refuseUnknownProvider(map[string]attr.Value{
		"endpoint": m.Endpoint, "additional_endpoints": m.AdditionalEndpoints, "api_token": m.APIToken, "username": m.Username,
		"password": m.Password, "tls": m.TLS, "max_concurrent_operations": m.MaxConcurrent,
		"stop_after_failure": m.StopAfterFailure, "blocked_guests": m.BlockedGuests, "parking": m.Parking,
		"registries": m.Registries,
	}); diags.HasError() {
		return s, diags
	}
	diags.Append(m.endpoints(ctx, env, &s)...)
	m.login(env, &s)
	diags.Append(m.tls(ctx, env, &s)...)
	diags.Append(m.parking(ctx, &s)...)
	diags.Append(m.registries(ctx, &s)...)
	s.atOnce = max(int(m.MaxConcurrent.ValueInt64()), 1)
	s.stopAfterFailure = m.StopAfterFailure.IsNull() || m.StopAfterFailure.ValueBool()
	s.skipBlocked = m.BlockedGuests.ValueString() == "skip"
	if s.APIToken == "" && (s.Username == "" || s.Password == "") {
		diags.AddAttributeError(path.Root("api_token"), "No login is given",
			"Set api_token (or PVRX_API_TOKEN), or username and password (or PVRX_USERNAME and PVRX_PASSWORD).")
	}
	return s, diags
}

func (m *providerModel) endpoints(ctx context.Context, env func(string) string, s *setup) (diags diag.Diagnostics) {
	if endpoint := m.Endpoint.ValueString(); endpoint != "" {
		s.Endpoints = []string{endpoint}
	} else {
		for _, endpoint := range strings.Split(env("ENDPOINT"), ",") {
			if endpoint = strings.TrimSpace(endpoint); endpoint != "" {
				s.Endpoints = append(s.Endpoints, endpoint)
			}
		}
	}
	if len(s.Endpoints) == 0 {
		diags.AddAttributeError(path.Root("endpoint"), "No endpoint is given",
			"Set endpoint (or PVRX_ENDPOINT) to the address of a node, such as https://pve1.example.org:8006.")
	}
	if !m.AdditionalEndpoints.IsNull() {
		var more []string
		diags.Append(m.AdditionalEndpoints.ElementsAs(ctx, &more, false)...)
		s.Endpoints = append(s.Endpoints, more...)
	}
	return diags
}

// login takes the whole login from one place: a token in the block is not mixed with a password in the environment.
func (m *providerModel) login(env func(string) string, s *setup) {
	s.APIToken, s.Username, s.Password = m.APIToken.ValueString(), m.Username.ValueString(), m.Password.ValueString()
	switch {
	case s.APIToken != "":
	case s.Username != "" || s.Password != "":
		s.Username = cmp.Or(s.Username, env("USERNAME"))
		s.Password = cmp.Or(s.Password, env("PASSWORD"))
	default:
		if s.APIToken = env("API_TOKEN"); s.APIToken == "" {
			s.Username, s.Password = env("USERNAME"), env("PASSWORD")
		}
	}
}

func (m *providerModel) tls(ctx context.Context, env func(string) string, s *setup) (diags diag.Diagnostics) {
	var t tlsModel
	diags.Append(part(ctx, m.TLS, &t)...)
	s.CACert, s.Fingerprint = t.CACertificate.ValueString(), cmp.Or(t.Fingerprint.ValueString(), env("FINGERPRINT"))
	at := path.Root("tls").AtName("ca_file")
	if file := cmp.Or(t.CAFile.ValueString(), env("CA_FILE")); file != "" && s.CACert == "" {
		data, err := os.ReadFile(file)
		if err != nil {
			diags.AddAttributeError(at, "The file with the certificates cannot be read", sentence(err.Error()))
		}
		s.CACert = string(data)
	}
	s.Insecure = t.Insecure.ValueBool()
	if t.Insecure.IsNull() {
		if text := env("INSECURE"); text != "" {
			insecure, err := strconv.ParseBool(text)
			if err != nil {
				diags.AddError("PVRX_INSECURE is not usable", fmt.Sprintf("It is %q; write true or false.", text))
			}
			s.Insecure = insecure
		}
	}
	return diags
}

func (m *providerModel) parking(ctx context.Context, s *setup) (diags diag.Diagnostics) {
	var p parkingModel
	diags.Append(part(ctx, m.Parking, &p)...)
	from, to, err := parseRange(cmp.Or(p.VMIDs.ValueString(), parkingRange))
	if err != nil {
		diags.AddAttributeError(path.Root("parking").AtName("vmids"), "parking.vmids is not usable", sentence(err.Error()))
	}
	s.parkingFrom, s.parkingTo, s.parkingPool = from, to, p.Pool.ValueString()
	return diags
}

// parseRange reads "900000-900999".
func parseRange(text string) (from, to guest.VMID, err error) {
	first, last, found := strings.Cut(text, "-")
	if !found {
		last = first
	}
	a, errA := strconv.Atoi(strings.TrimSpace(first))
	b, errB := strconv.Atoi(strings.TrimSpace(last))
	if errA != nil || errB != nil || a < 100 || b > 999999999 || a > b {
		return 0, 0, fmt.Errorf("cannot read the range %q: write two VMIDs from 100 to 999999999, such as %s", text, parkingRange)
	}
	return guest.VMID(a), guest.VMID(b), nil
}

func refuseUnknownProvider(values map[string]attr.Value) (diags diag.Diagnostics) {
	for name, value := range values {
		if holdsUnknown(value) {
			diags.AddAttributeError(path.Root(name), name+" is not known at plan",
				"A plan looks at the guests, so it must be able to reach the cluster. Use a value that is known when planning.")
		}
	}
	return diags
}
