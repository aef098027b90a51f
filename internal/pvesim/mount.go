package pvesim

import (
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// mountType is what Proxmox makes of a mount point's source, by its first characters alone.
type mountType string

const (
	mountVolume mountType = "volume"
	mountBind   mountType = "bind"
	mountDevice mountType = "device"
)

func classifyMount(source string) mountType {
	switch {
	case strings.HasPrefix(source, "/dev/"):
		return mountDevice
	case strings.HasPrefix(source, "/"):
		return mountBind
	default:
		return mountVolume
	}
}

// mount is one rootfs or mpN value, taken apart.
type mount struct {
	key string
	propString
}

var mountBools = []string{"acl", "backup", "keepattrs", "quota", "replicate", "ro", "shared"}

// parseMount reads a value that passed the schema. Booleans become 1 and 0, as on every path
// through Proxmox that writes the value again.
func parseMount(key, value string) mount {
	m := mount{key, parseProps(value, "volume")}
	for i, o := range m.opts {
		if slices.Contains(mountBools, o.key) {
			m.opts[i].value = normalBool(o.value)
		}
	}
	return m
}

func (m mount) volume() string { return m.bare }
func (m mount) typ() mountType { return classifyMount(m.bare) }
func (m mount) String() string { return m.render("mp") }
func (m mount) backedUp() bool { return m.key == "rootfs" || m.value("backup") == "1" }
func (m mount) setSize(n int64) mount {
	m.propString = m.with("size", formatSize(n))
	return m
}

// path is where the mount shows inside the container.
func (m mount) path() string {
	if m.key == "rootfs" {
		return "/"
	}
	return cleanPath(m.value("mp"))
}

func cleanPath(p string) string {
	parts := strings.FieldsFunc(p, func(r rune) bool { return r == '/' })
	return "/" + strings.Join(parts, "/")
}

var (
	newDiskRE   = regexp.MustCompile(`^([^:\s]+):(\d+(\.\d+)?)$`)
	bareSizeRE  = regexp.MustCompile(`^\d+(\.\d+)?$`)
	mpKeyRE     = regexp.MustCompile(`^mp(\d+)$`)
	unusedKeyRE = regexp.MustCompile(`^unused(\d+)$`)
	netKeyRE    = regexp.MustCompile(`^net(\d+)$`)
	devKeyRE    = regexp.MustCompile(`^dev(\d+)$`)
)

func isMountKey(key string) bool { return key == "rootfs" || mpKeyRE.MatchString(key) }

// mounts are a configuration's rootfs and mount points, rootfs first, the others by number.
func (c config) mounts() []mount {
	var out []mount
	for _, k := range c.keys() {
		if isMountKey(k) {
			out = append(out, parseMount(k, c.kv[k]))
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return mountOrder(out[i].key) < mountOrder(out[j].key) })
	return out
}

func mountOrder(key string) int {
	if key == "rootfs" {
		return -1
	}
	return atoi(strings.TrimLeft(key, "mp"))
}

// unused are the unusedN keys by number.
func (c config) unused() []string {
	var out []string
	for k := range c.kv {
		if unusedKeyRE.MatchString(k) {
			out = append(out, k)
		}
	}
	sort.Slice(out, func(i, j int) bool { return atoi(out[i][6:]) < atoi(out[j][6:]) })
	return out
}

// volumeIDs are the volumes a container's section names; with unused, also those it only keeps.
func (c config) volumeIDs(unused bool) []string {
	var out []string
	for _, m := range c.mounts() {
		if m.typ() == mountVolume {
			out = append(out, m.volume())
		}
	}
	if unused {
		for _, k := range c.unused() {
			out = append(out, c.kv[k])
		}
	}
	return out
}

// addUnused files a volume under the lowest free unusedN, unless it is there already.
func (c config) addUnused(volid string) {
	for _, k := range c.unused() {
		if c.kv[k] == volid {
			return
		}
	}
	for i := range 256 {
		if k := "unused" + itoa(i); c.kv[k] == "" {
			c.kv[k] = volid
			return
		}
	}
}

// dropUsedUnused removes unusedN keys whose volume the section mounts, as every write of a
// container's configuration does.
func (c config) dropUsedUnused() {
	used := setOf(c.volumeIDs(false)...)
	for _, k := range c.unused() {
		if used[c.kv[k]] {
			delete(c.kv, k)
		}
	}
}

var sizeRE = regexp.MustCompile(`^(\d+(\.\d+)?)([KMGT](iB)?)?$`)

// parseSize reads a size as Proxmox's property strings do: a bare number is bytes.
func parseSize(s string) (int64, bool) {
	m := sizeRE.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	f, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, false
	}
	if m[3] != "" {
		f *= float64(int64(1) << (10 * (strings.Index("KMGT", m[3][:1]) + 1)))
	}
	return int64(f), true
}

// formatSize prints bytes with the largest unit that divides them.
func formatSize(n int64) string {
	for i, unit := range []string{"T", "G", "M", "K"} {
		size := int64(1) << (10 * (4 - i))
		if n%size == 0 {
			return strconv.FormatInt(n/size, 10) + unit
		}
	}
	return strconv.FormatInt(n, 10)
}

// gibToBytes is what LXC makes of an allocation's size: whole MiB, rounded down.
func gibToBytes(text string) int64 {
	f, _ := strconv.ParseFloat(text, 64)
	return int64(f*1024) << 20
}

// gib writes bytes as the GiB number of an allocation request.
func gib(n int64) string {
	return strconv.FormatFloat(float64(n)/(1<<30), 'f', -1, 64)
}

// allocMount makes the new volume that a "storage:size" source asks for, or refreshes the size of
// an existing one. It gives the value to keep and the volume it made, "" if none.
func (c *Cluster) allocMount(g *guest, m mount, t *task) (mount, string, error) {
	d := newDiskRE.FindStringSubmatch(m.volume())
	if d == nil {
		if m.typ() == mountVolume {
			if size, _, ok := c.volumeSize(g.node, m.volume()); ok {
				m = m.setSize(size)
			} else {
				m.propString = m.without("size")
			}
		}
		return m, "", nil
	}
	st, err := c.storageActive(d[1], g.node)
	if err != nil {
		return m, "", err
	}
	size := gibToBytes(d[2])
	format := "raw"
	switch {
	case st.typ == "zfspool":
		format = "subvol"
	case st.typ == "btrfs" && m.value("quota") == "1", st.kind().files && size == 0:
		format = "subvol"
	}
	volid, err := c.alloc(g.node, st.id, g.vmid, format, "", size)
	if err != nil {
		return m, "", err
	}
	if t != nil && format == "raw" {
		if st.kind().files && st.typ != "btrfs" {
			t.logf("Formatting '%s', fmt=raw size=%d preallocation=off", c.volumePath(volid), size)
		}
		t.logf("Creating filesystem with %d 4k blocks and %d inodes", size/4096, size/16384)
		t.logf("Filesystem UUID: %s", c.newUUID())
		t.logf("Superblock backups stored on blocks: \n\t32768, 98304, 163840, 229376")
	}
	m.bare = volid
	return m.setSize(c.volume(g.node, volid).size), volid, nil
}

// deleteOwned frees a volume that belongs to the container, and leaves any other with a plain
// warning that no task counts.
func (c *Cluster) deleteOwned(g *guest, volid string, t *task) error {
	if classifyMount(volid) != mountVolume {
		return nil
	}
	if _, _, err := c.parseVolID(volid); err != nil {
		return err
	}
	if owner, ok := c.volumeOwner(volid); !ok || owner != g.vmid {
		t.logf("ignore deletion of '%s', CT %d isn't the owner!", volid, g.vmid)
		return nil
	}
	warning, err := c.free(g.node, volid)
	if warning != "" {
		t.logf("%s", warning)
	}
	return err
}

// inSnapshotOrPending tells whether anything but the main section still needs the volume.
func (g *guest) inSnapshotOrPending(volid string) bool {
	if slices.Contains(g.pending.volumeIDs(true), volid) {
		return true
	}
	return g.inSnapshot(volid)
}

func (g *guest) inSnapshot(volid string) bool {
	for _, s := range g.snapshots {
		if slices.Contains(s.conf.volumeIDs(false), volid) {
			return true
		}
	}
	return false
}

// parseNet reads and completes a container's network: no address gets a new one, the type is veth.
func (c *Cluster) parseNet(value string) propString {
	p := parseProps(value, "")
	for i, o := range p.opts {
		switch o.key {
		case "firewall", "link_down", "host-managed":
			p.opts[i].value = normalBool(o.value)
		}
	}
	if p.value("hwaddr") == "" {
		p = p.with("hwaddr", c.newMAC())
	}
	p = p.with("type", "veth")
	return p
}

func printNet(p propString) string { return p.render("name") }

// lxcVolumePath is where in which volume a path inside the container is kept, by the deepest mount.
func lxcVolumePath(c config, path string) (mount, string) {
	path = cleanPath(path)
	var best mount
	for _, m := range c.mounts() {
		at := m.path()
		if at != "/" && path != at && !strings.HasPrefix(path, at+"/") {
			continue
		}
		if best.key == "" || len(at) > len(best.path()) {
			best = m
		}
	}
	rest := strings.TrimPrefix(path, strings.TrimSuffix(best.path(), "/"))
	return best, cleanPath(rest)
}
