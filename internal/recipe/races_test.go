package recipe_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/proxmox"
	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// turns lets the requests of several runs through one at a time, in an order that a seed decides. A run whose turn it is
// and that is still thinking is waited for, so that the same seed gives the same order.
type turns struct {
	mu      sync.Mutex
	changed *sync.Cond
	random  *rand.Rand
	stay    float64 // how likely the same run goes on
	live    []bool
	turn    int
	busy    bool
}

func newTurns(runs int, seed uint64) *turns {
	t := &turns{random: rand.New(rand.NewPCG(seed, 1)), live: make([]bool, runs)}
	t.changed = sync.NewCond(&t.mu)
	t.stay = []float64{0.5, 0.9, 0.97, 0.995}[t.random.IntN(4)]
	for i := range t.live {
		t.live[i] = true
	}
	t.turn = t.random.IntN(runs)
	return t
}

// next decides whose turn it is. The lock is held.
func (t *turns) next() {
	if !t.live[t.turn] || t.random.Float64() > t.stay {
		var others []int
		for i, live := range t.live {
			if live {
				others = append(others, i)
			}
		}
		if len(others) > 0 {
			t.turn = others[t.random.IntN(len(others))]
		}
	}
	t.changed.Broadcast()
}

// over says that a run has ended and takes no more turns.
func (t *turns) over(run int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live[run] = false
	t.next()
}

// lane is the connection of one run.
type lane struct {
	*turns
	run  int
	wire *wire
}

func (l lane) RoundTrip(req *http.Request) (*http.Response, error) {
	l.mu.Lock()
	for l.busy || l.turn != l.run {
		l.changed.Wait()
	}
	l.busy = true
	l.mu.Unlock()
	res, err := l.wire.RoundTrip(req)
	l.mu.Lock()
	l.busy = false
	l.next()
	l.mu.Unlock()
	return res, err
}

// racer is one run: a provider process of its own, with its own host and clock.
type racer struct {
	c      *recipe.Container
	lane   lane
	want   preview.Want
	result recipe.Result
	err    error
}

// race runs several applies at once and waits for all. What the plans saw is read before any apply begins.
func race(t testing.TB, w *world, seed uint64, wants []preview.Want, set func(*recipe.Container)) []*racer {
	t.Helper()
	order := newTurns(len(wants), seed)
	racers := make([]*racer, len(wants))
	planned := make([]preview.Acknowledgements, len(wants))
	for i, want := range wants {
		seen, err := w.observed(t, want)
		if err != nil {
			t.Fatal(err)
		}
		planned[i] = seen.Acknowledged
		r := &racer{want: want, lane: lane{turns: order, run: i, wire: &wire{w: w}}}
		pace := fast()
		pace.Request = time.Minute // waiting for a turn is no stall
		h, err := proxmox.Connect(context.Background(), proxmox.Settings{Endpoints: []string{"https://pve1:8006"}, APIToken: w.token, Transport: r.lane, Pace: pace})
		if err != nil {
			t.Fatal(err)
		}
		clock, n := w.clock, 0
		r.c = &recipe.Container{
			Host: h, PatienceBefore: 20 * time.Millisecond, PatienceAfter: 60 * time.Millisecond, Clock: func() time.Time { return clock }, Random: func() string { n++; return fmt.Sprintf("%04x%04x", 0xa0+i, n) },
			Sleep: func(ctx context.Context, d time.Duration) error { clock = clock.Add(d); return ctx.Err() },
		}
		if set != nil {
			set(r.c)
		}
		racers[i] = r
	}
	var wait sync.WaitGroup
	for i, r := range racers {
		wait.Add(1)
		go func() {
			defer wait.Done()
			defer order.over(i)
			req := recipe.Request{Want: r.want, Planned: planned[i]}
			if r.want.VM != nil {
				r.result, r.err = (*recipe.VM)(r.c).Apply(context.Background(), req)
				return
			}
			r.result, r.err = r.c.Apply(context.Background(), req)
		}()
	}
	wait.Wait()
	w.cluster.Wait()
	return racers
}

// observed is what a plan sees: the guest that is wanted, or the VM that is to be replaced.
func (w *world) observed(t testing.TB, want preview.Want) (recipe.Observation, error) {
	switch {
	case want.VM == nil:
		return w.container(t).Observe(context.Background(), want.VMID)
	case want.VM.Replaces != 0:
		return w.vm(t).Observe(context.Background(), want.VM.Replaces)
	}
	return w.vm(t).Observe(context.Background(), want.VMID)
}

// destroyed counts the requests that destroy or create a guest, as far as Proxmox did not refuse them.
func (w *world) made(id int) (destroyed, created int) {
	for _, r := range w.server.Requests() {
		switch {
		case r.Status != http.StatusOK:
		case r.Method == http.MethodDelete && strings.HasSuffix(r.Path, fmt.Sprintf("/lxc/%d", id)):
			destroyed++
		case r.Method == http.MethodPost && strings.HasSuffix(r.Path, "/lxc") && r.Params["vmid"] == fmt.Sprint(id):
			created++
		}
	}
	return destroyed, created
}

// TestFaultsRacesSameGuest: two pipelines with different states reinstall the same container at once. One wins the swap of
// the claim; the other changes nothing and reports the winner's operation.
func TestFaultsRacesSameGuest(t *testing.T) {
	t.Parallel()
	b := plainScene().base(t)
	f := &family{name: "two pipelines, one guest", traces: 8}
	if whole() {
		f.traces = 1000
	}
	overlapped := 0
	parallel(f.traces, func(seed int) {
		w := b.fresh()
		other := wants()
		other.Triggers = map[string]string{"again": "2"}
		racers := race(t, w, uint64(seed), []preview.Want{wants(), other}, nil)
		name := fmt.Sprintf("seed %d", seed)
		for _, r := range racers {
			f.count(r.lane.wire, true)
			for _, v := range r.lane.wire.broken {
				f.violation(name, "%s", v)
			}
		}
		won := slices.DeleteFunc(slices.Clone(racers), func(r *racer) bool { return r.err != nil })
		if len(won) != 1 {
			f.violation(name, "%d won: %v / %v", len(won), racers[0].err, racers[1].err)
			return
		}
		winner, loser := won[0], racers[0]
		if loser == winner {
			loser = racers[1]
		}
		if d, c := w.made(5001); d != 1 || c != 1 {
			f.violation(name, "CT 5001 was destroyed %d times and created %d times", d, c)
		}
		if text := loser.err.Error(); !strings.Contains(text, winner.result.Operation) || !strings.Contains(text, "5001") {
			f.violation(name, "the loser does not report %s: %s", winner.result.Operation, text)
		}
		if loser.result.Changed {
			f.violation(name, "the loser says it changed something: %+v", loser.result)
		}
		switch loser.result.Status {
		case recipe.StatusInProgress:
			if loser.result.Operation != winner.result.Operation {
				f.violation(name, "the loser reports %q, the winner is %s", loser.result.Operation, winner.result.Operation)
			}
			f.mu.Lock()
			overlapped++
			f.mu.Unlock()
		case recipe.StatusReady: // the winner had finished
			if loser.result.Operation != "" {
				f.violation(name, "the loser reports %q as its own", loser.result.Operation)
			}
		case recipe.StatusNeedsReconcile, recipe.StatusAwaitingTrust, recipe.StatusRolledBack:
			f.violation(name, "the loser is %s", loser.result.Status)
		}
		if contract := guest.ReadNotes(w.cluster.Config(5001)["description"]).Contract; contract == nil || !maps.Equal(contract.Installed.Triggers, winner.want.Triggers) || contract.Instance != winner.result.Operation {
			f.violation(name, "the contract says %+v", contract)
		}
		b.checkEnd(t, f, name, w, nil)
	})
	if overlapped == 0 {
		t.Error("the runs never overlapped")
	}
	f.report(t)
}

// twins is the plain world with a second container beside, of the same kind: both want a parking guest.
func twins() *world {
	w := newWorld()
	w.cluster.AddContainer(pvesim.ContainerSpec{
		VMID: 5003, Template: oldTemplate, Running: true,
		Config: map[string]string{
			"hostname": "web3", "memory": "512", "net0": "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:50:03,ip=dhcp,type=veth",
			"rootfs": "local-lvm:8", "mp0": "local-lvm:20,mp=/srv/data",
		},
		Files: map[string]string{"/srv/data/marker": "of web3"},
	})
	w.keep(w.cluster.VolumeOf(5001, "mp0"), w.cluster.VolumeOf(5001, "mp3"), w.cluster.VolumeOf(5002, "mp0"), w.cluster.VolumeOf(5003, "mp0"))
	return w
}

// TestFaultsRacesParking: two guests at once, with so few spare VMIDs that both want the same one: whoever comes second takes
// another, and nobody touches the other's parking guest.
func TestFaultsRacesParking(t *testing.T) {
	t.Parallel()
	start := twins()
	f := &family{name: "two guests, one parking VMID", traces: 5}
	if whole() {
		f.traces = 150
	}
	retried := 0
	third := preview.Want{VMID: 5003, Name: "web3", Template: newTemplate, Timeout: time.Hour}
	parallel(f.traces, func(seed int) {
		w := &world{cluster: start.cluster.Clone(), token: start.token, clock: start.clock, kept: start.kept}
		w.server = pvesim.NewServer(w.cluster)
		racers := race(t, w, uint64(seed), []preview.Want{wants(), third}, func(c *recipe.Container) {
			// 5001 and 5003 begin at different places of a range unless it is this short.
			c.ParkingFrom, c.ParkingTo = 900100, 900101
		})
		name := fmt.Sprintf("seed %d", seed)
		used := map[guest.VMID]bool{}
		for _, r := range racers {
			f.count(r.lane.wire, true)
			for _, v := range r.lane.wire.broken {
				f.violation(name, "%s", v)
			}
			if r.err != nil {
				f.violation(name, "CT %d: %v", r.want.VMID, r.err)
				return
			}
			used[r.result.Parking] = true
			if d, c := w.made(int(r.want.VMID)); d != 1 || c != 1 {
				f.violation(name, "CT %d was destroyed %d times and created %d times", r.want.VMID, d, c)
			}
		}
		if len(used) == 2 { // both begin with the same one
			f.mu.Lock()
			retried++
			f.mu.Unlock()
		}
		if left := w.cluster.Guests(); !slices.Equal(left, []int{5001, 5002, 5003}) {
			f.violation(name, "guests left: %v", left)
		}
		if lost := append(w.lost(), w.orphaned()...); len(lost) > 0 {
			f.violation(name, "%v", lost)
		}
	})
	if retried == 0 {
		t.Error("nobody ever had to take another")
	}
	f.report(t)
}

// stranger is somebody's guest under our VMID.
func stranger(c *pvesim.Cluster) {
	c.AddContainer(pvesim.ContainerSpec{
		VMID: 5001, Config: map[string]string{"hostname": "theirs", "rootfs": "local-lvm:4", "mp0": "tank:1,mp=/theirs", "description": "ours, hands off"},
		Files: map[string]string{"/theirs/x": "theirs"},
	})
}

// TestFaultsRacesVMIDTaken: somebody takes the VMID after our destroy, at every change until the new guest is made. Their
// guest is never touched, we say so, and once they have left a resume completes.
func TestFaultsRacesVMIDTaken(t *testing.T) {
	t.Parallel()
	b := plainScene().base(t)
	f := &family{name: "the VMID is taken between destroy and create"}
	// Which changes lie between: from the destroy to the create.
	w := b.fresh()
	if _, err := w.run(t, b.req(), &wire{w: w}); err != nil {
		t.Fatal(err)
	}
	var from, to int
	for i, r := range w.server.Requests() {
		switch {
		case r.Method == http.MethodDelete && strings.HasSuffix(r.Path, "/lxc/5001"):
			from = i + 1
		case r.Method == http.MethodPost && strings.HasSuffix(r.Path, "/lxc") && r.Params["vmid"] == "5001":
			to = i + 1
		}
	}
	type job struct {
		at   int
		dies bool // and our process dies with it
		as   func(*pvesim.Cluster)
		kind string
	}
	var jobs []job
	for at := from; at < to; at++ {
		for _, dies := range []bool{false, true} {
			jobs = append(jobs, job{at, dies, stranger, "a container"})
			if at == from {
				jobs = append(jobs, job{at, dies, func(c *pvesim.Cluster) {
					c.AddVM(pvesim.VMSpec{VMID: 5001, Config: map[string]string{"name": "theirs", "scsi0": "local-lvm:4"}})
				}, "a VM"})
			}
		}
	}
	if !whole() {
		jobs = slices.DeleteFunc(jobs, func(j job) bool { return (j.at-from)%4 > 0 })
	}
	f.traces = len(jobs)
	parallel(len(jobs), func(i int) {
		j := jobs[i]
		name := fmt.Sprintf("%s after request %d (destroy is %d, create %d), dies=%v", j.kind, j.at, from, to, j.dies)
		w := b.fresh()
		w.server.Inject(pvesim.Fault{Kind: pvesim.FaultWorldAfter, Request: j.at, World: j.as})
		l := &wire{w: w}
		if j.dies {
			l.dieAt, l.after = j.at, true
		}
		result, err := w.run(t, b.req(), l)
		f.count(l, w.server.FaultsStruck() > 0)
		if err == nil {
			f.violation(name, "no error")
			return
		}
		theirs := w.cluster.Config(5001)
		if !j.dies {
			if text := err.Error(); !strings.Contains(text, "5001") || !strings.Contains(text, "not touched") && !strings.Contains(text, "another guest") || !strings.Contains(text, "resume") {
				f.violation(name, "it does not say so: %s", text)
			}
			if result.Status != recipe.StatusNeedsReconcile {
				f.violation(name, "status %s", result.Status)
			}
		}
		record := w.journal(t, 5001)
		if record == nil {
			f.violation(name, "the operation is lost")
			return
		}
		// Whatever is asked, as long as they are there.
		for _, action := range []string{"resume", "rollback", "close", ""} {
			req := b.req()
			if action != "" {
				req = b.reconcile(record, action)
			}
			again := &wire{w: w}
			if _, err := w.run(t, req, again); err == nil {
				f.violation(name, "%q goes through while they are there", action)
			}
			f.count(again, false)
			l.broken = append(l.broken, again.broken...)
		}
		if now := w.cluster.Config(5001); !maps.Equal(now, theirs) {
			f.violation(name, "their guest was changed: %v, was %v", now, theirs)
		}
		w.cluster.RemoveGuest(5001)
		again := &wire{w: w}
		if _, err := w.run(t, b.reconcile(w.journal(t, 5001), "resume"), again); err != nil {
			f.violation(name, "after they left: %v", err)
		}
		f.count(again, false)
		for _, v := range append(l.broken, again.broken...) {
			f.violation(name, "%s", v)
		}
		b.checkEnd(t, f, name, w, nil)
	})
	f.report(t)
}
