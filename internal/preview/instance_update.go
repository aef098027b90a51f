package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// judgeUpdate asks what the recipe of a reinstall asks, with an image as source: the root file system is replaced, volumes
// are set aside and brought back.
func (i *instance) judgeUpdate() {
	i.decide()
	i.decideLeft()
	i.judgeProtection()
	i.judgeLock()
	i.judgeWaiting()
	i.judgeTasks()
	i.judgeShared()
	i.judgeStorages()
	i.judgeNewVolumes(false)
	i.judgeArchiveStorage()
	i.judgeInstanceKeys()
	i.judgeWantedFeatures()
	i.judgeSnapshots()
	i.judgeHA()
	i.judgeReplication()
	i.judgeBackups()
	i.judgeJobs()
	i.judgeBackupRoom()
	i.judgeSize()
	i.judgeUnbacked()
	i.judgeRoom(OpUpdate)
	i.judgeRecordRoom()
	i.judgeParking()
	i.judgeInstanceRights(OpUpdate)
	i.judgeWayBack()
	i.judgeLost()
	i.judgeInstanceLost()
}

// judgeRecordRoom asks whether the record of an update fits into the notes: it holds what is and what is being made.
func (i *instance) judgeRecordRoom() {
	if i.claimed() {
		return
	}
	app := i.app()
	was := app
	was.Keys, was.Raw = nil, nil
	record := guest.Journal{Config: ContractKeys(i.f.Guest.Config), Wanted: i.w.Install(), App: &guest.Deployment{Next: app, Was: &was, Set: i.work.Set, New: i.work.Make}}
	const growth = 1400 // volumes on their way, an error, what the surroundings had
	need := growth + guest.Length(guest.Notes{}.WithContract(i.contract).WithJournal(&record).String())
	text := i.f.Journal.User
	if i.work.Notes != nil {
		text = *i.work.Notes
	}
	i.judgeNotesRoom(text, "operation's record", max(need, JournalBudget))
}

// judgeInstanceKeys blocks what an update cannot set again with these credentials.
func (i *instance) judgeInstanceKeys() {
	config := i.f.Guest.Config
	for _, key := range config.Keys() {
		name, _, indexed := guest.SplitKey(key)
		switch {
		case isMount(key), indexed && name == "dev", NeverCarried(key), key == "cmode", key == "entrypoint", key == "env":
		case key == "hookscript":
			if !i.f.Login.RootTicket {
				i.cannotSet(key, fmt.Sprintf("hookscript (%s) may be set by root@pam with a password only; this login is %s", config.Values[key], i.login()))
			}
		case key == "features":
			if _, set := i.want.Settings["features"]; !set {
				i.judgeFeatures(config.Values[key])
			}
		case !Carried(key):
			i.cannotSet(key, fmt.Sprintf("%s = %q is not a setting that pvrx knows how to carry over", key, config.Values[key]))
		}
	}
	var own [][2]string // those of the image are made again from it
	for _, pair := range config.Raw {
		if !slices.Contains(i.app().Raw, pair) && !imageRaw(pair[0]) {
			own = append(own, pair)
		}
	}
	i.judgeRaw(own)
	i.judgePrivileged()
}

// judgePrivileged: application containers are made unprivileged, so that files of one that is not would change their owners
// (hazard A7).
func (i *instance) judgePrivileged() {
	if !i.privileged() {
		return
	}
	var kept []string
	for _, v := range i.volumes {
		if v.Data == DataPreserved {
			kept = append(kept, v.key)
		}
	}
	if len(kept) > 0 {
		i.block(Blocker{
			Code: CodeIDMapDiffers, Subject: "unprivileged",
			Found:  fmt.Sprintf("%s is privileged and the new one will not be; files on %s would belong to other users there.", i.label(), list(kept)),
			Remedy: "Restore it as an unprivileged container, which corrects the owners, or move the data to new volumes.",
		})
	}
}

// imageRaw reports whether a raw setting is one that a create makes from the image.
func imageRaw(key string) bool {
	switch key {
	case "lxc.init.uid", "lxc.init.gid", "lxc.init.groups", "lxc.init.cwd", "lxc.signal.halt":
		return true
	}
	return false
}

// judgeWayBack says what an unhealthy update does, and what no way back returns.
func (i *instance) judgeWayBack() {
	if i.want.Hold {
		i.warn("%s: an unhealthy update stays as it is and waits for reconcile (on_failure = \"hold\")", i.label())
		return
	}
	if i.app().Digest == "" {
		i.warn("%s: by which digest it was made is not known, so an unhealthy update cannot go back and waits for reconcile", i.label())
		return
	}
	i.warn("%s: an unhealthy update goes back to %s by itself: what was written to the root file system is gone then, and data that the new version changed in its volumes is not rolled back", i.label(), i.installedImage())
	id, err := guest.ParseVolumeID(i.app().Archive)
	if err != nil {
		return
	}
	if _, there := i.f.Volumes[id]; !there && i.f.Listed[id.Storage] {
		i.warn("%s: the archive of the present image (%s) is gone; it is fetched again by digest before anything is stopped", i.label(), id)
	}
}

// judgeInstanceLost says what else an update takes.
func (i *instance) judgeInstanceLost() {
	i.lost["root file system"] = "lost: everything that is not on a volume of its own"
	if len(i.want.HostPaths) > 0 {
		i.lost["host directories"] = "stay as they are, outside every rollback"
	}
	if previous := i.app().Previous; previous != "" {
		i.lost["archive before"] = fmt.Sprintf("lost: %s, %s", guest.Printable(previous), "when nothing else names it; that of the present image stays")
	}
	if extra := missingPairs(i.f.Guest.Config.Raw, i.app().Raw); len(extra) > 0 && len(i.app().Raw) > 0 {
		i.lost["raw settings"] = "made again from the new image; lost: " + strings.Join(extra, ", ")
	}
}

// decideLeft: what the configuration no longer has is not put back, whoever could.
func (i *instance) decideLeft() {
	for n := range i.volumes {
		if v := &i.volumes[n]; v.section == "" && v.id == (guest.VolumeID{}) && v.trouble == "" && slices.Contains(i.work.Delete, v.key) {
			v.set(DataHostManaged, MountDropped, "the host's; no longer configured")
		}
	}
}
