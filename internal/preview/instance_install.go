package preview

import (
	"fmt"
	"slices"
	"strings"
)

// judgeInstall asks whether the container can be made under a VMID that nobody has.
func (i *instance) judgeInstall() {
	if !i.want.Create && i.w.Operation == "" {
		i.block(Blocker{
			Code: CodeGuestMissing, Subject: i.id().String(), Attribute: "vmid", Found: fmt.Sprintf("CT %d does not exist any more, or this login may not see it.", i.id()),
			Remedy: "Refresh the state: what is missing is then planned as a new install, which begins with empty volumes.",
		})
		return
	}
	i.judgeImage()
	i.judgeNode()
	i.judgeLeftovers()
	i.installChanges()
	i.judgeNotesRoom(i.settings()["description"], "operation's record", JournalBudget)
	i.judgeUnbacked()
	if i.f.Guest.Node == "" || !i.f.NodeOnline {
		return // nothing was read of its storages
	}
	i.judgeArchiveStorage()
	i.judgeNewVolumes(true)
	i.judgeRoom(OpInstall)
	i.judgeWantedTags()
	i.judgeInstanceRights(OpInstall)
}

// installChanges lists what the new container gets beside its image.
func (i *instance) installChanges() {
	i.work = Work{Start: i.want.Started, Environment: i.wantedEnvironment()}
	settings := i.settings()
	for _, key := range sortedKeys(settings) {
		if key == "description" {
			text := settings[key]
			i.work.Notes = &text
			continue
		}
		if key == "pool" {
			pool := settings[key]
			i.work.Pool = &pool
			continue
		}
		i.set(key, settings[key])
	}
	i.judgeWantedFeatures()
	for _, path := range sortedKeys(i.want.Volumes) {
		i.makeVolume(path, i.want.Volumes[path])
	}
	if i.want.Entrypoint != "" {
		i.set("entrypoint", i.want.Entrypoint)
	}
	i.changeHostMounts()
	i.changeDevices()
	i.judgeOwners()
	i.work.Restart = false
	if !i.want.Started {
		i.warn("%s is left stopped: whether the application starts is not tried (started = false)", i.label())
	}
}

// judgeNode: an install must know where.
func (i *instance) judgeNode() {
	if i.want.Node == "" && i.f.Guest.Node == "" {
		i.block(Blocker{
			Code: CodeNodeRequired, Subject: i.id().String(), Attribute: "node", Found: fmt.Sprintf("CT %d does not exist yet, and node is not set.", i.id()),
			Remedy: "Set node to the node it shall be made on. Later it is followed wherever it migrates to.",
		})
	}
}

// judgeLeftovers: volumes that an earlier guest of this VMID left behind would be the new one's (hazard B5).
func (i *instance) judgeLeftovers() {
	var left []string
	for id, row := range i.f.Volumes {
		if row.Owner == i.id() && row.Content != "backup" {
			left = append(left, id.String())
		}
	}
	if len(left) == 0 {
		return
	}
	slices.Sort(left)
	i.block(Blocker{
		Code: CodeTargetInUse, Subject: "VMID " + i.id().String(), Attribute: "vmid", Found: fmt.Sprintf("VMID %d owns %s, left behind by an earlier guest, which the new container would inherit.", i.id(), list(left)),
		Remedy: "Look at them, then remove them or hand them to another guest; or choose another vmid.",
	})
}

// judgeUnbacked: what an image keeps in a VOLUME path is on the root file system, which every update replaces, unless a
// volume or a directory of the host covers it.
func (i *instance) judgeUnbacked() {
	if !i.want.Image.Read {
		return
	}
	var uncovered, added []string
	for _, path := range slices.Sorted(slices.Values(i.want.Image.Declared)) {
		if i.covered(path) {
			continue
		}
		uncovered = append(uncovered, path)
		if i.contract != nil && !slices.ContainsFunc(i.app().Declared, func(old string) bool { return samePath(old, path) }) {
			added = append(added, path)
		}
	}
	if len(added) > 0 {
		i.block(Blocker{
			Code: CodeImageVolumeUnbacked, Subject: strings.Join(added, ", "), Attribute: "volumes", Found: fmt.Sprintf("The new image keeps data in %s, which the present one does not, and no volume is mounted there.", list(added)),
			Remedy: "Add volumes for these paths, or add \"image_volume_unbacked\" to allow if what is there may go with every update.",
		})
		uncovered = slices.DeleteFunc(uncovered, func(path string) bool { return slices.Contains(added, path) })
	}
	if len(uncovered) > 0 {
		i.warn("%s: the image keeps data in %s, where no volume is mounted: it goes with every update (image_volume_unbacked)", i.label(), list(uncovered))
	}
}

// covered reports whether a volume or a directory of the host is mounted on a path or above it.
func (i *instance) covered(path string) bool {
	under := func(mount string) bool {
		mount = strings.TrimRight(mount, "/")
		return mount != "" && (samePath(path, mount) || strings.HasPrefix(path, mount+"/"))
	}
	for mount := range i.want.Volumes {
		if under(mount) {
			return true
		}
	}
	for mount := range i.want.HostPaths {
		if under(mount) {
			return true
		}
	}
	return false
}

// judgeWantedFeatures: tokens may set nesting only.
func (i *instance) judgeWantedFeatures() {
	var beyond []string
	for name, value := range properties("features", i.want.Settings["features"]) {
		if name != "nesting" {
			beyond = append(beyond, name+"="+value)
		}
	}
	if len(beyond) > 0 {
		slices.Sort(beyond)
		i.rootOnly("features", "features", "asked to be "+list(beyond))
	}
}

// judgeWantedTags: tags that the datacenter keeps for itself cannot be set (hazard B13).
func (i *instance) judgeWantedTags() {
	tags := i.settings()["tags"]
	if tags == "" {
		tags = i.f.Guest.Config.Values["tags"]
	}
	i.judgeTags(tags)
}
