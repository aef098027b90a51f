package pvesim

import (
	"sort"
	"strings"
)

// create is one POST of a container, from its checks to the end of its task.
type create struct {
	k            *call
	g            *guest
	restore      bool
	unique       bool
	start        bool
	haManaged    bool
	skipFirewall bool
	// unprivileged is what the request says, "" when it says nothing.
	unprivileged    string
	storage         string
	source          string
	pool            string
	password, keys  string
	mounts          map[string]string
	rest            map[string]string
	old             *guest
	restricted      bool
	made            []string
	emsg            string
	ignoreUnpackErr bool
}

// createContainer makes a container from a template or a backup. What can be checked is checked
// before the answer; volumes and files are the task's.
func createContainer(k *call) (any, error) {
	vmid := atoi(k.str("vmid"))
	set := k.configParams()
	take := func(name string) string {
		v := set[name]
		delete(set, name)
		return v
	}
	cr := &create{k: k, restricted: !k.who.isRoot()}
	take("vmid")
	take("bwlimit")
	cr.ignoreUnpackErr = isTrue(take("ignore-unpack-errors"))
	cr.start, cr.haManaged = isTrue(take("start")), isTrue(take("ha-managed"))
	cr.unprivileged = take("unprivileged")
	cr.restore, cr.unique = isTrue(take("restore")), isTrue(take("unique"))
	force := isTrue(take("force"))
	cr.password, cr.keys, cr.pool = take("password"), take("ssh-public-keys"), take("pool")
	cr.source, cr.storage = take("ostemplate"), take("storage")
	if cr.storage == "" {
		cr.storage = "local"
	}
	if !cr.restore && cr.unprivileged == "" {
		cr.unprivileged = "1"
	}
	if k.c.held(vmid) && k.c.guests[vmid] != nil && !force {
		return nil, k.c.checkUnused(vmid)
	}
	if err := k.c.flock(vmid); err != nil {
		return nil, err
	}
	existing := k.c.guests[vmid]
	overwrite := existing != nil && existing.kind == kindLXC && existing.node == k.node() && cr.restore && force
	if overwrite {
		if existing.running {
			return nil, die("can't overwrite running container")
		}
		if existing.protected() {
			return nil, die("unable to restore CT %d - protection mode enabled", vmid)
		}
	} else if err := k.c.checkUnused(vmid); err != nil {
		return nil, err
	}
	if err := cr.checkKeys(); err != nil {
		return nil, err
	}
	if err := k.checkPool(cr.pool); err != nil {
		return nil, err
	}
	var err error
	if cr.skipFirewall, err = k.mayCreateCT(vmid, cr.pool, overwrite); err != nil {
		return nil, err
	}
	if err := cr.mayModify(vmid, set); err != nil {
		return nil, err
	}
	content := "vztmpl"
	if cr.restore {
		content = "backup"
	}
	if err := k.volumeAccess(vmid, cr.source, content); err != nil {
		return nil, err
	}
	if err := cr.sortParams(set); err != nil {
		return nil, err
	}
	if err := k.c.checkQuorum(); err != nil {
		return nil, err
	}
	cr.emsg = "unable to create CT " + itoa(vmid) + " -"
	if cr.restore {
		cr.emsg = "unable to restore CT " + itoa(vmid) + " -"
	}
	g := newGuest(vmid, kindLXC, k.node())
	if err := k.c.changeContainer(g, cr.rest, nil, nil); err != nil {
		return nil, err
	}
	if overwrite {
		if err := existing.checkLock(); err != nil {
			return nil, die("%s %s", cr.emsg, err.Error())
		}
		cr.old = existing.clone()
	}
	if isTrue(cr.unprivileged) {
		g.conf.kv["unprivileged"] = "1"
	}
	cr.g = g
	// until the task has set the guest up, its file holds the lock and nothing else
	stub := newGuest(vmid, kindLXC, k.node())
	stub.conf.kv["lock"] = "create"
	if overwrite {
		stub = existing
		stub.conf.kv["lock"] = "create"
	}
	k.c.guests[vmid] = stub
	typ := "vzcreate"
	if cr.restore {
		typ = "vzrestore"
	}
	upid := k.startTask(typ, itoa(vmid), []int{vmid}, cr.run)
	if t := k.c.task(upid); t.exit == "" {
		t.abort = cr.abort
	}
	return upid, nil
}

// abort is the end of a create that is told to stop: nothing is left of it.
func (cr *create) abort() string {
	cr.giveUp()
	return cr.emsg + " received interrupt"
}

// giveUp takes back what the request wrote before its task began.
func (cr *create) giveUp() {
	if cr.old != nil {
		delete(cr.k.c.guests[cr.g.vmid].conf.kv, "lock")
		return
	}
	delete(cr.k.c.guests, cr.g.vmid)
}

// checkKeys validates public keys as far as the simulator needs: one key a line.
func (cr *create) checkKeys() error {
	for line := range strings.SplitSeq(cr.keys, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if !strings.HasPrefix(line, "ssh-") && !strings.HasPrefix(line, "ecdsa-") && !strings.HasPrefix(line, "sk-") {
			return die("SSH public key validation error")
		}
	}
	return nil
}

func (cr *create) mayModify(vmid int, set map[string]string) error {
	if err := cr.k.mayModifyCT(vmid, cr.pool, nil, set, nil, isTrue(cr.unprivileged)); err != nil {
		return err
	}
	if cr.unprivileged != "" && !isTrue(cr.unprivileged) && !cr.k.who.isRoot() {
		if err := cr.k.need("/", "Sys.Modify"); err != nil {
			return err
		}
	}
	if cr.haManaged {
		if err := cr.k.need("/", "Sys.Console"); err != nil {
			return err
		}
	}
	// unlike the rights above, tags are checked without the pool
	if tags, ok := set["tags"]; ok {
		return cr.k.checkTags(vmid, "", tags)
	}
	return nil
}

// sortParams tells volumes from the rest and checks the storages they are on.
func (cr *create) sortParams(set map[string]string) error {
	cr.mounts, cr.rest = map[string]string{}, map[string]string{}
	for opt, v := range set {
		switch {
		case isMountKey(opt):
			if bareSizeRE.MatchString(v) {
				v = cr.storage + ":" + v
			}
			cr.mounts[opt] = v
		case unusedKeyRE.MatchString(opt):
		default:
			cr.rest[opt] = v
		}
	}
	if len(cr.mounts) > 0 && cr.mounts["rootfs"] == "" {
		return die("mount points configured, but 'rootfs' not set - aborting")
	}
	if len(cr.mounts) == 0 {
		return cr.checkStorage(cr.storage)
	}
	for _, opt := range sortedKeys(cr.mounts) {
		m := parseMount(opt, cr.mounts[opt])
		if m.typ() != mountVolume {
			continue
		}
		sid, _, ok := splitVolID(m.volume())
		if d := newDiskRE.FindStringSubmatch(m.volume()); d != nil {
			sid, ok = d[1], true
		}
		if !ok {
			return die("unable to parse volume ID '%s'", m.volume())
		}
		if err := cr.checkStorage(sid); err != nil {
			return err
		}
	}
	return nil
}

func (cr *create) checkStorage(sid string) error {
	s, err := cr.k.c.storageEnabled(sid, cr.k.node())
	if err != nil {
		return err
	}
	if !s.has("rootdir") {
		return paramError("storage", "storage '"+sid+"' does not support container directories")
	}
	if err := cr.k.need("/storage/"+sid, "Datastore.AllocateSpace"); err != nil {
		return err
	}
	_, err = cr.k.c.storageActive(sid, cr.k.node())
	return err
}

// run is the task: volumes, content, configuration.
func (cr *create) run(t *task) error {
	c, g := cr.k.c, cr.g
	t.checkpoint("stub")
	if t.doomed != "" {
		cr.giveUp()
		return die("%s", t.doomed)
	}
	err := cr.build(t)
	if err != nil {
		for _, v := range cr.made {
			_, _ = c.free(g.node, v)
		}
		delete(c.guests, g.vmid)
		return die("%s %s", cr.emsg, err.Error())
	}
	if cr.pool != "" {
		if in := c.access.poolOf(g.vmid); in != "" && in != cr.pool {
			return die("VM %d is already a member of pool '%s'", g.vmid, in)
		}
		p := c.access.pools[cr.pool]
		if p == nil {
			return die("pool '%s' does not exist", cr.pool)
		}
		p.vms[g.vmid] = true
	}
	if cr.haManaged {
		c.ha.resources[g.haID()] = map[string]string{"state": map[bool]string{true: "started", false: "stopped"}[cr.start]}
	}
	if cr.start {
		cr.k.startTaskOn(g.node, "vzstart", itoa(g.vmid), nil, func(st *task) error { return c.startContainer(c.guests[g.vmid], st) })
	}
	return nil
}

func (cr *create) build(t *task) error {
	c, g := cr.k.c, cr.g
	var arch *archive
	if cr.restore {
		t.logf("recovering backed-up configuration from '%s'", cr.source)
		v := c.volume(g.node, cr.source)
		if v == nil || v.archive == nil || v.archive.kind != kindLXC {
			return die("volume '%s' does not exist", cr.source)
		}
		arch = v.archive
		if err := cr.planRestore(arch); err != nil {
			return err
		}
	}
	if len(cr.mounts) == 0 {
		cr.mounts["rootfs"] = cr.storage + ":4"
	}
	keys := sortedKeys(cr.mounts)
	sort.SliceStable(keys, func(i, j int) bool { return mountOrder(keys[i]) < mountOrder(keys[j]) })
	for _, opt := range keys {
		m, volid, err := c.allocMount(g, parseMount(opt, cr.mounts[opt]), t)
		if volid != "" {
			cr.made = append(cr.made, volid)
		}
		if err != nil {
			return err
		}
		g.conf.kv[opt] = m.String()
	}
	t.checkpoint("allocated")
	if cr.old != nil {
		if err := cr.destroyOld(t); err != nil {
			return err
		}
	}
	for _, m := range g.conf.mounts() {
		if m.typ() == mountVolume && c.volume(g.node, m.volume()) == nil {
			return die("volume '%s' does not exist", m.volume())
		}
	}
	if cr.restore {
		if err := cr.unpackArchive(arch, t); err != nil {
			return err
		}
	} else if err := cr.unpackTemplate(t); err != nil {
		return err
	}
	cr.defaults()
	c.guests[g.vmid] = g
	return nil
}

// defaults are the keys that only the very last write of a create adds.
func (cr *create) defaults() {
	for key, v := range map[string]string{"hostname": "CT" + itoa(cr.g.vmid), "memory": "512", "swap": "512"} {
		if _, ok := cr.g.conf.kv[key]; !ok {
			cr.g.conf.kv[key] = v
		}
	}
}
