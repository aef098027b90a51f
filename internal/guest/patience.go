package guest

import (
	"context"
	"time"
)

type patienceKey struct{}

// WithPatience says for how long locks of a guest are waited for below ctx. A lock's answer proves that nothing was done, so
// asking again is always safe; past the point of no return waiting long is better than giving up.
func WithPatience(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, patienceKey{}, d)
}

// Patience returns what WithPatience said; ok is false when nothing was said.
func Patience(ctx context.Context) (d time.Duration, ok bool) {
	d, ok = ctx.Value(patienceKey{}).(time.Duration)
	return d, ok
}
