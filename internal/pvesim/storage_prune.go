package pvesim

import "slices"

func (s *Server) registerPrune() {
	s.route("GET", "/nodes/{node}/storage/{storage}/prunebackups", dryPrune)
	s.route("DELETE", "/nodes/{node}/storage/{storage}/prunebackups", runPrune)
}

// pruneSetting is the retention a call asks for, else the storage's own.
func (k *call) pruneSetting(s *storage) string {
	if v := k.str("prune-backups"); v != "" {
		return v
	}
	return s.conf["prune-backups"]
}

func dryPrune(k *call) (any, error) {
	s, err := k.c.storageActive(k.vars["storage"], k.node())
	if err != nil {
		return nil, err
	}
	keep, limited := keepLast(k.pruneSetting(s))
	rows := []map[string]any{}
	left := map[string]int{}
	// names carry the time: backwards is from the newest to the oldest
	for _, v := range slices.Backward(s.sorted(k.node())) {
		if v.vtype != "backup" || k.has("vmid") && v.owner != atoi(k.str("vmid")) {
			continue
		}
		mark, group := "keep", v.subtype()+"/"+itoa(v.owner)
		if v.protected {
			mark = "protected"
		} else if left[group]++; limited && left[group] > keep {
			mark = "remove"
		}
		rows = append(rows, map[string]any{"volid": v.id(), "ctime": v.created.Unix(), "type": v.subtype(), "vmid": v.owner, "mark": mark})
	}
	slices.Reverse(rows)
	return rows, nil
}

func runPrune(k *call) (any, error) {
	s, err := k.c.storageActive(k.vars["storage"], k.node())
	if err != nil {
		return nil, err
	}
	keep, limited := keepLast(k.pruneSetting(s))
	node := k.node()
	return k.startTask("prunebackups", s.id, nil, func(t *task) error {
		if !limited {
			return nil
		}
		for vmid := range s.backupOwners(node) {
			if k.has("vmid") && vmid != atoi(k.str("vmid")) {
				continue
			}
			for _, kind := range []guestKind{kindLXC, kindQEMU} {
				for _, id := range s.prune(node, vmid, kind.String(), keep) {
					t.logf("removing backup '%s'", id)
				}
			}
		}
		return nil
	}), nil
}

// backupOwners are the guests that have backups on the storage.
func (s *storage) backupOwners(node string) map[int]bool {
	owners := map[int]bool{}
	for _, v := range s.on(node) {
		if v.vtype == "backup" && v.owned {
			owners[v.owner] = true
		}
	}
	return owners
}
