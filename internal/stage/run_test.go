package stage_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/stage"
)

func TestRunDoesEveryStageInOrder(t *testing.T) {
	m := newModel(5, 3)
	report, _ := m.run(func(ctx context.Context, o stage.Operation) stage.Report { return o.Run(ctx) })
	if report.End != stage.Finished || report.Err != nil || strings.Join(m.trace, " ") != "+0 +1 +2 +3 +4" {
		t.Fatalf("ended %s (%v) after %v", report.End, report.Err, m.trace)
	}
}

// What happens, in the order of effects (+k) and undos (-k), for a fault at each kind of place.
func TestRunTurnsBeforeThePointAndStopsPastIt(t *testing.T) {
	tests := []struct {
		name  string
		fault fault
		at    int
		trace string
		end   stage.End
	}{
		{"an error before the point undoes all predecessors in reverse", errorBefore, 2, "+0 +1 -2 -1 -0", stage.Undone},
		{"an error whose effect is whole goes on", errorAfter, 1, "+0 +1 +2 +3 +4", stage.Finished},
		{"a stage that did half is undone too", errorPartly, 1, "+0 +1 -1 -0", stage.Undone},
		{"a refused journal write undoes what is done and not the stage that never began", writeRefused, 2, "+0 +1 -1 -0", stage.Undone},
		{"cancelling before the point undoes", cancelled, 1, "+0 -1 -0", stage.Undone},
		{"cancelling right after an effect undoes it", cancelledAfter, 1, "+0 +1 -1 -0", stage.Undone},
		{"a refused final stage is before the point", errorBefore, 3, "+0 +1 +2 -2 -1 -0", stage.Undone},
		{"a final stage that did half is past it", errorPartly, 3, "+0 +1 +2 +3", stage.Stuck},
		{"a final stage whose answer was lost goes on when it is seen done", answerLost, 3, "+0 +1 +2 +3 +4", stage.Finished},
		{"cancelling in the final stage is not heard", cancelledAfter, 3, "+0 +1 +2 +3 +4", stage.Finished},
		{"an error past the point stops", errorBefore, 4, "+0 +1 +2 +3", stage.Stuck},
		{"a refused journal write past the point stops", writeRefused, 4, "+0 +1 +2 +3", stage.Stuck},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newModel(5, 3)
			m.fault, m.at = tt.fault, tt.at
			report, _ := m.run(func(ctx context.Context, o stage.Operation) stage.Report { return o.Run(ctx) })
			if got := strings.Join(m.trace, " "); got != tt.trace || report.End != tt.end {
				t.Errorf("got %s after %q, want %s after %q (%v)", report.End, got, tt.end, tt.trace, report.Err)
			}
		})
	}
}

// A failed undo stops the chain: what an earlier undo would remove may hold what this one could not bring back (A3).
func TestA3FailedUndoStopsTheChain(t *testing.T) {
	m := newModel(5, 3)
	m.fault, m.at, m.undoFails = errorBefore, 2, 1
	report, _ := m.run(func(ctx context.Context, o stage.Operation) stage.Report { return o.Run(ctx) })
	if report.End != stage.Stuck || !m.done[0] || report.At.Stage != "s1" || !report.At.Back {
		t.Fatalf("ended %s at %+v with stage 0 done=%v", report.End, report.At, m.done[0])
	}
	if m.journal == nil || !m.journal.Stuck || !m.journal.Back {
		t.Fatalf("journal %+v does not say that the way back is stuck", m.journal)
	}
	report, _ = m.run(func(ctx context.Context, o stage.Operation) stage.Report { return o.Resume(ctx, *m.journal) })
	if report.End != stage.Undone || !m.all(false) {
		t.Fatalf("resuming the way back ended %s, world %v", report.End, m.done)
	}
}

func TestTakeBackRefusesPastThePoint(t *testing.T) {
	for k, want := range []stage.End{stage.Undone, stage.Undone, stage.Undone, stage.Stuck, stage.Stuck} {
		m := newModel(5, 3)
		for i := range k + 1 {
			m.done[i] = true
		}
		at := stage.Position{Stage: m.stages()[k].Name, Index: k + 1, Of: 5}
		report, _ := m.run(func(ctx context.Context, o stage.Operation) stage.Report { return o.TakeBack(ctx, at) })
		if report.End != want {
			t.Errorf("stage %d: ended %s, want %s", k, report.End, want)
		}
		if want == stage.Stuck && strings.Contains(strings.Join(m.trace, " "), "-") {
			t.Errorf("stage %d: undid %v past the point", k, m.trace)
		}
	}
}

func TestResumeOfAStageNobodyKnowsIsRefused(t *testing.T) {
	m := newModel(3, 1)
	report, _ := m.run(func(ctx context.Context, o stage.Operation) stage.Report {
		return o.Resume(ctx, stage.Position{Stage: "elsewhere"})
	})
	if report.End != stage.Stuck || len(m.trace) != 0 {
		t.Fatalf("ended %s after %v", report.End, m.trace)
	}
}

// An operation that begins past the point never takes anything back.
func TestPastOperationNeverUndoes(t *testing.T) {
	m := newModel(3, 99)
	m.fault, m.at = errorBefore, 1
	report, _ := m.run(func(ctx context.Context, o stage.Operation) stage.Report {
		o.Past = true
		return o.Run(ctx)
	})
	if report.End != stage.Stuck || strings.Join(m.trace, " ") != "+0" {
		t.Fatalf("ended %s after %v", report.End, m.trace)
	}
}

// Past the point an error that proves to be harmless is tried again, with pauses, and not for ever.
func TestAgainIsBounded(t *testing.T) {
	calls := 0
	o := stage.Operation{
		Stages: []stage.Stage{
			{Name: "final", Final: true, Do: func(context.Context) error { return nil }, Seen: func(context.Context) (stage.Effect, error) { return stage.Whole, nil }},
			{Name: "busy", Do: func(context.Context) error { calls++; return errInjected }, Seen: func(context.Context) (stage.Effect, error) { return stage.None, nil }},
		},
		Journal: newModel(2, 0), UndoTime: time.Second, FinishTime: time.Second,
		Again: func(err error, tries int) (time.Duration, bool) {
			return time.Hour, errors.Is(err, errInjected) && tries < 4
		},
		Sleep: func(context.Context, time.Duration) error { return nil },
	}
	if report := o.Run(context.Background()); report.End != stage.Stuck || calls != 4 {
		t.Fatalf("ended %s after %d tries", report.End, calls)
	}
}
