package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// ReconcileVM judges what accept, rollback, rollback_data, resume or close would do to the rebuild that a journal records. In
// f, Guest is the VM that had the data when it began; Volumes and Users cover the other one as well.
func ReconcileVM(action Operation, r guest.Journal, f Facts) Preview {
	name := guest.Config{Values: r.Config}.Name(guest.KindVM, r.Guest)
	r.Back = r.Back || r.Dry // a rehearsal is only ever taken back
	if r.Replace && f.Presence == guest.Present {
		name = f.Guest.Config.Name(guest.KindVM, r.Guest) // it may have been renamed
	}
	c := &vmReconciler{judge: newJudge(f, Want{VMID: r.Guest, Name: name, Operation: r.Operation, VM: &VMWant{}}), r: r, action: action}
	c.judgeIdentity()
	if c.readable() {
		c.judgeAction()
		c.collect()
	}
	p := c.preview(action)
	p.Summary = c.summary(fmt.Sprintf("%s %s, now at stage %d of %d (%s)", action, r.Operation, r.Index, r.Of, r.Stage), p)
	return p
}

// vmReconciler is a judge with the record of a VM's rebuild.
type vmReconciler struct {
	*judge
	r      guest.Journal
	action Operation
}

func (c *vmReconciler) refuse(code Code, found, remedy string) {
	c.block(Blocker{Code: code, Subject: c.r.Operation, Attribute: "reconcile", Found: found, Remedy: remedy})
}

// accepting reports whether the record is one of an accept that was begun: then only that can go on.
func (c *vmReconciler) accepting() bool { return c.r.Kind == OpAccept.String() }

func (c *vmReconciler) judgeAction() {
	waiting := c.r.State == guest.JournalWaiting
	switch c.action {
	case OpAccept:
		if !waiting && !c.accepting() {
			c.refuse(CodeNeedsReconcile, fmt.Sprintf("%s is not done: it stands at stage %d of %d (%s).", c.r.Operation, c.r.Index, c.r.Of, c.r.Stage), "Resume it or roll it back; accept is for what is done.")
		}
		if c.r.Replace {
			c.judgeOldVM()
		}
	case OpResume:
		if waiting {
			c.refuse(CodeAwaitingTrust, fmt.Sprintf("%s is done and waits.", c.r.Operation), "Choose accept, rollback or rollback_data.")
		}
	case OpRollback, OpRollbackData:
		if c.accepting() {
			c.refuse(CodeNeedsReconcile, fmt.Sprintf("%s was accepted, and old disks may be gone.", c.r.Operation), "Resume it.")
		}
		c.judgeWayBack()
		if c.action == OpRollbackData {
			c.judgeSnapshot()
		}
	case OpClose:
		c.lost["record"] = "lost: the operation is forgotten; old disks and the snapshot stay, and nothing is taken back"
		c.judgeCloseable()
	case OpReinstall, OpGrow, OpRebuild, OpReplace, OpInstall, OpModify, OpUpdate, OpRemove, OpAdopt:
		c.refuse(CodeNeedsReconcile, fmt.Sprintf("%s says nothing about an operation of kind %s.", c.action, c.r.Kind), "Choose one of: accept, rollback, rollback_data, resume and close.")
	default:
		c.refuse(CodeNeedsReconcile, "The action is not known.", "Choose one of: accept, rollback, rollback_data, resume and close.")
	}
}

// judgeWayBack asks whether every old system disk is still there.
func (c *vmReconciler) judgeWayBack() {
	for _, d := range c.r.Disks {
		id, err := guest.ParseVolumeID(d.Was)
		if err != nil {
			continue
		}
		if _, listed := c.f.Volumes[id]; !listed && c.f.Listed[id.Storage] {
			c.block(Blocker{
				Code: CodeMountUnclassified, Subject: d.Key, Found: fmt.Sprintf("The old %s (%s) is no longer on its storage.", d.Key, d.Was),
				Remedy: "Without it there is no way back: accept, or restore a backup.",
			})
		}
	}
}

// judgeSnapshot asks whether the kept disks can return to the snapshot.
func (c *vmReconciler) judgeSnapshot() {
	if c.r.Snapshot == "" {
		c.refuse(CodeSnapshotUnsupported, fmt.Sprintf("%s took no snapshot of the kept disks.", c.r.Operation), "Choose rollback, which leaves them as they are now.")
		return
	}
	i := slices.IndexFunc(c.f.Guest.Snapshots, func(s guest.Snapshot) bool { return s.Name == c.r.Snapshot })
	switch {
	case i < 0:
		c.refuse(CodeSnapshotUnsupported, fmt.Sprintf("Snapshot %s is not there.", c.r.Snapshot), "Choose rollback, which leaves the kept disks as they are now.")
	case c.f.Guest.Config.Values["parent"] != c.r.Snapshot:
		c.refuse(CodeSnapshotUnsupported, fmt.Sprintf("Snapshot %s is not the newest any more (%s is).", c.r.Snapshot, c.f.Guest.Config.Values["parent"]), "Delete the newer snapshots first, or choose rollback.")
	default:
		c.lost["changes on kept disks"] = "lost: all that was written after " + utc(c.f.Guest.Snapshots[i].Time)
		c.lost["settings"] = "return to what they were at the snapshot; vmgenid is made anew"
	}
}

// announced are the volumes of the old VM that the plan showed as going with it.
func (c *vmReconciler) announced(id guest.VolumeID) bool {
	text := id.String()
	return slices.Contains(c.r.Doomed, text) || slices.ContainsFunc(c.r.Disks, func(d guest.SystemDisk) bool { return d.Was == text })
}

// judgeOldVM refuses to have the old VM destroyed while it owns anything that the plan did not show as going: attached,
// unused, pending, in snapshots or on a storage.
func (c *vmReconciler) judgeOldVM() {
	held := map[string]bool{}
	named := guest.Volumes(guest.KindVM, c.f.Guest.Config)
	for _, change := range c.f.Guest.Pending {
		named = append(named, guest.Volumes(guest.KindVM, guest.Config{Values: map[string]string{change.Key: change.Value}})...)
	}
	for _, s := range c.f.Guest.Snapshots {
		named = append(named, guest.Volumes(guest.KindVM, s.Config)...)
	}
	for _, n := range named {
		if shape, err := guest.ReadVolume(c.f.Storages[n.ID.Storage].Type, n.ID); err == nil && (shape.CloudInit || shape.State || shape.Owner != c.r.Guest) {
			continue
		}
		if row, listed := c.f.Volumes[n.ID]; listed && row.Content != "images" && row.Content != "rootdir" {
			continue // an ISO image
		}
		if !c.announced(n.ID) {
			held[n.ID.String()] = true
		}
	}
	for id, row := range c.f.Volumes {
		shape, err := guest.ReadVolume(c.f.Storages[id.Storage].Type, id)
		made := err == nil && (shape.CloudInit || shape.State)
		if row.Owner == c.r.Guest && row.Content != "backup" && !made && !c.announced(id) {
			held[id.String()] = true
		}
	}
	for name, s := range c.f.Storages {
		if s.Has("images") && s.Enabled && !c.f.Listed[name] {
			c.block(Blocker{
				Code: CodeStorageUnavailable, Subject: name, Found: fmt.Sprintf("Storage %s does not answer with a list of its content, so whether VM %d owns something there is unknown.", name, c.r.Guest),
				Remedy: "Unknown is not nothing: bring the storage back first.",
			})
		}
	}
	if len(held) > 0 {
		c.block(Blocker{
			Code: CodeParkingHoldsData, Subject: c.r.Guest.String(), Attribute: "reconcile", Found: fmt.Sprintf("VM %d owns %s, which the plan did not show as going with it.", c.r.Guest, list(sortedKeys(held))),
			Remedy: "Move it to the VM it belongs to, or remove it by hand; then accept again.",
		})
	}
}

// judgeCloseable refuses to forget a rebuild while its parking VM holds anything.
func (c *vmReconciler) judgeCloseable() {
	if c.r.Replace || c.r.Parking == 0 {
		return
	}
	var held []string
	for id, row := range c.f.Volumes {
		if row.Owner == c.r.Parking && row.Content != "backup" {
			held = append(held, id.String())
		}
	}
	if len(held) > 0 {
		slices.Sort(held)
		c.block(Blocker{
			Code: CodeParkingHoldsData, Subject: c.r.Parking.String(), Attribute: "reconcile", Found: fmt.Sprintf("VM %d holds %s.", c.r.Parking, list(held)),
			Remedy: "Resume or roll back; or remove that VM by hand, then close.",
		})
	}
}

// collect lists the disks that the record names, with what the action does to them.
func (c *vmReconciler) collect() {
	row := func(key, volume string, owner guest.VMID, d DataFate, m MountFate, why string) {
		v := newRecorded(c.f, key, volume, owner)
		v.set(d, m, why)
		c.volumes = append(c.volumes, v)
	}
	back := c.action == OpRollback || c.action == OpRollbackData || c.action == OpResume && c.r.Back
	named := map[string]bool{}
	for _, d := range c.r.Disks {
		named[d.Key] = true
		switch {
		case back:
			row(d.Key, d.Was, c.r.Guest, DataKept, MountReattached, "the old system returns with its options")
			if d.Now != "" {
				row(d.Key+" (new)", d.Now, c.r.Guest, DataErased, MountDropped, "the new system goes")
			}
		case c.action == OpAccept:
			if name := c.heldBy(newRecorded(c.f, d.Key, d.Was, c.r.Guest).id); name != "" && !c.r.Replace {
				row(d.Key+" (old)", d.Was, c.r.Guest, DataKept, MountDropped, "stays until snapshot "+name+" is deleted")
			} else {
				row(d.Key+" (old)", d.Was, c.r.Guest, DataErased, MountDropped, "the way back goes")
			}
		default:
			row(d.Key+" (old)", d.Was, c.r.Guest, DataKept, MountKept, "left as it is")
		}
	}
	config := guest.Config{Values: c.r.Config}
	disks, _ := guest.Disks(config)
	for _, d := range disks {
		if named[d.Key] || d.CDROM || d.CloudInit {
			continue
		}
		volume, mount, data := d.Source, MountKept, DataKept
		why := "never touched"
		for _, p := range c.r.Parked {
			if p.Key != d.Key || !c.r.Replace {
				continue
			}
			volume = where(p, d.Source)
			if back {
				mount, data, why = MountReattached, DataPreserved, "handed back by renaming"
			}
		}
		if c.action == OpRollbackData && !strings.HasPrefix(d.Key, "unused") {
			why = "returns to the snapshot"
		}
		row(d.Key, volume, c.r.Guest, data, mount, why)
	}
	if c.action == OpAccept && c.r.Snapshot != "" {
		c.lost["snapshot"] = "lost: " + c.r.Snapshot
	}
	if c.action == OpRollback && c.r.Snapshot != "" {
		c.lost["snapshot"] = "lost: " + c.r.Snapshot + "; kept disks stay as they are now, rollback_data would return them to it"
	}
}

func newRecorded(f Facts, key, name string, owner guest.VMID) volume {
	v := volume{key: key, Fate: Fate{Key: key, Volume: name, Owner: owner, Path: "-"}}
	if id, err := guest.ParseVolumeID(name); err == nil {
		v.id = id
		v.Size = max(f.Volumes[id].Size, 0)
	}
	return v
}
