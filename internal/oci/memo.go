package oci

import (
	"context"
	"sync"
)

// memo answers each question once: who asks while it is being answered waits for the same answer. A question that was given up
// is forgotten.
type memo[K comparable, V any] struct {
	refusals bool // failures are kept like answers, so that who said no is not asked again

	mu      sync.Mutex
	entries map[K]*entry[V]
}

type entry[V any] struct {
	done  chan struct{}
	value V
	err   error
}

func (m *memo[K, V]) get(ctx context.Context, key K, ask func() (V, error)) (V, error) {
	for {
		m.mu.Lock()
		e, known := m.entries[key]
		if !known {
			if m.entries == nil {
				m.entries = map[K]*entry[V]{}
			}
			e = &entry[V]{done: make(chan struct{})}
			m.entries[key] = e
		}
		m.mu.Unlock()
		if !known {
			m.answer(ctx, key, e, ask)
			return e.value, e.err
		}
		select {
		case <-e.done:
			if ProblemOf(e.err) != ProblemCancelled {
				return e.value, e.err
			}
			// Somebody else gave up; we did not.
		case <-ctx.Done():
			var none V
			return none, cancelled(ctx, "wait for a registry")
		}
	}
}

func (m *memo[K, V]) answer(ctx context.Context, key K, e *entry[V], ask func() (V, error)) {
	defer close(e.done)
	e.value, e.err = ask()
	if e.err != nil && ctx.Err() != nil && ProblemOf(e.err) != ProblemCancelled {
		e.err = cancelled(ctx, "ask a registry")
	}
	if e.err != nil && (!m.refusals || ProblemOf(e.err) == ProblemCancelled) {
		m.mu.Lock()
		delete(m.entries, key)
		m.mu.Unlock()
	}
}
