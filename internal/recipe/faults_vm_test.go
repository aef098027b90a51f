package recipe_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// vmScenes are the worlds and requests that the matrix runs over: both modes.
func vmScenes() []scene {
	return []scene{
		{name: "in place", world: newVMWorld, req: func() recipe.Request {
			want := wantsVM()
			want.VM.Snapshot = true
			return recipe.Request{Want: want}
		}},
		{name: "replace", world: newVMWorld, req: func() recipe.Request { return recipe.Request{Want: wantsVMReplaced()} }},
	}
}

// freshVM is the starting world once more.
func (b base) freshVM() *world { return b.fresh() }

func (s scene) baseVM(t testing.TB) base {
	t.Helper()
	b := base{scene: s, start: s.world()}
	b.before = b.start.dumpVM()
	w := b.fresh()
	r, err := w.applyVM(t, b.req())
	if err != nil || r.Status != recipe.StatusAwaitingTrust {
		t.Fatalf("%s: the uninterrupted run ends %q: %v", s.name, r.Status, err)
	}
	b.after = w.dumpVM()
	b.requests, b.muts = len(w.server.Requests()), w.server.Mutations()
	for _, r := range w.server.Requests() {
		if r.Method != http.MethodGet {
			b.sent = append(b.sent, r)
		}
	}
	return b
}

// traceVM runs one interrupted rebuild until it waits for trust or is taken back, and checks every promise on the way.
func (b base) traceVM(t *testing.T, f *family, name string, w *world, l *wire, mend func(*pvesim.Cluster), way string) {
	_, err := w.applyVMOver(t, l, b.req())
	f.count(l, l.dead || w.server.FaultsStruck() > 0)
	w.server.ClearFaults()
	if mend != nil {
		mend(w.cluster)
	}
	w.cluster.Wait()
	for _, v := range l.broken {
		f.violation(name, "%s", v)
	}
	for tries := 0; tries < 4; tries++ {
		j := w.recordVM(t, 7131, 9131)
		if j == nil || j.State == guest.JournalWaiting {
			break
		}
		if err == nil && !l.dead {
			f.violation(name, "no error, and a record is left: %s at %s", j.Operation, j.Stage)
			return
		}
		mutations := w.server.Mutations()
		if _, err := w.applyVM(t, b.req()); err == nil {
			f.violation(name, "an apply went through although an operation is open")
		}
		if n := w.server.Mutations() - mutations; n > 0 {
			f.violation(name, "an apply that must refuse sent %d changes", n)
		}
		again := &wire{w: w}
		if _, err = w.reconcileOver(t, again, b.req(), j, way); err != nil && way != "resume" {
			_, err = w.reconcileOver(t, again, b.req(), j, "resume")
		}
		f.count(again, false)
		for _, v := range again.broken {
			f.violation(name, "after %s: %s", way, v)
		}
	}
	b.checkEndVM(t, f, name, w, err)
}

func (w *world) reconcileOver(t testing.TB, l *wire, req recipe.Request, j *guest.Journal, action string) (recipe.Result, error) {
	t.Helper()
	req.Reconcile = &recipe.Reconcile{Operation: j.Operation, Action: action}
	req.Want.VMID = j.Guest
	return w.applyVMOver(t, l, req)
}

// checkEndVM: the world is old or new, whole; what waits can be taken back to exactly the old world.
func (b base) checkEndVM(t *testing.T, f *family, name string, w *world, err error) {
	w.cluster.Wait()
	j := w.recordVM(t, 7131, 9131)
	for _, v := range w.lost() {
		f.violation(name, "%s", v)
	}
	want, word := b.before, "old"
	switch {
	case j == nil:
	case j.State == guest.JournalWaiting:
		want, word = b.after, "new"
	default:
		f.violation(name, "not quiet: %s stands at %d of %d (%s), back=%v: %s; last error: %v", j.Operation, j.Index, j.Of, j.Stage, j.Back, j.Error, err)
		return
	}
	if now := w.dumpVM(); now != want {
		f.violation(name, "the world is not %s (last error: %v):\n%s", word, err, difference(want, now))
	}
}

// TestFaultsVMCrash lets the process die at every change, before and after its effect, and goes on by resume or rollback.
// Between two changes the world is the same, so that this is a crash at every request.
func TestFaultsVMCrash(t *testing.T) {
	for _, s := range vmScenes() {
		t.Run(s.name, func(t *testing.T) {
			b := s.baseVM(t)
			f := &family{name: "VM, crash at every change, " + s.name}
			step := 1
			if !whole() {
				step = 5
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
				w := b.freshVM()
				l := &wire{w: w, dieAt: j.at, after: j.after, changes: true}
				b.traceVM(t, f, fmt.Sprintf("crash at change %d, after=%v, then %s", j.at, j.after, j.way), w, l, nil, j.way)
			})
			f.traces = len(jobs)
			f.report(t)
		})
	}
}

// TestFaultsVMRequests lets every change go wrong in every way, and every read in some: which reads a way strikes differs
// from way to way.
func TestFaultsVMRequests(t *testing.T) {
	for _, s := range vmScenes() {
		t.Run(s.name, func(t *testing.T) {
			b := s.baseVM(t)
			f := &family{name: "VM, every request, every way, " + s.name}
			step := 1
			if !whole() {
				step = 29
			}
			type job struct {
				way way
				at  int
				mut bool
			}
			var jobs []job
			n := 0
			for k, y := range ways() {
				for at := 1; at <= b.muts; at++ {
					if n++; n%step == 0 {
						jobs = append(jobs, job{y, at, true})
					}
				}
				for at := 1 + k%2; y.reads && at <= b.requests; at += 2 {
					if n++; n%step == 0 {
						jobs = append(jobs, job{y, at, false})
					}
				}
			}
			parallel(len(jobs), func(i int) {
				j := jobs[i]
				w := b.freshVM()
				fault := ofVM(j.way.fault)
				w.stalls = fault.Kind == pvesim.FaultHang || fault.Kind == pvesim.FaultHangAfter
				if j.mut {
					fault.Mutation = j.at
				} else {
					fault.Request, fault.Method = j.at, "GET"
				}
				w.server.Inject(fault)
				b.traceVM(t, f, fmt.Sprintf("%s at request %d (change: %v)", j.way.name, j.at, j.mut), w, &wire{w: w}, mended(j.way), "resume")
			})
			f.traces = len(jobs)
			f.report(t)
		})
	}
}

// mended is what people repair after a way of going wrong. The config of a VM is there, locked, before the worker of its create
// begins: one that vanishes leaves a stub that no token can remove.
func mended(y way) func(*pvesim.Cluster) {
	if y.fault.Kind == pvesim.FaultTaskLost {
		return clearStubs
	}
	return y.mend
}

// ofVM is a fault in the words that Proxmox has for VMs.
func ofVM(f pvesim.Fault) pvesim.Fault {
	f.Text = strings.NewReplacer("CT is locked", "VM is locked", "/vms/5001", "/vms/7131").Replace(f.Text)
	return f
}

// TestFaultsVMPairs lets two things go wrong in one run, sampled.
func TestFaultsVMPairs(t *testing.T) {
	for _, s := range vmScenes() {
		b := s.baseVM(t)
		f := &family{name: "VM, pairs of faults, sampled, " + s.name, traces: 10}
		if whole() {
			f.traces = 300
		}
		all := ways()
		parallel(f.traces, func(i int) {
			random := rand.New(rand.NewPCG(uint64(i), 7131))
			w := b.freshVM()
			name := fmt.Sprintf("pair %d:", i)
			var mends []func(*pvesim.Cluster)
			for range 2 {
				y := all[random.IntN(len(all))]
				fault := ofVM(y.fault)
				w.stalls = w.stalls || fault.Kind == pvesim.FaultHang || fault.Kind == pvesim.FaultHangAfter
				fault.Mutation = 1 + random.IntN(b.muts)
				w.server.Inject(fault)
				name += fmt.Sprintf(" %s at change %d;", y.name, fault.Mutation)
				if mend := mended(y); mend != nil {
					mends = append(mends, mend)
				}
			}
			way := []string{"resume", "rollback"}[i%2]
			b.traceVM(t, f, name+" then "+way, w, &wire{w: w}, func(c *pvesim.Cluster) {
				for _, mend := range mends {
					mend(c)
				}
			}, way)
		})
		f.report(t)
	}
}

// TestFaultsVMWorkers kills the worker of every task at every checkpoint.
func TestFaultsVMWorkers(t *testing.T) {
	f := &family{name: "VM, workers killed at every checkpoint"}
	for _, s := range vmScenes() {
		b := s.baseVM(t)
		var jobs []pvesim.Fault
		for i, r := range b.sent {
			for k, at := range vmCheckpoints(r) {
				if !whole() && (i+k)%2 > 0 {
					continue
				}
				jobs = append(jobs, pvesim.Fault{Kind: pvesim.FaultTaskKill, At: at, Mutation: i + 1})
			}
		}
		for _, way := range []string{"resume", "rollback"} {
			parallel(len(jobs), func(i int) {
				w := b.freshVM()
				w.server.Inject(jobs[i])
				name := fmt.Sprintf("%s: worker of change %d killed when %s, then %s", s.name, jobs[i].Mutation, jobs[i].At, way)
				b.traceVM(t, f, name, w, &wire{w: w}, clearStubs, way)
			})
			f.traces += len(jobs)
		}
	}
	f.report(t)
}

// vmCheckpoints are the places at which the worker of a request can die.
func vmCheckpoints(r pvesim.Request) []string {
	switch {
	case r.Method == http.MethodPost && strings.HasSuffix(r.Path, "/qemu"):
		return []string{"stub", "allocated"}
	case r.Method == http.MethodDelete && strings.Contains(r.Path, "/qemu/") && strings.Count(r.Path, "/") == 4:
		return []string{"rootfs-freed", "volumes-freed"}
	case strings.HasSuffix(r.Path, "/move_disk"):
		return []string{"renamed", "source-written"}
	case strings.HasSuffix(r.Path, "/resize"):
		return []string{"resized"}
	}
	return nil
}

// TestFaultsVMVerdicts lets the process die at every change of accept, rollback and rollback_data, and goes on.
func TestFaultsVMVerdicts(t *testing.T) {
	for _, s := range vmScenes() {
		b := s.baseVM(t)
		for _, action := range []string{"accept", "rollback", "rollback_data"} {
			if action == "rollback_data" && s.name != "in place" {
				continue
			}
			t.Run(s.name+"/"+action, func(t *testing.T) {
				waiting := b.freshVM()
				r, err := waiting.applyVM(t, b.req())
				if err != nil {
					t.Fatal(err)
				}
				start := base{scene: s, start: waiting}
				dump := func(w *world) string {
					return w.cluster.Dump(pvesim.IgnoreKeys("description", "vmgenid", "meta"), pvesim.IgnoreIdentity(), pvesim.IgnoreLines("backup/"), pvesim.IgnoreLines("-cloudinit@"))
				}
				w := start.freshVM()
				l := &wire{w: w, changes: true}
				req := b.req()
				if _, err := w.reconcileOver(t, l, req, &guest.Journal{Operation: r.Operation, Guest: 7131}, action); err != nil {
					t.Fatalf("the uninterrupted %s fails: %v", action, err)
				}
				end := dump(w)
				f := &family{name: "VM, " + s.name + ", crash at every change of " + action}
				step := 1
				if !whole() {
					step = 5
				}
				n := (l.n + step - 1) / step
				parallel(2*n, func(i int) {
					w := start.freshVM()
					l := &wire{w: w, dieAt: (i/2)*step + 1, after: i%2 == 1, changes: true}
					name := fmt.Sprintf("%s dies at change %d, after=%v", action, l.dieAt, l.after)
					_, err := w.reconcileOver(t, l, req, &guest.Journal{Operation: r.Operation, Guest: 7131}, action)
					f.count(l, l.dead)
					for range 4 {
						j := w.recordVM(t, 7131, 9131)
						if j == nil {
							break
						}
						way := "resume"
						if j.State == guest.JournalWaiting {
							way = action
						}
						again := &wire{w: w}
						if j.Kind == "accept" && j.Replace {
							_, err = w.applyVMOver(t, again, withReconcile(b.req(), j.Operation, way, 9131))
						} else {
							_, err = w.reconcileOver(t, again, req, j, way)
						}
						l.broken = append(l.broken, again.broken...)
					}
					for _, v := range append(l.broken, w.lost()...) {
						if action != "rollback_data" || !strings.Contains(v, "holds") {
							f.violation(name, "%s", v)
						}
					}
					if now := dump(w); now != end {
						f.violation(name, "not as after an uninterrupted %s (last error: %v):\n%s", action, err, difference(end, now))
					}
				})
				f.traces = 2 * n
				f.report(t)
			})
		}
	}
}

func withReconcile(req recipe.Request, operation, action string, id guest.VMID) recipe.Request {
	req.Reconcile = &recipe.Reconcile{Operation: operation, Action: action}
	req.Want.VMID = id
	return req
}
