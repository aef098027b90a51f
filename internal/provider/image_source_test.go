package provider

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func TestImageDataSource(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		d := newDock(t, c)
		digest := d.shelf.put("db:17", imageFor(t, "db", v1.Config{
			Entrypoint: []string{"/entry.sh"}, Cmd: []string{"postgres"}, Env: []string{"PATH=/bin", "PGDATA=/data"}, User: "999",
			Volumes: map[string]struct{}{"/data": {}}, ExposedPorts: map[string]struct{}{"5432/tcp": {}}, WorkingDir: "/srv",
			Labels: map[string]string{"version": "17"},
		}))
		d.write("main.tf", "data \"pvrx_oci_image\" \"db\" {\n  image = \""+d.shelf.ref("db:17")+"\"\n}\noutput \"db\" {\n  value = data.pvrx_oci_image.db\n}\n")
		d.run(0, "apply", "-no-color", "-input=false", "-auto-approve")
		var shown struct {
			DB struct {
				Value struct {
					Pinned, Digest, User                                        string
					PlatformDigest                                              string `json:"platform_digest"`
					Platforms, Entrypoint, Command, Environment, Volumes, Ports []string
					Labels                                                      map[string]string
				}
			}
		}
		if err := json.Unmarshal([]byte(d.run(0, "output", "-json").text), &shown); err != nil {
			t.Fatal(err)
		}
		v := shown.DB.Value
		if v.Pinned != d.shelf.ref("db:17@"+digest) || v.Digest != digest || v.PlatformDigest != digest || v.User != "999" || v.Labels["version"] != "17" {
			t.Errorf("%+v", v)
		}
		for _, is := range []struct{ got, want []string }{
			{v.Platforms, []string{"linux/amd64"}},
			{v.Entrypoint, []string{"/entry.sh"}},
			{v.Command, []string{"postgres"}},
			{v.Environment, []string{"PATH=/bin", "PGDATA=/data"}},
			{v.Volumes, []string{"/data"}},
			{v.Ports, []string{"5432/tcp"}},
		} {
			if !slices.Equal(is.got, is.want) {
				t.Errorf("%v, want %v", is.got, is.want)
			}
		}
		d.write("main.tf", "data \"pvrx_oci_image\" \"db\" {\n  image = \""+d.shelf.ref("db:17")+"\"\n}\n"+
			strings.Replace(vaultBlock("IMAGE"), `"IMAGE"`, "data.pvrx_oci_image.db.pinned", 1))
		d.plan(2).says(t, "CT 6001 vault: install")
		d.write("main.tf", "data \"pvrx_oci_image\" \"db\" {\n  image = \""+d.shelf.ref("db:18")+"\"\n}\n")
		d.plan(1).says(t, "The image cannot be resolved", d.shelf.ref("db:18"))
	})
}

func TestRegistryThatWantsALogin(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		d := newDock(t, c)
		d.shelf.lock("robot:secret")
		d.write("main.tf", vaultBlock(d.shelf.ref("app:1")))
		d.plan(1).says(t, "image_unresolvable", d.shelf.host)
		d.write("provider.tf", strings.Replace(d.read("provider.tf"), "plain_http = true", `plain_http = true, username = "robot", password = "secret"`, 1))
		d.plan(2)
		d.write("provider.tf", strings.Replace(d.read("provider.tf"), `, password = "secret"`, "", 1))
		d.plan(1).says(t, "half a login")
		d.write("provider.tf", strings.Replace(d.read("provider.tf"), `, username = "robot"`, `, ca_certificate = "nonsense"`, 1))
		d.plan(1).says(t, "The registries cannot be set up")
	})
}

func TestRegistriesBecomeSettings(t *testing.T) {
	t.Parallel()
	of, ok := registriesAttribute().GetType().(types.MapType)
	if !ok {
		t.Fatal("registries is no map")
	}
	object := func(set map[string]attr.Value) attr.Value {
		kinds := of.ElemType.(types.ObjectType).AttrTypes
		values := map[string]attr.Value{
			"username": types.StringNull(), "password": types.StringNull(), "plain_http": types.BoolNull(), "ca_certificate": types.StringNull(),
		}
		for name, value := range set {
			values[name] = value
		}
		return types.ObjectValueMust(kinds, values)
	}
	m := providerModel{Registries: types.MapValueMust(of.ElemType, map[string]attr.Value{
		"registry.lan:5000": object(map[string]attr.Value{"plain_http": types.BoolValue(true), "username": types.StringValue("u"), "password": types.StringValue("p")}),
		"ghcr.io":           object(map[string]attr.Value{"ca_certificate": types.StringValue("PEM")}),
	})}
	var s setup
	if diags := m.registries(t.Context(), &s); diags.HasError() {
		t.Fatal(diags)
	}
	r := s.registries
	if !r.DockerConfig || !slices.Equal(r.PlainHTTP, []string{"registry.lan:5000"}) || r.CACert["ghcr.io"] != "PEM" || len(r.CACert) != 1 ||
		r.Credentials["registry.lan:5000"].Password != "p" || len(r.Credentials) != 1 {
		t.Errorf("%+v", r)
	}
	if !slices.Contains(s.secrets(), "p") {
		t.Error("the password is not masked in logs")
	}
	for text, fine := range map[string]bool{"docker.io": true, "registry.lan:5000": true, "https://ghcr.io": false, "ghcr.io/x": false, "nginx": false, "": false} {
		err := isRegistry().(check).test(text)
		if (err == nil) != fine {
			t.Errorf("%q: %v", text, err)
		}
	}
}
