package pvesim

import "maps"

// moveDisk gives a disk to another VM, or copies it to another storage.
func moveDisk(k *call) (any, error) {
	target, storeID := k.str("target-vmid"), k.str("storage")
	switch {
	case target != "" && storeID != "":
		const text = "either set 'storage' or 'target-vmid', but not both"
		return nil, paramErrors(map[string]string{"target-vmid": text, "storage": text})
	case target != "":
		return k.reassignDisk(atoi(target))
	case storeID != "":
		return k.copyDisk(storeID)
	}
	const text = "both 'storage' and 'target-vmid' missing, either needs to be set"
	return nil, paramErrors(map[string]string{"target-vmid": text, "storage": text})
}

// diskMove is a checked move of a disk between two VMs.
type diskMove struct {
	from, to       *guest
	key, targetKey string
	drive          drive
}

func (k *call) reassignDisk(target int) (any, error) {
	if err := k.needGuest(target, "", false, "VM.Config.Disk"); err != nil {
		return nil, err
	}
	if target == k.vmid() {
		return nil, paramError("target-vmid", "must be different than source VMID to reassign disk")
	}
	for _, id := range []int{k.vmid(), target} {
		if err := k.c.flock(id); err != nil {
			return nil, err
		}
	}
	r, err := k.checkDiskMove(target)
	if err != nil {
		return nil, err
	}
	sid, _, _ := splitVolID(r.drive.file())
	if err := k.need("/storage/"+sid, "Datastore.AllocateSpace"); err != nil {
		return nil, err
	}
	id := itoa(k.vmid()) + "-" + r.key + ">" + itoa(target) + "-" + r.targetKey
	return k.startTask("qmmove", id, []int{k.vmid(), target}, func(t *task) error {
		r, err := k.checkDiskMove(target)
		if err != nil {
			return err
		}
		return k.doDiskMove(t, r)
	}), nil
}

func (k *call) checkDiskMove(target int) (diskMove, error) {
	r := diskMove{from: k.c.guests[k.vmid()], to: k.c.guests[target], key: k.str("disk"), targetKey: k.str("target-disk")}
	if r.targetKey == "" {
		r.targetKey = r.key
	}
	if r.from == nil {
		return r, die("could not find VM %d", k.vmid())
	}
	if r.to == nil {
		return r, die("could not find target VM %d", target)
	}
	if r.from.node != r.to.node {
		return r, die("Both VMs need to be on the same node (%s != %s)", r.from.node, r.to.node)
	}
	for _, g := range []*guest{r.from, r.to} {
		if _, err := k.c.guestOn(k.node(), kindQEMU, g.vmid); err != nil {
			return r, err
		}
		if err := g.checkLock(); err != nil {
			return r, err
		}
	}
	if r.from.isTemplate() || r.to.isTemplate() {
		return r, die("Can't move disks from or to template VMs")
	}
	for _, d := range []struct {
		param string
		g     *guest
	}{{"digest", r.from}, {"target-digest", r.to}} {
		if want := k.str(d.param); want != "" && want != d.g.digest() {
			return r, die("VM %d: detected modified configuration - file changed by other user? Try again.", d.g.vmid)
		}
	}
	value, ok := r.from.conf.kv[r.key]
	if !ok {
		return r, die("Disk '%s' for VM '%d' does not exist", r.key, r.from.vmid)
	}
	if _, taken := r.to.conf.kv[r.targetKey]; taken {
		return r, die("Target disk key '%s' is already in use for VM '%d'", r.targetKey, target)
	}
	d, ok := parseDrive(r.key, value)
	if !ok {
		return r, die("failed to parse source disk - ")
	}
	return k.checkMovedDrive(r, d)
}

func (k *call) checkMovedDrive(r diskMove, d drive) (diskMove, error) {
	volid := d.file()
	switch {
	case volid == "" || volid == "none":
		return r, die("disk '%s' has no associated volume", r.key)
	case d.isMedium():
		return r, die("CD drive contents can't be moved to another VM")
	}
	sid, _, ok := splitVolID(volid)
	switch {
	case !ok:
		return r, die("Volume '%s' not managed by PVE", volid)
	case r.from.inUse(r.key, volid):
		return r, die("Can't move disk used by a snapshot to another VM")
	case !k.c.hasFeature(k.node(), volid, "rename", ""):
		return r, die("Storage does not support moving of this disk to another VM")
	case r.from.running && !unusedKeyRE.MatchString(r.key):
		return r, die("Cannot move disk to another VM while the source VM is running - detach first")
	}
	r.drive = drive{r.targetKey, maps.Clone(d.opts)}
	if unusedKeyRE.MatchString(r.targetKey) {
		r.drive.opts = map[string]string{"file": volid}
	}
	if bad := driveFormat(r.targetKey).checkParts(r.drive.opts, ""); bad != nil {
		return r, die("failed to parse source disk for target disk format - format error\n%s\n", formatErrors(bad))
	}
	if k.c.replicationOf(r.to.vmid) != "" && !k.c.storages[sid].canReplicate() {
		return r, die("Cannot move disk to a replicated VM. Storage does not support replication!")
	}
	return r, nil
}

// doDiskMove renames the volume, then writes the source, then the target: whoever fails in between
// leaves a volume that nobody names.
func (k *call) doDiskMove(t *task, r diskMove) error {
	t.logf("reassign disk '%s' from VM '%d' as '%s' to VM '%d'", r.key, r.from.vmid, r.targetKey, r.to.vmid)
	volid, err := k.c.rename(k.node(), r.drive.file(), r.to.vmid)
	if err != nil {
		return err
	}
	t.checkpoint("renamed")
	r.drive.opts["file"] = volid
	if devices, ok := bootOrder(r.from.conf.kv["boot"]); ok {
		var left []string
		for _, dev := range devices {
			if dev != r.key {
				left = append(left, dev)
			}
		}
		if len(left) != len(devices) {
			t.logf("removing disk '%s' from boot order config", r.key)
			r.from.conf.kv["boot"] = printBootOrder(left)
		}
	}
	delete(r.from.conf.kv, r.key)
	t.logf("removing disk '%s' from VM '%d' config", r.key, r.from.vmid)
	t.checkpoint("source-written")
	value := r.drive.print()
	if unusedKeyRE.MatchString(r.targetKey) {
		r.to.conf.kv[r.targetKey] = value
		return nil
	}
	ch := vmChange{set: map[string]string{r.targetKey: value}}
	into := *k
	into.params = map[string]string{}
	if err := into.vetVMChange(r.to.vmid, ch); err != nil {
		return err
	}
	return into.changeVM(t, r.to, ch)
}

// copyDisk makes a full copy of a disk on another storage and lets the key name it.
func (k *call) copyDisk(storeID string) (any, error) {
	if err := k.need("/storage/"+storeID, "Datastore.AllocateSpace"); err != nil {
		return nil, err
	}
	if err := k.c.flock(k.vmid()); err != nil {
		return nil, err
	}
	if _, _, err := k.checkCopy(storeID); err != nil {
		return nil, err
	}
	vmid := k.vmid()
	return k.startTask("qmmove", itoa(vmid), []int{vmid}, func(t *task) error {
		g, d, err := k.checkCopy(storeID)
		if err != nil {
			return err
		}
		return k.doCopyDisk(t, g, d, storeID)
	}), nil
}

func (k *call) checkCopy(storeID string) (*guest, drive, error) {
	g, err := k.thisVM()
	if err != nil {
		return nil, drive{}, err
	}
	if err := g.checkLock(); err != nil {
		return nil, drive{}, err
	}
	if d := k.str("digest"); d != "" && d != g.digest() {
		return nil, drive{}, die("detected modified configuration - file changed by other user? Try again.")
	}
	key := k.str("disk")
	value, ok := g.conf.kv[key]
	if !ok {
		return nil, drive{}, die("disk '%s' does not exist", key)
	}
	d, _ := parseDrive(key, value)
	switch {
	case d.file() == "":
		return nil, d, die("disk '%s' has no associated volume", key)
	case d.isMedium():
		return nil, d, die("you can't move a cdrom")
	}
	s, n, err := k.c.parseVolID(d.file())
	if err != nil {
		return nil, d, err
	}
	if format := k.str("format"); s.id == storeID && (format == "" || format == n.format) {
		return nil, d, die("you can't move to the same storage with same format")
	}
	to, err := k.c.storageEnabled(storeID, k.node())
	if err != nil {
		return nil, d, err
	}
	if !to.has("images") {
		return nil, d, paramError("storage", "storage '"+storeID+"' does not support vm images")
	}
	if k.flag("delete") && g.inUse(key, d.file()) {
		return nil, d, die("you can't move a disk with snapshots and delete the source")
	}
	return g, d, nil
}

func (k *call) doCopyDisk(t *task, g *guest, d drive, storeID string) error {
	old := d.file()
	s, n, err := k.c.parseVolID(old)
	if err != nil {
		return err
	}
	t.logf("copying volume '%s' from current storage '%s' to target storage '%s'", old, s.id, storeID)
	if g.inUse(d.key, old) {
		t.logf("moving disk with snapshots, snapshots will not be moved!")
	}
	volid, err := k.cloneDisk(t, g, d, g.vmid, storeID, k.c.targetFormat(storeID, n.format, k.str("format")), "", true)
	if err != nil {
		return die("storage migration failed: %s", err)
	}
	d.opts["file"] = volid
	if v := k.c.volume(g.node, volid); !d.isCloudInit() {
		d.opts["size"] = formatSize(v.size)
	}
	g.conf.kv[d.key] = d.print()
	if !k.flag("delete") {
		t.logf("adding source volume '%s' as '%s' to config", old, g.addUnused(old))
		g.dropUsedUnused()
		return nil
	}
	t.logf("removing source volume '%s' after successful copy", old)
	if _, err := k.c.free(g.node, old); err != nil {
		t.logf("%s", err)
	}
	g.dropUsedUnused()
	return nil
}

// resizeDisk makes a disk larger. Every check is made in the task.
func resizeDisk(k *call) (any, error) {
	if k.flag("skiplock") && !k.who.isRoot() {
		return nil, paramError("skiplock", "Only root may use this option.")
	}
	vmid := k.vmid()
	return k.startTask("resize", itoa(vmid), []int{vmid}, func(t *task) error {
		g, err := k.thisVM()
		if err != nil {
			return err
		}
		if err := k.checkVM(g, vmChange{digest: k.str("digest")}); err != nil {
			return err
		}
		return k.doResize(t, g, k.str("disk"), k.str("size"))
	}), nil
}

func (k *call) doResize(t *task, g *guest, key, text string) error {
	value, ok := g.conf.kv[key]
	if !ok {
		return die("disk '%s' does not exist", key)
	}
	d, _ := parseDrive(key, value)
	if d.isCDROM() {
		return die("you can't resize a cdrom")
	}
	s, _, err := k.c.parseVolID(d.file())
	if err != nil {
		return err
	}
	if err := k.need("/storage/"+s.id, "Datastore.AllocateSpace"); err != nil {
		return err
	}
	if _, err := k.c.storageActive(s.id, g.node); err != nil {
		return err
	}
	v := k.c.volume(g.node, d.file())
	if v == nil {
		return die("Could not determine current size of volume '%s'", d.file())
	}
	size := wantedSize(text, v.size)
	switch {
	case size < v.size:
		return die("shrinking disks is not supported")
	case size == v.size:
		return nil
	}
	if err := k.c.resize(g.node, d.file(), size); err != nil {
		return err
	}
	t.checkpoint("resized")
	if !g.running {
		t.logf("Image resized.")
	}
	d.opts["size"] = formatSize(size)
	g.conf.kv[key] = d.print()
	return nil
}
