package provider

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// emptyModel is a provider block without arguments.
func emptyModel() providerModel {
	text := types.StringType
	return providerModel{
		AdditionalEndpoints: types.ListNull(text),
		TLS: types.ObjectNull(map[string]attr.Type{
			"ca_file": text, "ca_certificate": text, "fingerprint": text, "insecure": types.BoolType,
		}),
		Parking: types.ObjectNull(map[string]attr.Type{"vmids": text, "pool": text}),
	}
}

func TestProviderSetup(t *testing.T) {
	t.Parallel()
	full := map[string]string{"ENDPOINT": "https://a:8006, https://b:8006", "API_TOKEN": "ci@pve!t=env", "USERNAME": "root@pam", "PASSWORD": "env"}
	tests := map[string]struct {
		block     func(m *providerModel)
		env       map[string]string
		want      setup
		endpoints []string
		fails     bool
	}{
		"nothing": {fails: true},
		"environment": {
			env: full, endpoints: []string{"https://a:8006", "https://b:8006"},
			want: setup{atOnce: 1, stopAfterFailure: true, parkingFrom: 900000, parkingTo: 900999},
		},
		"the block wins, and its login is not mixed with the environment's": {
			block: func(m *providerModel) {
				m.Endpoint = types.StringValue("https://c:8006")
				m.Username, m.Password = types.StringValue("root@pam"), types.StringValue("block")
				m.BlockedGuests, m.StopAfterFailure, m.MaxConcurrent = types.StringValue("skip"), types.BoolValue(false), types.Int64Value(4)
			},
			env: full, endpoints: []string{"https://c:8006"},
			want: setup{atOnce: 4, skipBlocked: true, parkingFrom: 900000, parkingTo: 900999},
		},
		"half a login": {env: map[string]string{"ENDPOINT": "https://a:8006", "USERNAME": "root@pam"}, fails: true},
		"nonsense for insecure": {
			env: map[string]string{"ENDPOINT": "https://a:8006", "API_TOKEN": "ci@pve!t=env", "INSECURE": "perhaps"}, fails: true,
		},
		"a missing file of certificates": {
			env: map[string]string{"ENDPOINT": "https://a:8006", "API_TOKEN": "ci@pve!t=env", "CA_FILE": "/does/not/exist"}, fails: true,
		},
		"unknown endpoint": {block: func(m *providerModel) { m.Endpoint = types.StringUnknown() }, env: full, fails: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := emptyModel()
			if tt.block != nil {
				tt.block(&m)
			}
			got, diags := m.setup(t.Context(), func(name string) string { return tt.env[name] })
			if diags.HasError() != tt.fails {
				t.Fatalf("diagnostics: %v", diags)
			}
			if tt.fails {
				return
			}
			if !slices.Equal(got.Endpoints, tt.endpoints) {
				t.Errorf("endpoints = %v", got.Endpoints)
			}
			if tt.block != nil && (got.APIToken != "" || got.Password != "block") {
				t.Errorf("login = %q, %q", got.APIToken, got.Password)
			}
			if got.atOnce != tt.want.atOnce || got.skipBlocked != tt.want.skipBlocked || got.stopAfterFailure != tt.want.stopAfterFailure ||
				got.parkingFrom != tt.want.parkingFrom || got.parkingTo != tt.want.parkingTo {
				t.Errorf("setup = %+v", got)
			}
		})
	}
}

func TestEnvironmentFallsBackToWhatPeopleSetAlready(t *testing.T) {
	t.Setenv("PROXMOX_VE_ENDPOINT", "https://theirs:8006")
	t.Setenv("PROXMOX_VE_API_TOKEN", "theirs")
	t.Setenv("PVRX_API_TOKEN", "ours")
	env := environment()
	if env("ENDPOINT") != "https://theirs:8006" || env("API_TOKEN") != "ours" || env("PASSWORD") != os.Getenv("PVRX_PASSWORD") {
		t.Errorf("%q, %q", env("ENDPOINT"), env("API_TOKEN"))
	}
}

func TestCertificatesComeFromTheFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, []byte("PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := emptyModel()
	got, diags := m.setup(t.Context(), func(name string) string {
		return map[string]string{"ENDPOINT": "https://a:8006", "API_TOKEN": "x", "CA_FILE": file}[name]
	})
	if diags.HasError() || got.CACert != "PEM" {
		t.Errorf("CACert = %q, %v", got.CACert, diags)
	}
}

func TestParkingRange(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]guest.VMID{
		"900000-900999": {900000, 900999}, "7000": {7000, 7000}, "100 - 200": {100, 200},
		"": {}, "5-10": {}, "200-100": {}, "a-b": {}, "100-1000000000": {}, "100-": {},
	} {
		from, to, err := parseRange(text)
		if from != want[0] || to != want[1] || (err == nil) != (want[0] != 0) {
			t.Errorf("parseRange(%q) = %d, %d, %v", text, from, to, err)
		}
	}
}

func TestSchemasAreSound(t *testing.T) {
	t.Parallel()
	p := New("test")
	var provided provider.SchemaResponse
	p.Schema(context.Background(), provider.SchemaRequest{}, &provided)
	if diags := provided.Schema.ValidateImplementation(t.Context()); diags.HasError() {
		t.Error(diags)
	}
	s := containerReinstallSchema()
	if diags := s.ValidateImplementation(t.Context()); diags.HasError() {
		t.Error(diags)
	}
	for name, a := range s.Attributes {
		if a.GetMarkdownDescription() == "" {
			t.Errorf("%s has no description", name)
		}
	}
	if _, there := s.Attributes["id"]; there {
		t.Error("there is an id beside vmid")
	}
}
