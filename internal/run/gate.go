package run

import (
	"context"
	"fmt"
	"sync"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// Gate paces operations: at most so many at once, and none any more after one of them stopped half-way. It holds for one
// provider configuration; an alias is a process of its own.
type Gate struct {
	turns     chan struct{}
	stopAfter bool

	mu     sync.Mutex
	halted *Halt
}

// Halt says why no further operation starts in this run.
type Halt struct {
	Guest     guest.VMID // the guest whose operation stopped half-way
	Operation string     // its id
}

// Error names the operation that stopped the run.
func (h *Halt) Error() string {
	return fmt.Sprintf("cannot start another operation in this run: %s on guest %s stopped half-way", h.Operation, h.Guest)
}

// NewGate lets at most so many operations (at least one) run at once. With stopAfterFailure none starts any more after one
// was reported as stopped half-way.
func NewGate(atOnce int, stopAfterFailure bool) *Gate {
	return &Gate{turns: make(chan struct{}, max(atOnce, 1)), stopAfter: stopAfterFailure}
}

// Enter waits for a turn and returns the function that gives it back. Waiting ends at once when ctx does, and with a *Halt
// when the run was stopped. The caller starts its operation's clock after Enter returned: waiting counts for nothing.
func (g *Gate) Enter(ctx context.Context) (leave func(), err error) {
	select {
	case g.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	leave = sync.OnceFunc(func() { <-g.turns })
	// Both may have been possible at once; a run that is ending starts nothing.
	if err := ctx.Err(); err != nil {
		leave()
		return nil, err
	}
	if halt := g.Halted(); halt != nil {
		leave()
		return nil, halt
	}
	return leave, nil
}

// StoppedHalfWay reports that an operation needs reconciling. The caller still holds its turn, so that whoever waits for
// it learns of this before it can start.
func (g *Gate) StoppedHalfWay(id guest.VMID, operation string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopAfter && g.halted == nil {
		g.halted = &Halt{Guest: id, Operation: operation}
	}
}

// Halted returns why no operation starts any more, nil when they do.
func (g *Gate) Halted() *Halt {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.halted
}

// Running says how many operations hold a turn now.
func (g *Gate) Running() int { return len(g.turns) }
