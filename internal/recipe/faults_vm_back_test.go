package recipe_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// TestFaultsVMRollbackFromEveryChange lets the process die after every change of a rebuild, so from every stage of both modes, and
// takes the operation back: the old system is there with its options, its boot order and its run state. With rollback_data the
// kept disk, which the new system has written to since, holds what it held at the snapshot.
func TestFaultsVMRollbackFromEveryChange(t *testing.T) {
	for _, s := range vmScenes() {
		for _, runs := range []bool{true, false} {
			b := s
			if !runs {
				b.world = func() *world {
					w := newVMWorld()
					w.cluster.SetRunning(7131, false)
					w.cluster.SetConfig(7131, "onboot", "0")
					return w
				}
			}
			backFromEveryChange(t, b, runs)
		}
	}
}

func backFromEveryChange(t *testing.T, s scene, runs bool) {
	b := s.baseVM(t)
	f := &family{name: fmt.Sprintf("VM, taken back from every change, %s, ran: %v", s.name, runs)}
	step := 1
	if !whole() {
		step = 6
	}
	actions := []string{"rollback"}
	if s.req().Want.VM.Snapshot {
		actions = append(actions, "rollback_data")
	}
	type job struct {
		at     int
		action string
	}
	var jobs []job
	for at := 1; at <= b.muts; at += step {
		for _, action := range actions {
			jobs = append(jobs, job{at, action})
		}
	}
	parallel(len(jobs), func(i int) {
		j := jobs[i]
		w := b.freshVM()
		l := &wire{w: w, dieAt: j.at, after: true, changes: true}
		_, err := w.applyVMOver(t, l, b.req())
		w.cluster.Wait()
		f.count(l, l.dead)
		record := w.recordVM(t, 7131, 9131)
		if record == nil {
			if now := w.dumpVM(); now != b.before {
				f.violation(fmt.Sprintf("died after change %d", j.at), "no record, and not as before (%v):\n%s", err, difference(b.before, now))
			}
			return
		}
		name := fmt.Sprintf("died after change %d (%s), then %s", j.at, record.Stage, j.action)
		b.takeBack(t, f, name, w, record, j.action)
	})
	f.traces = len(jobs)
	f.report(t)
}

// takeBack takes an operation back by an action and compares the world with the one before it.
func (b base) takeBack(t *testing.T, f *family, name string, w *world, record *guest.Journal, action string) {
	taken := false
	for _, v := range w.cluster.Volumes() {
		taken = taken || v.ID == w.cluster.VolumeOf(7131, "scsi2") && len(v.Snapshots) > 0
	}
	data := action == "rollback_data"
	if data && taken { // the new system has written since
		if err := w.cluster.WriteVolume(w.cluster.VolumeOf(7131, "scsi2"), "/var/lib/id", "migrated by the new system"); err != nil {
			f.violation(name, "%v", err)
		}
	}
	l := &wire{w: w}
	_, err := w.reconcileOver(t, l, b.req(), record, action)
	if data && !taken {
		if err == nil || !strings.Contains(err.Error(), "snapshot_unsupported") {
			f.violation(name, "there is no snapshot, and it says %v", err)
		}
		_, err = w.reconcileOver(t, l, b.req(), record, "rollback")
	}
	if err != nil {
		f.violation(name, "%v", err)
	}
	f.count(l, false)
	for _, v := range w.lost() {
		f.violation(name, "%s", v)
	}
	before, now := b.before, w.dumpVM()
	if data && taken { // Proxmox makes a new one when it returns to a snapshot
		before, now = withoutLine(before, "vmgenid"), withoutLine(now, "vmgenid")
	}
	if now != before {
		f.violation(name, "not as before (%v):\n%s", err, difference(before, now))
	}
	if j := w.recordVM(t, 7131, 9131); j != nil {
		f.violation(name, "a record is left at %s", j.Stage)
	}
}

// withoutLine is a dump without the lines that hold a word.
func withoutLine(dump, word string) string {
	var kept strings.Builder
	for line := range strings.Lines(dump) {
		if !strings.Contains(line, word) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// TestFaultsVMRehearsal lets a rehearsal go wrong at every change, by its process dying before or after it and by a refusal:
// whatever comes then, no trace is left, and the VM is never stopped.
func TestFaultsVMRehearsal(t *testing.T) {
	for _, s := range vmScenes() {
		start := base{scene: s, start: s.world()}
		start.before = start.start.dumpVM()
		rehearse := func() recipe.Request {
			req := s.req()
			req.Want.RehearseOnly = true
			return req
		}
		w := start.freshVM()
		if _, err := w.applyVM(t, rehearse()); err != nil {
			t.Fatalf("%s: the uninterrupted rehearsal fails: %v", s.name, err)
		}
		changes := w.server.Mutations()
		f := &family{name: "VM, rehearsal, crash at every change, " + s.name}
		var traces []int
		for i := range 4 * changes {
			if whole() || i%7 == 0 {
				traces = append(traces, i)
			}
		}
		f.traces = len(traces)
		parallel(f.traces, func(i int) {
			i = traces[i]
			at, after, way := 1+i/4, i%2 == 1, []string{"resume", "rollback"}[i/2%2]
			name := fmt.Sprintf("died at change %d, after=%v, then %s", at, after, way)
			w := start.freshVM()
			l := &wire{w: w, dieAt: at, after: after, changes: true}
			_, err := w.applyVMOver(t, l, rehearse())
			w.cluster.Wait()
			f.count(l, l.dead)
			for range 3 {
				j := w.recordVM(t, 7131, 9131)
				if j == nil {
					break
				}
				_, err = w.reconcileOver(t, l.again(), rehearse(), j, way)
			}
			for _, v := range append(l.broken, w.lost()...) {
				f.violation(name, "%s", v)
			}
			if j := w.recordVM(t, 7131, 9131); j != nil {
				f.violation(name, "not quiet: %s at %s: %v", j.Operation, j.Stage, err)
			}
			if contract := guest.ReadNotes(w.cluster.Config(7131)["description"]).Contract; contract != nil {
				f.violation(name, "what was only rehearsed is recorded: %+v", contract)
			}
			if now := w.dumpVM(); now != start.before {
				f.violation(name, "it left a trace (last error: %v):\n%s", err, difference(start.before, now))
			}
			for _, r := range w.server.Requests() {
				if r.Method == http.MethodPost && strings.Contains(r.Path, "/7131/status/") {
					f.violation(name, "the VM was touched: %s", r.Path)
				}
			}
		})
		f.report(t)
	}
}

// again is the wire of the next process.
func (l *wire) again() *wire { return &wire{w: l.w} }
