package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// Carried reports whether a key of the configuration is set again on the new guest as it was. The list is closed: a key
// that is neither here, nor never carried, nor a volume, blocks. devN and hookscript are carried for root@pam only.
func Carried(key string) bool {
	name, _, indexed := guest.SplitKey(key)
	if indexed {
		return name == "net" || name == "dev"
	}
	switch key {
	case "cores", "cpulimit", "cpuunits", "memory", "swap", "hostname", "nameserver", "searchdomain", "features",
		"description", "startup", "onboot", "timezone", "console", "tty", "tags", "debug", "unprivileged", "hookscript":
		return true
	}
	return false
}

// NeverCarried reports whether a key must not reach the new guest: a lock that nobody can lift, the old system's kind, what
// Proxmox computes itself.
func NeverCarried(key string) bool {
	name, _, indexed := guest.SplitKey(key)
	if indexed {
		return name == "unused"
	}
	switch key {
	case "lock", "template", "protection", "digest", "parent", "snaptime", "snapstate", "ostype", "arch", "lxc":
		return true
	}
	return false
}

// AbsentMeans returns what a create must be sent for keys that are absent, because a create reads their absence in another
// way than a running guest does (hazard A7).
func AbsentMeans() map[string]string {
	return map[string]string{"unprivileged": "0", "swap": "0"}
}

// Carry returns what the create of the new guest is sent besides its template and volumes: the carried keys as they are,
// what absence means, without what drop gives up or this login may not set. Notes are not among them.
func Carry(f Facts, w Want) map[string]string {
	params := AbsentMeans()
	for key, value := range f.Guest.Config.Values {
		rootOnly := isDevice(key) || key == "hookscript"
		given := slices.Contains(w.Drop, key) && droppable(key)
		if Carried(key) && key != "description" && !given && (f.Login.RootTicket || !rootOnly) {
			params[key] = value
		}
	}
	return params
}

// droppable reports whether drop can give a key up. Keys that everybody may set again are carried whatever drop says:
// without its unprivileged, for one, a guest would come back with another id mapping.
func droppable(key string) bool {
	return !Carried(key) || isDevice(key) || key == "hookscript" || key == "features"
}

// privileged reports whether the guest's root is the host's root.
func (j *judge) privileged() bool { return j.f.Guest.Config.Values["unprivileged"] != "1" }

// judgeKeys blocks every key that cannot be set again with these credentials, or that nothing is known about.
func (j *judge) judgeKeys() {
	config := j.f.Guest.Config
	for _, key := range config.Keys() {
		value := config.Values[key]
		name, _, indexed := guest.SplitKey(key)
		switch {
		case isMount(key), indexed && name == "dev", NeverCarried(key):
		case key == "entrypoint", key == "env", key == "cmode":
			j.cannotSet(key, fmt.Sprintf("%s belongs to containers made from an OCI image; a system from a template would not start with it", key))
		case key == "hookscript":
			if !j.f.Login.RootTicket {
				j.cannotSet(key, fmt.Sprintf("hookscript (%s) may be set by root@pam with a password only; this login is %s", value, j.login()))
			}
		case key == "features":
			j.judgeFeatures(value)
		case name == "net" && indexed:
			if _, err := guest.ParseNetwork(key, value); err != nil {
				j.block(Blocker{
					Code: CodeMountUnclassified, Subject: key, Found: fmt.Sprintf("%s cannot be read: %s.", key, err),
					Remedy: "Correct it on the guest first.",
				})
			}
		case Carried(key):
			if j.dropped(key) {
				j.warn("drop names %s, which is carried over: drop is for what cannot be set again", key)
			}
		default:
			j.cannotSet(key, fmt.Sprintf("%s = %q is not a setting that pvrx knows how to carry over", key, value))
		}
	}
	j.judgeRaw(config.Raw)
}

func (j *judge) cannotSet(key, why string) {
	j.blockUnlessDropped(key, Blocker{
		Code: CodeNotRecreatable, Subject: key, Attribute: "drop", Found: why + ".",
		Remedy: fmt.Sprintf("Add %q to drop to %s without it.", key, j.deed()),
	})
}

// judgeFeatures: others than root@pam may set nesting only, and that on an unprivileged container only.
func (j *judge) judgeFeatures(value string) {
	if j.f.Login.RootTicket {
		return
	}
	var beyond []string
	for feature := range strings.SplitSeq(value, ",") {
		name, on, _ := strings.Cut(feature, "=")
		if off := on == "0" || on == "off" || on == "no" || on == "false"; feature == "" || off {
			continue
		}
		if name != "nesting" || j.privileged() {
			beyond = append(beyond, feature)
		}
	}
	if len(beyond) == 0 {
		return
	}
	slices.Sort(beyond)
	kind := "an unprivileged"
	if j.privileged() {
		kind = "a privileged"
	}
	j.cannotSet("features", fmt.Sprintf("features %s on %s container may be set by root@pam with a password only; this login is %s; dropping features drops all of them (%s)",
		list(beyond), kind, j.login(), value))
}

// judgeRaw: no API call sets raw lxc keys, whoever asks. An id mapping among them decides who owns the files of kept volumes.
func (j *judge) judgeRaw(pairs [][2]string) {
	raw := map[string][]string{}
	for _, pair := range pairs {
		raw[pair[0]] = append(raw[pair[0]], pair[1])
	}
	for _, key := range sortedKeys(raw) {
		j.cannotSet(key, fmt.Sprintf("The raw key %s (%s) cannot be set through the API by anybody", key, strings.Join(raw[key], "; ")))
	}
	if len(raw["lxc.idmap"]) == 0 {
		return
	}
	var kept []string
	for _, v := range j.volumes {
		if v.Data == DataPreserved || v.Data == DataExcluded && v.Mount == MountReattached {
			kept = append(kept, v.key)
		}
	}
	if len(kept) > 0 {
		j.block(Blocker{
			Code: CodeIDMapDiffers, Subject: "lxc.idmap",
			Found:  fmt.Sprintf("The guest maps ids in its own way (lxc.idmap: %s) and the new one cannot; files on %s would belong to other users there.", strings.Join(raw["lxc.idmap"], "; "), list(kept)),
			Remedy: "Reinstall it by hand, or remove lxc.idmap and correct the owners first.",
		})
	}
}

// login names who asks, for messages.
func (j *judge) login() string {
	if j.f.Login.User == "" {
		return "not known"
	}
	return j.f.Login.User
}
