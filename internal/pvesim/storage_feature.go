package pvesim

import "slices"

// feature is something a storage may be able to do with a volume in some state: its present one,
// a base image, or a snapshot.
type feature struct {
	// current, base and snap list the formats; "*" stands for all.
	current, base, snap []string
}

var allFormats = []string{"*"}

// features are the plugin's feature tables.
func (s *storage) features() map[string]feature {
	images := []string{"qcow2", "raw", "vmdk"}
	switch s.typ {
	case "dir", "nfs", "cifs":
		return map[string]feature{
			"snapshot":   {current: []string{"qcow2"}, snap: []string{"qcow2"}},
			"clone":      {base: images},
			"template":   {current: []string{"qcow2", "raw", "vmdk", "subvol"}},
			"copy":       {base: images, current: images, snap: []string{"qcow2"}},
			"sparseinit": {base: images, current: images},
			"rename":     {current: images},
		}
	case "btrfs":
		all := []string{"qcow2", "raw", "subvol", "vmdk"}
		some := []string{"qcow2", "raw", "subvol"}
		return map[string]feature{
			"snapshot":   {current: some, snap: some},
			"clone":      {base: all, current: []string{"raw"}, snap: []string{"raw"}},
			"template":   {current: all},
			"copy":       {base: all, current: all, snap: some},
			"sparseinit": {base: images, current: images},
			"rename":     {current: images},
		}
	case "lvm":
		both := []string{"qcow2", "raw"}
		return map[string]feature{
			"copy":     {base: both, current: both, snap: []string{"qcow2"}},
			"rename":   {current: both},
			"snapshot": {current: []string{"qcow2"}, snap: []string{"qcow2"}},
		}
	case "lvmthin":
		return map[string]feature{
			"snapshot": {current: allFormats}, "clone": {base: allFormats, snap: allFormats}, "template": {current: allFormats},
			"copy": {base: allFormats, current: allFormats, snap: allFormats}, "sparseinit": {base: allFormats, current: allFormats}, "rename": {current: allFormats},
		}
	case "zfspool":
		return map[string]feature{
			"snapshot": {current: allFormats, snap: allFormats}, "clone": {base: allFormats}, "template": {current: allFormats},
			"copy": {base: allFormats, current: allFormats}, "sparseinit": {base: allFormats, current: allFormats},
			"replicate": {base: allFormats, current: allFormats}, "rename": {current: allFormats},
		}
	case "zfs":
		return map[string]feature{
			"snapshot": {current: allFormats, snap: allFormats}, "clone": {base: allFormats}, "template": {current: allFormats},
			"copy": {base: allFormats, current: allFormats}, "sparseinit": {base: allFormats, current: allFormats},
		}
	case "rbd":
		return map[string]feature{
			"snapshot": {current: allFormats, snap: allFormats}, "clone": {base: allFormats, snap: allFormats}, "template": {current: allFormats},
			"copy": {base: allFormats, current: allFormats, snap: allFormats}, "sparseinit": {base: allFormats, current: allFormats}, "rename": {current: allFormats},
		}
	case "iscsi", "iscsidirect", "esxi":
		return map[string]feature{"copy": {current: allFormats}}
	}
	return nil
}

// hasFeature tells whether the storage can do what with the volume, or with its snapshot.
func (c *Cluster) hasFeature(node, volid, what, snap string) bool {
	s, n, err := c.parseVolID(volid)
	if err != nil {
		return false
	}
	f, ok := s.features()[what]
	if !ok {
		return false
	}
	formats := f.current
	switch {
	case snap != "":
		formats = f.snap
	case n.isBase:
		formats = f.base
	}
	format := n.format
	if v := s.on(node)[n.own()]; v != nil {
		format = v.format
	}
	return slices.Contains(formats, "*") || slices.Contains(formats, format)
}

// canReplicate tells whether the storage's volumes can be kept in step on another node.
func (s *storage) canReplicate() bool { return s.typ == "zfspool" }
