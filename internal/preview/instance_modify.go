package preview

import (
	"fmt"
	"slices"
)

// judgeModification asks what stands in the way of changing the container that is there. Nothing is set aside, so that much
// less does than of an update.
func (i *instance) judgeModification() {
	i.judgeErasures()
	if i.touchesVolumes() {
		i.judgeProtection()
	}
	i.judgeLock()
	i.judgeWaiting()
	i.judgeTasks()
	i.judgeGrowing()
	i.judgeNewVolumes(false)
	i.judgeWantedFeatures()
	i.judgeRoom(OpModify)
	if i.work.Notes != nil {
		i.judgeNotesRoom(*i.work.Notes, "contract", contractBudget)
	}
	i.judgeInstanceRights(OpModify)
	if i.work.Restart {
		i.warn("%s restarts: %s", i.label(), list(i.restarting()))
	}
}

// restarting are the changes that need a restart.
func (i *instance) restarting() []string {
	var words []string
	for _, c := range i.changes {
		if c.Takes == TakesRestart {
			words = append(words, c.What)
		}
	}
	return words
}

// judgeErasures gives the volumes their fates that go in place, with consent.
func (i *instance) judgeErasures() {
	if len(i.work.Erase) == 0 {
		return
	}
	consents := i.consents()
	for n := range i.volumes {
		v := &i.volumes[n]
		if v.section != "" || !slices.Contains(i.work.Erase, v.key) || !consents[v.key] || !i.owned(*v) {
			continue
		}
		v.set(DataErased, MountDropped, "it is no longer configured, and erase names it")
		if i.held(v.id) {
			i.judgeSnapshots()
		}
	}
	i.judgeShared()
}

// touchesVolumes reports whether a mount is changed or taken away, which protection forbids; growing and making it allows.
func (i *instance) touchesVolumes() bool {
	return len(i.work.Erase) > 0 || slices.ContainsFunc(i.work.Delete, isMount) || slices.ContainsFunc(sortedKeys(i.work.Set), func(key string) bool {
		_, there := i.f.Guest.Config.Get(key)
		return isMount(key) && there
	})
}

// judgeGrowing asks whether what grows is where it can.
func (i *instance) judgeGrowing() {
	for _, key := range sortedKeys(i.work.Grow) {
		n := slices.IndexFunc(i.volumes, func(v volume) bool { return v.Key == key })
		if n < 0 {
			continue
		}
		v := i.volumes[n]
		switch why := i.unavailable(v.id.Storage, "rootdir"); {
		case v.trouble != "":
			i.block(Blocker{
				Code: CodeMountUnclassified, Subject: key, Found: fmt.Sprintf("%s (%s) cannot be classified: %s.", key, v.Volume, v.trouble),
				Remedy: "Correct the key on the guest first.",
			})
		case i.foreign(v):
			i.block(Blocker{
				Code: CodeMountUnclassified, Subject: key, Found: fmt.Sprintf("%s (%s) belongs to guest %d; Proxmox grows a guest's own volumes only.", key, v.Volume, v.Owner),
				Remedy: "Sort out by hand who owns it, or leave its size as it is.",
			})
		case why != "":
			i.block(Blocker{Code: CodeStorageUnavailable, Subject: v.id.Storage, Found: fmt.Sprintf("Storage %s, named by %s, %s.", v.id.Storage, key, why), Remedy: "Bring the storage back first."})
		}
	}
}

// protectConfigured makes consent for a volume that is configured inert: an instance erases only what its configuration no
// longer has.
func (i *instance) protectConfigured() {
	erase := map[string]string{}
	for _, key := range sortedKeys(i.w.Erase) {
		configured := slices.ContainsFunc(i.volumes, func(v volume) bool {
			return v.section == "" && v.key == key && i.hasPath(v.Path)
		})
		if configured {
			i.warn("erase names %s, which volumes configures: it is kept", key)
			continue
		}
		erase[key] = i.w.Erase[key]
	}
	i.w.Erase = erase
}

func (i *instance) hasPath(path string) bool {
	return slices.ContainsFunc(sortedKeys(i.want.Volumes), func(wanted string) bool { return samePath(wanted, path) })
}
