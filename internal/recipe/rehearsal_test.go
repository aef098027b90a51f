package recipe_test

import (
	"fmt"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// TestFaultsRehearsal lets a rehearsal die at every change. Whoever goes on with it, by resume or by rollback, leaves no trace:
// what was only to be rehearsed is never done in earnest, nor does it count as refused.
func TestFaultsRehearsal(t *testing.T) {
	b := base{scene: plainScene(), start: plainScene().world()}
	b.before = b.start.dump()
	req := b.req()
	req.Want.RehearseOnly = true
	w := b.fresh()
	if _, err := w.run(t, req, &wire{w: w}); err != nil {
		t.Fatal(err)
	}
	f := &family{name: "rehearsal, crash at every change"}
	var traces []int
	for i := range 4 * w.server.Mutations() {
		if whole() || i%7 == 0 {
			traces = append(traces, i)
		}
	}
	f.traces = len(traces)
	parallel(f.traces, func(i int) {
		i = traces[i]
		at, after, way := 1+i/4, i%2 == 1, []string{"resume", "rollback"}[i/2%2]
		name := fmt.Sprintf("died at change %d, after=%v, then %s", at, after, way)
		w := b.fresh()
		l := &wire{w: w, dieAt: at, after: after, changes: true}
		_, err := w.run(t, req, l)
		w.cluster.Wait()
		f.count(l, l.dead)
		for range 3 {
			j := w.journal(t, 5001)
			if j == nil {
				break
			}
			_, err = w.run(t, b.reconcile(j, way), l.again())
		}
		for _, v := range append(append(l.broken, w.lost()...), w.orphaned()...) {
			f.violation(name, "%s", v)
		}
		if now := w.dump(); now != b.before {
			f.violation(name, "it left a trace (last error: %v):\n%s", err, difference(b.before, now))
		}
		if contract := guest.ReadNotes(w.cluster.Config(5001)["description"]).Contract; contract != nil {
			f.violation(name, "what was only rehearsed is recorded: %+v", contract)
		}
	})
	f.report(t)
}
