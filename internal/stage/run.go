package stage

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Operation is an ordered list of stages with the journal that records them.
type Operation struct {
	Stages  []Stage
	Journal Journal
	// Past says that the point of no return was crossed before the first stage: nothing here is ever taken back.
	Past bool
	// UndoTime bounds taking back; FinishTime bounds what runs past the point of no return. Neither is cut short by the
	// caller's context: stopping there is the dangerous choice.
	UndoTime, FinishTime time.Duration
	// Again says whether an error of a stage past the point of no return is worth another try, and after how long.
	// tries counts the tries so far. Nil: never.
	Again func(err error, tries int) (wait time.Duration, again bool)
	// Log receives a line per step; nil logs nothing.
	Log func(ctx context.Context, message string, at Position)
	// Sleep waits or returns early with the context's error; nil uses a timer.
	Sleep func(ctx context.Context, d time.Duration) error
}

// End says how a run ended. The zero value is invalid.
type End uint8

// The ends.
const (
	// Finished: every stage is done.
	Finished End = iota + 1
	// Undone: everything was taken back; the world is as it was.
	Undone
	// Stuck: the operation stopped half-way and waits for a person.
	Stuck
)

// String returns one word.
func (e End) String() string {
	switch e {
	case Finished:
		return "finished"
	case Undone:
		return "undone"
	case Stuck:
		return "stuck"
	}
	return "invalid"
}

// Report is what a run reached.
type Report struct {
	End End
	At  Position
	// Err is why the run did not finish: nil only when it did. Undo errors are joined to the first error.
	Err error
}

// Run starts the operation at its first stage.
func (o Operation) Run(ctx context.Context) Report { return o.forward(ctx, 0) }

// Resume goes on from a recorded position, in the direction that was recorded. The stage named there may or may not have
// had its effect: its Do looks before it acts.
func (o Operation) Resume(ctx context.Context, at Position) Report {
	k, err := o.find(at)
	if err != nil {
		return Report{End: Stuck, At: at, Err: err}
	}
	if at.Back {
		return o.back(ctx, k, nil)
	}
	return o.forward(ctx, k)
}

// TakeBack undoes an operation from a recorded position. It refuses when the point of no return may have been crossed.
func (o Operation) TakeBack(ctx context.Context, at Position) Report {
	k, err := o.find(at)
	if err != nil {
		return Report{End: Stuck, At: at, Err: err}
	}
	final := o.final()
	if k > final {
		return Report{End: Stuck, At: at, Err: fmt.Errorf("cannot take back stage %d of %d (%s): it lies past the point of no return", k+1, len(o.Stages), at.Stage)}
	}
	if k == final {
		effect, err := o.seen(ctx, o.Stages[k])
		if effect != None {
			return Report{End: Stuck, At: at, Err: errors.Join(fmt.Errorf("cannot take back stage %d of %d (%s): its effect is %s", k+1, len(o.Stages), at.Stage, effect), err)}
		}
	}
	return o.back(ctx, k, nil)
}

// Crossed reports whether a position lies past the point of no return for certain.
func (o Operation) Crossed(at Position) bool {
	k, err := o.find(at)
	return err == nil && k > o.final()
}

func (o Operation) find(at Position) (int, error) {
	for k, s := range o.Stages {
		if s.Name == at.Stage {
			return k, nil
		}
	}
	return 0, fmt.Errorf("cannot go on: the journal names stage %q, which this operation does not have", at.Stage)
}

// final is the index of the stage that crosses the point of no return; an operation without one never crosses it.
func (o Operation) final() int {
	if o.Past {
		return -1
	}
	for k, s := range o.Stages {
		if s.Final {
			return k
		}
	}
	return len(o.Stages)
}

func (o Operation) position(k int) Position {
	return Position{Stage: o.Stages[k].Name, Index: k + 1, Of: len(o.Stages)}
}

func (o Operation) forward(caller context.Context, from int) Report {
	final := o.final()
	for k := from; k < len(o.Stages); k++ {
		ctx := caller
		if k > final {
			detached, cancel := o.detached(caller, o.FinishTime)
			defer cancel()
			return o.finish(detached, k)
		}
		if err := ctx.Err(); err != nil {
			return o.back(caller, k-1, fmt.Errorf("stopped before stage %d of %d (%s): %w", k+1, len(o.Stages), o.Stages[k].Name, err))
		}
		if err := o.write(ctx, o.position(k)); err != nil {
			return o.back(caller, k-1, fmt.Errorf("cannot record stage %d of %d (%s): %w", k+1, len(o.Stages), o.Stages[k].Name, err))
		}
		if k == final {
			report, crossed := o.cross(caller, k)
			if !crossed {
				return report
			}
			continue
		}
		if err := o.do(ctx, k); err != nil {
			effect, _ := o.seen(caller, o.Stages[k])
			if effect == Whole && caller.Err() == nil {
				continue
			}
			return o.back(caller, k, err)
		}
	}
	return o.finished()
}

// cross runs the stage behind which there is no way back. The point counts as crossed when the effect is there or may be.
func (o Operation) cross(caller context.Context, k int) (Report, bool) {
	ctx, cancel := o.detached(caller, o.FinishTime)
	defer cancel()
	err := o.do(ctx, k)
	if err == nil {
		return Report{}, true
	}
	effect, seenErr := o.seen(ctx, o.Stages[k])
	switch effect {
	case Whole:
		return Report{}, true
	case None:
		return o.back(caller, k, err), false
	case Partly, Unclear:
	}
	return o.stuck(ctx, o.position(k), errors.Join(err, seenErr)), false
}

// finish runs the stages past the point of no return: never back, another try where that is safe, else stuck.
func (o Operation) finish(ctx context.Context, from int) Report {
	for k := from; k < len(o.Stages); k++ {
		for tries := 1; ; tries++ {
			err := o.write(ctx, o.position(k))
			if err != nil {
				err = fmt.Errorf("cannot record stage %d of %d (%s): %w", k+1, len(o.Stages), o.Stages[k].Name, err)
			} else if err = o.do(ctx, k); err == nil {
				break
			} else if effect, _ := o.seen(ctx, o.Stages[k]); effect == Whole {
				break
			}
			if !o.again(ctx, err, tries) {
				return o.stuck(ctx, o.position(k), err)
			}
		}
	}
	return o.finished()
}

func (o Operation) finished() Report {
	return Report{End: Finished, At: o.position(len(o.Stages) - 1)}
}

// back takes stages back from k down to the first. A failed undo stops the chain: what a later undo would remove may hold
// what an earlier one could not bring back.
func (o Operation) back(caller context.Context, k int, cause error) Report {
	ctx, cancel := o.detached(caller, o.UndoTime)
	defer cancel()
	for ; k >= 0; k-- {
		if o.Stages[k].Undo == nil {
			continue
		}
		at := o.position(k)
		at.Back, at.Problem = true, problem(cause)
		if err := o.write(ctx, at); err != nil {
			return o.stuck(ctx, at, errors.Join(cause, fmt.Errorf("cannot record the undo of stage %d of %d (%s): %w", at.Index, at.Of, at.Stage, err)))
		}
		o.log(ctx, "taking back", at)
		if err := o.Stages[k].Undo(ctx); err != nil {
			return o.stuck(ctx, at, errors.Join(cause, fmt.Errorf("cannot take back stage %d of %d (%s): %w", at.Index, at.Of, at.Stage, err)))
		}
	}
	if cause == nil {
		cause = ErrTakenBack
	}
	return Report{End: Undone, At: Position{Of: len(o.Stages), Back: true}, Err: cause}
}

// ErrTakenBack is the error of a run that was asked to take everything back and did.
var ErrTakenBack = errors.New("the operation was taken back")

func (o Operation) stuck(ctx context.Context, at Position, cause error) Report {
	at.Stuck, at.Problem = true, problem(cause)
	o.log(ctx, "stuck", at)
	if err := o.write(ctx, at); err != nil {
		cause = errors.Join(cause, fmt.Errorf("cannot record that the operation is stuck: %w", err))
	}
	return Report{End: Stuck, At: at, Err: cause}
}

func (o Operation) do(ctx context.Context, k int) error {
	at := o.position(k)
	o.log(ctx, "stage", at)
	if err := o.Stages[k].Do(ctx); err != nil {
		return fmt.Errorf("stage %d of %d (%s): %w", at.Index, at.Of, at.Stage, err)
	}
	return nil
}

// seen asks a stage for its effect on a context of its own: the one that failed may be over.
func (o Operation) seen(caller context.Context, s Stage) (Effect, error) {
	ctx, cancel := o.detached(caller, o.UndoTime)
	defer cancel()
	effect, err := s.Seen(ctx)
	if err != nil {
		return Unclear, err
	}
	return effect, nil
}

func (o Operation) write(ctx context.Context, at Position) error {
	return o.Journal.Write(ctx, at)
}

func (o Operation) again(ctx context.Context, err error, tries int) bool {
	if o.Again == nil || ctx.Err() != nil {
		return false
	}
	wait, again := o.Again(err, tries)
	if !again {
		return false
	}
	return o.sleep(ctx, wait) == nil
}

func (o Operation) sleep(ctx context.Context, d time.Duration) error {
	if o.Sleep != nil {
		return o.Sleep(ctx, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (o Operation) detached(caller context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(caller), limit)
}

func (o Operation) log(ctx context.Context, message string, at Position) {
	if o.Log != nil {
		o.Log(ctx, message, at)
	}
}

func problem(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
