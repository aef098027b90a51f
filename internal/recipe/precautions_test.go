package recipe_test

import (
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

// The tests here each hold one precaution: what they inject happens in the one moment in which only that precaution helps.

// change is the number of the first change of an uninterrupted run that is of a kind; before counts back from it.
func (b base) change(t *testing.T, method, path string, params map[string]string, before int) int {
	t.Helper()
	for i, r := range b.sent {
		fits := r.Method == method && strings.HasSuffix(r.Path, path)
		for key, value := range params {
			fits = fits && r.Params[key] == value
		}
		if fits {
			return i + 1 - before
		}
	}
	t.Fatalf("no %s %s %v in the uninterrupted run", method, path, params)
	return 0
}

// record is the number of the change that records a stage in the notes.
func (b base) record(t *testing.T, stage string) int {
	t.Helper()
	for i, r := range b.sent {
		if j := guest.ReadNotes(r.Params["description"]).Journal; r.Method == http.MethodPut && j != nil && j.Stage == stage {
			return i + 1
		}
	}
	t.Fatalf("stage %q is not recorded in the uninterrupted run", stage)
	return 0
}

func deedAfter(change int, do func(*pvesim.Cluster)) pvesim.Fault {
	return pvesim.Fault{Kind: pvesim.FaultWorldAfter, Mutation: change, World: do}
}

// sent lists the changes of a kind that the server saw.
func (w *world) sent(method, path string) (found []pvesim.Request) {
	for _, r := range w.server.Requests() {
		if r.Method == method && strings.HasSuffix(r.Path, path) {
			found = append(found, r)
		}
	}
	return found
}

func TestEveryChangeCarriesADigest(t *testing.T) {
	t.Parallel()
	for _, s := range []scene{plainScene(), richScene()} {
		configs, moves := 0, 0
		for _, r := range s.base(t).sent {
			switch {
			case r.Method == http.MethodPut && strings.HasSuffix(r.Path, "/config"):
				configs++
				if r.Params["digest"] == "" {
					t.Errorf("%s: %s of %v has no digest", s.name, r.Path, slices.Sorted(maps.Keys(r.Params)))
				}
			case strings.HasSuffix(r.Path, "/move_volume"):
				moves++
				if r.Params["digest"] == "" || r.Params["target-digest"] == "" {
					t.Errorf("%s: %s has not both digests: %v", s.name, r.Path, r.Params)
				}
			}
		}
		if configs < 10 || moves < 6 {
			t.Errorf("%s: only %d configurations and %d moves", s.name, configs, moves)
		}
	}
}

// A block that cannot be read may be somebody's operation: it is not written over, even when it turns up in the last moment.
func TestDamagedRecordIsNotWrittenOver(t *testing.T) {
	t.Parallel()
	w := plainWorld()
	whole := guest.Notes{User: "theirs", Journal: &guest.Journal{Operation: "op-5001-20260101-0001", Guest: 5001, Holder: 5001}}.String()
	damaged := whole[:len(whole)-40]
	w.server.Inject(pvesim.Fault{Kind: pvesim.FaultWorld, Mutation: 1, World: func(c *pvesim.Cluster) { c.SetConfig(5001, "description", damaged) }})
	_, err := w.apply(t, recipe.Request{Want: wants()})
	if err == nil || !strings.Contains(err.Error(), "cannot claim") {
		t.Errorf("the error is %v", err)
	}
	if got := w.cluster.Config(5001)["description"]; strings.TrimRight(got, "\n") != strings.TrimRight(damaged, "\n") {
		t.Errorf("the notes are %q", got)
	}
}

// A run that was taken back leaves no record: the notes are the guest's own again.
func TestUndoneMeansNothingIsLeft(t *testing.T) {
	t.Parallel()
	w := plainWorld()
	before, notes := w.dump(), w.cluster.Config(5001)["description"]
	w.server.Inject(pvesim.Fault{Kind: pvesim.FaultStatus, Method: "POST", Path: `/lxc/5001/move_volume$`, Status: 403, Text: "Permission check failed"})
	_, err := w.apply(t, recipe.Request{Want: wants()})
	w.untouched(t, before, err, "taken back")
	if now := w.cluster.Config(5001)["description"]; strings.TrimRight(now, "\n") != strings.TrimRight(notes, "\n") {
		t.Errorf("the notes are %q and were %q", now, notes)
	}
}

// A guest that changes between the look and the claim is let go again before anything is made.
func TestChangedWhileClaimed(t *testing.T) {
	t.Parallel()
	w := plainWorld()
	w.server.Inject(pvesim.Fault{Kind: pvesim.FaultWorld, Mutation: 1, World: func(c *pvesim.Cluster) { c.SetConfig(5001, "mp9", "local-lvm:4,mp=/new") }})
	_, err := w.apply(t, recipe.Request{Want: wants()})
	if err == nil || !strings.Contains(err.Error(), "while it was being claimed") || !strings.Contains(err.Error(), "mp9") {
		t.Errorf("the error is %v", err)
	}
	if made := w.sent(http.MethodPost, "/lxc"); len(made) > 0 {
		t.Errorf("something was rehearsed all the same")
	}
}

// A snapshot that was taken after the plan is nobody's to delete.
func TestLaterSnapshotIsNotDeleted(t *testing.T) {
	t.Parallel()
	s := plainScene()
	start := s.world
	s.world = func() *world {
		w := start()
		w.cluster.Snapshot(5001, "before")
		return w
	}
	s.req = func() recipe.Request {
		want := wants()
		want.Allow = []string{"snapshots_present"}
		return recipe.Request{Want: want}
	}
	b := s.base(t)
	w := b.fresh()
	w.server.Inject(deedAfter(b.record(t, "delete snapshots"), func(c *pvesim.Cluster) { c.Snapshot(5001, "later") }))
	_, err := w.run(t, b.req(), &wire{w: w})
	if err == nil || !strings.Contains(err.Error(), "later") {
		t.Errorf("the error is %v", err)
	}
	for _, r := range w.sent(http.MethodDelete, "/snapshot/later") {
		t.Errorf("it was deleted: %s", r.Path)
	}
}

// Hazard B4: a storage that stopped taking containers would tear a move in two; it is asked right before each.
func TestB4StorageIsAskedBeforeAMove(t *testing.T) {
	t.Parallel()
	b := plainScene().base(t)
	w := b.fresh()
	if _, err := w.run(t, b.req(), &wire{w: w}); err != nil {
		t.Fatal(err)
	}
	// The storage still shows the volume when it is looked for; then it loses the content type.
	at, recorded := 0, b.record(t, "park mp3")
	for _, r := range w.server.Requests() {
		if at == 0 && recorded == 0 && r.Method == http.MethodGet && strings.HasSuffix(r.Path, "/storage/tank/content") {
			at = r.N
		}
		if r.Mutation == recorded {
			recorded = 0
		}
	}
	w = b.fresh()
	w.server.Inject(pvesim.Fault{Kind: pvesim.FaultWorldAfter, Request: at, World: func(c *pvesim.Cluster) {
		c.AddStorage(pvesim.StorageSpec{ID: "tank", Type: "zfspool", Total: 2 << 40, Content: []string{"images"}})
	}})
	_, err := w.run(t, b.req(), &wire{w: w})
	if err == nil || !strings.Contains(err.Error(), "no longer takes container volumes") || w.server.FaultsStruck() != 1 {
		t.Errorf("the error is %v", err)
	}
	for _, r := range w.sent(http.MethodPost, "/move_volume") {
		if r.Params["volume"] == "mp3" {
			t.Error("mp3 was moved all the same")
		}
	}

	// One that lost it before the look shows no volume at all: that is no proof that the volume is gone.
	w = b.fresh()
	w.server.Inject(deedAfter(b.record(t, "park mp3"), func(c *pvesim.Cluster) {
		c.AddStorage(pvesim.StorageSpec{ID: "tank", Type: "zfspool", Total: 2 << 40, Content: []string{"images"}})
	}))
	result, err := w.run(t, b.req(), &wire{w: w})
	if err == nil || !strings.Contains(err.Error(), "no longer takes container volumes") || strings.Contains(err.Error(), "nobody's configuration") {
		t.Errorf("the error is %v", err)
	}
	w.cluster.AddStorage(pvesim.StorageSpec{ID: "tank", Type: "zfspool", Total: 2 << 40})
	if _, err := w.run(t, b.reconcile(w.journal(t, 5001), "rollback"), &wire{w: w}); err != nil || w.dump() != b.before {
		t.Errorf("after %s: the rollback: %v\n%s", result.Status, err, difference(b.before, w.dump()))
	}
}

// Hazard B5: the process dies together with the worker of a move, after the rename. Another process finds the volume, since
// the record already said what the receiver owned.
func TestB5HoleIsFoundByAnotherProcess(t *testing.T) {
	t.Parallel()
	b := plainScene().base(t)
	for _, path := range []string{"/lxc/5001/move_volume", "/lxc/905001/move_volume"} {
		w := b.fresh()
		l := &wire{w: w}
		w.server.Inject(pvesim.Fault{Kind: pvesim.FaultTaskKill, At: "renamed", Method: "POST", Path: path + "$"})
		w.server.After = func(r pvesim.Request) {
			if strings.HasSuffix(r.Path, path) {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.dead = true
			}
		}
		if _, err := w.run(t, b.req(), l); err == nil || w.server.FaultsStruck() != 1 {
			t.Fatalf("%s: it did not die: %v", path, err)
		}
		w.server.After = nil
		w.cluster.Wait()
		if len(w.orphaned()) != 1 {
			t.Fatalf("%s: nobody names %v, want one", path, w.orphaned())
		}
		if _, err := w.run(t, b.reconcile(w.journal(t, 5001), "resume"), &wire{w: w}); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		w.finished(t)
	}
}

// Hazard B5: a volume of the same size that the receiver owned before is not the one that a torn move lost.
func TestB5OrphanIsNotTakenForTheVolume(t *testing.T) {
	t.Parallel()
	b := plainScene().base(t)
	w := b.fresh()
	w.server.Inject(deedAfter(b.record(t, "park unused0"), func(c *pvesim.Cluster) {
		if err := c.AddVolume("pve1", "local-lvm:vm-905001-disk-77", 100<<30); err != nil {
			t.Error(err)
		}
	}))
	w.server.Inject(pvesim.Fault{Kind: pvesim.FaultTaskKill, At: "renamed", Method: "POST", Path: `/lxc/5001/move_volume$`, Params: map[string]string{"volume": "mp0"}})
	_, err := w.run(t, b.req(), &wire{w: w})
	if w.server.FaultsStruck() != 2 {
		t.Fatalf("%d faults struck", w.server.FaultsStruck())
	}
	// The orphan keeps the parking guest alive; the data is home before that.
	if err == nil || !strings.Contains(err.Error(), "vm-905001-disk-77 belongs to it") {
		t.Errorf("the error is %v", err)
	}
	if got, _ := w.cluster.ReadFile(5001, "/srv/data/marker"); got != "the only copy" {
		t.Errorf("/srv/data holds %q", got)
	}
}

// Hazard B5: when more than one volume appeared at the receiver since the record, none is taken, whatever their order.
func TestB5OfSeveralVolumesNoneIsTaken(t *testing.T) {
	t.Parallel()
	b := plainScene().base(t)
	w := b.fresh()
	orphans := []string{"local-lvm:vm-905001-aaa", "local-lvm:vm-905001-zzz"}
	w.server.Inject(pvesim.Fault{Kind: pvesim.FaultTaskKill, At: "renamed", Method: "POST", Path: `/lxc/5001/move_volume$`, Params: map[string]string{"volume": "mp0"}})
	w.server.After = func(r pvesim.Request) {
		if r.Params["volume"] == "mp0" {
			w.cluster.Wait()
			for _, id := range orphans {
				if err := w.cluster.AddVolume("pve1", id, 100<<30); err != nil {
					t.Error(err)
				}
			}
		}
	}
	result, err := w.run(t, b.req(), &wire{w: w})
	if err == nil || result.Status != recipe.StatusNeedsReconcile || !strings.Contains(err.Error(), "nothing is guessed") {
		t.Errorf("%s: %v", result.Status, err)
	}
	for _, id := range []int{5001, 905001} {
		if now := w.cluster.Config(id)["mp0"]; slices.ContainsFunc(orphans, func(o string) bool { return strings.HasPrefix(now, o) }) {
			t.Errorf("CT %d mounts %s", id, now)
		}
	}
	for _, id := range orphans {
		w.cluster.RemoveVolume(id)
	}
	w.server.After = nil
	if _, err := w.run(t, b.reconcile(w.journal(t, 5001), "resume"), &wire{w: w}); err != nil {
		t.Error(err)
	}
	if lost := append(w.lost(), w.orphaned()...); len(lost) > 0 {
		t.Error(lost)
	}
}

// Options that a volume lost on its way are given back, and compared.
func TestLostOptionsComeBack(t *testing.T) {
	t.Parallel()
	w := plainWorld()
	before := w.cluster.Config(5001)["mp0"]
	w.server.Inject(pvesim.Fault{
		Kind: pvesim.FaultWorldAfter, Method: "POST", Path: `/lxc/5001/move_volume$`, Params: map[string]string{"volume": "mp0"},
		World: func(c *pvesim.Cluster) {
			c.Wait()
			c.SetConfig(905001, "mp0", c.VolumeOf(905001, "mp0")+",mp=/srv/data,size=100G")
		},
	})
	if _, err := w.apply(t, recipe.Request{Want: wants()}); err != nil {
		t.Fatal(err)
	}
	if now := w.cluster.Config(5001)["mp0"]; now != before || w.server.FaultsStruck() != 1 {
		t.Errorf("mp0 is %q and was %q", now, before)
	}
}

// While the guest is destroyed nobody can delete the parking guest, or start it on the data.
func TestParkingGuestIsGuardedAcrossThePoint(t *testing.T) {
	t.Parallel()
	w := plainWorld()
	looked := 0
	look := func(c *pvesim.Cluster) {
		looked++
		if now := c.Config(905001); now["protection"] != "1" || now["entrypoint"] != "/bin/false" || now["onboot"] == "1" {
			t.Errorf("the parking guest is %v", now)
		}
	}
	w.server.Inject(pvesim.Fault{Kind: pvesim.FaultWorld, Method: "DELETE", Path: `/lxc/5001$`, World: look})
	w.server.Inject(pvesim.Fault{Kind: pvesim.FaultWorld, Method: "POST", Path: `/lxc/905001/move_volume$`, Times: -1, World: look})
	if _, err := w.apply(t, recipe.Request{Want: wants()}); err != nil || looked != 4 {
		t.Fatalf("%d looks: %v", looked, err)
	}
}

// What happens after the stage is recorded and before the destroy is sent, is seen by the last look: no destroy is sent.
func TestLastLookSeesEverything(t *testing.T) {
	t.Parallel()
	b := plainScene().base(t)
	at := b.record(t, "destroy")
	for _, c := range []struct {
		name     string
		do, back func(*pvesim.Cluster)
		says     string
	}{
		{
			"a volume is added", func(c *pvesim.Cluster) { c.SetConfig(5001, "mp9", "local-lvm:4,mp=/new") },
			func(c *pvesim.Cluster) { removeMount(c, "mp9") }, "mp9",
		},
		{
			"another guest's volume is mounted elsewhere", func(c *pvesim.Cluster) {
				c.SetRawConfig(5001, "mp1", strings.Replace(c.Config(5001)["mp1"], "mp=/shared", "mp=/elsewhere", 1))
			}, func(*pvesim.Cluster) {}, "mp1",
		},
		{
			"the guard is lifted", func(c *pvesim.Cluster) { c.SetConfig(905001, "entrypoint", "") },
			func(c *pvesim.Cluster) { c.Protect(905001, false) }, "not guarded", // without the entrypoint it is not our guard that is left
		},
		{
			"the guest is started", func(c *pvesim.Cluster) { c.SetRunning(5001, true) },
			func(*pvesim.Cluster) {}, "runs",
		},
		{
			"the guest is protected", func(c *pvesim.Cluster) { c.Protect(5001, true) },
			func(c *pvesim.Cluster) { c.Protect(5001, false) }, "protected",
		},
		{
			"somebody mounts a volume of the guest", func(c *pvesim.Cluster) { c.SetRawConfig(5002, "mp7", c.VolumeOf(5001, "rootfs")+",mp=/theirs") },
			func(c *pvesim.Cluster) { c.SetConfig(5002, "mp7", "") }, "named by CT 5002",
		},
	} {
		w := b.fresh()
		w.server.Inject(deedAfter(at, c.do))
		_, err := w.run(t, b.req(), &wire{w: w})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: the error does not say %q: %v", c.name, c.says, err)
		}
		if n := len(w.sent(http.MethodDelete, "/lxc/5001")); n > 0 {
			t.Errorf("%s: the destroy was sent %d times", c.name, n)
		}
		c.back(w.cluster)
		for range 3 {
			if j := w.journal(t, 5001); j != nil {
				_, _ = w.run(t, b.reconcile(j, "rollback"), &wire{w: w})
			}
		}
		if lost := append(w.lost(), w.orphaned()...); len(lost) > 0 || w.journal(t, 5001) != nil {
			t.Errorf("%s: lost %v, record %v", c.name, lost, w.journal(t, 5001))
		}
	}
}

// The record says what a destroy was sent for before it is sent: who comes next knows that the guest is gone by us.
func TestDestroyIsRecordedFirst(t *testing.T) {
	t.Parallel()
	b := plainScene().base(t)
	w := b.fresh()
	l := &wire{w: w}
	w.server.After = func(r pvesim.Request) {
		if r.Method == http.MethodDelete && strings.HasSuffix(r.Path, "/lxc/5001") {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.dead = true
		}
	}
	if _, err := w.run(t, b.req(), l); err == nil || !l.dead {
		t.Fatalf("it did not die: %v", err)
	}
	w.server.After = nil
	w.cluster.Wait()
	if _, err := w.run(t, b.reconcile(w.journal(t, 5001), "resume"), &wire{w: w}); err != nil {
		t.Fatal(err)
	}
	w.finished(t)
}

// A destroy that was sent into silence may still be done: it is not taken for one that never was, although the guest is there.
func TestDestroyWhoseAnswerNeverCameIsNotTakenBack(t *testing.T) {
	t.Parallel()
	w := plainWorld()
	w.server.Inject(pvesim.Fault{Kind: pvesim.FaultReset, Method: "DELETE", Path: `/lxc/5001$`})
	result, err := w.apply(t, recipe.Request{Want: wants()})
	if err == nil || result.Status != recipe.StatusNeedsReconcile || result.Stage != "destroy" {
		t.Fatalf("%s at %q: %v", result.Status, result.Stage, err)
	}
	if now := w.cluster.Config(905001); now["protection"] != "1" || now["mp0"] == "" {
		t.Errorf("the parking guest is %v", now)
	}
	if _, err := w.reconcile(t, wants(), result.Operation, "resume"); err != nil {
		t.Fatal(err)
	}
	w.finished(t)
}

// Hazard A6: a destroy frees the root file system first and can die after that; the configuration is unchanged, and yet there
// is no way back.
func TestDestroyThatFreedSomethingIsNotTakenBack(t *testing.T) {
	t.Parallel()
	w := plainWorld()
	want := wants()
	want.Erase = map[string]string{"mp3": "*"}
	w.server.Inject(pvesim.Fault{Kind: pvesim.FaultWorld, Method: "DELETE", Path: `/lxc/5001$`, World: func(c *pvesim.Cluster) {
		c.AddStorage(pvesim.StorageSpec{ID: "tank", Type: "zfspool", Total: 2 << 40, Unreachable: true})
	}})
	result, err := w.apply(t, recipe.Request{Want: want})
	if err == nil || result.Status != recipe.StatusNeedsReconcile || result.Stage != "destroy" {
		t.Fatalf("%s at %q: %v", result.Status, result.Stage, err)
	}
	if _, there := w.cluster.Config(5001)["rootfs"]; !there {
		t.Fatal("the configuration is gone: the destroy did not die half-way")
	}
	if j := w.journal(t, 5001); j == nil || j.Back {
		t.Errorf("the record is %+v", j)
	}
	w.cluster.AddStorage(pvesim.StorageSpec{ID: "tank", Type: "zfspool", Total: 2 << 40})
	if _, err := w.reconcile(t, want, result.Operation, "resume"); err != nil {
		t.Fatal(err)
	}
	if got, _ := w.cluster.ReadFile(5001, "/srv/data/marker"); got != "the only copy" {
		t.Errorf("/srv/data holds %q", got)
	}
}

// Somebody replaces the new guest before the volumes come back. Theirs never gets one: neither without notes, nor under the
// same name with other MACs.
func TestStrangerGetsNoVolume(t *testing.T) {
	t.Parallel()
	b := plainScene().base(t)
	for name, config := range map[string]map[string]string{
		"a guest of another name":           {"hostname": "theirs", "rootfs": "local-lvm:4"},
		"a guest of the name, without nets": {"hostname": "web1", "rootfs": "local-lvm:4"},
		"a guest of the name and other MAC": {"hostname": "web1", "rootfs": "local-lvm:4", "net0": "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:99:99:99,ip=192.0.2.51/24,gw=192.0.2.1,firewall=1,type=veth"},
	} {
		w := b.fresh()
		w.server.Inject(deedAfter(b.record(t, "return mp0"), func(c *pvesim.Cluster) {
			c.RemoveGuest(5001)
			c.AddContainer(pvesim.ContainerSpec{VMID: 5001, Config: maps.Clone(config)})
		}))
		result, err := w.run(t, b.req(), &wire{w: w})
		if err == nil || result.Status != recipe.StatusNeedsReconcile || !strings.Contains(err.Error(), "not touched") {
			t.Errorf("%s: %s, %v", name, result.Status, err)
		}
		if now := w.cluster.Config(5001); now["mp0"] != "" || now["hostname"] != config["hostname"] || strings.Contains(now["description"], "pvrx") {
			t.Errorf("%s: it is %v", name, now)
		}
		if lost := append(w.lost(), w.orphaned()...); len(lost) > 0 {
			t.Errorf("%s: lost %v", name, lost)
		}
	}
}

// Hazard B7: a guest that somebody started runs without its data; it is stopped before a volume comes back.
func TestB7NoVolumeReturnsToARunningGuest(t *testing.T) {
	t.Parallel()
	b := plainScene().base(t)
	w := b.fresh()
	looked := 0
	w.server.Inject(deedAfter(b.record(t, "return mp0"), func(c *pvesim.Cluster) { c.SetRunning(5001, true) }))
	w.server.Inject(pvesim.Fault{Kind: pvesim.FaultWorld, Method: "POST", Path: `/lxc/905001/move_volume$`, Times: -1, World: func(c *pvesim.Cluster) {
		looked++
		if c.Running(5001) {
			t.Error("a volume comes back into a running guest")
		}
	}})
	if _, err := w.run(t, b.req(), &wire{w: w}); err != nil || looked != 3 {
		t.Fatalf("%d volumes: %v", looked, err)
	}
	w.finished(t)
}

// Hazard B6: a guest whose create did not end well is made again, however complete it looks.
func TestB6HalfMadeGuestIsMadeAgain(t *testing.T) {
	t.Parallel()
	w := plainWorld()
	w.server.Inject(pvesim.Fault{Kind: pvesim.FaultTaskKill, At: "extracted", Method: "POST", Path: `/lxc$`, Params: map[string]string{"vmid": "5001"}})
	result, err := w.apply(t, recipe.Request{Want: wants()})
	if err == nil || w.cluster.Config(5001)["rootfs"] == "" {
		t.Fatalf("it does not look complete: %v, %v", err, w.cluster.Config(5001))
	}
	if _, err := w.reconcile(t, wants(), result.Operation, "resume"); err != nil {
		t.Fatal(err)
	}
	if d, c := w.made(5001); d != 2 || c != 2 {
		t.Errorf("destroyed %d times and created %d times, want 2 and 2: the old one, and the unfinished one", d, c)
	}
	w.finished(t)
}

// A volume that somebody takes out of the new guest again keeps the parking guest and the record alive.
func TestSettleMissesAVolume(t *testing.T) {
	t.Parallel()
	b := plainScene().base(t)
	w := b.fresh()
	w.server.Inject(deedAfter(b.record(t, "settle"), func(c *pvesim.Cluster) {
		c.SetRawConfig(5001, "unused7", c.VolumeOf(5001, "mp0"))
		c.SetConfig(5001, "mp0", "")
	}))
	result, err := w.run(t, b.req(), &wire{w: w})
	if err == nil || result.Status != recipe.StatusNeedsReconcile || !strings.Contains(err.Error(), "mp0") {
		t.Fatalf("%s: %v", result.Status, err)
	}
	if now := w.cluster.Config(905001); now["protection"] != "1" || w.journal(t, 5001) == nil {
		t.Errorf("the parking guest is %v", now)
	}
}

// Somebody replaces the parking guest when it is about to go, by a guest of their own that holds nothing else. It is left
// alone, in the end of an operation and on the way back.
func TestParkingVMIDTakenBySomebody(t *testing.T) {
	t.Parallel()
	b := plainScene().base(t)
	theirs := func(c *pvesim.Cluster) {
		c.RemoveGuest(905001)
		for _, v := range c.Volumes() {
			if v.Owner == 905001 {
				c.RemoveVolume(v.ID)
			}
		}
		c.AddContainer(pvesim.ContainerSpec{VMID: 905001, Config: map[string]string{"hostname": "theirs", "rootfs": "local-lvm:4"}})
	}
	check := func(name string, w *world) {
		t.Helper()
		if now := w.cluster.Config(905001); now["hostname"] != "theirs" {
			t.Errorf("%s: their guest is %v", name, now)
		}
		if lost := append(w.lost(), w.orphaned()...); len(lost) > 0 || w.journal(t, 5001) != nil {
			t.Errorf("%s: lost %v, record %v", name, lost, w.journal(t, 5001))
		}
	}

	w := b.fresh()
	lift := b.change(t, http.MethodPut, "/lxc/905001/config", map[string]string{"delete": "entrypoint,protection"}, 1)
	w.server.Inject(deedAfter(lift, theirs))
	result, err := w.run(t, b.req(), &wire{w: w})
	if err != nil || !slices.ContainsFunc(result.Warnings, func(s string) bool { return strings.Contains(s, "left alone") }) {
		t.Errorf("in the end: %v, warnings %q", err, result.Warnings)
	}
	check("in the end", w)

	w = b.fresh()
	w.server.Inject(pvesim.Fault{Kind: pvesim.FaultWorldAfter, Method: "POST", Path: `/lxc/5001/status/shutdown$`, World: func(c *pvesim.Cluster) {
		theirs(c)
		c.SetConfig(5001, "mp9", "local-lvm:4,mp=/new")
	}})
	if _, err := w.run(t, b.req(), &wire{w: w}); err == nil {
		t.Error("no error")
	}
	removeMount(w.cluster, "mp9")
	for range 3 {
		if j := w.journal(t, 5001); j != nil {
			_, err = w.run(t, b.reconcile(j, "rollback"), &wire{w: w})
		}
	}
	check(fmt.Sprintf("on the way back (%v)", err), w)
}

// Hazard A2: after a rollback the contract does not claim the refused install: it declines it.
func TestA2RollbackDeclinesTheInstall(t *testing.T) {
	t.Parallel()
	w := plainWorld()
	want := wants()
	want.Backup = &preview.Backup{Storage: "local", Mode: "stop"}
	w.server.Inject(stopAt("create"))
	result, err := w.apply(t, recipe.Request{Want: want})
	if err == nil {
		t.Fatal("it did not stop")
	}
	w.server.ClearFaults()
	if _, err := w.reconcile(t, want, result.Operation, "rollback"); err != nil {
		t.Fatal(err)
	}
	contract := guest.NotesOf(5001, w.cluster.Config(5001)["description"]).Contract
	refused := guest.Install{Template: want.Template, Triggers: want.Triggers}
	if contract == nil || contract.Installed.Template == want.Template || !slices.Contains(contract.Declined, refused.Hash()) {
		t.Errorf("the contract is %+v", contract)
	}
}

// Somebody takes the VMID in the middle of a rollback, right before what the operation made would be cleared away: theirs stays.
func TestA2RollbackClearsNobodyElsesGuest(t *testing.T) {
	t.Parallel()
	s := plainScene()
	s.req = func() recipe.Request {
		want := wants()
		want.Backup = &preview.Backup{Storage: "local", Mode: "stop"}
		return recipe.Request{Want: want}
	}
	b := s.base(t)
	back := func(deed *pvesim.Fault) (*world, error) {
		w := b.fresh()
		w.server.Inject(stopAt("create"))
		result, err := w.run(t, b.req(), &wire{w: w})
		if err == nil {
			t.Fatal("it did not stop")
		}
		w.server.ClearFaults()
		if deed != nil {
			w.server.Inject(*deed)
		}
		req := b.req()
		req.Reconcile = &recipe.Reconcile{Operation: result.Operation, Action: "rollback"}
		_, err = w.run(t, req, &wire{w: w})
		return w, err
	}
	w, err := back(nil)
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, r := range w.server.Requests() {
		if j := guest.ReadNotes(r.Params["description"]).Journal; at == 0 && j != nil && j.Stage == "clear" {
			at = r.Mutation
		}
	}
	theirs := map[string]string{}
	deed := deedAfter(at, func(c *pvesim.Cluster) {
		c.AddContainer(pvesim.ContainerSpec{VMID: 5001, Config: map[string]string{"hostname": "theirs", "rootfs": "local-lvm:4"}})
		maps.Copy(theirs, c.Config(5001))
	})
	w, err = back(&deed)
	if err == nil || !strings.Contains(err.Error(), "not touched") {
		t.Errorf("the error is %v", err)
	}
	if now := w.cluster.Config(5001); len(theirs) == 0 || !maps.Equal(now, theirs) {
		t.Errorf("their guest is %v and was %v", now, theirs)
	}
	if lost := append(w.lost(), w.orphaned()...); len(lost) > 0 {
		t.Error(lost)
	}
}

// Of two runs that resume the same operation only one goes on: whoever finds that the other took the record over stops, even
// when the other has died since. A person then resumes once more.
func TestFaultsRacesTwoResumes(t *testing.T) {
	t.Parallel()
	b := plainScene().base(t)
	f := &family{name: "two resumes of one operation"}
	stuck := func() (*world, *guest.Journal) {
		w := b.fresh()
		w.server.Inject(stopAt("create"))
		if _, err := w.run(t, b.req(), &wire{w: w}); err == nil {
			t.Fatal("it did not stop")
		}
		w.server.ClearFaults()
		return w, w.journal(t, 5001)
	}
	w, j := stuck()
	first, last := w.server.Mutations(), 0
	if _, err := w.run(t, b.reconcile(j, "resume"), &wire{w: w}); err != nil {
		t.Fatal(err)
	}
	for _, r := range w.server.Requests() {
		if j := guest.ReadNotes(r.Params["description"]).Journal; last == 0 && j != nil && j.Stage == "settle" {
			last = r.Mutation // from here on a run that lost the record has nothing left to do that the other would not
		}
	}
	step := 1
	if !whole() {
		step = 4
	}
	for at := first + 1; at < last; at += step {
		w, j := stuck()
		name := fmt.Sprintf("at change %d", at-first)
		other := &wire{w: w}
		w.server.Inject(deedAfter(at, func(*pvesim.Cluster) {
			w.server.After = func(r pvesim.Request) { other.dead = other.dead || r.Mutates() }
			_, _ = w.run(t, b.reconcile(j, "resume"), other)
			w.server.After = nil
		}))
		l := &wire{w: w}
		_, err := w.run(t, b.reconcile(j, "resume"), l)
		f.traces++
		f.count(l, other.dead)
		if err == nil || !strings.Contains(err.Error(), "another run holds the guest") {
			f.violation(name, "the one that lost the record ends with %v", err)
		}
		if w.journal(t, 5001) == nil {
			f.violation(name, "it went on to the end")
			continue
		}
		again := &wire{w: w}
		if _, err := w.run(t, b.reconcile(w.journal(t, 5001), "resume"), again); err != nil {
			f.violation(name, "a third run cannot go on: %v", err)
		}
		f.count(again, false)
		for _, v := range slices.Concat(l.broken, other.broken, again.broken) {
			f.violation(name, "%s", v)
		}
		b.checkEnd(t, f, name, w, nil)
	}
	f.report(t)
}

// The record in its home is the operation's right to go on: wiped, or replaced by another operation's, it ends the run.
func TestRecordOfAnotherOperationStops(t *testing.T) {
	t.Parallel()
	b := plainScene().base(t)
	at := b.record(t, "park mp0")
	for _, wiped := range []bool{true, false} {
		w := b.fresh()
		put := ""
		w.server.Inject(deedAfter(at, func(c *pvesim.Cluster) {
			notes := guest.ReadNotes(c.Config(905001)["description"])
			if notes.Journal == nil {
				t.Error("the parking guest holds no record")
				return
			}
			if wiped {
				notes.Journal = nil
			} else {
				notes.Journal.Operation = "op-5001-20260101-0001"
			}
			put = notes.String()
			c.SetConfig(905001, "description", put)
		}))
		result, err := w.run(t, b.req(), &wire{w: w})
		says := "our record is gone"
		if !wiped {
			says = "op-5001-20260101-0001"
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("wiped=%v: %s, %v", wiped, result.Status, err)
		}
		if now := w.cluster.Config(905001)["description"]; strings.TrimRight(now, "\n") != strings.TrimRight(put, "\n") {
			t.Errorf("wiped=%v: the notes are %q", wiped, now)
		}
		if n := len(w.sent(http.MethodDelete, "/lxc/5001")); n > 0 || len(w.lost()) > 0 {
			t.Errorf("wiped=%v: it went on", wiped)
		}
	}
}
