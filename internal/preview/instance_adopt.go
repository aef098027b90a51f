package preview

import (
	"maps"
	"slices"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// contractBudget is how many characters of the notes the contract of an application container may take.
const contractBudget = 2560

// judgeAdoption: adopting records the container as it is and changes nothing else. It does not start it.
func (i *instance) judgeAdoption() {
	i.judgeLock()
	i.judgeTasks()
	for _, d := range i.differs {
		i.warn("%s That is recorded as it is.", d)
	}
	if i.restored && i.want.Started && !i.f.Guest.Running {
		i.warn("%s stays stopped; the next plan starts it", i.label())
	}
	i.judgeNotesRoom(i.f.Journal.User, "contract", contractBudget)
	i.judgeInstanceRights(OpAdopt)
}

// judgeRestored lists what a restored container lacks of what its contract says, before anything changes.
func (i *instance) judgeRestored() {
	app := i.app()
	for _, path := range sortedKeys(app.Volumes) {
		key := app.Volumes[path]
		if _, there := i.f.Guest.Config.Get(key); !there {
			i.warn("%s: volume %s (%s) is missing: it was not in the backup, or was taken off", i.label(), path, key)
		}
	}
	for _, key := range sortedKeys(app.Keys) {
		_, there := i.f.Guest.Config.Get(key)
		m, err := guest.ParseMount(key, app.Keys[key])
		switch {
		case there:
		case isDevice(key):
			i.warn("%s: device %s (%s) is missing: only root@pam with a password sets it again", i.label(), key, devicePath(app.Keys[key]))
		case err == nil && m.Kind == guest.SourceBind:
			i.warn("%s: host directory %s on %s is missing: only root@pam with a password mounts it again", i.label(), m.Source, m.Path)
		}
	}
	for _, v := range i.volumes {
		if v.section != "" || v.id == (guest.VolumeID{}) {
			continue
		}
		if why := i.unavailable(v.id.Storage, "rootdir"); why != "" {
			i.warn("%s: %s is on storage %s, which %s", i.label(), v.key, v.id.Storage, why)
		} else if v.trouble != "" || !v.listed && i.f.Listed[v.id.Storage] {
			i.warn("%s: %s (%s) cannot be found on its storage", i.label(), v.key, v.Volume)
		}
	}
	if id, err := guest.ParseVolumeID(app.Archive); err == nil {
		if _, there := i.f.Volumes[id]; !there {
			i.warn("%s: the archive that it was made from (%s) is not on this node; it is fetched again by digest when it is needed", i.label(), id)
		}
	}
	i.judgeLostRaw()
}

// AdoptedContract returns the contract that an adoption writes: of this VMID and about the container as it is. Its time is
// the caller's to set. Of a container that was rolled back to a snapshot it is the generation before, as far as that is
// known; else what it was made from is unknown, so that the next plan shows an update.
func AdoptedContract(f Facts, w Want) guest.Contract {
	i := newInstance(f, w)
	if i.contract == nil {
		return guest.Contract{}
	}
	if i.readable() {
		i.collect()
	}
	c, app := *i.contract, i.app()
	c.Guest, c.App = i.id(), &app
	if mirror, seen := i.mirror(); seen && mirror != c.Instance && !i.awaitedEnvironment() {
		c.Instance, c.Installed, c.Declined = mirror, guest.Install{}, nil
		app.Digest, app.Manifest, app.EnvVersion, app.Declared = "", "", 0, nil
		app.Raw = slices.Clone(f.Guest.Config.Raw)
		app.Entrypoint = f.Guest.Config.Values["entrypoint"]
		if b := app.Before; b != nil && b.ID == mirror && mirror != "" {
			c.Installed = guest.Install{Template: b.Image, Triggers: i.contract.Installed.Triggers}
			app.Digest = digestOf(b.Image)
		}
		app.Archive, app.Previous, app.Before = app.Previous, "", nil
	}
	if storage := i.rootfs().id.Storage; c.Installed.Template != "" && storage != "" {
		c.Installed.RootfsStorage = storage
	}
	app.Keys = ContractKeys(f.Guest.Config)
	app.Volumes = i.adoptedVolumes()
	if live, seen := i.environment(); seen {
		app.Own, app.Theirs = i.adoptedVariables(live)
	}
	return c
}

// ContractKeys are the keys of a configuration that a contract records: not the notes, the environment, nor what guards it.
func ContractKeys(c guest.Config) map[string]string {
	keys := maps.Clone(c.Values)
	maps.DeleteFunc(keys, func(key, _ string) bool { return !recordedKey(key) })
	return keys
}

// recordedKey reports whether a contract records a key.
func recordedKey(key string) bool {
	name, _, indexed := guest.SplitKey(key)
	switch key {
	case "description", "digest", "env", "lock", "parent", "snaptime", "snapstate", "protection", "template", "lxc":
		return false
	}
	return !indexed || name != "unused"
}

// adoptedVolumes are those of the contract and those that are mounted where the configuration has one. What is missing stays
// known after a restore, so that nothing new and empty takes its place unasked; adopting a second time forgets it.
func (i *instance) adoptedVolumes() map[string]string {
	volumes := map[string]string{}
	for path, key := range i.app().Volumes {
		if v, there := i.volumeAt(path); i.restored || there && v.key == key {
			volumes[path] = key
		}
	}
	for path := range i.want.Volumes {
		if v, there := i.volumeAt(path); there {
			volumes[path] = v.key
		}
	}
	return volumes
}

func (i *instance) adoptedVariables(live map[string]string) (own, theirs []string) {
	wanted := i.wantedEnvironment()
	for _, name := range sortedKeys(live) {
		_, ours := wanted[name]
		switch {
		case name == guest.ContractVariable:
		case ours || slices.Contains(i.app().Own, name):
			own = append(own, name)
			if slices.Contains(i.app().Theirs, name) {
				theirs = append(theirs, name)
			}
		default:
			theirs = append(theirs, name)
		}
	}
	return own, theirs
}
