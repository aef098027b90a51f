package pvesim

import (
	"fmt"
	"maps"
	"strings"
	"time"
)

// StorageSpec defines a storage.
type StorageSpec struct {
	// ID names it; Type is Proxmox's word for its plugin (dir, btrfs, lvm, lvmthin, zfspool, rbd, …).
	ID, Type string
	// Content are the content types it is for. Default: images and rootdir.
	Content []string
	// Nodes limits it to these nodes; none: all.
	Nodes    []string
	Shared   bool
	Disabled bool
	// Unreachable: enabled and not answering.
	Unreachable bool
	// Total is its size in bytes, default 100 GiB; Other is what things outside the simulation take.
	Total, Other int64
	// Options are further keys of its definition ("path", "pool", "vgname", "prune-backups", …).
	Options map[string]string
}

// AddStorage defines a storage or replaces its definition; volumes that are there stay.
func (c *Cluster) AddStorage(spec StorageSpec) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &storage{id: spec.ID, typ: spec.Type, conf: map[string]string{}, total: 100 << 30, vols: map[string]map[string]*volume{}}
	if old := c.storages[spec.ID]; old != nil {
		s.vols = old.vols
	}
	maps.Copy(s.conf, spec.Options)
	if len(spec.Content) == 0 {
		spec.Content = []string{"images", "rootdir"}
	}
	s.conf["content"] = strings.Join(spec.Content, ",")
	if len(spec.Nodes) > 0 {
		s.conf["nodes"] = strings.Join(spec.Nodes, ",")
	}
	if spec.Shared {
		s.conf["shared"] = "1"
	}
	if spec.Disabled {
		s.conf["disable"] = "1"
	}
	s.unreachable, s.other = spec.Unreachable, spec.Other
	if spec.Total != 0 {
		s.total = spec.Total
	}
	if s.kind().files && s.conf["path"] == "" {
		s.conf["path"] = "/srv/" + spec.ID
	}
	c.storages[spec.ID] = s
}

// RemoveStorage takes a storage's definition away, with what is on it.
func (c *Cluster) RemoveStorage(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.storages, id)
}

// Volume is a volume as a test looks at it.
type Volume struct {
	// ID is the volume id, Node where it is ("" on shared storages).
	ID, Node, Storage string
	// Type is images, vztmpl, iso, backup, snippets or import.
	Type string
	// Owner is the VMID it belongs to, 0 for none.
	Owner  int
	Format string
	// Size is in bytes.
	Size int64
	// Identity is the data's own: a rename keeps it, a copy has a new one.
	Identity string
	Created  time.Time
	// Content maps paths inside the volume to what is there.
	Content map[string]string
	// Snapshots are the volume's snapshots, oldest first.
	Snapshots []string
	Notes     string
	Protected bool
}

func (v *volume) public(node string) Volume {
	out := Volume{
		ID: v.id(), Node: node, Storage: v.storage, Type: v.vtype, Owner: v.owner, Format: v.format, Size: v.size,
		Identity: v.identity, Created: v.created, Content: maps.Clone(v.content), Notes: v.notes, Protected: v.protected,
	}
	for _, s := range v.snaps {
		out.Snapshots = append(out.Snapshots, s.name)
	}
	return out
}

// Volumes lists every volume of the cluster by storage, node and name.
func (c *Cluster) Volumes() []Volume {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Volume
	for _, id := range sortedKeys(c.storages) {
		s := c.storages[id]
		for _, node := range sortedKeys(s.vols) {
			for _, v := range s.sorted(node) {
				out = append(out, v.public(node))
			}
		}
	}
	return out
}

// Volume finds a volume by its id, on whatever node it is.
func (c *Cluster) Volume(volid string) (Volume, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, node := c.anywhere(volid); v != nil {
		return v.public(node), true
	}
	return Volume{}, false
}

// VolumeByIdentity finds the data wherever it went and under whatever name.
func (c *Cluster) VolumeByIdentity(identity string) (Volume, bool) {
	for _, v := range c.Volumes() {
		if v.Identity == identity {
			return v, true
		}
	}
	return Volume{}, false
}

// anywhere looks for a volume on every node.
func (c *Cluster) anywhere(volid string) (*volume, string) {
	sid, name, ok := splitVolID(volid)
	if !ok || c.storages[sid] == nil {
		return nil, ""
	}
	s := c.storages[sid]
	n, err := s.parse(name)
	if err != nil {
		return nil, ""
	}
	for _, node := range sortedKeys(s.vols) {
		if v := s.vols[node][n.own()]; v != nil {
			return v, node
		}
	}
	return nil, ""
}

// WriteVolume puts data under a path in a volume, as a program in the guest would.
func (c *Cluster) WriteVolume(volid, path, data string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, _ := c.anywhere(volid)
	if v == nil {
		return fmt.Errorf("cannot write %s: there is no such volume", volid)
	}
	v.content[path] = data
	return nil
}

// AddVolume puts a volume of size bytes on a storage under the given id, whoever it belongs to:
// leftovers, images to import, ISO images. On a storage that is not shared it appears on node.
func (c *Cluster) AddVolume(node, volid string, size int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.put(node, volid, size)
	return err
}

func (c *Cluster) put(node, volid string, size int64) (*volume, error) {
	s, n, err := c.parseVolID(volid)
	if err != nil {
		return nil, fmt.Errorf("cannot add %s: %w", volid, err)
	}
	v := c.newVolume(s, n, size)
	if n.vtype != "images" {
		v.written = size
	}
	s.on(node)[n.own()] = v
	return v, nil
}

// AddTemplate puts a container template or OCI archive on a storage. size is that of its file, in
// bytes.
func (c *Cluster) AddTemplate(node, volid string, size int64, t Template) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, err := c.put(node, volid, size)
	if err != nil {
		return err
	}
	v.template = &t
	return nil
}

// RemoveVolume takes a volume away behind everybody's back.
func (c *Cluster) RemoveVolume(volid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, node := c.anywhere(volid); v != nil {
		delete(c.storages[v.storage].vols[node], v.own())
	}
}

// AddImage puts an image to import on a storage: a file of fileSize bytes that holds a disk of
// diskSize bytes with the given content.
func (c *Cluster) AddImage(node, volid string, fileSize, diskSize int64, content map[string]string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, err := c.put(node, volid, fileSize)
	if err != nil {
		return err
	}
	v.virtual = diskSize
	v.content = maps.Clone(content)
	if v.content == nil {
		v.content = map[string]string{}
	}
	return nil
}
