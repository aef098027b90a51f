package pvesim

import (
	"slices"
	"strconv"
	"strings"
)

func (s *Server) registerTasks() {
	s.route("GET", "/cluster/tasks", clusterTasks)
	s.route("GET", "/nodes/{node}/tasks", nodeTasks)
	s.route("GET", "/nodes/{node}/tasks/{upid}/status", taskStatus)
	s.route("GET", "/nodes/{node}/tasks/{upid}/log", taskLog)
	s.route("DELETE", "/nodes/{node}/tasks/{upid}", stopTask)
}

// clusterTasks lists the newest tasks of every node; others' tasks only with Sys.Audit on /.
func clusterTasks(k *call) (any, error) {
	all := k.may("/", "Sys.Audit")
	rows := []map[string]any{}
	for _, t := range slices.Backward(k.c.tasks) {
		if len(rows) == 25 {
			break
		}
		if !all && !k.owns(t) {
			continue
		}
		rows = append(rows, t.listRow("saved", true))
	}
	return rows, nil
}

func (t *task) listRow(mark string, saved bool) map[string]any {
	m := t.row()
	if t.exit != "" {
		m["endtime"] = t.end.Unix()
		m["status"] = t.exit
		if saved {
			m[mark] = "1"
		}
	}
	return m
}

// nodeTasks lists a node's tasks, newest first. The vmid filter compares with the task's whole id:
// a move between guests and a job over several guests never match it.
func nodeTasks(k *call) (any, error) {
	all := k.may("/nodes/"+k.node(), "Sys.Audit")
	source := k.str("source")
	if source == "" {
		source = "archive"
	}
	limit, start := 50, atoi(k.str("start"))
	if v, ok := k.param("limit"); ok {
		limit = atoi(v)
	}
	var found []map[string]any
	for _, t := range slices.Backward(k.c.tasks) {
		running := t.exit == ""
		switch {
		case t.node != k.nodeOrLocal(), !all && !k.owns(t):
			continue
		case running && source == "archive", !running && source == "active":
			continue
		case k.has("vmid") && t.id != k.str("vmid"):
			continue
		case k.has("typefilter") && t.typ != k.str("typefilter"):
			continue
		case k.has("userfilter") && !strings.Contains(t.user, k.str("userfilter")):
			continue
		case k.has("since") && t.start.Unix() < int64(atoi(k.str("since"))):
			continue
		case k.has("until") && t.start.Unix() > int64(atoi(k.str("until"))):
			continue
		case k.flag("errors") && (running || !isTaskError(t.exit)):
			continue
		case k.has("statusfilter") && !t.hasStatus(k.str("statusfilter")):
			continue
		}
		row := t.listRow("", false)
		if running {
			row["status"] = "RUNNING"
		}
		found = append(found, row)
	}
	total := len(found)
	rows := []map[string]any{}
	for i := start; i < len(found) && (limit == 0 || len(rows) < limit); i++ {
		rows = append(rows, found[i])
	}
	return listed{rows, total}, nil
}

func isTaskError(exit string) bool {
	return exit != exitOK && !strings.HasPrefix(exit, "WARNINGS: ")
}

func (t *task) hasStatus(filter string) bool {
	is := "error"
	switch {
	case t.exit == "", t.exit == exitLost:
		is = "unknown"
	case t.exit == exitOK:
		is = "ok"
	case strings.HasPrefix(t.exit, "WARNINGS: "):
		is = "warning"
	}
	return slices.Contains(splitList(filter), is)
}

func taskStatus(k *call) (any, error) {
	t, err := k.findTask(k.vars["upid"])
	if err != nil {
		return nil, err
	}
	m := t.row()
	m["status"] = "running"
	if t.exit != "" {
		m["status"], m["exitstatus"] = "stopped", t.exit
	}
	return m, nil
}

func taskLog(k *call) (any, error) {
	t, err := k.findTask(k.vars["upid"])
	if err != nil {
		return nil, err
	}
	start, limit := atoi(k.str("start")), 50
	if v, ok := k.param("limit"); ok {
		limit, _ = strconv.Atoi(v)
	}
	rows := []map[string]any{}
	for i := start; i < len(t.log) && (limit == 0 || len(rows) < limit); i++ {
		rows = append(rows, map[string]any{"n": i + 1, "t": t.log[i]})
	}
	if len(rows) == 0 {
		rows = append(rows, map[string]any{"n": start + 1, "t": "no content"})
	}
	return listed{rows, len(t.log)}, nil
}

// stopTask ends a worker: what it was to do at its end is not done. Most leave no final line and
// whatever they had locked; a create cleans up after itself.
func stopTask(k *call) (any, error) {
	upid := k.vars["upid"]
	if !upidForm.MatchString(upid) {
		return nil, paramError("upid", "unable to parse worker upid")
	}
	for _, t := range k.c.tasks {
		if t.upid != upid || t.node != k.nodeOrLocal() {
			continue
		}
		if !k.owns(t) {
			if err := k.need("/nodes/"+t.node, "Sys.Modify"); err != nil {
				return nil, err
			}
		}
		if t.exit == "" {
			t.exit, t.end, t.work = exitLost, k.c.now(), nil
			if t.abort != nil {
				t.exit = t.abort()
				t.logf("TASK ERROR: %s", t.exit)
			}
		}
		return nil, nil
	}
	return nil, paramError("upid", "no such task")
}
