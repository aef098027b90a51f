package pvesim

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"sync"
	"time"
)

// Options are the choices one makes when a cluster is made. The zero value is a cluster of one
// node "pve1" with no storage and no guest.
type Options struct {
	// Nodes names the nodes; the first one answers the API. Default: pve1.
	Nodes []string
	// Version is what /version tells, default "9.2.11".
	Version string
	// TaskDuration is how long a task takes. Zero: it is finished before its UPID is answered.
	// Otherwise its effect is seen at its end.
	TaskDuration time.Duration
	// Now is the clock, default time.Now.
	Now func() time.Time
	// EnvironmentRefused makes the server refuse the whole configuration of a container with an environment
	// to callers that may not read it, as pve-container 6.1.10 does; others show "<hidden>" in its place.
	EnvironmentRefused bool
	// Console, when set, is told every line that the program of a container prints. It is called while the
	// cluster is held, so it must not ask it anything.
	Console func(vmid int, line string)
}

// Cluster is the simulated world. Its exported methods may be called from several goroutines and
// while a server answers requests.
type Cluster struct {
	mu sync.Mutex

	opts     Options
	nodes    map[string]*node
	local    string
	noQuorum bool
	guests   map[int]*guest
	storages map[string]*storage
	// registry holds what the nodes can pull, by reference.
	registry map[string]published
	access   *access
	tasks    []*task
	nextPID  int
	// ids numbers everything that needs a stable identity: volumes, MAC addresses, UUIDs.
	ids      int
	ha       haState
	jobs     map[string]*backupJob
	repl     map[string]map[string]string
	sdn      *sdnState
	datacfg  map[string]string
	unwell   map[int]string
	stubborn map[int]bool
	// stuckFS holds, by the identity of a volume, the size in bytes that its file system stays at
	// although the volume grew; 0 until it does.
	stuckFS map[string]int64
}

// guestKind tells containers from virtual machines.
type guestKind int

const (
	kindLXC guestKind = iota + 1
	kindQEMU
)

// String is the type word of the API.
func (k guestKind) String() string {
	switch k {
	case kindLXC:
		return "lxc"
	case kindQEMU:
		return "qemu"
	}
	return fmt.Sprintf("guestKind(%d)", int(k))
}

// label is how Proxmox calls such a guest in messages.
func (k guestKind) label() string {
	if k == kindQEMU {
		return "VM"
	}
	return "CT"
}

type node struct {
	name   string
	online bool
	// bridges are the bridges that exist on the node.
	bridges map[string]bool
	// machine is what the kernel calls the processor, "" for x86_64.
	machine string
}

// guest is one container or virtual machine, on one node.
type guest struct {
	vmid int
	kind guestKind
	node string

	conf          config
	pending       config
	pendingDelete map[string]bool
	snapshots     []*snapshot

	running bool
	started time.Time
	// ends is when the program of a running container ends by itself, the zero time when it does not.
	ends time.Time
	fw   *firewall
	// vm is what only virtual machines have, nil for containers.
	vm *vmState
}

func newGuest(vmid int, kind guestKind, node string) *guest {
	g := &guest{
		vmid: vmid, kind: kind, node: node,
		conf: newConfig(), pending: newConfig(), pendingDelete: map[string]bool{},
		fw: newFirewall(),
	}
	if kind == kindQEMU {
		g.vm = newVMState()
	}
	return g
}

func (g *guest) clone() *guest {
	n := *g
	n.conf, n.pending = g.conf.clone(), g.pending.clone()
	n.pendingDelete = maps.Clone(g.pendingDelete)
	n.snapshots = nil
	for _, s := range g.snapshots {
		n.snapshots = append(n.snapshots, &snapshot{s.name, s.conf.clone()})
	}
	n.fw = g.fw.clone()
	if g.vm != nil {
		n.vm = g.vm.clone()
	}
	return &n
}

func (g *guest) snapshot(name string) *snapshot {
	for _, s := range g.snapshots {
		if s.name == name {
			return s
		}
	}
	return nil
}

func (g *guest) lock() string     { return g.conf.kv["lock"] }
func (g *guest) protected() bool  { return g.conf.kv["protection"] == "1" }
func (g *guest) isTemplate() bool { return g.conf.kv["template"] == "1" }

// checkLock refuses when the configuration carries a lock word.
func (g *guest) checkLock() error {
	if l := g.lock(); l != "" {
		return die("%s is locked (%s)", g.kind.label(), l)
	}
	return nil
}

// haID is the guest's resource id in HA.
func (g *guest) haID() string {
	if g.kind == kindQEMU {
		return fmt.Sprintf("vm:%d", g.vmid)
	}
	return fmt.Sprintf("ct:%d", g.vmid)
}

func (g *guest) status() string {
	if g.running {
		return "running"
	}
	return "stopped"
}

// NewCluster makes an empty cluster with the built-in roles and root@pam.
func NewCluster(o Options) *Cluster {
	if len(o.Nodes) == 0 {
		o.Nodes = []string{"pve1"}
	}
	if o.Version == "" {
		o.Version = "9.2.11"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Cluster{
		opts: o, local: o.Nodes[0],
		nodes: map[string]*node{}, guests: map[int]*guest{}, storages: map[string]*storage{},
		access: newAccess(), nextPID: 0x1000,
		ha: newHAState(), jobs: map[string]*backupJob{}, repl: map[string]map[string]string{},
		sdn: newSDNState(), datacfg: map[string]string{}, unwell: map[int]string{}, stubborn: map[int]bool{}, stuckFS: map[string]int64{},
	}
	for _, n := range o.Nodes {
		c.nodes[n] = &node{name: n, online: true, bridges: map[string]bool{"vmbr0": true}}
	}
	return c
}

// Clone is a deep copy of the world: what happens to one is not seen in the other. Running tasks
// are brought to their end first.
func (c *Cluster) Clone() *Cluster {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finishAll()
	n := &Cluster{
		opts: c.opts, local: c.local, noQuorum: c.noQuorum,
		nodes: map[string]*node{}, guests: map[int]*guest{}, storages: map[string]*storage{},
		access: c.access.clone(), nextPID: c.nextPID, ids: c.ids,
		ha: c.ha.clone(), jobs: map[string]*backupJob{}, repl: map[string]map[string]string{},
		sdn: c.sdn.clone(), datacfg: maps.Clone(c.datacfg), unwell: maps.Clone(c.unwell), stubborn: maps.Clone(c.stubborn), stuckFS: maps.Clone(c.stuckFS),
		tasks: slices.Clone(c.tasks), registry: maps.Clone(c.registry),
	}
	for k, v := range c.nodes {
		nn := *v
		nn.bridges = maps.Clone(v.bridges)
		n.nodes[k] = &nn
	}
	for k, v := range c.guests {
		n.guests[k] = v.clone()
	}
	for k, v := range c.storages {
		n.storages[k] = v.clone()
	}
	for k, v := range c.jobs {
		n.jobs[k] = v.clone()
	}
	for k, v := range c.repl {
		n.repl[k] = maps.Clone(v)
	}
	return n
}

// id gives the next number of the cluster's one counter.
func (c *Cluster) id() int {
	c.ids++
	return c.ids
}

// newMAC is an address under Proxmox's prefix that no other call gets.
func (c *Cluster) newMAC() string {
	n := c.id()
	return fmt.Sprintf("BC:24:11:%02X:%02X:%02X", n>>16&0xff, n>>8&0xff, n&0xff)
}

// newUUID is a UUID that no other call gets.
func (c *Cluster) newUUID() string {
	return fmt.Sprintf("5f0e6a10-0000-4000-8000-%012x", c.id())
}

func (c *Cluster) now() time.Time { return c.opts.Now() }

func (c *Cluster) vmids() []int {
	ids := make([]int, 0, len(c.guests))
	for id := range c.guests {
		ids = append(ids, id)
	}
	sort.Ints(ids)
	return ids
}

// guestOn finds a guest by the node and kind in the request's path; Proxmox looks for the
// configuration file there and nowhere else.
func (c *Cluster) guestOn(nodeName string, kind guestKind, vmid int) (*guest, error) {
	g := c.guests[vmid]
	if g == nil || g.node != nodeName || g.kind != kind {
		dir := "lxc"
		if kind == kindQEMU {
			dir = "qemu-server"
		}
		return nil, die("Configuration file 'nodes/%s/%s/%d.conf' does not exist", nodeName, dir, vmid)
	}
	return g, nil
}

// checkUnused refuses a VMID that any guest of the cluster has.
func (c *Cluster) checkUnused(vmid int) error {
	if g := c.guests[vmid]; g != nil {
		return die("%s %d already exists on node '%s'", g.kind.label(), vmid, g.node)
	}
	return nil
}

// checkQuorum refuses what needs a writable cluster file system.
func (c *Cluster) checkQuorum() error {
	if c.noQuorum {
		return die("cluster not ready - no quorum?")
	}
	return nil
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

func itoa(n int) string { return strconv.Itoa(n) }
