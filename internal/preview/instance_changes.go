package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// findChanges compares the container with the configuration, image first.
func (i *instance) findChanges() {
	i.judgeImage()
	i.changeInstall()
	i.changeRootfs()
	i.changeSettings()
	i.changeEnvironment()
	i.changeEntrypoint()
	i.changeVolumes()
	i.changeHostMounts()
	i.changeDevices()
	i.changeWaiting()
	i.changeStarted()
}

// judgeImage: without a digest it cannot be told whether an update is due. One that is not known yet counts as changed.
func (i *instance) judgeImage() {
	if i.want.Image.Digest != "" || i.want.Image.Why == "" {
		return
	}
	i.block(Blocker{
		Code: CodeImageUnresolvable, Subject: i.want.Image.Reference, Attribute: "image", Found: fmt.Sprintf("The digest of %s is not known: %s.", orUnknown(i.want.Image.Reference), strings.TrimSuffix(i.want.Image.Why, ".")),
		Remedy: "Correct image or the registry's credentials, or plan again when the registry answers. A reference with a digest needs no registry.",
	})
}

// changeInstall says what makes a new root file system due.
func (i *instance) changeInstall() {
	if !i.installDue() {
		return
	}
	was, wanted := i.contract.Installed, i.w.Install()
	before := len(i.changes)
	if was.Template != wanted.Template {
		i.change("image", i.installedImage(), i.wantedImage(), TakesRootfs)
	}
	for _, name := range sortedKeys(both(was.Triggers, wanted.Triggers)) {
		if was.Triggers[name] != wanted.Triggers[name] {
			what := "trigger " + name
			if name == "" {
				what = "triggers" // not all of them are known yet
			}
			i.change(what, notSet(was.Triggers[name]), notSet(wanted.Triggers[name]), TakesRootfs)
		}
	}
	if wanted.RootfsStorage != "" && was.RootfsStorage != wanted.RootfsStorage {
		i.change("rootfs storage", notSet(was.RootfsStorage), wanted.RootfsStorage, TakesRootfs)
	}
	if len(i.changes) == before {
		i.change("triggers", "", "", TakesRootfs) // one that is set to nothing
	}
}

func both(a, b map[string]string) map[string]bool {
	keys := map[string]bool{}
	for _, m := range []map[string]string{a, b} {
		for key := range m {
			keys[key] = true
		}
	}
	return keys
}

// changeRootfs grows the root file system in place. A smaller one is judged only when it is made anew.
func (i *instance) changeRootfs() {
	has, wanted := i.rootfs(), i.w.Rootfs.Size.CeilMiB()
	if has.Size > 0 && wanted > has.Size.CeilMiB() {
		i.change("rootfs", has.Size.GiB(), wanted.GiB(), TakesNothing)
		i.grow("rootfs", wanted)
	}
}

func (i *instance) grow(key string, size guest.Bytes) {
	if i.work.Grow == nil {
		i.work.Grow = map[string]guest.Bytes{}
	}
	i.work.Grow[key] = size
}

// changeEntrypoint: nothing wanted means the image's own, which the contract knows.
func (i *instance) changeEntrypoint() {
	app := i.app()
	wanted := i.want.Entrypoint
	if wanted == "" {
		wanted = app.Entrypoint
	}
	now, _ := i.f.Guest.Config.Get("entrypoint")
	if now == wanted || i.want.Entrypoint == "" && now != app.Keys["entrypoint"] {
		return // as wanted, or not as it was left, which is a difference
	}
	to := "as configured"
	if i.want.Entrypoint == "" {
		to = "the image's own"
	}
	i.change("entrypoint", "", to, TakesRestart)
	if wanted == "" {
		i.work.Delete = append(i.work.Delete, "entrypoint")
		return
	}
	i.set("entrypoint", wanted)
}

// changeDevices compares devices of the host, which only root@pam with a password may set and everybody may take away.
func (i *instance) changeDevices() {
	for _, key := range sortedKeys(i.want.Devices) {
		now, there := i.f.Guest.Config.Get(key)
		if !there || canonical(now) != canonical(i.want.Devices[key]) {
			takes := TakesNothing // a new one is put into the running container
			if there {
				takes = TakesRestart
			}
			i.change(key, notSet(now), i.want.Devices[key], takes)
			i.set(key, i.want.Devices[key])
			i.rootOnly(key, "devices", "a device of the host ("+i.want.Devices[key]+")")
		}
	}
	for _, key := range sortedKeys(i.app().Keys) {
		now, there := i.f.Guest.Config.Get(key)
		if _, still := i.want.Devices[key]; isDevice(key) && there && !still {
			i.leaveHost(key, key, "devices", devicePath(now))
		}
	}
}

// rootOnly blocks what Proxmox lets only root@pam with a password set.
func (i *instance) rootOnly(subject, argument, what string) {
	if i.f.Login.RootTicket {
		return
	}
	i.block(Blocker{
		Code: CodeNotRecreatable, Subject: subject, Attribute: argument, Found: fmt.Sprintf("%s is %s, which Proxmox lets only root@pam with a password set; this login is %s.", subject, what, i.login()),
		Remedy: "Log in as root@pam with a password, or take it out of " + argument + ".",
	})
}

// changeWaiting names what an earlier change left waiting for a restart.
func (i *instance) changeWaiting() {
	for _, c := range i.f.Guest.Pending {
		named := slices.ContainsFunc(i.changes, func(have Change) bool { return have.What == c.Key })
		if c.Key == "env" || named || isMount(c.Key) || !i.awaited(c.Key) {
			continue
		}
		if c.Key == "entrypoint" {
			i.change(c.Key, "", "waits for a restart", TakesRestart)
			continue
		}
		now, _ := i.f.Guest.Config.Get(c.Key)
		i.change(c.Key, notSet(now), notSet(c.Value), TakesRestart)
	}
}

// changeStarted: whether it runs is a setting like others.
func (i *instance) changeStarted() {
	switch running := i.f.Guest.Running; {
	case i.want.Started && !running:
		i.change("started", "stopped", "running", TakesNothing)
		i.work.Start = true
	case !i.want.Started && running:
		i.change("started", "running", "stopped", TakesNothing)
		i.work.Stop = true
	}
}

// wantedPending reports whether a change that waits for a restart is exactly what is wanted.
func (i *instance) wantedPending(c guest.Change) bool {
	if i.awaited(c.Key) || c.Key == "env" && i.awaitedEnvironment() {
		return true
	}
	if wanted, set := i.work.Set[c.Key]; set && !c.Delete && sameKey(c.Key, wanted, c.Value) {
		return true
	}
	return c.Delete && slices.Contains(i.work.Delete, c.Key)
}

// judgeWaiting blocks on pending changes that nobody here asked for.
func (i *instance) judgeWaiting() {
	var keys []string
	for _, c := range i.f.Guest.Pending {
		if !i.wantedPending(c) {
			keys = append(keys, c.Key)
		}
	}
	i.judgePending(keys)
}
