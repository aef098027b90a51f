package pvesim

// destroyVM removes a VM and the disks that are its own. A lock stops it only in the task.
func destroyVM(k *call) (any, error) {
	vmid := k.vmid()
	if k.flag("skiplock") && !k.who.isRoot() {
		return nil, paramError("skiplock", "Only root may use this option.")
	}
	if _, err := k.mayDestroyVM(); err != nil {
		return nil, err
	}
	return k.startTask("qmdestroy", itoa(vmid), []int{vmid}, func(t *task) error {
		g, err := k.mayDestroyVM()
		if err != nil {
			return err
		}
		if g.lock() != "suspended" && !k.flag("skiplock") {
			if err := g.checkLock(); err != nil {
				return err
			}
		}
		if err := k.freeVM(t, g); err != nil {
			return err
		}
		k.c.access.forgetGuest(vmid)
		if k.flag("purge") {
			t.logf("purging VM %d from related configurations..", vmid)
			k.c.purge(g, t)
		}
		delete(k.c.guests, vmid)
		return nil
	}), nil
}

func (k *call) mayDestroyVM() (*guest, error) {
	g, err := k.thisVM()
	if err != nil {
		return nil, err
	}
	if g.protected() {
		return nil, die("can't remove VM %d - protection mode enabled", g.vmid)
	}
	if !k.flag("purge") {
		if k.c.ha.resources[g.haID()] != nil {
			return nil, die("unable to remove VM %d - used in HA resources and purge parameter not set.", g.vmid)
		}
		if job := k.c.replicationOf(g.vmid); job != "" {
			return nil, die("There is a replication job '%s' for guest '%d' - Please remove that first.", job, g.vmid)
		}
	}
	if g.running {
		return nil, die("VM %d is running - destroy failed", g.vmid)
	}
	return g, nil
}

// freeVM frees the VM's own disks: those it names now or will name, and the saved memory of its
// snapshots. A disk that cannot be freed is a warning, the VM goes nevertheless.
func (k *call) freeVM(t *task, g *guest) error {
	if g.isTemplate() {
		for _, key := range driveKeys(g.conf.kv, true) {
			d, ok := parseDrive(key, g.conf.kv[key])
			if !ok || d.isCDROM() {
				continue
			}
			if v := k.c.volume(g.node, d.file()); v != nil && k.c.baseInUse(k.c.storages[v.storage], g.node, v) {
				return die("base volume '%s' is still in use by linked cloned", d.file())
			}
		}
	}
	done := map[string]bool{}
	free := func(volid string) {
		if done[volid] || !k.c.ownsVolume(g, volid) {
			return
		}
		done[volid] = true
		warning, err := k.c.free(g.node, volid)
		if warning != "" {
			t.logf("%s", warning)
		}
		if err != nil {
			t.warnf("Could not remove disk '%s', check manually: %s", volid, err)
		}
	}
	for i, conf := range []map[string]string{g.conf.kv, g.pending.kv} {
		for _, key := range driveKeys(conf, true) {
			d, ok := parseDrive(key, conf[key])
			if !ok || d.isMedium() {
				continue
			}
			free(d.file())
			if i == 0 && key == "scsi0" {
				t.checkpoint("rootfs-freed")
			}
		}
	}
	for _, s := range g.snapshots {
		if id := s.conf.kv["vmstate"]; id != "" {
			free(id)
		}
	}
	if id := g.conf.kv["vmstate"]; id != "" {
		free(id)
	}
	t.checkpoint("volumes-freed")
	if k.flag("destroy-unreferenced-disks") {
		k.freeUnreferenced(g, free)
	}
	return nil
}

func (k *call) freeUnreferenced(g *guest, free func(string)) {
	for _, id := range sortedKeys(k.c.storages) {
		s := k.c.storages[id]
		if !s.has("images") || s.disabled() || s.unreachable || !s.onNode(g.node) {
			continue
		}
		for _, v := range s.sorted(g.node) {
			if v.vtype == "images" && v.owned && v.owner == g.vmid {
				free(v.id())
			}
		}
	}
}
