package recipe_test

import (
	"fmt"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
)

// TestFaultsCrash lets the process die at every request, before and after its effect, and goes on by resume or rollback.
func TestFaultsCrash(t *testing.T) {
	b := plainScene().base(t)
	f := &family{name: "crash at every request"}
	step := 1
	if !whole() {
		step = 9
	}
	type job struct {
		at    int
		after bool
		way   string
	}
	var jobs []job
	for at := 1; at <= b.requests; at += step {
		for _, after := range []bool{false, true} {
			for _, way := range []string{"resume", "rollback"} {
				jobs = append(jobs, job{at, after, way})
			}
		}
	}
	parallel(len(jobs), func(i int) {
		j := jobs[i]
		w := b.fresh()
		l := &wire{w: w, dieAt: j.at, after: j.after}
		name := fmt.Sprintf("crash at request %d, after=%v, then %s", j.at, j.after, j.way)
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
		{name: "task lost", fault: pvesim.Fault{Kind: pvesim.FaultTaskLost}},
		{name: "task lost after", fault: pvesim.Fault{Kind: pvesim.FaultTaskLostAfter}},
		{name: "task on another node", fault: pvesim.Fault{Kind: pvesim.FaultTaskNode, Node: "pve2"}},
		{name: "storage full", fault: pvesim.Fault{Kind: pvesim.FaultWorld, World: func(c *pvesim.Cluster) {
			c.AddStorage(pvesim.StorageSpec{ID: "local-lvm", Type: "lvmthin", Total: 2 << 40, Other: 2 << 40})
		}}, mend: func(c *pvesim.Cluster) {
			c.AddStorage(pvesim.StorageSpec{ID: "local-lvm", Type: "lvmthin", Total: 2 << 40})
		}},
		{name: "node offline", fault: pvesim.Fault{Kind: pvesim.FaultWorld, World: func(c *pvesim.Cluster) { c.SetNodeOnline("pve1", false) }},
			mend: func(c *pvesim.Cluster) { c.SetNodeOnline("pve1", true) }},
		{name: "no quorum", fault: pvesim.Fault{Kind: pvesim.FaultWorld, World: func(c *pvesim.Cluster) { c.SetQuorum(false) }},
			mend: func(c *pvesim.Cluster) { c.SetQuorum(true) }},
	}
}

// TestFaultsRequests lets every request go wrong in every way.
func TestFaultsRequests(t *testing.T) {
	b := plainScene().base(t)
	f := &family{name: "every request, every way"}
	step := 1
	if !whole() {
		step = 17
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
