package pvesim

import (
	"maps"
	"slices"
	"sort"
	"strings"
)

// lxcOptions are the keys that delete and revert know.
func lxcOptionExists(key string) bool {
	if isMountKey(key) || unusedKeyRE.MatchString(key) || netKeyRE.MatchString(key) || devKeyRE.MatchString(key) {
		return true
	}
	return slices.Contains(lxcKeys, key)
}

var lxcKeys = strings.Fields(`lock onboot startup template arch ostype console tty cores cpulimit cpuunits memory swap
	hostname description searchdomain nameserver timezone cmode entrypoint env protection unprivileged features
	hookscript tags debug`)

// updateContainer is PUT config: all or nothing, and at once.
func updateContainer(k *call) (any, error) {
	g, err := k.lockedContainer()
	if err != nil {
		return nil, err
	}
	remove, revert := splitList(k.str("delete")), splitList(k.str("revert"))
	set := k.configParams("delete", "revert", "digest")
	if len(remove)+len(revert)+len(set) == 0 {
		return nil, die("no options specified")
	}
	for name, opts := range map[string][]string{"delete": remove, "revert": revert} {
		for _, opt := range opts {
			if !lxcOptionExists(opt) {
				return nil, paramError(name, "unknown option '"+opt+"'")
			}
			if _, both := set[opt]; both {
				return nil, paramError(name, "you can't use '-"+opt+"' and -"+name+" "+opt+"' at the same time")
			}
		}
	}
	if err := g.checkLock(); err != nil {
		return nil, err
	}
	if err := checkDigest(k, g); err != nil {
		return nil, err
	}
	unprivileged := g.conf.kv["unprivileged"] == "1"
	if err := k.mayModifyCT(g.vmid, "", g.conf.kv, nil, slices.Concat(remove, revert), unprivileged); err != nil {
		return nil, err
	}
	if err := k.mayModifyCT(g.vmid, "", g.conf.kv, set, nil, unprivileged); err != nil {
		return nil, err
	}
	if v, ok := set["tags"]; ok {
		if err := k.checkTags(g.vmid, g.conf.kv["tags"], v); err != nil {
			return nil, err
		}
	}
	if slices.Contains(remove, "tags") {
		if err := k.checkTags(g.vmid, g.conf.kv["tags"], ""); err != nil {
			return nil, err
		}
	}
	if err := k.c.checkWritable(); err != nil {
		return nil, err
	}
	return nil, k.c.changeContainer(g, set, remove, revert)
}

// checkWritable is the failure of a write to the cluster file system without quorum.
func (c *Cluster) checkWritable() error {
	if c.noQuorum {
		return die("unable to open file '/etc/pve/nodes/%s/lxc' - Permission denied", c.local)
	}
	return nil
}

// configParams are the parameters that are configuration keys.
func (k *call) configParams(but ...string) map[string]string {
	set := maps.Clone(k.params)
	for n := range k.vars {
		delete(set, n)
	}
	for _, n := range but {
		delete(set, n)
	}
	return set
}

const textDigest = "detected modified configuration - file changed by other user? Try again."

func checkDigest(k *call, g *guest) error {
	if d, ok := k.param("digest"); ok && d != "" && d != g.digest() {
		return die(textDigest)
	}
	return nil
}

// changeContainer writes changes into the pending section and applies what can be applied now. On
// an error nothing of the file changes; a volume that was made for it stays, unreferenced.
func (c *Cluster) changeContainer(g *guest, set map[string]string, remove, revert []string) error {
	n := g.clone()
	for _, opt := range revert {
		delete(n.pending.kv, opt)
		delete(n.pendingDelete, opt)
	}
	for _, opt := range remove {
		if err := n.markDeleted(opt); err != nil {
			return err
		}
	}
	for _, opt := range sortedKeys(set) {
		v, err := c.checkLXCValue(n, opt, set[opt])
		if err != nil {
			return err
		}
		n.pending.set(opt, v)
		if opt == "description" && foldDescription(v) == "" {
			n.pending.kv[opt] = ""
		}
		delete(n.pendingDelete, opt)
	}
	n.cleanupPending()
	errs := map[string]string{}
	if n.running {
		c.hotplugPending(n, errs)
	} else {
		c.applyPending(n, errs, &task{})
	}
	if len(errs) > 0 {
		return paramErrors(errs)
	}
	n.conf.dropUsedUnused()
	*g = *n
	return nil
}

// markDeleted queues a key for removal; one that is not set is ignored.
func (g *guest) markDeleted(opt string) error {
	_, live := g.conf.kv[opt]
	_, pending := g.pending.kv[opt]
	if !live && !pending {
		return nil
	}
	switch {
	case opt == "memory" || opt == "rootfs" || opt == "ostype":
		return die("unable to delete required option '%s'", opt)
	case unusedKeyRE.MatchString(opt), mpKeyRE.MatchString(opt):
		if g.protected() {
			return die("can't remove CT %d drive '%s' - protection mode enabled", g.vmid, opt)
		}
	case opt == "unprivileged":
		return die("unable to delete read-only option: '%s'", opt)
	}
	delete(g.pending.kv, opt)
	g.pendingDelete[opt] = false
	return nil
}

// checkLXCValue is what Proxmox checks of one new value, and the form it is stored in.
func (c *Cluster) checkLXCValue(g *guest, opt, v string) (string, error) {
	switch {
	case isMountKey(opt):
		if g.protected() {
			return "", die("can't update CT %d drive '%s' - protection mode enabled", g.vmid, opt)
		}
		return v, c.checkRootdir(parseMount(opt, v))
	case opt == "unprivileged":
		return "", die("unable to modify read-only option: '%s'", opt)
	case opt == "tags":
		return normalTags(v), nil
	case opt == "env":
		return storedEnv(v), nil
	case opt == "cpuunits":
		return itoa(min(max(atoi(v), 1), 10000)), nil
	case netKeyRE.MatchString(opt):
		p := parseProps(v, "")
		if b := p.value("bridge"); b != "" && !c.bridgeExists(g.node, b) {
			return "", die("bridge '%s' does not exist", b)
		}
		if isTrue(p.value("host-managed")) && p.value("ip6") == "auto" {
			return "", die("SLAAC is not supported for host-managed network configuration.")
		}
		return v, nil
	default:
		return v, nil
	}
}

// checkRootdir refuses a volume on a storage that is not for containers.
func (c *Cluster) checkRootdir(m mount) error {
	if m.typ() != mountVolume {
		return nil
	}
	sid, _, ok := splitVolID(m.volume())
	if d := newDiskRE.FindStringSubmatch(m.volume()); d != nil {
		sid, ok = d[1], true
	}
	if !ok {
		return die("unable to parse volume ID '%s'", m.volume())
	}
	s, err := c.storage(sid)
	if err != nil {
		return err
	}
	if !s.has("rootdir") {
		return die("storage '%s' does not allow content type 'rootdir' (Container)", sid)
	}
	return nil
}

func (c *Cluster) bridgeExists(nodeName, bridge string) bool {
	n := c.nodes[nodeName]
	return n != nil && n.bridges[bridge] || c.sdn.vnets[bridge] != nil
}

// cleanupPending forgets pending values that are no change.
func (g *guest) cleanupPending() {
	for k, v := range g.pending.kv {
		if old, ok := g.conf.kv[k]; ok && old == v {
			delete(g.pending.kv, k)
		}
	}
	for k := range g.pendingDelete {
		if _, ok := g.conf.kv[k]; !ok {
			delete(g.pendingDelete, k)
		}
	}
}

// lxcLive are the keys that change without an effect on the running container.
var lxcLive = setOf("description", "onboot", "startup", "protection", "hostname", "hookscript", "cores", "tags", "lock")

// lxcHot are those that are changed in the running container.
var lxcHot = setOf("cpulimit", "cpuunits", "memory", "swap")

// hotplugPending applies to a running container what can be; the rest waits for its next stop.
func (c *Cluster) hotplugPending(g *guest, errs map[string]string) {
	for _, opt := range sortedKeys(g.pendingDelete) {
		switch {
		case lxcLive[opt], opt == "swap", opt == "cpulimit", opt == "cpuunits", netKeyRE.MatchString(opt):
		case unusedKeyRE.MatchString(opt):
			if err := c.deleteUnused(g, opt); err != nil {
				errs[opt] = "unable to hotplug " + opt + ": " + err.Error() + "\n"
				continue
			}
		default:
			continue
		}
		delete(g.conf.kv, opt)
		delete(g.pendingDelete, opt)
	}
	for _, opt := range sortedKeys(g.pending.kv) {
		switch {
		case lxcLive[opt], lxcHot[opt]:
			g.moveLive(opt, g.pending.kv[opt])
		case netKeyRE.MatchString(opt):
			g.moveLive(opt, printNet(c.parseNet(g.pending.kv[opt])))
		case devKeyRE.MatchString(opt):
			if g.conf.kv[opt] == "" {
				g.moveLive(opt, g.pending.kv[opt])
			}
		case mpKeyRE.MatchString(opt):
			if g.conf.kv[opt] != "" {
				continue
			}
			m, _, err := c.allocMount(g, parseMount(opt, g.pending.kv[opt]), nil)
			if err == nil && m.typ() == mountVolume && c.volume(g.node, m.volume()) == nil {
				err = die("volume '%s' does not exist", m.volume())
			}
			if err != nil {
				errs[opt] = "unable to hotplug " + opt + ": " + err.Error() + "\n"
				continue
			}
			g.moveLive(opt, m.String())
		}
	}
}

func (g *guest) moveLive(opt, value string) {
	delete(g.pending.kv, opt)
	g.conf.set(opt, value)
}

func (c *Cluster) deleteUnused(g *guest, opt string) error {
	volid := g.conf.kv[opt]
	if g.inSnapshotOrPending(volid) || slices.Contains(g.conf.volumeIDs(false), volid) {
		return nil
	}
	return c.deleteOwned(g, volid, &task{})
}

// applyPending applies every change to a stopped container.
func (c *Cluster) applyPending(g *guest, errs map[string]string, t *task) {
	fail := func(opt string, err error) {
		errs[opt] = "unable to apply pending change " + opt + " : " + err.Error() + "\n"
	}
	for _, opt := range sortedKeys(g.pendingDelete) {
		switch {
		case mpKeyRE.MatchString(opt):
			c.detach(g, opt)
		case unusedKeyRE.MatchString(opt):
			if err := c.deleteUnused(g, opt); err != nil {
				fail(opt, err)
				continue
			}
		case netKeyRE.MatchString(opt):
			c.sdn.release(parseProps(g.conf.kv[opt], "").value("hwaddr"))
		}
		delete(g.conf.kv, opt)
		delete(g.pendingDelete, opt)
	}
	g.cleanupPending()
	keys := sortedKeys(g.pending.kv)
	sort.SliceStable(keys, func(i, j int) bool { return mountSort(keys[i]) < mountSort(keys[j]) })
	for _, opt := range keys {
		v := g.pending.kv[opt]
		switch {
		case mpKeyRE.MatchString(opt):
			m, _, err := c.allocMount(g, parseMount(opt, v), t)
			if err != nil {
				fail(opt, err)
				continue
			}
			if old := parseMount(opt, g.conf.kv[opt]); old.volume() != m.volume() {
				c.detach(g, opt)
			}
			v = m.String()
		case netKeyRE.MatchString(opt):
			v = printNet(c.parseNet(v))
		}
		g.moveLive(opt, v)
	}
	g.conf.dropUsedUnused()
}

func mountSort(key string) int {
	if mpKeyRE.MatchString(key) {
		return atoi(key[2:])
	}
	return -1
}

// detach turns the volume of a mount point into an unused one, if the container owns it and no
// other key mounts it.
func (c *Cluster) detach(g *guest, opt string) {
	old, ok := g.conf.kv[opt]
	if !ok {
		return
	}
	m := parseMount(opt, old)
	if m.typ() != mountVolume {
		return
	}
	if owner, ok := c.volumeOwner(m.volume()); ok && owner == g.vmid {
		g.conf.addUnused(m.volume())
	}
}
