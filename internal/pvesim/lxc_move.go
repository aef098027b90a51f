package pvesim

import (
	"fmt"
)

// moveVolume gives a volume to another container by renaming it, or copies it to another storage.
func moveVolume(k *call) (any, error) {
	key, storeID := k.str("volume"), k.str("storage")
	_, toGuest := k.param("target-vmid")
	switch {
	case storeID != "" && toGuest:
		return nil, die("either set storage or target-vmid, but not both")
	case toGuest:
		return k.giveVolume(key)
	case storeID != "":
		return k.moveToStorage(key, storeID)
	default:
		return nil, die("Provide either a 'storage' to move the mount point to a different storage or 'target-vmid' and 'target-mp' to move the mount point to another container")
	}
}

// reassignment is a checked move of a volume from one container to another.
type reassignment struct {
	source, target       *guest
	sourceKey, targetKey string
	mount                mount
}

func (k *call) giveVolume(key string) (any, error) {
	targetID := atoi(k.str("target-vmid"))
	targetKey := k.str("target-volume")
	if targetKey == "" {
		targetKey = key
	}
	switch {
	case key == "rootfs" || targetKey == "rootfs":
		return nil, die("Cannot move to/from 'rootfs'")
	case unusedKeyRE.MatchString(key) && !unusedKeyRE.MatchString(targetKey):
		return nil, die("Moving an unused volume to a used one is not possible")
	}
	if err := k.need(vmPath(targetID), "VM.Config.Disk"); err != nil {
		return nil, err
	}
	if _, err := k.container(); err != nil {
		return nil, err
	}
	for _, vmid := range []int{k.vmid(), targetID} {
		if err := k.c.flock(vmid); err != nil {
			return nil, err
		}
	}
	r, err := k.checkVolumeMove(key, targetID, targetKey)
	if err != nil {
		return nil, err
	}
	sid, _, _ := splitVolID(r.mount.volume())
	if err := k.need("/storage/"+sid, "Datastore.AllocateSpace"); err != nil {
		return nil, err
	}
	id := fmt.Sprintf("%d-%s>%d-%s", r.source.vmid, key, targetID, targetKey)
	holds := []int{r.source.vmid, targetID}
	return k.startTask("move_volume", id, holds, func(t *task) error {
		// everything may have changed while the task waited, so it is checked again
		r, err := k.checkVolumeMove(key, targetID, targetKey)
		if err != nil {
			return err
		}
		return k.c.reassign(r, t)
	}), nil
}

// checkVolumeMove goes through Proxmox's preconditions in its order.
func (k *call) checkVolumeMove(key string, targetID int, targetKey string) (*reassignment, error) {
	c := k.c
	source, target := c.guests[k.vmid()], c.guests[targetID]
	for _, g := range []struct {
		vmid int
		g    *guest
	}{{k.vmid(), source}, {targetID, target}} {
		if g.g == nil || g.g.kind != kindLXC {
			return nil, die("could not find CT %d", g.vmid)
		}
	}
	if source.node != target.node {
		return nil, die("Both containers need to be on the same node")
	}
	for _, g := range []*guest{source, target} {
		if err := g.checkLock(); err != nil {
			return nil, err
		}
	}
	if source.isTemplate() || target.isTemplate() {
		return nil, die("Can't move volumes from or to template CT")
	}
	for param, g := range map[string]*guest{"digest": source, "target-digest": target} {
		if d, ok := k.param(param); ok && d != "" && d != g.digest() {
			return nil, die("Container %d: %s", g.vmid, textDigest)
		}
	}
	value, ok := source.conf.kv[key]
	if !ok {
		return nil, die("volume '%s' for container '%d' does not exist", key, source.vmid)
	}
	if _, taken := target.conf.kv[targetKey]; taken {
		return nil, die("Target volume key '%s' is already in use for container '%d'", targetKey, targetID)
	}
	m := parseMount(key, value)
	if source.inSnapshot(m.volume()) {
		return nil, die("Cannot move volume used by a snapshot to another container")
	}
	switch {
	case m.typ() != mountVolume:
		return nil, die("Cannot move a bindmount or device mount to another container")
	case !c.hasFeature(source.node, m.volume(), "rename", ""):
		return nil, die("Storage does not support moving of this disk to another container")
	case source.running && !unusedKeyRE.MatchString(key):
		return nil, die("Cannot move in-use volume while the source CT is running - detach or shutdown first")
	}
	if c.replicationOf(targetID) != "" {
		sid, _, _ := splitVolID(m.volume())
		if s := c.storages[sid]; s != nil && !s.canReplicate() {
			return nil, die("Cannot move volume on storage '%s' to a replicated container - missing replication support", sid)
		}
	}
	return &reassignment{source, target, key, targetKey, m}, nil
}

// reassign renames the volume, then writes the source's configuration, then the target's. A failure
// in between leaves the volume in nobody's configuration.
func (c *Cluster) reassign(r *reassignment, t *task) error {
	t.logf("moving volume '%s' from container '%d' to '%d'", r.sourceKey, r.source.vmid, r.target.vmid)
	volid, err := c.rename(r.source.node, r.mount.volume(), r.target.vmid)
	if err != nil {
		return err
	}
	t.checkpoint("renamed")
	if err := c.checkWritable(); err != nil {
		return err
	}
	t.logf("removing volume '%s' from container '%d' config", r.sourceKey, r.source.vmid)
	delete(r.source.conf.kv, r.sourceKey)
	t.checkpoint("source-written")
	m := r.mount
	m.bare = volid
	value := m.String()
	if unusedKeyRE.MatchString(r.targetKey) {
		// a volume under an unused key is not checked against anything
		r.target.conf.kv[r.targetKey] = volid
	} else if err := c.changeContainer(r.target, map[string]string{r.targetKey: value}, nil, nil); err != nil {
		return err
	}
	t.logf("target container '%d' updated with '%s'", r.target.vmid, r.targetKey)
	return nil
}

// moveToStorage copies a volume. The old one stays as an unused volume unless it is to be deleted.
func (k *call) moveToStorage(key, storeID string) (any, error) {
	if unusedKeyRE.MatchString(key) {
		return nil, die("cannot move volume '%s', only configured volumes can be moved to another storage", key)
	}
	if err := k.need("/storage/"+storeID, "Datastore.AllocateSpace"); err != nil {
		return nil, err
	}
	g, err := k.lockedContainer()
	if err != nil {
		return nil, err
	}
	if err := g.checkLock(); err != nil {
		return nil, err
	}
	if g.running {
		return nil, die("cannot move volumes of a running container")
	}
	if err := checkDigest(k, g); err != nil {
		return nil, err
	}
	value, ok := g.conf.kv[key]
	if !ok {
		return nil, die("volume '%s' for container '%d' does not exist", key, g.vmid)
	}
	m := parseMount(key, value)
	switch {
	case m.typ() != mountVolume:
		return nil, die("cannot move volume of type '%s'", m.typ())
	case k.flag("delete") && g.inSnapshot(m.volume()):
		return nil, die("you can't move a volume with snapshots and delete the source")
	}
	if err := k.c.checkRootdir(mount{key, parseProps(storeID+":1", "volume")}); err != nil {
		return nil, err
	}
	g.conf.kv["lock"] = "disk"
	return k.startTask("move_volume", itoa(g.vmid), []int{g.vmid}, func(t *task) error {
		defer delete(g.conf.kv, "lock")
		return k.c.copyMount(g, m, storeID, k.flag("delete"), t)
	}), nil
}

func (c *Cluster) copyMount(g *guest, m mount, storeID string, remove bool, t *task) error {
	st, err := c.storageActive(storeID, g.node)
	if err != nil {
		return err
	}
	format := "raw"
	if st.typ == "zfspool" {
		format = "subvol"
	}
	old := m.volume()
	volid, err := c.copyVolume(g.node, old, "", storeID, g.vmid, format, "")
	if err != nil {
		return err
	}
	v := c.volume(g.node, volid)
	if format == "raw" && st.kind().files && st.typ != "btrfs" {
		t.logf("Formatting '%s', fmt=raw size=%d preallocation=off", c.volumePath(volid), v.size)
	}
	t.logf("Creating filesystem with %d 4k blocks and %d inodes", v.size/4096, v.size/16384)
	t.logf("Number of files: %d", len(v.content)+1)
	m.bare = volid
	g.conf.kv[m.key] = m.setSize(v.size).String()
	if remove {
		return c.deleteOwned(g, old, t)
	}
	g.conf.addUnused(old)
	return nil
}
