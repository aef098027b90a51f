package recipe_test

import (
	"fmt"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
)

// One operation on application containers each: the process dies at every change, before and after its effect; every request
// goes wrong in every way; and the worker of every task is killed wherever it can be.

func TestFaultsInstanceInstall(t *testing.T) { courseFaults(t, "install", 1) }

func TestFaultsInstanceUpdate(t *testing.T) { courseFaults(t, "update", 2) }

func TestFaultsInstanceRollback(t *testing.T) { courseFaults(t, "unhealthy update", 6) }

func TestFaultsInstanceRemove(t *testing.T) { courseFaults(t, "removal", 1) }

// courseFaults runs the families over one course; of the requests every sparse-th goes wrong.
func courseFaults(t *testing.T, name string, sparse int) {
	b := courses()[name].base(t)
	t.Run("crash", func(t *testing.T) { b.crashEverywhere(t) })
	t.Run("requests", func(t *testing.T) { b.everyRequest(t, sparse) })
	t.Run("workers", func(t *testing.T) { b.killWorkers(t) })
}

func (b run) crashEverywhere(t *testing.T) {
	f := &family{name: b.name + ", crash at every change"}
	type job struct {
		at    int
		after bool
		way   string
		bare  bool
	}
	var jobs []job
	n := 0
	for at := 1; at <= b.muts; at++ {
		for _, after := range []bool{false, true} {
			for _, way := range []string{"resume", "rollback"} {
				if n++; whole() || n%19 == 0 {
					jobs = append(jobs, job{at, after, way, n/2%2 == at%2})
				}
			}
		}
	}
	parallel(len(jobs), func(i int) {
		j := jobs[i]
		w := b.fresh()
		l := &wire{w: w, dieAt: j.at, after: j.after, changes: true}
		b.trace(t, f, fmt.Sprintf("crash at change %d, after=%v, then %s, without configuration %v", j.at, j.after, j.way, j.bare), w, l, nil, j.way, j.bare)
	})
	f.traces = len(jobs)
	f.report(t)
}

func (b run) everyRequest(t *testing.T, sparse int) {
	f := &family{name: b.name + ", every request, every way"}
	if !whole() {
		sparse = 97
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
			if n++; n%sparse == 0 {
				jobs = append(jobs, job{y, at, true})
			}
		}
		for at := 1; y.reads && at <= b.requests-b.muts; at++ {
			if n++; n%(sparse*2) == 0 {
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
		b.trace(t, f, fmt.Sprintf("%s at request %d (change: %v)", j.way.name, j.at, j.mut), w, &wire{w: w}, j.way.mend, "resume", i%2 == 1)
	})
	f.traces = len(jobs)
	f.report(t)
}

func (b run) killWorkers(t *testing.T) {
	f := &family{name: b.name + ", workers killed at every checkpoint"}
	var jobs []pvesim.Fault
	for i, r := range b.sent {
		for k, at := range checkpoints(r) {
			if whole() || (i+k)%7 == 0 {
				jobs = append(jobs, pvesim.Fault{Kind: pvesim.FaultTaskKill, At: at, Mutation: i + 1})
			}
		}
	}
	parallel(len(jobs), func(i int) {
		w := b.fresh()
		w.server.Inject(jobs[i])
		b.trace(t, f, fmt.Sprintf("worker of change %d killed when %s", jobs[i].Mutation, jobs[i].At), w, &wire{w: w}, clearStubs, "resume", i%2 == 1)
	})
	f.traces = len(jobs)
	f.report(t)
}
