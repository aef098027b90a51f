package proxmox

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// taskRow is a row of a node's task list.
type taskRow struct {
	UPID    words `json:"upid"`
	Status  words `json:"status"`
	Ended   whole `json:"endtime"`
	Started whole `json:"starttime"`

	upid upid
}

func (t taskRow) running() bool { return t.Status == "" || t.Status == "RUNNING" }

// listed bounds how many tasks one look at a list takes in.
const listed = "500"

// taskList reads a node's tasks; rows whose names cannot be read are left out.
func (h *Host) taskList(ctx context.Context, node string, query url.Values) ([]taskRow, error) {
	query.Set("limit", listed)
	var rows []taskRow
	if err := h.ask(ctx, "list the tasks of node "+node, guest.Ref{Node: node}, path("nodes", node, "tasks"), query, &rows); err != nil {
		return nil, err
	}
	readable := rows[:0]
	for _, row := range rows {
		var err error
		if row.upid, err = parseUPID(string(row.UPID)); err == nil {
			readable = append(readable, row)
		}
	}
	return readable, nil
}

// Tasks lists the running tasks of a node, as far as the login may see.
func (h *Host) Tasks(ctx context.Context, node string) ([]guest.Task, error) {
	rows, err := h.taskList(ctx, node, url.Values{"source": {"active"}})
	if err != nil {
		return nil, err
	}
	var running []guest.Task
	for _, row := range rows {
		if row.running() && !h.hasEnded(row.upid.text) {
			u := row.upid
			running = append(running, guest.Task{UPID: u.text, Type: u.kind, ID: u.id, User: u.user, Started: u.started})
		}
	}
	return running, nil
}

// FindTask looks for the newest task of this login of a type, about a guest, that started at or after since, which is in
// seconds since 1970 by our clock: the difference to the server's is taken into account. A move is about its source.
func (h *Host) FindTask(ctx context.Context, node, taskType string, id guest.VMID, since int64) (guest.FoundTask, error) {
	rows, err := h.startedSince(ctx, node, []string{taskType}, since, func(u upid) bool {
		return u.id == id.String() || strings.HasPrefix(u.id, id.String()+"-")
	})
	if err != nil || len(rows) == 0 {
		return guest.FoundTask{}, err
	}
	newest := slices.MaxFunc(rows, func(a, b taskRow) int { return int(a.upid.started - b.upid.started) })
	found := guest.FoundTask{Found: true, UPID: newest.upid.text, Running: newest.running()}
	if !found.Running {
		found.Exit = guest.Printable(string(newest.Status))
		found.Good = found.Exit == "OK" || strings.HasPrefix(found.Exit, "WARNINGS")
	}
	return found, nil
}

func (h *Host) startedSince(ctx context.Context, node string, types []string, since int64, about func(upid) bool) ([]taskRow, error) {
	since = h.clock.there(since)
	query := url.Values{"source": {"all"}, "since": {strconv.FormatInt(since, 10)}}
	if len(types) == 1 {
		query.Set("typefilter", types[0])
	}
	rows, err := h.taskList(ctx, node, query)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	return slices.DeleteFunc(rows, func(row taskRow) bool {
		u := row.upid
		other := known[u.text] || u.user != h.login.user() || u.started < since || !slices.Contains(types, u.kind) || !about(u)
		known[u.text] = true
		return other
	}), nil
}

// findStarted looks for the task of a request whose answer was lost. Only when exactly one task can be it, it is.
func (h *Host) findStarted(ctx context.Context, j job, since int64) (upid, bool) {
	longer, cancel := h.graceful(ctx)
	defer cancel()
	longer, stop := context.WithTimeout(longer, h.pace.Find)
	defer stop()
	for pause := h.pace.PollFirst; ; pause = min(pause*3/2, h.pace.PollMost) {
		rows, err := h.startedSince(longer, j.ref.Node, j.types, since, func(u upid) bool { return u.id == j.id })
		rows = slices.DeleteFunc(rows, func(row taskRow) bool { return h.noted(row.upid.text) })
		if err == nil && len(rows) == 1 {
			return rows[0].upid, true
		}
		if len(rows) > 1 || !sleep(longer, pause) {
			return upid{}, false
		}
	}
}
