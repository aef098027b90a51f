package pvesim

import (
	"maps"
	"slices"
)

// listSnapshots gives every snapshot and the pseudo entry for the present.
func listSnapshots(k *call) (any, error) {
	g, err := k.container()
	if err != nil {
		return nil, err
	}
	rows := []map[string]any{}
	for _, s := range g.snapshots {
		row := map[string]any{"name": s.name, "description": s.conf.kv["description"], "snaptime": atoi(s.conf.kv["snaptime"])}
		if p := s.conf.kv["parent"]; p != "" {
			row["parent"] = p
		}
		rows = append(rows, row)
	}
	now := map[string]any{"name": "current", "description": "You are here!", "digest": g.digest(), "running": boolInt(g.running)}
	if p := g.conf.kv["parent"]; p != "" {
		now["parent"] = p
	}
	return append(rows, now), nil
}

// snapshotSkips are keys a snapshot neither takes nor gives back.
func snapshotSkips(key string) bool {
	switch key {
	case "lock", "digest", "description", "snaptime", "parent":
		return true
	}
	return unusedKeyRE.MatchString(key)
}

func createSnapshot(k *call) (any, error) {
	name := k.str("snapname")
	if name == "current" || name == "vzdump" {
		return nil, die("unable to use snapshot name '%s' (reserved name)", name)
	}
	return k.startTask("vzsnapshot", itoa(k.vmid()), []int{k.vmid()}, func(t *task) error {
		g, err := k.container()
		if err != nil {
			return err
		}
		if err := g.checkLock(); err != nil {
			return err
		}
		return k.c.snapshotContainer(g, name, k.str("description"))
	}), nil
}

// snapshotContainer needs every mount of the container to be a volume that can be snapshot, backed
// up or not.
func (c *Cluster) snapshotContainer(g *guest, name, description string) error {
	if g.snapshot(name) != nil {
		return die("snapshot name '%s' already used", name)
	}
	for _, m := range g.conf.mounts() {
		if m.typ() != mountVolume || !c.hasFeature(g.node, m.volume(), "snapshot", "") {
			return die("snapshot feature is not available")
		}
	}
	for _, m := range g.conf.mounts() {
		if err := c.snapshotVolume(g.node, m.volume(), name); err != nil {
			return err
		}
	}
	s := &snapshot{name: name, conf: g.conf.clone()}
	for key := range g.conf.kv {
		if snapshotSkips(key) {
			delete(s.conf.kv, key)
		}
	}
	if p := g.conf.kv["parent"]; p != "" {
		s.conf.kv["parent"] = p
	}
	s.conf.kv["snaptime"] = itoa(int(c.now().Unix()))
	s.conf.set("description", description)
	g.snapshots = append(g.snapshots, s)
	g.conf.kv["parent"] = name
	return nil
}

func (k *call) snapshotOf() (*guest, *snapshot, error) {
	g, err := k.container()
	if err != nil {
		return nil, nil, err
	}
	s := g.snapshot(k.str("snapname"))
	if s == nil {
		return g, nil, die("snapshot '%s' does not exist", k.str("snapname"))
	}
	return g, s, nil
}

func readSnapshot(k *call) (any, error) {
	g, s, err := k.snapshotOf()
	if err != nil {
		return nil, err
	}
	return k.apiConfig(g, s.conf)
}

func updateSnapshot(k *call) (any, error) {
	g, s, err := k.snapshotOf()
	if err != nil {
		return nil, err
	}
	if err := g.checkLock(); err != nil {
		return nil, err
	}
	if v, ok := k.param("description"); ok {
		s.conf.set("description", v)
	}
	return nil, nil
}

func deleteSnapshot(k *call) (any, error) {
	name := k.str("snapname")
	return k.startTask("vzdelsnapshot", itoa(k.vmid()), []int{k.vmid()}, func(t *task) error {
		g, s, err := k.snapshotOf()
		if err != nil {
			return err
		}
		if err := g.checkLock(); err != nil {
			return err
		}
		for _, m := range s.conf.mounts() {
			k.c.dropVolumeSnapshot(g.node, m.volume(), name)
		}
		for _, o := range g.snapshots {
			if o.conf.kv["parent"] == name {
				o.conf.setParent(s.conf.kv["parent"])
			}
		}
		if g.conf.kv["parent"] == name {
			g.conf.setParent(s.conf.kv["parent"])
		}
		g.snapshots = slices.DeleteFunc(g.snapshots, func(o *snapshot) bool { return o == s })
		// what only this snapshot needed is kept, as unused
		for _, m := range s.conf.mounts() {
			if m.typ() == mountVolume && !g.inSnapshotOrPending(m.volume()) && !slices.Contains(g.conf.volumeIDs(true), m.volume()) {
				g.conf.addUnused(m.volume())
			}
		}
		return nil
	}), nil
}

func (c config) setParent(name string) {
	if name == "" {
		delete(c.kv, "parent")
		return
	}
	c.kv["parent"] = name
}

func rollbackSnapshot(k *call) (any, error) {
	name := k.str("snapname")
	return k.startTask("vzrollback", itoa(k.vmid()), []int{k.vmid()}, func(t *task) error {
		g, s, err := k.snapshotOf()
		if err != nil {
			return err
		}
		if err := g.checkLock(); err != nil {
			return err
		}
		for _, m := range s.conf.mounts() {
			sid, _, _ := splitVolID(m.volume())
			st, v := k.c.storages[sid], k.c.volume(g.node, m.volume())
			if st != nil && v != nil && st.newestSnapshotOnly() && v.snaps[len(v.snaps)-1].name != name {
				return die("can't rollback, '%s' is not most recent snapshot on '%s'", name, m.volume())
			}
		}
		k.c.powerOff(g)
		for _, m := range s.conf.mounts() {
			if err := k.c.rollbackVolume(g.node, m.volume(), name); err != nil {
				return err
			}
		}
		g.rollbackTo(s)
		if k.flag("start") {
			return k.c.startContainer(g, t)
		}
		return nil
	}), nil
}

// rollbackTo gives the configuration back, but for notes and unused volumes. Volumes the snapshot
// does not know become unused.
func (g *guest) rollbackTo(s *snapshot) {
	old := g.conf
	n := newConfig()
	maps.Copy(n.kv, s.conf.kv)
	n.lxc = slices.Clone(s.conf.lxc)
	delete(n.kv, "snaptime")
	delete(n.kv, "description")
	for key, v := range old.kv {
		if key == "description" || unusedKeyRE.MatchString(key) {
			n.kv[key] = v
		}
	}
	n.kv["parent"] = s.name
	now := setOf(n.volumeIDs(true)...)
	for _, m := range old.mounts() {
		if m.typ() == mountVolume && !now[m.volume()] && m.key != "rootfs" {
			n.addUnused(m.volume())
		}
	}
	g.conf, g.pending, g.pendingDelete = n, newConfig(), map[string]bool{}
	g.conf.dropUsedUnused()
}
