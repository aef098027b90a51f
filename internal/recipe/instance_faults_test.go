package recipe_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// One operation on application containers each: the process dies at every change, before and after its effect; every request
// goes wrong in every way; and the worker of every task is killed wherever it can be.

func TestFaultsInstanceInstall(t *testing.T) { courseFaults(t, "install", 1) }

func TestFaultsInstanceUpdate(t *testing.T) { courseFaults(t, "update", 3) }

func TestFaultsInstanceRollback(t *testing.T) { courseFaults(t, "unhealthy update", 8) }

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

// TestFaultsInstanceRaces lets another pipeline work on the container right before every change of an update: one updates it
// to another image, one removes it. Exactly one of the two gets its way, and the other says so.
func TestFaultsInstanceRaces(t *testing.T) {
	b := courses()["update"].base(t)
	f := &family{name: "update, another pipeline before every change"}
	step := 1
	if !whole() {
		step = 13
	}
	var jobs []int
	for at := 1; at <= b.muts; at += step {
		jobs = append(jobs, at, -at)
	}
	parallel(len(jobs), func(n int) {
		w := b.fresh()
		health := b.clinic.admit(w)
		defer b.clinic.dismiss(health)
		other := update("c3", health)
		second, _ := w.instance(t)
		var theirs error
		changes := 0
		over := &hooked{over: w.server, when: func(r string) bool {
			if !strings.HasPrefix(r, "GET ") {
				changes++
			}
			return changes == max(jobs[n], -jobs[n])
		}, do: func() {
			if jobs[n] > 0 {
				_, theirs = planAndApply(second, other)
				return
			}
			_, theirs = second.Remove(t.Context(), other)
		}}
		first, _ := w.instanceOver(t, over)
		req := b.req()
		req.Health = health
		_, ours := planAndApply(first, req)
		name := fmt.Sprintf("change %d (negative: a removal)", jobs[n])
		f.mu.Lock()
		f.faults++
		f.mu.Unlock()
		if (ours == nil) == (theirs == nil) {
			f.violation(name, "ours: %v; theirs: %v", ours, theirs)
		}
		if j := w.journal(t, 8001); j != nil {
			f.violation(name, "a record is left at %s", j.Stage)
		}
		if theirs == nil && jobs[n] < 0 {
			w.kept = nil
		}
		for _, v := range append(append(w.lost(), w.orphaned()...), w.leaks()...) {
			f.violation(name, "%s", v)
		}
		if guests := w.cluster.Guests(); len(guests) > 2 {
			f.violation(name, "guests %v are left", guests)
		}
	})
	f.traces = len(jobs)
	f.report(t)
}

// TestFaultsInstanceModify lets the process die at every change of a modification, which has no record: whoever applies again
// finds what is left to do and does it.
func TestFaultsInstanceModify(t *testing.T) {
	c := newClinic(t)
	start, _ := installed(t, c, "a1")
	w0 := &run{course: course{name: "modify"}, clinic: c, start: start}
	req := func(health *recipe.Health) recipe.Request {
		r := update("a1", health)
		r.Want.Instance.Settings["memory"], r.Want.Instance.Settings["tags"], r.Want.Instance.Settings["description"] = "1024", "other", "Sells more."
		r.Want.Instance.Settings["net1"] = "name=eth1,bridge=vmbr0,ip=dhcp,hwaddr=BC:24:11:00:80:01"
		r.Want.Instance.Environment["MORE"] = "1"
		r.Want.Instance.Entrypoint = "/entry.sh other"
		r.Want.Instance.Volumes["/more"] = preview.VolumeWant{Storage: "tank", Size: 1 << 30}
		r.Want.Instance.Volumes["/data"] = preview.VolumeWant{Storage: "tank", Size: 9 << 30, Options: "noatime"}
		delete(r.Want.Instance.Volumes, "/cache")
		r.Want.Erase = map[string]string{"mp0": start.cluster.VolumeOf(8001, "mp0")}
		return r
	}
	start.keep(start.cluster.VolumeOf(8001, "mp1"), start.cluster.VolumeOf(5002, "mp0"))
	plain := w0.fresh()
	if _, err := w0.apply(t, plain, &wire{w: plain}, req(c.admit(plain))); err != nil {
		t.Fatal(err)
	}
	after, muts := plain.state(), plain.server.Mutations()
	f := &family{name: "modify, every change in every way"}
	type job struct {
		name  string
		dieAt int
		after bool
		way   way
	}
	var jobs []job
	for at := 1; at <= muts; at++ {
		for _, after := range []bool{false, true} {
			jobs = append(jobs, job{name: fmt.Sprintf("crash at change %d, after=%v", at, after), dieAt: at, after: after})
		}
		for _, y := range ways() {
			y.fault.Mutation = at
			jobs = append(jobs, job{name: fmt.Sprintf("%s at change %d", y.name, at), way: y})
		}
	}
	if !whole() {
		jobs = slices.DeleteFunc(jobs, func(j job) bool { return (len(j.name)+j.dieAt+j.way.fault.Mutation)%11 != 0 })
	}
	parallel(len(jobs), func(n int) {
		j := jobs[n]
		w := w0.fresh()
		health := c.admit(w)
		defer c.dismiss(health)
		l := &wire{w: w, dieAt: j.dieAt, after: j.after, changes: true}
		if j.dieAt == 0 {
			w.stalls = j.way.fault.Kind == pvesim.FaultHang || j.way.fault.Kind == pvesim.FaultHangAfter
			w.server.Inject(j.way.fault)
		}
		_, err := w0.apply(t, w, l, req(health))
		f.count(l, l.dead || w.server.FaultsStruck() > 0)
		w.server.ClearFaults()
		if j.way.mend != nil {
			j.way.mend(w.cluster)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			f.violation(j.name, "the error holds a secret: %v", err)
		}
		w.cluster.Wait()
		name := j.name
		for range 3 {
			again := &wire{w: w}
			if _, err = w0.apply(t, w, again, req(health)); err == nil {
				break
			}
		}
		before := w.server.Mutations()
		_, again := w0.apply(t, w, &wire{w: w}, req(health))
		if err != nil || again != nil || w.server.Mutations() > before {
			f.violation(name, "not quiet: %v; then %v, %d changes", err, again, w.server.Mutations()-before)
		}
		for _, v := range append(append(append(l.broken, w.lost()...), w.orphaned()...), w.leaks()...) {
			f.violation(name, "%s", v)
		}
		if left := w.cluster.VolumeOf(8001, "unused0"); left != "" && left == start.cluster.VolumeOf(8001, "mp0") {
			w.cluster.SetConfig(8001, "unused0", "") // taken away and not erased yet: it is where people see it
			w.cluster.RemoveVolume(left)
		}
		if state := w.state(); state != after {
			f.violation(name, "the world is not as after an uninterrupted change:\n%s", difference(after, state))
		}
	})
	f.traces = len(jobs)
	f.report(t)
}

// TestFaultsInstancePairs lets two things go wrong in one run, sampled.
func TestFaultsInstancePairs(t *testing.T) {
	f := &family{name: "application containers, pairs of faults, sampled"}
	traces := 4
	if whole() {
		traces = 60
	}
	all := ways()
	for _, name := range []string{"install", "update", "unhealthy update"} {
		b := courses()[name].base(t)
		parallel(traces, func(i int) {
			random := rand.New(rand.NewPCG(uint64(i), 2027))
			w := b.fresh()
			var mends []func(*pvesim.Cluster)
			trace := fmt.Sprintf("%s, pair %d:", name, i)
			for range 2 {
				y := all[random.IntN(len(all))]
				fault := y.fault
				w.stalls = w.stalls || fault.Kind == pvesim.FaultHang || fault.Kind == pvesim.FaultHangAfter
				fault.Mutation = 1 + random.IntN(b.muts)
				w.server.Inject(fault)
				trace += fmt.Sprintf(" %s at change %d;", y.name, fault.Mutation)
				if y.mend != nil {
					mends = append(mends, y.mend)
				}
			}
			b.trace(t, f, trace, w, &wire{w: w}, func(c *pvesim.Cluster) {
				for _, mend := range mends {
					mend(c)
				}
			}, "resume", i%2 == 1)
		})
		f.traces += traces
	}
	f.report(t)
}
