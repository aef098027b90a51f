package recipe_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// TestFaultsCrash lets the process die at every change, before and after its effect, and goes on by resume or rollback.
// Between two changes the world is the same, so that this is a crash at every request.
func TestFaultsCrash(t *testing.T) {
	for _, s := range []scene{plainScene(), richScene()} {
		t.Run(s.name, func(t *testing.T) { crashEverywhere(t, s) })
	}
}

func crashEverywhere(t *testing.T, s scene) {
	b := s.base(t)
	f := &family{name: "crash at every change, " + s.name}
	step := 1
	if !whole() {
		step = 7
	}
	type job struct {
		at    int
		after bool
		way   string
	}
	var jobs []job
	for at := 1; at <= b.muts; at += step {
		for _, after := range []bool{false, true} {
			for _, way := range []string{"resume", "rollback"} {
				jobs = append(jobs, job{at, after, way})
			}
		}
	}
	parallel(len(jobs), func(i int) {
		j := jobs[i]
		w := b.fresh()
		l := &wire{w: w, dieAt: j.at, after: j.after, changes: true}
		name := fmt.Sprintf("crash at change %d, after=%v, then %s", j.at, j.after, j.way)
		b.trace(t, f, name, w, l, nil, j.way)
	})
	f.traces = len(jobs)
	f.report(t)
}

// way is one way in which a request can go wrong.
type way struct {
	name  string
	fault pvesim.Fault
	reads bool                  // strikes reads too
	mend  func(*pvesim.Cluster) // what people repair before they go on
}

func ways() []way {
	status := func(code int, text string) pvesim.Fault {
		return pvesim.Fault{Kind: pvesim.FaultStatus, Status: code, Text: text}
	}
	after := func(code int, text string) pvesim.Fault {
		return pvesim.Fault{Kind: pvesim.FaultStatusAfter, Status: code, Text: text}
	}
	return []way{
		{name: "reset before", fault: pvesim.Fault{Kind: pvesim.FaultReset}, reads: true},
		{name: "reset after", fault: pvesim.Fault{Kind: pvesim.FaultLoseAnswer}},
		{name: "401", fault: status(401, "Authentication failed!")},
		{name: "403", fault: status(403, "Permission check failed (/vms/5001, VM.Allocate)"), reads: true},
		{name: "500 locked", fault: pvesim.Fault{Kind: pvesim.FaultStatus, Status: 500, Text: "CT is locked (backup)", Times: 3}},
		{name: "500", fault: status(500, "something unheard of"), reads: true},
		{name: "501", fault: status(501, "Method not implemented")},
		{name: "595", fault: status(595, "Connection refused"), reads: true},
		{name: "596 after", fault: after(596, "Broken pipe")},
		{name: "599 after", fault: after(599, "Too many redirections")},
		{name: "stall", fault: pvesim.Fault{Kind: pvesim.FaultHang}},
		{name: "stall after", fault: pvesim.Fault{Kind: pvesim.FaultHangAfter}},
		{name: "task fails", fault: pvesim.Fault{Kind: pvesim.FaultTaskFail, Text: "command failed: exit code 5"}},
		{name: "task fails after", fault: pvesim.Fault{Kind: pvesim.FaultTaskFailAfter, Text: "command failed: exit code 5"}},
		{name: "task warns", fault: pvesim.Fault{Kind: pvesim.FaultTaskWarn, Text: "something odd"}},
		{name: "task lost", fault: pvesim.Fault{Kind: pvesim.FaultTaskLost}, mend: clearStubs},
		{name: "task lost after", fault: pvesim.Fault{Kind: pvesim.FaultTaskLostAfter}},
		{name: "task on another node", fault: pvesim.Fault{Kind: pvesim.FaultTaskNode, Node: "pve2"}},
		{name: "storage full", fault: pvesim.Fault{Kind: pvesim.FaultWorld, World: func(c *pvesim.Cluster) {
			c.AddStorage(pvesim.StorageSpec{ID: "local-lvm", Type: "lvmthin", Total: 2 << 40, Other: 2 << 40})
		}}, mend: func(c *pvesim.Cluster) {
			c.AddStorage(pvesim.StorageSpec{ID: "local-lvm", Type: "lvmthin", Total: 2 << 40})
		}},
		{
			name: "node offline", fault: pvesim.Fault{Kind: pvesim.FaultWorld, World: func(c *pvesim.Cluster) { c.SetNodeOnline("pve1", false) }},
			mend: func(c *pvesim.Cluster) { c.SetNodeOnline("pve1", true) },
		},
		{
			name: "no quorum", fault: pvesim.Fault{Kind: pvesim.FaultWorld, World: func(c *pvesim.Cluster) { c.SetQuorum(false) }},
			mend: func(c *pvesim.Cluster) { c.SetQuorum(true) },
		},
	}
}

// TestFaultsRequests lets every request go wrong in every way.
func TestFaultsRequests(t *testing.T) {
	b := plainScene().base(t)
	f := &family{name: "every request, every way"}
	step := 1
	if !whole() {
		step = 43
	}
	type job struct {
		way way
		at  int
		mut bool
	}
	var jobs []job
	n := 0
	for _, y := range ways() {
		for at := 1; at <= b.muts; at++ {
			if n++; n%step == 0 {
				jobs = append(jobs, job{y, at, true})
			}
		}
		for at := 1; y.reads && at <= b.requests; at++ {
			if n++; n%step == 0 {
				jobs = append(jobs, job{y, at, false})
			}
		}
	}
	parallel(len(jobs), func(i int) {
		j := jobs[i]
		w := b.fresh()
		fault := j.way.fault
		w.stalls = fault.Kind == pvesim.FaultHang || fault.Kind == pvesim.FaultHangAfter
		if j.mut {
			fault.Mutation = j.at
		} else {
			fault.Request, fault.Method = j.at, "GET"
		}
		w.server.Inject(fault)
		l := &wire{w: w}
		name := fmt.Sprintf("%s at request %d (change: %v)", j.way.name, j.at, j.mut)
		b.trace(t, f, name, w, l, j.way.mend, "resume")
	})
	f.traces = len(jobs)
	f.report(t)
}

// TestFaultsWorkers kills the worker of every task at every checkpoint: what a move, a create and a destroy leave half-done.
func TestFaultsWorkers(t *testing.T) {
	f := &family{name: "workers killed at every checkpoint"}
	for _, s := range []scene{plainScene(), richScene()} {
		b := s.base(t)
		var jobs []pvesim.Fault
		for i, r := range b.sent {
			for k, at := range checkpoints(r) {
				if whole() || (i+k)%4 == 0 {
					jobs = append(jobs, pvesim.Fault{Kind: pvesim.FaultTaskKill, At: at, Mutation: i + 1})
				}
			}
		}
		parallel(len(jobs), func(i int) {
			w := b.fresh()
			w.server.Inject(jobs[i])
			name := fmt.Sprintf("%s: worker of change %d killed when %s", s.name, jobs[i].Mutation, jobs[i].At)
			b.trace(t, f, name, w, &wire{w: w}, clearStubs, "resume")
		})
		f.traces += len(jobs)
	}
	f.report(t)
}

// checkpoints are the places at which the worker of a request can die.
func checkpoints(r pvesim.Request) []string {
	switch {
	case r.Method == "POST" && strings.HasSuffix(r.Path, "/lxc"):
		return []string{"stub", "allocated", "extracted"}
	case r.Method == "DELETE" && strings.Contains(r.Path, "/lxc/") && strings.Count(r.Path, "/") == 4:
		return []string{"rootfs-freed", "volumes-freed", "access-removed"}
	case strings.HasSuffix(r.Path, "/move_volume"):
		return []string{"renamed", "source-written"}
	case strings.HasSuffix(r.Path, "/vzdump"):
		return []string{"locked"}
	}
	return nil
}

// clearStubs does what the errors tell people to do on the node: pct unlock and pct destroy of stubs that no API call can
// remove. What a killed create allocated goes with it.
func clearStubs(c *pvesim.Cluster) {
	for _, id := range c.Guests() {
		config := c.Config(id)
		if config["lock"] != "create" && config["lock"] != "destroyed" {
			if config["lock"] != "" {
				c.Lock(id, "")
			}
			continue
		}
		c.RemoveGuest(id)
		for _, v := range c.Volumes() {
			if v.Owner == id && v.Type == "images" {
				c.RemoveVolume(v.ID)
			}
		}
	}
}

// TestFaultsRollback stops the operation at every stage past the point of no return and goes back to the operation's own
// archive, with a crash at every request of the way back.
func TestFaultsRollback(t *testing.T) {
	f := &family{name: "rollback from the archive, crash at every change"}
	s := richScene()
	b := s.base(t)
	stages := []string{"create", "return mp0", "return unused0", "restore"} // the start is HA's: it is queued with the resource
	step := 1
	if !whole() {
		step = 17
	}
	for k, at := range stages {
		stop := func() (*world, string) {
			w := b.fresh()
			w.server.Inject(stopAt(at))
			result, err := w.run(t, b.req(), &wire{w: w})
			w.server.ClearFaults()
			if err == nil || result.Stage != at {
				t.Fatalf("stopped at %q instead of %q: %v", result.Stage, at, err)
			}
			return w, result.Operation
		}
		w, operation := stop()
		back := b.req()
		back.Reconcile = &recipe.Reconcile{Operation: operation, Action: "rollback"}
		l := &wire{w: w, changes: true}
		if _, err := w.run(t, back, l); err != nil {
			t.Fatalf("%s: the uninterrupted rollback fails: %v", at, err)
		}
		old := w.dump()
		n := (l.n + step - 1) / step
		parallel(2*n, func(i int) {
			w, operation := stop()
			back := b.req()
			back.Reconcile = &recipe.Reconcile{Operation: operation, Action: "rollback"}
			l := &wire{w: w, dieAt: (i/2)*step + 1 + k%step, after: i%2 == 1, changes: true}
			name := fmt.Sprintf("stuck at %s, rollback dies at change %d, after=%v", at, l.dieAt, l.after)
			_, err := w.run(t, back, l)
			f.count(l, l.dead)
			for range 4 {
				j := w.journal(t, 5001)
				if j == nil {
					break
				}
				action := "resume"
				if j.Kind == "reinstall" {
					action = "rollback" // it died before its first record
				}
				again := &wire{w: w}
				_, err = w.run(t, b.reconcile(j, action), again)
				f.count(again, false)
				l.broken = append(l.broken, again.broken...)
			}
			for _, v := range append(append(l.broken, w.lost()...), w.orphaned()...) {
				f.violation(name, "%s", v)
			}
			if now := w.dump(); now != old {
				f.violation(name, "the world is not as after an uninterrupted rollback (last error: %v):\n%s", err, difference(old, now))
			}
		})
		f.traces += 2 * n
	}
	f.report(t)
}

// TestFaultsPairs lets two things go wrong in one run, sampled.
func TestFaultsPairs(t *testing.T) {
	b := plainScene().base(t)
	f := &family{name: "pairs of faults, sampled"}
	traces := 12
	if whole() {
		traces = 300
	}
	all := ways()
	parallel(traces, func(i int) {
		random := rand.New(rand.NewPCG(uint64(i), 2026))
		w := b.fresh()
		var mends []func(*pvesim.Cluster)
		name := fmt.Sprintf("pair %d:", i)
		for range 2 {
			y := all[random.IntN(len(all))]
			fault := y.fault
			w.stalls = w.stalls || fault.Kind == pvesim.FaultHang || fault.Kind == pvesim.FaultHangAfter
			fault.Mutation = 1 + random.IntN(b.muts)
			w.server.Inject(fault)
			name += fmt.Sprintf(" %s at change %d;", y.name, fault.Mutation)
			if y.mend != nil {
				mends = append(mends, y.mend)
			}
		}
		b.trace(t, f, name, w, &wire{w: w}, func(c *pvesim.Cluster) {
			for _, mend := range mends {
				mend(c)
			}
		}, "resume")
	})
	f.traces = traces
	f.report(t)
}
