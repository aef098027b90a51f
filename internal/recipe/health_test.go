package recipe_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// A guest that has stopped is not healthy, and nobody waits for what cannot come.
func TestStoppedGuestIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld()
	c := w.container(t)
	var waited time.Duration
	c.Sleep = func(ctx context.Context, d time.Duration) error {
		w.cluster.SetRunning(5001, false) // its program ends while the probe is asked
		waited += d
		w.clock = w.clock.Add(d)
		return ctx.Err()
	}
	result, err := c.Apply(context.Background(), recipe.Request{Want: wants(), Health: &recipe.Health{TCP: 1, Host: "127.0.0.1", Timeout: 10 * time.Minute}})
	if err == nil || !strings.Contains(err.Error(), "not healthy") || !strings.Contains(err.Error(), "does not run") || result.Stage != "start" {
		t.Errorf("at %q: %v", result.Stage, err)
	}
	if waited > time.Minute {
		t.Errorf("waited %s for a guest that has stopped", waited)
	}
}
