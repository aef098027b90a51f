package pvesim

import (
	"maps"
	"strings"
)

// restoreVM makes a VM out of a backup. Over an existing one, the disks whose keys the backup has are
// destroyed; the VM's other disks stay and come back as unused ones.
func (k *call) restoreVM(vmid int, volid string, settings map[string]string) (any, error) {
	g, err := k.reserve(vmid, "restore")
	if err != nil {
		return nil, err
	}
	return k.startTask("qmrestore", itoa(vmid), []int{vmid}, func(t *task) error {
		delete(g.conf.kv, "lock")
		if t.doomed != "" {
			if len(g.conf.kv) == 0 {
				delete(k.c.guests, vmid)
			}
			return die("%s", t.doomed)
		}
		restored, err := k.refillVM(t, g, volid, settings)
		if err != nil {
			if len(g.conf.kv) == 0 {
				delete(k.c.guests, vmid)
			}
			if !restored {
				t.logf("error before or during data restore, some or all disks were not completely restored. VM %d state is NOT cleaned up.", vmid)
			}
			return err
		}
		k.afterCreate(t, g)
		return nil
	}), nil
}

func (k *call) refillVM(t *task, g *guest, volid string, settings map[string]string) (restored bool, err error) {
	if g.protected() {
		return false, die("unable to restore VM %d - - protection mode enabled", g.vmid)
	}
	if g.running {
		return false, die("unable to restore VM %d - vm is running", g.vmid)
	}
	v := k.c.volume(k.node(), volid)
	if v == nil || v.archive == nil || v.archive.kind != kindQEMU {
		return false, die("unable to open file '%s'", k.c.volumePath(volid))
	}
	a := v.archive
	t.logf("restore vma archive: vma extract -v -r - %s", k.c.volumePath(volid))
	k.clearForRestore(t, g, a)
	fresh := newGuest(g.vmid, kindQEMU, g.node)
	if a.fw != nil {
		fresh.fw = a.fw.clone()
	}
	mapped, err := k.restoreDisks(t, g.vmid, a)
	if err != nil {
		return false, err
	}
	k.restoreKeys(fresh, a, mapped)
	maps.Copy(fresh.conf.kv, settings)
	*g = *fresh
	t.logf("rescan volumes...")
	k.rescan(t, g)
	return true, nil
}

// clearForRestore destroys the present disks that the backup replaces, key by key.
func (k *call) clearForRestore(t *task, g *guest, a *archive) {
	for _, key := range driveKeys(g.conf.kv, false) {
		d, ok := parseDrive(key, g.conf.kv[key])
		if !ok || d.isMedium() || !k.c.ownsVolume(g, d.file()) {
			continue
		}
		_, saved := a.disks[key]
		if saved || d.isCloudInit() {
			if _, err := k.c.free(g.node, d.file()); err != nil {
				t.logf("%s", err)
			}
			continue
		}
		for _, s := range g.snapshots {
			k.c.dropVolumeSnapshot(g.node, d.file(), s.name)
		}
	}
}

func (k *call) restoreDisks(t *task, vmid int, a *archive) (map[string]string, error) {
	mapped := map[string]string{}
	for _, key := range sortedKeys(a.disks) {
		saved := a.disks[key]
		d, _ := parseDrive(key, saved.value)
		sid := k.str("storage")
		if sid == "" {
			sid, _, _ = splitVolID(d.file())
		}
		volid, err := k.c.alloc(k.node(), sid, vmid, k.c.targetFormat(sid, saved.format, ""), "", saved.size)
		if err != nil {
			return nil, err
		}
		t.logf("new volume ID is '%s'", volid)
		k.c.volume(k.node(), volid).content = maps.Clone(saved.content)
		mapped[key] = volid
	}
	return mapped, nil
}

// restoreKeys takes the backup's configuration over. A disk that was left out of the backup comes
// back as a line of the description, its volume is not touched.
func (k *call) restoreKeys(g *guest, a *archive, mapped map[string]string) {
	unique := k.flag("unique")
	var notes []string
	if d := a.conf.kv["description"]; d != "" {
		notes = append(notes, d)
	}
	for _, key := range a.conf.keys() {
		v := a.conf.kv[key]
		switch {
		case key == "lock", key == "parent", key == "description", unusedKeyRE.MatchString(key):
			continue
		case netRE.MatchString(key) && unique:
			f := vmMethod().arg("net0").parts
			if parts, err := f.parse(v, ""); err == nil {
				parts["macaddr"] = k.c.newMAC()
				v = f.print(parts)
			}
		case key == "vmgenid" && v != "0":
			v = k.c.newUUID()
		case key == "smbios1" && unique:
			v = "uuid=" + k.c.newUUID()
		case isDriveKey(key):
			d, _ := parseDrive(key, v)
			if d.opts["backup"] == "0" {
				notes = append(notes, key+": "+v)
				continue
			}
			if volid, ok := mapped[key]; ok {
				d.opts["file"] = volid
				delete(d.opts, "format")
				v = d.print()
			}
		}
		g.conf.kv[key] = v
	}
	if len(notes) > 0 {
		g.conf.kv["description"] = strings.Join(notes, "\n")
	}
}

// rescan corrects sizes and adopts every volume of the VM's number that no key names.
func (k *call) rescan(t *task, g *guest) {
	named := map[string]bool{}
	for _, key := range driveKeys(g.conf.kv, true) {
		d, ok := parseDrive(key, g.conf.kv[key])
		if !ok {
			continue
		}
		named[d.file()] = true
		size, _, found := k.c.volumeSize(g.node, d.file())
		if old, ok := parseSize(d.opts["size"]); ok && found && old != size && !d.isCDROM() {
			t.logf("VM %d (%s): size of disk '%s' updated from %s to %s", g.vmid, key, d.file(), d.opts["size"], formatSize(size))
			d.opts["size"] = formatSize(size)
			g.conf.kv[key] = d.print()
		}
	}
	for _, id := range sortedKeys(k.c.storages) {
		s := k.c.storages[id]
		if !s.has("images") || s.disabled() || s.unreachable || !s.onNode(g.node) {
			continue
		}
		for _, v := range s.sorted(g.node) {
			if v.vtype == "images" && v.owned && v.owner == g.vmid && !named[v.id()] && !cloudInitRE.MatchString(v.id()) {
				key := g.addUnused(v.id())
				t.logf("VM %d add unreferenced volume '%s' as '%s' to config", g.vmid, v.id(), key)
			}
		}
	}
}

// driveMapLine is the line of a VM's archived configuration that says which device in the archive
// holds a drive, and where the drive was.
func driveMapLine(key string, saved archivedDisk) string {
	d, _ := parseDrive(key, saved.value)
	sid, _, _ := splitVolID(d.file())
	device := "drive-" + key
	if key == "tpmstate0" {
		device += "-backup"
	}
	return "#qmdump#map:" + key + ":" + device + ":" + sid + ":" + saved.format + ":\n"
}
