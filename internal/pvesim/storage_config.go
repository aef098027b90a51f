package pvesim

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

func (s *Server) registerStorageConfig() {
	s.route("GET", "/storage", listStorages)
	s.route("POST", "/storage", createStorage)
	s.route("GET", "/storage/{storage}", showStorage)
	s.route("PUT", "/storage/{storage}", updateStorage)
	s.route("DELETE", "/storage/{storage}", deleteStorage)
}

func (c *Cluster) storageDigest() string {
	var b strings.Builder
	for _, id := range sortedKeys(c.storages) {
		s := c.storages[id]
		fmt.Fprintf(&b, "%s: %s\n", s.typ, id)
		for _, k := range sortedKeys(s.conf) {
			fmt.Fprintf(&b, "\t%s %s\n", k, s.conf[k])
		}
	}
	sum := sha1.Sum([]byte(b.String()))
	return hex.EncodeToString(sum[:])
}

// configRow is the storage's definition; the digest is the whole file's.
func (c *Cluster) configRow(s *storage) map[string]any {
	m := map[string]any{"storage": s.id, "type": s.typ, "digest": c.storageDigest()}
	for k, v := range s.conf {
		switch k {
		case "disable", "shared", "krbd", "sparse", "snapshot-as-volume-chain", "max-protected-backups":
			m[k] = atoi(v)
		default:
			m[k] = v
		}
	}
	return m
}

func listStorages(k *call) (any, error) {
	rows := []map[string]any{}
	for _, id := range sortedKeys(k.c.storages) {
		s := k.c.storages[id]
		if k.has("type") && k.str("type") != s.typ {
			continue
		}
		if k.mayAny("/storage/"+id, "Datastore.Audit", "Datastore.AllocateSpace") {
			rows = append(rows, k.c.configRow(s))
		}
	}
	return rows, nil
}

func showStorage(k *call) (any, error) {
	s, err := k.c.storage(k.vars["storage"])
	if err != nil {
		return nil, err
	}
	return k.c.configRow(s), nil
}

func createStorage(k *call) (any, error) {
	id := k.str("storage")
	if k.c.storages[id] != nil {
		return nil, die("create storage failed: storage ID '%s' already defined", id)
	}
	s := &storage{id: id, typ: k.str("type"), conf: map[string]string{}, total: 100 << 30, vols: map[string]map[string]*volume{}}
	for name, v := range k.params {
		if name != "storage" && name != "type" {
			s.conf[name] = v
		}
	}
	if s.conf["content"] == "" {
		s.conf["content"] = strings.Join(s.kind().content[:1], ",")
	}
	if err := s.checkContent(); err != nil {
		return nil, die("create storage failed: %s", err)
	}
	k.c.storages[id] = s
	return map[string]any{"storage": id, "type": s.typ}, nil
}

func (s *storage) checkContent() error {
	for _, ct := range splitList(s.conf["content"]) {
		if !slices.Contains(s.kind().content, ct) {
			return die("storage does not support content type '%s'", ct)
		}
	}
	return nil
}

func updateStorage(k *call) (any, error) {
	s, err := k.c.storage(k.vars["storage"])
	if err != nil {
		return nil, die("update storage failed: %s", err)
	}
	if d := k.str("digest"); d != "" && d != k.c.storageDigest() {
		return nil, die("update storage failed: detected modified configuration - file changed by other user? Try again.")
	}
	for name, v := range k.params {
		switch name {
		case "storage", "node", "digest", "delete":
		default:
			s.conf[name] = v
		}
	}
	for _, name := range splitList(k.str("delete")) {
		delete(s.conf, name)
	}
	return map[string]any{"storage": s.id, "type": s.typ}, nil
}

func deleteStorage(k *call) (any, error) {
	id := k.vars["storage"]
	if _, err := k.c.storage(id); err != nil {
		return nil, die("delete storage failed: %s", err)
	}
	delete(k.c.storages, id)
	return nil, nil
}
