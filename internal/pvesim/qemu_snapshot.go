package pvesim

import (
	"maps"
	"strconv"
	"strings"
)

// notInSnapshot are the keys that a snapshot does not keep.
func notInSnapshot(key string) bool {
	switch key {
	case "lock", "description", "snaptime", "vmstate", "runningmachine", "runningcpu":
		return true
	}
	return unusedKeyRE.MatchString(key)
}

func listVMSnapshots(k *call) (any, error) {
	g, err := k.thisVM()
	if err != nil {
		return nil, err
	}
	rows := []map[string]any{}
	for _, s := range g.snapshots {
		row := map[string]any{
			"name": s.name, "snaptime": atoi(s.conf.kv["snaptime"]), "description": s.conf.kv["description"],
			"vmstate": boolInt(s.conf.kv["vmstate"] != ""),
		}
		if p := s.conf.kv["parent"]; p != "" {
			row["parent"] = p
		}
		rows = append(rows, row)
	}
	current := map[string]any{"name": "current", "digest": g.digest(), "running": boolInt(g.running), "description": "You are here!"}
	if p := g.conf.kv["parent"]; p != "" {
		current["parent"] = p
	}
	return append(rows, current), nil
}

func snapshotVM(k *call) (any, error) {
	name := k.str("snapname")
	switch {
	case name == "current":
		return nil, die("unable to use snapshot name 'current' (reserved name)")
	case strings.EqualFold(name, "pending"):
		return nil, die("unable to use snapshot name 'pending' (reserved name)")
	}
	g, err := k.thisVM()
	if err != nil {
		return nil, err
	}
	return k.startTask("qmsnapshot", itoa(g.vmid), []int{g.vmid}, func(t *task) error {
		return k.takeVMSnapshot(t, g, name)
	}), nil
}

func (k *call) takeVMSnapshot(t *task, g *guest, name string) error {
	if err := g.checkLock(); err != nil {
		return err
	}
	switch {
	case g.isTemplate():
		return die("you can't take a snapshot if it's a template")
	case g.snapshot(name) != nil:
		return die("snapshot name '%s' already used", name)
	case !k.c.vmCan(g, g.conf.kv, "snapshot", ""):
		return die("snapshot feature is not available")
	}
	s := &snapshot{name: name, conf: newConfig()}
	for key, v := range g.conf.kv {
		if !notInSnapshot(key) {
			s.conf.kv[key] = v
		}
	}
	s.conf.kv["snaptime"] = strconv.FormatInt(k.c.now().Unix(), 10)
	if d := strings.TrimRight(k.str("description"), "\n"); d != "" {
		s.conf.kv["description"] = d
	}
	if g.running && k.flag("vmstate") {
		if err := k.saveMemory(t, g, s); err != nil {
			return err
		}
	}
	for _, key := range driveKeys(g.conf.kv, false) {
		d, ok := parseDrive(key, g.conf.kv[key])
		if !ok || d.isCDROM() {
			continue
		}
		t.logf("snapshotting 'drive-%s' (%s)", key, d.file())
		if err := k.c.snapshotVolume(g.node, d.file(), name); err != nil {
			k.dropSnapshotOf(g, name)
			return err
		}
		if g.running {
			t.logf("internal qemu snapshot")
		}
	}
	g.conf.kv["parent"] = name
	g.snapshots = append(g.snapshots, s)
	return nil
}

// saveMemory puts the VM's memory beside its first disk.
func (k *call) saveMemory(t *task, g *guest, s *snapshot) error {
	sid := g.conf.kv["vmstatestorage"]
	for _, key := range driveKeys(g.conf.kv, false) {
		if d, ok := parseDrive(key, g.conf.kv[key]); ok && sid == "" && !d.isCDROM() {
			sid, _, _ = splitVolID(d.file())
		}
	}
	if sid == "" {
		sid = "local"
	}
	name := "vm-" + itoa(g.vmid) + "-state-" + s.name
	if st := k.c.storages[sid]; st != nil && st.kind().files {
		name += ".raw"
	}
	volid, err := k.c.alloc(g.node, sid, g.vmid, "raw", name, int64(memoryOf(g.conf.kv)*2+500)*mib)
	if err != nil {
		return err
	}
	t.logf("saving VM state and RAM using storage '%s'", sid)
	s.conf.kv["vmstate"] = volid
	s.conf.kv["runningmachine"] = "pc-i440fx-10.0+pve0"
	return nil
}

// memoryOf is a VM's memory in MiB.
func memoryOf(conf map[string]string) int {
	v := strings.TrimPrefix(conf["memory"], "current=")
	if v == "" {
		return 512
	}
	return atoi(v)
}

func (k *call) dropSnapshotOf(g *guest, name string) {
	for _, key := range driveKeys(g.conf.kv, false) {
		if d, ok := parseDrive(key, g.conf.kv[key]); ok && !d.isCDROM() {
			k.c.dropVolumeSnapshot(g.node, d.file(), name)
		}
	}
}

func readVMSnapshot(k *call) (any, error) {
	_, s, err := k.vmSnapshot()
	if err != nil {
		return nil, err
	}
	row := vmConfigRow(s.conf.kv, "")
	delete(row, "digest")
	row["snaptime"] = atoi(s.conf.kv["snaptime"])
	return row, nil
}

func (k *call) vmSnapshot() (*guest, *snapshot, error) {
	g, err := k.thisVM()
	if err != nil {
		return nil, nil, err
	}
	name := k.vars["snapname"]
	s := g.snapshot(name)
	if s == nil {
		return g, nil, die("snapshot '%s' does not exist", name)
	}
	return g, s, nil
}

func updateVMSnapshot(k *call) (any, error) {
	g, s, err := k.vmSnapshot()
	if err != nil {
		return nil, err
	}
	if err := g.checkLock(); err != nil {
		return nil, err
	}
	if k.has("description") {
		s.conf.kv["description"] = strings.TrimRight(k.str("description"), "\n")
	}
	return nil, nil
}

func rollbackVM(k *call) (any, error) {
	if k.flag("start") {
		if err := k.need(vmPath(k.vmid()), "VM.PowerMgmt"); err != nil {
			return nil, err
		}
	}
	vmid := k.vmid()
	return k.startTask("qmrollback", itoa(vmid), []int{vmid}, func(t *task) error {
		g, s, err := k.vmSnapshot()
		if err != nil {
			return err
		}
		if err := g.checkLock(); err != nil {
			return err
		}
		if g.isTemplate() {
			return die("you can't rollback if vm is a template")
		}
		if err := k.rollbackDisks(g, s); err != nil {
			return err
		}
		k.takeOver(g, s)
		if s.conf.kv["vmstate"] != "" || k.flag("start") {
			return k.bootVM(t, g)
		}
		return nil
	}), nil
}

func (k *call) rollbackDisks(g *guest, s *snapshot) error {
	var volids []string
	for _, key := range driveKeys(s.conf.kv, false) {
		d, ok := parseDrive(key, s.conf.kv[key])
		if !ok || d.isCDROM() {
			continue
		}
		v := k.c.volume(g.node, d.file())
		if v == nil || v.snap(s.name) == nil {
			return die("can't rollback, snapshot '%s' does not exist on '%s'", s.name, d.file())
		}
		if st := k.c.storages[v.storage]; st.newestSnapshotOnly() && v.snaps[len(v.snaps)-1].name != s.name {
			return die("can't rollback, '%s' is not most recent snapshot on '%s'", s.name, v.full())
		}
		volids = append(volids, d.file())
	}
	g.running, g.vm.paused = false, false
	for _, id := range volids {
		if err := k.c.rollbackVolume(g.node, id, s.name); err != nil {
			return err
		}
	}
	return nil
}

// takeOver makes a snapshot's configuration the present one. Disks that it does not name become
// unused, description and unused entries stay, what was pending is gone.
func (k *call) takeOver(g *guest, s *snapshot) {
	inSnapshot := map[string]bool{}
	for _, key := range driveKeys(s.conf.kv, false) {
		if d, ok := parseDrive(key, s.conf.kv[key]); ok {
			inSnapshot[d.file()] = true
		}
	}
	var left []string
	for _, key := range driveKeys(g.conf.kv, false) {
		d, ok := parseDrive(key, g.conf.kv[key])
		if ok && !d.isMedium() && !inSnapshot[d.file()] {
			left = append(left, d.file())
		}
	}
	conf := newConfig()
	for key, v := range g.conf.kv {
		if key == "description" || unusedKeyRE.MatchString(key) {
			conf.kv[key] = v
		}
	}
	for key, v := range s.conf.kv {
		if !notInSnapshot(key) {
			conf.kv[key] = v
		}
	}
	conf.kv["parent"] = s.name
	if conf.kv["vmgenid"] != "" {
		conf.kv["vmgenid"] = k.c.newUUID()
	}
	g.conf, g.pending, g.pendingDelete = conf, newConfig(), map[string]bool{}
	for _, id := range left {
		g.addUnused(id)
	}
	g.dropUsedUnused()
}

func deleteVMSnapshot(k *call) (any, error) {
	vmid := k.vmid()
	return k.startTask("qmdelsnapshot", itoa(vmid), []int{vmid}, func(t *task) error {
		g, s, err := k.vmSnapshot()
		if err != nil {
			return err
		}
		if err := g.checkLock(); err != nil {
			return err
		}
		if id := s.conf.kv["vmstate"]; id != "" {
			if _, err := k.c.free(g.node, id); err != nil && !k.flag("force") {
				return err
			}
		}
		var dropped []string
		for _, key := range driveKeys(s.conf.kv, false) {
			if d, ok := parseDrive(key, s.conf.kv[key]); ok && !d.isCDROM() {
				k.c.dropVolumeSnapshot(g.node, d.file(), s.name)
				dropped = append(dropped, d.file())
			}
		}
		g.forgetSnapshot(s)
		for _, id := range dropped {
			if k.c.volume(g.node, id) != nil && k.c.ownsVolume(g, id) && !g.inUse("", id) {
				g.addUnused(id)
			}
		}
		return nil
	}), nil
}

// forgetSnapshot takes a snapshot's section away and closes the chain of parents over the gap.
func (g *guest) forgetSnapshot(s *snapshot) {
	parent := s.conf.kv["parent"]
	relink := func(kv map[string]string) {
		if kv["parent"] != s.name {
			return
		}
		if parent == "" {
			delete(kv, "parent")
			return
		}
		kv["parent"] = parent
	}
	relink(g.conf.kv)
	var rest []*snapshot
	for _, o := range g.snapshots {
		if o != s {
			o.conf.kv = maps.Clone(o.conf.kv)
			relink(o.conf.kv)
			rest = append(rest, o)
		}
	}
	g.snapshots = rest
}
