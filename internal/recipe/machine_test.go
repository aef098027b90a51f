package recipe_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/proxmox"
	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// dice decides: a number from 0 to n-1.
type dice func(n int, what string) int

// machine is a cluster on which pipelines and people work in any order, and what must hold of it after every step.
type machine struct {
	b        base
	w        *world
	roll     dice
	operator *proxmox.Host // a person with all rights
	script   []string
	steps    int
	archives bool // operations make an archive first, so that rollback works past the point of no return

	tampered bool // a person destroyed, moved or hid something that no operation can bring back
	closed   bool // a person asserted that all is well
	wiped    bool // a person took a record out of notes: closing may be all that is left
	disowned bool // a person took the record off a parking guest that held nothing
	checked  int
	deaths   int
	problems []string
}

// nobody says that a test of this machine has no *testing.T at hand: a helper's failure is a panic.
type nobody struct{ testing.TB }

func (nobody) Helper()           {}
func (nobody) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

func newMachine(b base, roll dice, archives bool) *machine {
	m := &machine{b: b, w: b.fresh(), roll: roll, archives: archives}
	h, err := proxmox.Connect(context.Background(), proxmox.Settings{
		Endpoints: []string{"https://pve1:8006"}, APIToken: m.w.cluster.AddToken("root@pam", "op", nil), Transport: m.w.server, Pace: fast(),
	})
	if err != nil {
		panic(err)
	}
	m.operator = h
	return m
}

func (m *machine) fail(format string, args ...any) {
	m.problems = append(m.problems, fmt.Sprintf(format, args...)+"\n    after "+strings.Join(m.script, "\n          "))
}

// parking is the parking guest of 5001 that is there, 0 for none.
func (m *machine) parking() int {
	for _, id := range m.w.cluster.Guests() {
		if m.w.cluster.Config(id)["hostname"] == "pvrx-parking-5001" {
			return id
		}
	}
	return 0
}

func (m *machine) there(id int) bool { return id != 0 && slices.Contains(m.w.cluster.Guests(), id) }

// either picks the guest or its parking guest, whichever is there.
func (m *machine) either() int {
	ids := []int{5001, m.parking()}
	id := ids[m.roll(2, "whose")]
	if m.there(id) {
		return id
	}
	return 5002
}

// run lets a pipeline work: with an action on the open operation, or without; it may die at any request.
func (m *machine) run(action string) {
	req := m.b.req()
	req.Want.Triggers = map[string]string{"again": fmt.Sprint(m.roll(3, "again"))}
	req.Stop.Force = true
	if m.archives {
		req.Want.Backup = &preview.Backup{Storage: "local", Mode: "snapshot"}
	}
	open := m.record()
	if action != "" {
		if open == nil {
			return
		}
		req.Want.Triggers = open.Wanted.Triggers
		req.Reconcile = &recipe.Reconcile{Operation: open.Operation, Action: action}
	}
	l := &wire{w: m.w}
	if m.roll(2, "dies") == 1 {
		l.dieAt, l.after = 1+m.roll(m.b.requests, "at request"), m.roll(2, "after its effect") == 1
	}
	m.script = append(m.script, fmt.Sprintf("apply %q dying at %d", action, l.dieAt))
	before := m.w.server.Mutations()
	result, err := m.w.run(nobody{}, req, l)
	m.w.cluster.Wait()
	m.checked += l.checked
	for _, v := range l.broken {
		m.fail("%s", v)
	}
	m.script[len(m.script)-1] += fmt.Sprintf(": %s %v", result.Status, firstLine(err))
	if l.dead {
		m.deaths++
		return
	}
	if action == "close" && err == nil && result.Changed {
		m.closed = true
	}
	m.judge(action, open, result, err, m.w.server.Mutations()-before)
}

func firstLine(err error) string {
	if err == nil {
		return "done"
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// judge holds what a run said against what it did.
func (m *machine) judge(action string, open *guest.Journal, result recipe.Result, err error, changes int) {
	if err == nil {
		return
	}
	text := err.Error()
	failure := new(recipe.Failure)
	if strings.Contains(text, "Nothing was touched") && changes > 0 {
		m.fail("it says that nothing was touched and sent %d changes: %s", changes, text)
	}
	if action == "" && open != nil && changes > 0 {
		m.fail("an apply sent %d changes although %s is open", changes, open.Operation)
	}
	if errors.As(err, &failure) {
		if !strings.Contains(text, "5001") {
			m.fail("the error does not name the guest: %s", text)
		}
		if !slices.ContainsFunc([]string{"resume", "lan again", "pply again", "Nothing was"}, func(w string) bool { return strings.Contains(text, w) }) {
			m.fail("the error does not say what to do: %s", text)
		}
	}
}

// record is the open operation as anybody finds it; nil when there is none or the cluster cannot say.
func (m *machine) record() *guest.Journal {
	seen, err := m.w.container(nobody{}).Observe(context.Background(), 5001)
	if err != nil {
		return nil
	}
	return seen.Journal
}

// person does something by hand.
func (m *machine) person() {
	c, ctx := m.w.cluster, context.Background()
	did := func(format string, args ...any) {
		m.script = append(m.script, "by hand: "+fmt.Sprintf(format, args...))
	}
	switch m.roll(12, "by hand") {
	case 0:
		if m.there(5001) {
			did("cores of 5001")
			c.SetConfig(5001, "cores", fmt.Sprint(1+m.roll(4, "cores")))
		}
	case 1:
		if m.there(5001) {
			did("a line into the notes of 5001")
			c.SetConfig(5001, "description", c.Config(5001)["description"]+"\nJo was here.\n")
		}
	case 2: // never where it is the only record
		if j := m.record(); m.there(5001) && (j == nil || m.carries(m.parking())) {
			did("the notes of 5001 are overwritten")
			c.SetConfig(5001, "description", "Runs the shop.\n")
			m.wiped = true
		}
	case 3:
		if p := m.parking(); p != 0 && m.carries(5001) {
			did("the notes of %d are overwritten", p)
			c.SetConfig(p, "description", "what is this?")
			m.disowned, m.wiped = true, true // nobody can tell any more that it was ours: it stays, and the survey shows it
			for _, key := range []string{"mp0", "mp3", "unused0"} {
				m.tampered = m.tampered || c.VolumeOf(p, key) != ""
			}
		}
	case 4:
		m.handOver(did)
	case 5:
		id := m.either()
		did("lock %d", id)
		c.Lock(id, []string{"backup", "mounted", ""}[m.roll(3, "lock")])
	case 6:
		id := m.either()
		did("protect %d", id)
		c.Protect(id, m.roll(2, "protect") == 1)
	case 7:
		if p := m.parking(); p != 0 {
			did("parking guest %d is deleted with all it holds", p)
			for identity := range m.w.kept {
				if v, ok := c.VolumeByIdentity(identity); ok && v.Owner == p {
					m.forget(identity)
				}
			}
			if m.record() != nil {
				m.tampered = true
			}
			c.RemoveGuest(p)
		}
	case 8:
		if p := m.parking(); p != 0 && c.VolumeOf(p, "mp3") != "" {
			did("mp3 of %d is deleted", p)
			v, _ := c.Volume(c.VolumeOf(p, "mp3"))
			if _, kept := m.w.kept[v.Identity]; kept {
				m.forget(v.Identity)
				m.tampered = true
			}
			c.Protect(p, false)
			for _, key := range []string{"mp3", "unused"} {
				config, err := m.operator.Config(ctx, m.ref(p))
				if err != nil {
					break
				}
				for k, value := range config.Values {
					if strings.HasPrefix(k, key) && strings.HasPrefix(value, v.ID) {
						_ = m.operator.SetConfig(ctx, m.ref(p), nil, []string{k}, config.Digest)
					}
				}
			}
		}
	case 9:
		full := int64(m.roll(2, "full")) * 2 << 40
		did("local-lvm: %d taken by others", full)
		c.AddStorage(pvesim.StorageSpec{ID: "local-lvm", Type: "lvmthin", Total: 2 << 40, Other: full})
	case 10:
		up := m.roll(2, "up") == 1
		did("node up: %v", up)
		c.SetNodeOnline("pve1", up)
	case 11:
		id := m.either()
		running := m.roll(2, "running") == 1
		did("%d runs: %v", id, running)
		if running {
			_ = m.operator.Start(ctx, m.ref(id))
		} else {
			c.SetRunning(id, false)
		}
	}
}

func (m *machine) ref(id int) guest.Ref {
	return guest.Ref{VMID: guest.VMID(id), Kind: guest.KindContainer, Node: "pve1"}
}

// carries reports whether a guest's notes hold a record.
func (m *machine) carries(id int) bool {
	return m.there(id) && guest.NotesOf(guest.VMID(id), m.w.cluster.Config(id)["description"]).Journal != nil
}

// forget: a person destroyed it.
func (m *machine) forget(identity string) {
	kept := map[string]map[string]string{}
	for id, content := range m.w.kept {
		if id != identity {
			kept[id] = content
		}
	}
	m.w.kept = kept
}

// handOver is a person who gives a kept volume to another guest.
func (m *machine) handOver(did func(string, ...any)) {
	id := m.either()
	key := []string{"mp0", "mp3"}[m.roll(2, "key")]
	volume, err := guest.ParseVolumeID(m.w.cluster.VolumeOf(id, key))
	if err != nil || id == 5002 {
		return
	}
	ctx := context.Background()
	from, err := m.operator.Config(ctx, m.ref(id))
	if err != nil {
		return
	}
	to, err := m.operator.Config(ctx, m.ref(5002))
	if err != nil {
		return
	}
	did("%s of %d is given to 5002", key, id)
	if m.operator.MoveVolume(ctx, recipe.Move{From: m.ref(id), To: m.ref(5002), FromKey: key, ToKey: "mp7", Volume: volume, FromDigest: from.Digest, ToDigest: to.Digest}) == nil {
		m.tampered = true
	}
}

// check is what holds after every step, whatever pipelines and people did.
func (m *machine) check() {
	for _, v := range m.w.lost() {
		m.fail("%s", v)
	}
	if m.tampered || m.closed {
		return
	}
	// No operation is lost: as long as a kept volume is not with its guest, or the guest is away, a record says why.
	c := m.w.cluster
	away := !m.there(5001)
	for _, key := range []string{"mp0", "mp3", "unused0"} {
		away = away || c.VolumeOf(5001, key) == "" && c.Config(5001)["lock"] != "create"
	}
	if away && !m.carries(5001) && !m.carries(m.parking()) {
		m.fail("the world is neither old nor new, and nothing records an operation: %v", c.Config(5001))
	}
}

// end mends what people broke and what the world suffers from, and goes on until all is quiet.
func (m *machine) end() {
	c := m.w.cluster
	c.SetNodeOnline("pve1", true)
	c.AddStorage(pvesim.StorageSpec{ID: "local-lvm", Type: "lvmthin", Total: 2 << 40})
	for _, id := range c.Guests() {
		if config := c.Config(id); config["lock"] != "create" {
			c.Lock(id, "")
			if config["entrypoint"] != "/bin/false" {
				c.Protect(id, false)
			}
		}
	}
	var err error
	for tries := range 6 {
		j := m.record()
		if j == nil {
			break
		}
		req := m.b.reconcile(j, []string{"resume", "resume", "rollback", "resume", "resume", "close"}[tries])
		req.Want.Triggers, req.Stop.Force = j.Wanted.Triggers, true
		l := &wire{w: m.w}
		_, err = m.w.run(nobody{}, req, l)
		if err == nil && req.Reconcile.Action == "close" && m.wiped {
			m.closed = true
		}
		m.script = append(m.script, fmt.Sprintf("at last %s of %s at %s: %s", req.Reconcile.Action, j.Operation, j.Stage, firstLine(err)))
		c.Wait()
		m.checked += l.checked
		for _, v := range l.broken {
			m.fail("%s", v)
		}
		m.check()
	}
	for _, v := range m.w.lost() {
		m.fail("%s", v)
	}
	if m.tampered {
		return
	}
	for _, v := range m.w.orphaned() {
		m.fail("nobody names %s", v)
	}
	if m.closed {
		return
	}
	if j := m.record(); j != nil {
		m.fail("not quiet: %s stands at %d of %d (%s), back=%v; last error: %v", j.Operation, j.Index, j.Of, j.Stage, j.Back, err)
		return
	}
	for _, key := range []string{"mp0", "mp3", "unused0"} {
		if c.VolumeOf(5001, key) == "" {
			m.fail("%s of 5001 is gone: %v", key, c.Config(5001))
		}
	}
	if p := m.parking(); p != 0 && !m.disowned {
		m.fail("parking guest %d is left: %v", p, c.Config(p))
	}
}

// play plays one game.
func (m *machine) play() {
	m.steps = 3 + m.roll(8, "steps")
	for range m.steps {
		switch m.roll(6, "step") {
		case 0, 1:
			m.run("")
		case 2:
			m.run([]string{"resume", "rollback", "close"}[m.roll(3, "action")])
		default:
			m.person()
		}
		m.check()
		if len(m.problems) > 0 {
			return
		}
	}
	m.end()
}

// TestFaultsMachine lets pipelines, crashes and people work on one guest in any order.
func TestFaultsMachine(t *testing.T) {
	b := plainScene().base(t)
	f := &family{name: "pipelines and people in any order"}
	games := "10"
	if whole() {
		games = "300"
	}
	for name, value := range map[string]string{"rapid.checks": games, "rapid.nofailfile": "true", "rapid.shrinktime": "20s"} {
		old := flag.Lookup(name).Value.String()
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = flag.Set(name, old) }()
	}
	rapid.Check(t, func(r *rapid.T) {
		roll := func(n int, what string) int { return rapid.IntRange(0, n-1).Draw(r, what) }
		m := newMachine(b, roll, roll(3, "archives") == 0)
		m.play()
		f.traces++
		f.faults += m.deaths
		f.checked += m.checked
		for _, p := range m.problems {
			r.Error(p)
		}
	})
	f.report(t)
}

// TestFaultsMachineSeeds replays games that once found something.
func TestFaultsMachineSeeds(t *testing.T) {
	t.Parallel()
	b := plainScene().base(t)
	for _, g := range machineSeeds() {
		m := newMachine(b, seeded(g.seed), g.archives)
		m.play()
		for _, p := range m.problems {
			t.Errorf("%+v: %s", g, p)
		}
	}
}

func seeded(seed uint64) dice {
	random := rand.New(rand.NewPCG(seed, 7))
	return func(n int, _ string) int { return random.IntN(n) }
}

type game struct {
	seed     uint64
	archives bool
}

// machineSeeds are those games.
func machineSeeds() []game {
	return []game{{1, false}, {5, false}, {108, false}, {120, false}, {83, true}}
}

// TestFaultsB7StartedParkingGuestIsStoppedAgain: the process died while volumes waited, and somebody started the parking guest, or
// the guest without them. Found by the machine: the way back stopped at a volume in use.
func TestFaultsB7StartedParkingGuestIsStoppedAgain(t *testing.T) {
	t.Parallel()
	b := plainScene().base(t)
	for _, way := range []string{"resume", "rollback"} {
		for _, protect := range []bool{false, true} {
			w := b.fresh()
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
			m := &machine{b: b, w: w}
			w.cluster.SetRunning(m.parking(), true)
			w.cluster.SetRunning(5001, protect)
			w.cluster.Protect(5001, protect) // then resume cannot go on, and has to take back
			_, err = w.run(t, b.reconcile(w.journal(t, 5001), way), &wire{w: w})
			if (err != nil) != protect {
				t.Errorf("%s, protected %v: %v", way, protect, err)
			}
			w.cluster.Protect(5001, false)
			for range 2 {
				if j := w.journal(t, 5001); j != nil {
					_, err = w.run(t, b.reconcile(j, way), &wire{w: w})
				}
			}
			if j := w.journal(t, 5001); j != nil {
				t.Errorf("%s, protected %v: stands at %s: %v", way, protect, j.Stage, err)
			}
			if lost := append(w.lost(), w.orphaned()...); len(lost) > 0 {
				t.Errorf("%s, protected %v: %v", way, protect, lost)
			}
			if !w.cluster.Running(5001) || m.parking() != 0 {
				t.Errorf("%s, protected %v: running %v, parking guest %d", way, protect, w.cluster.Running(5001), m.parking())
			}
		}
	}
}
