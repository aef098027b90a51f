package pvesim

import (
	"maps"
	"slices"
	"strings"
)

// changeVM writes the changes into the pending section one by one and then applies what it can. An
// error leaves what came before it: a failed removal stays pending.
func (k *call) changeVM(t *task, g *guest, ch vmChange) error {
	logTo(t, "update VM %d: %s", g.vmid, ch.logText(k))
	remove, set := slices.Clone(ch.remove), maps.Clone(ch.set)
	for _, key := range ch.revert {
		if v, ok := g.conf.kv[key]; ok {
			set[key] = v
		} else if _, ok := g.pending.kv[key]; ok {
			remove = append(remove, key)
		}
	}
	touched := map[string]bool{}
	boot, hasOrder := bootOrder(g.conf.kv["boot"])
	for _, key := range remove {
		if err := k.markVMKeyDeleted(t, g, key, ch.force, &boot, hasOrder, touched); err != nil {
			return err
		}
	}
	for _, key := range sortedKeys(set) {
		touched[key] = true
		if old, ok := g.pending.kv[key]; ok && old == set[key] {
			continue
		}
		if err := k.setVMKey(t, g, key, set[key], set, remove, &boot, hasOrder, touched); err != nil {
			return err
		}
		delete(g.pendingDelete, key)
	}
	g.dropUsedUnused()
	g.cleanVMPending()
	if len(g.pending.kv)+len(g.pendingDelete) == 0 {
		return nil
	}
	errs := map[string]string{}
	if g.running {
		k.hotplugVM(g, touched, errs)
	} else {
		k.applyVM(t, g, errs)
	}
	g.dropUsedUnused()
	if len(errs) > 0 {
		return paramErrors(errs)
	}
	return nil
}

// cleanVMPending drops pending values that change nothing and removals of what is not set.
func (g *guest) cleanVMPending() {
	for key, v := range g.pending.kv {
		if old, ok := g.conf.kv[key]; ok && old == v {
			delete(g.pending.kv, key)
		}
	}
	for key := range g.pendingDelete {
		if _, ok := g.conf.kv[key]; !ok {
			delete(g.pendingDelete, key)
		}
	}
}

func (k *call) markVMKeyDeleted(t *task, g *guest, key string, force bool, boot *[]string, hasOrder bool, touched map[string]bool) error {
	value, inConf := g.conf.kv[key]
	pendingValue, inPending := g.pending.kv[key]
	if !inConf {
		value = pendingValue
	}
	if !inConf && !inPending {
		logTo(t, "cannot delete '%s' - not set in current configuration!", key)
		return nil
	}
	touched[key] = true
	delete(g.pending.kv, key)
	if hasOrder && slices.Contains(*boot, key) {
		*boot = slices.DeleteFunc(slices.Clone(*boot), func(d string) bool { return d == key })
		g.pending.kv["boot"] = printBootOrder(*boot)
		touched["boot"] = true
	}
	switch {
	case unusedKeyRE.MatchString(key):
		d, _ := parseDrive(key, value)
		if g.protected() {
			return die("can't remove unused disk '%s' - protection mode enabled", d.file())
		}
		if err := k.needGuest(g.vmid, "", false, "VM.Config.Disk"); err != nil {
			return err
		}
		if err := k.deallocate(t, g, key, d); err != nil {
			return err
		}
		delete(g.conf.kv, key)
		return nil
	case isDriveKey(key):
		if g.protected() {
			return die("can't remove drive '%s' - protection mode enabled", key)
		}
		d, _ := parseDrive(key, value)
		if err := k.mayUseDrive(g.vmid, d); err != nil {
			return err
		}
		if inPending {
			p, _ := parseDrive(key, pendingValue)
			k.detach(t, g, p)
		}
	case key == "tags":
		if err := k.checkTags(g.vmid, value, ""); err != nil {
			return err
		}
		delete(g.conf.kv, key)
		return nil
	case netRE.MatchString(key) && inConf:
		if err := k.mayUseBridges(map[string]string{key: value}); err != nil {
			return err
		}
	}
	g.pendingDelete[key] = force
	return nil
}

// deallocate removes a volume for good when it is the VM's own and nothing uses it.
func (k *call) deallocate(t *task, g *guest, key string, d drive) error {
	volid := d.file()
	if !k.c.ownsVolume(g, volid) {
		return nil
	}
	sid, _, _ := splitVolID(volid)
	if err := k.need("/storage/"+sid, "Datastore.AllocateSpace"); err != nil {
		return err
	}
	if g.inUse(key, volid) {
		return die("unable to delete '%s' - volume is still in use (snapshot?)", volid)
	}
	warning, err := k.c.free(g.node, volid)
	if warning != "" {
		logTo(t, "%s", warning)
	}
	return err
}

// detach leaves a drive's volume behind as an unused one when it is the VM's own. A cloud-init drive
// is made anew when it is needed, so it goes.
func (k *call) detach(t *task, g *guest, d drive) {
	switch {
	case d.isCloudInit():
		if _, err := k.c.free(g.node, d.file()); err != nil {
			logTo(t, "%s", err)
		}
	case d.isCDROM():
	default:
		sid, _, ok := splitVolID(d.file())
		if !ok {
			return
		}
		if k.c.storages[sid] == nil {
			if t != nil {
				t.warnf("storage '%s' no longer exists, volume '%s' will be removed from config", sid, d.file())
			}
			return
		}
		if k.c.ownsVolume(g, d.file()) {
			g.addUnused(d.file())
		}
	}
}

func (k *call) setVMKey(t *task, g *guest, key, value string, set map[string]string, remove []string, boot *[]string, hasOrder bool, touched map[string]bool) error {
	switch {
	case isDriveKey(key):
		return k.setDrive(t, g, key, value, boot, hasOrder, touched)
	case key == "tags":
		if err := k.checkTags(g.vmid, g.conf.kv["tags"], value); err != nil {
			return err
		}
		g.pending.kv[key] = normalTags(value)
	case key == "description":
		value = strings.TrimRight(value, "\n")
		g.pending.kv[key] = value
		if value == "" {
			delete(g.pending.kv, key)
			delete(g.conf.kv, key)
		}
	case key == "cipassword":
		g.conf.kv[key] = value
	case netRE.MatchString(key):
		if old, ok := g.conf.kv[key]; ok {
			if err := k.mayUseBridges(map[string]string{key: old}); err != nil {
				return err
			}
		}
		g.pending.kv[key] = value
	case key == "boot":
		devices, ok := bootOrder(value)
		for _, dev := range devices {
			_, now := g.conf.kv[dev]
			_, soon := g.pending.kv[dev]
			_, given := set[dev]
			if !now && !soon && !given || slices.Contains(remove, dev) {
				return die("invalid bootorder: device '%s' does not exist'", dev)
			}
		}
		g.pending.kv[key] = value
		if ok {
			g.pending.kv[key] = printBootOrder(devices)
			if _, old := g.conf.kv["bootdisk"]; old {
				g.pendingDelete["bootdisk"] = false
			}
		}
	default:
		g.pending.kv[key] = value
	}
	return nil
}

func (k *call) setDrive(t *task, g *guest, key, value string, boot *[]string, hasOrder bool, touched map[string]bool) error {
	d, _ := parseDrive(key, value)
	if old, ok := g.conf.kv[key]; ok {
		o, _ := parseDrive(key, old)
		if err := k.mayUseDrive(g.vmid, o); err != nil {
			return err
		}
		if key == "tpmstate0" && o.opts["version"] != d.opts["version"] && d.opts["version"] != "" {
			return die("cannot change TPM state version after creation")
		}
	}
	if err := k.mayUseDrive(g.vmid, d); err != nil {
		return err
	}
	if old, ok := g.pending.kv[key]; ok {
		p, _ := parseDrive(key, old)
		k.detach(t, g, p)
	}
	made, err := k.makeDisks(t, g, map[string]string{key: value}, "")
	if err != nil {
		return err
	}
	maps.Copy(g.pending.kv, made.values)
	if hasOrder && d.isMedium() && !slices.Contains(*boot, key) {
		*boot = append(slices.Clone(*boot), key)
		g.pending.kv["boot"] = printBootOrder(*boot)
		touched["boot"] = true
	}
	return nil
}
