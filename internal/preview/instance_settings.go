package preview

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// settings are the keys that the configuration sets, the hostname among them.
func (i *instance) settings() map[string]string {
	settings := maps.Clone(i.want.Settings)
	if settings == nil {
		settings = map[string]string{}
	}
	if _, set := settings["hostname"]; !set && i.w.Name != "" {
		settings["hostname"] = i.w.Name
	}
	return settings
}

// changeSettings compares what the configuration sets with what the container has now, without what waits for a restart.
func (i *instance) changeSettings() {
	settings := i.settings()
	for _, key := range sortedKeys(settings) {
		wanted := settings[key]
		now, _ := i.f.Guest.Config.Get(key)
		switch name, _, indexed := guest.SplitKey(key); {
		case key == "description":
			i.changeNotes(wanted)
		case key == "pool":
			i.changePool(wanted)
		case indexed && name == "net":
			i.changeNetwork(key, wanted, now)
		case !sameSetting(key, wanted, now):
			i.change(key, notSet(now), notSet(wanted), takes(key))
			i.set(key, wanted)
		}
	}
	for _, key := range i.app().Set {
		name, _, indexed := guest.SplitKey(key)
		now, there := i.f.Guest.Config.Get(key)
		if _, still := settings[key]; !still && there && indexed && name == "net" {
			i.change(key, now, "removed", TakesNothing)
			i.work.Delete = append(i.work.Delete, key)
		}
	}
}

func (i *instance) changeNotes(wanted string) {
	if strings.TrimSpace(wanted) != strings.TrimSpace(i.f.Journal.User) {
		i.change("description", "", "", TakesNothing)
		i.work.Notes = &wanted
	}
}

// changePool: a pool that cannot be seen is not compared.
func (i *instance) changePool(wanted string) {
	if i.f.Pool.OK && i.f.Pool.Value != wanted {
		i.change("pool", notSet(i.f.Pool.Value), notSet(wanted), TakesNothing)
		i.work.Pool = &wanted
	}
}

// changeNetwork compares what is configured; what Proxmox filled in itself, the hardware address above all, stays.
func (i *instance) changeNetwork(key, wanted, now string) {
	merged := i.mergedNetwork(key, wanted)
	if !sameNetwork(key, merged, now) {
		from, to := differing(now, merged)
		i.change(key, from, to, TakesNothing)
		i.set(key, merged)
	}
}

// sameNetwork reports whether two values of a network mean the same; what is switched off may be left out.
func sameNetwork(key, a, b string) bool {
	x, errX := guest.ParseNetwork(key, a)
	y, errY := guest.ParseNetwork(key, b)
	if errX != nil || errY != nil {
		return false
	}
	for _, n := range []guest.Network{x, y} {
		maps.DeleteFunc(n.Options, func(name, value string) bool { return (name == "firewall" || name == "link_down") && value == "0" })
	}
	return guest.SameNetwork(x, y)
}

// differing are the parts of two property strings that the other does not have.
func differing(a, b string) (onlyA, onlyB string) {
	partsA, partsB := strings.Split(a, ","), strings.Split(b, ",")
	without := func(parts, others []string) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(parts), func(part string) bool { return slices.Contains(others, part) }), ",")
	}
	return notSet(without(partsA, partsB)), notSet(without(partsB, partsA))
}

// mergedNetwork is a configured network with what Proxmox filled in itself when it was made.
func (i *instance) mergedNetwork(key, wanted string) string {
	want, errWant := guest.ParseNetwork(key, wanted)
	live, errLive := guest.ParseNetwork(key, i.f.Guest.Config.Values[key])
	switch {
	case errWant != nil:
		return wanted // Proxmox says what is wrong with it
	case errLive != nil: // new: only a create lets the node manage it by itself, and nobody inside would
		if entrypoint := i.f.Guest.Config.Values["entrypoint"]; entrypoint != "" && !strings.HasPrefix(entrypoint, "/sbin/init") && want.Options["host-managed"] == "" {
			want.Options["host-managed"] = "1"
		}
		return want.String()
	}
	for _, own := range []string{"hwaddr", "type", "host-managed", "name"} {
		if has, there := live.Options[own]; there && want.Options[own] == "" {
			want.Options[own] = has
		}
	}
	return want.String()
}

// takes says what a change of a setting takes: Proxmox applies some to the running container, the others at its next start.
func takes(key string) Takes {
	switch key {
	case "cores", "cpulimit", "cpuunits", "memory", "swap", "tags", "onboot", "startup", "protection":
		return TakesNothing
	}
	return TakesRestart
}

// sameSetting reports whether two values of a setting mean the same; "" is one that is not set, which means its default.
func sameSetting(key, a, b string) bool {
	switch key {
	case "onboot", "protection", "console", "debug", "unprivileged":
		return truth(key, a) == truth(key, b)
	case "cores", "cpulimit", "cpuunits", "memory", "swap", "tty":
		return number(key, a) == number(key, b)
	case "tags":
		return slices.Equal(tagSet(a), tagSet(b))
	case "features", "startup":
		return maps.Equal(properties(key, a), properties(key, b))
	}
	if key == "cmode" {
		return cmp.Or(a, "tty") == cmp.Or(b, "tty")
	}
	return strings.TrimSpace(a) == strings.TrimSpace(b)
}

func truth(key, text string) bool {
	switch text {
	case "":
		return key == "console"
	case "0", "off", "no", "false":
		return false
	}
	return true
}

func number(key, text string) string {
	if text == "" {
		text = map[string]string{"cpulimit": "0", "cpuunits": "100", "memory": "512", "swap": "0", "tty": "2"}[key]
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return text
}

func tagSet(text string) []string {
	return slices.Compact(slices.Sorted(slices.Values(splitTags(strings.ToLower(text)))))
}

// properties are the parts of a property string that say something: a feature that is off is not one.
func properties(key, text string) map[string]string {
	parts := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, named := strings.Cut(part, "=")
		if !named {
			name, value = "order", part
		}
		if off := key == "features" && !truth("", value) || value == ""; !off && name != "" {
			parts[name] = value
		}
	}
	return parts
}

func notSet(value string) string {
	if value == "" {
		return "not set"
	}
	return value
}
