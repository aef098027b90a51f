package pvesim

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// task is one worker: what it did is known as soon as it has ended.
type task struct {
	upid  string
	node  string
	pid   int
	start time.Time
	typ   string
	id    string
	// user is the whole user string, a token's id included.
	user string

	log      []string
	warnings int
	// exit is the final status; empty while the task runs.
	exit string
	end  time.Time

	// due is when a task that takes time ends, work what it does then, holds the VMIDs whose
	// configuration it locks meanwhile.
	due   time.Time
	work  func(*task) error
	holds []int
	// abort is what the worker still does when it is told to stop, and the error it ends with; nil
	// for workers that just die.
	abort func() string
	fault *Fault
	// doomed is what a worker that makes a guest fails with before its first effect: it still
	// removes the stub that the request wrote.
	doomed string
}

const (
	exitOK = "OK"
	// exitLost is what Proxmox shows for a worker that ended without a final line in its log.
	exitLost = "unexpected status"
)

// killed unwinds a worker at one of its checkpoints, as the death of its process would.
type killed struct{ at string }

func (t *task) logf(format string, args ...any) {
	t.log = append(t.log, strings.Split(fmt.Sprintf(format, args...), "\n")...)
}

// warnf logs a line that counts: the task ends with WARNINGS instead of OK.
func (t *task) warnf(format string, args ...any) {
	t.warnings++
	t.logf("WARN: "+format, args...)
}

// checkpoint names a place in a worker where its process may die ([FaultTaskKill]).
func (t *task) checkpoint(name string) {
	if t.fault != nil && t.fault.Kind == FaultTaskKill && t.fault.At == name {
		panic(killed{name})
	}
}

// startTask forks a worker and gives its UPID. Work runs at once unless the cluster's tasks take
// time; holds are the guests that wait for it meanwhile.
func (k *call) startTask(typ, id string, holds []int, work func(*task) error) string {
	return k.startTaskOn(k.nodeOrLocal(), typ, id, holds, work)
}

func (k *call) nodeOrLocal() string {
	if n := k.node(); n != "" && n != "localhost" {
		return n
	}
	return k.c.local
}

func (k *call) startTaskOn(nodeName, typ, id string, holds []int, work func(*task) error) string {
	c := k.c
	c.nextPID += 8
	now := c.now()
	t := &task{
		node: nodeName, pid: c.nextPID, start: now, typ: typ, id: id, user: k.who.full,
		work: work, holds: holds, fault: k.fault,
	}
	if f := k.fault; f != nil && f.Kind.onTask() {
		// one task suffers it, not those that the task starts in turn
		k.fault = nil
		if f.Kind == FaultTaskNode {
			t.node = f.Node
		}
	} else {
		t.fault = nil
	}
	t.upid = fmt.Sprintf("UPID:%s:%08X:%08X:%08X:%s:%s:%s:", t.node, t.pid, c.nextPID*3, now.Unix(), typ, id, t.user)
	c.tasks = append(c.tasks, t)
	if c.opts.TaskDuration <= 0 {
		c.finish(t)
	} else {
		t.due = now.Add(c.opts.TaskDuration)
	}
	return t.upid
}

// finish runs a task's work and gives it its status.
func (c *Cluster) finish(t *task) {
	if t.exit != "" {
		return
	}
	t.end = c.now()
	err := t.run()
	t.work = nil
	switch {
	case t.exit == exitLost:
	case err != nil:
		text := strings.TrimRight(err.Error(), "\n")
		if e := asAPIError(err); len(e.fields) > 0 {
			text = fmt.Sprintf("%d %s", e.status, e.text)
			for _, f := range sortedKeys(e.fields) {
				text += fmt.Sprintf("\n%s: %s", f, strings.TrimRight(e.fields[f], "\n"))
			}
		}
		t.exit = strings.ReplaceAll(text, "\n", " ")
		t.logf("TASK ERROR: %s", text)
	case t.warnings > 0:
		t.exit = fmt.Sprintf("WARNINGS: %d", t.warnings)
		t.logf("TASK WARNINGS: %d", t.warnings)
	default:
		t.exit = exitOK
		t.logf("TASK OK")
	}
}

// run does the work, or what a fault puts in its place.
func (t *task) run() (err error) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(killed); !ok {
				panic(r)
			}
			t.exit, err = exitLost, nil
		}
	}()
	f := t.fault
	if f == nil {
		return t.work(t)
	}
	if f.Kind == FaultTaskLost {
		panic(killed{"start"})
	}
	if f.Kind == FaultTaskFail {
		switch t.typ {
		case "vzcreate", "vzrestore", "qmcreate", "qmrestore":
			t.doomed = f.Text
			return t.work(t)
		}
		return die("%s", f.Text)
	}
	if err := t.work(t); err != nil {
		return err
	}
	if f.Kind == FaultTaskFailAfter {
		return die("%s", f.Text)
	}
	if f.Kind == FaultTaskLostAfter {
		panic(killed{"end"})
	}
	if f.Kind == FaultTaskWarn {
		t.warnf("%s", f.Text)
	}
	return nil
}

// task finds a task by its UPID.
func (c *Cluster) task(upid string) *task {
	for _, t := range slices.Backward(c.tasks) {
		if t.upid == upid {
			return t
		}
	}
	return nil
}

// settle ends every task whose time has come. It runs before each request.
func (c *Cluster) settle() {
	now := c.now()
	for _, t := range c.tasks {
		if t.exit == "" && !t.due.After(now) {
			c.finish(t)
		}
	}
	c.endPrograms(now)
}

// finishAll ends every running task now.
func (c *Cluster) finishAll() {
	for i := 0; i < len(c.tasks); i++ {
		c.finish(c.tasks[i])
	}
}

// flock waits for the tasks that hold a guest's configuration, up to ten seconds, as the lock file
// of that guest would make a request wait. The cluster's lock is let go of meanwhile.
func (c *Cluster) flock(vmid int) error {
	deadline := time.Now().Add(10 * time.Second)
	for c.held(vmid) {
		if time.Now().After(deadline) {
			return die("can't lock file '%s' - got timeout", lockFile(c.guests[vmid], vmid))
		}
		c.mu.Unlock()
		time.Sleep(2 * time.Millisecond)
		c.mu.Lock()
		c.settle()
	}
	return nil
}

func lockFile(g *guest, vmid int) string {
	if g != nil && g.kind == kindQEMU {
		return fmt.Sprintf("/var/lock/qemu-server/lock-%d.conf", vmid)
	}
	return fmt.Sprintf("/run/lock/lxc/pve-config-%d.lock", vmid)
}

func (c *Cluster) held(vmid int) bool {
	for _, t := range c.tasks {
		if t.exit == "" && slices.Contains(t.holds, vmid) {
			return true
		}
	}
	return false
}

var upidForm = regexp.MustCompile(`^UPID:([a-zA-Z0-9][a-zA-Z0-9-]*):([0-9A-Fa-f]{8}):([0-9A-Fa-f]{8,9}):([0-9A-Fa-f]{8}):([^:\s/]+):([^:\s/]*):([^:\s/]+):$`)

// owner splits the user string as the answers of the API do.
func (t *task) owner() (user, token string) {
	user, token, _ = strings.Cut(t.user, "!")
	return user, token
}

func (t *task) row() map[string]any {
	user, token := t.owner()
	m := map[string]any{
		"upid": t.upid, "node": t.node, "pid": t.pid, "pstart": t.pid * 3,
		"starttime": t.start.Unix(), "type": t.typ, "id": t.id, "user": user,
	}
	if token != "" {
		m["tokenid"] = token
	}
	return m
}

// mayRead tells whether the caller owns the task: the same token, or the user that started it.
func (k *call) owns(t *task) bool {
	return k.who.full == t.user
}

// findTask looks a UPID up and checks that the caller may read it.
func (k *call) findTask(upid string) (*task, error) {
	if !upidForm.MatchString(upid) {
		return nil, paramError("upid", "unable to parse worker upid")
	}
	for _, t := range k.c.tasks {
		if t.upid == upid && t.node == k.nodeOrLocal() {
			if !k.owns(t) {
				if err := k.need("/nodes/"+t.node, "Sys.Audit"); err != nil {
					return nil, err
				}
			}
			return t, nil
		}
	}
	return nil, paramError("upid", "no such task")
}
