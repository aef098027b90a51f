package stage_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/stage"
)

// model is a world in which stage i has the effect done[i], with a journal that survives a crash. Its faults are aimed at
// one stage; every run counts what it issued.
type model struct {
	done    []bool
	partly  []bool
	issued  []int // effects issued per stage
	taken   []int // undos issued per stage
	final   int
	journal *stage.Position // nil: no record
	writes  int

	fault     fault
	at        int // stage the fault strikes
	undoFails int // stage whose undo fails once, -1 for none
	struck    bool
	cancel    context.CancelFunc
	trace     []string
}

type fault int

const (
	noFault fault = iota
	errorBefore
	errorAfter
	errorPartly
	answerLost
	crashBeforeWrite
	crashAfterWrite
	crashAfterEffect
	writeRefused
	cancelled
	cancelledAfter
	lastFault
)

func (f fault) String() string {
	return [...]string{
		"no fault", "error before effect", "error after effect", "error with part of the effect", "answer lost after effect",
		"crash before the journal write", "crash after the journal write", "crash after the effect", "journal write refused",
		"context cancelled", "context cancelled after the effect",
	}[f]
}

var (
	errInjected = errors.New("injected")
	errRefused  = errors.New("refused")
)

type crash struct{}

func newModel(stages, final int) *model {
	return &model{done: make([]bool, stages), partly: make([]bool, stages), issued: make([]int, stages), taken: make([]int, stages), final: final, undoFails: -1, at: -1}
}

func (m *model) strikes(k int, kinds ...fault) bool {
	if m.struck || k != m.at || !slices.Contains(kinds, m.fault) {
		return false
	}
	m.struck = true
	return true
}

// Write implements stage.Journal.
func (m *model) Write(_ context.Context, at stage.Position) error {
	m.writes++
	if !at.Back && !at.Stuck {
		if m.strikes(at.Index-1, crashBeforeWrite) {
			panic(crash{})
		}
		if m.strikes(at.Index-1, writeRefused) {
			return errRefused
		}
	}
	m.journal = &at
	if !at.Back && !at.Stuck && m.strikes(at.Index-1, crashAfterWrite) {
		panic(crash{})
	}
	return nil
}

func (m *model) stages() []stage.Stage {
	var out []stage.Stage
	for k := range m.done {
		s := stage.Stage{
			Name:  fmt.Sprintf("s%d", k),
			Final: k == m.final,
			Do:    func(ctx context.Context) error { return m.do(ctx, k) },
			Seen: func(context.Context) (stage.Effect, error) {
				switch {
				case m.done[k]:
					return stage.Whole, nil
				case m.partly[k]:
					return stage.Partly, nil
				}
				return stage.None, nil
			},
		}
		if k < m.final {
			s.Undo = func(context.Context) error {
				if m.undoFails == k {
					m.undoFails = -1
					return errInjected
				}
				if m.done[k] || m.partly[k] {
					m.taken[k]++
				}
				m.done[k], m.partly[k] = false, false
				m.trace = append(m.trace, fmt.Sprintf("-%d", k))
				return nil
			}
		}
		out = append(out, s)
	}
	return out
}

func (m *model) do(ctx context.Context, k int) error {
	switch {
	case m.strikes(k, errorBefore):
		return errInjected
	case m.strikes(k, cancelled):
		m.cancel()
		if err := ctx.Err(); err != nil { // not heard past the point
			return err
		}
	}
	if !m.done[k] {
		m.issued[k]++
		m.done[k] = true
		m.trace = append(m.trace, fmt.Sprintf("+%d", k))
	}
	switch {
	case m.strikes(k, errorPartly):
		m.done[k], m.partly[k] = false, true
		return errInjected
	case m.strikes(k, errorAfter, answerLost):
		return errInjected
	case m.strikes(k, crashAfterEffect):
		panic(crash{})
	case m.strikes(k, cancelledAfter):
		m.cancel()
		return ctx.Err()
	}
	m.partly[k] = false
	return nil
}

func (m *model) operation() stage.Operation {
	return stage.Operation{
		Stages: m.stages(), Journal: m, UndoTime: time.Second, FinishTime: time.Second,
		Sleep: func(context.Context, time.Duration) error { return nil },
	}
}

// run runs f and reports whether the process died in it.
func (m *model) run(f func(context.Context, stage.Operation) stage.Report) (report stage.Report, died bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	m.cancel = cancel
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(crash); !ok {
				panic(r)
			}
			died = true
		}
	}()
	return f(ctx, m.operation()), false
}

func (m *model) all(v bool) bool {
	for k, d := range m.done {
		if d != v || m.partly[k] {
			return false
		}
	}
	return true
}
