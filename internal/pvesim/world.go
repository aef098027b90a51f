package pvesim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// ContainerSpec describes a container to put into the world, without any request.
type ContainerSpec struct {
	VMID int
	// Node defaults to the cluster's first.
	Node string
	// Config are configuration keys as they stand in the file. Volumes they name as "storage:GiB"
	// are made; unprivileged, hostname, memory and swap get a create's defaults when they are absent.
	// A key with an empty value is left out altogether, which is how to have no "unprivileged".
	Config map[string]string
	// LXC are raw pairs.
	LXC [][2]string
	// Template, when set, is a volume id whose files the root file system gets.
	Template string
	// Files are written through the mounts: absolute path inside the container to content.
	Files map[string]string
	// Running starts it.
	Running bool
	// Pool is a pool to put it into, which is made when it does not exist.
	Pool string
}

// AddContainer puts a container into the world. It panics on a specification that cannot be, since
// only tests and demos write them.
func (c *Cluster) AddContainer(spec ContainerSpec) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if spec.Node == "" {
		spec.Node = c.local
	}
	if c.guests[spec.VMID] != nil {
		panic(fmt.Sprintf("pvesim: guest %d exists", spec.VMID))
	}
	g := newGuest(spec.VMID, kindLXC, spec.Node)
	set := map[string]string{
		"unprivileged": "1", "hostname": fmt.Sprintf("CT%d", spec.VMID), "memory": "512", "swap": "512",
		"arch": "amd64", "ostype": "debian",
	}
	maps.Copy(set, spec.Config)
	keys := sortedKeys(set)
	slices.SortStableFunc(keys, func(a, b string) int { return mountRank(a) - mountRank(b) })
	for _, k := range keys {
		if set[k] == "" {
			continue
		}
		c.mustSet(g, k, set[k])
	}
	g.conf.lxc = slices.Clone(spec.LXC)
	if spec.Template != "" {
		v := c.volume(spec.Node, spec.Template)
		if v == nil || v.template == nil {
			panic("pvesim: no such template: " + spec.Template)
		}
		c.unpack(g, v.template, false)
	}
	for p, data := range spec.Files {
		c.writeInside(g, p, data)
	}
	c.guests[spec.VMID] = g
	c.allocateLeases(g)
	if spec.Pool != "" {
		if c.access.pools[spec.Pool] == nil {
			c.access.pools[spec.Pool] = newPool()
		}
		c.access.pools[spec.Pool].vms[spec.VMID] = true
	}
	if spec.Running {
		if err := c.startContainer(g, &task{}); err != nil {
			panic("pvesim: " + err.Error())
		}
	}
}

func mountRank(key string) int {
	switch {
	case key == "rootfs":
		return 0
	case mpKeyRE.MatchString(key):
		return 1 + atoi(key[2:])
	default:
		return 1000
	}
}

// mustSet writes one key of a guest's main section, making the volume or address it asks for.
func (c *Cluster) mustSet(g *guest, key, value string) {
	switch {
	case g.kind == kindLXC && isMountKey(key):
		m, _, err := c.allocMount(g, parseMount(key, value), nil)
		if err != nil {
			panic("pvesim: " + err.Error())
		}
		value = m.String()
	case unusedKeyRE.MatchString(key) && newDiskRE.MatchString(value):
		m, _, err := c.allocMount(g, parseMount(key, value), nil)
		if err != nil {
			panic("pvesim: " + err.Error())
		}
		value = m.volume()
	case g.kind == kindLXC && netKeyRE.MatchString(key):
		value = printNet(c.parseNet(value))
	case key == "tags":
		value = normalTags(value)
	}
	g.conf.set(key, value)
}

// SetConfig writes one key of a guest's live configuration as an editor of the file would: nothing
// is checked, a "storage:GiB" volume is made. An empty value removes the key.
func (c *Cluster) SetConfig(vmid int, key, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	g := c.mustGuest(vmid)
	if value == "" {
		delete(g.conf.kv, key)
		return
	}
	c.mustSet(g, key, value)
}

// SetRawConfig writes a key exactly as given, whatever it is.
func (c *Cluster) SetRawConfig(vmid int, key, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	c.mustGuest(vmid).conf.kv[key] = value
}

// SetPending writes one key into the pending section; deleted keys are queued for removal.
func (c *Cluster) SetPending(vmid int, key, value string, deleted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.mustGuest(vmid)
	if deleted {
		g.pendingDelete[key] = false
		return
	}
	g.pending.kv[key] = value
}

// AddRawLXC appends a raw lxc pair, as an administrator with an editor does.
func (c *Cluster) AddRawLXC(vmid int, key, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.mustGuest(vmid)
	g.conf.lxc = append(g.conf.lxc, [2]string{key, value})
}

func (c *Cluster) mustGuest(vmid int) *guest {
	g := c.guests[vmid]
	if g == nil {
		panic(fmt.Sprintf("pvesim: no guest %d", vmid))
	}
	return g
}

// Lock writes a lock word into a guest's configuration; an empty one removes it.
func (c *Cluster) Lock(vmid int, word string) { c.SetConfig(vmid, "lock", word) }

// Protect sets or lifts a guest's protection.
func (c *Cluster) Protect(vmid int, on bool) {
	word := ""
	if on {
		word = "1"
	}
	c.SetConfig(vmid, "protection", word)
}

// Snapshot takes a snapshot of a guest. The volumes need not be able to: then only the
// configuration is kept.
func (c *Cluster) Snapshot(vmid int, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.mustGuest(vmid)
	s := &snapshot{name: name, conf: g.conf.clone()}
	for key := range g.conf.kv {
		if snapshotSkips(key) {
			delete(s.conf.kv, key)
		}
	}
	if p := g.conf.kv["parent"]; p != "" {
		s.conf.kv["parent"] = p
	}
	s.conf.kv["snaptime"] = itoa(int(c.now().Unix()))
	for _, volid := range c.guestVolumes(g, g.conf) {
		_ = c.snapshotVolume(g.node, volid, name)
	}
	g.snapshots = append(g.snapshots, s)
	g.conf.kv["parent"] = name
}

// guestVolumes are the volumes a section of either kind of guest mounts.
func (c *Cluster) guestVolumes(g *guest, conf config) []string {
	if g.kind == kindLXC {
		return conf.volumeIDs(false)
	}
	var out []string
	for _, key := range driveKeys(conf.kv, false) {
		if d, ok := parseDrive(key, conf.kv[key]); ok && !d.isCDROM() {
			out = append(out, d.file())
		}
	}
	return out
}

// Config is a guest's live configuration, its digest left out; nil when there is no such guest.
func (c *Cluster) Config(vmid int) map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	g := c.guests[vmid]
	if g == nil {
		return nil
	}
	return maps.Clone(g.conf.kv)
}

// Digest is the digest of a guest's configuration, "" when there is no such guest.
func (c *Cluster) Digest(vmid int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	if g := c.guests[vmid]; g != nil {
		return g.digest()
	}
	return ""
}

// Guests are the VMIDs in use, in order.
func (c *Cluster) Guests() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	return c.vmids()
}

// SetMachine says which processor a node has, in the kernel's word: "aarch64".
func (c *Cluster) SetMachine(node, machine string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[node].machine = machine
}

// Running tells whether a guest runs; false also when there is none.
func (c *Cluster) Running(vmid int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	g := c.guests[vmid]
	return g != nil && g.running
}

// SetRunning makes a guest run or not, without the checks of a start.
func (c *Cluster) SetRunning(vmid int, on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.mustGuest(vmid)
	if on && !g.running {
		g.running, g.started = true, c.now()
	} else if !on {
		c.powerOff(g)
	}
}

// RemoveGuest takes a guest out of the world with the volumes it owns, as an administrator would
// who destroyed it.
func (c *Cluster) RemoveGuest(vmid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	g := c.guests[vmid]
	if g == nil {
		return
	}
	for _, volid := range append(c.guestVolumes(g, g.conf), unusedVolumes(g.conf)...) {
		if owner, ok := c.volumeOwner(volid); ok && owner == vmid {
			_, _ = c.free(g.node, volid)
		}
	}
	c.access.forgetGuest(vmid)
	delete(c.guests, vmid)
}

func unusedVolumes(conf config) []string {
	var out []string
	for _, k := range conf.unused() {
		out = append(out, conf.kv[k])
	}
	return out
}

// MoveGuest puts a guest on another node, local volumes along with it.
func (c *Cluster) MoveGuest(vmid int, node string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.moveToNode(c.mustGuest(vmid), node)
}

// VolumeOf is the volume id under a guest's key, "" when it has none.
func (c *Cluster) VolumeOf(vmid int, key string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	g := c.guests[vmid]
	if g == nil {
		return ""
	}
	return parseProps(g.conf.kv[key], map[bool]string{true: "volume", false: "file"}[g.kind == kindLXC]).bare
}

// WriteFile writes a file as a program inside a container would: into whatever is mounted at its
// path.
func (c *Cluster) WriteFile(vmid int, path, data string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	c.writeInside(c.mustGuest(vmid), path, data)
}

// ReadFile reads a file as a program inside a container would.
func (c *Cluster) ReadFile(vmid int, path string) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	g := c.guests[vmid]
	if g == nil {
		return "", false
	}
	m, inside := lxcVolumePath(g.conf, path)
	v := c.volume(g.node, m.volume())
	if v == nil {
		return "", false
	}
	data, ok := v.content[inside]
	return data, ok
}

// SetNodeOnline switches a node on or off. Its guests stay on it and cannot be reached.
func (c *Cluster) SetNodeOnline(node string, online bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[node].online = online
}

// SetQuorum gives or takes the cluster's quorum: without it nothing can be written.
func (c *Cluster) SetQuorum(quorate bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noQuorum = !quorate
}

// SetVersion changes what /version tells.
func (c *Cluster) SetVersion(v string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opts.Version = v
}

// SetTaskDuration changes how long tasks take from now on.
func (c *Cluster) SetTaskDuration(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opts.TaskDuration = d
}

// Wait brings every running task to its end.
func (c *Cluster) Wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finishAll()
}

// SetOption sets an option of the data centre ("user-tag-access", "registered-tags", "next-id").
func (c *Cluster) SetOption(name, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.datacfg[name] = value
}

// StickFilesystem makes the file system in a guest's volume keep its size when the volume grows: the
// task says so in its log and is well nevertheless.
func (c *Cluster) StickFilesystem(vmid int, key string) {
	volid := c.VolumeOf(vmid, key)
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, _ := c.anywhere(volid); v != nil {
		c.stuckFS[v.identity] = 0
	}
}

// FillStorage leaves no free byte on a storage.
func (c *Cluster) FillStorage(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.storages[id]
	s.other = s.total
}

// AddBridge adds a bridge to a node.
func (c *Cluster) AddBridge(node, bridge string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[node].bridges[bridge] = true
}

// AddVnet adds a vnet with DHCP in a zone of its own kind: addresses come from first to last.
func (c *Cluster) AddVnet(zone, vnet, subnet, first, last string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sdn.zones[zone] = map[string]string{"type": "simple", "ipam": "pve", "dhcp": "dnsmasq"}
	c.sdn.vnets[vnet] = map[string]string{"zone": zone, "type": "vnet", "subnet": subnet, "dhcp-range": first + "-" + last}
}

// Leases are the addresses given out, as "vnet ip mac vmid" lines in order.
func (c *Cluster) Leases() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sdn.lines()
}

func (s *sdnState) lines() []string {
	var out []string
	for _, l := range s.leases {
		out = append(out, fmt.Sprintf("%s %s %s %d", l.vnet, l.ip, l.mac, l.vmid))
	}
	slices.Sort(out)
	return out
}

// AddHA puts a guest under HA with the given fields ("state", "comment", "max_restart", …).
func (c *Cluster) AddHA(vmid int, fields map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := map[string]string{"state": "started"}
	maps.Copy(r, fields)
	c.ha.resources[c.mustGuest(vmid).haID()] = r
}

// AddHARule adds a rule ("type", "resources", "nodes", "affinity", …).
func (c *Cluster) AddHARule(name string, fields map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ha.rules[name] = maps.Clone(fields)
}

// SetHALag makes the HA manager do nothing when a wanted state changes, as a slow one does.
func (c *Cluster) SetHALag(lag bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ha.lag = lag
}

// AddReplication adds a replication job of a guest ("5001-0") to a node.
func (c *Cluster) AddReplication(id, target string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.repl[id] = map[string]string{"target": target, "type": "local", "schedule": "*/15"}
}

// AddBackupJob adds a backup job with Proxmox's keys ("vmid", "pool", "all", "storage", "schedule",
// "enabled"). next is when it runs next; the zero time leaves that to the schedule.
func (c *Cluster) AddBackupJob(id string, fields map[string]string, next time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	j := &backupJob{conf: map[string]string{"enabled": "1", "mode": "snapshot"}}
	maps.Copy(j.conf, fields)
	if !next.IsZero() {
		j.next = next.Unix()
	}
	c.jobs[id] = j
}

// StartTask puts a running task into the world that ends only when end is called, such as another
// administrator's backup. An empty id is a job over several guests.
func (c *Cluster) StartTask(node, typ, id, user string) (upid string, end func(exit string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := &call{c: c, who: identity{full: user}}
	old := c.opts.TaskDuration
	c.opts.TaskDuration = 1000 * time.Hour
	upid = k.startTaskOn(node, typ, id, nil, func(*task) error { return nil })
	c.opts.TaskDuration = old
	t := c.tasks[len(c.tasks)-1]
	return upid, func(exit string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if t.exit == "" {
			t.exit, t.end, t.work = exit, c.now(), nil
		}
	}
}

// Backup makes an archive of a guest on a storage at once, without a task, and gives its volume id.
func (c *Cluster) Backup(vmid int, storeID, notes string, protected bool) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.mustGuest(vmid)
	s := c.storages[storeID]
	b := &backupRun{k: &call{c: c, who: identity{full: rootUser, user: rootUser}}, storage: s, compress: "zstd"}
	a := b.collect(g, &task{})
	ext, size := b.format(g, a)
	volid := c.addBackup(s, g.node, a, ext, size)
	v := c.volume(g.node, volid)
	v.notes, v.protected = notes, protected
	return volid
}

// BackupFiles are the files an archive holds for one configuration key; nil when it holds none.
func (c *Cluster) BackupFiles(volid, key string) map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, _ := c.anywhere(volid)
	if v == nil || v.archive == nil {
		return nil
	}
	d, ok := v.archive.disks[key]
	if !ok {
		return nil
	}
	return maps.Clone(d.content)
}

// BackupConfig is the configuration an archive holds; nil when it is none.
func (c *Cluster) BackupConfig(volid string) map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, _ := c.anywhere(volid)
	if v == nil || v.archive == nil {
		return nil
	}
	return maps.Clone(v.archive.conf.kv)
}

// Firewall is a guest's firewall as canonical lines, "" for an empty one.
func (c *Cluster) Firewall(vmid int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g := c.guests[vmid]; g != nil {
		return g.fw.text()
	}
	return ""
}

// FirewallSpec is a guest's whole firewall.
type FirewallSpec struct {
	Options map[string]string
	// Aliases maps a name to an address, Sets a name to its entries, "!" in front for nomatch.
	Aliases map[string]string
	Sets    map[string][]string
	// Rules are Proxmox's keys, first rule first.
	Rules []map[string]string
}

// SetFirewall replaces a guest's firewall.
func (c *Cluster) SetFirewall(vmid int, spec FirewallSpec) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := newFirewall()
	maps.Copy(f.options, spec.Options)
	for n, cidr := range spec.Aliases {
		f.aliases[n] = fwAlias{cidr: cidr}
	}
	for n, entries := range spec.Sets {
		s := &fwSet{}
		for _, e := range entries {
			cidr, not := strings.CutPrefix(e, "!")
			s.entries = append(s.entries, fwEntry{cidr: cidr, nomatch: not})
		}
		f.ipsets[n] = s
	}
	for _, r := range spec.Rules {
		f.rules = append(f.rules, maps.Clone(r))
	}
	c.mustGuest(vmid).fw = f
}
