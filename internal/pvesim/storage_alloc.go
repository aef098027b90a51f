package pvesim

import (
	"fmt"
	"math"
	"regexp"
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
	if err := s.checkSpace(node, n, size); err != nil {
		return "", err
	}
	v := c.newVolume(s, n, size)
	s.on(node)[n.own()] = v
	return v.id(), nil
}

// checkSpace refuses a volume for which there is no room: on storages that give space out at once for
// all of it, on the others only when nothing is left at all.
func (s *storage) checkSpace(node string, n volName, size int64) error {
	left := s.total - s.usedOn(node)
	vg := s.conf["vgname"]
	switch {
	case s.kind().thick && size > left:
		return die("lvcreate '%s/%s' error:   Volume group \"%s\" has insufficient free space (%d extents): %d required.",
			vg, n.name, vg, max(left, 0)/(4*mib), size/(4*mib))
	case left > 0:
		return nil
	case s.kind().files:
		return die("unable to create image: qemu-img: %s: Could not resize file: No space left on device", s.path(n))
	case s.typ == "zfspool" || s.typ == "zfs":
		return die("zfs error: cannot create '%s/%s': out of space", s.conf["pool"], n.name)
	case s.typ == "rbd":
		return die("rbd create '%s' error: rbd: create error: (28) No space left on device", n.name)
	}
	return nil
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
