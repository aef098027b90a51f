package pvesim

import "slices"

func (s *Server) registerStorage() {
	s.route("GET", "/nodes/{node}/storage", nodeStorages)
	s.route("GET", "/nodes/{node}/storage/{storage}/status", storageStatus)
	s.route("GET", "/nodes/{node}/storage/{storage}/content", listContent)
	s.route("POST", "/nodes/{node}/storage/{storage}/content", allocContent)
	s.route("GET", "/nodes/{node}/storage/{storage}/content/{volume}", showVolume)
	s.route("PUT", "/nodes/{node}/storage/{storage}/content/{volume}", changeVolume)
	s.route("DELETE", "/nodes/{node}/storage/{storage}/content/{volume}", deleteVolume)
	s.registerStorageConfig()
	s.registerUpload()
	s.registerPrune()
	s.registerOCIPull()
}

// state is what the status endpoints tell of a storage on a node.
func (c *Cluster) storageState(s *storage, node string) map[string]any {
	enabled := !s.disabled() && s.onNode(node)
	m := map[string]any{
		"type": s.typ, "content": s.conf["content"], "shared": boolInt(s.shared()),
		"enabled": boolInt(enabled), "active": 0, "total": int64(0), "used": int64(0), "avail": int64(0),
	}
	if enabled && !s.unreachable {
		used := s.usedOn(node)
		m["active"], m["total"], m["used"], m["avail"] = 1, s.total, used, max(0, s.total-used)
	}
	return m
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func nodeStorages(k *call) (any, error) {
	rows := []map[string]any{}
	node := k.node()
	if want := k.str("storage"); want != "" && k.c.storages[want] == nil {
		return nil, paramError("storage", "No such storage.")
	}
	for _, id := range sortedKeys(k.c.storages) {
		s := k.c.storages[id]
		switch {
		case !k.mayAny("/storage/"+id, "Datastore.Audit", "Datastore.AllocateSpace"):
			continue
		case k.has("storage") && k.str("storage") != id:
			continue
		case k.flag("enabled") && s.disabled():
			continue
		case k.has("content") && (s.disabled() || !s.onNode(node) || !slices.ContainsFunc(splitList(k.str("content")), s.has)):
			continue
		case k.has("target") && k.str("target") != node && (!s.shared() || !s.onNode(node) || !s.onNode(k.str("target"))):
			continue
		}
		m := k.c.storageState(s, node)
		m["storage"] = id
		if m["active"] == 1 && s.total > 0 {
			m["used_fraction"] = float64(s.usedOn(node)) / float64(s.total)
		}
		rows = append(rows, m)
	}
	return rows, nil
}

func storageStatus(k *call) (any, error) {
	s, err := k.c.storage(k.vars["storage"])
	if err != nil {
		return nil, err
	}
	return k.c.storageState(s, k.node()), nil
}

// storageResources are the storages as cluster/resources shows them: one row for each node that has
// them, for those the caller may see.
func (k *call) storageResources() []map[string]any {
	var rows []map[string]any
	for _, id := range sortedKeys(k.c.storages) {
		s := k.c.storages[id]
		if s.disabled() || !k.mayAny("/storage/"+id, "Datastore.Audit", "Datastore.AllocateSpace") {
			continue
		}
		for _, node := range sortedKeys(k.c.nodes) {
			if !s.onNode(node) {
				continue
			}
			row := map[string]any{
				"id": "storage/" + node + "/" + id, "type": "storage", "storage": id, "node": node, "plugintype": s.typ,
				"content": s.conf["content"], "shared": boolInt(s.shared()), "status": "unknown",
			}
			if k.c.nodes[node].online && !s.unreachable {
				row["status"], row["maxdisk"], row["disk"] = "available", s.total, s.usedOn(node)
			}
			rows = append(rows, row)
		}
	}
	return rows
}
