package pvesim

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"
)

// storage is one storage of the cluster with everything on it.
type storage struct {
	id, typ string
	// conf is the definition as the storage configuration file has it, without id and type.
	conf map[string]string
	// unreachable storages are enabled and do not answer: a mount that is gone, a server that is down.
	unreachable bool
	total       int64
	// other is space that no volume here takes.
	other int64
	// vols holds the volumes by node, or under "" when the storage is shared, and then by name
	// without the base part of linked clones.
	vols map[string]map[string]*volume
}

// volume is one disk image, template, ISO image, snippet or backup.
type volume struct {
	volName
	storage string
	// identity follows the data: a rename keeps it, a copy gets a new one.
	identity string
	size     int64
	// virtual is the size of the disk in an image file to import, 0 when it is the file's own.
	virtual int64
	created time.Time
	// content maps paths inside the volume to what is there.
	content map[string]string
	// written is what is taken up beyond the content's own length.
	written int64
	// snaps are the volume's snapshots, oldest first.
	snaps []volumeSnap

	notes     string
	protected bool
	template  *Template
	archive   *archive
}

// volumeSnap is the state of a volume at one time.
type volumeSnap struct {
	name    string
	size    int64
	content map[string]string
}

func (s *storage) clone() *storage {
	n := *s
	n.conf = maps.Clone(s.conf)
	n.vols = map[string]map[string]*volume{}
	for node, vols := range s.vols {
		m := make(map[string]*volume, len(vols))
		for name, v := range vols {
			m[name] = v.clone()
		}
		n.vols[node] = m
	}
	return &n
}

func (v *volume) clone() *volume {
	n := *v
	n.content = maps.Clone(v.content)
	n.snaps = slices.Clone(v.snaps)
	return &n
}

func (v *volume) id() string { return v.storage + ":" + v.full() }

// used is how many bytes the volume takes up where space is given out as it is written.
func (v *volume) used() int64 {
	n := v.written
	for p, d := range v.content {
		n += int64(len(p) + len(d))
	}
	return n
}

func (v *volume) snap(name string) *volumeSnap {
	for i := range v.snaps {
		if v.snaps[i].name == name {
			return &v.snaps[i]
		}
	}
	return nil
}

// parent names the volume that a linked clone is based on, null for others.
func (v *volume) parent() any {
	if v.base == "" {
		return nil
	}
	if v.baseDir != 0 {
		return fmt.Sprintf("../%d/%s", v.baseDir, v.base)
	}
	return v.base + "@__base__"
}

func (s *storage) shared() bool   { return s.conf["shared"] == "1" || s.kind().alwaysShared }
func (s *storage) disabled() bool { return s.conf["disable"] == "1" }

func (s *storage) has(content string) bool {
	return slices.Contains(splitList(s.conf["content"]), content)
}

func (s *storage) onNode(node string) bool {
	nodes := splitList(s.conf["nodes"])
	return len(nodes) == 0 || slices.Contains(nodes, node)
}

// on gives the volumes as one node sees them.
func (s *storage) on(node string) map[string]*volume {
	if s.shared() {
		node = ""
	}
	if s.vols[node] == nil {
		s.vols[node] = map[string]*volume{}
	}
	return s.vols[node]
}

// sorted gives a node's volumes by volume id, case ignored, as Proxmox lists them.
func (s *storage) sorted(node string) []*volume {
	vols := slices.Collect(maps.Values(s.on(node)))
	sort.Slice(vols, func(i, j int) bool {
		return strings.ToLower(vols[i].full()) < strings.ToLower(vols[j].full())
	})
	return vols
}

// usedOn is how much of the storage's space is taken, as one node sees it.
func (s *storage) usedOn(node string) int64 {
	n := s.other
	for _, v := range s.on(node) {
		if s.kind().thick && v.vtype == "images" {
			n += v.size
			continue
		}
		n += v.used()
	}
	return n
}

// splitVolID separates the storage from the volume's name.
func splitVolID(volid string) (storeID, name string, ok bool) {
	m := volumeIDRE.FindStringSubmatch(volid)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}

// storage finds a storage that is defined, whatever its state.
func (c *Cluster) storage(id string) (*storage, error) {
	s := c.storages[id]
	if s == nil {
		return nil, die("storage '%s' does not exist", id)
	}
	return s, nil
}

// storageEnabled finds a storage that may be used on a node; whether it answers is not asked.
func (c *Cluster) storageEnabled(id, node string) (*storage, error) {
	s, err := c.storage(id)
	if err != nil {
		return nil, err
	}
	if s.disabled() {
		return nil, die("storage '%s' is disabled", id)
	}
	if !s.onNode(node) {
		return nil, die("storage '%s' is not available on node '%s'", id, node)
	}
	return s, nil
}

// storageActive finds a storage that may be used on a node and answers there.
func (c *Cluster) storageActive(id, node string) (*storage, error) {
	s, err := c.storageEnabled(id, node)
	if err != nil {
		return nil, err
	}
	switch {
	case !s.unreachable:
		return s, nil
	case s.kind().network:
		return nil, die("storage '%s' is not online", id)
	case s.kind().files:
		return nil, die("unable to activate storage '%s' - directory is expected to be a mount point but is not mounted: '%s'", id, s.conf["path"])
	}
	return nil, die("activating storage '%s' failed: no such device", id)
}

// volume finds a volume as a node sees it; nil when there is none, for whatever reason.
func (c *Cluster) volume(node, volid string) *volume {
	sid, name, ok := splitVolID(volid)
	if !ok || c.storages[sid] == nil {
		return nil
	}
	s := c.storages[sid]
	n, err := s.parse(name)
	if err != nil {
		return nil
	}
	return s.on(node)[n.own()]
}

// parseVolID reads a volume id completely. The storage must be defined, the volume need not exist.
func (c *Cluster) parseVolID(volid string) (*storage, volName, error) {
	sid, name, ok := splitVolID(volid)
	if !ok {
		return nil, volName{}, die("unable to parse volume ID '%s'", volid)
	}
	s, err := c.storage(sid)
	if err != nil {
		return nil, volName{}, err
	}
	n, err := s.parse(name)
	return s, n, err
}

// volumeOwner is the VMID that a volume belongs to by its name; false when it has none or the name
// cannot be read.
func (c *Cluster) volumeOwner(volid string) (int, bool) {
	_, n, err := c.parseVolID(volid)
	if err != nil || !n.owned {
		return 0, false
	}
	return n.owner, true
}

// newVolume makes a volume of a parsed name; it is not yet on the storage.
func (c *Cluster) newVolume(s *storage, n volName, size int64) *volume {
	return &volume{
		volName: n, storage: s.id, identity: fmt.Sprintf("volume-%d", c.id()),
		size: size, created: c.now(), content: map[string]string{},
	}
}

// volumePath is where a volume is found on a node.
func (c *Cluster) volumePath(volid string) string {
	s, n, err := c.parseVolID(volid)
	if err != nil {
		return volid
	}
	return s.path(n)
}

func (s *storage) path(n volName) string {
	switch {
	case s.kind().files:
		dir := s.conf["path"]
		sub := map[string]string{"images": "images", "iso": "template/iso", "vztmpl": "template/cache", "backup": "dump", "snippets": "snippets", "import": "import"}[n.vtype]
		if n.vtype == "images" {
			if s.typ == "btrfs" && n.format == "raw" {
				return fmt.Sprintf("%s/%s/%d/%s/disk.raw", dir, sub, n.owner, strings.TrimSuffix(n.name, ".raw"))
			}
			return fmt.Sprintf("%s/%s/%d/%s", dir, sub, n.owner, n.name)
		}
		return fmt.Sprintf("%s/%s/%s", dir, sub, n.name)
	case s.typ == "zfspool" && n.format == "subvol":
		return fmt.Sprintf("/%s/%s", s.conf["pool"], n.name)
	case s.typ == "zfspool":
		return fmt.Sprintf("/dev/zvol/%s/%s", s.conf["pool"], n.name)
	case s.typ == "rbd":
		return fmt.Sprintf("rbd:%s/%s", s.conf["pool"], n.name)
	case s.conf["vgname"] != "":
		return fmt.Sprintf("/dev/%s/%s", s.conf["vgname"], n.name)
	}
	return "/dev/" + s.id + "/" + n.name
}
