package pvesim

import (
	"strings"
)

// destroyContainer removes a container. What refuses it is said before anything is done.
func destroyContainer(k *call) (any, error) {
	g, err := k.lockedContainer()
	if err != nil {
		return nil, err
	}
	purge, force := k.flag("purge"), k.flag("force")
	if err := k.c.mayDestroy(g, purge); err != nil {
		return nil, err
	}
	if g.running && !force {
		return nil, die("unable to destroy CT %d - container is running", g.vmid)
	}
	return k.startTask("vzdestroy", itoa(g.vmid), []int{g.vmid}, func(t *task) error {
		if k.c.guests[g.vmid] != g {
			return die("Configuration file 'nodes/%s/lxc/%d.conf' does not exist", g.node, g.vmid)
		}
		if err := k.c.mayDestroy(g, purge); err != nil {
			return err
		}
		if g.running {
			if !force {
				return die("unable to destroy CT %d - container is running", g.vmid)
			}
			t.logf("forced to stop CT %d before destroying!", g.vmid)
			k.c.powerOff(g)
		}
		return k.c.destroyContainer(g, purge, k.flag("destroy-unreferenced-disks"), t)
	}), nil
}

func (c *Cluster) mayDestroy(g *guest, purge bool) error {
	if g.protected() {
		return die("can't remove CT %d - protection mode enabled", g.vmid)
	}
	if err := g.checkLock(); err != nil {
		return err
	}
	if purge {
		return nil
	}
	if c.ha.resources[g.haID()] != nil {
		return die("unable to remove CT %d - used in HA resources and purge parameter not set.", g.vmid)
	}
	if job := c.replicationOf(g.vmid); job != "" {
		return die("There is a replication job '%s' for guest '%d' - Please remove that first.", job, g.vmid)
	}
	return nil
}

// destroyContainer frees volumes one by one, the root file system first. The first that fails ends
// it there, with the configuration still naming what is gone.
func (c *Cluster) destroyContainer(g *guest, purge, unreferenced bool, t *task) error {
	if err := c.checkWritable(); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, conf := range []config{g.conf, g.pending} {
		for _, volid := range conf.volumeIDs(true) {
			if seen[volid] {
				continue
			}
			seen[volid] = true
			if err := c.deleteOwned(g, volid, t); err != nil {
				return err
			}
			if len(seen) == 1 {
				t.checkpoint("rootfs-freed")
			}
		}
	}
	if unreferenced {
		c.freeUnreferenced(g, t)
	}
	for _, key := range g.conf.keys() {
		if netKeyRE.MatchString(key) {
			c.sdn.release(parseProps(g.conf.kv[key], "").value("hwaddr"))
		}
	}
	vmid := g.vmid
	zombie := newGuest(vmid, g.kind, g.node)
	zombie.conf.kv["lock"] = "destroyed"
	c.guests[vmid] = zombie
	t.checkpoint("volumes-freed")
	c.access.forgetGuest(vmid)
	zombie.fw = newFirewall()
	t.checkpoint("access-removed")
	if purge {
		t.logf("purging CT %d from related configurations..", vmid)
		c.purge(g, t)
	}
	delete(c.guests, vmid)
	return nil
}

// purge removes a guest from the jobs and resources that only a purge touches.
func (c *Cluster) purge(g *guest, t *task) {
	for _, id := range sortedKeys(c.repl) {
		if replicationGuest(id) == g.vmid {
			delete(c.repl, id)
		}
	}
	for id, j := range c.jobs {
		if !j.forget(g.vmid) {
			delete(c.jobs, id)
		}
	}
	if sid := g.haID(); c.ha.resources[sid] != nil {
		delete(c.ha.resources, sid)
		c.ha.purgeRules(sid)
		t.logf("NOTE: removed %s %d from HA resource configuration.", g.kind.label(), g.vmid)
	}
}

// freeUnreferenced removes every other volume with the guest's number from storages for containers.
func (c *Cluster) freeUnreferenced(g *guest, t *task) {
	for _, id := range sortedKeys(c.storages) {
		s := c.storages[id]
		if s.disabled() || !s.has("rootdir") || !s.onNode(g.node) {
			continue
		}
		for _, v := range s.sorted(g.node) {
			if v.vtype == "images" && v.owned && v.owner == g.vmid {
				if _, err := c.free(g.node, v.id()); err != nil {
					t.logf("%s", strings.TrimSpace(err.Error()))
				}
			}
		}
	}
}
