package pvesim

import "strings"

// listContent lists what the caller may see. A disk counts as rootdir when its owner is a container
// right now, else as images: the disks of a guest that is gone are not seen on a storage that is not
// for images.
func listContent(k *call) (any, error) {
	s, err := k.c.storageActive(k.vars["storage"], k.node())
	if err != nil {
		return nil, err
	}
	vmid := atoi(k.str("vmid"))
	want := k.str("content")
	rows := []map[string]any{}
	for _, v := range s.sorted(k.node()) {
		kind := v.vtype
		if kind == "images" && v.owned {
			if g := k.c.guests[v.owner]; g != nil && g.kind == kindLXC {
				kind = "rootdir"
			}
		}
		switch {
		case !s.has(kind), want != "" && want != kind:
			continue
		case vmid != 0 && (kind == "iso" || kind == "vztmpl"):
			continue
		case vmid != 0 && (kind == "images" || kind == "rootdir" || kind == "backup") && v.owner != vmid:
			continue
		case k.mayRead(s.id, v.volName, 0, v.id()) != nil:
			continue
		}
		rows = append(rows, v.row(kind))
	}
	return rows, nil
}

// row is the volume as the content list shows it.
func (v *volume) row(kind string) map[string]any {
	m := map[string]any{
		"volid": v.id(), "content": kind, "format": v.format, "size": v.size, "ctime": v.created.Unix(),
	}
	switch v.vtype {
	case "images":
		if v.owned {
			m["vmid"] = v.owner
		}
		m["parent"], m["used"] = v.parent(), v.used()
	case "iso":
		m["format"] = "iso"
	case "snippets":
		m["format"] = "snippet"
	case "vztmpl":
		m["format"] = "t" + v.name[strings.LastIndexByte(v.name, '.')+1:]
		if strings.HasSuffix(v.name, ".tar") {
			m["format"] = "tar"
		}
	case "backup":
		if !strings.HasPrefix(v.format, "pbs-") {
			m["format"] = archiveFormat(v.name)
		}
		m["subtype"] = v.subtype()
		if v.owned {
			m["vmid"] = v.owner
		}
		if v.notes != "" {
			m["notes"] = firstLine(v.notes)
		}
		if v.protected {
			m["protected"] = 1
		}
	}
	return m
}

// archiveFormat is a backup's suffix, compression included.
func archiveFormat(name string) string {
	for _, f := range []string{"tar.zst", "tar.gz", "tar.lzo", "vma.zst", "vma.gz", "vma.lzo", "tgz", "tar", "vma"} {
		if strings.HasSuffix(name, "."+f) {
			return f
		}
	}
	return "raw"
}

func allocContent(k *call) (any, error) {
	name, format := k.str("filename"), k.str("format")
	text := k.str("size")
	unit := kib
	switch {
	case strings.HasSuffix(text, "M"):
		unit = mib
	case strings.HasSuffix(text, "G"):
		unit = 1024 * mib
	}
	size := int64(atoi(strings.TrimRight(text, "MG"))) * unit
	for _, f := range []string{"raw", "qcow2", "vmdk"} {
		if strings.HasSuffix(name, "."+f) {
			if format != "" && format != f {
				return nil, paramError("format", "different storage formats ("+format+" != "+f+")")
			}
			format = f
		}
	}
	return wrap(k.c.alloc(k.node(), k.vars["storage"], atoi(k.str("vmid")), format, name, size))
}

// wrap gives a result no value beside an error: answers tell "" from null.
func wrap(s string, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// volumeParam is the volume id a content call is about; the storage's name may be left out.
func (k *call) volumeParam() (string, error) {
	volume := k.vars["volume"]
	if !strings.Contains(volume, ":") {
		return k.vars["storage"] + ":" + volume, nil
	}
	sid, _, ok := splitVolID(volume)
	switch {
	case !ok:
		return "", paramError("volume", "unable to parse volume ID '"+volume+"'\n")
	case sid != k.vars["storage"]:
		return "", paramError("volume", "storage ID mismatch ("+sid+" != "+k.vars["storage"]+")\n")
	}
	return volume, nil
}

func showVolume(k *call) (any, error) {
	volid, err := k.volumeParam()
	if err != nil {
		return nil, err
	}
	if err := k.volumeAccess(0, volid, ""); err != nil {
		return nil, err
	}
	_, n, err := k.c.parseVolID(volid)
	if err != nil {
		return nil, err
	}
	v := k.c.volume(k.node(), volid)
	if v == nil {
		return nil, die("volume_size_info on '%s' failed - no format", volid)
	}
	if v.size == 0 && n.format != "subvol" {
		return nil, die("volume '%s' has size zero", volid)
	}
	size := v.size
	if v.vtype != "images" && v.vtype != "backup" {
		// such a file is looked at as a disk, which has whole sectors
		size = (size + 511) / 512 * 512
	}
	m := map[string]any{"path": k.c.volumePath(volid), "size": size, "used": v.used(), "format": n.format}
	if v.vtype == "backup" {
		m["notes"] = v.notes
		m["protected"] = boolInt(v.protected)
	}
	return m, nil
}

func changeVolume(k *call) (any, error) {
	volid, err := k.volumeParam()
	if err != nil {
		return nil, err
	}
	if err := k.volumeAccess(0, volid, ""); err != nil {
		return nil, err
	}
	s, n, err := k.c.parseVolID(volid)
	if err != nil {
		return nil, err
	}
	v := k.c.volume(k.node(), volid)
	for _, attr := range []string{"notes", "protected"} {
		if !k.has(attr) {
			continue
		}
		if n.vtype != "backup" {
			return nil, die("attribute '%s' is not supported for storage type '%s'", attr, s.typ)
		}
		if v == nil {
			return nil, die("backup archive '%s' does not exist", k.c.volumePath(volid))
		}
		if attr == "notes" {
			v.notes = k.str("notes")
			continue
		}
		if err := k.protect(s, k.node(), v, k.flag("protected")); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// deleteVolume removes a volume, whoever still uses it; that there is none is no error.
func deleteVolume(k *call) (any, error) {
	volid, err := k.volumeParam()
	if err != nil {
		return nil, err
	}
	s, n, err := k.c.parseVolID(volid)
	if err != nil {
		return nil, err
	}
	id := s.id
	if n.owned && n.owner != 0 {
		id = itoa(n.owner) + "@" + s.id
	}
	if n.vtype == "backup" && n.owned {
		if err = k.need("/storage/"+s.id, "Datastore.AllocateSpace"); err == nil {
			err = k.need("/vms/"+itoa(n.owner), "VM.Backup")
		}
	} else {
		err = k.need("/storage/"+s.id, "Datastore.Allocate")
	}
	if err != nil {
		return nil, err
	}
	node := k.node()
	upid := k.startTask("imgdel", id, nil, func(t *task) error {
		warning, err := k.c.free(node, volid)
		if err != nil {
			return err
		}
		if warning != "" {
			t.logf("%s", warning)
		}
		t.logf("Removed volume '%s'", volid)
		return nil
	})
	if k.has("delay") {
		for _, t := range k.c.tasks {
			if t.upid == upid && t.exit != "" {
				if isTaskError(t.exit) {
					return nil, die("%s", t.exit)
				}
				return nil, nil
			}
		}
	}
	return upid, nil
}
