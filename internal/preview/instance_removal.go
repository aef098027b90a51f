package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// InstanceRemoval judges the removal of an application container: what is erased with it, what stays, and why not. Operation
// is 0 when there is nothing to remove.
func InstanceRemoval(f Facts, w Want) Preview {
	i := newInstance(f, w)
	there := i.judgeReach()
	i.judgeRecords()
	op := OpRemove
	switch {
	case f.Presence == guest.Absent && !i.operating():
		op = 0
	case there:
		i.judgeRemoval()
	}
	p := i.preview(op)
	p.Summary = i.line(p)
	return p
}

func (i *instance) judgeRemoval() {
	i.collect()
	i.decideRemoval()
	if i.want.Protected {
		i.block(Blocker{
			Code: CodeDeletionProtected, Subject: i.id().String(), Attribute: "deletion_protection", Found: fmt.Sprintf("%s has deletion_protection.", i.label()),
			Remedy: "Set deletion_protection = false and apply that first, if the container and its volumes may go.",
		})
	}
	i.judgeRemovedIdentity()
	i.judgeProtection()
	i.judgeLock()
	i.judgeTasks()
	i.judgeShared()
	i.judgeStorages()
	i.judgeSnapshots()
	i.judgeHA()
	i.judgeReplication()
	i.judgeBackups()
	i.judgeNotes()
	i.judgeInstanceRights(OpRemove)
	i.judgeRemovalLost()
}

// judgeRemovedIdentity: what is removed must be what state knows: this VMID's contract, this hostname, this repository.
func (i *instance) judgeRemovedIdentity() {
	switch {
	case i.contract == nil:
		i.judgeStranger()
		return
	case i.restored:
		i.block(Blocker{
			Code: CodeNotAnInstance, Subject: i.id().String(), Attribute: "vmid", Found: fmt.Sprintf("%s is a copy of an instance that was made as CT %d; nobody took it over.", i.label(), i.contract.Guest),
			Remedy: "Adopt it first (adopt = true), or remove it by hand.",
		})
		return
	}
	i.judgeName("hostname")
	i.judgeRepository()
	if i.want.Known != "" && i.want.Known != i.contract.Instance {
		i.block(Blocker{
			Code: CodeContractDiffers, Subject: i.id().String(), Attribute: "adopt", Found: fmt.Sprintf("%s is under contract %s; the last one known here is %s: it was restored, or somebody else changed it.", i.label(), orUnknown(i.contract.Instance), i.want.Known),
			Remedy: "Look at what is there; adopt it (adopt = true) if it is what you mean, then remove it.",
		})
	}
}

// decideRemoval: what the container owns goes with it, everything else stays.
func (i *instance) decideRemoval() {
	for n := range i.volumes {
		v := &i.volumes[n]
		switch {
		case v.trouble != "":
			i.decideUnclassified(v)
		case v.id == (guest.VolumeID{}):
			v.set(DataHostManaged, MountDropped, "the host's; it stays")
		case i.foreign(*v):
			v.set(DataExcluded, MountDropped, fmt.Sprintf("belongs to guest %d; it stays", v.Owner))
		default:
			v.set(DataErased, MountDropped, "removed with the container")
		}
	}
}

// judgeRemovalLost says what else goes and what stays.
func (i *instance) judgeRemovalLost() {
	f := i.f
	i.lost["root file system"] = "lost: everything the application wrote outside its volumes"
	if names := i.snapshotNames(); len(names) > 0 {
		i.lost["snapshots"] = fmt.Sprintf("lost: %s (%s)", plural(len(names), "snapshot"), strings.Join(names, ", "))
	}
	i.loses("firewall", true, "", !f.Firewall.OK || f.Firewall.Value != (Firewall{}), "lost")
	i.loses("ACL", f.ACL.OK, f.ACL.Why, len(f.ACL.Value) > 0, "lost: the entries on "+i.path())
	i.loses("pool", f.Pool.OK, f.Pool.Why, f.Pool.Value != "", "lost: its membership of "+f.Pool.Value)
	i.loses("HA", f.HA.OK, f.HA.Why, f.HA.Value.Managed, "lost")
	i.loses("backups", f.Backups.OK, f.Backups.Why, len(f.Backups.Value) > 0, plural(len(f.Backups.Value), "backup")+": kept")
	for _, v := range i.volumes {
		if v.section == "" && v.id == (guest.VolumeID{}) && v.Mounted.Kind == guest.SourceBind {
			i.lost["host directory "+v.Path] = "kept: " + v.Volume
		}
	}
	if left := i.unnamed(); len(left) > 0 {
		i.lost["other volumes"] = "kept: " + strings.Join(left, ", ") + ", which no key of the container names"
	}
	for _, archive := range i.archives() {
		i.lost["archive "+archive] = i.archiveFate(archive)
	}
}

// unnamed are volumes of this VMID that no section names: a destroy leaves them.
func (i *instance) unnamed() []string {
	var left []string
	for id, row := range i.f.Volumes {
		named := slices.ContainsFunc(i.volumes, func(v volume) bool { return v.id == id })
		if row.Owner == i.id() && row.Content != "backup" && !named {
			left = append(left, id.String())
		}
	}
	slices.Sort(left)
	return left
}

// archives are those that the contract names.
func (i *instance) archives() []string {
	var names []string
	for _, archive := range []string{i.app().Archive, i.app().Previous} {
		if archive != "" && !slices.Contains(names, archive) {
			names = append(names, archive)
		}
	}
	return names
}

// namers are the other containers whose contract names an archive.
func (i *instance) namers(archive string) []string {
	var names []string
	for _, other := range i.f.Instances.Value {
		if other.VMID != i.id() && slices.Contains(other.Archives, archive) {
			names = append(names, "CT "+other.VMID.String())
		}
	}
	guest.SortKeys(names)
	return slices.Compact(names)
}

func (i *instance) archiveFate(archive string) string {
	storage, _, _ := strings.Cut(archive, ":")
	switch names := i.namers(archive); {
	case !i.f.Instances.OK:
		return "kept: whether another container was made from it is unknown: " + orUnknown(i.f.Instances.Why)
	case len(names) > 0:
		return "kept: named by " + list(names) + " as well"
	case !i.may("Datastore.Allocate", "/storage/"+storage):
		return "kept: deleting it takes Datastore.Allocate on /storage/" + storage
	}
	return "deleted: no other container names it"
}

func (i *instance) removalNeeds() []Need {
	var needs []Need
	for _, privilege := range []string{"VM.Allocate", "VM.Audit", "VM.Config.Options", "VM.PowerMgmt"} {
		needs = append(needs, on(privilege, i.path(), "the removal"))
	}
	if len(i.snapshotNames()) > 0 {
		needs = append(needs, on("VM.Snapshot", i.path(), "deleting snapshots"))
	}
	if i.f.HA.OK && i.f.HA.Value.Managed {
		needs = append(needs, on("Sys.Console", "/", "taking it out of HA"))
	}
	storages := map[string]bool{}
	for _, v := range i.volumes {
		if _, there := i.f.Storages[v.id.Storage]; there && isStored(v.section) {
			storages[v.id.Storage] = true
		}
	}
	for _, name := range sortedKeys(storages) {
		needs = append(needs, on("Datastore.Audit", "/storage/"+name, "seeing the volumes"))
	}
	for _, archive := range i.archives() {
		storage, _, _ := strings.Cut(archive, ":")
		n := on("Datastore.Allocate", "/storage/"+storage, "deleting archives")
		n.Optional = true
		needs = append(needs, n)
	}
	return needs
}
