package pvesim

import (
	"path"
	"strings"
)

// startContainer answers at once; whether the container starts is the task's to say.
func startContainer(k *call) (any, error) {
	if k.has("skiplock") && !k.who.isRoot() {
		return nil, paramError("skiplock", "Only root may use this option.")
	}
	g := k.c.guests[k.vmid()]
	if g != nil && g.kind == kindLXC && g.running {
		return nil, die("CT %d already running", k.vmid())
	}
	if err := k.c.checkQuorum(); err != nil {
		return nil, err
	}
	if g != nil && k.c.managed(g) {
		return k.startTask("hastart", itoa(k.vmid()), nil, func(t *task) error {
			t.logf("Requesting HA start for CT %d", k.vmid())
			k.c.ha.resources[g.haID()]["state"] = "started"
			k.c.haAct(g)
			return nil
		}), nil
	}
	return k.startTask("vzstart", itoa(k.vmid()), []int{k.vmid()}, func(t *task) error {
		g, err := k.container()
		if err != nil {
			return err
		}
		if !k.flag("skiplock") {
			if err := g.lockedBut("mounted"); err != nil {
				return err
			}
		}
		return k.c.startContainer(g, t)
	}), nil
}

// startContainer starts a container, or fails where a real start would.
func (c *Cluster) startContainer(g *guest, t *task) error {
	if g == nil {
		return die("no such container")
	}
	failed := die("startup for container '%d' failed", g.vmid)
	if g.isTemplate() {
		return die("you can't start a CT if it's a template")
	}
	if why := c.unwell[g.vmid]; why != "" {
		t.logf("%s", why)
		return failed
	}
	for _, m := range g.conf.mounts() {
		if m.typ() != mountVolume {
			continue
		}
		sid, _, ok := splitVolID(m.volume())
		if !ok {
			return die("unable to parse volume ID '%s'", m.volume())
		}
		if _, err := c.storageActive(sid, g.node); err != nil {
			return err
		}
		if c.volume(g.node, m.volume()) == nil {
			return die("volume '%s' does not exist", m.volume())
		}
		if m.value("quota") == "1" && g.conf.kv["unprivileged"] == "1" {
			return die("Quotas are not supported by unprivileged containers.")
		}
	}
	rootfs := c.volume(g.node, parseMount("rootfs", g.conf.kv["rootfs"]).volume())
	if rootfs == nil {
		return failed
	}
	for _, m := range g.conf.mounts() {
		if link := linkOn(rootfs.content, m.path()); link != "" {
			t.logf("symlink encountered at: %s", link)
			return failed
		}
	}
	p, there := programOf(g.conf, rootfs.content)
	if !there {
		t.logf("__lxc_start: 2107 Failed to spawn container \"%d\"", g.vmid)
		return failed
	}
	g.running, g.started = true, c.now()
	c.runProgram(g, p)
	if !g.running {
		// it was started and has ended before the task could look for it
		return die("unable to get PID for CT %d (not running?)", g.vmid)
	}
	return nil
}

// linkOn finds a symbolic link on the way to a mount point; Proxmox follows none there.
func linkOn(content map[string]string, p string) string {
	for p = cleanPath(p); p != "/"; p = path.Dir(p) {
		if strings.HasPrefix(content[p], linkPrefix) {
			return p
		}
	}
	return ""
}

// FailStart makes every start of a guest fail with a line in the task's log, until it is called
// with an empty one.
func (c *Cluster) FailStart(vmid int, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if why == "" {
		delete(c.unwell, vmid)
		return
	}
	c.unwell[vmid] = why
}

// IgnoreShutdown makes a guest ignore requests to shut down, as one does that hangs.
func (c *Cluster) IgnoreShutdown(vmid int, ignore bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ignore {
		c.stubborn[vmid] = true
	} else {
		delete(c.stubborn, vmid)
	}
}

func (k *call) runningContainer() (*guest, error) {
	g, err := k.container()
	if err != nil {
		return nil, err
	}
	if !g.running {
		return nil, die("CT %d not running", g.vmid)
	}
	return g, nil
}

// haStop is a stop of a guest that HA decides about: the task only asks.
func (k *call) haStop(g *guest) string {
	return k.startTask("hastop", itoa(g.vmid), nil, func(t *task) error {
		t.logf("Requesting HA stop for CT %d", g.vmid)
		k.c.ha.resources[g.haID()]["state"] = "stopped"
		k.c.haAct(g)
		return nil
	})
}

func stopContainer(k *call) (any, error) {
	if k.has("skiplock") && !k.who.isRoot() {
		return nil, paramError("skiplock", "Only root may use this option.")
	}
	g, err := k.runningContainer()
	if err != nil {
		return nil, err
	}
	if k.c.managed(g) {
		return k.haStop(g), nil
	}
	return k.startTask("vzstop", itoa(g.vmid), []int{g.vmid}, func(t *task) error {
		if !k.flag("skiplock") {
			if err := g.checkLock(); err != nil {
				return err
			}
		}
		if !g.running {
			return die("CT %d not running", g.vmid)
		}
		k.c.powerOff(g)
		return nil
	}), nil
}

func shutdownContainer(k *call) (any, error) {
	g, err := k.runningContainer()
	if err != nil {
		return nil, err
	}
	if k.c.managed(g) {
		return k.haStop(g), nil
	}
	return k.startTask("vzshutdown", itoa(g.vmid), []int{g.vmid}, func(t *task) error {
		if err := g.checkLock(); err != nil {
			return err
		}
		if k.c.stubborn[g.vmid] && !k.flag("forceStop") {
			return die("container did not stop")
		}
		k.c.powerOff(g)
		return nil
	}), nil
}

func rebootContainer(k *call) (any, error) {
	g, err := k.runningContainer()
	if err != nil {
		return nil, err
	}
	return k.startTask("vzreboot", itoa(g.vmid), []int{g.vmid}, func(t *task) error {
		k.c.powerOff(g)
		return k.c.startContainer(g, t)
	}), nil
}

// startAll is what a node does when it boots: it starts every guest that is to start with it, or
// with force every one that is named.
func startAll(k *call) (any, error) {
	if err := k.need("/", "VM.PowerMgmt"); err != nil && !k.has("vms") {
		return nil, err
	}
	named := setOf(splitList(k.str("vms"))...)
	return k.startTask("startall", "", nil, func(t *task) error {
		for _, vmid := range k.c.vmids() {
			g := k.c.guests[vmid]
			if g.node != k.node() || g.running || len(named) > 0 && !named[itoa(vmid)] {
				continue
			}
			if g.conf.kv["onboot"] != "1" && !k.flag("force") || g.isTemplate() || g.lock() != "" {
				continue
			}
			t.logf("Starting %s %d", g.kind.label(), vmid)
			if g.kind == kindQEMU {
				g.running, g.started = true, k.c.now()
			} else if err := k.c.startContainer(g, t); err != nil {
				t.logf("%s", err.Error())
			}
		}
		return nil
	}), nil
}

func stopAll(k *call) (any, error) {
	if err := k.need("/", "VM.PowerMgmt"); err != nil && !k.has("vms") {
		return nil, err
	}
	named := setOf(splitList(k.str("vms"))...)
	return k.startTask("stopall", "", nil, func(t *task) error {
		for _, vmid := range k.c.vmids() {
			g := k.c.guests[vmid]
			if g.node == k.node() && g.running && (len(named) == 0 || named[itoa(vmid)]) {
				t.logf("Stopping %s %d", g.kind.label(), vmid)
				k.c.powerOff(g)
			}
		}
		return nil
	}), nil
}
