package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// volumeAt finds the volume of the container that is mounted on a path.
func (i *instance) volumeAt(path string) (volume, bool) {
	n := slices.IndexFunc(i.volumes, func(v volume) bool {
		return v.section == "" && v.key != "rootfs" && v.Path != "-" && samePath(v.Path, path) && v.id != (guest.VolumeID{})
	})
	if n < 0 {
		return volume{}, false
	}
	return i.volumes[n], true
}

func samePath(a, b string) bool { return strings.TrimRight(a, "/") == strings.TrimRight(b, "/") }

// changeVolumes compares volumes by the path on which they are mounted.
func (i *instance) changeVolumes() {
	for _, path := range sortedKeys(i.want.Volumes) {
		wanted := i.want.Volumes[path]
		has, there := i.volumeAt(path)
		key, recorded := i.app().Volumes[path]
		_, taken := i.f.Guest.Config.Get(key)
		switch {
		case there:
			i.changeVolume(path, wanted, has)
		case recorded && !taken && i.contract != nil && !i.restored:
			// The contract has a volume that the container has not: a difference, which nothing new and empty covers up.
		default:
			i.makeVolume(path, wanted)
		}
	}
	for _, path := range sortedKeys(i.app().Volumes) {
		if _, still := i.want.Volumes[path]; !still {
			i.leaveVolume(path)
		}
	}
	i.judgeOwners()
}

// changeVolume compares one that is there: it grows while the container runs, its mount changes at a restart, and nothing
// moves or shrinks it.
func (i *instance) changeVolume(path string, wanted VolumeWant, has volume) {
	what, size := "volume "+path, wanted.Size.CeilMiB()
	switch {
	case wanted.Storage != "" && wanted.Storage != has.id.Storage:
		i.change(what, has.id.Storage, wanted.Storage, TakesRestart)
		i.block(Blocker{
			Code: CodeVolumeStorage, Subject: what, Attribute: "volumes", Found: fmt.Sprintf("%s (%s) is on %s; the configuration says %s.", what, has.Volume, has.id.Storage, wanted.Storage),
			Remedy: fmt.Sprintf("Move it yourself (pct move-volume %d %s %s), then plan again; or write storage = %q.", i.id(), has.key, wanted.Storage, has.id.Storage),
		})
	case size == 0 || has.Size > 0 && size == has.Size.CeilMiB():
	case has.Size == 0:
		i.block(Blocker{
			Code: CodeSizeUnreadable, Subject: what, Attribute: "volumes", Found: fmt.Sprintf("The size of %s (%s) is not known: storage %s does not tell it.", what, has.Volume, has.id.Storage),
			Remedy: "Grant Datastore.Audit on the storage, or leave the size as it is written.",
		})
	case size < has.Size.CeilMiB():
		i.change(what, has.Size.GiB(), size.GiB(), TakesRestart)
		i.block(Blocker{
			Code: CodeVolumeShrink, Subject: what, Attribute: "volumes", Found: fmt.Sprintf("%s (%s) has %s, size = %q asks for %d.", what, has.Volume, exact(has.Size), wanted.text(), int64(size)),
			Remedy: fmt.Sprintf("Ask for at least %s. Volumes only grow.", atLeast(has.Size)),
		})
	default:
		i.change(what, has.Size.GiB(), size.GiB(), TakesNothing)
		i.grow(has.key, size)
	}
	i.changeMount(what, has, wanted.options(has.Mounted))
}

// changeMount changes how a volume is mounted; what the configuration does not know stays.
func (i *instance) changeMount(what string, has volume, options map[string]string) {
	wanted := guest.Mount{Key: has.key, Source: has.Volume, Kind: has.Mounted.Kind, Path: has.Mounted.Path, Options: options, SizeText: has.Mounted.SizeText}
	if wanted.SameOptions(has.Mounted) {
		return
	}
	i.change(what, optionsText(has.Mounted), optionsText(wanted), TakesRestart)
	i.set(has.key, wanted.WithoutSize())
}

func optionsText(m guest.Mount) string {
	var words []string
	for _, name := range sortedKeys(m.Options) {
		words = append(words, name+"="+m.Options[name])
	}
	if len(words) == 0 {
		return "no options"
	}
	return strings.Join(words, ",")
}

// options are the mount options that are wanted: those of the configuration, the others as they are.
func (v VolumeWant) options(now guest.Mount) map[string]string {
	options := map[string]string{}
	for name, value := range now.Options {
		if name != "backup" && name != "ro" && name != "mountoptions" {
			options[name] = value
		}
	}
	if !v.NoBackup {
		options["backup"] = "1"
	}
	if v.ReadOnly {
		options["ro"] = "1"
	}
	if v.Options != "" {
		options["mountoptions"] = v.Options
	}
	return options
}

func (v VolumeWant) text() string {
	if v.SizeText != "" {
		return v.SizeText
	}
	return v.Size.ConfigText()
}

// makeVolume makes a new one, empty, under the first free key.
func (i *instance) makeVolume(path string, wanted VolumeWant) {
	storage := wanted.Storage
	if storage == "" {
		storage = i.newRootfsStorage()
	}
	i.change("volume "+path, "not there", fmt.Sprintf("new, %s on %s", wanted.Size.CeilMiB().GiB(), orUnknown(storage)), TakesNothing)
	key := i.freeKey()
	value := guest.Mount{Key: key, Source: storage + ":" + wanted.Size.AllocationGiB(), Path: path, Options: wanted.options(guest.Mount{})}
	i.work.Make = append(i.work.Make, guest.NewVolume{Key: key, Path: path, Value: value.String()})
}

// freeKey is the first mpN that neither the container, nor what waits for a restart, nor the contract, nor this work has.
func (i *instance) freeKey() string {
	for n := 0; ; n++ {
		key := fmt.Sprintf("mp%d", n)
		_, live := i.f.Guest.Config.Get(key)
		_, recorded := i.app().Keys[key]
		_, set := i.work.Set[key]
		pending := slices.ContainsFunc(i.f.Guest.Pending, func(c guest.Change) bool { return c.Key == key })
		made := slices.ContainsFunc(i.work.Make, func(v guest.NewVolume) bool { return v.Key == key })
		if !live && !recorded && !set && !pending && !made {
			return key
		}
	}
}

// leaveVolume: a volume that the configuration no longer has stays, unless erase names it.
func (i *instance) leaveVolume(path string) {
	key := i.app().Volumes[path]
	has, there := i.volumeAt(path)
	if !there || has.key != key {
		return
	}
	what := "volume " + path
	i.change(what, has.Size.GiB(), "erased", TakesRestart)
	i.work.Erase = append(i.work.Erase, key)
	if named, consented := i.w.Erase[key]; consented && (named == anyVolume || named == has.Volume) {
		return // decided with the other consents
	}
	i.block(Blocker{
		Code: CodeVolumeUnconfigured, Subject: what, Attribute: "volumes", Found: fmt.Sprintf("%s (%s, %s, %s) is no longer configured.", what, key, has.Volume, has.Size.GiB()),
		Remedy: fmt.Sprintf("Put it back into volumes, or, if its data may go, add %s = %q to erase.", key, has.Volume),
	})
}

// judgeOwners: a new volume belongs to root, whoever the application runs as (hazard C9).
func (i *instance) judgeOwners() {
	if len(i.work.Make) == 0 {
		return
	}
	var paths []string
	for _, v := range i.work.Make {
		paths = append(paths, v.Path)
	}
	text := "%s: the new " + nounFor(len(paths), "volume") + " %s will belong to root and may hold lost+found"
	if user := i.want.Image.User; i.want.Image.Read && user != "" && user != "0" && user != "root" && !strings.HasPrefix(user, "0:") && !strings.HasPrefix(user, "root:") {
		i.warn(text+"; the image runs as %s, which cannot write there until somebody gives it the directory", i.label(), list(paths), user)
		return
	}
	i.warn(text+": software that wants an empty directory of its own needs a directory below", i.label(), list(paths))
}

func nounFor(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}
