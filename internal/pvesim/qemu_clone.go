package pvesim

import (
	"maps"
	"strings"
)

// cloneDisk copies a drive's volume, or links to it, for another VM or another storage.
func (k *call) cloneDisk(t *task, from *guest, d drive, vmid int, storeID, format, snap string, full bool) (string, error) {
	kind := "linked"
	if full {
		kind = "full"
	}
	t.logf("create %s clone of drive %s (%s)", kind, d.key, d.file())
	if !full {
		return k.c.linkVolume(from.node, d.file(), snap, vmid)
	}
	name := ""
	if d.isCloudInit() {
		name, snap = "vm-"+itoa(vmid)+"-cloudinit", ""
		if s := k.c.storages[storeID]; s != nil && s.kind().files {
			name += "." + format
		}
	}
	volid, err := k.c.copyVolume(from.node, d.file(), snap, storeID, vmid, format, name)
	if err != nil {
		return "", err
	}
	t.logf("allocated target volume '%s'", volid)
	if isLogged := !d.isCloudInit() && d.key != "efidisk0"; isLogged {
		size := humanSize(k.c.volume(from.node, volid).size)
		t.logf("transferred 0.0 B of %s (0.00%%)", size)
		t.logf("transferred %s of %s (100.00%%)", size, size)
	}
	return volid, nil
}

// clonePlan is a checked clone: the new VM without its disks, and what becomes of each disk.
type clonePlan struct {
	conf   map[string]string
	drives map[string]drive
	full   map[string]bool
}

func cloneVM(k *call) (any, error) {
	vmid, newid := k.vmid(), atoi(k.str("newid"))
	if err := k.mayClone(newid); err != nil {
		return nil, err
	}
	if err := k.c.flock(vmid); err != nil {
		return nil, err
	}
	if _, err := k.planClone(newid); err != nil {
		return nil, err
	}
	return k.startTask("qmclone", itoa(vmid), []int{vmid, newid}, func(t *task) error {
		plan, err := k.planClone(newid)
		if err != nil {
			return err
		}
		return k.doClone(t, newid, plan)
	}), nil
}

func (k *call) mayClone(newid int) error {
	pool := k.str("pool")
	if err := k.need(vmPath(k.vmid()), "VM.Clone"); err != nil {
		return err
	}
	if pool != "" && k.may("/pool/"+pool, "VM.Allocate") {
		return nil
	}
	return k.need(vmPath(newid), "VM.Allocate")
}

func (k *call) planClone(newid int) (clonePlan, error) {
	g, err := k.thisVM()
	if err != nil {
		return clonePlan{}, err
	}
	storeID, snap := k.str("storage"), k.str("snapname")
	if err := k.checkPool(k.str("pool")); err != nil {
		return clonePlan{}, err
	}
	if storeID != "" {
		s, err := k.c.storageEnabled(storeID, k.node())
		if err != nil {
			return clonePlan{}, err
		}
		if !s.has("images") {
			return clonePlan{}, paramError("storage", "storage '"+storeID+"' does not support vm images")
		}
	}
	if err := k.c.checkQuorum(); err != nil {
		return clonePlan{}, err
	}
	if err := g.checkLock(); err != nil {
		return clonePlan{}, err
	}
	conf := g.conf.kv
	if snap != "" {
		s := g.snapshot(snap)
		if s == nil {
			return clonePlan{}, die("snapshot '%s' does not exist", snap)
		}
		conf = s.conf.kv
	}
	full := !g.isTemplate()
	if k.has("full") {
		full = k.flag("full")
	}
	if !full && storeID != "" {
		return clonePlan{}, die("parameter 'storage' not allowed for linked clones")
	}
	if !full && k.has("format") {
		return clonePlan{}, die("parameter 'format' not allowed for linked clones")
	}
	if err := k.mayUseBridges(conf); err != nil {
		return clonePlan{}, err
	}
	if k.c.guests[newid] != nil {
		return clonePlan{}, die("unable to create VM %d: config file already exists", newid)
	}
	return k.planCloneKeys(g, conf, snap, full)
}

func (k *call) planCloneKeys(g *guest, conf map[string]string, snap string, full bool) (clonePlan, error) {
	plan := clonePlan{conf: map[string]string{}, drives: map[string]drive{}, full: map[string]bool{}}
	for _, key := range sortedKeys(conf) {
		v := conf[key]
		switch {
		case key == "parent", key == "snaptime", key == "vmstate", key == "snapstate", key == "lock",
			key == "runningcpu", key == "runningmachine", unusedKeyRE.MatchString(key):
		case netRE.MatchString(key):
			f := vmMethod().arg("net0").parts
			if parts, err := f.parse(v, ""); err == nil {
				parts["macaddr"] = k.c.newMAC()
				v = f.print(parts)
			}
			plan.conf[key] = v
		case isDriveKey(key):
			d, ok := parseDrive(key, v)
			if !ok {
				return plan, die("unable to parse drive options for '%s'", key)
			}
			if d.isMedium() {
				plan.conf[key] = v
				continue
			}
			if err := k.planCloneDrive(g, d, snap, full, &plan); err != nil {
				return plan, err
			}
		default:
			plan.conf[key] = v
		}
	}
	return plan, nil
}

func (k *call) planCloneDrive(g *guest, d drive, snap string, full bool, plan *clonePlan) error {
	sid, _, _ := splitVolID(d.file())
	if s := k.str("storage"); s != "" {
		sid = s
	}
	if err := k.need("/storage/"+sid, "Datastore.AllocateSpace"); err != nil {
		return err
	}
	of := ""
	if snap != "" {
		of = " a snapshot of"
	}
	copied := full || d.isCloudInit() || d.key == "tpmstate0"
	feature, word := "clone", "Linked"
	if copied {
		feature, word = "copy", "Full"
	}
	if !k.c.hasFeature(g.node, d.file(), feature, snap) {
		return die("%s clone feature is not supported for%s '%s' (%s)", word, of, d.file(), d.key)
	}
	plan.drives[d.key], plan.full[d.key] = d, copied
	return nil
}

func (k *call) doClone(t *task, newid int, plan clonePlan) error {
	g, err := k.thisVM()
	if err != nil {
		return err
	}
	t.logf("creating a clone of VM %d with ID %d", g.vmid, newid)
	n := newGuest(newid, kindQEMU, g.node)
	n.conf.kv = plan.conf
	n.fw = g.fw.clone()
	delete(n.conf.kv, "template")
	n.conf.kv["smbios1"] = "uuid=" + k.c.newUUID()
	if n.conf.kv["vmgenid"] != "" {
		n.conf.kv["vmgenid"] = k.c.newUUID()
	}
	n.conf.kv["name"] = k.str("name")
	if n.conf.kv["name"] == "" {
		n.conf.kv["name"] = "Copy-of-VM-" + strings.TrimPrefix(g.vmName(), "VM ")
	}
	if d := k.str("description"); d != "" {
		n.conf.kv["description"] = strings.TrimRight(d, "\n")
	}
	var fresh []string
	for _, key := range sortedKeys(plan.drives) {
		d := drive{key, maps.Clone(plan.drives[key].opts)}
		s, name, err := k.c.parseVolID(d.file())
		if err != nil {
			return die("clone failed: %s", err)
		}
		sid := k.str("storage")
		if sid == "" {
			sid = s.id
		}
		volid, err := k.cloneDisk(t, g, d, newid, sid, k.c.targetFormat(sid, name.format, k.str("format")), k.str("snapname"), plan.full[key])
		if err != nil {
			k.dropDisks(fresh)
			return die("clone failed: %s", err)
		}
		fresh = append(fresh, volid)
		d.opts["file"] = volid
		if v := k.c.volume(g.node, volid); !d.isCloudInit() {
			d.opts["size"] = formatSize(v.size)
		}
		n.conf.kv[key] = d.print()
	}
	k.c.guests[newid] = n
	if p := k.c.access.pools[k.str("pool")]; p != nil {
		p.vms[newid] = true
	}
	return nil
}

func templateVM(k *call) (any, error) {
	check := func() (*guest, error) {
		g, err := k.lockedVM()
		switch {
		case err != nil:
			return nil, err
		case len(g.snapshots) > 0:
			return nil, die("unable to create template, because VM contains snapshots")
		case g.isTemplate() && !k.has("disk"):
			return nil, die("you can't convert a template to a template")
		case g.running:
			return nil, die("you can't convert a VM to template if VM is running")
		}
		return g, nil
	}
	g, err := check()
	if err != nil {
		return nil, err
	}
	return k.startTask("qmtemplate", itoa(g.vmid), nil, func(t *task) error {
		g.conf.kv["template"] = "1"
		for _, key := range driveKeys(g.conf.kv, false) {
			d, ok := parseDrive(key, g.conf.kv[key])
			if !ok || d.isCDROM() || k.has("disk") && key != k.str("disk") || !k.c.hasFeature(g.node, d.file(), "template", "") {
				continue
			}
			volid, err := k.c.makeBase(g.node, d.file())
			if err != nil {
				return err
			}
			d.opts["file"] = volid
			g.conf.kv[key] = d.print()
		}
		return nil
	}), nil
}

// vmFeature tells whether every disk can be snapshotted, cloned or copied.
func vmFeature(k *call) (any, error) {
	g, err := k.thisVM()
	if err != nil {
		return nil, err
	}
	conf := g.conf.kv
	if name := k.str("snapname"); name != "" {
		s := g.snapshot(name)
		if s == nil {
			return nil, die("snapshot '%s' does not exist", name)
		}
		conf = s.conf.kv
	}
	can := k.c.vmCan(g, conf, k.str("feature"), k.str("snapname"))
	return map[string]any{"hasFeature": boolInt(can), "nodes": []string{g.node}}, nil
}

// vmCan tells whether the storages can do a thing with every disk of a configuration.
func (c *Cluster) vmCan(g *guest, conf map[string]string, feature, snap string) bool {
	for _, key := range driveKeys(conf, false) {
		d, ok := parseDrive(key, conf[key])
		if ok && !d.isMedium() && !(d.isCloudInit() && feature == "snapshot") && d.file() != "none" && !c.hasFeature(g.node, d.file(), feature, snap) {
			return false
		}
	}
	return true
}
