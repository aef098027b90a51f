package pvesim

import (
	"maps"
	"slices"
	"strings"
	"time"
)

func (s *Server) registerLXC() {
	const g = "/nodes/{node}/lxc/{vmid}"
	s.route("GET", "/nodes/{node}/lxc", listContainers)
	s.route("POST", "/nodes/{node}/lxc", createContainer)
	s.route("GET", g, containerIndex)
	s.route("DELETE", g, destroyContainer)
	s.route("GET", g+"/config", readContainer)
	s.route("PUT", g+"/config", updateContainer)
	s.route("GET", g+"/pending", pendingContainer)
	s.route("GET", g+"/feature", containerFeature)
	s.route("GET", g+"/interfaces", containerInterfaces)
	s.route("GET", g+"/status/current", containerStatus)
	s.route("POST", g+"/status/start", startContainer)
	s.route("POST", g+"/status/stop", stopContainer)
	s.route("POST", g+"/status/shutdown", shutdownContainer)
	s.route("POST", g+"/status/reboot", rebootContainer)
	s.route("POST", g+"/move_volume", moveVolume)
	s.route("PUT", g+"/resize", resizeContainer)
	s.route("GET", g+"/snapshot", listSnapshots)
	s.route("POST", g+"/snapshot", createSnapshot)
	s.route("GET", g+"/snapshot/{snapname}/config", readSnapshot)
	s.route("PUT", g+"/snapshot/{snapname}/config", updateSnapshot)
	s.route("DELETE", g+"/snapshot/{snapname}", deleteSnapshot)
	s.route("POST", g+"/snapshot/{snapname}/rollback", rollbackSnapshot)
	s.route("POST", g+"/clone", cloneContainer)
	s.route("POST", g+"/template", templateContainer)
	s.route("POST", g+"/migrate", migrateContainer)
}

// container finds the container the path names.
func (k *call) container() (*guest, error) {
	return k.c.guestOn(k.node(), kindLXC, k.vmid())
}

// lockedContainer is container after waiting for whatever works on it.
func (k *call) lockedContainer() (*guest, error) {
	if _, err := k.container(); err != nil {
		return nil, err
	}
	if err := k.c.flock(k.vmid()); err != nil {
		return nil, err
	}
	return k.container()
}

func containerIndex(k *call) (any, error) {
	return []map[string]any{{"subdir": "config"}, {"subdir": "status"}, {"subdir": "snapshot"}, {"subdir": "firewall"}}, nil
}

func listContainers(k *call) (any, error) {
	rows := []map[string]any{}
	for _, vmid := range k.c.vmids() {
		g := k.c.guests[vmid]
		if g.kind != kindLXC || g.node != k.node() || !k.may(vmPath(vmid), "VM.Audit") {
			continue
		}
		rows = append(rows, k.c.containerRow(g))
	}
	return rows, nil
}

func (c *Cluster) containerRow(g *guest) map[string]any {
	row := c.guestLoad(g)
	row["vmid"], row["status"], row["name"], row["type"] = g.vmid, g.status(), g.name(), "lxc"
	if l := g.lock(); l != "" {
		row["lock"] = l
	}
	if t := g.conf.kv["tags"]; t != "" {
		row["tags"] = t
	}
	if g.isTemplate() {
		row["template"] = 1
	}
	return row
}

// maxDisk is the figure of lists: the size the configuration names, 4 GiB when it names none.
func (c *Cluster) maxDisk(g *guest) int64 {
	if g.kind == kindQEMU {
		return c.vmMaxDisk(g)
	}
	rootfs := parseMount("rootfs", g.conf.kv["rootfs"])
	if g.running {
		if v := c.volume(g.node, rootfs.volume()); v != nil {
			size := v.size
			if at := c.stuckFS[v.identity]; at != 0 {
				size = at
			}
			return size * 98 / 100
		}
	}
	if n, ok := parseSize(rootfs.value("size")); ok {
		return n
	}
	return 4 << 30
}

func containerStatus(k *call) (any, error) {
	g, err := k.container()
	if err != nil {
		return nil, err
	}
	row := k.c.containerRow(g)
	ha := map[string]any{"managed": 0}
	if r := k.c.ha.resources[g.haID()]; r != nil {
		ha = map[string]any{"managed": 1, "state": r["state"]}
	}
	row["ha"] = ha
	if g.running {
		row["pid"] = 10000 + g.vmid
	}
	return row, nil
}

// lxcIntegers are the keys whose values are JSON numbers; cpulimit, a number in the schema, comes
// as a string all the same.
var lxcIntegers = setOf("onboot", "template", "console", "tty", "cores", "cpuunits", "memory", "swap",
	"protection", "unprivileged", "debug", "snaptime")

func lxcValue(key, value string) any {
	if lxcIntegers[key] && value != "" {
		return atoi(value)
	}
	return value
}

// apiConfig is a section as the API shows it. The environment is masked for callers that may not
// change options, or the whole section is refused to them.
func (k *call) apiConfig(g *guest, c config) (map[string]any, error) {
	out := make(map[string]any, len(c.kv)+2)
	seesEnv := k.may(vmPath(g.vmid), "VM.Config.Options")
	if _, there := c.kv["env"]; there && !seesEnv && k.c.opts.EnvironmentRefused {
		return nil, k.need(vmPath(g.vmid), "VM.Config.Options")
	}
	for key, v := range c.kv {
		if key == "env" && !seesEnv {
			out[key] = "<hidden>"
			continue
		}
		out[key] = lxcValue(key, v)
	}
	if len(c.lxc) > 0 {
		out["lxc"] = c.lxc
	}
	return out, nil
}

// merged is the configuration with its pending changes applied, as GET shows it by default.
func (g *guest) merged() config {
	c := g.conf.clone()
	for key := range g.pendingDelete {
		delete(c.kv, key)
	}
	maps.Copy(c.kv, g.pending.kv)
	return c
}

func readContainer(k *call) (any, error) {
	g, err := k.container()
	if err != nil {
		return nil, err
	}
	if name, ok := k.param("snapshot"); ok && name != "" {
		if k.flag("current") {
			return nil, paramErrors(map[string]string{
				"snapshot": "cannot use 'snapshot' parameter with 'current'", "current": "cannot use 'snapshot' parameter with 'current'",
			})
		}
		s := g.snapshot(name)
		if s == nil {
			return nil, die("snapshot '%s' does not exist", name)
		}
		return k.apiConfigWithDigest(g, s.conf)
	}
	c := g.conf
	if !k.flag("current") {
		c = g.merged()
	}
	return k.apiConfigWithDigest(g, c)
}

func (k *call) apiConfigWithDigest(g *guest, c config) (any, error) {
	out, err := k.apiConfig(g, c)
	if err != nil {
		return nil, err
	}
	out["digest"] = g.digest()
	return out, nil
}

// pendingContainer lists every key with its live value, its pending one, and whether it will go.
func pendingContainer(k *call) (any, error) {
	g, err := k.container()
	if err != nil {
		return nil, err
	}
	live, err := k.apiConfig(g, g.conf)
	if err != nil {
		return nil, err
	}
	delete(live, "lxc")
	live["digest"] = g.digest()
	pending, err := k.apiConfig(g, g.pending)
	if err != nil {
		return nil, err
	}
	rows := []map[string]any{}
	for _, key := range sortedKeys(live) {
		row := map[string]any{"key": key, "value": live[key]}
		if v, ok := pending[key]; ok {
			row["pending"] = v
		}
		if force, ok := g.pendingDelete[key]; ok {
			row["delete"] = 1
			if force {
				row["delete"] = 2
			}
		}
		rows = append(rows, row)
	}
	for _, key := range sortedKeys(pending) {
		if _, ok := live[key]; !ok {
			rows = append(rows, map[string]any{"key": key, "pending": pending[key]})
		}
	}
	return rows, nil
}

func containerFeature(k *call) (any, error) {
	g, err := k.container()
	if err != nil {
		return nil, err
	}
	has := 1
	for _, m := range g.conf.mounts() {
		if !k.c.hasFeature(g.node, m.volume(), k.str("feature"), k.str("snapname")) {
			has = 0
		}
	}
	return map[string]any{"hasFeature": has, "nodes": []string{g.node}}, nil
}

// containerInterfaces tells addresses while the container runs, null when it does not.
func containerInterfaces(k *call) (any, error) {
	g, err := k.container()
	if err != nil || !g.running {
		return nil, err
	}
	rows := []map[string]any{{
		"name": "lo", "hwaddr": "00:00:00:00:00:00", "hardware-address": "00:00:00:00:00:00", "inet": "127.0.0.1/8", "inet6": "::1/128",
		"ip-addresses": []map[string]any{{"ip-address-type": "inet", "ip-address": "127.0.0.1", "prefix": "8"}},
	}}
	for _, key := range g.conf.keys() {
		if !netKeyRE.MatchString(key) {
			continue
		}
		p := parseProps(g.conf.kv[key], "")
		mac := strings.ToLower(p.value("hwaddr"))
		row := map[string]any{"name": p.value("name"), "hwaddr": mac, "hardware-address": mac}
		ip := p.value("ip")
		if ip == "dhcp" {
			ip = "192.0.2." + itoa(100+g.vmid%100) + "/24"
			if l := k.c.sdn.leaseOf(p.value("hwaddr")); l != nil {
				ip = l.ip + "/24"
			}
		}
		// Without a distribution inside, only the host can give addresses. A change while it runs gives one
		// too, until the next start: that is left out here.
		managed := g.conf.kv["ostype"] != "unmanaged" || p.value("host-managed") == "1"
		if managed && strings.Contains(ip, "/") && p.value("link_down") != "1" {
			row["inet"] = ip
			addr, prefix, _ := strings.Cut(ip, "/")
			row["ip-addresses"] = []map[string]any{{"ip-address-type": "inet", "ip-address": addr, "prefix": prefix}}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// powerOff is what happens to a guest that is no longer running: its pending changes take effect.
func (c *Cluster) powerOff(g *guest) {
	if !g.running {
		return
	}
	g.running, g.ends = false, time.Time{}
	if g.kind == kindLXC {
		c.applyPending(g, map[string]string{}, &task{})
	} else {
		c.vmStopped(g)
	}
}

// allowedLocks tells whether a lock word is among those that a method tolerates.
func (g *guest) lockedBut(tolerated ...string) error {
	if slices.Contains(tolerated, g.lock()) {
		return nil
	}
	return g.checkLock()
}
