package pvesim

import (
	"strings"
)

func replicationGuest(id string) int {
	v, _, _ := strings.Cut(id, "-")
	return atoi(v)
}

func (k *call) replicationRow(id string) map[string]any {
	row := map[string]any{"id": id, "guest": replicationGuest(id)}
	for n, v := range k.c.repl[id] {
		row[n] = v
	}
	return row
}

func listReplication(k *call) (any, error) {
	rows := []map[string]any{}
	for _, id := range sortedKeys(k.c.repl) {
		if k.may(vmPath(replicationGuest(id)), "VM.Audit") {
			rows = append(rows, k.replicationRow(id))
		}
	}
	return rows, nil
}

func createReplication(k *call) (any, error) {
	id := k.str("id")
	if err := k.need(vmPath(replicationGuest(id)), "VM.Replicate"); err != nil {
		return nil, err
	}
	if k.c.repl[id] != nil {
		return nil, die("replication job '%s' already exists", id)
	}
	job := map[string]string{}
	for n, v := range k.params {
		if n != "id" {
			job[n] = v
		}
	}
	k.c.repl[id] = job
	return nil, nil
}

func (k *call) replicationJob() (string, error) {
	id := k.str("id")
	if k.c.repl[id] == nil {
		return "", die("no such replication job '%s'", id)
	}
	return id, nil
}

func readReplication(k *call) (any, error) {
	id, err := k.replicationJob()
	if err != nil {
		return nil, err
	}
	if err := k.need(vmPath(replicationGuest(id)), "VM.Audit"); err != nil {
		return nil, err
	}
	return k.replicationRow(id), nil
}

// deleteReplication only marks a job: a scheduler that is not simulated would remove it later.
func deleteReplication(k *call) (any, error) {
	id, err := k.replicationJob()
	if err != nil {
		return nil, err
	}
	if err := k.need(vmPath(replicationGuest(id)), "VM.Replicate"); err != nil {
		return nil, err
	}
	if k.flag("force") {
		delete(k.c.repl, id)
		return nil, nil
	}
	k.c.repl[id]["remove_job"] = "full"
	if k.flag("keep") {
		k.c.repl[id]["remove_job"] = "local"
	}
	return nil, nil
}

func (c *Cluster) replicationOf(vmid int) string {
	for _, id := range sortedKeys(c.repl) {
		if replicationGuest(id) == vmid {
			return id
		}
	}
	return ""
}
