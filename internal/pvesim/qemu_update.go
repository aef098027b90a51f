package pvesim

import (
	"maps"
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

// unlinkDisks is another door to the removal of keys.
func unlinkDisks(k *call) (any, error) {
	ids := splitList(k.str("idlist"))
	k.params["delete"] = strings.Join(ids, ",")
	delete(k.params, "idlist")
	return updateVMSync(k)
}
