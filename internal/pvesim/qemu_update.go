package pvesim

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// vmChange is a request to change a VM's configuration, taken apart.
type vmChange struct {
	set            map[string]string
	remove, revert []string
	force          bool
	digest         string
}

var vmIndexedRE = regexp.MustCompile(`^([a-z]+)\d+$`)

// vmKeyExists tells whether a key can stand in a VM's configuration at all.
func vmKeyExists(key string) bool {
	switch key {
	case "node", "vmid", "archive", "pool", "storage", "force", "start", "unique", "bwlimit", "live-restore", "ha-managed", "import-working-storage":
		return false
	case "parent", "snaptime", "vmstate", "runningmachine", "runningcpu", "meta", "lock":
		return true
	}
	return vmMethod().arg(key) != nil
}

func (k *call) vmChange() (vmChange, error) {
	ch := vmChange{set: map[string]string{}, force: k.flag("force"), digest: k.str("digest")}
	for key, v := range k.params {
		switch key {
		case "node", "vmid", "digest", "background_delay", "skip_cloud_init", "import-working-storage", "skiplock", "delete", "revert", "force":
		case "cdrom":
			if !strings.Contains(v, "media=") {
				v += ",media=cdrom"
			}
			ch.set["ide2"] = v
		default:
			ch.set[key] = v
		}
	}
	if k.flag("skiplock") && !k.who.isRoot() {
		return ch, paramError("skiplock", "Only root may use this option.")
	}
	if k.str("delete") == "" && k.str("revert") == "" && len(ch.set) == 0 {
		return ch, die("no options specified")
	}
	for _, key := range splitList(k.str("revert")) {
		if !vmKeyExists(key) {
			return ch, paramError("revert", "unknown option '"+key+"'")
		}
		if _, both := ch.set[key]; both {
			return ch, paramError("delete", "you can't use '-"+key+"' and -revert "+key+"' at the same time")
		}
		ch.revert = append(ch.revert, key)
	}
	for _, key := range splitList(k.str("delete")) {
		if key == "cdrom" {
			key = "ide2"
		}
		switch _, both := ch.set[key]; {
		case both:
			return ch, paramError("delete", "you can't use '-"+key+"' and -delete "+key+"' at the same time")
		case slices.Contains(ch.revert, key):
			return ch, paramError("revert", "you can't use '-delete "+key+"' and -revert "+key+"' at the same time")
		case !vmKeyExists(key):
			return ch, paramError("delete", "unknown option '"+key+"'")
		}
		ch.remove = append(ch.remove, key)
	}
	return ch, nil
}

// vetVMChange makes every check that comes before the configuration is looked at.
func (k *call) vetVMChange(vmid int, ch vmChange) error {
	if err := k.checkDrives(ch.set); err != nil {
		return err
	}
	if k.c.replicationOf(vmid) != "" {
		if err := k.checkReplicated(ch.set); err != nil {
			return err
		}
	}
	for key, v := range ch.set {
		switch {
		case netRE.MatchString(key):
			ch.set[key] = k.c.normalNet(v)
		case key == "vmgenid" && v == "1":
			ch.set[key] = k.c.newUUID()
		}
	}
	if err := k.mayChangeVM(vmid, "", ch.remove); err != nil {
		return err
	}
	if err := k.mayChangeVM(vmid, "", sortedKeys(ch.set)); err != nil {
		return err
	}
	if err := k.mayUseHostDevices(vmid, "", ch.set); err != nil {
		return err
	}
	if err := k.mayUseStorages(vmid, ch.set, ""); err != nil {
		return err
	}
	return k.mayUseBridges(ch.set)
}

// checkReplicated refuses disks that replication could not carry along.
func (k *call) checkReplicated(settings map[string]string) error {
	for _, key := range driveKeys(settings, false) {
		d, ok := parseDrive(key, settings[key])
		if !ok || d.isCDROM() || d.file() == "" || d.opts["replicate"] == "0" {
			continue
		}
		sid, _, managed := splitVolID(d.file())
		if m := vmDiskRE.FindStringSubmatch(d.file()); m != nil {
			sid, managed = m[1], true
		}
		if !managed {
			return die("cannot add non-managed/pass-through volume to a replicated VM")
		}
		if s := k.c.storages[sid]; s != nil && !s.canReplicate() && !s.shared() {
			return die("cannot add non-replicatable volume to a replicated VM")
		}
	}
	return nil
}

// normalNet writes a network card in Proxmox's spelling, with a new MAC address where none was given.
func (c *Cluster) normalNet(value string) string {
	f := vmMethod().arg("net0").parts
	parts, err := f.parse(value, "")
	if err != nil {
		return value
	}
	if parts["macaddr"] == "" {
		parts["macaddr"] = c.newMAC()
	}
	parts["macaddr"] = strings.ToUpper(parts["macaddr"])
	return f.print(parts)
}

func (k *call) checkVM(g *guest, ch vmChange) error {
	if ch.digest != "" && ch.digest != g.digest() {
		return die("checksum mismatch (file change by other user?)")
	}
	if !k.flag("skiplock") {
		return g.checkLock()
	}
	return nil
}

func updateVMSync(k *call) (any, error) {
	ch, err := k.vmChange()
	if err != nil {
		return nil, err
	}
	if err := k.c.flock(k.vmid()); err != nil {
		return nil, err
	}
	if err := k.vetVMChange(k.vmid(), ch); err != nil {
		return nil, err
	}
	g, err := k.thisVM()
	if err != nil {
		return nil, err
	}
	if err := k.checkVM(g, ch); err != nil {
		return nil, err
	}
	return nil, k.changeVM(nil, g, ch)
}

func updateVMAsync(k *call) (any, error) {
	ch, err := k.vmChange()
	if err != nil {
		return nil, err
	}
	vmid := k.vmid()
	if err := k.vetVMChange(vmid, ch); err != nil {
		return nil, err
	}
	g, err := k.thisVM()
	if err != nil {
		return nil, err
	}
	if err := k.checkVM(g, ch); err != nil {
		return nil, err
	}
	upid := k.startTask("qmconfig", itoa(vmid), []int{vmid}, func(t *task) error {
		g, err := k.thisVM()
		if err != nil {
			return err
		}
		if err := k.checkVM(g, ch); err != nil {
			return err
		}
		return k.changeVM(t, g, ch)
	})
	return k.backgroundDelay(upid, vmid)
}

// backgroundDelay waits for a task that the caller would rather have the result of.
func (k *call) backgroundDelay(upid string, vmid int) (any, error) {
	if !k.has("background_delay") {
		return upid, nil
	}
	for _, t := range k.c.tasks {
		if t.upid == upid && t.exit != "" {
			if isTaskError(t.exit) {
				return nil, die("failed to update VM %d: %s", vmid, t.exit)
			}
			return nil, nil
		}
	}
	return upid, nil
}

// logText is how the log names a change.
func (ch vmChange) logText(k *call) string {
	args := maps.Clone(ch.set)
	for _, key := range []string{"delete", "revert", "force"} {
		if v, ok := k.param(key); ok {
			args[key] = v
		}
	}
	var b strings.Builder
	for i, key := range sortedKeys(args) {
		if i > 0 {
			b.WriteByte(' ')
		}
		v := args[key]
		if key == "cipassword" {
			v = "<hidden>"
		}
		b.WriteString("-" + key + " " + v)
	}
	return b.String()
}

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

// unlinkDisks is another door to the removal of keys.
func unlinkDisks(k *call) (any, error) {
	ids := splitList(k.str("idlist"))
	k.params["delete"] = strings.Join(ids, ",")
	delete(k.params, "idlist")
	return updateVMSync(k)
}
