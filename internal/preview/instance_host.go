package preview

import (
	"fmt"
	"slices"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// changeHostMounts compares directories of the host by the path on which they are mounted.
func (i *instance) changeHostMounts() {
	for _, path := range sortedKeys(i.want.HostPaths) {
		wanted := i.want.HostPaths[path]
		what := "host directory " + path
		n := slices.IndexFunc(i.volumes, func(v volume) bool {
			return v.section == "" && v.Mounted.Kind == guest.SourceBind && samePath(v.Path, path)
		})
		if n < 0 {
			key := i.freeKey()
			i.change(what, "not there", wanted.Source, TakesNothing)
			i.set(key, wanted.mount(key, path, nil).String())
			i.rootOnly(what, "host_directories", "a bind mount of "+wanted.Source)
			continue
		}
		has := i.volumes[n]
		mount := wanted.mount(has.key, path, has.Mounted.Options)
		if mount.Source == has.Volume && mount.SameOptions(has.Mounted) {
			continue
		}
		i.change(what, has.Volume, wanted.Source, TakesRestart)
		i.set(has.key, mount.String())
		i.rootOnly(what, "host_directories", "a bind mount of "+wanted.Source)
	}
	i.leaveHostMounts()
	if len(i.want.HostPaths) > 0 {
		i.warn("%s: host directories (%s) are outside every backup and every rollback: what a new version changes there stays changed", i.label(), list(sortedKeys(i.want.HostPaths)))
	}
}

// leaveHostMounts takes away directories that the contract has and the configuration has not; their data is the host's.
func (i *instance) leaveHostMounts() {
	for _, v := range i.volumes {
		_, recorded := i.app().Keys[v.key]
		if v.section == "" && v.Mounted.Kind == guest.SourceBind && recorded && !i.hasHostPath(v.Path) {
			i.leaveHost(v.key, "host directory "+v.Path, "host_directories", v.Volume)
		}
	}
}

func (i *instance) hasHostPath(path string) bool {
	return slices.ContainsFunc(sortedKeys(i.want.HostPaths), func(wanted string) bool { return samePath(wanted, path) })
}

// leaveHost takes away what only root@pam with a password could set again: others must say that they mean it.
func (i *instance) leaveHost(key, what, argument, now string) {
	i.change(what, now, "removed", TakesRestart)
	i.work.Delete = append(i.work.Delete, key)
	if i.f.Login.RootTicket {
		return
	}
	i.blockUnlessDropped(key, Blocker{
		Code: CodeNotRecreatable, Subject: key, Attribute: "drop", Found: fmt.Sprintf("%s (%s) is no longer in %s, and %s could not set it again.", key, now, argument, i.login()),
		Remedy: fmt.Sprintf("Put it back into %s, or add %q to drop to go on without it; the host's own data stays.", argument, key),
	})
}

func (h HostPath) mount(key, path string, now map[string]string) guest.Mount {
	options := map[string]string{}
	for name, value := range now {
		if name != "ro" {
			options[name] = value
		}
	}
	if h.ReadOnly {
		options["ro"] = "1"
	}
	return guest.Mount{Key: key, Source: h.Source, Kind: guest.SourceBind, Path: path, Options: options}
}
