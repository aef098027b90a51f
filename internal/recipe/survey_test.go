package recipe_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

func (w *world) survey(t testing.TB, scope recipe.Scope) preview.Report {
	t.Helper()
	before := w.server.Mutations()
	r, err := w.container(t).Survey(context.Background(), scope)
	if err != nil {
		t.Fatal(err)
	}
	if n := w.server.Mutations() - before; n > 0 {
		t.Fatalf("a survey sent %d changes", n)
	}
	return r
}

// TestFaultsSurveyAtEveryStage lets the process die at every request that changes something, and asks with nothing but an
// endpoint what there is: the operation is there while its record is, with every kept volume accounted for.
func TestFaultsSurveyAtEveryStage(t *testing.T) {
	t.Parallel()
	b := plainScene().base(t)
	stages := map[string]bool{}
	for _, at := range b.changes(t) {
		w := b.fresh()
		_, _ = w.run(t, b.req(), &wire{w: w, dieAt: at, after: true})
		w.cluster.Wait()
		j := w.journal(t, 5001)
		r := w.survey(t, recipe.Scope{})
		name := fmt.Sprintf("died at request %d", at)
		if len(r.Unseen) > 0 {
			t.Errorf("%s: not seen: %q", name, r.Unseen)
		}
		if j == nil {
			if len(r.Operations) > 0 {
				t.Errorf("%s: an operation that nothing records: %+v", name, r.Operations)
			}
			continue
		}
		name += fmt.Sprintf(" (%s)", j.Stage)
		stages[j.Stage] = true
		if len(r.Operations) != 1 {
			t.Errorf("%s: %d operations", name, len(r.Operations))
			continue
		}
		o := r.Operations[0]
		if o.Operation != j.Operation || o.Stage != j.Stage || o.Guest != 5001 || o.State != preview.OperationInProgress {
			t.Errorf("%s: %+v", name, o)
		}
		there := slices.Contains(w.cluster.Guests(), 5001)
		if there != (o.Exists == guest.Present) || !there && o.Exists != guest.Absent {
			t.Errorf("%s: CT 5001 exists: %v, and the survey says %s", name, there, o.Exists)
		}
		for _, v := range o.Volumes {
			if v.Holder == 0 || !strings.Contains(w.cluster.Config(int(v.Holder))[v.Key], v.Volume) || v.Size == 0 {
				t.Errorf("%s: %+v, and CT %d has %q", name, v, v.Holder, w.cluster.Config(int(v.Holder))[v.Key])
			}
		}
		if len(o.Volumes) != 3 {
			t.Errorf("%s: %d kept volumes", name, len(o.Volumes))
		}
		if !strings.Contains(o.Remedy, fmt.Sprintf("reconcile = { operation = %q, action = \"resume\" }", j.Operation)) {
			t.Errorf("%s: %s", name, o.Remedy)
		}
		if parked := slices.Contains(w.cluster.Guests(), int(j.Parking)); parked != (len(r.Parking) == 1) {
			t.Errorf("%s: the parking guest is there: %v, and the survey says %+v", name, parked, r.Parking)
		}
		if len(r.Unnamed) > 0 {
			t.Errorf("%s: nobody names %+v", name, r.Unnamed)
		}
		// Its time over, it is said to be abandoned.
		w.clock = w.clock.AddDate(0, 0, 3)
		if late := w.survey(t, recipe.Scope{Guest: 5001}); len(late.Operations) != 1 || late.Operations[0].State != preview.OperationOverdue || late.Operations[0].Age != "3 days" {
			t.Errorf("%s: three days later: %+v", name, late.Operations)
		}
		if other := w.survey(t, recipe.Scope{Guest: 5002}); len(other.Operations)+len(other.Parking) > 0 {
			t.Errorf("%s: asked for another guest: %+v", name, other)
		}
		// What the report says to do works.
		if _, err := w.run(t, b.reconcile(j, "resume"), &wire{w: w}); err != nil {
			t.Errorf("%s: resume: %v", name, err)
		}
		if after := w.survey(t, recipe.Scope{}); len(after.Operations)+len(after.Parking)+len(after.Problems)+len(after.Unnamed) > 0 {
			t.Errorf("%s: after the resume: %s", name, after.Summary)
		}
	}
	for _, want := range []string{"claim", "rehearse", "stop", "park mp0", "park mp3", "park unused0", "guard", "destroy", "create", "return mp0", "return mp3", "return unused0", "return references", "restore", "start", "settle"} {
		if !stages[want] && whole() {
			t.Errorf("no process died at %q", want)
		}
	}
}

// changes are the numbers of the requests of an uninterrupted run that change something; a sample of them when not the
// whole matrix runs.
func (b base) changes(t testing.TB) []int {
	t.Helper()
	w := b.fresh()
	if _, err := w.run(t, b.req(), &wire{w: w}); err != nil {
		t.Fatal(err)
	}
	var all []int
	for i, r := range w.server.Requests() {
		if r.Mutates() && (whole() || len(all) == 0 || r.Mutation%5 == 0) {
			all = append(all, i+1)
		}
	}
	return all
}

// dyingAfter is a process that dies when a request on a path was answered.
type dyingAfter struct {
	wire
	path string
}

func (l *dyingAfter) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := l.wire.RoundTrip(req)
	if !strings.HasSuffix(req.URL.Path, l.path) {
		return res, err
	}
	if res != nil {
		_ = res.Body.Close()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
	return nil, errDied
}

// TestB5SurveyPointsAtTheVolumeOfAnInterruptedMove: the storage renamed it, no configuration names it, and the process is
// dead. Whoever goes on, forwards or backwards, finds it by what the record says the receiver owned, which here is nothing.
func TestB5SurveyPointsAtTheVolumeOfAnInterruptedMove(t *testing.T) {
	t.Parallel()
	b := plainScene().base(t)
	for _, at := range []string{"renamed", "source-written"} {
		for _, way := range []string{"resume", "rollback"} {
			w := b.fresh()
			w.server.Inject(pvesim.Fault{Kind: pvesim.FaultTaskKill, Path: `/lxc/\d+/move_volume$`, At: at})
			c, ctx := w.containerOver(t, &dyingAfter{wire: wire{w: w}, path: "/move_volume"}), context.Background()
			seen, err := c.Observe(ctx, 5001)
			if err != nil {
				t.Fatal(err)
			}
			req := b.req()
			req.Planned = seen.Acknowledged
			if _, err := c.Apply(ctx, req); err == nil {
				t.Fatal("the process did not die")
			}
			w.server.ClearFaults()
			w.cluster.Wait()
			r := w.survey(t, recipe.Scope{})
			if len(r.Operations) != 1 || len(r.Unnamed) != 1 {
				t.Fatalf("%s: %s", at, r.Summary)
			}
			if v := r.Unnamed[0]; v.Operation != r.Operations[0].Operation || !strings.Contains(v.Remedy, "go on with the operation first") {
				t.Errorf("%s: %+v", at, v)
			}
			if says := strings.Contains(r.Operations[0].Remedy, "a move was cut short"); says != (at == "source-written") {
				t.Errorf("%s: %s", at, r.Operations[0].Remedy)
			}
			if _, err := w.run(t, b.reconcile(w.journal(t, 5001), way), &wire{w: w}); err != nil {
				t.Errorf("%s: %s: %v", at, way, err)
			}
			if lost := append(w.lost(), w.orphaned()...); len(lost) > 0 {
				t.Errorf("%s: %s: %v", at, way, lost)
			}
			if dump := w.dump(); dump != b.before && dump != b.after {
				t.Errorf("%s: %s: %s", at, way, difference(map[string]string{"resume": b.after, "rollback": b.before}[way], dump))
			}
		}
	}
}

// TestB11SurveySaysWhatItMayNotSee: with few rights there is little to see, and nothing is taken for absent.
func TestB11SurveySaysWhatItMayNotSee(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rights map[string][]string
		says   []string
	}{
		"one guest":    {map[string][]string{"/vms/5001": {"VM.Audit"}}, []string{"VM.Audit on /vms", "Datastore.Audit on /storage"}},
		"only guests":  {map[string][]string{"/vms": {"VM.Audit"}}, []string{"Datastore.Audit on /storage"}},
		"one storage":  {map[string][]string{"/vms": {"VM.Audit"}, "/storage/tank": {"Datastore.AllocateSpace"}}, []string{"the volumes on storage tank (Datastore.Audit on /storage/tank)"}},
		"no archives":  {map[string][]string{"/vms": {"VM.Audit"}, "/storage": {"Datastore.Audit"}}, []string{"VM.Backup on /vms"}},
		"an auditor's": {map[string][]string{"/": {"Sys.Audit", "VM.Audit", "VM.Backup", "Datastore.Audit", "Datastore.AllocateSpace"}}, nil},
	} {
		w := newWorld()
		w.token = w.cluster.AddToken("few@pve", "t", c.rights)
		r := w.survey(t, recipe.Scope{})
		all := strings.Join(r.Unseen, "\n")
		for _, want := range c.says {
			if !strings.Contains(all, want) {
				t.Errorf("%s: %q is missing from\n%s", name, want, all)
			}
		}
		if len(c.says) == 0 && all != "" {
			t.Errorf("%s: %s", name, all)
		}
		for _, v := range r.Unnamed {
			if v.Certain && len(r.Unseen) > 0 {
				t.Errorf("%s: sure about %+v", name, v)
			}
		}
	}
}

func TestSurveySaysThatANodeIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.cluster.AddContainer(pvesim.ContainerSpec{VMID: 5003, Node: "pve2", Config: map[string]string{"rootfs": "local-lvm:4"}})
	w.cluster.SetNodeOnline("pve2", false)
	r := w.survey(t, recipe.Scope{})
	if !slices.ContainsFunc(r.Unseen, func(s string) bool { return strings.Contains(s, "node pve2 does not answer") }) || !strings.Contains(r.Summary, "Not seen: node pve2") {
		t.Errorf("%q", r.Unseen)
	}
}

// TestA4SurveyFindsTheArchiveOfAParkingGuest that a backup job made while data waited there, long after.
func TestA4SurveyFindsTheArchiveOfAParkingGuest(t *testing.T) {
	t.Parallel()
	b := plainScene().base(t)
	w := b.fresh()
	w.server.After = func(r pvesim.Request) {
		if r.Method == "DELETE" && strings.HasSuffix(r.Path, "/lxc/5001") {
			for _, id := range w.cluster.Guests() {
				if id > 900000 {
					w.cluster.Backup(id, "local", "pvrx-parking-5001", false)
				}
			}
		}
	}
	if _, err := w.run(t, b.req(), &wire{w: w}); err != nil {
		t.Fatal(err)
	}
	r := w.survey(t, recipe.Scope{Guest: 5001})
	if len(r.Archives) != 1 || r.Archives[0].Guest != 5001 || r.Archives[0].VMID < 900000 || !strings.Contains(r.Archives[0].Remedy, "CT 5001") {
		t.Errorf("%+v", r.Archives)
	}
}
