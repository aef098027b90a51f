package oci

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

func TestMemo(t *testing.T) {
	ctx := context.Background()
	var asked atomic.Int64
	slow := make(chan struct{})
	answer := func() (int, error) {
		asked.Add(1)
		<-slow
		return 7, nil
	}
	m := memo[string, int]{}
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if v, err := m.get(ctx, "a", answer); v != 7 || err != nil {
				t.Errorf("%d, %v", v, err)
			}
		})
	}
	close(slow)
	all.Wait()
	if asked.Load() != 1 {
		t.Errorf("asked %d times", asked.Load())
	}

	bad := errors.New("no")
	for keeps, want := range map[bool]int{true: 1, false: 2} {
		times := 0
		kept := memo[string, int]{refusals: keeps}
		for range 2 {
			if _, err := kept.get(ctx, "a", func() (int, error) { times++; return 0, bad }); !errors.Is(err, bad) {
				t.Errorf("%v", err)
			}
		}
		if times != want {
			t.Errorf("keeping refusals %v: asked %d times", keeps, times)
		}
	}
}

// Who gives up gets away at once, and who asked beside them still gets an answer.
func TestMemoOfAQuestionGivenUp(t *testing.T) {
	m := memo[string, int]{refusals: true}
	leaving, leave := context.WithCancel(context.Background())
	asked := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		_, err := m.get(leaving, "a", func() (int, error) { close(asked); <-leaving.Done(); return 0, leaving.Err() })
		if ProblemOf(err) != ProblemCancelled {
			t.Errorf("%v", err)
		}
	})
	<-asked
	all.Go(func() {
		if v, err := m.get(context.Background(), "a", func() (int, error) { return 7, nil }); v != 7 || err != nil {
			t.Errorf("%d, %v", v, err)
		}
	})
	impatient, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := m.get(impatient, "a", func() (int, error) { return 7, impatient.Err() }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	leave()
	all.Wait()
}
