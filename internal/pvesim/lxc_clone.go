package pvesim

import (
	"slices"
)

// templateContainer answers at once and works on in the background.
func templateContainer(k *call) (any, error) {
	g, err := k.lockedContainer()
	if err != nil {
		return nil, err
	}
	switch {
	case len(g.snapshots) > 0:
		return nil, die("unable to create template, because CT contains snapshots")
	case g.isTemplate():
		return nil, die("you can't convert a CT to template if the CT is already a template")
	case g.running:
		return nil, die("you can't convert a running CT to template")
	}
	if err := g.checkLock(); err != nil {
		return nil, err
	}
	k.startTask("vztemplate", itoa(g.vmid), []int{g.vmid}, func(t *task) error {
		for _, m := range g.conf.mounts() {
			if m.key != "rootfs" && m.typ() != mountVolume {
				continue
			}
			base, err := k.c.makeBase(g.node, m.volume())
			if err != nil {
				return err
			}
			m.bare = base
			g.conf.kv[m.key] = m.String()
		}
		g.conf.kv["template"] = "1"
		return nil
	})
	return nil, nil
}

// cloneContainer copies a container: raw keys, notes and tags too, but new addresses.
func cloneContainer(k *call) (any, error) {
	src, err := k.lockedContainer()
	if err != nil {
		return nil, err
	}
	newID := atoi(k.str("newid"))
	if err := k.c.checkUnused(newID); err != nil {
		return nil, die("unable to create CT %d: config file already exists", newID)
	}
	if err := k.checkPool(k.str("pool")); err != nil {
		return nil, err
	}
	if err := k.c.checkQuorum(); err != nil {
		return nil, err
	}
	if err := src.checkLock(); err != nil {
		return nil, err
	}
	full := !src.isTemplate()
	if v, ok := k.param("full"); ok {
		full = isTrue(v)
	}
	storeID := k.str("storage")
	if storeID != "" && !full {
		return nil, die("parameter 'storage' not allowed for linked clones")
	}
	conf := src.conf
	if name := k.str("snapname"); name != "" {
		s := src.snapshot(name)
		if s == nil {
			return nil, die("snapshot '%s' does not exist", name)
		}
		conf = s.conf
	}
	for _, m := range conf.mounts() {
		sid, _, _ := splitVolID(m.volume())
		switch {
		case m.typ() != mountVolume:
			return nil, die("unable to clone mountpoint '%s' (type %s)", m.key, m.typ())
		case !full && !k.c.hasFeature(src.node, m.volume(), "clone", k.str("snapname")):
			return nil, die("Linked clone feature for '%s' is not available", m.key)
		}
		if storeID != "" {
			sid = storeID
		}
		if err := k.need("/storage/"+sid, "Datastore.AllocateSpace"); err != nil {
			return nil, err
		}
	}
	if src.running && full && k.str("snapname") == "" {
		return nil, die("Cannot do full clones on a running container without snapshots")
	}
	n := newGuest(newID, kindLXC, src.node)
	n.conf.kv["lock"] = "create"
	k.c.guests[newID] = n
	return k.startTask("vzclone", itoa(src.vmid), []int{src.vmid, newID}, func(t *task) error {
		t.logf("creating a clone of container %d with ID %d", src.vmid, newID)
		done, err := k.cloneInto(src, conf, newID, full, t)
		if err != nil {
			delete(k.c.guests, newID)
			return die("clone failed: %s", err.Error())
		}
		k.c.guests[newID] = done
		if p := k.c.access.pools[k.str("pool")]; p != nil {
			p.vms[newID] = true
		}
		return nil
	}), nil
}

func (k *call) cloneInto(src *guest, conf config, newID int, full bool, t *task) (*guest, error) {
	c := k.c
	n := newGuest(newID, kindLXC, src.node)
	n.fw = src.fw.clone()
	n.conf.lxc = slices.Clone(conf.lxc)
	for key, v := range conf.kv {
		switch {
		case isMountKey(key), unusedKeyRE.MatchString(key), key == "lock", key == "template", key == "parent", key == "snaptime":
		case netKeyRE.MatchString(key):
			p := parseProps(v, "")
			p = p.without("hwaddr")
			n.conf.kv[key] = printNet(c.parseNet(printNet(p)))
		default:
			n.conf.kv[key] = v
		}
	}
	snap := k.str("snapname")
	for _, m := range conf.mounts() {
		sid, _, _ := splitVolID(m.volume())
		if s := k.str("storage"); s != "" {
			sid = s
		}
		var volid string
		var err error
		if full {
			t.logf("create full clone of mountpoint %s (%s)", m.key, m.volume())
			format := "raw"
			if st := c.storages[sid]; st != nil && st.typ == "zfspool" {
				format = "subvol"
			}
			volid, err = c.copyVolume(src.node, m.volume(), snap, sid, newID, format, "")
		} else {
			t.logf("create linked clone of mount point %s (%s)", m.key, m.volume())
			volid, err = c.linkVolume(src.node, m.volume(), snap, newID)
		}
		if err != nil {
			return nil, err
		}
		m.bare = volid
		n.conf.kv[m.key] = m.String()
	}
	if h, ok := k.param("hostname"); ok {
		n.conf.kv["hostname"] = h
	}
	if d, ok := k.param("description"); ok {
		n.conf.set("description", d)
	}
	return n, nil
}

// migrateContainer moves a container to another node, with every volume that is not shared.
func migrateContainer(k *call) (any, error) {
	g, err := k.lockedContainer()
	if err != nil {
		return nil, err
	}
	target := k.str("target")
	if target == g.node {
		return nil, paramError("target", "target is local node.")
	}
	if err := k.c.reach(target); err != nil {
		return nil, err
	}
	if err := g.checkLock(); err != nil {
		return nil, err
	}
	if g.running && !k.flag("online") && !k.flag("restart") {
		return nil, die("can't migrate running container without --online or --restart")
	}
	return k.startTask("vzmigrate", itoa(g.vmid), []int{g.vmid}, func(t *task) error {
		for _, m := range g.conf.mounts() {
			if m.typ() != mountVolume {
				return die("cannot migrate local %s mount point '%s'", m.typ(), m.key)
			}
		}
		return k.c.moveToNode(g, target)
	}), nil
}

// moveToNode carries a guest's local volumes along.
func (c *Cluster) moveToNode(g *guest, target string) error {
	for _, volid := range g.conf.volumeIDs(true) {
		sid, _, _ := splitVolID(volid)
		s := c.storages[sid]
		if s == nil {
			return die("storage '%s' does not exist", sid)
		}
		if s.shared() {
			continue
		}
		if !s.onNode(target) {
			return die("storage '%s' is not available on node '%s'", sid, target)
		}
		v := c.volume(g.node, volid)
		if v == nil {
			return die("volume '%s' does not exist", volid)
		}
		delete(s.on(g.node), v.own())
		s.on(target)[v.own()] = v
	}
	g.node = target
	return nil
}
