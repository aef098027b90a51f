package recipe_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// course is one kind of operation on an application container that the matrix runs over.
type course struct {
	name   string
	start  func(t testing.TB, c *clinic) *world
	req    func() recipe.Request // without its health check
	remove bool
	fails  recipe.Status // how the uninterrupted run ends when it ends with an error
	made   bool          // its container is there before it
}

// courses are all of them.
func courses() map[string]course {
	there := func(t testing.TB, c *clinic) *world {
		w, _ := installed(t, c, "a1")
		return w
	}
	// to asks for another image, and for what else changes with it.
	to := func(word string, hold bool) func() recipe.Request {
		return func() recipe.Request {
			req := update(word, nil)
			req.Want.Instance.Hold = hold
			req.Want.Instance.Settings["cores"] = "4"
			req.Want.Instance.Volumes["/more"] = preview.VolumeWant{Storage: "tank", Size: 1 << 30}
			return req
		}
	}
	return map[string]course{
		"install": {name: "install", start: func(testing.TB, *clinic) *world {
			w := newInstanceWorld()
			w.keep(w.cluster.VolumeOf(5002, "mp0"))
			return w
		}, req: func() recipe.Request { return recipe.Request{Want: wantsInstance("a1")} }},
		"update": {name: "update", start: there, req: to("b2", false), made: true},
		"unhealthy update": {name: "unhealthy update", start: there, made: true, fails: recipe.StatusRolledBack, req: func() recipe.Request {
			req := update("bad", nil)
			req.Want.Instance.Volumes["/more"] = preview.VolumeWant{Storage: "tank", Size: 1 << 30}
			return req
		}},
		"removal": {name: "removal", made: true, remove: true, start: func(t testing.TB, c *clinic) *world {
			w := there(t, c)
			w.keep(w.cluster.VolumeOf(5002, "mp0"))
			return w
		}, req: func() recipe.Request { return update("a1", nil) }},
	}
}

// run is a course's starting world and the worlds it may end in.
type run struct {
	course
	clinic         *clinic
	start          *world
	before, after  string
	requests, muts int
	sent           []pvesim.Request
}

func (c course) base(t testing.TB) run {
	t.Helper()
	b := run{course: c, clinic: newClinic(t)}
	b.start = c.start(t, b.clinic)
	b.before = b.start.state()
	w := b.fresh()
	result, err := b.apply(t, w, &wire{w: w}, b.req())
	if (err != nil) != (c.fails != "") || result.Status != c.fails && c.fails != "" {
		t.Fatalf("%s: the uninterrupted run ends %q: %v", c.name, result.Status, err)
	}
	b.after = w.state()
	for _, r := range w.server.Requests() {
		if b.requests++; r.Method != http.MethodGet {
			b.muts++
			b.sent = append(b.sent, r)
		}
	}
	if broken := append(w.lost(), w.leaks()...); len(broken) > 0 {
		t.Fatalf("%s: the uninterrupted run: %v", c.name, broken)
	}
	return b
}

func (b run) fresh() *world {
	w := &world{cluster: b.start.cluster.Clone(), token: b.start.token, clock: b.start.clock, kept: b.start.kept}
	w.server = pvesim.NewServer(w.cluster)
	return w
}

// apply does the operation through a wire, as the provider does.
func (b run) apply(t testing.TB, w *world, l *wire, req recipe.Request) (recipe.Result, error) {
	t.Helper()
	if req.Health == nil {
		req.Health = b.clinic.admit(w)
		defer b.clinic.dismiss(req.Health)
	}
	i, _ := w.instanceOver(t, l)
	seen, err := i.Observe(t.Context(), 8001)
	if err != nil {
		return recipe.Result{}, err
	}
	if req.Planned = seen.Acknowledged; b.remove && req.Reconcile == nil {
		return i.Remove(t.Context(), req)
	}
	return i.Apply(t.Context(), req)
}

// state is the world in a form in which two can be compared: the environment without the contract's id, archives left aside.
func (w *world) state() string {
	text := w.cluster.Dump(pvesim.IgnoreKeys("description", "env"), pvesim.IgnoreIdentity(), pvesim.IgnoreLines("backup/", "vztmpl/"))
	for _, id := range w.cluster.Guests() {
		env := w.environment(id)
		delete(env, guest.ContractVariable)
		for _, name := range slices.Sorted(maps.Keys(env)) {
			text += fmt.Sprintf("%d env %s=%s\n", id, name, env[name])
		}
	}
	return text
}

// tells reports whether notes hold the secret, also where they are packed.
func tells(text string) bool {
	notes := guest.ReadNotes(text)
	packed, err := json.Marshal([]any{notes.Journal, notes.Contract})
	return err != nil || strings.Contains(text+string(packed), secret)
}

// leaks names what an operation may never leave: a secret in notes, an archive that a contract names and that is gone, an
// environment of another contract than the notes'.
func (w *world) leaks() (broken []string) {
	for _, id := range w.cluster.Guests() {
		config := w.cluster.Config(id)
		if tells(config["description"]) {
			broken = append(broken, fmt.Sprintf("the notes of %d hold a secret", id))
		}
		contract := w.contract(id)
		if contract == nil || contract.App == nil {
			continue
		}
		if _, there := w.cluster.Volume(contract.App.Archive); !there {
			broken = append(broken, fmt.Sprintf("%s, which %d is made from, is gone", contract.App.Archive, id))
		}
		if mirror := w.environment(id)[guest.ContractVariable]; mirror != contract.Instance {
			broken = append(broken, fmt.Sprintf("the environment of %d is of contract %q, its notes of %q", id, mirror, contract.Instance))
		}
	}
	return broken
}

// without is a resume by somebody who has nothing but the name of the operation: no environment, no image, no settings.
func without(req recipe.Request) recipe.Request {
	health := req.Health
	return recipe.Request{Want: preview.Want{VMID: req.Want.VMID, Name: req.Want.Name, Timeout: req.Want.Timeout}, Reconcile: req.Reconcile, Health: health, Stop: recipe.Stop{Force: true}}
}

// trace runs one interrupted operation until all is quiet. way is how people go on; bare says that they have no configuration.
func (b run) trace(t *testing.T, f *family, name string, w *world, l *wire, mend func(*pvesim.Cluster), way string, bare bool) {
	health := b.clinic.admit(w)
	defer b.clinic.dismiss(health)
	req := b.req()
	req.Health = health
	result, err := b.apply(t, w, l, req)
	f.count(l, l.dead || w.server.FaultsStruck() > 0)
	w.server.ClearFaults()
	if mend != nil {
		mend(w.cluster)
	}
	w.cluster.Wait()
	for _, v := range l.broken {
		f.violation(name, "%s", v)
	}
	for tries := 0; tries < 5; tries++ {
		j := w.journal(t, 8001)
		if j == nil {
			break
		}
		if err == nil && !l.dead {
			f.violation(name, "no error, and a record is left: %s at %s", j.Operation, j.Stage)
			return
		}
		if err != nil && !l.dead && tries == 0 {
			b.checkWords(f, name, err, result, j)
		}
		b.checkRefusal(t, f, name, w, req)
		again := req
		again.Reconcile = &recipe.Reconcile{Operation: j.Operation, Action: way}
		if bare {
			again = without(again)
		}
		wire := &wire{w: w}
		if result, err = b.apply(t, w, wire, again); err != nil && way != "resume" && result.Status != recipe.StatusRolledBack {
			again.Reconcile.Action = "resume"
			result, err = b.apply(t, w, wire, again)
		}
		f.count(wire, false)
		for _, v := range wire.broken {
			f.violation(name, "after %s: %s", way, v)
		}
	}
	b.checkEnd(t, f, name, w, err)
}

func (b run) checkWords(f *family, name string, err error, result recipe.Result, j *guest.Journal) {
	for _, want := range []string{"8001", j.Operation, "resume"} {
		if !strings.Contains(err.Error(), want) {
			f.violation(name, "the error does not say %q: %s", want, err)
		}
	}
	if strings.Contains(err.Error(), secret) {
		f.violation(name, "the error holds a secret: %s", err)
	}
	if result.Status != recipe.StatusNeedsReconcile {
		f.violation(name, "a record is left and the status is %q: %v", result.Status, err)
	}
}

// checkRefusal: while a record is there, an apply without reconcile changes nothing.
func (b run) checkRefusal(t *testing.T, f *family, name string, w *world, req recipe.Request) {
	before := w.server.Mutations()
	req.Reconcile = nil
	if _, err := b.apply(t, w, &wire{w: w}, req); err == nil {
		f.violation(name, "an apply went through although an operation is open")
	}
	if n := w.server.Mutations() - before; n > 0 {
		f.violation(name, "an apply that must refuse sent %d changes", n)
	}
}

// checkEnd: the world is old or new, whole, and without a trace of the operation.
func (b run) checkEnd(t *testing.T, f *family, name string, w *world, err error) {
	w.cluster.Wait()
	if j := w.journal(t, 8001); j != nil {
		f.violation(name, "not quiet: %s stands at %d of %d (%s), back=%v: %s; last error: %v", j.Operation, j.Index, j.Of, j.Stage, j.Back, j.Error, err)
		return
	}
	for _, v := range append(w.lost(), w.leaks()...) {
		f.violation(name, "%s", v)
	}
	for _, v := range w.orphaned() {
		f.violation(name, "nobody names %s", v)
	}
	state := w.state()
	if state == b.before || state == b.after {
		return
	}
	against, word := b.after, "new"
	if len(difference(b.before, state)) < len(difference(b.after, state)) {
		against, word = b.before, "old"
	}
	f.violation(name, "the world is neither old nor new (nearest: %s; last error: %v):\n%s", word, err, difference(against, state))
}
