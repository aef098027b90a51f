package provider

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
)

// given is an object of the schema's type with some attributes set.
func given(t *testing.T, of map[string]schema.Attribute, set map[string]attr.Value) types.Object {
	t.Helper()
	kinds, values := map[string]attr.Type{}, map[string]attr.Value{}
	for name, a := range of {
		kinds[name] = a.GetType()
		null, err := a.GetType().ValueFromTerraform(t.Context(), tftypes.NewValue(a.GetType().TerraformType(t.Context()), nil))
		if err != nil {
			t.Fatal(err)
		}
		values[name] = null
	}
	maps.Copy(values, set)
	object, diags := types.ObjectValue(kinds, values)
	if diags.HasError() {
		t.Fatal(diags)
	}
	return object
}

// nested is the attributes of a nested attribute of the instance's schema.
func nested(t *testing.T, name string) map[string]schema.Attribute {
	t.Helper()
	switch a := instanceSchema().Attributes[name].(type) {
	case schema.SingleNestedAttribute:
		return a.Attributes
	case schema.MapNestedAttribute:
		return a.NestedObject.Attributes
	}
	t.Fatalf("%s is not nested", name)
	return nil
}

// mapOf is a map of objects.
func mapOf(t *testing.T, objects map[string]attr.Value) types.Map {
	t.Helper()
	for _, object := range objects {
		m, diags := types.MapValue(object.Type(t.Context()), objects)
		if diags.HasError() {
			t.Fatal(diags)
		}
		return m
	}
	t.Fatal("an empty map has no type")
	return types.Map{}
}

func setOf(words ...string) types.Set {
	values := make([]attr.Value, 0, len(words))
	for _, w := range words {
		values = append(values, types.StringValue(w))
	}
	return types.SetValueMust(types.StringType, values)
}

// everything is a model with all that can be set.
func everything(t *testing.T) *instanceModel {
	t.Helper()
	s, b, n := types.StringValue, types.BoolValue, types.Int64Value
	return &instanceModel{
		VMID: n(6001), Hostname: s("vault"), Image: s("ghcr.io/x/vault:1@sha256:" + strings.Repeat("ab", 32)), Node: s("pve1"),
		ArchiveStorage: s("local"), Triggers: textMap(map[string]string{"again": "1"}),
		Rootfs: given(t, nested(t, "rootfs"), map[string]attr.Value{"storage": s("local-lvm"), "size": s("8GiB")}),
		Cores:  n(2), CPULimit: types.Float64Value(1.5), CPUUnits: n(100), Memory: s("1GiB"), Swap: s("0"),
		Networks: mapOf(t, map[string]attr.Value{
			"net0": given(t, networkAttributes(), map[string]attr.Value{"bridge": s("vmbr0"), "address": s("dhcp")}),
			"net12": given(t, networkAttributes(), map[string]attr.Value{
				"bridge": s("vmbr1"), "address": s("10.0.0.5/24"), "gateway": s("10.0.0.1"), "address6": s("auto"), "mac": s("bc:24:11:01:02:03"),
				"tag": n(5), "mtu": n(1400), "firewall": b(true), "rate": types.Float64Value(2.5),
			}),
		}),
		Nameserver: s("10.0.0.1 10.0.0.2"), SearchDomain: s("example.org"), Features: setOf("nesting", "mount=nfs;cifs"), Tags: setOf("b", "a"),
		Description: s("notes"), Pool: s("web"), OnBoot: b(true), Protection: b(false), Started: b(false),
		Startup:     given(t, nested(t, "startup"), map[string]attr.Value{"order": n(3), "up": s("30s"), "down": s("2m")}),
		Console:     given(t, nested(t, "console"), map[string]attr.Value{"enabled": b(true), "mode": s("shell"), "ttys": n(1)}),
		Environment: textMap(map[string]string{"DOMAIN": "https://vault.example.org"}), EnvironmentWO: textMap(map[string]string{"TOKEN": "s3cret"}),
		EnvironmentWOVersion: n(4), Entrypoint: s("/bin/app --flag"),
		Volumes: mapOf(t, map[string]attr.Value{
			"/data": given(t, nested(t, "volumes"), map[string]attr.Value{"storage": s("local-lvm"), "size": s("8.5G"), "options": setOf("noatime", "discard")}),
			"/log":  given(t, nested(t, "volumes"), map[string]attr.Value{"storage": s("tank"), "size": s("512M"), "backup": b(false), "read_only": b(true)}),
		}),
		HostDirectories: mapOf(t, map[string]attr.Value{"/media": given(t, nested(t, "host_directories"), map[string]attr.Value{"source": s("/mnt/media"), "read_only": b(true)})}),
		Devices:         mapOf(t, map[string]attr.Value{"dev0": given(t, nested(t, "devices"), map[string]attr.Value{"path": s("/dev/ttyUSB0"), "mode": s("0660"), "gid": n(20)})}),
		OnFailure:       s("hold"), DeletionProtection: b(false), Erase: textMap(map[string]string{"mp3": "*"}), Adopt: b(true),
		Allow: setOf("ha_managed"), Drop: setOf("dev1"),
		Backup: given(t, nested(t, "backup"), map[string]attr.Value{"storage": s("pbs")}),
	}
}

func TestInstanceWantHoldsEverything(t *testing.T) {
	t.Parallel()
	w, diags := everything(t).want(t.Context())
	if diags.HasError() {
		t.Fatal(diags)
	}
	i := w.Instance
	want := map[string]string{
		"cores": "2", "cpulimit": "1.5", "cpuunits": "100", "memory": "1024", "swap": "0", "nameserver": "10.0.0.1 10.0.0.2",
		"searchdomain": "example.org", "description": "notes", "pool": "web", "onboot": "1", "protection": "0", "tags": "a;b",
		"features": "mount=nfs;cifs,nesting=1", "startup": "order=3,up=30,down=120", "console": "1", "cmode": "shell", "tty": "1",
		"net0":  "name=eth0,bridge=vmbr0,ip=dhcp",
		"net12": "name=eth12,bridge=vmbr1,firewall=1,gw=10.0.0.1,hwaddr=BC:24:11:01:02:03,ip=10.0.0.5/24,ip6=auto,mtu=1400,rate=2.5,tag=5",
	}
	if !maps.Equal(i.Settings, want) {
		for key := range want {
			if i.Settings[key] != want[key] {
				t.Errorf("%s = %q, want %q", key, i.Settings[key], want[key])
			}
		}
		t.Errorf("settings %v", slices.Sorted(maps.Keys(i.Settings)))
	}
	if w.Name != "vault" || w.VMID != 6001 || i.Node != "pve1" || i.ArchiveStorage != "local" || i.Started || !i.Hold || i.Protected || i.EnvVersion != 4 || !w.Adopt {
		t.Errorf("want %+v, instance %+v", w.Want, i)
	}
	if w.Rootfs != (preview.Rootfs{Storage: "local-lvm", Size: 8 * guest.GiB, SizeText: "8GiB"}) || w.Backup.Storage != "pbs" || w.Erase["mp3"] != "*" {
		t.Errorf("want %+v", w.Want)
	}
	if !maps.Equal(i.Environment, map[string]string{"DOMAIN": "https://vault.example.org", "TOKEN": "s3cret"}) || !slices.Equal(w.secrets, []string{"s3cret"}) ||
		!slices.Equal(i.WriteOnly, []string{"TOKEN"}) {
		t.Errorf("environment %v, secrets %v", i.Environment, w.secrets)
	}
	if !maps.Equal(i.Volumes, map[string]preview.VolumeWant{
		"/data": {Storage: "local-lvm", Size: 8704 * guest.MiB, SizeText: "8.5G", Options: "discard;noatime"},
		"/log":  {Storage: "tank", Size: 512 * guest.MiB, SizeText: "512M", NoBackup: true, ReadOnly: true},
	}) {
		t.Errorf("volumes %+v", i.Volumes)
	}
	if i.HostPaths["/media"] != (preview.HostPath{Source: "/mnt/media", ReadOnly: true}) || i.Devices["dev0"] != "/dev/ttyUSB0,gid=20,mode=0660" {
		t.Errorf("host paths %v, devices %v", i.HostPaths, i.Devices)
	}
}

func TestInstanceWantOfTheLeastThatIsGiven(t *testing.T) {
	t.Parallel()
	m := &instanceModel{VMID: types.Int64Value(6001), Hostname: types.StringValue("whoami"), Image: types.StringValue("traefik/whoami:v1")}
	w, diags := m.want(t.Context())
	if diags.HasError() {
		t.Fatal(diags)
	}
	i := w.Instance
	if !i.Started || i.Hold || !i.Protected || len(i.Settings)+len(i.Environment)+len(i.Volumes)+len(i.HostPaths)+len(i.Devices) != 0 || w.Timeout != operationTime {
		t.Errorf("instance %+v, want %+v", i, w.Want)
	}
}

// Values of variables may come from what does not exist yet; they then differ from all that could be recorded.
func TestInstanceWantOfWhatIsNotKnownYet(t *testing.T) {
	t.Parallel()
	m := everything(t)
	m.Environment = types.MapValueMust(types.StringType, map[string]attr.Value{"HOST": types.StringUnknown()})
	m.Triggers = types.MapUnknown(types.StringType)
	w, diags := m.want(t.Context())
	if diags.HasError() || w.Instance.Environment["HOST"] != notKnownYet || !w.installUnknown() {
		t.Errorf("%v: %v, install unknown %v", diags, w.Instance.Environment, w.installUnknown())
	}
	if (guest.Install{}).Same(guest.Install{Triggers: w.Triggers}) {
		t.Error("unknown triggers look like none")
	}
	if diags := refuseUnknown(m.decisive()); diags.HasError() {
		t.Errorf("an unknown variable is refused: %v", diags)
	}
	m.Environment = types.MapUnknown(types.StringType)
	if w, _ := m.want(t.Context()); w.Instance.Environment["_"] != notKnownYet {
		t.Errorf("unknown variables look like none: %v", w.Instance.Environment)
	}
	m.Node = types.StringUnknown()
	if diags := refuseUnknown(m.decisive()); !diags.HasError() {
		t.Error("an unknown node is not refused")
	}
}

func TestInstanceDecisiveNamesOnlyArguments(t *testing.T) {
	t.Parallel()
	all := instanceSchema().Attributes
	for name := range everything(t).decisive() {
		if _, known := all[name]; !known {
			t.Errorf("there is no argument %s", name)
		}
	}
}

func TestInstanceSchemaFitsTheModel(t *testing.T) {
	t.Parallel()
	s := instanceSchema()
	if diags := s.ValidateImplementation(t.Context()); diags.HasError() {
		t.Fatal(diags)
	}
	if _, known := s.Attributes["id"]; known {
		t.Error("no resource has an id")
	}
	for name, a := range s.Attributes {
		if a.GetMarkdownDescription() == "" {
			t.Errorf("%s is not described", name)
		}
	}
}

// validated runs the validators of one argument, and those of its keys and elements.
func validated(t *testing.T, name string, value attr.Value) (diags diag.Diagnostics) {
	t.Helper()
	at := path.Root(name)
	switch a := instanceSchema().Attributes[name].(type) {
	case schema.StringAttribute:
		v, _ := value.(types.String)
		for _, check := range a.Validators {
			resp := validator.StringResponse{}
			check.ValidateString(t.Context(), validator.StringRequest{Path: at, ConfigValue: v}, &resp)
			diags.Append(resp.Diagnostics...)
		}
	case schema.MapAttribute:
		diags.Append(validatedMap(t.Context(), at, value, a.Validators)...)
	case schema.MapNestedAttribute:
		diags.Append(validatedMap(t.Context(), at, value, a.Validators)...)
	case schema.SetAttribute:
		v, _ := value.(types.Set)
		for _, check := range a.Validators {
			resp := validator.SetResponse{}
			check.ValidateSet(t.Context(), validator.SetRequest{Path: at, ConfigValue: v}, &resp)
			diags.Append(resp.Diagnostics...)
		}
	default:
		t.Fatalf("%s is a %T", name, a)
	}
	return diags
}

func validatedMap(ctx context.Context, at path.Path, value attr.Value, checks []validator.Map) (diags diag.Diagnostics) {
	v, _ := value.(types.Map)
	for _, check := range checks {
		resp := validator.MapResponse{}
		check.ValidateMap(ctx, validator.MapRequest{Path: at, ConfigValue: v}, &resp)
		diags.Append(resp.Diagnostics...)
	}
	return diags
}

func TestInstanceArgumentsAreValidated(t *testing.T) {
	t.Parallel()
	one := func(name string) types.Map { return textMap(map[string]string{name: "x"}) }
	digest := "@sha256:" + strings.Repeat("0a", 32)
	for _, c := range []struct {
		name  string
		value attr.Value
		wrong string // part of the error, "" when it is fine
	}{
		{"image", types.StringValue("docker.io/library/nginx:1.27"), ""},
		{"image", types.StringValue("ghcr.io/x/y:1" + digest), ""},
		{"image", types.StringValue("ghcr.io/x/y" + digest), ""},
		{"image", types.StringValue("nginx"), "tag"},
		{"image", types.StringValue("nginx@sha256:12"), "digest"},
		{"image", types.StringValue("Nginx:1"), "lower-case"},
		{"platform", types.StringValue("linux/arm64/v8"), ""},
		{"platform", types.StringValue("windows/amd64"), "annot"},
		{"memory", types.StringValue("512MiB"), ""},
		{"memory", types.StringValue("512"), "unit"},
		{"memory", types.StringValue("8M"), "at least 16MiB"},
		{"memory", types.StringValue("0"), "larger than zero"},
		{"swap", types.StringValue("0"), ""},
		{"environment", one("A_1"), ""},
		{"environment", one("1A"), "name of a variable"},
		{"environment", one("A=B"), "name of a variable"},
		{"environment", one("PVRX_CONTRACT"), "tells pvrx"},
		{"environment_wo", one("PVRX_CONTRACT"), "tells pvrx"},
		{"environment", textMap(map[string]string{"A": "x\ty"}), ""},
		{"environment", textMap(map[string]string{"A": "x\ny"}), "line break"},
		{"environment_wo", textMap(map[string]string{"A": "x\x00y"}), "control character"},
		{"entrypoint", types.StringValue("/bin/a\n/bin/b"), "line break"},
		{"nameserver", types.StringValue("10.0.0.1 fd00::1"), ""},
		{"nameserver", types.StringValue("10.0.0.1,10.0.0.2"), "one space"},
		{"features", setOf("nesting", "mount=nfs;cifs"), ""},
		{"features", setOf("nesting=1"), "must be"},
		{"tags", setOf("a.b", "c"), ""},
		{"tags", setOf("Web"), "lower case"},
		{"tags", setOf("a b"), "lower case"},
		{"erase", one("net0"), "key of a volume"},
		{"allow", setOf("protected"), "annot waive"},
	} {
		diags := validated(t, c.name, c.value)
		if (c.wrong == "") != !diags.HasError() {
			t.Errorf("%s = %v: %v", c.name, c.value, diags)
			continue
		}
		if c.wrong != "" && !strings.Contains(diags[0].Detail()+diags[0].Summary(), c.wrong) {
			t.Errorf("%s = %v: %q does not say %q", c.name, c.value, diags[0].Detail(), c.wrong)
		}
	}
}

func TestInstanceKeysOfMapsAreValidated(t *testing.T) {
	t.Parallel()
	volume := given(t, nested(t, "volumes"), nil)
	for mount, wrong := range map[string]string{
		"/data": "", "data": "absolute", "/": "root file system", "/data/": `write "/data"`, "/a/../b": `write "/b"`, "/a//b": `write "/a/b"`, "/a,b": "commas",
	} {
		diags := validated(t, "volumes", mapOf(t, map[string]attr.Value{mount: volume}))
		if (wrong == "") != !diags.HasError() || (wrong != "" && !strings.Contains(diags[0].Detail(), wrong)) {
			t.Errorf("%q: %v", mount, diags)
		}
	}
	network := given(t, networkAttributes(), nil)
	for key, fine := range map[string]bool{"net0": true, "net31": true, "net32": false, "eth0": false, "net01": false} {
		if diags := validated(t, "networks", mapOf(t, map[string]attr.Value{key: network})); diags.HasError() == fine {
			t.Errorf("%s: %v", key, diags)
		}
	}
}

// What one argument alone cannot tell.
func TestInstanceConfigurationIsConsistent(t *testing.T) {
	t.Parallel()
	s := types.StringValue
	at := func(root string, keys ...string) path.Path {
		p := path.Root(root)
		for i, key := range keys {
			if i == 0 {
				p = p.AtMapKey(key)
			} else {
				p = p.AtName(key)
			}
		}
		return p
	}
	volume := given(t, nested(t, "volumes"), nil)
	for _, c := range []struct {
		about  string
		change func(m *instanceModel)
		at     path.Path
	}{
		{"a variable in both environments", func(m *instanceModel) { m.EnvironmentWO = textMap(map[string]string{"DOMAIN": "x"}) }, at("environment_wo", "DOMAIN")},
		{"a version of nothing", func(m *instanceModel) { m.EnvironmentWO = types.MapNull(types.StringType) }, at("environment_wo_version")},
		{"a path of a volume and of a host directory", func(m *instanceModel) {
			m.HostDirectories = mapOf(t, map[string]attr.Value{"/data": given(t, nested(t, "host_directories"), nil)})
		}, at("host_directories", "/data")},
		{"a volume in a volume", func(m *instanceModel) {
			m.Volumes = mapOf(t, map[string]attr.Value{"/data": volume, "/data/a/b": volume, "/database": volume})
		}, at("volumes", "/data/a/b")},
		{"following a digest", func(m *instanceModel) { m.Follows = s("follow") }, at("update")},
		{"a gateway and dhcp", func(m *instanceModel) {
			m.Networks = mapOf(t, map[string]attr.Value{"net0": given(t, networkAttributes(), map[string]attr.Value{"address": s("dhcp"), "gateway": s("10.0.0.1")})})
		}, at("networks", "net0", "gateway")},
		{"a startup that says nothing", func(m *instanceModel) { m.Startup = given(t, nested(t, "startup"), nil) }, at("startup")},
	} {
		m := everything(t)
		if diags := m.check(t.Context()); diags.HasError() {
			t.Fatalf("without a change: %v", diags)
		}
		c.change(m)
		diags := m.check(t.Context())
		if len(diags) != 1 {
			t.Errorf("%s: %v", c.about, diags)
			continue
		}
		if where, ok := diags[0].(diag.DiagnosticWithPath); !ok || !where.Path().Equal(c.at) {
			t.Errorf("%s: %v, want it at %s", c.about, diags[0], c.at)
		}
	}
}

func TestInstanceSizesAreReadAsRequests(t *testing.T) {
	t.Parallel()
	m := everything(t)
	m.Rootfs = given(t, nested(t, "rootfs"), map[string]attr.Value{"size": types.StringValue("8")})
	m.Volumes = mapOf(t, map[string]attr.Value{"/data": given(t, nested(t, "volumes"), map[string]attr.Value{"size": types.StringValue("1 GiB")})})
	m.Memory = types.StringValue("1g")
	_, diags := m.want(t.Context())
	var where []string
	for _, d := range diags {
		if at, ok := d.(diag.DiagnosticWithPath); ok {
			where = append(where, at.Path().String())
		}
	}
	slices.Sort(where)
	if !slices.Equal(where, []string{"memory", "rootfs.size", `volumes["/data"].size`}) {
		t.Errorf("errors at %v: %v", where, diags)
	}
}
