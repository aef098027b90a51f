package preview

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// pendingSection is how Proxmox itself names the section: no snapshot can have that name.
const pendingSection = "pve:pending"

// volume is a storage key under judgement.
type volume struct {
	Fate
	key     string         // without the section: "mp0"
	section string         // "", pendingSection or the snapshot's name
	id      guest.VolumeID // zero for host paths and for what cannot be read
	shape   guest.Volume   // what the name says, when known
	listed  bool           // the storage lists it
	trouble string         // why it cannot be classified; "" when it can
}

// owned reports whether a destroy of this guest would free the volume.
func (j *judge) owned(v volume) bool {
	return v.trouble == "" && v.id != (guest.VolumeID{}) && v.Owner == j.id()
}

// foreign reports whether the volume belongs to another guest: a destroy skips it.
func (j *judge) foreign(v volume) bool {
	return v.trouble == "" && v.id != (guest.VolumeID{}) && v.Owner != j.id()
}

// collect finds every volume that any section of the configuration names. One that several sections name is listed once,
// where it counts most: current before pending before snapshots.
func (j *judge) collect() {
	g := j.f.Guest
	seen := map[guest.VolumeID]bool{}
	mounts, bad := g.Config.Mounts()
	for _, m := range mounts {
		j.add(seen, m, "")
	}
	for _, b := range bad {
		j.unreadable(b, "")
	}
	if _, ok := g.Config.Get("rootfs"); !ok {
		j.unreadable(guest.BadKey{Key: "rootfs", Why: "the configuration names no rootfs"}, "")
	}
	for _, key := range g.Config.Keys() {
		if name, _, ok := guest.SplitKey(key); ok && name == "dev" {
			j.volumes = append(j.volumes, volume{key: key, Fate: Fate{Key: key, Volume: devicePath(g.Config.Values[key]), Path: "-"}})
		}
	}
	changes := slices.Clone(g.Pending)
	slices.SortFunc(changes, func(a, b guest.Change) int { return guest.CompareKeys(a.Key, b.Key) })
	for _, c := range changes {
		if c.Delete || !isMount(c.Key) {
			continue
		}
		m, err := guest.ParseMount(c.Key, c.Value)
		if err != nil {
			j.unreadable(guest.BadKey{Key: c.Key, Value: c.Value, Why: err.Error()}, pendingSection)
			continue
		}
		if m.Kind == guest.SourceVolume {
			j.add(seen, m, pendingSection)
		}
	}
	snapshots := slices.Clone(g.Snapshots)
	slices.SortFunc(snapshots, func(a, b guest.Snapshot) int { return guest.CompareKeys(a.Name, b.Name) })
	for _, s := range snapshots {
		mounts, bad := s.Config.Mounts()
		for _, m := range mounts {
			if m.Kind == guest.SourceVolume {
				j.add(seen, m, s.Name)
			}
		}
		for _, b := range bad {
			if g.Config.Values[b.Key] != b.Value { // else the current section has said it already
				j.unreadable(b, s.Name)
			}
		}
	}
}

// add takes a mount that could be read. In the current section each key counts; elsewhere only volumes that are new.
func (j *judge) add(seen map[guest.VolumeID]bool, m guest.Mount, section string) {
	v := volume{key: m.Key, section: section, Fate: Fate{Key: inSection(m.Key, section), Volume: m.Source, Path: m.Path, Mounted: m}}
	if m.Kind != guest.SourceVolume {
		j.volumes = append(j.volumes, v)
		return
	}
	id, ok := m.Volume()
	if !ok {
		v.trouble = fmt.Sprintf("%q is neither a volume id nor a path of the host", m.Source)
		j.volumes = append(j.volumes, v)
		return
	}
	if section != "" && seen[id] {
		return
	}
	seen[id] = true
	v.id = id
	j.identify(&v)
	j.volumes = append(j.volumes, v)
}

// identify finds owner and size of a volume. Name and storage must agree on the owner; what neither can tell is trouble.
func (j *judge) identify(v *volume) {
	row, listed := j.f.Volumes[v.id]
	v.listed = listed
	if size, _, err := guest.ReadSize(v.Mounted.SizeText); err == nil {
		v.Size = size
	}
	if listed && row.Size > 0 {
		v.Size = row.Size
	}
	storage, known := j.f.Storages[v.id.Storage]
	if !known {
		v.trouble = fmt.Sprintf("storage %s is not there, so its owner cannot be known", v.id.Storage)
		return
	}
	shape, err := guest.ReadVolume(storage.Type, v.id)
	if err != nil {
		v.trouble = err.Error()
		return
	}
	v.shape, v.Owner = shape, shape.Owner
	switch {
	case v.Owner == 0:
		v.trouble = fmt.Sprintf("volumes on storage %s (%s) have no owner", v.id.Storage, storage.Type)
	case listed && row.Owner != 0 && row.Owner != v.Owner:
		v.trouble = fmt.Sprintf("its name says guest %d, the storage says guest %d", v.Owner, row.Owner)
	case !listed && v.Owner == j.id() && v.key != "rootfs" && j.f.Listed[v.id.Storage]:
		v.trouble = fmt.Sprintf("storage %s does not list it: it is gone, or this login may not see it", v.id.Storage)
	}
}

func (j *judge) unreadable(b guest.BadKey, section string) {
	j.volumes = append(j.volumes, volume{
		key: b.Key, section: section, trouble: b.Why,
		Fate: Fate{Key: inSection(b.Key, section), Volume: b.Value, Path: "-"},
	})
}

func inSection(key, section string) string {
	switch section {
	case "":
		return key
	case pendingSection:
		return key + " (pending)"
	}
	return key + "@" + section
}

// isMount reports whether a key is rootfs, mpN or unusedN.
func isMount(key string) bool {
	name, _, indexed := guest.SplitKey(key)
	return key == "rootfs" || indexed && (name == "mp" || name == "unused")
}

// compareVolumes orders as people read: rootfs, mpN, unusedN, devN, then what is pending, then snapshots by name.
func compareVolumes(a, b volume) int {
	return cmp.Or(
		cmp.Compare(sectionRank(a.section), sectionRank(b.section)), cmp.Compare(a.section, b.section),
		cmp.Compare(keyRank(a.key), keyRank(b.key)), guest.CompareKeys(a.key, b.key),
	)
}

func sectionRank(section string) int {
	switch section {
	case "":
		return 1
	case pendingSection:
		return 2
	}
	return 3
}

func keyRank(key string) int {
	name, _, _ := guest.SplitKey(key)
	return 1 + slices.Index([]string{"rootfs", "mp", "unused", "dev"}, name)
}
