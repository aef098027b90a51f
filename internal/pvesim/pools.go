package pvesim

import (
	"slices"
	"sort"
	"strings"
)

func (s *Server) registerPools() {
	s.route("GET", "/pools", listPools)
	s.route("POST", "/pools", createPool)
	s.route("PUT", "/pools", updatePool)
	s.route("DELETE", "/pools", deletePool)
	s.route("GET", "/pools/{poolid}", readPool)
	s.route("PUT", "/pools/{poolid}", updatePool)
	s.route("DELETE", "/pools/{poolid}", deletePool)
}

func listPools(k *call) (any, error) {
	if id, ok := k.param("poolid"); ok {
		if err := k.need("/pool/"+id, "Pool.Audit"); err != nil {
			return nil, err
		}
		row, err := k.poolRow(id)
		if err != nil {
			return nil, err
		}
		row["poolid"] = id
		return []any{row}, nil
	}
	rows := []map[string]any{}
	for _, id := range sortedKeys(k.c.access.pools) {
		if !k.may("/pool/"+id, "Pool.Audit") {
			continue
		}
		row := map[string]any{"poolid": id}
		if c := k.c.access.pools[id].comment; c != "" {
			row["comment"] = c
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func readPool(k *call) (any, error) { return k.poolRow(k.str("poolid")) }

func (k *call) poolRow(id string) (map[string]any, error) {
	p := k.c.access.pools[id]
	if p == nil {
		return nil, die("pool '%s' does not exist", id)
	}
	members := []map[string]any{}
	for _, vmid := range sortedInts(p.vms) {
		if g := k.c.guests[vmid]; g != nil {
			row := k.c.guestRow(g)
			delete(row, "pool")
			members = append(members, row)
		}
	}
	for _, st := range sortedKeys(p.storages) {
		if s := k.c.storages[st]; s != nil {
			members = append(members, map[string]any{"id": "storage/" + k.c.local + "/" + st, "type": "storage", "storage": st, "node": k.c.local})
		}
	}
	row := map[string]any{"members": members}
	if p.comment != "" {
		row["comment"] = p.comment
	}
	return row, nil
}

func createPool(k *call) (any, error) {
	id := k.str("poolid")
	if k.c.access.pools[id] != nil {
		return nil, die("create pool failed: pool '%s' already exists", id)
	}
	if i := strings.LastIndex(id, "/"); i > 0 && k.c.access.pools[id[:i]] == nil {
		return nil, die("create pool failed: parent '%s' of pool '%s' does not exist", id[:i], id)
	}
	p := newPool()
	p.comment = k.str("comment")
	k.c.access.pools[id] = p
	return nil, nil
}

func updatePool(k *call) (any, error) {
	id := k.str("poolid")
	p := k.c.access.pools[id]
	if p == nil {
		return nil, die("update pools failed: pool '%s' does not exist", id)
	}
	if v, ok := k.param("comment"); ok {
		p.comment = v
	}
	remove := k.flag("delete")
	// every check comes before every change
	vms := splitList(k.str("vms"))
	for _, v := range vms {
		if err := k.needAny(vmPath(atoi(v)), "VM.Allocate", "Permissions.Modify"); err != nil {
			return nil, err
		}
		vmid := atoi(v)
		in := k.c.access.poolOf(vmid)
		switch {
		case remove && in != id:
			return nil, die("update pools failed: VM %d is not a pool member", vmid)
		case !remove && in == id:
			return nil, die("update pools failed: VM %d is already a pool member", vmid)
		case !remove && in != "" && !k.flag("allow-move"):
			return nil, die("update pools failed: VM %d is already a member of pool '%s'", vmid, in)
		case !remove && k.c.guests[vmid] == nil:
			return nil, die("update pools failed: VM %d does not exist", vmid)
		}
	}
	for _, st := range splitList(k.str("storage")) {
		if err := k.needAny("/storage/"+st, "Datastore.Allocate", "Permissions.Modify"); err != nil {
			return nil, err
		}
	}
	for _, v := range vms {
		vmid := atoi(v)
		for _, other := range k.c.access.pools {
			delete(other.vms, vmid)
		}
		if !remove {
			p.vms[vmid] = true
		}
	}
	for _, st := range splitList(k.str("storage")) {
		if remove {
			delete(p.storages, st)
		} else {
			p.storages[st] = true
		}
	}
	return nil, nil
}

func deletePool(k *call) (any, error) {
	id := k.str("poolid")
	p := k.c.access.pools[id]
	if p == nil {
		return nil, die("delete pool failed: pool '%s' does not exist", id)
	}
	for _, other := range sortedKeys(k.c.access.pools) {
		if strings.HasPrefix(other, id+"/") {
			return nil, die("delete pool failed: pool '%s' is not empty (contains pool '%s')", id, other)
		}
	}
	for _, vmid := range sortedInts(p.vms) {
		return nil, die("delete pool failed: pool '%s' is not empty (contains VM %d)", id, vmid)
	}
	for _, st := range sortedKeys(p.storages) {
		return nil, die("delete pool failed: pool '%s' is not empty (contains storage '%s')", id, st)
	}
	delete(k.c.access.pools, id)
	k.c.access.acl = slices.DeleteFunc(k.c.access.acl, func(e aclEntry) bool { return e.path == "/pool/"+id })
	return nil, nil
}

func sortedInts[V any](m map[int]V) []int {
	keys := make([]int, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Ints(keys)
	return keys
}
