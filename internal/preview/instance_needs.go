package preview

import (
	"slices"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// NeedsInstance lists the rights that what is due for an application container uses, and with them every path that must be
// asked for before Instance can answer.
func NeedsInstance(f Facts, w Want) []Need {
	i := newInstance(f, w)
	op := i.judgeAll()
	if op == 0 {
		return []Need{{Privileges: []string{"VM.Config.Options"}, Paths: []string{i.path()}, Optional: true, For: "reading the environment"}}
	}
	return i.instanceNeeds(op)
}

// NeedsInstanceRemoval lists the rights that InstanceRemoval asks for.
func NeedsInstanceRemoval(f Facts, w Want) []Need {
	i := newInstance(f, w)
	if !i.readable() {
		return nil
	}
	i.collect()
	return i.instanceNeeds(OpRemove)
}

func (i *instance) instanceNeeds(op Operation) []Need {
	switch op {
	case OpInstall:
		return i.installNeeds()
	case OpUpdate:
		return i.updateNeeds()
	case OpModify:
		return i.modifyNeeds()
	case OpAdopt:
		return []Need{i.need("VM.Config.Options", "the contract")}
	case OpRemove:
		return i.removalNeeds()
	case OpReinstall, OpGrow, OpRebuild, OpReplace, OpResume, OpRollback, OpRollbackData, OpAccept, OpClose:
	}
	return nil
}

// need is a right on the container: on its own path or, while it is made, on the pool that it is made in.
func (i *instance) need(privilege, why string) Need {
	paths := []string{i.path()}
	if pool := i.want.Settings["pool"]; pool != "" && i.f.Presence == guest.Absent {
		paths = append(paths, "/pool/"+pool)
	}
	return Need{Privileges: []string{privilege}, Paths: paths, For: why}
}

func on(privilege, path, why string) Need {
	return Need{Privileges: []string{privilege}, Paths: []string{path}, For: why}
}

func (i *instance) installNeeds() []Need {
	var needs []Need
	for _, privilege := range i.instancePrivileges() {
		needs = append(needs, i.need(privilege, "the container"))
	}
	needs = append(needs, i.archiveNeeds()...)
	needs = append(needs, i.makingNeeds(i.newRootfsStorage())...)
	return append(needs, i.wantedNetworks()...)
}

func (i *instance) updateNeeds() []Need {
	needs := i.needs()
	for _, privilege := range i.instancePrivileges() {
		n := i.need(privilege, "the container")
		n.Lasting = true
		needs = append(needs, n)
	}
	needs = append(needs, i.archiveNeeds()...)
	needs = append(needs, i.makingNeeds("")...)
	return append(needs, i.wantedNetworks()...)
}

// instancePrivileges are the rights on a container that making, changing and starting it takes.
func (i *instance) instancePrivileges() []string {
	privileges := []string{"VM.Allocate", "VM.Audit", "VM.Config.Disk", "VM.Config.Memory", "VM.Config.Network", "VM.Config.Options", "VM.PowerMgmt"}
	for _, key := range []string{"cores", "cpulimit", "cpuunits"} {
		if _, set := i.want.Settings[key]; set {
			return append(privileges, "VM.Config.CPU")
		}
	}
	return privileges
}

// archiveNeeds: archives are uploaded; deleting one takes more, without which it stays.
func (i *instance) archiveNeeds() []Need {
	name := i.archiveStorage()
	if name == "" {
		return nil
	}
	path := "/storage/" + name
	deleting := on("Datastore.Allocate", path, "deleting archives")
	deleting.Optional = true
	return []Need{
		on("Datastore.AllocateTemplate", path, "uploading the archive"),
		{Privileges: []string{"Datastore.Audit", "Datastore.AllocateSpace"}, Paths: []string{path}, For: "reading the archive"},
		deleting,
	}
}

// makingNeeds are the rights to make volumes and to enlarge them; further is a storage that takes one beside those.
func (i *instance) makingNeeds(further string) []Need {
	storages := map[string]bool{}
	if further != "" {
		storages[further] = true
	}
	for _, v := range i.work.Make {
		storages[allocatedOn(v.Value)] = true
	}
	for key := range i.work.Grow {
		if n := slices.IndexFunc(i.volumes, func(v volume) bool { return v.Key == key }); n >= 0 {
			storages[i.volumes[n].id.Storage] = true
		}
	}
	delete(storages, "")
	var needs []Need
	for _, name := range sortedKeys(storages) {
		needs = append(needs, on("Datastore.AllocateSpace", "/storage/"+name, "making volumes"))
	}
	return needs
}

// wantedNetworks: a bridge that is named anew must be one that this login may use.
func (i *instance) wantedNetworks() []Need {
	var networks []guest.Network
	for _, key := range sortedKeys(i.work.Set) {
		if name, _, indexed := guest.SplitKey(key); indexed && name == "net" {
			if n, err := guest.ParseNetwork(key, i.work.Set[key]); err == nil {
				networks = append(networks, n)
			}
		}
	}
	return i.bridgeNeeds(networks)
}

// modifyNeeds are the rights that exactly these changes take. Their record is in the notes.
func (i *instance) modifyNeeds() []Need {
	asked := map[string]bool{"VM.Config.Options": true}
	for _, key := range append(sortedKeys(i.work.Set), i.work.Delete...) {
		asked[keyPrivilege(key)] = true
	}
	if len(i.work.Make)+len(i.work.Grow)+len(i.work.Erase) > 0 {
		asked["VM.Config.Disk"] = true
	}
	if i.work.Restart || i.work.Start || i.work.Stop {
		asked["VM.PowerMgmt"] = true
	}
	var needs []Need
	for _, privilege := range sortedKeys(asked) {
		needs = append(needs, on(privilege, i.path(), "changing the container"))
	}
	if pool := i.work.Pool; pool != nil {
		for _, name := range []string{i.f.Pool.Value, *pool} {
			if name != "" {
				needs = append(needs, on("Pool.Allocate", "/pool/"+name, "the pool"))
			}
		}
		needs = append(needs, on("VM.Allocate", i.path(), "the pool"))
	}
	needs = append(needs, i.makingNeeds("")...)
	return append(needs, i.wantedNetworks()...)
}

// keyPrivilege is the right that setting a key of a container takes.
func keyPrivilege(key string) string {
	name, _, indexed := guest.SplitKey(key)
	switch {
	case isMount(key):
		return "VM.Config.Disk"
	case indexed && name == "net", key == "nameserver", key == "searchdomain", key == "hostname":
		return "VM.Config.Network"
	case key == "memory", key == "swap":
		return "VM.Config.Memory"
	case key == "cores", key == "cpulimit", key == "cpuunits":
		return "VM.Config.CPU"
	case key == "features":
		return "VM.Allocate"
	}
	return "VM.Config.Options"
}

// judgeInstanceRights names every right that is missing, or that a destroy would take away.
func (i *instance) judgeInstanceRights(op Operation) {
	if op == OpUpdate {
		i.judgeTags(i.f.Guest.Config.Values["tags"])
		i.judgeACL()
	}
	if wanted, set := i.work.Set["tags"]; set {
		i.judgeTags(wanted)
	}
	if i.f.Login.RootTicket {
		return
	}
	if !i.f.Privileges.OK {
		i.unseen("privileges", i.f.Privileges.Why, "the rights that the guide lists")
		return
	}
	needs := i.instanceNeeds(op)
	i.lacking(needs)
	if op != OpInstall && op != OpUpdate && op != OpRemove {
		return
	}
	if path := "/storage/" + i.archiveStorage(); i.archiveStorage() != "" && !i.may("Datastore.Allocate", path) {
		i.warn("archives of earlier images stay on %s: deleting them takes Datastore.Allocate on %s", i.archiveStorage(), path)
	}
}
