package pvesim

import (
	"maps"
	"slices"
	"strings"
)

// createOnly are the parameters of a create that are no configuration keys.
var createOnly = []string{
	"node", "vmid", "archive", "bwlimit", "force", "pool", "start", "ha-managed", "storage", "unique", "live-restore", "import-working-storage",
}

// createVM makes a VM, or restores one when an archive is given. An empty archive is none, though it
// satisfies force: the configuration of an existing VM is then replaced without further questions.
func createVM(k *call) (any, error) {
	vmid, pool := atoi(k.str("vmid")), k.str("pool")
	settings := map[string]string{}
	for key, v := range k.params {
		if !slices.Contains(createOnly, key) {
			settings[key] = v
		}
	}
	if err := k.c.checkQuorum(); err != nil {
		return nil, err
	}
	if err := k.mayCreateVM(vmid, pool); err != nil {
		return nil, err
	}
	archive := k.str("archive")
	if archive != "" {
		for _, key := range driveKeys(settings, false) {
			return nil, paramError(key, "option conflicts with option 'archive'")
		}
		if err := k.volumeAccess(vmid, archive, "backup"); err != nil {
			return nil, err
		}
	}
	if err := k.vetNewVM(vmid, pool, settings); err != nil {
		return nil, err
	}
	if archive != "" {
		return k.restoreVM(vmid, archive, settings)
	}
	return k.makeVM(vmid, settings)
}

func (k *call) mayCreateVM(vmid int, pool string) error {
	if err := k.checkPool(pool); err != nil {
		return err
	}
	if s := k.str("storage"); s != "" {
		if err := k.need("/storage/"+s, "Datastore.AllocateSpace"); err != nil {
			return err
		}
	}
	if k.flag("ha-managed") {
		if err := k.need("/", "Sys.Console"); err != nil {
			return err
		}
	}
	if k.flag("start") {
		if err := k.needGuest(vmid, pool, false, "VM.PowerMgmt"); err != nil {
			return err
		}
	}
	existing := k.c.guests[vmid]
	switch {
	case k.may(vmPath(vmid), "VM.Allocate"), pool != "" && k.may("/pool/"+pool, "VM.Allocate"):
		return nil
	case k.str("archive") != "" && k.flag("force") && existing != nil && k.may(vmPath(vmid), "VM.Backup"):
		return nil
	}
	return forbidden("")
}

// vetNewVM makes the checks that come before anything is written.
func (k *call) vetNewVM(vmid int, pool string, settings map[string]string) error {
	if v, ok := settings["cdrom"]; ok {
		if !strings.Contains(v, "media=") {
			v += ",media=cdrom"
		}
		settings["ide2"] = v
		delete(settings, "cdrom")
	}
	if err := k.mayUseStorages(vmid, settings, k.str("storage")); err != nil {
		return err
	}
	if err := k.mayChangeVM(vmid, pool, sortedKeys(settings)); err != nil {
		return err
	}
	if err := k.mayUseHostDevices(vmid, pool, settings); err != nil {
		return err
	}
	if err := k.mayUseBridges(settings); err != nil {
		return err
	}
	if err := k.checkDrives(settings); err != nil {
		return err
	}
	for key, v := range settings {
		if netRE.MatchString(key) {
			settings[key] = k.c.normalNet(v)
		}
	}
	return nil
}

// reserve writes the stub that keeps a VMID while its VM is made.
func (k *call) reserve(vmid int, doing string) (*guest, error) {
	if err := k.c.flock(vmid); err != nil {
		return nil, err
	}
	g := k.c.guests[vmid]
	if g != nil && (!k.flag("force") || g.kind != kindQEMU || g.node != k.node()) {
		return nil, die("unable to %s VM %d - %s", doing, vmid, k.c.checkUnused(vmid))
	}
	if g != nil {
		if err := g.checkLock(); err != nil {
			return nil, die("unable to %s VM %d - %s", doing, vmid, err)
		}
	} else {
		g = newGuest(vmid, kindQEMU, k.node())
		k.c.guests[vmid] = g
	}
	g.conf.kv["lock"] = "create"
	return g, nil
}

func (k *call) makeVM(vmid int, settings map[string]string) (any, error) {
	g, err := k.reserve(vmid, "create")
	if err != nil {
		return nil, err
	}
	return k.startTask("qmcreate", itoa(vmid), []int{vmid}, func(t *task) error {
		if t.doomed != "" {
			delete(k.c.guests, vmid)
			return die("%s", t.doomed)
		}
		if err := k.fillVM(t, g, settings); err != nil {
			delete(k.c.guests, vmid)
			return die("unable to create VM %d - %s", vmid, err)
		}
		k.afterCreate(t, g)
		return nil
	}), nil
}

func (k *call) fillVM(t *task, g *guest, settings map[string]string) error {
	t.checkpoint("stub")
	fresh := newGuest(g.vmid, kindQEMU, g.node)
	for key, v := range settings {
		fresh.conf.kv[key] = v
	}
	for _, key := range driveKeys(settings, false) {
		delete(fresh.conf.kv, key)
	}
	made, err := k.makeDisks(t, fresh, settings, k.str("storage"))
	if err != nil {
		return err
	}
	t.checkpoint("allocated")
	maps.Copy(fresh.conf.kv, made.values)
	if d, ok := fresh.conf.kv["description"]; ok {
		fresh.conf.kv["description"] = strings.TrimRight(d, "\n")
	}
	if _, ok := fresh.conf.kv["boot"]; !ok {
		fresh.conf.kv["boot"] = defaultBoot(fresh.conf.kv)
	}
	k.c.identify(fresh)
	if tags, ok := fresh.conf.kv["tags"]; ok {
		if err := k.checkTags(g.vmid, "", tags); err != nil {
			k.dropDisks(made.fresh)
			return err
		}
		fresh.conf.kv["tags"] = normalTags(tags)
	}
	*g = *fresh
	return nil
}

// identify gives a new VM what tells it from others.
func (c *Cluster) identify(g *guest) {
	if g.conf.kv["smbios1"] == "" {
		g.conf.kv["smbios1"] = "uuid=" + c.newUUID()
	}
	if v, ok := g.conf.kv["vmgenid"]; !ok || v == "1" {
		g.conf.kv["vmgenid"] = c.newUUID()
	}
	g.conf.kv["meta"] = "creation-qemu=10.0.13,ctime=" + itoa(int(c.now().Unix()))
}

// afterCreate does what a create or restore was asked to do beyond making the VM.
func (k *call) afterCreate(t *task, g *guest) {
	if pool := k.str("pool"); pool != "" {
		if p := k.c.access.pools[pool]; p != nil {
			p.vms[g.vmid] = true
		}
	}
	if k.flag("ha-managed") {
		t.logf("Add as HA resource")
		state := "stopped"
		if k.flag("start") {
			state = "started"
		}
		k.c.ha.resources[g.haID()] = map[string]string{"state": state}
	}
	if k.flag("start") {
		t.logf("Execute autostart")
		k.startTask("qmstart", itoa(g.vmid), nil, func(t *task) error { return k.bootVM(t, g) })
	}
}
