package preview

import (
	"fmt"
	"slices"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// Reconcile judges what resume, rollback or close would do to the operation that a journal records. In f, Guest is the guest
// itself, which may be absent; Volumes and Users cover the parking guest as well. What cannot be seen there counts as held.
func Reconcile(action Operation, r guest.Journal, f Facts) Preview {
	c := newReconciler(r, f)
	c.judgeIdentity()
	c.collectRecorded(action)
	switch action {
	case OpResume:
		c.judgeResume()
	case OpRollback:
		c.judgeRollback()
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

func newReconciler(r guest.Journal, f Facts) *reconciler {
	r.Back = r.Back || r.Dry // a rehearsal is only ever taken back
	name := guest.Config{Values: r.Config}.Hostname(r.Guest)
	if _, set := f.Guest.Config.Get("rootfs"); !set && f.Presence == guest.Present {
		// The stub of an unfinished create has no name of its own yet: the record says whose it is.
		f.Guest.Config = f.Guest.Config.Clone()
		if f.Guest.Config.Values == nil {
			f.Guest.Config.Values = map[string]string{}
		}
		f.Guest.Config.Values["hostname"] = name
	}
	return &reconciler{
		judge: newJudge(f, Want{VMID: r.Guest, Name: name, Operation: r.Operation}),
		r:     r, gone: crossed(r, f),
	}
}

// reconciler is a judge with the record of an operation.
type reconciler struct {
	*judge
	r    guest.Journal
	gone bool // the old guest is, or may be, destroyed
}

// crossed reports whether the point of no return is, or may be, crossed: a destroy was asked for, and the guest is not
// exactly as it was right before.
func crossed(r guest.Journal, f Facts) bool {
	return r.New || r.Digest != "" && (f.Presence != guest.Present || f.Guest.Config.Digest != r.Digest)
}

func (c *reconciler) refuse(found string) {
	c.block(Blocker{Code: CodeNeedsReconcile, Subject: c.r.Operation, Attribute: "reconcile", Found: found, Remedy: "Choose one of: " + c.open() + "."})
}

// open are the actions that remain.
func (c *reconciler) open() string {
	actions := []string{"\"resume\""}
	again := c.r.App != nil && c.r.App.Was != nil && !c.kindIs(OpRemove) // from the image before
	if !c.gone || c.r.Backup != "" || again {
		actions = append(actions, "\"rollback\"")
	}
	return list(append(actions, "\"close\""))
}

// collectRecorded lists the volumes that the record names, where they are now.
func (c *reconciler) collectRecorded(action Operation) {
	keys := sortedKeys(c.r.Config)
	for _, key := range keys {
		m, err := guest.ParseMount(key, c.r.Config[key])
		if err != nil {
			continue // no storage key, or one that the operation refused to begin with
		}
		v := volume{key: key, Fate: Fate{Key: key, Volume: m.Source, Path: m.Path, Mounted: m, Owner: c.r.Guest}}
		if p, parked := c.parked(key); parked {
			v.Volume = where(p, m.Source)
		}
		if id, err := guest.ParseVolumeID(v.Volume); err == nil {
			v.id = id
			if size, _, err := guest.ReadSize(m.SizeText); err == nil {
				v.Size = size
			}
			if row, listed := c.f.Volumes[id]; listed {
				v.listed, v.Size = true, max(row.Size, 0)
			}
		}
		if action == OpClose && !c.waits(key) && !c.leave(&v) {
			continue // it is gone already
		}
		c.fate(&v, action)
		c.volumes = append(c.volumes, v)
	}
}

// leave looks up what a key that close leaves alone holds now; ok is false when the guest has no such key any more.
func (c *reconciler) leave(v *volume) (ok bool) {
	value, there := c.f.Guest.Config.Get(v.key)
	m, err := guest.ParseMount(v.key, value)
	if !c.readable() || !there || err != nil {
		return false
	}
	v.Volume, v.Path, v.Mounted = m.Source, m.Path, m
	if id, isVolume := m.Volume(); isVolume {
		v.id, v.Size = id, max(c.f.Volumes[id].Size, 0)
	}
	return true
}

// where is the volume id of a parked volume now, as far as the record knows.
func where(p guest.ParkedVolume, before string) string {
	switch {
	case p.Now != "":
		return p.Now
	case p.Parked != "":
		return p.Parked
	}
	return before
}

func (c *reconciler) parked(key string) (guest.ParkedVolume, bool) {
	i := slices.IndexFunc(c.r.Parked, func(p guest.ParkedVolume) bool { return p.Key == key })
	if i < 0 {
		return guest.ParkedVolume{}, false
	}
	return c.r.Parked[i], true
}

// waits reports whether the record says that a key's volume is on the parking guest.
func (c *reconciler) waits(key string) bool {
	p, parked := c.parked(key)
	return parked && p.Parked != "" && p.Now == ""
}

func (c *reconciler) fate(v *volume, action Operation) {
	_, parked := c.parked(v.key)
	takenBack := action == OpRollback && !c.gone || action == OpResume && c.r.Back
	switch {
	case action == OpClose && c.waits(v.key):
		v.set(DataKept, MountDropped, fmt.Sprintf("stays on "+c.kind()+" %d", c.r.Parking))
	case action == OpClose && v.Mounted.Kind != guest.SourceVolume:
		v.set(DataHostManaged, MountKept, "left as it is")
	case action == OpClose:
		v.set(DataKept, MountKept, "left as it is")
	case parked:
		v.set(DataPreserved, MountReattached, "brought back")
	case slices.Contains(c.r.Refs, v.key):
		data := DataExcluded
		if v.Mounted.Kind != guest.SourceVolume {
			data = DataHostManaged
		}
		v.set(data, MountReattached, "put back by reference")
	case takenBack:
		v.set(DataKept, MountKept, "not touched: the old system stays")
	case v.key == "rootfs":
		v.set(DataErased, MountRecreated, "the root file system is replaced")
		if action == OpRollback {
			v.Reason = "made again from " + guest.Printable(c.r.Backup)
		}
	case slices.Contains(c.r.Doomed, v.Volume):
		v.set(DataErased, MountDropped, "erase named it")
	case v.Mounted.Kind != guest.SourceVolume:
		v.set(DataHostManaged, MountDropped, "the host's; drop gave the mount up")
	default:
		v.set(DataExcluded, MountDropped, "another guest's; drop gave the mount up")
	}
}
