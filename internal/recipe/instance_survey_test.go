package recipe_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// What is half done to an application container is found with nothing but an endpoint, at every change at which a process can
// die; and where it left an archive that nothing is made from, that is found too.
func TestFaultsInstanceSurvey(t *testing.T) {
	for _, kind := range []string{"install", "update", "removal"} {
		b := courses()[kind].base(t)
		found := map[string]bool{}
		for at := 1; at <= b.muts; at += 3 {
			w := b.fresh()
			_, _ = b.apply(t, w, &wire{w: w, dieAt: at, after: true, changes: true}, b.req())
			w.cluster.Wait()
			name := fmt.Sprintf("%s, died at change %d", b.name, at)
			j, r := w.journal(t, 8001), w.survey(t, recipe.Scope{})
			if len(r.Unseen) > 0 || strings.Contains(r.Summary, secret) {
				t.Errorf("%s: not seen %q: %s", name, r.Unseen, r.Summary)
			}
			if j == nil {
				if len(r.Operations) > 0 {
					t.Errorf("%s: an operation that nothing records: %+v", name, r.Operations)
				}
				continue
			}
			if len(r.Operations) != 1 {
				t.Fatalf("%s: %d operations", name, len(r.Operations))
			}
			o := r.Operations[0]
			found[o.Stage] = true
			if o.Operation != j.Operation || o.Kind != j.Kind || o.Label != "CT 8001 shop" || !strings.Contains(o.Remedy, "pvrx_oci_instance") || !strings.Contains(o.Remedy, "rollback") && kind != "removal" {
				t.Errorf("%s: %+v", name, o)
			}
		}
		if len(found) == 0 {
			t.Errorf("%s: no operation was ever found", b.name)
		}
	}
}

func TestInstanceSurveyFindsArchivesThatNothingIsMadeFrom(t *testing.T) {
	w, _ := installed(t, newClinic(t), "a1")
	_, shelf := w.instance(t)
	if r := w.survey(t, recipe.Scope{}); len(r.Archives) > 0 {
		t.Errorf("an archive in use is left behind: %+v", r.Archives)
	}
	if _, err := shelf.Place(t.Context(), "pve1", "local", image("b2")); err != nil {
		t.Fatal(err)
	}
	r := w.survey(t, recipe.Scope{})
	if len(r.Archives) != 1 || r.Archives[0].Archive != "local:vztmpl/pvrx-app-b2.tar" || !strings.Contains(r.Archives[0].Remedy, "pvesm free local:vztmpl/pvrx-app-b2.tar") || !strings.Contains(r.Summary, "1 image archive that nothing is made from") {
		t.Errorf("%+v\n%s", r.Archives, r.Summary)
	}
	w.cluster.SetNodeOnline("pve2", false)
	w.token = w.cluster.AddToken("less@pve", "less", map[string][]string{"/vms/5002": {"VM.Audit"}, "/storage": {"Datastore.Audit"}, "/": {"Sys.Audit"}})
	if r := w.survey(t, recipe.Scope{}); len(r.Archives) == 0 || strings.Contains(r.Archives[0].Remedy, "pvesm free") {
		t.Errorf("who sees less is told to remove: %+v", r.Archives)
	}
}
