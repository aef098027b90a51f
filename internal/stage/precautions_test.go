package stage_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/stage"
)

// refusing is a journal that takes every record but those that it is told to refuse.
type refusing func(stage.Position) bool

func (r refusing) Write(_ context.Context, at stage.Position) error {
	if r(at) {
		return errRefused
	}
	return nil
}

// An undo that cannot be recorded is not done: who comes next would not know of it.
func TestUndoIsRecordedFirst(t *testing.T) {
	t.Parallel()
	m := newModel(4, 3)
	m.fault, m.at = errorBefore, 2
	report, _ := m.run(func(ctx context.Context, o stage.Operation) stage.Report {
		o.Journal = refusing(func(at stage.Position) bool { return at.Back })
		return o.Run(ctx)
	})
	if got := strings.Join(m.trace, " "); report.End != stage.Stuck || got != "+0 +1" || !errors.Is(report.Err, errRefused) {
		t.Errorf("ended %s after %q: %v", report.End, got, report.Err)
	}
}

// A run that is cancelled between two stages goes back, although no stage failed.
func TestCancelledBetweenStagesGoesBack(t *testing.T) {
	t.Parallel()
	m := newModel(4, 3)
	report, _ := m.run(func(ctx context.Context, o stage.Operation) stage.Report {
		do := o.Stages[1].Do
		o.Stages[1].Do = func(ctx context.Context) error {
			defer m.cancel()
			return do(ctx)
		}
		return o.Run(ctx)
	})
	if got := strings.Join(m.trace, " "); report.End != stage.Undone || got != "+0 +1 -1 -0" || !errors.Is(report.Err, context.Canceled) {
		t.Errorf("ended %s after %q: %v", report.End, got, report.Err)
	}
}

// Taking back, the final stage and what lies past it run on a context that a cancellation does not reach, and that ends.
func TestPastThePointNoCancellationIsHeard(t *testing.T) {
	t.Parallel()
	heard := map[string]error{}
	listen := func(name string, cancel func()) func(context.Context) error {
		return func(ctx context.Context) error {
			cancel()
			heard[name] = ctx.Err()
			if _, bounded := ctx.Deadline(); !bounded {
				t.Errorf("%s may last for ever", name)
			}
			return nil
		}
	}
	for _, back := range []bool{true, false} {
		ctx, cancel := context.WithCancel(context.Background())
		seen := func(context.Context) (stage.Effect, error) { return stage.None, nil }
		o := stage.Operation{
			Stages: []stage.Stage{
				{Name: "first", Do: func(context.Context) error { return nil }, Undo: listen("undo", cancel), Seen: seen},
				{Name: "final", Final: true, Do: func(ctx context.Context) error {
					if back {
						return errors.Join(listen("final", cancel)(ctx), errInjected)
					}
					return nil
				}, Seen: seen},
				{Name: "after", Do: listen("after", cancel), Seen: seen},
			},
			Journal: refusing(func(stage.Position) bool { return false }), UndoTime: time.Hour, FinishTime: time.Hour,
		}
		want := stage.Finished
		if back {
			want = stage.Undone
		}
		if report := o.Run(ctx); report.End != want {
			t.Errorf("back=%v: ended %s: %v", back, report.End, report.Err)
		}
		cancel()
	}
	if len(heard) != 3 || heard["undo"] != nil || heard["final"] != nil || heard["after"] != nil {
		t.Errorf("heard: %v", heard)
	}
}

// Whether the point was crossed is unclear when the look fails, whatever word comes with the error.
func TestALookThatFailsIsUnclear(t *testing.T) {
	t.Parallel()
	m := newModel(4, 2)
	m.fault, m.at = errorBefore, 2
	report, _ := m.run(func(ctx context.Context, o stage.Operation) stage.Report {
		o.Stages[2].Seen = func(context.Context) (stage.Effect, error) { return stage.None, errRefused }
		return o.Run(ctx)
	})
	if report.End != stage.Stuck || strings.Contains(strings.Join(m.trace, " "), "-") {
		t.Errorf("ended %s after %v", report.End, m.trace)
	}
}
