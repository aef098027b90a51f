package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// settings are the Proxmox keys that the configuration sets, as Proxmox writes their values. What it leaves out is not in
// them. Two are no keys of a configuration: "description" is the user's own text in the notes, "pool" the guest's pool.
func (m *instanceModel) settings(ctx context.Context) (keys map[string]string, diags diag.Diagnostics) {
	keys = map[string]string{}
	for key, value := range map[string]attr.Value{
		"cores": m.Cores, "cpulimit": m.CPULimit, "cpuunits": m.CPUUnits, "nameserver": m.Nameserver, "searchdomain": m.SearchDomain,
		"description": m.Description, "pool": m.Pool, "onboot": m.OnBoot, "protection": m.Protection,
	} {
		if text, given := asKey(value); given {
			keys[key] = text
		}
	}
	for key, value := range map[string]types.String{"memory": m.Memory, "swap": m.Swap} {
		if value.IsNull() || value.IsUnknown() {
			continue
		}
		text, err := wholeMiB(value.ValueString())
		if err != nil {
			diags.AddAttributeError(path.Root(key), key+" is not usable", sentence(err.Error()))
		}
		keys[key] = text
	}
	diags.Append(m.setNetworks(ctx, keys)...)
	diags.Append(m.setStartup(ctx, keys)...)
	diags.Append(m.setConsole(ctx, keys)...)
	var features, tags []string
	diags.Append(words(ctx, m.Features, &features)...)
	if !m.Features.IsNull() {
		keys["features"] = featureText(features)
	}
	diags.Append(words(ctx, m.Tags, &tags)...)
	if !m.Tags.IsNull() {
		slices.Sort(tags)
		keys["tags"] = strings.Join(tags, ";")
	}
	return keys, diags
}

// asKey is a plain value as Proxmox writes it; given is false for null and unknown.
func asKey(value attr.Value) (text string, given bool) {
	if value.IsNull() || value.IsUnknown() {
		return "", false
	}
	switch v := value.(type) {
	case types.String:
		return v.ValueString(), true
	case types.Int64:
		return strconv.FormatInt(v.ValueInt64(), 10), true
	case types.Float64:
		return strconv.FormatFloat(v.ValueFloat64(), 'f', -1, 64), true
	case types.Bool:
		if v.ValueBool() {
			return "1", true
		}
		return "0", true
	}
	return "", false
}

// wholeMiB is an amount of memory in the unit of Proxmox's keys, rounded up. "0" stands for none.
func wholeMiB(text string) (string, error) {
	if text == "0" {
		return text, nil
	}
	size, err := guest.ParseRequest(text)
	if err != nil {
		return "", err
	}
	return strconv.FormatInt(int64(size.CeilMiB()/guest.MiB), 10), nil
}

// setNetworks writes the netN keys. The interface of netN is called ethN inside.
func (m *instanceModel) setNetworks(ctx context.Context, keys map[string]string) (diags diag.Diagnostics) {
	for key, element := range m.Networks.Elements() {
		object, ok := element.(types.Object)
		if !ok {
			continue
		}
		var n networkModel
		diags.Append(part(ctx, object, &n)...)
		keys[key] = n.text(key)
	}
	return diags
}

func (n networkModel) text(key string) string {
	options := map[string]string{"name": "eth" + strings.TrimPrefix(key, "net")}
	for name, value := range map[string]attr.Value{
		"bridge": n.Bridge, "ip": n.Address, "gw": n.Gateway, "ip6": n.Address6, "gw6": n.Gateway6,
		"tag": n.Tag, "mtu": n.MTU, "firewall": n.Firewall, "rate": n.Rate,
	} {
		if text, given := asKey(value); given {
			options[name] = text
		}
	}
	if mac := n.MAC.ValueString(); mac != "" {
		options["hwaddr"] = strings.ToUpper(mac)
	}
	return guest.Network{Key: key, Options: options}.String()
}

func (m *instanceModel) setStartup(ctx context.Context, keys map[string]string) (diags diag.Diagnostics) {
	if m.Startup.IsNull() || m.Startup.IsUnknown() {
		return nil
	}
	var s startupModel
	diags.Append(part(ctx, m.Startup, &s)...)
	var parts []string
	if order, given := asKey(s.Order); given {
		parts = append(parts, "order="+order)
	}
	for _, delay := range []struct {
		name string
		text types.String
	}{{"up", s.Up}, {"down", s.Down}} {
		if !delay.text.IsNull() {
			parts = append(parts, fmt.Sprintf("%s=%d", delay.name, int64(duration(delay.text, 0)/time.Second)))
		}
	}
	keys["startup"] = strings.Join(parts, ",")
	return diags
}

func (m *instanceModel) setConsole(ctx context.Context, keys map[string]string) (diags diag.Diagnostics) {
	var c consoleModel
	diags.Append(part(ctx, m.Console, &c)...)
	for key, value := range map[string]attr.Value{"console": c.Enabled, "cmode": c.Mode, "tty": c.TTYs} {
		if text, given := asKey(value); given {
			keys[key] = text
		}
	}
	return diags
}

// featureText is a list of features as Proxmox writes it: "nesting" is short for "nesting=1".
func featureText(features []string) string {
	options := map[string]string{}
	for _, feature := range features {
		name, value, given := strings.Cut(feature, "=")
		if !given {
			value = "1"
		}
		options[name] = value
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(options)) {
		parts = append(parts, name+"="+options[name])
	}
	return strings.Join(parts, ",")
}
