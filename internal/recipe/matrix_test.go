package recipe_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// TestMain lets memory grow: worlds are made and thrown away by the thousand.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// whole says whether the whole matrix runs, or a sample of it.
func whole() bool { return os.Getenv("PVRX_FAULTS") == "all" }

// errDied is what a process sees that does not exist any more: from here on nothing it does reaches the world.
var errDied = errors.New("the process died")

// wire carries requests to the simulated server and stands for the process: it can die at a request, before or after that
// request's effect. After every change it checks that everything that is to be kept is still there.
type wire struct {
	w *world

	mu      sync.Mutex
	n       int
	dieAt   int  // number of the request, 0 for never
	changes bool // dieAt counts only what is not a read: between two changes the world is the same
	after   bool
	dead    bool
	checked int
	broken  []string
}

func (l *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	l.mu.Lock()
	if !l.changes || req.Method != http.MethodGet {
		l.n++
	}
	dying := l.dieAt > 0 && l.n >= l.dieAt
	if l.dead || (dying && !l.after) {
		l.dead = true
		l.mu.Unlock()
		return nil, errDied
	}
	if dying {
		l.dead = true
	}
	l.mu.Unlock()
	res, err := l.w.server.RoundTrip(req)
	if req.Method != http.MethodGet {
		l.mu.Lock()
		l.checked += len(l.w.kept)
		l.broken = append(l.broken, l.w.lost()...)
		l.mu.Unlock()
	}
	if dying {
		if res != nil {
			_ = res.Body.Close()
		}
		return nil, errDied
	}
	return res, err
}

// keep remembers what must survive whatever happens: its identity and what it holds.
func (w *world) keep(ids ...string) {
	w.kept = map[string]map[string]string{}
	for _, id := range ids {
		v, ok := w.cluster.Volume(id)
		if !ok {
			panic("no volume " + id)
		}
		w.kept[v.Identity] = maps.Clone(v.Content)
	}
}

// lost names what is not there any more, or holds something else.
func (w *world) lost() (broken []string) {
	for identity, content := range w.kept {
		v, ok := w.cluster.VolumeByIdentity(identity)
		switch {
		case !ok:
			broken = append(broken, "a kept volume was destroyed or copied: "+identity)
		case !maps.Equal(v.Content, content):
			broken = append(broken, fmt.Sprintf("%s holds %v and held %v", v.ID, v.Content, content))
		}
	}
	return broken
}

// orphaned names kept volumes that no guest's configuration names.
func (w *world) orphaned() (lost []string) {
	named := map[string]bool{}
	for _, id := range w.cluster.Guests() {
		for _, n := range guest.Volumes(guest.KindContainer, guest.Config{Values: w.cluster.Config(id)}) {
			named[n.ID.String()] = true
		}
	}
	for identity := range w.kept {
		if v, ok := w.cluster.VolumeByIdentity(identity); ok && !named[v.ID] {
			lost = append(lost, v.ID)
		}
	}
	return lost
}

// scene is a kind of world and request that the matrix runs over.
type scene struct {
	name  string
	world func() *world
	req   func() recipe.Request
}

// plainScene is a small container: two kept volumes on two storages, a foreign mount, firewall, pool, ACL.
func plainScene() scene {
	return scene{name: "plain", world: func() *world {
		w := newWorld()
		w.keep(w.cluster.VolumeOf(5001, "mp0"), w.cluster.VolumeOf(5001, "mp3"), w.cluster.VolumeOf(5001, "unused0"), w.cluster.VolumeOf(5002, "mp0"))
		return w
	}, req: func() recipe.Request { return recipe.Request{Want: wants()} }}
}

// richScene is a container with everything that needs consent or setting aside: HA, snapshots, a volume that is erased, a
// root password, and a backup of the operation's own.
func richScene() scene {
	return scene{name: "rich", world: func() *world {
		w := newWorld()
		w.cluster.SetRights("ci@pve!pvrx", "/", "Sys.Audit", "Sys.Console")
		w.cluster.AddHA(5001, map[string]string{"state": "started", "comment": "shop"})
		w.cluster.AddHARule("near", map[string]string{"type": "node-affinity", "resources": "ct:5001", "nodes": "pve1"})
		w.cluster.SetConfig(5001, "mp4", "local-lvm:2,mp=/scratch")
		w.keep(w.cluster.VolumeOf(5001, "mp0"), w.cluster.VolumeOf(5001, "mp3"), w.cluster.VolumeOf(5001, "unused0"), w.cluster.VolumeOf(5002, "mp0"))
		return w
	}, req: func() recipe.Request {
		want := wants()
		want.Allow = []string{"ha_managed", "snapshots_present"}
		want.Erase = map[string]string{"mp4": "*"}
		want.PasswordGiven = true
		want.Backup = &preview.Backup{Storage: "local", Mode: "snapshot"} // of a started HA resource Proxmox refuses mode stop
		return recipe.Request{Want: want, Password: "correct-horse-battery"}
	}}
}

// base is a scene's starting world and the worlds it may end in.
type base struct {
	scene
	start          *world
	before, after  string // dumps
	rolledBack     string // after a rollback from the archive, "" when the scene makes none
	requests, muts int
	sent           []pvesim.Request // of the uninterrupted run, in order
	user           string           // the guest's own notes
}

// worldly leaves out of a dump what may differ between two ways to the same end: notes carry ids and times.
func (w *world) dump() string {
	return w.cluster.Dump(pvesim.IgnoreKeys("description"), pvesim.IgnoreIdentity(), pvesim.IgnoreLines("backup/"), pvesim.IgnoreGuests(6001, 6002)) // copies that a test makes
}

func (s scene) base(t testing.TB) base {
	t.Helper()
	b := base{scene: s, start: s.world()}
	b.before = b.start.dump()
	b.user = guest.ReadNotes(b.start.cluster.Config(5001)["description"]).User
	w := b.fresh()
	if _, err := w.run(t, b.req(), &wire{w: w}); err != nil {
		t.Fatalf("%s: the uninterrupted run fails: %v", s.name, err)
	}
	b.after = w.dump()
	b.requests, b.muts = len(w.server.Requests()), w.server.Mutations()
	for _, r := range w.server.Requests() {
		if r.Method != http.MethodGet {
			b.sent = append(b.sent, r)
		}
	}
	if broken := w.lost(); len(broken) > 0 {
		t.Fatalf("%s: the uninterrupted run: %v", s.name, broken)
	}
	if b.req().Want.Backup != nil {
		w := b.fresh()
		w.server.Inject(stopAt("create"))
		result, err := w.run(t, b.req(), &wire{w: w})
		w.server.ClearFaults()
		back := b.req()
		back.Reconcile = &recipe.Reconcile{Operation: result.Operation, Action: "rollback"}
		if _, again := w.run(t, back, &wire{w: w}); err == nil || again != nil {
			t.Fatalf("%s: the uninterrupted rollback fails: %v, after %v", s.name, again, err)
		}
		b.rolledBack = w.dump() // without what consent gave up: that is erased
	}
	return b
}

// fresh is the starting world once more.
func (b base) fresh() *world {
	w := &world{cluster: b.start.cluster.Clone(), token: b.start.token, clock: b.start.clock, kept: b.start.kept}
	w.server = pvesim.NewServer(w.cluster)
	return w
}

// run applies through a wire.
func (w *world) run(t testing.TB, req recipe.Request, l *wire) (recipe.Result, error) {
	t.Helper()
	c := w.containerOver(t, l)
	ctx := context.Background()
	seen, err := c.Observe(ctx, req.Want.VMID)
	if err != nil {
		return recipe.Result{}, err
	}
	req.Planned = seen.Acknowledged
	return c.Apply(ctx, req)
}

// family counts what a part of the matrix did.
type family struct {
	mu                      sync.Mutex
	name                    string
	traces, faults, checked int
	violations              []string
}

func (f *family) violation(trace, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.violations = append(f.violations, trace+": "+fmt.Sprintf(format, args...))
}

func (f *family) count(l *wire, struck bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.checked += l.checked
	if struck {
		f.faults++
	}
}

func (f *family) report(t *testing.T) {
	t.Helper()
	for i, v := range f.violations {
		if i == 12 {
			t.Errorf("... and %d more", len(f.violations)-i)
			break
		}
		t.Error(v)
	}
	t.Logf("faults: %s: %d traces, %d faults injected, %d kept volumes checked, violations %d", f.name, f.traces, f.faults, f.checked, len(f.violations))
	if f.faults == 0 {
		t.Error("no fault ever struck")
	}
}

// trace runs one interrupted operation until all is quiet, and checks every promise on the way. mend repairs what the fault
// left broken in the world (a full storage, an offline node) before people go on; way is how they go on.
func (b base) trace(t *testing.T, f *family, name string, w *world, l *wire, mend func(*pvesim.Cluster), way string) {
	result, err := w.run(t, b.req(), l)
	f.count(l, l.dead || w.server.FaultsStruck() > 0)
	w.server.ClearFaults()
	if mend != nil {
		mend(w.cluster)
	}
	w.cluster.Wait()
	for _, v := range l.broken {
		f.violation(name, "%s", v)
	}
	for tries := 0; tries < 4; tries++ {
		j := w.journal(t, 5001)
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
		b.checkRefusal(t, f, name, w)
		again := &wire{w: w}
		if result, err = w.run(t, b.reconcile(j, way), again); err != nil && way != "resume" {
			result, err = w.run(t, b.reconcile(j, "resume"), again)
		}
		f.count(again, false)
		for _, v := range again.broken {
			f.violation(name, "after %s: %s", way, v)
		}
	}
	b.checkEnd(t, f, name, w, err)
}

func (b base) reconcile(j *guest.Journal, action string) recipe.Request {
	req := b.req()
	req.Reconcile = &recipe.Reconcile{Operation: j.Operation, Action: action}
	return req
}

// checkWords asks an error for what people need: the guest, the stage, the operation, and what to do next.
func (b base) checkWords(f *family, name string, err error, result recipe.Result, j *guest.Journal) {
	text := err.Error()
	for _, want := range []string{"5001", j.Operation, "resume"} {
		if !strings.Contains(text, want) {
			f.violation(name, "the error does not say %q: %s", want, text)
		}
	}
	if result.Status != recipe.StatusNeedsReconcile {
		f.violation(name, "a record is left and the status is %q: %v", result.Status, err)
	}
}

// checkRefusal: while a record is there, an apply without reconcile changes nothing.
func (b base) checkRefusal(t *testing.T, f *family, name string, w *world) {
	before := w.server.Mutations()
	if _, err := w.run(t, b.req(), &wire{w: w}); err == nil {
		f.violation(name, "an apply went through although an operation is open")
	}
	if n := w.server.Mutations() - before; n > 0 {
		f.violation(name, "an apply that must refuse sent %d changes", n)
	}
}

// checkEnd: the world is old or new, whole, and without a trace of the operation.
func (b base) checkEnd(t *testing.T, f *family, name string, w *world, err error) {
	w.cluster.Wait()
	if j := w.journal(t, 5001); j != nil {
		f.violation(name, "not quiet: %s stands at %d of %d (%s), back=%v: %s; last error: %v", j.Operation, j.Index, j.Of, j.Stage, j.Back, j.Error, err)
		return
	}
	for _, v := range w.lost() {
		f.violation(name, "%s", v)
	}
	for _, v := range w.orphaned() {
		f.violation(name, "nobody names %s", v)
	}
	switch dump := w.dump(); dump {
	case b.before, b.after, b.rolledBack:
	default:
		against, word := b.after, "new"
		if len(difference(b.before, dump)) < len(difference(b.after, dump)) {
			against, word = b.before, "old"
		}
		f.violation(name, "the world is neither old nor new (nearest: %s; last error: %v):\n%s", word, err, difference(against, dump))
	}
	if user := guest.ReadNotes(w.cluster.Config(5001)["description"]).User; strings.TrimRight(user, "\n") != strings.TrimRight(b.user, "\n") {
		f.violation(name, "the guest's own notes are %q and were %q", user, b.user)
	}
}

// difference shows the lines of two dumps that differ.
func difference(want, have string) string {
	lines := map[string]int{}
	for line := range strings.Lines(want) {
		lines[line]--
	}
	for line := range strings.Lines(have) {
		lines[line]++
	}
	var out strings.Builder
	for _, text := range []string{want, have} {
		for line := range strings.Lines(text) {
			switch n := lines[line]; {
			case n < 0:
				out.WriteString("  - " + line)
				lines[line] = 0
			case n > 0:
				out.WriteString("  + " + line)
				lines[line] = 0
			}
		}
	}
	return out.String()
}

// parallel runs jobs on the machine's cores.
func parallel(n int, job func(int)) {
	var wait sync.WaitGroup
	next := make(chan int)
	for range 2 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for i := range next {
				job(i)
			}
		}()
	}
	for i := range n {
		next <- i
	}
	close(next)
	wait.Wait()
}
