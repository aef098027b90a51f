package preview

import (
	"fmt"
	"slices"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// judgeResume asks whether the operation can go on from where it stands.
func (c *reconciler) judgeResume() {
	c.judgeWhereabouts()
	if !c.r.New && !c.r.Back && c.f.TemplateKnown == guest.Absent {
		c.block(Blocker{
			Code: CodeTemplateMissing, Subject: c.r.Wanted.Template, Attribute: "template", Found: fmt.Sprintf("%s is no longer on node %s.", c.r.Wanted.Template, orUnknown(c.r.Node)),
			Remedy: "Download it again: the new guest is made from it.",
		})
	}
	c.lost["root file system"] = "lost: as the reinstall said"
	if c.r.Back {
		c.lost = map[string]string{}
	}
}

// judgeRollback asks whether the old system can come back. Before the point of no return it is still there; past it, only
// the operation's own backup brings it back.
func (c *reconciler) judgeRollback() {
	c.judgeWhereabouts()
	if !c.gone {
		return
	}
	if c.r.Backup == "" {
		c.refuse(fmt.Sprintf("The old root file system of "+c.kind()+" %d is gone, and %s made no backup of it.", c.r.Guest, c.r.Operation))
		return
	}
	c.lost["root file system"] = "returns from " + guest.Printable(c.r.Backup) + ", as it was then"
	id, err := guest.ParseVolumeID(c.r.Backup)
	if _, listed := c.f.Volumes[id]; err == nil && listed {
		return
	}
	if slices.ContainsFunc(c.f.Backups.Value, func(row guest.StoredVolume) bool { return row.ID == id }) {
		return
	}
	if !c.f.Listed[id.Storage] && !c.f.Backups.OK {
		c.unseen("backups", c.f.Backups.Why, "Datastore.Audit on the backup storage and VM.Backup on /vms")
		return
	}
	c.refuse(fmt.Sprintf("The backup %s is no longer listed.", c.r.Backup))
}

// judgeWhereabouts asks whether every volume that was set aside is where the record, or the world, says.
func (c *reconciler) judgeWhereabouts() {
	for i := range c.volumes {
		v := &c.volumes[i]
		p, parked := c.parked(v.key)
		if !parked || v.id == (guest.VolumeID{}) {
			continue
		}
		if why := c.unavailable(v.id.Storage, "rootdir"); why != "" {
			c.block(Blocker{
				Code: CodeStorageUnavailable, Subject: v.id.Storage, Found: fmt.Sprintf("Storage %s, which holds %s (%s), %s.", v.id.Storage, v.key, v.Volume, why),
				Remedy: "Bring the storage back first.",
			})
			continue
		}
		if v.listed || !c.f.Listed[v.id.Storage] || c.moving(p, v.id.Storage) || c.home(p) {
			continue
		}
		v.set(DataUnknown, MountDropped, "it is not where the record says")
		c.block(Blocker{
			Code: CodeMountUnclassified, Subject: v.key, Found: fmt.Sprintf("%s should be %s, which storage %s does not list.", v.key, v.Volume, v.id.Storage),
			Remedy: "Find the volume and who names it before going on: nothing is picked by guessing.",
		})
	}
}

// home reports whether a volume that was set aside is back with its guest, whatever an older record says: the guest names it
// under its key, and its storage lists it as the guest's.
func (c *reconciler) home(p guest.ParkedVolume) bool {
	was, err := guest.ParseMount(p.Key, p.Value)
	if err != nil || !c.readable() {
		return false
	}
	now, err := guest.ParseMount(p.Key, c.f.Guest.Config.Values[p.Key])
	if err != nil || !now.SameOptions(was) {
		return false
	}
	id, isVolume := now.Volume()
	return isVolume && c.f.Volumes[id].Owner == c.r.Guest
}

// moving reports whether exactly one volume appeared at the receiving guest since the move was recorded: then the move was
// made and only its record is missing.
func (c *reconciler) moving(p guest.ParkedVolume, storage string) bool {
	if p.To == 0 {
		return false
	}
	appeared := 0
	for id, row := range c.f.Volumes {
		if id.Storage == storage && row.Owner == p.To && !slices.Contains(p.Before, id.String()) {
			appeared++
		}
	}
	return appeared == 1
}

// judgeClose refuses while the parking guest holds a volume that nobody else names: without the record nobody would look
// for it there. What cannot be seen counts as held.
func (c *reconciler) judgeClose() {
	c.lost["record"] = "lost: the operation is forgotten; nothing is taken back and nothing goes on"
	var held []string
	unseen := map[string]bool{}
	for _, v := range c.volumes {
		if p, _ := c.parked(v.key); c.waits(v.key) && !v.listed && !c.home(p) {
			unseen[v.Volume] = true
		}
	}
	for id, row := range c.f.Volumes {
		if c.r.Parking != 0 && row.Owner == c.r.Parking && !c.isParkingRootfs(id) && !c.namedElsewhere(id) {
			held = append(held, fmt.Sprintf("%s (%s)", id, row.Size.GiB()))
		}
	}
	slices.Sort(held)
	if len(held) > 0 {
		c.block(Blocker{
			Code: CodeParkingHoldsData, Subject: c.r.Parking.String(), Attribute: "reconcile", Found: fmt.Sprintf(c.kind()+" %d holds %s, which no other guest names.", c.r.Parking, list(held)),
			Remedy: "Resume or roll back, or move the volumes to where they belong by hand; then close.",
		})
	}
	if len(unseen) > 0 {
		c.block(Blocker{
			Code: CodeParkingHoldsData, Subject: c.r.Parking.String(), Attribute: "reconcile", Found: fmt.Sprintf("The record says that %s wait on "+c.kind()+" %d, and no storage lists them.", list(sortedKeys(unseen)), c.r.Parking),
			Remedy: "What cannot be seen counts as held: make the storages and rights visible, then resume or roll back.",
		})
	}
}

func (c *reconciler) isParkingRootfs(id guest.VolumeID) bool {
	return slices.ContainsFunc(c.f.Users[id], func(u User) bool {
		return u.VMID == c.r.Parking && u.Key == "rootfs" && u.Section == ""
	})
}

// namedElsewhere reports whether the guest itself, or any guest but the parking guest, names a volume.
func (c *reconciler) namedElsewhere(id guest.VolumeID) bool {
	if c.readable() && slices.ContainsFunc(guest.Volumes(guest.KindContainer, c.f.Guest.Config), func(n guest.Named) bool { return n.ID == id }) {
		return true
	}
	return slices.ContainsFunc(c.f.Users[id], func(u User) bool { return u.VMID != c.r.Parking })
}
