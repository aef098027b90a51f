package recipe_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// before does something right before its nth request, once.
type before struct {
	*wire
	at int
	do func()

	mu      sync.Mutex // storages are listed at once
	methods []string   // of the requests so far
}

func (b *before) RoundTrip(req *http.Request) (*http.Response, error) {
	b.mu.Lock()
	if b.methods = append(b.methods, req.Method); len(b.methods) == b.at {
		b.do()
	}
	b.mu.Unlock()
	return b.wire.RoundTrip(req)
}

// TestLoserReportsTheFasterRun: whatever a run has read of the guest when another one begins, is at work or has ended, it
// reports that one, and changes nothing that is left.
func TestLoserReportsTheFasterRun(t *testing.T) {
	t.Parallel()
	b := plainScene().base(t)
	w := b.fresh()
	count := &before{wire: &wire{w: w, dieAt: 1, changes: true}}
	if _, err := w.containerOver(t, count).Apply(context.Background(), b.req()); err == nil {
		t.Fatal("it lived")
	}
	reads := slices.Index(count.methods, http.MethodPut) // until the claim
	step := 1
	if !whole() {
		step = 9
	}
	for at := 1; at <= reads; at += step {
		for name, dies := range map[string]int{"at work": 25, "ended": 0} { // 25: some volumes are here, some there
			w := b.fresh()
			c := w.container(t)
			planned, err := c.Observe(context.Background(), 5001)
			if err != nil {
				t.Fatal(err)
			}
			var first recipe.Result
			faster := func() {
				req := b.req()
				req.Want.Triggers = map[string]string{"again": "faster"}
				var err error
				if first, err = w.run(t, req, &wire{w: w, dieAt: dies, changes: true}); err != nil && dies == 0 {
					t.Fatal(err)
				}
			}
			slow := &before{wire: &wire{w: w}, at: at, do: faster}
			req := b.req()
			req.Planned = planned.Acknowledged
			run := w.containerOver(t, slow)
			run.Random = func() string { return "510a510a" }
			result, err := run.Apply(context.Background(), req)
			switch {
			case err == nil:
				t.Errorf("%s before read %d: both went through", name, at)
			case !strings.Contains(err.Error(), first.Operation) || first.Operation == "":
				t.Errorf("%s before read %d: the slower run does not report %q: %v", name, at, first.Operation, err)
			case result.Changed:
				t.Errorf("%s before read %d: the slower run says it changed something: %v", name, at, err)
			}
		}
	}
}
