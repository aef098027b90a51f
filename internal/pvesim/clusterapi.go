package pvesim

import (
	"maps"
	"math"
	"slices"
)

func (s *Server) registerNodes() {
	s.route("GET", "/nodes", listNodes)
	s.route("GET", "/nodes/{node}/status", nodeStatus)
	s.route("GET", "/nodes/{node}/version", version)
	s.route("POST", "/nodes/{node}/startall", startAll)
	s.route("POST", "/nodes/{node}/stopall", stopAll)
}

func (s *Server) registerCluster() {
	s.route("GET", "/cluster/status", clusterStatus)
	s.route("GET", "/cluster/nextid", nextID)
	s.route("GET", "/cluster/resources", clusterResources)
	s.route("GET", "/cluster/options", readOptions)
	s.route("PUT", "/cluster/options", updateOptions)
	s.route("GET", "/cluster/replication", listReplication)
	s.route("POST", "/cluster/replication", createReplication)
	s.route("GET", "/cluster/replication/{id}", readReplication)
	s.route("DELETE", "/cluster/replication/{id}", deleteReplication)
}

func listNodes(k *call) (any, error) {
	rows := []map[string]any{}
	for _, name := range sortedKeys(k.c.nodes) {
		row := k.c.nodeRow(k.c.nodes[name], k.may("/nodes/"+name, "Sys.Audit"))
		row["ssl_fingerprint"] = "2B:9B:ED:5C:60:3F:77:5C:60:F1:23:71:C4:C7:0B:A3:E2:68:D4:B8:E7:F5:1B:02:43:53:5F:BB:2B:B3:DC:67"
		rows = append(rows, row)
	}
	return rows, nil
}

// nodeRow shows figures only to those who may audit the node.
func (c *Cluster) nodeRow(n *node, audit bool) map[string]any {
	row := map[string]any{"id": "node/" + n.name, "node": n.name, "type": "node", "level": "", "status": "offline"}
	if !n.online {
		return row
	}
	row["status"] = "online"
	if audit {
		maps.Copy(row, map[string]any{
			"cpu": 0.01, "maxcpu": 8, "mem": 4 << 30, "maxmem": 32 << 30, "disk": 8 << 30, "maxdisk": 100 << 30, "uptime": 86400,
		})
	}
	return row
}

func nodeStatus(k *call) (any, error) {
	machine := k.c.nodes[k.node()].machine
	if machine == "" {
		machine = "x86_64"
	}
	return map[string]any{
		"current-kernel": map[string]any{"sysname": "Linux", "release": "6.17.2-1-pve", "version": "#1 SMP PREEMPT_DYNAMIC", "machine": machine},
		"uptime":         86400, "pveversion": "pve-manager/" + k.c.opts.Version + "/5a1e0000", "kversion": "Linux 6.17.2-1-pve",
		"cpuinfo": map[string]any{"cpus": 8, "model": "simulated", "sockets": 1, "cores": 8},
		"memory":  map[string]any{"total": 32 << 30, "used": 4 << 30, "free": 28 << 30},
		"rootfs":  map[string]any{"total": 100 << 30, "used": 8 << 30, "avail": 92 << 30, "free": 92 << 30},
		"loadavg": []string{"0.10", "0.10", "0.10"},
	}, nil
}

func clusterStatus(k *call) (any, error) {
	rows := []map[string]any{}
	if len(k.c.nodes) > 1 {
		quorate := 1
		if k.c.noQuorum {
			quorate = 0
		}
		rows = append(rows, map[string]any{"type": "cluster", "id": "cluster", "name": "pvesim", "version": 3, "nodes": len(k.c.nodes), "quorate": quorate})
	}
	for i, name := range sortedKeys(k.c.nodes) {
		online, local := 0, 0
		if k.c.nodes[name].online {
			online = 1
		}
		if name == k.c.local {
			local = 1
		}
		nodeID := i + 1
		if len(k.c.nodes) == 1 {
			// without corosync nobody numbers nodes
			nodeID = 0
		}
		rows = append(rows, map[string]any{"type": "node", "id": "node/" + name, "name": name, "level": "", "ip": "192.0.2." + itoa(10+i), "nodeid": nodeID, "online": online, "local": local})
	}
	return rows, nil
}

// nextID is the lowest free VMID of the range, as a string, reserved for nobody.
func nextID(k *call) (any, error) {
	if v, ok := k.param("vmid"); ok {
		if k.c.guests[atoi(v)] != nil {
			return nil, paramError("vmid", "VM "+v+" already exists")
		}
		return v, nil
	}
	lower, upper := 100, 1000000
	for _, o := range parseProps(k.c.datacfg["next-id"], "").opts {
		switch o.key {
		case "lower":
			lower = atoi(o.value)
		case "upper":
			upper = atoi(o.value)
		}
	}
	for id := lower; id < upper; id++ {
		if k.c.guests[id] == nil {
			return itoa(id), nil
		}
	}
	return nil, die("unable to get any free VMID in range [%d, %d]", lower, upper-1)
}

// guestRow is a guest as cluster/resources shows it.
func (c *Cluster) guestRow(g *guest) map[string]any {
	row := map[string]any{
		"id": g.kind.String() + "/" + itoa(g.vmid), "type": g.kind.String(), "vmid": g.vmid, "node": g.node,
	}
	if l := g.lock(); l != "" {
		row["lock"] = l
	}
	if t := g.conf.kv["tags"]; t != "" {
		row["tags"] = t
	}
	if n := c.nodes[g.node]; n == nil || !n.online {
		row["status"] = "unknown"
		return row
	}
	row["status"], row["name"], row["template"] = g.status(), g.name(), 0
	if g.isTemplate() {
		row["template"] = 1
	}
	maps.Copy(row, c.guestLoad(g))
	row["maxcpu"] = row["cpus"]
	delete(row, "cpus")
	delete(row, "swap")
	delete(row, "maxswap")
	row["memhost"] = 0
	if r := c.ha.resources[g.haID()]; r != nil {
		row["hastate"] = r["state"]
	}
	return row
}

// name is what Proxmox calls the guest in lists.
func (g *guest) name() string {
	key := "hostname"
	if g.kind == kindQEMU {
		key = "name"
	}
	if n := g.conf.kv[key]; n != "" {
		return n
	}
	return g.kind.label() + itoa(g.vmid)
}

// guestLoad are the figures every list of guests carries. They lie: a running container tells the
// size of its file system, a stopped one what its configuration says.
func (c *Cluster) guestLoad(g *guest) map[string]any {
	mem := 512
	if v := g.conf.kv["memory"]; v != "" {
		mem = atoi(v)
	}
	cpus := 1
	if g.kind == kindLXC {
		cpus = 2
	}
	if v := g.conf.kv["cores"]; v != "" {
		cpus = atoi(v)
	}
	load := map[string]any{
		"cpu": 0, "cpus": cpus, "mem": 0, "maxmem": mem << 20, "disk": 0, "maxdisk": c.maxDisk(g),
		"netin": 0, "netout": 0, "diskread": 0, "diskwrite": 0, "uptime": 0,
	}
	if g.kind == kindLXC {
		load["swap"], load["maxswap"] = 0, atoi(g.conf.kv["swap"])<<20
	}
	if g.running {
		load["uptime"] = int(math.Max(0, c.now().Sub(g.started).Seconds()))
		load["mem"] = mem << 19
	}
	return load
}

// clusterResources lists what the caller may audit: no error, only fewer rows.
func clusterResources(k *call) (any, error) {
	typ := k.str("type")
	rows := []map[string]any{}
	if typ == "" || typ == "vm" {
		for _, vmid := range k.c.vmids() {
			if !k.may(vmPath(vmid), "VM.Audit") {
				continue
			}
			row := k.c.guestRow(k.c.guests[vmid])
			if p := k.c.access.poolOf(vmid); p != "" && k.may("/pool/"+p, "Pool.Audit") {
				row["pool"] = p
			}
			rows = append(rows, row)
		}
	}
	if typ == "" || typ == "node" {
		for _, name := range sortedKeys(k.c.nodes) {
			row := k.c.nodeRow(k.c.nodes[name], k.may("/nodes/"+name, "Sys.Audit"))
			row["cgroup-mode"] = 2
			rows = append(rows, row)
		}
	}
	if typ == "" || typ == "storage" {
		rows = append(rows, k.storageResources()...)
	}
	if typ == "" || typ == "sdn" {
		for _, z := range sortedKeys(k.c.sdn.zones) {
			if k.mayAny("/sdn/zones/"+z, "SDN.Audit") {
				rows = append(rows, map[string]any{"id": "sdn/" + k.c.local + "/" + z, "type": "sdn", "sdn": z, "node": k.c.local, "status": "ok"})
			}
		}
	}
	if typ == "" {
		for _, id := range sortedKeys(k.c.access.pools) {
			if k.may("/pool/"+id, "Pool.Audit") {
				rows = append(rows, map[string]any{"id": "/pool/" + id, "type": "pool", "pool": id})
			}
		}
	}
	return rows, nil
}

// readOptions shows all of the data centre's options with Sys.Audit, else only those everybody
// needs to know.
func readOptions(k *call) (any, error) {
	out := map[string]any{}
	for name, v := range k.c.datacfg {
		if !k.may("/", "Sys.Audit") && !slices.Contains([]string{"console", "tag-style", "u2f", "user-tag-access", "registered-tags"}, name) {
			continue
		}
		switch name {
		case "user-tag-access", "tag-style", "next-id", "ha":
			m := map[string]any{}
			for _, o := range parseProps(v, "").opts {
				m[o.key] = o.value
				if name == "user-tag-access" && o.key == "user-allow-list" {
					m[o.key] = splitList(o.value)
				}
			}
			out[name] = m
		case "registered-tags":
			out[name] = splitList(v)
		default:
			out[name] = v
		}
	}
	out["allowed-tags"] = k.allowedTags()
	return out, nil
}

func updateOptions(k *call) (any, error) {
	for name, v := range k.params {
		if name != "delete" {
			k.c.datacfg[name] = v
		}
	}
	for _, name := range splitList(k.str("delete")) {
		delete(k.c.datacfg, name)
	}
	return nil, nil
}
