package pvesim

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
)

const (
	kib int64 = 1 << 10
	mib int64 = 1 << 20
)

// maxDisks is how many disks Proxmox looks for a free number among.
const maxDisks = 1024

// freeDiskName is the lowest free name for a guest's new volume.
func (s *storage) freeDiskName(node string, vmid int, format string) (string, error) {
	prefix, suffix := "vm", ""
	if format == "subvol" {
		prefix = "subvol"
	}
	if s.kind().dirOwner {
		suffix = "." + format
	}
	pattern := fmt.Sprintf(`(?:vm|base)-%d-disk-(\d+)`, vmid)
	if s.formatAllowed("subvol") {
		pattern = fmt.Sprintf(`(?:vm|base|subvol|basevol)-%d-disk-(\d+)`, vmid)
	}
	re := regexp.MustCompile(pattern)
	taken := map[int]bool{}
	for _, v := range s.on(node) {
		if v.vtype != "images" || v.owned && v.owner != vmid {
			continue
		}
		if m := re.FindStringSubmatch(v.name); m != nil {
			taken[atoi(m[1])] = true
		}
	}
	for i := range maxDisks {
		if !taken[i] {
			return fmt.Sprintf("%s-%d-disk-%d%s", prefix, vmid, i, suffix), nil
		}
	}
	return "", die("unable to allocate an image name for VM %d in storage '%s'", vmid, s.id)
}

// nameFor makes the full name of a guest's volume out of its last part.
func (s *storage) nameFor(vmid int, name string) (volName, error) {
	if s.kind().dirOwner {
		return s.parse(fmt.Sprintf("%d/%s", vmid, name))
	}
	return s.parse(name)
}

// alloc makes a volume of size bytes for a guest. An empty format is the storage's default, an
// empty name the lowest free one.
func (c *Cluster) alloc(node, storeID string, vmid int, format, name string, size int64) (string, error) {
	s, err := c.storageActive(storeID, node)
	if err != nil {
		return "", err
	}
	if format == "" {
		format = s.defaultFormat()
	}
	if !s.formatAllowed(format) {
		return "", die("unsupported format '%s' for storage type %s", format, s.typ)
	}
	if name == "" {
		if name, err = s.freeDiskName(node, vmid, format); err != nil {
			return "", err
		}
	}
	if err := s.checkName(vmid, name, format); err != nil {
		return "", err
	}
	n, err := s.nameFor(vmid, name)
	if err != nil {
		return "", err
	}
	if n.format != format && s.kind().dirOwner {
		return "", die("illegal name '%s' - wrong extension for format ('%s != '%s')", name, n.format, format)
	}
	if s.on(node)[n.own()] != nil {
		if s.kind().files {
			return "", die("disk image '%s' already exists", s.path(n))
		}
		return "", die("volume '%s' already exists", n.own())
	}
	if format == "subvol" && size != 0 {
		switch s.typ {
		case "dir":
			return "", die("storage does not support subvol quotas")
		case "btrfs":
			return "", die("btrfs quotas are currently not supported, use an unsized subvolume or a raw file")
		}
	}
	size = s.roundSize(size)
	if s.kind().thick && s.usedOn(node)+size > s.total && s.total > 0 {
		return "", die("lvcreate '%s/%s' error:   Volume group \"%s\" has insufficient free space (%d extents): %d required.",
			s.conf["vgname"], name, s.conf["vgname"], (s.total-s.usedOn(node))/(4*mib), size/(4*mib))
	}
	v := c.newVolume(s, n, size)
	s.on(node)[n.own()] = v
	return v.id(), nil
}

// checkName refuses names that the block storages do not take.
func (s *storage) checkName(vmid int, name, format string) error {
	want := "vm"
	switch s.typ {
	case "lvm", "lvmthin", "rbd", "zfs":
	case "zfspool":
		if format == "subvol" {
			want = "subvol"
		}
	default:
		return nil
	}
	if !strings.HasPrefix(name, fmt.Sprintf("%s-%d-", want, vmid)) {
		return die("illegal name '%s' - should be '%s-%d-*'", name, want, vmid)
	}
	return nil
}

// roundSize is what the storage makes of a wished size.
func (s *storage) roundSize(size int64) int64 {
	unit := kib
	switch s.typ {
	case "lvm", "lvmthin":
		unit = 4 * mib
	case "rbd", "zfspool", "zfs":
		unit = mib
	}
	if size > math.MaxInt64-unit {
		return size
	}
	return (size + unit - 1) / unit * unit
}

// free removes a volume. The text is what Proxmox prints when there was none.
func (c *Cluster) free(node, volid string) (warning string, err error) {
	sid, name, ok := splitVolID(volid)
	if !ok {
		return "", die("unable to parse volume ID '%s'", volid)
	}
	s, err := c.storageActive(sid, node)
	if err != nil {
		return "", err
	}
	n, err := s.parse(name)
	if err != nil {
		return "", err
	}
	v := s.on(node)[n.own()]
	if v == nil {
		switch s.typ {
		case "lvm":
			return "", die("lvremove '%s/%s' error:   Failed to find logical volume \"%s/%s\"", s.conf["vgname"], name, s.conf["vgname"], name)
		case "rbd":
			return "", die("rbd rm '%s' error: rbd: error opening image %s: (2) No such file or directory", name, name)
		}
		if s.kind().files {
			return fmt.Sprintf("disk image '%s' does not exist", s.path(n)), nil
		}
		return "", nil
	}
	if v.protected {
		return "", die("cannot remove protected volume '%s' on '%s'", name, sid)
	}
	if c.baseInUse(s, node, v) {
		return "", die("base volume '%s' is still in use by linked clones", name)
	}
	delete(s.on(node), n.own())
	return "", nil
}

// baseInUse tells whether linked clones need the volume. LVM-thin does not know.
func (c *Cluster) baseInUse(s *storage, node string, v *volume) bool {
	if !v.isBase || s.typ == "lvmthin" {
		return false
	}
	for _, o := range s.on(node) {
		if o.base == v.name && (!o.dir || o.baseDir == v.owner) {
			return true
		}
	}
	return false
}

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
