package pvesim

import "strings"

// madeDisks is what making drives has given: the new value of each key, and the volumes to remove
// should something fail later.
type madeDisks struct {
	values map[string]string
	fresh  []string
}

// makeDisks makes, imports or attaches every drive that settings name. On an error what it made is
// gone again.
func (k *call) makeDisks(t *task, g *guest, settings map[string]string, defaultStorage string) (madeDisks, error) {
	made := madeDisks{values: map[string]string{}}
	for _, key := range sortedKeys(settings) {
		if !isDriveKey(key) {
			continue
		}
		d, ok := parseDrive(key, settings[key])
		if !ok {
			continue
		}
		if err := k.makeDisk(t, g, d, defaultStorage, &made); err != nil {
			k.dropDisks(made.fresh)
			return madeDisks{}, err
		}
	}
	return made, nil
}

func (k *call) dropDisks(volids []string) {
	for _, id := range volids {
		if v := k.c.volume(k.node(), id); v != nil {
			delete(k.c.storages[v.storage].on(k.node()), v.own())
		}
	}
}

// logTo writes to the task's log where there is one: synchronous calls have none.
func logTo(t *task, format string, args ...any) {
	if t != nil {
		t.logf(format, args...)
	}
}

func (k *call) makeDisk(t *task, g *guest, d drive, defaultStorage string, made *madeDisks) error {
	file := d.file()
	switch {
	case file == "" || file == "none" || file == "cdrom":
		delete(d.opts, "size")
		made.values[d.key] = d.print()
		return nil
	case cloudInitNew.MatchString(file):
		return k.makeCloudInit(t, g, d, defaultStorage, made)
	case vmDiskRE.MatchString(file):
		m := vmDiskRE.FindStringSubmatch(file)
		if m[1] == "" {
			m[1] = defaultStorage
		}
		if m[1] == "" {
			return die("no storage ID specified (and no default storage)")
		}
		if src := d.opts["import-from"]; src != "" {
			return k.importDisk(t, g, d, m[1], src, made)
		}
		return k.allocDisk(t, g, d, m[1], m[2], made)
	}
	return k.attachDisk(g, d, made)
}

func (k *call) cloudInitKey(g *guest, skip string, also map[string]string) string {
	for _, conf := range []map[string]string{g.conf.kv, g.pending.kv, also} {
		for _, key := range driveKeys(conf, false) {
			if d, ok := parseDrive(key, conf[key]); ok && key != skip && d.isCloudInit() {
				return key
			}
		}
	}
	return ""
}

func (k *call) makeCloudInit(t *task, g *guest, d drive, defaultStorage string, made *madeDisks) error {
	sid := cloudInitNew.FindStringSubmatch(d.file())[1]
	if sid == "" {
		sid = defaultStorage
	}
	if sid == "" {
		return die("no storage ID specified (and no default storage)")
	}
	if other := k.cloudInitKey(g, d.key, made.values); other != "" {
		return die("%s - cloud-init drive is already attached at '%s'", d.key, other)
	}
	s, err := k.c.storage(sid)
	if err != nil {
		return err
	}
	name, format := "vm-"+itoa(g.vmid)+"-cloudinit", d.opts["format"]
	if s.kind().files {
		if format == "" {
			format = "qcow2"
			if !s.formatAllowed(format) {
				format = "raw"
			}
		}
		name += "." + format
	}
	volid, err := k.c.alloc(k.node(), sid, g.vmid, format, name, cloudInitSize)
	if err != nil {
		return err
	}
	d.opts["file"], d.opts["media"] = volid, "cdrom"
	delete(d.opts, "format")
	made.add(t, d, volid)
	return nil
}

// add records a drive that was made.
func (m *madeDisks) add(t *task, d drive, volid string) {
	m.fresh = append(m.fresh, volid)
	m.values[d.key] = d.print()
	logTo(t, "%s: successfully created disk '%s'", d.key, m.values[d.key])
}

func (k *call) allocDisk(t *task, g *guest, d drive, storeID, gib string, made *madeDisks) error {
	size := int64(parseGiB(gib))
	switch d.key {
	case "efidisk0":
		size = efiSize(d)
	case "tpmstate0":
		size = tpmStateSize
	}
	volid, err := k.c.alloc(k.node(), storeID, g.vmid, d.opts["format"], "", size)
	if err != nil {
		return err
	}
	if g.isTemplate() {
		if volid, err = k.c.makeBase(k.node(), volid); err != nil {
			return err
		}
	}
	v := k.c.volume(k.node(), volid)
	d.opts["file"], d.opts["size"] = volid, formatSize(v.size)
	delete(d.opts, "format")
	made.add(t, d, volid)
	return nil
}

// parseGiB reads a wished size in GiB and rounds it up to whole KiB, in bytes.
func parseGiB(s string) float64 {
	f := wantedSize(s+"G", 0)
	return float64((f + kib - 1) / kib * kib)
}

func efiSize(d drive) int64 {
	if d.opts["efitype"] == "4m" {
		return efiVars4m
	}
	return efiVars2m
}

// importDisk copies an image, or another guest's disk, into a new disk. Its size is the source's.
func (k *call) importDisk(t *task, g *guest, d drive, storeID, src string, made *madeDisks) error {
	if _, _, ok := splitVolID(src); !ok {
		return die("could not get file size of %s", src)
	}
	_, n, err := k.c.parseVolID(src)
	if err != nil {
		return err
	}
	v := k.c.volume(k.node(), src)
	if v == nil {
		if n.vtype == "import" {
			return die("failed to stat '%s'", k.c.volumePath(src))
		}
		logTo(t, "failed to stat '%s'", k.c.volumePath(src))
		return die("cannot import from '%s' - could not get size of %s", src, src)
	}
	if cloudInitRE.MatchString(src) {
		return die("cannot import from '%s' - cannot import from cloudinit disk", src)
	}
	if n.vtype == "images" {
		if o := k.c.guests[n.owner]; n.owned && o != nil && o.node != k.node() {
			return die("cannot import from '%s' - owner VM %d not on local node", src, n.owner)
		}
		if !k.c.hasFeature(k.node(), src, "copy", "") {
			return die("cannot import from '%s' - full clone feature is not supported", src)
		}
	}
	logTo(t, "create full clone of drive (%s)", src)
	volid, err := k.c.copyVolume(k.node(), src, "", storeID, g.vmid, k.c.targetFormat(storeID, n.format, d.opts["format"]), "")
	if err != nil {
		return die("cannot import from '%s' - %s", src, err)
	}
	logTo(t, "allocated target volume '%s'", volid)
	out := k.c.volume(k.node(), volid)
	if v.virtual != 0 {
		out.size = v.virtual
	}
	size := humanSize(out.size)
	logTo(t, "transferred 0.0 B of %s (0.00%%)", size)
	logTo(t, "transferred %s of %s (100.00%%)", size, size)
	delete(d.opts, "import-from")
	delete(d.opts, "format")
	d.opts["file"], d.opts["size"] = volid, formatSize(out.size)
	made.add(t, d, volid)
	return nil
}

// targetFormat is the format of a copy: the one asked for, else the source's, where the target storage
// can hold it.
func (c *Cluster) targetFormat(storeID, source, asked string) string {
	s := c.storages[storeID]
	if s == nil {
		return asked
	}
	for _, f := range []string{asked, source} {
		if f != "" && s.formatAllowed(f) {
			return f
		}
	}
	return s.defaultFormat()
}

// attachDisk takes an existing volume as it is; its size is what the storage says.
func (k *call) attachDisk(g *guest, d drive, made *madeDisks) error {
	file := d.file()
	if err := k.volumeAccess(g.vmid, file, ""); err != nil {
		return err
	}
	sid, _, ok := splitVolID(file)
	if !ok {
		made.values[d.key] = d.print()
		return nil
	}
	_, n, err := k.c.parseVolID(file)
	if err != nil {
		return err
	}
	if f := d.opts["format"]; f != "" && f != n.format {
		return die("drive '%s' - volume '%s' - 'format=%s' option different from storage format '%s'", d.key, file, f, n.format)
	}
	if d.isCloudInit() {
		if other := k.cloudInitKey(g, d.key, made.values); other != "" {
			return die("%s - cloud-init drive is already attached at '%s'", d.key, other)
		}
	}
	if _, err := k.c.storageActive(sid, k.node()); err != nil {
		return err
	}
	v := k.c.volume(k.node(), file)
	if v == nil {
		return die("volume '%s' does not exist", file)
	}
	d.opts["size"] = formatSize(v.size)
	made.values[d.key] = d.print()
	return nil
}

// humanSize is how Proxmox prints an amount in the logs of copies.
func humanSize(n int64) string {
	f, units := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for f >= 1024 && i < len(units)-1 {
		f /= 1024
		i++
	}
	return strings.TrimSpace(trimFloat(f) + " " + units[i])
}
