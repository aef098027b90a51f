package run

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func TestOnceReadsOnceForManyCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var o once[string, int]
		var reads atomic.Int64
		release := make(chan struct{})
		read := func(context.Context) (int, error) {
			<-release
			return int(reads.Add(1)), nil
		}
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if v, err := o.get(t.Context(), "a", read); v != 1 || err != nil {
					t.Errorf("get = %d, %v; want 1", v, err)
				}
			})
		}
		synctest.Wait()
		close(release)
		wg.Wait()
		if n := reads.Load(); n != 1 {
			t.Errorf("read %d times, want once", n)
		}
		if v, err := o.get(t.Context(), "b", read); v != 2 || err != nil {
			t.Errorf("another key = %d, %v; want a read of its own", v, err)
		}
	})
}

func TestOnceKeepsNoError(t *testing.T) {
	t.Parallel()
	var o once[int, int]
	failing := errors.New("no answer")
	if _, err := o.get(t.Context(), 0, func(context.Context) (int, error) { return 0, failing }); !errors.Is(err, failing) {
		t.Errorf("err = %v", err)
	}
	if v, err := o.get(t.Context(), 0, func(context.Context) (int, error) { return 7, nil }); v != 7 || err != nil {
		t.Errorf("after an error: %d, %v; want a new read", v, err)
	}
}

func TestOnceSurvivesTheReadersCancellation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var o once[int, int]
		reader, cancel := context.WithCancel(t.Context())
		go func() {
			_, _ = o.get(reader, 0, func(ctx context.Context) (int, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			})
		}()
		synctest.Wait()
		got := make(chan int)
		go func() {
			v, err := o.get(t.Context(), 0, func(context.Context) (int, error) { return 7, nil })
			if err != nil {
				t.Errorf("the waiting caller got the reader's error: %v", err)
			}
			got <- v
		}()
		synctest.Wait()
		cancel()
		if v := <-got; v != 7 {
			t.Errorf("the waiting caller got %d, want a read of its own", v)
		}
	})
}

func TestOnceLetsAWaitingCallerGo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var o once[int, int]
		release := make(chan struct{})
		go func() {
			_, _ = o.get(t.Context(), 0, func(context.Context) (int, error) { <-release; return 1, nil })
		}()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := o.get(ctx, 0, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v, want the caller's own cancellation", err)
		}
		close(release)
	})
}

func TestOnceAfterAPanicReadsAgain(t *testing.T) {
	t.Parallel()
	var o once[int, int]
	func() {
		defer func() { _ = recover() }()
		_, _ = o.get(t.Context(), 0, func(context.Context) (int, error) { panic("broken") })
	}()
	if v, err := o.get(t.Context(), 0, func(context.Context) (int, error) { return 7, nil }); v != 7 || err != nil {
		t.Errorf("get = %d, %v", v, err)
	}
}
