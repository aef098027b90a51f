package pvesim

import (
	"maps"
	"strings"
)

// vmState is what only virtual machines have beside their configuration.
type vmState struct {
	// paused VMs run and do nothing.
	paused bool
	// cloudInit is the text of the settings that the cloud-init drive was last made from.
	cloudInit map[string]string
}

func newVMState() *vmState { return &vmState{} }

func (v *vmState) clone() *vmState {
	n := *v
	n.cloudInit = maps.Clone(v.cloudInit)
	return &n
}

func (s *Server) registerQEMU() {
	const vm = "/nodes/{node}/qemu/{vmid}"
	s.route("GET", "/nodes/{node}/qemu", listVMs)
	s.route("POST", "/nodes/{node}/qemu", createVM)
	s.route("GET", vm, indexVM)
	s.route("DELETE", vm, destroyVM)
	s.route("GET", vm+"/config", readVMConfig)
	s.route("POST", vm+"/config", updateVMAsync)
	s.route("PUT", vm+"/config", updateVMSync)
	s.route("PUT", vm+"/unlink", unlinkDisks)
	s.route("GET", vm+"/pending", readVMPending)
	s.route("GET", vm+"/cloudinit", readCloudInit)
	s.route("PUT", vm+"/cloudinit", renewCloudInit)
	s.route("GET", vm+"/cloudinit/dump", dumpCloudInit)
	s.route("PUT", vm+"/resize", resizeDisk)
	s.route("POST", vm+"/move_disk", moveDisk)
	s.route("POST", vm+"/clone", cloneVM)
	s.route("POST", vm+"/template", templateVM)
	s.route("GET", vm+"/feature", vmFeature)
	s.route("GET", vm+"/snapshot", listVMSnapshots)
	s.route("POST", vm+"/snapshot", snapshotVM)
	s.route("DELETE", vm+"/snapshot/{snapname}", deleteVMSnapshot)
	s.route("GET", vm+"/snapshot/{snapname}/config", readVMSnapshot)
	s.route("PUT", vm+"/snapshot/{snapname}/config", updateVMSnapshot)
	s.route("POST", vm+"/snapshot/{snapname}/rollback", rollbackVM)
	s.route("GET", vm+"/status/current", vmStatus)
	s.route("POST", vm+"/status/start", startVM)
	s.route("POST", vm+"/status/stop", stopVM)
	s.route("POST", vm+"/status/shutdown", shutdownVM)
	s.route("POST", vm+"/status/reboot", rebootVM)
	s.route("POST", vm+"/status/reset", resetVM)
	s.route("POST", vm+"/status/suspend", suspendVM)
	s.route("POST", vm+"/status/resume", resumeVM)
	s.route("POST", vm+"/agent/ping", pingAgent)
	s.route("GET", vm+"/agent/network-get-interfaces", agentInterfaces)
}

// vmMethod is the method whose schema describes a VM's configuration keys.
func vmMethod() *operation { return apiSchema().operation("POST /nodes/{node}/qemu") }

// thisVM finds the VM that a call's path names.
func (k *call) thisVM() (*guest, error) {
	return k.c.guestOn(k.node(), kindQEMU, k.vmid())
}

// lockedVM waits for the VM's configuration to be free, then finds it and checks its lock word.
func (k *call) lockedVM() (*guest, error) {
	if err := k.c.flock(k.vmid()); err != nil {
		return nil, err
	}
	g, err := k.thisVM()
	if err != nil {
		return nil, err
	}
	return g, g.checkLock()
}

func indexVM(k *call) (any, error) {
	rows := []map[string]any{}
	for _, sub := range []string{"config", "pending", "status", "unlink", "snapshot", "agent", "firewall"} {
		rows = append(rows, map[string]any{"subdir": sub})
	}
	return rows, nil
}

func listVMs(k *call) (any, error) {
	rows := []map[string]any{}
	for _, id := range k.c.vmids() {
		g := k.c.guests[id]
		if g.kind == kindQEMU && g.node == k.node() && k.may(vmPath(id), "VM.Audit") {
			rows = append(rows, k.c.vmRow(g))
		}
	}
	return rows, nil
}

// vmRow are the figures of a VM in the node's list.
func (c *Cluster) vmRow(g *guest) map[string]any {
	row := c.guestLoad(g)
	for _, key := range []string{"diskread", "diskwrite"} {
		delete(row, key)
	}
	row["vmid"], row["status"], row["name"], row["memhost"] = g.vmid, g.status(), g.vmName(), 0
	if g.isTemplate() {
		row["template"] = 1
	}
	if t := g.conf.kv["tags"]; t != "" {
		row["tags"] = t
	}
	if l := g.lock(); l != "" {
		row["lock"] = l
	}
	if g.running {
		row["pid"] = 2000 + g.vmid
	}
	return row
}

// vmName is the VM's name in its own lists.
func (g *guest) vmName() string {
	if n := g.conf.kv["name"]; n != "" {
		return n
	}
	return "VM " + itoa(g.vmid)
}

func vmStatus(k *call) (any, error) {
	g, err := k.thisVM()
	if err != nil {
		return nil, err
	}
	row := k.c.vmRow(g)
	ha := map[string]any{"managed": boolInt(k.c.ha.resources[g.haID()] != nil)}
	if r := k.c.ha.resources[g.haID()]; r != nil {
		ha["state"] = r["state"]
	}
	row["ha"], row["qmpstatus"] = ha, g.status()
	if g.agentEnabled() {
		row["agent"] = 1
	}
	if !g.running {
		return row, nil
	}
	if g.vm.paused {
		row["qmpstatus"] = "paused"
	}
	for _, p := range []string{"cpusome", "cpufull", "iosome", "iofull", "memorysome", "memoryfull"} {
		row["pressure"+p] = 0
	}
	nics := map[string]any{}
	for _, key := range g.conf.keys() {
		if n, ok := strings.CutPrefix(key, "net"); ok && isDigits(n) {
			nics["tap"+itoa(g.vmid)+"i"+n] = map[string]any{"netin": 0, "netout": 0}
		}
	}
	if len(nics) > 0 {
		row["nics"] = nics
	}
	return row, nil
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func (g *guest) agentEnabled() bool {
	p := parseProps(g.conf.kv["agent"], "enabled")
	return isTrue(p.bare)
}

// readVMConfig shows the configuration as it will be after the next start, as it is now with
// current=1, or as it was in a snapshot.
func readVMConfig(k *call) (any, error) {
	g, err := k.thisVM()
	if err != nil {
		return nil, err
	}
	if snap, ok := k.param("snapshot"); ok {
		if k.flag("current") {
			return nil, paramErrors(map[string]string{
				"snapshot": "cannot use 'snapshot' parameter with 'current'", "current": "cannot use 'snapshot' parameter with 'current'",
			})
		}
		s := g.snapshot(snap)
		if s == nil {
			return nil, die("snapshot '%s' does not exist", snap)
		}
		return vmConfigRow(s.conf.kv, g.digest()), nil
	}
	conf := g.conf.kv
	if !k.flag("current") {
		conf = maps.Clone(conf)
		maps.Copy(conf, g.pending.kv)
		for key := range g.pendingDelete {
			delete(conf, key)
		}
	}
	return vmConfigRow(conf, g.digest()), nil
}

// vmConfigRow gives every key its JSON type and hides the password.
func vmConfigRow(conf map[string]string, digest string) map[string]any {
	row := map[string]any{"digest": digest}
	op := vmMethod()
	for key, v := range conf {
		if key == "cipassword" {
			v = "**********"
		}
		row[key] = op.typed(key, v)
	}
	return row
}

// readVMPending lists each key with its present and its coming value.
func readVMPending(k *call) (any, error) {
	g, err := k.thisVM()
	if err != nil {
		return nil, err
	}
	op := vmMethod()
	show := func(key, v string) any {
		if key == "cipassword" {
			return "**********"
		}
		return op.typed(key, v)
	}
	rows := []map[string]any{{"key": "digest", "value": g.digest()}}
	for _, key := range g.conf.keys() {
		row := map[string]any{"key": key, "value": show(key, g.conf.kv[key])}
		if v, ok := g.pending.kv[key]; ok {
			row["pending"] = show(key, v)
		}
		if force, ok := g.pendingDelete[key]; ok {
			row["delete"] = 1 + boolInt(force)
		}
		rows = append(rows, row)
	}
	for _, key := range g.pending.keys() {
		if _, ok := g.conf.kv[key]; !ok {
			rows = append(rows, map[string]any{"key": key, "pending": show(key, g.pending.kv[key])})
		}
	}
	return rows, nil
}
