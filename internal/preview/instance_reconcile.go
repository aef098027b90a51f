package preview

import (
	"fmt"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// ReconcileInstance judges what resume, rollback or close would do to an operation on an application container. An install is
// taken back by removing what it made; an update, past the point of no return as well, by making the container from the
// image before; a removal only while nothing is removed.
func ReconcileInstance(action Operation, r guest.Journal, f Facts) Preview {
	c := newReconciler(r, f)
	c.judgeReach()
	c.collectInstance(action)
	switch action {
	case OpResume:
		c.resumeInstance()
	case OpRollback:
		c.rollbackInstance()
	case OpClose:
		c.judgeClose()
	case OpReinstall, OpGrow, OpRebuild, OpReplace, OpInstall, OpModify, OpUpdate, OpRemove, OpAdopt, OpRollbackData, OpAccept:
		c.refuse(fmt.Sprintf("%s says nothing about an operation of kind %s.", action, r.Kind))
	default:
		c.refuse("The action is not known.")
	}
	p := c.preview(action)
	p.Summary = c.summary(fmt.Sprintf("%s %s, now at stage %d of %d (%s)", action, r.Operation, r.Index, r.Of, r.Stage), p)
	return p
}

// collectInstance lists the volumes that the record names, and of an install or a removal those of the container itself.
func (c *reconciler) collectInstance(action Operation) {
	if c.replaces() {
		c.collectRecorded(action)
		c.collectMade(action)
		for n := range c.volumes {
			if v := &c.volumes[n]; v.key == "rootfs" && action == OpRollback && c.gone {
				v.Reason = "made again from the image before"
			}
		}
		return
	}
	if !c.readable() {
		return
	}
	c.collect()
	for n := range c.volumes {
		v := &c.volumes[n]
		own := c.owned(*v)
		switch {
		case v.trouble != "":
			v.set(DataUnknown, MountDropped, v.trouble)
		case v.id == (guest.VolumeID{}):
			v.set(DataHostManaged, MountDropped, "the host's; it stays")
		case own && c.kindIs(OpInstall) && action == OpRollback:
			v.set(DataErased, MountDropped, "made by this install")
		case own && c.kindIs(OpRemove) && action == OpResume:
			v.set(DataErased, MountDropped, "removed with the container")
		case !own:
			v.set(DataExcluded, MountDropped, fmt.Sprintf("belongs to guest %d", v.Owner))
		default:
			v.set(DataKept, MountKept, "left as it is")
		}
	}
}

// collectMade lists the volumes that an update has made: taking it back takes them away, with what the new version wrote.
func (c *reconciler) collectMade(action Operation) {
	if c.r.App == nil {
		return
	}
	for _, made := range c.r.App.New {
		id, err := guest.ParseVolumeID(made.Now)
		if err != nil {
			continue // not made yet, or a directory of the host
		}
		v := volume{key: made.Key, id: id, Fate: Fate{Key: made.Key, Volume: made.Now, Path: made.Path, Owner: c.r.Guest}}
		if row, listed := c.f.Volumes[id]; listed {
			v.listed, v.Size = true, max(row.Size, 0)
		}
		v.set(DataKept, MountKept, "made by this update")
		if action == OpRollback || c.r.Back {
			v.set(DataErased, MountDropped, "made by this update, which is taken back")
		}
		c.volumes = append(c.volumes, v)
	}
}

// replaces reports whether the operation makes the container again: an update, or the way back from one.
func (c *reconciler) replaces() bool { return !c.kindIs(OpInstall) && !c.kindIs(OpRemove) }

func (c *reconciler) kindIs(op Operation) bool { return c.r.Kind == op.String() }

// resumeInstance asks whether the operation can go on: an install and an update need the archive of their image, which is
// fetched again by digest when it is gone.
func (c *reconciler) resumeInstance() {
	if c.replaces() {
		c.judgeWhereabouts()
		c.lost["root file system"] = "lost: as the update said"
		if c.r.Back {
			c.lost = map[string]string{}
		}
	}
	if c.r.App == nil || c.kindIs(OpRemove) || c.r.New || c.r.Back {
		return
	}
	c.judgeArchive(c.r.App.Next.Archive, imageName(c.r.Wanted.Template))
}

// rollbackInstance asks whether the way back is open.
func (c *reconciler) rollbackInstance() {
	switch {
	case c.kindIs(OpInstall):
		c.lost["container"] = "removed with what this install made"
		return
	case c.kindIs(OpRemove):
		if c.gone {
			c.refuse(fmt.Sprintf(c.kind()+" %d is, or may be, removed already: nothing brings it back but a backup.", c.r.Guest))
		}
		return
	}
	c.judgeWhereabouts()
	if !c.gone {
		return
	}
	if c.r.App == nil || c.r.App.Was == nil || c.r.App.Was.Archive == "" && c.r.App.Was.Digest == "" {
		c.refuse(fmt.Sprintf("What "+c.kind()+" %d was made from before is not recorded, so nothing can make it again.", c.r.Guest))
		return
	}
	before := "the image before"
	if c.r.Installed != nil && c.r.Installed.Template != "" {
		before = imageName(c.r.Installed.Template)
	}
	c.lost["root file system"] = "made again from " + guest.Printable(before) + "; what was written to it is gone"
	c.warn("data that the new version changed in its volumes is not rolled back")
	c.judgeArchive(c.r.App.Was.Archive, before)
}

// judgeArchive says when an archive is gone. That alone blocks nothing: it is fetched again by digest.
func (c *reconciler) judgeArchive(archive, image string) {
	id, err := guest.ParseVolumeID(archive)
	if err != nil {
		return
	}
	if _, there := c.f.Volumes[id]; !there && c.f.Listed[id.Storage] {
		c.warn("the archive of %s (%s) is gone from its storage; it is fetched again by digest first", image, id)
	}
}
