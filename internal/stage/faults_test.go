package stage_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/stage"
)

// TestFaultsEngine runs every fault at every stage, with every undo failing once, for every length and place of the point
// of no return, and then goes on until quiet: by resuming, and by taking back where that is allowed.
func TestFaultsEngine(t *testing.T) {
	traces, faults := 0, 0
	for stages := 1; stages <= 7; stages++ {
		for final := range stages {
			for at := range stages {
				for f := noFault; f < lastFault; f++ {
					for undoFails := -1; undoFails < min(final, at+1); undoFails++ {
						for _, back := range []bool{false, true} {
							m := newModel(stages, final)
							m.fault, m.at, m.undoFails = f, at, undoFails
							name := fmt.Sprintf("%d stages, point at %d, %s at %d, undo fails at %d, back=%v", stages, final, f, at, undoFails, back)
							quiet(t, name, m, back)
							traces++
							if m.struck {
								faults++
							}
						}
					}
				}
			}
		}
	}
	t.Logf("faults: engine in memory: %d traces, %d faults injected, violations 0", traces, faults)
	if faults == 0 {
		t.Error("no fault ever struck")
	}
}

// quiet runs until nothing is left to do and checks the invariants on the way.
func quiet(t *testing.T, name string, m *model, back bool) {
	t.Helper()
	report, died := m.run(func(ctx context.Context, o stage.Operation) stage.Report { return o.Run(ctx) })
	for tries := 0; ; tries++ {
		check(t, name, m)
		if !died && report.End != stage.Stuck {
			break
		}
		if tries > 5 {
			t.Fatalf("%s: not quiet after %d tries: %s, journal %+v, world %v", name, tries, report.End, m.journal, m.done)
		}
		if !died && report.Err == nil {
			t.Fatalf("%s: stuck without an error", name)
		}
		if m.journal == nil { // died before the first record: nothing was done
			if !m.all(false) {
				t.Fatalf("%s: no record, and the world is %v", name, m.done)
			}
			return
		}
		at := *m.journal
		report, died = m.run(func(ctx context.Context, o stage.Operation) stage.Report {
			if back && !o.Crossed(at) && !m.done[m.final] && !m.partly[m.final] {
				return o.TakeBack(ctx, at)
			}
			return o.Resume(ctx, at)
		})
	}
	switch report.End {
	case stage.Finished:
		if !m.all(true) {
			t.Fatalf("%s: finished, and the world is %v", name, m.done)
		}
	case stage.Undone:
		if !m.all(false) {
			t.Fatalf("%s: undone, and the world is %v", name, m.done)
		}
	case stage.Stuck:
	}
}

func check(t *testing.T, name string, m *model) {
	t.Helper()
	for k := range m.done {
		if k >= m.final && m.taken[k] > 0 {
			t.Fatalf("%s: stage %d was undone past the point of no return", name, k)
		}
		if m.issued[k] > 1+m.taken[k] && !(m.fault == errorPartly && k == m.at) {
			t.Fatalf("%s: the effect of stage %d was issued %d times and taken back %d times", name, k, m.issued[k], m.taken[k])
		}
		if m.done[k] && k > 0 && !m.done[k-1] && m.journal != nil && !m.journal.Back {
			t.Fatalf("%s: stage %d is done and %d is not", name, k, k-1)
		}
		if m.done[k] && (m.journal == nil || (m.journal.Index < k+1 && !m.journal.Back)) {
			t.Fatalf("%s: stage %d was done before it was recorded: %+v", name, k, m.journal)
		}
	}
}
