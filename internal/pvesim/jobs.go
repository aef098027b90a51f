package pvesim

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// backupJob is one scheduled backup. Its keys are Proxmox's.
type backupJob struct {
	conf map[string]string
	// next, when set, is the next run that the API tells, instead of one made out of the schedule.
	next int64
}

func (j *backupJob) clone() *backupJob { return &backupJob{maps.Clone(j.conf), j.next} }

// forget takes a guest out of the job's list; false when the job then covers nobody.
func (j *backupJob) forget(vmid int) bool {
	if j.conf["vmid"] == "" {
		return true
	}
	left := slices.DeleteFunc(splitList(j.conf["vmid"]), func(v string) bool { return v == itoa(vmid) })
	j.conf["vmid"] = strings.Join(left, ",")
	return len(left) > 0
}

// covers tells whether the job backs a guest up.
func (c *Cluster) covers(j *backupJob, g *guest) bool {
	if n := j.conf["node"]; n != "" && n != g.node {
		return false
	}
	if slices.Contains(splitList(j.conf["exclude"]), itoa(g.vmid)) {
		return false
	}
	switch {
	case j.conf["all"] == "1":
		return true
	case j.conf["pool"] != "":
		p := c.access.pools[j.conf["pool"]]
		return p != nil && p.vms[g.vmid]
	default:
		return slices.Contains(splitList(j.conf["vmid"]), itoa(g.vmid))
	}
}

func (s *Server) registerJobs() {
	s.route("GET", "/cluster/backup", listJobs)
	s.route("POST", "/cluster/backup", createJob)
	s.route("GET", "/cluster/backup/{id}", readJob)
	s.route("PUT", "/cluster/backup/{id}", updateJob)
	s.route("DELETE", "/cluster/backup/{id}", deleteJob)
	s.route("GET", "/cluster/backup/{id}/included_volumes", jobVolumes)
}

func (k *call) jobRow(id string, j *backupJob, list bool) map[string]any {
	row := map[string]any{"id": id, "type": "vzdump"}
	for n, v := range j.conf {
		switch n {
		case "enabled", "all", "protected", "remove", "repeat-missed":
			row[n] = atoi(v)
		default:
			row[n] = v
		}
	}
	if list && j.conf["enabled"] != "0" {
		row["next-run"] = j.nextRun(k.c.now())
	}
	return row
}

// nextRun knows the schedules that tests use: a time of day or one of the words for a period.
func (j *backupJob) nextRun(now time.Time) int64 {
	if j.next != 0 {
		return j.next
	}
	day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	schedule := j.conf["schedule"]
	if at, err := time.Parse("15:04", schedule); err == nil {
		run := day.Add(time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute)
		if !run.After(now) {
			run = run.Add(24 * time.Hour)
		}
		return run.Unix()
	}
	switch schedule {
	case "hourly":
		return now.Truncate(time.Hour).Add(time.Hour).Unix()
	case "minutely":
		return now.Truncate(time.Minute).Add(time.Minute).Unix()
	default:
		return day.Add(24 * time.Hour).Unix()
	}
}

func listJobs(k *call) (any, error) {
	rows := []map[string]any{}
	for _, id := range sortedKeys(k.c.jobs) {
		rows = append(rows, k.jobRow(id, k.c.jobs[id], true))
	}
	return rows, nil
}

func createJob(k *call) (any, error) {
	id := k.str("id")
	if id == "" {
		id = k.c.newUUID()
	}
	if k.c.jobs[id] != nil {
		return nil, die("Job '%s' already exists", id)
	}
	j := &backupJob{conf: k.configParams("id")}
	if j.conf["vmid"] == "" && j.conf["all"] == "" && j.conf["pool"] == "" {
		return nil, paramError("vmid", "property is missing and it is not optional")
	}
	if _, ok := j.conf["enabled"]; !ok {
		j.conf["enabled"] = "1"
	}
	k.c.jobs[id] = j
	return nil, nil
}

func (k *call) job() (*backupJob, error) {
	j := k.c.jobs[k.str("id")]
	if j == nil {
		return nil, paramError("id", "No such job '"+k.str("id")+"'")
	}
	return j, nil
}

func readJob(k *call) (any, error) {
	j, err := k.job()
	if err != nil {
		return nil, err
	}
	return k.jobRow(k.str("id"), j, false), nil
}

func updateJob(k *call) (any, error) {
	j, err := k.job()
	if err != nil {
		return nil, err
	}
	for _, n := range splitList(k.str("delete")) {
		delete(j.conf, n)
	}
	maps.Copy(j.conf, k.configParams("id", "delete"))
	return nil, nil
}

// deleteJob answers a missing job with the text of a 400 under the status 500.
func deleteJob(k *call) (any, error) {
	if _, err := k.job(); err != nil {
		return nil, die("400 Parameter verification failed.\nid: No such job '%s'", k.str("id"))
	}
	delete(k.c.jobs, k.str("id"))
	return nil, nil
}

func jobVolumes(k *call) (any, error) {
	j, err := k.job()
	if err != nil {
		return nil, err
	}
	guests := []map[string]any{}
	for _, vmid := range k.c.vmids() {
		g := k.c.guests[vmid]
		if !k.c.covers(j, g) {
			continue
		}
		vols := []map[string]any{}
		for _, d := range k.c.backupDisks(g) {
			vols = append(vols, map[string]any{"id": d.key, "name": d.value, "included": d.included, "reason": d.reason})
		}
		guests = append(guests, map[string]any{"id": vmid, "name": g.name(), "type": g.kind.String(), "children": vols})
	}
	return map[string]any{"children": guests}, nil
}
