package pvesim

import (
	"fmt"
	"strings"
)

func (s *Server) registerVzdump() {
	s.route("POST", "/nodes/{node}/vzdump", runBackup)
	s.route("GET", "/nodes/{node}/vzdump/defaults", func(*call) (any, error) {
		return map[string]any{"mode": "snapshot", "remove": 1, "compress": "0"}, nil
	})
	s.route("GET", "/nodes/{node}/vzdump/extractconfig", extractConfig)
}

// backupDisk is one volume of a guest and what a backup does with it.
type backupDisk struct {
	key, value, volid, path string
	included                bool
	reason                  string
}

// backupDisks tells which of a guest's volumes a backup holds.
func (c *Cluster) backupDisks(g *guest) []backupDisk {
	var out []backupDisk
	if g.kind == kindLXC {
		for _, m := range g.conf.mounts() {
			d := backupDisk{key: m.key, value: m.String(), volid: m.volume(), path: m.path()}
			switch {
			case m.key == "rootfs":
				d.included, d.reason = true, "rootfs"
			case m.typ() != mountVolume:
				d.reason = "not a volume"
			case m.backedUp():
				d.included, d.reason = true, "enabled"
			default:
				d.reason = "disabled"
			}
			out = append(out, d)
		}
		return out
	}
	for _, key := range driveKeys(g.conf.kv, false) {
		v, ok := parseDrive(key, g.conf.kv[key])
		if !ok || v.isCDROM() || v.isCloudInit() || key == "efidisk0" && g.conf.kv["bios"] != "ovmf" {
			continue
		}
		d := backupDisk{key: key, value: g.conf.kv[key], volid: v.file(), included: true, reason: "enabled"}
		if b, set := v.opts["backup"]; set && !isTrue(b) {
			d.included, d.reason = false, "disabled"
		}
		out = append(out, d)
	}
	return out
}

// excludedText is the log's line for a volume that a backup leaves out.
func (d backupDisk) excludedText(kind guestKind) string {
	if kind == kindQEMU {
		return fmt.Sprintf("exclude disk '%s' '%s' (backup=no)", d.key, d.volid)
	}
	return fmt.Sprintf("excluding volume mount point %s ('%s') from backup (%s)", d.key, d.path, d.reason)
}

// backupRun is one vzdump task.
type backupRun struct {
	k                     *call
	vmids                 []int
	storage               *storage
	mode, compress, notes string
	protect, prune        bool
	keep                  string
	excludes              []string
	failed                bool
}

func runBackup(k *call) (any, error) {
	if k.flag("stop") {
		return "OK", nil
	}
	for _, opt := range []string{"tmpdir", "dumpdir", "script", "job-id"} {
		if k.has(opt) && !k.who.isRoot() {
			return nil, paramError(opt, "Only root may set this option.")
		}
	}
	for _, opt := range []string{"bwlimit", "ionice", "performance"} {
		if k.has(opt) {
			if err := k.need("/", "Sys.Modify"); err != nil {
				return nil, err
			}
		}
	}
	b := &backupRun{
		k: k, mode: k.str("mode"), compress: k.str("compress"), notes: k.str("notes-template"),
		protect: k.flag("protected"), prune: true, keep: k.str("prune-backups"), excludes: k.all("exclude-path"),
	}
	if v, ok := k.param("remove"); ok {
		b.prune = isTrue(v)
	}
	if b.mode == "" {
		b.mode = "snapshot"
	}
	sid := k.str("storage")
	if sid == "" {
		for opt, v := range map[string]bool{"notes-template": b.notes != "", "protected": b.protect} {
			if v {
				return nil, paramErrors(map[string]string{"storage": "missing property required by '" + opt + "'"})
			}
		}
		sid = "local"
	}
	if err := k.need("/storage/"+sid, "Datastore.AllocateSpace"); err != nil {
		return nil, err
	}
	if b.keep != "" {
		if err := k.need("/storage/"+sid, "Datastore.Allocate"); err != nil {
			return nil, err
		}
	}
	var err error
	if b.storage, err = k.c.storageActive(sid, k.node()); err != nil {
		return nil, die("could not get storage information for '%s': %s", sid, err.Error())
	}
	if !b.storage.has("backup") {
		return nil, die("could not get storage information for '%s': can't use storage '%s' for backups - wrong content type", sid, sid)
	}
	b.pick()
	if len(b.vmids) == 0 && !k.flag("all") && !k.has("pool") {
		return "OK", nil
	}
	id := ""
	if list := splitList(k.str("vmid")); len(list) == 1 {
		id = list[0]
	}
	return k.startTask("vzdump", id, b.vmids, b.run), nil
}

// pick chooses the guests: a list, a pool, or all of the node. Those on other nodes are left out.
func (b *backupRun) pick() {
	k := b.k
	job := &backupJob{conf: map[string]string{"pool": k.str("pool"), "exclude": k.str("exclude")}}
	if k.flag("all") {
		job.conf["all"] = "1"
	}
	if list := splitList(k.str("vmid")); len(list) > 0 {
		for _, v := range list {
			if g := k.c.guests[atoi(v)]; g == nil || g.node == k.node() {
				b.vmids = append(b.vmids, atoi(v))
			}
		}
		return
	}
	for _, vmid := range k.c.vmids() {
		if g := k.c.guests[vmid]; g.node == k.node() && k.c.covers(job, g) {
			b.vmids = append(b.vmids, vmid)
		}
	}
}

func (b *backupRun) run(t *task) error {
	var ids []string
	for _, v := range b.vmids {
		ids = append(ids, itoa(v))
	}
	t.logf("INFO: starting new backup job: vzdump %s --mode %s --node %s --storage %s", strings.Join(ids, " "), b.mode, b.k.node(), b.storage.id)
	for _, vmid := range b.vmids {
		if err := b.one(vmid, t); err != nil {
			t.logf("ERROR: Backup of VM %d failed - %s", vmid, strings.TrimSpace(err.Error()))
			b.failed = true
		}
	}
	if b.failed {
		t.logf("INFO: Backup job finished with errors")
		return die("job errors")
	}
	t.logf("INFO: Backup job finished successfully")
	return nil
}

func (b *backupRun) one(vmid int, t *task) error {
	c := b.k.c
	g := c.guests[vmid]
	if g == nil {
		return die("unable to find VM '%d'", vmid)
	}
	if err := b.k.need(vmPath(vmid), "VM.Backup"); err != nil {
		return err
	}
	t.logf("INFO: Starting Backup of VM %d (%s)", vmid, g.kind)
	t.logf("INFO: Backup started at %s", c.now().UTC().Format("2006-01-02 15:04:05"))
	t.logf("INFO: status = %s", g.status())
	if err := g.checkLock(); err != nil {
		return err
	}
	if b.mode == "stop" && c.managed(g) && c.ha.resources[g.haID()]["state"] == "started" {
		return die("Cannot execute a backup with stop mode on a HA managed and enabled Service. Use snapshot mode or disable the Service.")
	}
	if !b.prune {
		if err := b.checkLimit(vmid, g.kind.String()); err != nil {
			return err
		}
	}
	g.conf.kv["lock"] = "backup"
	t.checkpoint("locked")
	defer delete(g.conf.kv, "lock")
	b.logMode(g, t)
	a := b.collect(g, t)
	ext, size := b.format(g, a)
	stop := c.backupStops(g, b.mode)
	volid := c.addBackup(b.storage, g.node, a, ext, size)
	stop()
	t.logf("INFO: creating vzdump archive '%s'", c.volumePath(volid))
	t.logf("INFO: Total bytes written: %d (%dMiB, 190MiB/s)", size*3, size*3>>20)
	t.logf("INFO: archive file size: %dMB", size>>20)
	v := c.volume(g.node, volid)
	if b.notes != "" {
		t.logf("INFO: adding notes to backup")
		v.notes = strings.NewReplacer("{{cluster}}", "pvesim", "{{guestname}}", g.name(), "{{node}}", g.node, "{{vmid}}", itoa(vmid), `\n`, "\n", `\\`, `\`).Replace(b.notes)
	}
	if b.protect {
		t.logf("INFO: marking backup as protected")
		if err := b.k.protect(b.storage, g.node, v, true); err != nil {
			return err
		}
	}
	b.pruneOld(vmid, g, t)
	t.logf("INFO: Finished Backup of VM %d (00:00:01)", vmid)
	t.logf("INFO: Backup finished at %s", c.now().UTC().Format("2006-01-02 15:04:05"))
	return nil
}

// backupStops stops a guest for a backup in stop mode and gives what starts it again. A stop lets
// pending changes take effect.
func (c *Cluster) backupStops(g *guest, mode string) func() {
	if mode != "stop" || !g.running {
		return func() {}
	}
	c.powerOff(g)
	return func() { g.running, g.started = true, c.now() }
}

// checkLimit refuses a backup that nothing would be removed for on a full storage. A backup that
// is to be protected does not count.
func (b *backupRun) checkLimit(vmid int, kind string) error {
	keep, limited := keepLast(b.retention())
	if !limited || b.protect {
		return nil
	}
	n := 0
	for _, v := range b.storage.backups(b.k.node(), vmid) {
		if !v.protected && v.subtype() == kind {
			n++
		}
	}
	if n >= keep {
		return die("There is a max backup limit of %d enforced by the target storage or the vzdump parameters. Either increase the limit or delete old backups.", keep)
	}
	return nil
}

func (b *backupRun) retention() string {
	if b.keep != "" {
		return b.keep
	}
	return b.storage.conf["prune-backups"]
}

func (b *backupRun) pruneOld(vmid int, g *guest, t *task) {
	keep, limited := keepLast(b.retention())
	if !b.prune || !limited {
		return
	}
	t.logf("INFO: prune older backups with retention: %s", b.retention())
	for _, gone := range b.storage.prune(g.node, vmid, g.kind.String(), keep) {
		t.logf("INFO: removing backup '%s'", gone)
	}
}

func (b *backupRun) logMode(g *guest, t *task) {
	mode := b.mode
	if !g.running {
		mode = "stop"
	} else if mode == "snapshot" && g.kind == kindLXC {
		for _, d := range b.k.c.backupDisks(g) {
			if d.included && !b.k.c.hasFeature(g.node, d.volid, "snapshot", "") {
				t.logf("INFO: mode failure - some volumes do not support snapshots")
				t.logf("INFO: trying 'suspend' mode instead")
				mode = "suspend"
				break
			}
		}
	}
	t.logf("INFO: backup mode: %s", mode)
	t.logf("INFO: ionice priority: 7")
	t.logf("INFO: %s Name: %s", g.kind.label(), g.name())
}
