package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// InstanceStorages returns where the archive of the image and the root file system go: as wanted, else where the container
// has them, else the node's only storage for it; "" when that is not certain, which Instance says as a blocker.
func InstanceStorages(f Facts, w Want) (archive, rootfs string) {
	i := newInstance(f, w)
	if i.readable() {
		i.collect()
	}
	return i.archiveStorage(), i.newRootfsStorage()
}

// archiveID is the volume id that the archive of an image has on a storage.
func archiveID(storage string, image Image) guest.VolumeID {
	return guest.VolumeID{Storage: storage, Name: "vztmpl/" + image.Archive}
}

func (i *instance) archiveStorage() string {
	if i.want.ArchiveStorage != "" {
		return i.want.ArchiveStorage
	}
	if id, err := guest.ParseVolumeID(i.app().Archive); err == nil && i.unavailable(id.Storage, "vztmpl") == "" {
		return id.Storage
	}
	return sole(i.candidates("vztmpl"))
}

func (i *instance) newRootfsStorage() string {
	if storage := i.rootfsStorage(); storage != "" {
		return storage
	}
	return sole(i.candidates("rootdir"))
}

func sole(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return ""
}

// candidates are the storages of the node that take a content type now.
func (i *instance) candidates(content string) []string {
	var names []string
	for _, name := range sortedKeys(i.f.Storages) {
		if i.unavailable(name, content) == "" {
			names = append(names, name)
		}
	}
	return names
}

// judgeArchiveStorage asks where archives go, and whether that takes them.
func (i *instance) judgeArchiveStorage() {
	name := i.archiveStorage()
	if name == "" {
		i.uncertain("archives", "archive_storage", "vztmpl")
		return
	}
	if why := i.unavailable(name, "vztmpl"); why != "" {
		i.block(Blocker{
			Code: CodeStorageUnavailable, Subject: name, Attribute: "archive_storage", Found: fmt.Sprintf("Storage %s, wanted for the image's archive, %s.", name, why),
			Remedy: "Choose a storage of the node with content type vztmpl.",
		})
	}
}

// judgeNewVolumes asks whether what an install or a change makes has a storage that takes it.
func (i *instance) judgeNewVolumes(rootfs bool) {
	wanted := map[string]string{} // storage -> argument
	for _, v := range i.work.Make {
		if storage := allocatedOn(v.Value); storage != "" {
			wanted[storage] = "volumes"
		}
	}
	if rootfs {
		if name := i.newRootfsStorage(); name != "" {
			wanted[name] = "rootfs.storage"
		} else {
			i.uncertain("rootfs", "rootfs.storage", "rootdir")
		}
	}
	for _, name := range sortedKeys(wanted) {
		if why := i.unavailable(name, "rootdir"); why != "" {
			i.block(Blocker{
				Code: CodeStorageUnavailable, Subject: name, Attribute: wanted[name], Found: fmt.Sprintf("Storage %s, wanted for a new volume, %s.", name, why),
				Remedy: "Choose a storage of the node with content type rootdir.",
			})
		}
	}
}

// allocatedOn is the storage that the value of a volume to be made names.
func allocatedOn(value string) string {
	storage, _, _ := strings.Cut(value, ":")
	return storage
}

// uncertain blocks on a storage that must be named, because there are several or none.
func (i *instance) uncertain(what, argument, content string) {
	names := i.candidates(content)
	found := fmt.Sprintf("Node %s has %d storages for %s: %s.", orUnknown(i.f.Guest.Node), len(names), what, list(names))
	if len(names) == 0 {
		found = fmt.Sprintf("Node %s has no active storage with content type %s, which %s need.", orUnknown(i.f.Guest.Node), content, what)
		if what == "rootfs" {
			found = fmt.Sprintf("Node %s has no active storage with content type %s, which rootfs needs.", orUnknown(i.f.Guest.Node), content)
		}
	}
	i.block(Blocker{Code: CodeStorageAmbiguous, Subject: what, Attribute: argument, Found: found, Remedy: fmt.Sprintf("Say which one: %s.", argument)})
}

// judgeRoom asks whether what is made fits, storage by storage: the archive while it is not there, the parking guest and the
// new root file system, new volumes and growth.
func (i *instance) judgeRoom(op Operation) {
	need := map[string]guest.Bytes{}
	for _, v := range i.work.Make {
		need[allocatedOn(v.Value)] = add(need[allocatedOn(v.Value)], i.want.Volumes[v.Path].Size.CeilMiB())
	}
	for key, size := range i.work.Grow {
		if n := slices.IndexFunc(i.volumes, func(v volume) bool { return v.Key == key }); n >= 0 && !(op == OpUpdate && key == "rootfs") {
			need[i.volumes[n].id.Storage] = add(need[i.volumes[n].id.Storage], max(0, size-i.volumes[n].Size))
		}
	}
	if op == OpInstall || op == OpUpdate {
		target := i.newRootfsStorage()
		old := i.rootfs()
		if old.id.Storage == target {
			need[target] = add(need[target], max(0, i.wantedSize()-old.Size))
		} else {
			need[target] = add(need[target], i.wantedSize())
		}
		if op == OpUpdate && !i.claimed() {
			need[target] = add(need[target], i.wantedSize()) // the parking guest, made while the old one is there
		}
		archive := i.archiveStorage()
		if _, there := i.f.Volumes[archiveID(archive, i.want.Image)]; !there {
			need[archive] = add(need[archive], i.want.Image.Size)
		}
	}
	for _, name := range sortedKeys(need) {
		s, known := i.f.Storages[name]
		if !known || s.Total <= 0 || need[name] <= s.Available {
			continue
		}
		argument := "rootfs.size"
		if name == i.archiveStorage() && name != i.newRootfsStorage() {
			argument = "archive_storage"
		}
		i.block(Blocker{
			Code: CodeSpace, Subject: name, Attribute: argument, Found: fmt.Sprintf("What is made needs %s on %s; it has %s.", exact(need[name]), name, exact(s.Available)),
			Remedy: "Free space there, choose another storage, or ask for less.",
		})
	}
}
