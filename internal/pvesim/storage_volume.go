package pvesim

import (
	"maps"
	"slices"
	"strings"
)

// rename gives a volume to another guest, under the lowest free name there.
func (c *Cluster) rename(node, volid string, target int) (string, error) {
	s, n, err := c.parseVolID(volid)
	if err != nil {
		return "", err
	}
	if _, err := c.storageActive(s.id, node); err != nil {
		return "", err
	}
	v := s.on(node)[n.own()]
	name, err := s.freeDiskName(node, target, n.format)
	if err != nil {
		return "", err
	}
	to, err := s.nameFor(target, name)
	if err != nil {
		return "", err
	}
	to.base, to.baseDir = n.base, n.baseDir
	if v == nil {
		return "", die("rename '%s' to '%s' failed - No such file or directory", s.path(n), s.path(to))
	}
	if s.conf["snapshot-as-volume-chain"] == "1" && len(v.snaps) > 0 {
		if s.typ == "lvm" {
			return "", die("can't rename volume '%s' - external snapshot exists", n.own())
		}
		return "", die("we can't rename volume if a snapshot backed by a volume-chain exists")
	}
	delete(s.on(node), n.own())
	v.volName = to
	s.on(node)[to.own()] = v
	return v.id(), nil
}

// resize sets a volume's size in bytes; it only grows.
func (c *Cluster) resize(node, volid string, size int64) error {
	v := c.volume(node, volid)
	if v == nil {
		return die("volume '%s' does not exist", volid)
	}
	if v.format == "vmdk" || v.format == "subvol" && c.storages[v.storage].kind().files {
		return die("can't resize this image format")
	}
	if v.format == "subvol" {
		v.size = size
		return nil
	}
	v.size = max(v.size, c.storages[v.storage].roundSize(size))
	return nil
}

// copyVolume makes a full copy for a guest on a storage: new data, so a new identity. An empty
// format is the storage's default.
func (c *Cluster) copyVolume(node, volid, snap, storeID string, vmid int, format, name string) (string, error) {
	src := c.volume(node, volid)
	if src == nil {
		return "", die("volume '%s' does not exist", volid)
	}
	size, content := src.size, src.content
	if snap != "" {
		old := src.snap(snap)
		if old == nil {
			return "", die("snapshot '%s' does not exist on '%s'", snap, volid)
		}
		size, content = old.size, old.content
	}
	allocate := size
	if format == "subvol" && c.storages[storeID] != nil && c.storages[storeID].kind().files {
		allocate = 0
	}
	id, err := c.alloc(node, storeID, vmid, format, name, allocate)
	if err != nil {
		return "", err
	}
	v := c.volume(node, id)
	v.content, v.written = maps.Clone(content), src.written
	if v.content == nil {
		v.content = map[string]string{}
	}
	return id, nil
}

// linkVolume makes a linked clone of a base volume, or of a snapshot where the storage can.
func (c *Cluster) linkVolume(node, volid, snap string, vmid int) (string, error) {
	s, n, err := c.parseVolID(volid)
	if err != nil {
		return "", err
	}
	src := s.on(node)[n.own()]
	if src == nil {
		return "", die("volume '%s' does not exist", volid)
	}
	if !n.isBase && snap == "" {
		return "", die("clone_image only works on base images")
	}
	format := n.format
	if s.kind().files && s.typ != "btrfs" {
		format = "qcow2"
	}
	name, err := s.freeDiskName(node, vmid, format)
	if err != nil {
		return "", err
	}
	to, err := s.nameFor(vmid, name)
	if err != nil {
		return "", err
	}
	if s.typ != "btrfs" && s.typ != "lvmthin" && snap == "" {
		to.base = n.name
		if n.dir {
			to.baseDir = n.owner
		}
	}
	v := c.newVolume(s, to, src.size)
	v.content = maps.Clone(src.content)
	s.on(node)[to.own()] = v
	return v.id(), nil
}

// makeBase turns a volume into a base for linked clones.
func (c *Cluster) makeBase(node, volid string) (string, error) {
	s, n, err := c.parseVolID(volid)
	if err != nil {
		return "", err
	}
	v := s.on(node)[n.own()]
	if v == nil {
		return "", die("file_size_info on '%s' failed", n.full())
	}
	if s.typ == "lvm" {
		return "", die("can't create base images in lvm storage")
	}
	if n.isBase {
		return "", die("create_base not possible with base image")
	}
	name := strings.Replace(n.name, "vm-", "base-", 1)
	if n.format == "subvol" && s.typ == "zfspool" {
		name = strings.Replace(n.name, "subvol-", "basevol-", 1)
	}
	to, err := s.nameFor(n.owner, name)
	if err != nil {
		return "", err
	}
	to.base, to.baseDir = n.base, n.baseDir
	delete(s.on(node), n.own())
	v.volName = to
	s.on(node)[to.own()] = v
	return v.id(), nil
}

// snapshotVolume keeps the volume's present state under a name.
func (c *Cluster) snapshotVolume(node, volid, snap string) error {
	v := c.volume(node, volid)
	if v == nil {
		return die("volume '%s' does not exist", volid)
	}
	if !c.hasFeature(node, volid, "snapshot", "") {
		return die("can't snapshot this image format")
	}
	if v.snap(snap) != nil {
		return die("snapshot '%s' already exists on '%s'", snap, volid)
	}
	v.snaps = append(v.snaps, volumeSnap{name: snap, size: v.size, content: maps.Clone(v.content)})
	return nil
}

// rollbackVolume puts a kept state back.
func (c *Cluster) rollbackVolume(node, volid, snap string) error {
	v := c.volume(node, volid)
	if v == nil {
		return die("volume '%s' does not exist", volid)
	}
	s := v.snap(snap)
	if s == nil {
		return die("can't rollback, snapshot '%s' does not exist on '%s'", snap, volid)
	}
	v.size, v.content = s.size, maps.Clone(s.content)
	return nil
}

// newestSnapshotOnly tells whether the storage can only return to a volume's last snapshot.
func (s *storage) newestSnapshotOnly() bool {
	return s.typ == "zfspool" || s.typ == "zfs" || s.conf["snapshot-as-volume-chain"] == "1"
}

// dropVolumeSnapshot forgets a kept state; that there is none is not an error.
func (c *Cluster) dropVolumeSnapshot(node, volid, snap string) {
	if v := c.volume(node, volid); v != nil {
		v.snaps = slices.DeleteFunc(v.snaps, func(s volumeSnap) bool { return s.name == snap })
	}
}

// volumeSize is what the storage says of a volume: size in bytes and format. False when there is no
// such volume or the storage does not answer.
func (c *Cluster) volumeSize(node, volid string) (size int64, format string, ok bool) {
	sid, _, isID := splitVolID(volid)
	if !isID {
		return 0, "", false
	}
	if _, err := c.storageActive(sid, node); err != nil {
		return 0, "", false
	}
	v := c.volume(node, volid)
	if v == nil {
		return 0, "", false
	}
	return v.size, v.format, true
}
