package run

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestGateLetsSoManyIn(t *testing.T) {
	t.Parallel()
	for _, atOnce := range []int{0, 1, 3} {
		synctest.Test(t, func(t *testing.T) {
			g := NewGate(atOnce, true)
			var inside, most atomic.Int64
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					leave, err := g.Enter(t.Context())
					if err != nil {
						t.Errorf("Enter: %v", err)
						return
					}
					defer leave()
					for now := inside.Add(1); ; {
						seen := most.Load()
						if now <= seen || most.CompareAndSwap(seen, now) {
							break
						}
					}
					time.Sleep(time.Minute)
					inside.Add(-1)
				})
			}
			wg.Wait()
			if want := int64(max(atOnce, 1)); most.Load() != want {
				t.Errorf("%d at once, want %d", most.Load(), want)
			}
			if g.Running() != 0 {
				t.Errorf("%d turns were not given back", g.Running())
			}
		})
	}
}

func TestGateWaitingEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(1, true)
		leave, err := g.Enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		begun := time.Now()
		if _, err := g.Enter(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v", err)
		}
		if waited := time.Since(begun); waited != time.Second {
			t.Errorf("returned after %v, want at once when cancelled", waited)
		}
		leave()
		leave() // giving a turn back twice gives it back once
		if _, err := g.Enter(ctx); !errors.Is(err, context.Canceled) || g.Running() != 0 {
			t.Errorf("a cancelled caller entered: %v, %d running", err, g.Running())
		}
	})
}

func TestGateStartsNothingAfterAFailure(t *testing.T) {
	t.Parallel()
	for _, stop := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			g := NewGate(1, stop)
			leave, err := g.Enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			waiting := make(chan error)
			go func() {
				leave, err := g.Enter(t.Context())
				if err == nil {
					leave()
				}
				waiting <- err
			}()
			synctest.Wait()
			g.StoppedHalfWay(5001, "op-5001-20261201-3f2a")
			g.StoppedHalfWay(5002, "op-5002-20261201-3f2a")
			leave()
			err = <-waiting
			var halt *Halt
			if stop != errors.As(err, &halt) {
				t.Fatalf("stop after failure %v: the next one got %v", stop, err)
			}
			if stop && (halt.Guest != 5001 || halt.Operation != "op-5001-20261201-3f2a") {
				t.Errorf("halt = %+v, want the first", halt)
			}
		})
	}
}

func TestBlocksCountsPlansPerGuest(t *testing.T) {
	t.Parallel()
	var b Blocks
	if b.Plan(5001) || b.Plan(5002) || !b.Plan(5001) {
		t.Error("want a duplicate at the second plan of one guest, and only there")
	}
	if b.InState(5001) {
		t.Error("5001 was not read")
	}
	b.Read(5001)
	if !b.InState(5001) || b.InState(5002) {
		t.Error("5001 was read, 5002 was not")
	}
}
