package recipe_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// deed is something that somebody else does to the world while the operation runs, and how it is mended afterwards.
type deed struct {
	name string
	do   func(*pvesim.Cluster)
	mend func(*pvesim.Cluster)
}

// deeds runs an operation once for each of its changes, with the deed done right before it, until all is quiet. also checks
// what the hazard adds to the promises of every trace.
func deeds(t *testing.T, family *family, b base, d deed, way string, also func(t *testing.T, name string, w *world)) {
	t.Helper()
	step := 1
	if !whole() {
		step = 19
	}
	n := (b.muts + step - 1) / step
	parallel(n, func(i int) {
		w := b.fresh()
		at := i*step + 1
		w.server.Inject(pvesim.Fault{Kind: pvesim.FaultWorld, Mutation: at, World: d.do})
		name := fmt.Sprintf("%s before change %d", d.name, at)
		b.trace(t, family, name, w, &wire{w: w}, d.mend, way)
		if also != nil {
			also(t, name, w)
		}
	})
	family.traces += n
}

// parkingOf is the parking guest of the tests' container, 0 when there is none.
func parkingOf(c *pvesim.Cluster) int {
	for _, id := range c.Guests() {
		if c.Config(id)["hostname"] == "pvrx-parking-5001" {
			return id
		}
	}
	return 0
}

// TestFaultsA3UndoNeverDestroysData: a volume that an undo could not bring back keeps the parking guest alive, whatever
// takes the undo's way away: a lock, a protection, a storage that takes no volumes any more, rights to see.
func TestFaultsA3UndoNeverDestroysData(t *testing.T) {
	b := plainScene().base(t)
	f := &family{name: "A3 undo and the parking guest"}
	refuse := pvesim.Fault{Kind: pvesim.FaultStatus, Method: "DELETE", Path: `/lxc/5001$`, Status: 403, Text: "Permission check failed (/vms/5001, VM.Allocate)"}
	for _, d := range []deed{
		{"the guest is locked by a backup", func(c *pvesim.Cluster) { c.Lock(5001, "backup") }, func(c *pvesim.Cluster) { c.Lock(5001, "") }},
		{"the parking guest is locked", func(c *pvesim.Cluster) { c.Lock(905001, "backup") }, func(c *pvesim.Cluster) { c.Lock(905001, "") }},
		{"the guest is protected", func(c *pvesim.Cluster) { c.Protect(5001, true) }, func(c *pvesim.Cluster) { c.Protect(5001, false) }},
		{"the storage takes no containers", func(c *pvesim.Cluster) {
			c.AddStorage(pvesim.StorageSpec{ID: "local-lvm", Type: "lvmthin", Total: 2 << 40, Content: []string{"images"}})
		}, func(c *pvesim.Cluster) {
			c.AddStorage(pvesim.StorageSpec{ID: "local-lvm", Type: "lvmthin", Total: 2 << 40})
		}},
		{
			"the token may not see storages", func(c *pvesim.Cluster) { c.SetRights("ci@pve!pvrx", "/storage", "Datastore.AllocateSpace") },
			func(c *pvesim.Cluster) { c.SetRights("ci@pve!pvrx", "/storage", rights()["/storage"]...) },
		},
	} {
		w := b.fresh()
		w.server.Inject(pvesim.Fault{Kind: pvesim.FaultWorld, Method: "DELETE", Path: `/lxc/5001$`, World: d.do})
		w.server.Inject(refuse)
		name := d.name + " when the destroy was refused"
		b.trace(t, f, name, w, &wire{w: w}, d.mend, "resume")
		f.traces++
	}
	f.report(t)
}

// TestFaultsB1LocksAreWaitedFor: a backup's lock on either guest, at every change. A short one is waited for, a long one
// stops the operation; nothing is ever lost.
func TestFaultsB1LocksAreWaitedFor(t *testing.T) {
	b := plainScene().base(t)
	f := &family{name: "B1 a backup's lock on either guest"}
	for _, id := range []int{5001, 905001} {
		lock := func(c *pvesim.Cluster) {
			if slices.Contains(c.Guests(), id) {
				c.Lock(id, "backup")
			}
		}
		unlock := func(c *pvesim.Cluster) {
			if slices.Contains(c.Guests(), id) {
				c.Lock(id, "")
			}
		}
		deeds(t, f, b, deed{fmt.Sprintf("CT %d is locked", id), lock, unlock}, "resume", nil)
	}
	f.report(t)
}

// A short lock while volumes come back is waited for: the operation ends well in the same run.
func TestB1ShortLockWhileVolumesReturn(t *testing.T) {
	w := plainWorld()
	looks := 0
	w.server.Inject(pvesim.Fault{Kind: pvesim.FaultWorldAfter, Method: "POST", Path: `/lxc$`, Params: map[string]string{"vmid": "5001"}, World: func(c *pvesim.Cluster) { c.Lock(5001, "backup") }})
	w.server.Inject(pvesim.Fault{Kind: pvesim.FaultWorld, Method: "GET", Path: `/lxc/5001/status/current$`, Times: -1, World: func(c *pvesim.Cluster) {
		if c.Config(5001)["lock"] == "backup" {
			if looks++; looks > 3 {
				c.Lock(5001, "")
			}
		}
	}})
	if _, err := w.apply(t, recipe.Request{Want: wants()}); err != nil {
		t.Fatal(err)
	}
	if looks < 3 {
		t.Errorf("the lock was looked at %d times", looks)
	}
	w.finished(t)
}

// TestFaultsB3RefusedDestroyIsUndone: every refusal before the first effect is before the point of no return.
func TestFaultsB3RefusedDestroyIsUndone(t *testing.T) {
	b := plainScene().base(t)
	f := &family{name: "B3 a refused destroy"}
	for _, text := range []string{
		"can't remove CT 5001 - protection mode enabled", "unable to destroy CT 5001 - container is running",
		"unable to remove CT 5001 - used in HA resources and purge parameter not set.",
		"There is a replication job '5001-0' for guest '5001' - Please remove that first.", "cluster not ready - no quorum?",
	} {
		w := b.fresh()
		w.server.Inject(pvesim.Fault{Kind: pvesim.FaultStatus, Method: "DELETE", Path: `/lxc/5001$`, Status: 500, Text: text})
		_, err := w.run(t, b.req(), &wire{w: w})
		if err == nil || !strings.Contains(err.Error(), "taken back") || !strings.Contains(err.Error(), text) {
			f.violation(text, "the error is %v", err)
		}
		if w.dump() != b.before {
			f.violation(text, "the world is not as it was:\n%s", difference(b.before, w.dump()))
		}
		f.traces++
		f.faults++
		f.checked += len(w.kept)
	}
	f.report(t)
}

// TestFaultsB4MovesThatWouldTear: a protected receiver, or a storage that lost its content type, at every change.
func TestFaultsB4MovesThatWouldTear(t *testing.T) {
	b := plainScene().base(t)
	f := &family{name: "B4 a receiver that tears a move"}
	parked := func(on bool) func(*pvesim.Cluster) {
		return func(c *pvesim.Cluster) {
			if id := parkingOf(c); id != 0 && c.Config(id)["entrypoint"] == "" {
				c.Protect(id, on)
			}
		}
	}
	deeds(t, f, b, deed{"the parking guest is protected", parked(true), parked(false)}, "resume", nil)
	exists := func(on bool) func(*pvesim.Cluster) {
		return func(c *pvesim.Cluster) {
			if slices.Contains(c.Guests(), 5001) {
				c.Protect(5001, on)
			}
		}
	}
	deeds(t, f, b, deed{"the guest is protected", exists(true), exists(false)}, "resume", nil)
	content := func(types ...string) func(*pvesim.Cluster) {
		return func(c *pvesim.Cluster) {
			c.AddStorage(pvesim.StorageSpec{ID: "tank", Type: "zfspool", Total: 2 << 40, Content: types})
		}
	}
	deeds(t, f, b, deed{"tank takes no containers", content("images"), content("images", "rootdir")}, "resume", nil)
	f.report(t)
}

// TestFaultsB5HolesWithOrphansAround: moves that die in the middle while an orphan of the same size turns up under the
// receiver. The right volume is found, or none is taken.
func TestFaultsB5HolesWithOrphansAround(t *testing.T) {
	b := plainScene().base(t)
	f := &family{name: "B5 holes of moves, orphans around"}
	for _, at := range []string{"renamed", "source-written"} {
		for skip := range 6 {
			for _, when := range []string{"before", "after"} {
				if !whole() && (skip+len(when))%3 != 0 {
					continue
				}
				w := b.fresh()
				orphan := func(c *pvesim.Cluster) {
					owner := parkingOf(c)
					if skip >= 3 {
						owner = 5001
					}
					_ = c.AddVolume("pve1", fmt.Sprintf("local-lvm:vm-%d-disk-77", owner), 100<<30)
				}
				w.server.Inject(pvesim.Fault{Kind: pvesim.FaultTaskKill, At: at, Method: "POST", Path: `/move_volume$`, Skip: skip})
				if when == "before" {
					w.server.Inject(pvesim.Fault{Kind: pvesim.FaultWorld, Method: "POST", Path: `/lxc$`, Skip: skip / 3, World: orphan})
				}
				name := fmt.Sprintf("move %d killed when %s, an orphan %s", skip, at, when)
				_, err := w.run(t, b.req(), &wire{w: w})
				if when == "after" {
					orphan(w.cluster)
				}
				for range 3 {
					j := w.journal(t, 5001)
					if j == nil {
						break
					}
					_, err = w.run(t, b.reconcile(j, "resume"), &wire{w: w})
				}
				for _, v := range w.lost() {
					f.violation(name, "%s", v)
				}
				if err == nil || w.journal(t, 5001) == nil {
					for _, v := range w.orphaned() {
						f.violation(name, "nobody names %s (%v)", v, err)
					}
				} else if !strings.Contains(err.Error(), "guess") && !strings.Contains(err.Error(), "belongs to it") {
					f.violation(name, "stuck, but not because it will not guess: %v", err)
				}
				if got, _ := w.cluster.ReadFile(5001, "/srv/data/marker"); w.journal(t, 5001) == nil && got != "the only copy" {
					f.violation(name, "/srv/data holds %q", got)
				}
				f.traces++
				f.faults++
				f.checked += len(w.kept)
			}
		}
	}
	f.report(t)
}

// TestFaultsB6KilledCreates: the worker of either create dies at every point.
func TestFaultsB6KilledCreates(t *testing.T) {
	b := plainScene().base(t)
	f := &family{name: "B6 creates killed half-way"}
	for _, at := range []string{"stub", "allocated", "extracted"} {
		for _, id := range []string{"905001", "5001"} {
			w := b.fresh()
			w.server.Inject(pvesim.Fault{Kind: pvesim.FaultTaskKill, At: at, Method: "POST", Path: `/lxc$`, Params: map[string]string{"vmid": id}})
			b.trace(t, f, fmt.Sprintf("create of CT %s killed when %s", id, at), w, &wire{w: w}, clearStubs, "resume")
			f.traces++
		}
	}
	f.report(t)
}

// TestFaultsB7SomebodyStartsIt: either guest is started at every change, by hand or at a node's boot.
func TestFaultsB7SomebodyStartsIt(t *testing.T) {
	b := plainScene().base(t)
	f := &family{name: "B7 a guest started in between"}
	for _, id := range []int{5001, 905001} {
		deeds(t, f, b, deed{fmt.Sprintf("CT %d is started", id), func(c *pvesim.Cluster) {
			if slices.Contains(c.Guests(), id) && c.Config(id)["rootfs"] != "" && c.Config(id)["entrypoint"] != "/bin/false" {
				c.SetRunning(id, true)
			}
		}, func(c *pvesim.Cluster) {
			if id == 905001 && slices.Contains(c.Guests(), id) {
				c.SetRunning(id, false)
			}
		}}, "resume", nil)
	}
	f.report(t)
}

// TestFaultsB9RulesSurvive: 64 firewall rules are more than notes hold. The process dies at every change past the rehearsal,
// and another one without any memory restores them all, in order.
func TestFaultsB9RulesSurvive(t *testing.T) {
	s := plainScene()
	s.world = func() *world {
		w := plainScene().world()
		spec := pvesim.FirewallSpec{
			Options: map[string]string{"enable": "1", "policy_in": "DROP"},
			Aliases: map[string]string{"office": "198.51.100.0/24", "vpn": "203.0.113.0/24"}, Sets: map[string][]string{"admins": {"198.51.100.7"}},
		}
		for i := range 64 {
			spec.Rules = append(spec.Rules, map[string]string{"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": fmt.Sprint(1000 + i), "enable": fmt.Sprint(i % 2), "comment": fmt.Sprintf("rule %d, with a comment that takes room in any notes", i)})
		}
		w.cluster.SetFirewall(5001, spec)
		return w
	}
	b := s.base(t)
	f := &family{name: "B9 64 firewall rules"}
	step := 2 // most changes are rules, one like the other
	if !whole() {
		step = 29
	}
	n := b.muts / step
	parallel(n, func(i int) {
		w := b.fresh()
		b.trace(t, f, fmt.Sprintf("dies at change %d", i*step+1), w, &wire{w: w, dieAt: i*step + 1, after: i%2 == 0, changes: true}, nil, "resume")
	})
	f.traces = n
	f.report(t)
}

// TestFaultsC5WipedRecord: another tool overwrites the guest's notes at every change. Before the point of no return nothing
// is destroyed; past it the data comes home all the same.
func TestFaultsC5WipedRecord(t *testing.T) {
	b := plainScene().base(t)
	f := &family{name: "C5 the record wiped from the notes"}
	deeds(t, f, b, deed{"the notes are wiped", func(c *pvesim.Cluster) {
		if slices.Contains(c.Guests(), 5001) {
			c.SetConfig(5001, "description", b.user+"\n")
		}
	}, nil}, "resume", nil)
	f.report(t)
}

// TestFaultsC6CopiesOfTheRecord: the guest and the parking guest are cloned with their notes at every change. A copy is void:
// it neither blocks the copy's own plans nor leads to anything.
func TestFaultsC6CopiesOfTheRecord(t *testing.T) {
	b := plainScene().base(t)
	f := &family{name: "C6 copies of the record"}
	copied := func(c *pvesim.Cluster) {
		for i, id := range []int{5001, 905001} {
			if !slices.Contains(c.Guests(), id) {
				continue
			}
			config := maps.Clone(c.Config(id))
			c.AddContainer(pvesim.ContainerSpec{VMID: 6001 + i, Config: map[string]string{
				"hostname": "copy", "rootfs": "tank:4", "description": config["description"], "memory": "512", "swap": "0",
			}})
		}
	}
	deeds(t, f, b, deed{"the guests are cloned", copied, nil}, "resume", func(t *testing.T, name string, w *world) {
		for _, id := range []int{6001, 6002} {
			if !slices.Contains(w.cluster.Guests(), id) {
				continue
			}
			seen, err := w.container(t).Observe(context.Background(), guest.VMID(id))
			if err != nil || seen.Journal != nil || seen.Contract != nil {
				f.violation(name, "the copy CT %d is taken for %+v (%v)", id, seen.Journal, err)
			}
		}
	})
	f.report(t)
}

// Hazard B13: tags that the policy forbids are named at plan; tags stay out of the create and come back after it.
func TestB13TagsComeBackByARequestOfTheirOwn(t *testing.T) {
	w := plainWorld()
	if _, err := w.apply(t, recipe.Request{Want: wants()}); err != nil {
		t.Fatal(err)
	}
	for _, r := range w.server.Requests() {
		if r.Method == "POST" && strings.HasSuffix(r.Path, "/lxc") && r.Params["tags"] != "" {
			t.Errorf("the create carries tags %q", r.Params["tags"])
		}
	}
	if got := w.cluster.Config(5001)["tags"]; got != "prod;web" {
		t.Errorf("the tags are %q", got)
	}
}

// Hazard C4: a volume of the guest's VMID that nothing names is reported after the create, when the storage shows it again.
func TestC4LeftoversAreReported(t *testing.T) {
	w := plainWorld()
	if err := w.cluster.AddVolume("pve1", "tank:subvol-5001-disk-9", 4<<30); err != nil {
		t.Fatal(err)
	}
	result, err := w.apply(t, recipe.Request{Want: wants()})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(result.Warnings, func(s string) bool { return strings.Contains(s, "tank:subvol-5001-disk-9") }) {
		t.Errorf("the leftover is not reported: %q", result.Warnings)
	}
	if _, there := w.cluster.Volume("tank:subvol-5001-disk-9"); !there {
		t.Error("the leftover was destroyed")
	}
	w.finished(t)
}

// Hazard C15: another guest's volume is mounted again by reference; dropped only by consent, and its data stays.
func TestC15ForeignMounts(t *testing.T) {
	w := plainWorld()
	want := wants()
	want.Drop = []string{"mp1"}
	if _, err := w.apply(t, recipe.Request{Want: wants()}); err != nil {
		t.Fatal(err)
	}
	if got, _ := w.cluster.ReadFile(5001, "/shared/theirs"); got != "belongs to 5002" {
		t.Errorf("the foreign mount shows %q", got)
	}
	want.Triggers = map[string]string{"again": "2"}
	if _, err := w.apply(t, recipe.Request{Want: want}); err != nil {
		t.Fatal(err)
	}
	if got := w.cluster.Config(5001)["mp1"]; got != "" {
		t.Errorf("mp1 is %q although drop names it", got)
	}
	if lost := w.lost(); len(lost) > 0 {
		t.Error(lost)
	}
}

// Hazard C17: what a reinstall loses beside data is said: the usage graphs begin anew.
func TestC17StatisticsAreSaidToBeLost(t *testing.T) {
	w := newWorld()
	c := w.container(t)
	seen, err := c.Observe(context.Background(), 5001)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := c.Plan(context.Background(), seen, wants())
	if err != nil {
		t.Fatal(err)
	}
	if text := shown.AlsoLost["statistics"]; !strings.HasPrefix(text, "lost") {
		t.Errorf("statistics: %q", text)
	}
}
