package run

import (
	"context"
	"sync"
)

// once answers each key from one read made for the whole process. The first caller reads, callers that come meanwhile
// wait for it. Only a success is kept: after an error, and after the reader's own cancellation, the next caller reads
// again. A waiting caller leaves as soon as its own context ends.
type once[K comparable, V any] struct {
	mu      sync.Mutex
	answers map[K]*answer[V]
}

type answer[V any] struct {
	ready chan struct{}
	value V
	err   error
	// left says that the reader gave up because its own context ended: whoever waited asks again for itself.
	left bool
}

func (o *once[K, V]) get(ctx context.Context, key K, read func(context.Context) (V, error)) (V, error) {
	for {
		a, mine := o.claim(key)
		if mine {
			o.fill(ctx, key, a, read)
			return a.value, a.err
		}
		select {
		case <-a.ready:
			if !a.left {
				return a.value, a.err
			}
		case <-ctx.Done():
			var none V
			return none, ctx.Err()
		}
	}
}

// claim returns the answer for a key, and whether the caller is the one who must read it.
func (o *once[K, V]) claim(key K) (a *answer[V], mine bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if a, found := o.answers[key]; found {
		return a, false
	}
	if o.answers == nil {
		o.answers = map[K]*answer[V]{}
	}
	a = &answer[V]{ready: make(chan struct{})}
	o.answers[key] = a
	return a, true
}

func (o *once[K, V]) fill(ctx context.Context, key K, a *answer[V], read func(context.Context) (V, error)) {
	done := false
	defer func() {
		// A read that panics leaves like a cancelled one, so that nobody waits for ever.
		a.left = !done || (a.err != nil && ctx.Err() != nil)
		if a.left || a.err != nil {
			o.mu.Lock()
			delete(o.answers, key)
			o.mu.Unlock()
		}
		close(a.ready)
	}()
	a.value, a.err = read(ctx)
	done = true
}
