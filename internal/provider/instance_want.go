package provider

import (
	"context"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
)

// notKnownYet stands for the value of a variable that comes from something that does not exist yet. It is only ever
// compared, and differs from every value.
const notKnownYet = "(known after apply)"

// want turns a configuration into what the recipe is asked. The image in it is not resolved yet.
func (m *instanceModel) want(ctx context.Context) (w wanted, diags diag.Diagnostics) {
	common := m.common()
	w, diags = common.wantCommon(ctx)
	w.sourceUnknown = m.Image.IsUnknown()
	if w.triggersUnknown {
		w.Triggers = map[string]string{"": notKnownYet} // differs from whatever is recorded
	}
	i := &preview.InstanceWant{
		Node: m.Node.ValueString(), ArchiveStorage: m.ArchiveStorage.ValueString(), Entrypoint: m.Entrypoint.ValueString(),
		EnvVersion: m.EnvironmentWOVersion.ValueInt64(), Started: m.Started.IsNull() || m.Started.ValueBool(),
		Hold: m.OnFailure.ValueString() == "hold", Protected: m.DeletionProtection.IsNull() || m.DeletionProtection.ValueBool(),
	}
	w.Instance = i
	var more diag.Diagnostics
	if i.Settings, more = m.settings(ctx); more.HasError() {
		diags.Append(more...)
	}
	m.setEnvironment(&w)
	var rootfs rootfsModel
	diags.Append(part(ctx, m.Rootfs, &rootfs)...)
	w.Rootfs = preview.Rootfs{Storage: rootfs.Storage.ValueString(), SizeText: rootfs.Size.ValueString()}
	w.Rootfs.Size, more = requested(path.Root("rootfs").AtName("size"), rootfs.Size)
	diags.Append(more...)
	i.Volumes, more = m.volumes(ctx)
	diags.Append(more...)
	i.HostPaths, more = m.hostPaths(ctx)
	diags.Append(more...)
	i.Devices, more = m.devices(ctx)
	diags.Append(more...)
	return w, diags
}

// setEnvironment puts both kinds of variables together, and notes which are write-only and what no log may show.
func (m *instanceModel) setEnvironment(w *wanted) {
	i := w.Instance
	i.Environment = map[string]string{}
	for name, value := range m.Environment.Elements() {
		i.Environment[name] = valueOrUnknown(value)
	}
	if m.Environment.IsUnknown() {
		i.Environment["_"] = notKnownYet // stands for variables whose names are not known either
	}
	for name, value := range m.EnvironmentWO.Elements() {
		i.Environment[name] = valueOrUnknown(value)
		i.WriteOnly = append(i.WriteOnly, name)
		w.secrets = append(w.secrets, textOf(value))
	}
	slices.Sort(i.WriteOnly)
}

func valueOrUnknown(value attr.Value) string {
	if value.IsUnknown() {
		return notKnownYet
	}
	return textOf(value)
}

// requested reads a size; null is 0.
func requested(at path.Path, text types.String) (size guest.Bytes, diags diag.Diagnostics) {
	if text.IsNull() || text.IsUnknown() {
		return 0, nil
	}
	size, err := guest.ParseRequest(text.ValueString())
	if err != nil {
		diags.AddAttributeError(at, "size is not usable", sentence(err.Error()))
	}
	return size, diags
}

func (m *instanceModel) volumes(ctx context.Context) (volumes map[string]preview.VolumeWant, diags diag.Diagnostics) {
	volumes = map[string]preview.VolumeWant{}
	for mount, object := range objects(m.Volumes) {
		var v instanceVolumeModel
		diags.Append(part(ctx, object, &v)...)
		size, more := requested(path.Root("volumes").AtMapKey(mount).AtName("size"), v.Size)
		diags.Append(more...)
		var options []string
		diags.Append(words(ctx, v.Options, &options)...)
		slices.Sort(options)
		volumes[mount] = preview.VolumeWant{
			Storage: v.Storage.ValueString(), Size: size, SizeText: v.Size.ValueString(), Options: strings.Join(options, ";"),
			NoBackup: !v.Backup.IsNull() && !v.Backup.ValueBool(), ReadOnly: v.ReadOnly.ValueBool(),
		}
	}
	return volumes, diags
}

func (m *instanceModel) hostPaths(ctx context.Context) (paths map[string]preview.HostPath, diags diag.Diagnostics) {
	paths = map[string]preview.HostPath{}
	for mount, object := range objects(m.HostDirectories) {
		var h hostDirectoryModel
		diags.Append(part(ctx, object, &h)...)
		paths[mount] = preview.HostPath{Source: h.Source.ValueString(), ReadOnly: h.ReadOnly.ValueBool()}
	}
	return paths, diags
}

func (m *instanceModel) devices(ctx context.Context) (devices map[string]string, diags diag.Diagnostics) {
	devices = map[string]string{}
	for key, object := range objects(m.Devices) {
		var d deviceModel
		diags.Append(part(ctx, object, &d)...)
		parts := []string{d.Path.ValueString()}
		for _, option := range []struct {
			name  string
			value attr.Value
		}{{"deny-write", d.DenyWrite}, {"gid", d.GID}, {"mode", d.Mode}, {"uid", d.UID}} {
			if text, given := asKey(option.value); given {
				parts = append(parts, option.name+"="+text)
			}
		}
		devices[key] = strings.Join(parts, ",")
	}
	return devices, diags
}

// objects are the known elements of a map of objects.
func objects(from types.Map) map[string]types.Object {
	known := map[string]types.Object{}
	for key, element := range from.Elements() {
		if object, ok := element.(types.Object); ok && !object.IsUnknown() {
			known[key] = object
		}
	}
	return known
}
