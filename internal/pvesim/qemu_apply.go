package pvesim

import (
	"regexp"
	"slices"
	"strings"
)

// fastPlug are the keys that never need a restart, cloud-init's among them.
var fastPlug = []string{
	"description", "hookscript", "lock", "migrate_downtime", "migrate_speed", "name", "onboot", "protection",
	"shares", "startup", "tags", "vmstatestorage",
	"cicustom", "cipassword", "citype", "ciuser", "ciupgrade", "nameserver", "searchdomain", "sshkeys",
}

var slowDriveRE = regexp.MustCompile(`^(?:efidisk|ide|sata|tpmstate)\d+`)

// applyVM brings the pending section of a stopped VM into effect. What fails stays pending.
func (k *call) applyVM(t *task, g *guest, errs map[string]string) {
	for _, key := range sortedKeys(g.pendingDelete) {
		force := g.pendingDelete[key]
		if value, ok := g.conf.kv[key]; ok && isDriveKey(key) {
			if err := k.removeDrive(t, g, key, value, force); err != nil {
				text := "unable to apply pending change " + key + " : " + err.Error() + "\n"
				errs[key] = text
				logTo(t, "%s", strings.TrimRight(text, "\n"))
				continue
			}
		}
		delete(g.pendingDelete, key)
		delete(g.conf.kv, key)
	}
	g.cleanVMPending()
	cloudInit := false
	for _, key := range g.pending.keys() {
		value := g.pending.kv[key]
		if old, ok := g.conf.kv[key]; ok && isDriveKey(key) {
			d, _ := parseDrive(key, old)
			k.replaceDrive(t, g, d, value)
		}
		if isDriveKey(key) {
			d, _ := parseDrive(key, value)
			cloudInit = cloudInit || d.isCloudInit()
		}
		g.conf.kv[key] = value
		delete(g.pending.kv, key)
	}
	if cloudInit {
		k.c.writeCloudInit(g)
	}
}

// replaceDrive sets the volume of a key aside when the new value names another one.
func (k *call) replaceDrive(t *task, g *guest, old drive, value string) {
	if d, ok := parseDrive(old.key, value); ok && d.file() == old.file() {
		return
	}
	k.detach(t, g, old)
}

func (k *call) removeDrive(t *task, g *guest, key, value string, force bool) error {
	d, _ := parseDrive(key, value)
	if !force {
		k.detach(t, g, d)
		return nil
	}
	if err := k.needGuest(g.vmid, "", false, "VM.Config.Disk"); err != nil {
		return err
	}
	if d.isMedium() {
		return nil
	}
	return k.deallocate(t, g, key, d)
}

// hotplugVM applies to a running VM what can be changed while it runs; the rest stays pending.
func (k *call) hotplugVM(g *guest, touched map[string]bool, errs map[string]string) {
	for _, key := range g.pending.keys() {
		if slices.Contains(fastPlug, key) || ipconfigRE.MatchString(key) {
			g.conf.kv[key] = g.pending.kv[key]
			delete(g.pending.kv, key)
		}
	}
	features := hotplugFeatures(g.conf.kv)
	for _, key := range sortedKeys(g.pendingDelete) {
		if !touched[key] {
			continue
		}
		done, err := k.unplug(g, key, g.pendingDelete[key], features)
		if err != nil {
			errs[key] = "hotplug problem - " + err.Error() + "\n"
			continue
		}
		if done {
			delete(g.conf.kv, key)
			delete(g.pendingDelete, key)
		}
	}
	for _, key := range g.pending.keys() {
		if !touched[key] {
			continue
		}
		if k.plug(g, key, g.pending.kv[key], features) {
			g.conf.kv[key] = g.pending.kv[key]
			delete(g.pending.kv, key)
		}
	}
}

// hotplugFeatures are the kinds of devices that may be changed while the VM runs.
func hotplugFeatures(conf map[string]string) []string {
	v, ok := conf["hotplug"]
	if !ok || v == "1" {
		return []string{"network", "disk", "usb"}
	}
	return splitList(v)
}

func (k *call) unplug(g *guest, key string, force bool, features []string) (done bool, err error) {
	switch {
	case slices.Contains(fastPlug, key), ipconfigRE.MatchString(key), key == "cpuunits", key == "cpulimit":
		return true, nil
	case netRE.MatchString(key):
		return slices.Contains(features, "network"), nil
	case isDriveKey(key):
		if !slices.Contains(features, "disk") || slowDriveRE.MatchString(key) {
			return false, nil
		}
		if g.bootDisk() == key {
			return false, die("can't unplug bootdisk '%s'", key)
		}
		return true, k.removeDrive(nil, g, key, g.conf.kv[key], force)
	}
	return false, nil
}

// bootDisk is the first disk in the boot order.
func (g *guest) bootDisk() string {
	devices, ok := bootOrder(g.conf.kv["boot"])
	if !ok {
		return g.conf.kv["bootdisk"]
	}
	for _, key := range devices {
		if isDriveKey(key) {
			if d, ok := parseDrive(key, g.conf.kv[key]); ok && !d.isCDROM() {
				return key
			}
		}
	}
	return ""
}

func (k *call) plug(g *guest, key, value string, features []string) bool {
	switch {
	case key == "cpuunits", key == "cpulimit", key == "agent":
		return true
	case netRE.MatchString(key):
		return slices.Contains(features, "network")
	case isDriveKey(key):
		return k.plugDrive(g, key, value, features)
	}
	return false
}

func (k *call) plugDrive(g *guest, key, value string, features []string) bool {
	if key == "efidisk0" || key == "tpmstate0" {
		return false
	}
	d, _ := parseDrive(key, value)
	old, has := g.conf.kv[key]
	if !has {
		return slices.Contains(features, "disk") && !slowDriveRE.MatchString(key)
	}
	o, _ := parseDrive(key, old)
	switch {
	case o.isCDROM():
		if o.isCloudInit() && d.file() == "none" {
			k.detach(nil, g, o)
		}
		return true
	case o.file() == d.file():
		for _, opt := range []string{"aio", "discard", "iothread", "queues", "product", "cache", "ssd", "vendor", "ro"} {
			if o.opts[opt] != d.opts[opt] {
				return false
			}
		}
		return true
	}
	if !slices.Contains(features, "disk") || slowDriveRE.MatchString(key) {
		return false
	}
	k.detach(nil, g, o)
	return true
}
