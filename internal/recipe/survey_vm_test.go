package recipe_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// TestSurveyOfAVMThatAwaitsTrust: it says what is kept as the way back, how large that is and who has it, and how to end it.
func TestSurveyOfAVMThatAwaitsTrust(t *testing.T) {
	t.Parallel()
	w := newVMWorld()
	oldSystem, oldScratch := w.cluster.VolumeOf(7131, "scsi0"), w.cluster.VolumeOf(7131, "scsi1")
	r, err := w.applyVM(t, recipe.Request{Want: wantsVM()})
	mustVM(t, r, err, recipe.StatusAwaitingTrust)
	w.clock = w.clock.AddDate(0, 0, 40) // it may wait for long: it is never overdue
	found := w.survey(t, recipe.Scope{})
	if len(found.Operations) != 1 || len(found.Parking)+len(found.Unnamed)+len(found.Problems) > 0 {
		t.Fatalf("%s\n%+v", found.Summary, found)
	}
	o := found.Operations[0]
	if o.State != preview.OperationAwaitingTrust || o.Of != guest.KindVM || o.Label != "VM 7131 id01" || o.Age != "40 days" || o.Exists != guest.Present {
		t.Errorf("%+v", o)
	}
	want := []preview.HeldVolume{
		{Key: "scsi0 (old)", Volume: oldSystem, Holder: 7131, Size: 8 << 30}, {Key: "scsi1 (old)", Volume: oldScratch, Holder: 7131, Size: 4 << 30},
	}
	if len(o.Volumes) < 2 || !slices.Equal(o.Volumes[:2], want) { // the new ones follow
		t.Errorf("%+v, want %+v", o.Volumes, want)
	}
	for _, words := range []string{fmt.Sprintf("reconcile = { operation = %q, action = \"accept\" }", r.Operation), `"rollback" brings the old system back`, "pvrx_vm_rebuild"} {
		if !strings.Contains(o.Remedy, words) {
			t.Errorf("%q is missing from %s", words, o.Remedy)
		}
	}
	if !strings.Contains(found.Summary, "is done and waits for a verdict") {
		t.Errorf("%s", found.Summary)
	}
	r, err = w.reconcileVM(t, wantsVM(), r.Operation, "accept")
	mustVM(t, r, err, recipe.StatusReady)
	if after := w.survey(t, recipe.Scope{}); !strings.HasPrefix(after.Summary, "Nothing is half done") {
		t.Errorf("%s", after.Summary)
	}
}

// TestFaultsVMSurveyAtEveryStage lets the process die at changes of a rebuild and of a replacement: the operation is told as
// long as its record is there, and no volume counts as left behind while the operation may want it.
func TestFaultsVMSurveyAtEveryStage(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]func() preview.Want{"rebuild": wantsVM, "replace": wantsVMReplaced} {
		whole0 := newVMWorld()
		if _, err := whole0.applyVM(t, recipe.Request{Want: want()}); err != nil {
			t.Fatal(err)
		}
		requests := whole0.server.Requests()
		seen := 0
		for i, r := range requests {
			if !r.Mutates() || !whole() && r.Mutation%4 != 1 {
				continue
			}
			w := newVMWorld()
			_, _ = w.applyVMOver(t, &wire{w: w, dieAt: i + 1, after: true}, recipe.Request{Want: want()})
			w.cluster.Wait()
			at := fmt.Sprintf("%s, died at request %d (%s %s)", name, i+1, r.Method, r.Path)
			j := w.recordVM(t, 7131)
			found := w.survey(t, recipe.Scope{})
			if j == nil {
				if len(found.Operations) > 0 {
					t.Errorf("%s: an operation that nothing records: %+v", at, found.Operations)
				}
				continue
			}
			seen++
			if len(found.Operations) != 1 || found.Operations[0].Operation != j.Operation || found.Operations[0].Of != guest.KindVM {
				t.Errorf("%s: %s", at, found.Summary)
				continue
			}
			for _, v := range found.Operations[0].Volumes {
				if v.Holder == 0 {
					t.Errorf("%s (%s): nobody holds %+v", at, j.Stage, v)
				}
			}
			for _, v := range found.Unnamed {
				if v.Operation != j.Operation {
					t.Errorf("%s: left behind: %+v", at, v)
				}
			}
			for _, p := range found.Parking {
				if p.Operation != j.Operation || p.VMID == 9131 {
					t.Errorf("%s: %+v", at, p)
				}
			}
		}
		if seen == 0 {
			t.Errorf("%s: no process ever died with a record", name)
		}
	}
}
