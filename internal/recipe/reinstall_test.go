package recipe_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

func TestReinstallKeepsWhatShouldStay(t *testing.T) {
	w := newWorld()
	before, firewall := w.cluster.Config(5001), w.cluster.Firewall(5001)
	w.keep(before["mp0"][:len("local-lvm:vm-5001-disk-1")], w.cluster.VolumeOf(5001, "mp3"), w.cluster.VolumeOf(5001, "unused0"), w.cluster.VolumeOf(5002, "mp0"))
	rootfs, _ := w.cluster.Volume(w.cluster.VolumeOf(5001, "rootfs"))
	result, err := w.apply(t, recipe.Request{Want: wants()})
	if err != nil {
		t.Fatal(err)
	}
	if result.Status != recipe.StatusReady || result.Exists == nil || !*result.Exists || len(result.Warnings) > 0 {
		t.Errorf("the result is %+v", result)
	}
	if lost := append(w.lost(), w.orphaned()...); len(lost) > 0 {
		t.Error(lost)
	}
	after := w.cluster.Config(5001)
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if key == "description" || key == "ostype" {
			continue
		}
		if after[key] != before[key] {
			t.Errorf("%s is %q and was %q", key, after[key], before[key])
		}
	}
	if len(after) != len(before) {
		t.Errorf("there are %d keys and were %d", len(after), len(before))
	}
	if now, _ := w.cluster.Volume(w.cluster.VolumeOf(5001, "rootfs")); now.Identity == rootfs.Identity || now.Content["/etc/debian_version"] != "13" || now.Content["/etc/passwd"] != "" {
		t.Errorf("the root file system is not new: %v", now.Content)
	}
	if got, _ := w.cluster.ReadFile(5001, "/srv/data/marker"); got != "the only copy" {
		t.Errorf("the marker in /srv/data is %q", got)
	}
	if got, _ := w.cluster.ReadFile(5001, "/srv/data/README"); got != "from the template 12" {
		t.Errorf("the template was unpacked into the kept volume: %q", got)
	}
	if got := w.cluster.Firewall(5001); got != firewall {
		t.Errorf("the firewall is\n%s\nand was\n%s", got, firewall)
	}
	if pool := w.cluster.PoolOf(5001); pool != "web" {
		t.Errorf("the pool is %q", pool)
	}
	if !w.cluster.Running(5001) || !slices.Equal(w.cluster.Guests(), []int{5001, 5002}) {
		t.Errorf("running=%v, guests %v", w.cluster.Running(5001), w.cluster.Guests())
	}
	notes := guest.NotesOf(5001, after["description"])
	if notes.Journal != nil || notes.Contract == nil || notes.User != strings.TrimRight(before["description"], "\n") {
		t.Errorf("the notes are %+v", notes)
	}
	w.server.ResetRequests()
	if _, err := w.apply(t, recipe.Request{Want: wants()}); err != nil || w.server.Mutations() > 0 {
		t.Errorf("a second apply is not inert: %d changes, %v", w.server.Mutations(), err)
	}
}

// mark puts what a finished reinstall says about the rest of the world into one line.
func (w *world) finished(t *testing.T) {
	t.Helper()
	if lost := append(w.lost(), w.orphaned()...); len(lost) > 0 {
		t.Error(lost)
	}
	if j := w.journal(t, 5001); j != nil {
		t.Errorf("a record is left at %s", j.Stage)
	}
	if got, _ := w.cluster.ReadFile(5001, "/etc/debian_version"); got != "13" {
		t.Errorf("the system is %q", got)
	}
	if got, _ := w.cluster.ReadFile(5001, "/srv/data/marker"); got != "the only copy" {
		t.Errorf("the data is %q", got)
	}
}

// unchanged compares the world with a dump, and asks for an error that says what is expected.
func (w *world) untouched(t *testing.T, before string, err error, says ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not say %q: %v", text, err)
		}
	}
	if now := w.dump(); now != before {
		t.Errorf("the world changed:\n%s", difference(before, now))
	}
	if lost := w.lost(); len(lost) > 0 {
		t.Error(lost)
	}
}

func plainWorld() *world { return plainScene().world() }

// Each of these refuses between the rehearsal and the destroy, or before: the world is as it was, and running if it ran.
func TestRefusedAndTakenBack(t *testing.T) {
	onPath := func(method, path string, do func(*pvesim.Cluster)) pvesim.Fault {
		return pvesim.Fault{Kind: pvesim.FaultWorldAfter, Method: method, Path: path, World: do}
	}
	tests := []struct {
		name  string
		fault pvesim.Fault
		back  func(*pvesim.Cluster) // takes the operator's deed out again, to compare the worlds
		says  []string
	}{
		{
			name: "C5 the record is wiped from the notes",
			fault: onPath("PUT", `/lxc/905001/config$`, func(c *pvesim.Cluster) {
				c.SetConfig(5001, "description", "Runs the shop.\n\nAsk Jo before touching.\n")
			}),
			says: []string{"our record is gone"},
		},
		{
			name:  "a mount is added after the rehearsal",
			fault: onPath("POST", `/lxc/5001/status/shutdown$`, func(c *pvesim.Cluster) { c.SetConfig(5001, "mp9", "local-lvm:4,mp=/new") }),
			back:  func(c *pvesim.Cluster) { removeMount(c, "mp9") },
			says:  []string{"mp9", "changed"},
		},
		{
			name: "A6 a storage goes away before the destroy",
			fault: onPath("PUT", `/lxc/905001/config$`, func(c *pvesim.Cluster) {
				if c.Config(905001)["protection"] == "1" {
					c.AddStorage(pvesim.StorageSpec{ID: "local-lvm", Type: "lvmthin", Total: 2 << 40, Unreachable: true})
				}
			}),
			back: func(c *pvesim.Cluster) {
				c.AddStorage(pvesim.StorageSpec{ID: "local-lvm", Type: "lvmthin", Total: 2 << 40})
			},
			says: []string{"local-lvm"},
		},
		{
			name:  "B3 the destroy is refused",
			fault: pvesim.Fault{Kind: pvesim.FaultStatus, Method: "DELETE", Path: `/lxc/5001$`, Status: 500, Text: "unable to remove CT 5001 - used in HA resources and purge parameter not set."},
			says:  []string{"used in HA resources"},
		},
		{
			name:  "B3 the destroy is forbidden",
			fault: pvesim.Fault{Kind: pvesim.FaultStatus, Method: "DELETE", Path: `/lxc/5001$`, Status: 403, Text: "Permission check failed (/vms/5001, VM.Allocate)"},
			says:  []string{"VM.Allocate"},
		},
		{
			name:  "B3 the destroy fails before it freed anything",
			fault: pvesim.Fault{Kind: pvesim.FaultTaskFail, Method: "DELETE", Path: `/lxc/5001$`, Text: "something unheard of"},
			says:  []string{"something unheard of"},
		},
		{
			name:  "the rehearsal cannot create",
			fault: pvesim.Fault{Kind: pvesim.FaultTaskFail, Method: "POST", Path: `/lxc$`, Text: "unable to create CT 905001 - no space left on device"},
			says:  []string{"no space left on device", "rehearsal"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := plainWorld()
			before := w.dump()
			if tt.fault.Times == 0 && tt.fault.Kind == pvesim.FaultWorldAfter {
				tt.fault.Times = -1
			}
			w.server.Inject(tt.fault)
			_, err := w.apply(t, recipe.Request{Want: wants()})
			w.server.ClearFaults()
			if tt.back != nil {
				tt.back(w.cluster)
			}
			if j := w.journal(t, 5001); j != nil { // an undo that the same deed held up: a person takes it back
				if _, again := w.reconcile(t, wants(), j.Operation, "rollback"); again != nil {
					t.Fatalf("the rollback fails: %v", again)
				}
			}
			w.untouched(t, before, err, tt.says...)
		})
	}
}

func removeMount(c *pvesim.Cluster, key string) {
	id := c.VolumeOf(5001, key)
	c.SetConfig(5001, key, "")
	c.RemoveVolume(id)
}

// Hazard B8: a mount path that cannot be mounted on in the new system fails in the rehearsal, while the guest still runs.
func TestB8RehearsalStartsWithTheMounts(t *testing.T) {
	w := newWorld()
	if err := w.cluster.AddTemplate("pve1", "local:vztmpl/odd_1_amd64.tar.zst", 1<<20, pvesim.Template{OSType: "debian", Links: map[string]string{"/srv/data": "/elsewhere"}}); err != nil {
		t.Fatal(err)
	}
	w.keep(w.cluster.VolumeOf(5001, "mp0"))
	before := w.dump()
	want := wants()
	want.Template = "local:vztmpl/odd_1_amd64.tar.zst"
	_, err := w.apply(t, recipe.Request{Want: want})
	w.untouched(t, before, err, "does not start")
	for _, r := range w.server.Requests() {
		if strings.Contains(r.Path, "/lxc/5001/status/") && r.Method == "POST" {
			t.Errorf("the guest was touched by %s %s", r.Method, r.Path)
		}
	}
}

// Hazard A7: a privileged container stays privileged, and an absent swap stays none.
func TestA7AbsentKeysKeepTheirMeaning(t *testing.T) {
	w := newWorld()
	w.token = w.cluster.AddToken("root@pam", "all", nil)
	w.cluster.SetConfig(5001, "unprivileged", "")
	w.cluster.SetConfig(5001, "swap", "")
	w.cluster.SetConfig(5001, "features", "")
	w.keep(w.cluster.VolumeOf(5001, "mp0"))
	if _, err := w.apply(t, recipe.Request{Want: wants()}); err != nil {
		t.Fatal(err)
	}
	if c := w.cluster.Config(5001); c["unprivileged"] == "1" || (c["swap"] != "" && c["swap"] != "0") {
		t.Errorf("unprivileged=%q swap=%q", c["unprivileged"], c["swap"])
	}
	w.finished(t)
}

// Hazard B7: nothing starts the guest while its data is parked: onboot is 0 from the stop to the restore.
func TestB7OnbootIsOffWhileDataIsParked(t *testing.T) {
	w := plainWorld()
	var seen []string
	w.server.Inject(pvesim.Fault{Kind: pvesim.FaultWorld, Method: "POST", Path: `/move_volume$`, Times: -1, World: func(c *pvesim.Cluster) {
		seen = append(seen, c.Config(5001)["onboot"])
	}})
	if _, err := w.apply(t, recipe.Request{Want: wants()}); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 6 || slices.Contains(seen, "1") {
		t.Errorf("onboot while volumes moved: %q", seen)
	}
	if got := w.cluster.Config(5001)["onboot"]; got != "1" {
		t.Errorf("onboot is %q in the end", got)
	}
	w.finished(t)
}

// Hazard B7: somebody starts the new guest without its data; it is stopped before the data is brought back.
func TestB7RunningTargetIsStoppedFirst(t *testing.T) {
	w := plainWorld()
	started := false
	w.server.Inject(pvesim.Fault{Kind: pvesim.FaultWorldAfter, Method: "POST", Path: `/lxc$`, Params: map[string]string{"vmid": "5001"}, World: func(c *pvesim.Cluster) {
		started = true
		c.SetRunning(5001, true)
	}})
	if _, err := w.apply(t, recipe.Request{Want: wants()}); err != nil {
		t.Fatal(err)
	}
	if !started {
		t.Error("nobody started it")
	}
	w.finished(t)
}

// Hazard B14: the parking guest never has the guest's MAC, and its links are down.
func TestB14ParkingHasThrowAwayMACs(t *testing.T) {
	w := plainWorld()
	var nets []string
	w.server.Inject(pvesim.Fault{Kind: pvesim.FaultWorld, Method: "POST", Path: `/lxc/905001/status/start$`, World: func(c *pvesim.Cluster) {
		nets = append(nets, c.Config(905001)["net0"])
	}})
	if _, err := w.apply(t, recipe.Request{Want: wants()}); err != nil {
		t.Fatal(err)
	}
	if len(nets) != 1 || strings.Contains(nets[0], "BC:24:11:00:50:01") || !strings.Contains(nets[0], "link_down=1") {
		t.Errorf("the parking guest's network was %q", nets)
	}
}

// Hazard B12: the HA resource is removed without purge, so that its rules stay, and comes back with all its fields.
func TestB12HAIsSetAsideAndReturned(t *testing.T) {
	w := plainWorld()
	w.cluster.SetRights("ci@pve!pvrx", "/", "Sys.Audit", "Sys.Console")
	w.cluster.AddHA(5001, map[string]string{"state": "started", "max_relocate": "2", "comment": "shop"})
	w.cluster.AddHARule("near", map[string]string{"type": "node-affinity", "resources": "ct:5001", "nodes": "pve1"})
	before := w.cluster.Dump(pvesim.IgnoreIdentity(), pvesim.IgnoreKeys("description"))
	want := wants()
	if _, err := w.apply(t, recipe.Request{Want: want}); err == nil || !strings.Contains(err.Error(), "ha_managed") {
		t.Fatalf("without allow: %v", err)
	}
	want.Allow = []string{"ha_managed"}
	if _, err := w.apply(t, recipe.Request{Want: want}); err != nil {
		t.Fatal(err)
	}
	after := w.cluster.Dump(pvesim.IgnoreIdentity(), pvesim.IgnoreKeys("description"))
	for line := range strings.Lines(before) {
		if strings.HasPrefix(line, "ha") && !strings.Contains(after, line) {
			t.Errorf("lost: %s", line)
		}
	}
	w.finished(t)
}

// Hazards A4, A5: the operation's own backup is protected, prunes nothing, leaves kept mounts out and carries no record;
// archives of the parking guest are named.
func TestA5BackupPrunesNothingAndIsProtected(t *testing.T) {
	w := plainWorld()
	old := w.cluster.Backup(5001, "local", "nightly", false)
	want := wants()
	want.Backup = &preview.Backup{Storage: "local", Mode: "stop"}
	w.server.Inject(pvesim.Fault{Kind: pvesim.FaultWorld, Method: "DELETE", Path: `/lxc/5001$`, World: func(c *pvesim.Cluster) {
		c.Backup(905001, "local", "a job", false)
	}})
	result, err := w.apply(t, recipe.Request{Want: want})
	if err != nil {
		t.Fatal(err)
	}
	if _, there := w.cluster.Volume(old); !there {
		t.Error("the older archive was pruned")
	}
	mine, there := w.cluster.Volume(result.Backup)
	if !there || !mine.Protected || !strings.Contains(mine.Notes, result.Operation) {
		t.Errorf("the archive is %+v", mine)
	}
	if files := w.cluster.BackupFiles(result.Backup, "mp0"); files["/marker"] != "" || files["/srv/data/marker"] != "" {
		t.Errorf("the kept mount is in the archive: %v", files)
	}
	if text := w.cluster.BackupConfig(result.Backup)["description"]; strings.Contains(text, "pvrx-journal") {
		t.Error("C6: the archive carries the record")
	}
	if !slices.ContainsFunc(result.Warnings, func(s string) bool { return strings.Contains(s, "vzdump-lxc-905001") }) {
		t.Errorf("A4: the parking guest's archive is not reported: %q", result.Warnings)
	}
	w.finished(t)
}

// Hazard B5: an orphan of the same size under the parking VMID is never taken for the volume that a move lost; such a VMID
// is not chosen in the first place.
func TestB5ParkingVMIDOwnsNothing(t *testing.T) {
	w := plainWorld()
	if err := w.cluster.AddVolume("pve1", "local-lvm:vm-905001-disk-7", 100<<30); err != nil {
		t.Fatal(err)
	}
	w.cluster.AddACL("/vms/905002", "user", "jo@pve", "PVEVMUser", true)
	result, err := w.apply(t, recipe.Request{Want: wants()})
	if err != nil {
		t.Fatal(err)
	}
	if result.Parking != 905003 {
		t.Errorf("the parking VMID is %d; 905001 owns a volume and 905002 has an ACL entry (B10)", result.Parking)
	}
	w.finished(t)
}

// The move hole (B4, B5, pve-facts 6.3): the worker dies after the rename, or after the source was written. The volume is
// found by set difference and put back with its options.
func TestFaultsB5HoleOfAMoveIsRepaired(t *testing.T) {
	for _, at := range []string{"renamed", "source-written"} {
		for skip := range 6 {
			w := plainWorld()
			w.server.Inject(pvesim.Fault{Kind: pvesim.FaultTaskKill, At: at, Method: "POST", Path: `/move_volume$`, Skip: skip})
			result, err := w.apply(t, recipe.Request{Want: wants()})
			for tries := 0; err != nil && tries < 3; tries++ {
				j := w.journal(t, 5001)
				if j == nil {
					break
				}
				result, err = w.reconcile(t, wants(), j.Operation, "resume")
			}
			if err != nil && w.journal(t, 5001) != nil {
				t.Errorf("killed when %s, move %d: %v", at, skip, err)
				continue
			}
			if lost := append(w.lost(), w.orphaned()...); len(lost) > 0 {
				t.Errorf("killed when %s, move %d: %v (%v, %v)", at, skip, lost, result.Status, err)
			}
			if now := w.cluster.Config(5001)["mp0"]; !strings.Contains(now, "mountoptions=noatime;discard") {
				t.Errorf("killed when %s, move %d: mp0 is %q", at, skip, now)
			}
		}
	}
}

// Hazard B6: the create's worker is killed at each point. A stub is named with the command that removes it; a half-made
// guest that looks complete is made again, never taken for done.
func TestB6HalfMadeGuestIsNotDone(t *testing.T) {
	for _, at := range []string{"stub", "allocated", "extracted"} {
		t.Run(at, func(t *testing.T) {
			w := plainWorld()
			w.server.Inject(pvesim.Fault{Kind: pvesim.FaultTaskKill, At: at, Method: "POST", Path: `/lxc$`, Params: map[string]string{"vmid": "5001"}})
			result, err := w.apply(t, recipe.Request{Want: wants()})
			if err == nil || result.Status != recipe.StatusNeedsReconcile || !strings.Contains(err.Error(), "create") {
				t.Fatalf("%v, %v", result.Status, err)
			}
			_, err = w.reconcile(t, wants(), result.Operation, "resume")
			if at != "extracted" {
				if err == nil || !strings.Contains(err.Error(), "pct unlock 5001 && pct destroy 5001") {
					t.Fatalf("the stub's remedy is not named: %v", err)
				}
				w.cluster.RemoveGuest(5001) // what that command does
				for _, v := range w.cluster.Volumes() {
					if v.Owner == 5001 && v.Type == "images" {
						w.cluster.RemoveVolume(v.ID)
					}
				}
				_, err = w.reconcile(t, wants(), result.Operation, "resume")
			}
			if err != nil {
				t.Fatal(err)
			}
			w.finished(t)
		})
	}
}

// Hazard C3: options of rootfs come back, on another storage too.
func TestC3RootfsOptionsAreCarried(t *testing.T) {
	w := plainWorld()
	want := wants()
	want.Rootfs = preview.Rootfs{Storage: "tank", Size: 9 << 30, SizeText: "9GiB"}
	if _, err := w.apply(t, recipe.Request{Want: want}); err != nil {
		t.Fatal(err)
	}
	if got := w.cluster.Config(5001)["rootfs"]; !strings.HasPrefix(got, "tank:") || !strings.Contains(got, "mountoptions=noatime") || !strings.Contains(got, "size=9G") {
		t.Errorf("rootfs is %q", got)
	}
	w.finished(t)
}

// A consent that was spent never erases again, although Proxmox reuses the disk's number.
func TestConsentIsSpentOnce(t *testing.T) {
	w := newWorld()
	want := wants()
	want.Erase = map[string]string{"mp3": w.cluster.VolumeOf(5001, "mp3")}
	w.keep(w.cluster.VolumeOf(5001, "mp0"))
	if _, err := w.apply(t, recipe.Request{Want: want}); err != nil {
		t.Fatal(err)
	}
	if _, there := w.cluster.Config(5001)["mp3"]; there {
		t.Fatal("mp3 was not erased")
	}
	w.cluster.SetConfig(5001, "mp3", "tank:10,mp=/var/cache/app")
	if got := w.cluster.VolumeOf(5001, "mp3"); got != want.Erase["mp3"] {
		t.Fatalf("the number was not reused: %s", got)
	}
	want.Triggers = map[string]string{"again": "2"}
	before := w.dump()
	_, err := w.apply(t, recipe.Request{Want: want})
	w.untouched(t, before, err, "erase_spent")
}

// Hazard C16: a volume that grew with a file system that did not is reported.
func TestC16GrownVolumeWithSmallFileSystem(t *testing.T) {
	w := newWorld()
	if _, err := w.apply(t, recipe.Request{Want: wants()}); err != nil {
		t.Fatal(err)
	}
	want := wants()
	want.Rootfs = preview.Rootfs{Size: 20 << 30, SizeText: "20GiB"}
	identity := func() string { v, _ := w.cluster.Volume(w.cluster.VolumeOf(5001, "rootfs")); return v.Identity }
	was := identity()
	result, err := w.apply(t, recipe.Request{Want: want})
	if err != nil || !result.Changed {
		t.Fatalf("%+v, %v", result, err)
	}
	if now, _ := w.cluster.Volume(w.cluster.VolumeOf(5001, "rootfs")); now.Size != 20<<30 || identity() != was {
		t.Errorf("rootfs is %+v", now)
	}
}

// The dry run leaves no trace, and the guest is never stopped.
func TestRehearseOnlyLeavesNoTrace(t *testing.T) {
	w := plainWorld()
	before := w.dump()
	want := wants()
	want.RehearseOnly = true
	result, err := w.apply(t, recipe.Request{Want: want})
	if err != nil || result.Status != recipe.StatusReady {
		t.Fatalf("%+v, %v", result, err)
	}
	if now := w.dump(); now != before {
		t.Errorf("the world changed:\n%s", difference(before, now))
	}
	created := false
	for _, r := range w.server.Requests() {
		if strings.Contains(r.Path, "/lxc/5001/status/") && r.Method == "POST" {
			t.Errorf("the guest was touched by %s %s", r.Method, r.Path)
		}
		created = created || r.Method == "POST" && strings.HasSuffix(r.Path, "/lxc")
	}
	if !created {
		t.Error("nothing was rehearsed")
	}
	due, _ := recipe.Pending(mustObserve(t, w), guest.Install{Template: newTemplate, Triggers: want.Triggers}, nil)
	if !due {
		t.Error("the reinstall is no longer pending")
	}
}

func mustObserve(t *testing.T, w *world) recipe.Observation {
	t.Helper()
	seen, err := w.container(t).Observe(context.Background(), 5001)
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// Snapshots that allow waived go first, and the preview said so.
func TestWaivedSnapshotsAreDeleted(t *testing.T) {
	w := newWorld()
	w.cluster.Snapshot(5001, "before")
	w.keep(w.cluster.VolumeOf(5001, "mp0"))
	before := w.dump()
	_, err := w.apply(t, recipe.Request{Want: wants()})
	w.untouched(t, before, err, "snapshots_present")
	want := wants()
	want.Allow = []string{"snapshots_present"}
	if _, err := w.apply(t, recipe.Request{Want: want}); err != nil {
		t.Fatal(err)
	}
	w.finished(t)
}

// Past the point of no return a failing stage is needs_reconcile with its stage and tri-state; the next apply refuses
// without a change; resume completes.
func TestStuckPastThePointThenResumed(t *testing.T) {
	tests := []struct {
		name, stage string
		fault       pvesim.Fault
		exists      bool
	}{
		{"destroy fails half-way", "destroy", pvesim.Fault{Kind: pvesim.FaultTaskKill, At: "rootfs-freed", Method: "DELETE", Path: `/lxc/5001$`}, true},
		{"create fails", "create", pvesim.Fault{Kind: pvesim.FaultTaskFail, Method: "POST", Path: `/lxc$`, Params: map[string]string{"vmid": "5001"}, Text: "unable to create CT 5001 - no space left"}, false},
		{"a return fails", "return", pvesim.Fault{Kind: pvesim.FaultStatus, Method: "POST", Path: `/lxc/905001/move_volume$`, Status: 500, Text: "something unheard of"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := plainWorld()
			w.server.Inject(tt.fault)
			result, err := w.apply(t, recipe.Request{Want: wants()})
			if err == nil || result.Status != recipe.StatusNeedsReconcile || !strings.HasPrefix(result.Stage, tt.stage) {
				t.Fatalf("status %s at %q: %v", result.Status, result.Stage, err)
			}
			if result.Exists == nil || *result.Exists != tt.exists {
				t.Errorf("exists is %v", result.Exists)
			}
			w.server.ResetRequests()
			if _, again := w.apply(t, recipe.Request{Want: wants()}); again == nil || !strings.Contains(again.Error(), "needs_reconcile") || w.server.Mutations() > 0 {
				t.Errorf("the next apply: %d changes, %v", w.server.Mutations(), again)
			}
			if _, err := w.reconcile(t, wants(), result.Operation, "resume"); err != nil {
				t.Fatal(err)
			}
			w.finished(t)
		})
	}
}

// A root password is in no notes, no error and no log of requests that the simulator keeps in clear.
func TestPasswordIsNowhere(t *testing.T) {
	const secret = "correct-horse-battery"
	w := plainWorld()
	w.server.Inject(pvesim.Fault{Kind: pvesim.FaultTaskFail, Method: "POST", Path: `/lxc$`, Params: map[string]string{"vmid": "5001"}, Text: "unable to create CT 5001 - " + secret})
	want := wants()
	want.PasswordGiven = true
	result, err := w.apply(t, recipe.Request{Want: want, Password: secret})
	if err == nil || strings.Contains(err.Error(), secret) {
		t.Fatalf("the error: %v", err)
	}
	if strings.Contains(w.cluster.Dump(), secret) {
		t.Error("the world shows it")
	}
	if _, err := w.reconcile(t, want, result.Operation, "resume"); err == nil || !strings.Contains(err.Error(), "root_password_wo") {
		t.Errorf("a resume without it: %v", err)
	}
	if _, err := w.apply(t, recipe.Request{Want: want, Password: secret, Reconcile: &recipe.Reconcile{Operation: result.Operation, Action: "resume"}}); err != nil {
		t.Fatal(err)
	}
	w.finished(t)
}

// Rollback past the point rebuilds the guest from the operation's archive; kept volumes are as they are now; the install is
// declined, and ten further applies change nothing (hazard A2).
func TestA2RollbackFromTheArchive(t *testing.T) {
	for _, stuck := range []string{"create", "return mp0", "return unused0", "restore", "start"} {
		t.Run(stuck, func(t *testing.T) {
			w := plainWorld()
			before := w.dump()
			want := wants()
			want.Backup = &preview.Backup{Storage: "local", Mode: "stop"}
			w.server.Inject(stopAt(stuck))
			result, err := w.apply(t, recipe.Request{Want: want})
			if err == nil || result.Stage != stuck {
				t.Fatalf("stopped at %q: %v", result.Stage, err)
			}
			w.server.ClearFaults()
			result, err = w.reconcile(t, want, result.Operation, "rollback")
			if err != nil || result.Status != recipe.StatusRolledBack {
				t.Fatalf("%s: %v", result.Status, err)
			}
			if now := w.dump(); now != before {
				t.Errorf("the world is not as it was:\n%s", difference(before, now))
			}
			if lost := append(w.lost(), w.orphaned()...); len(lost) > 0 {
				t.Error(lost)
			}
			w.server.ResetRequests()
			for range 10 {
				if _, err := w.apply(t, recipe.Request{Want: want}); err != nil {
					t.Fatal(err)
				}
			}
			if n := w.server.Mutations(); n > 0 {
				t.Errorf("ten applies after a rollback sent %d changes", n)
			}
		})
	}
}

// stopAt makes the operation stop for good at a stage past the point of no return.
func stopAt(name string) pvesim.Fault {
	f := pvesim.Fault{Kind: pvesim.FaultStatus, Status: 500, Text: "something unheard of", Times: -1}
	switch {
	case name == "create":
		f = pvesim.Fault{Kind: pvesim.FaultTaskFail, Method: "POST", Path: `/lxc$`, Params: map[string]string{"vmid": "5001"}, Text: "unable to create CT 5001 - no space left"}
	case strings.HasPrefix(name, "return "):
		f.Method, f.Path, f.Params = "POST", `/lxc/905001/move_volume$`, map[string]string{"volume": strings.TrimPrefix(name, "return ")}
	case name == "restore":
		f.Method, f.Path = "POST", `/lxc/5001/firewall/rules$`
	case name == "start":
		f.Method, f.Path = "POST", `/lxc/5001/status/start$`
	}
	return f
}

// Rollback past the point without an archive is refused, and says what is possible.
func TestRollbackWithoutArchiveIsRefused(t *testing.T) {
	w := plainWorld()
	w.server.Inject(stopAt("create"))
	result, err := w.apply(t, recipe.Request{Want: wants()})
	if err == nil {
		t.Fatal("no error")
	}
	w.server.ClearFaults()
	w.server.ResetRequests()
	if _, err := w.reconcile(t, wants(), result.Operation, "rollback"); err == nil || w.server.Mutations() > 0 {
		t.Errorf("%d changes, %v", w.server.Mutations(), err)
	}
	// Closing is refused too: the parking guest holds the only copy.
	if _, err := w.reconcile(t, wants(), result.Operation, "close"); err == nil || !strings.Contains(err.Error(), "parking_holds_data") || w.server.Mutations() > 0 {
		t.Errorf("%d changes, %v", w.server.Mutations(), err)
	}
	if _, err := w.reconcile(t, wants(), result.Operation, "resume"); err != nil {
		t.Fatal(err)
	}
	w.finished(t)
	// Naming a finished operation is inert.
	w.server.ResetRequests()
	if _, err := w.reconcile(t, wants(), result.Operation, "resume"); err != nil || w.server.Mutations() > 0 {
		t.Errorf("%d changes, %v", w.server.Mutations(), err)
	}
}

var _ = errors.New

// backup.keep: older archives of ours go when the operation is done, newest first kept; nobody else's does.
func TestOldArchivesOfOursAreThinnedOut(t *testing.T) {
	w := plainWorld()
	other := w.cluster.Backup(5001, "local", "nightly", true)
	older := w.cluster.Backup(5001, "local", "pvrx op-5001-20260101-0001", true)
	want := wants()
	want.Allow = []string{"protected_backup"}
	want.Backup = &preview.Backup{Storage: "local", Mode: "snapshot", Keep: 1}
	w.cluster.SetRights("ci@pve!pvrx", "/storage", rights()["/storage"]...)
	result, err := w.apply(t, recipe.Request{Want: want})
	if err != nil {
		t.Fatal(err)
	}
	for id, stays := range map[string]bool{other: true, older: false, result.Backup: true} {
		if _, there := w.cluster.Volume(id); there != stays {
			t.Errorf("archive %s: there=%v, wanted %v (%q)", id, there, stays, result.Warnings)
		}
	}
	w.finished(t)
}

// health_check.running_for: a guest that stops in that time is not healthy, and one without a probe must be seen running.
func TestRunningForIsWatched(t *testing.T) {
	for _, health := range []*recipe.Health{{RunningFor: 30e9}, nil} {
		w := plainWorld()
		w.server.Inject(pvesim.Fault{Kind: pvesim.FaultWorldAfter, Method: "POST", Path: `/lxc/5001/status/start$`, World: func(c *pvesim.Cluster) { c.SetRunning(5001, false) }})
		result, err := w.apply(t, recipe.Request{Want: wants(), Health: health})
		if err == nil || result.Stage != "start" || !strings.Contains(err.Error(), "does not run") {
			t.Fatalf("health %v: stopped at %q: %v", health, result.Stage, err)
		}
		if _, err := w.reconcile(t, wants(), result.Operation, "resume"); err != nil {
			t.Fatal(err)
		}
		w.finished(t)
	}
}

// A destroy that died after the volumes leaves a stub that only root can remove: the error says how, and the operation goes
// on from there.
func TestStubOfADestroyIsNamed(t *testing.T) {
	for _, at := range []string{"volumes-freed", "access-removed"} {
		w := plainWorld()
		w.server.Inject(pvesim.Fault{Kind: pvesim.FaultTaskKill, At: at, Method: "DELETE", Path: `/lxc/5001$`})
		result, err := w.apply(t, recipe.Request{Want: wants()})
		if err == nil || result.Status != recipe.StatusNeedsReconcile {
			t.Fatalf("%s: %v", result.Status, err)
		}
		if _, err = w.reconcile(t, wants(), result.Operation, "resume"); err == nil || !strings.Contains(err.Error(), "pct unlock 5001 && pct destroy 5001") {
			t.Fatalf("killed when %s: %v", at, err)
		}
		w.cluster.RemoveGuest(5001) // what that command does
		if _, err = w.reconcile(t, wants(), result.Operation, "resume"); err != nil {
			t.Fatalf("killed when %s: %v", at, err)
		}
		w.finished(t)
	}
}

// A container that was started a moment before the apply runs afterwards, whatever the cluster's list still says.
func TestReinstallRunStateIsThatOfTheMoment(t *testing.T) {
	w := newWorld()
	w.cluster.SetRunning(5001, false)
	list := &staleList{over: w.server}
	c := w.containerOver(t, list)
	if _, err := c.Observe(t.Context(), 5001); err != nil {
		t.Fatal(err)
	}
	w.cluster.SetRunning(5001, true)
	if _, err := c.Apply(t.Context(), recipe.Request{Want: wants()}); err != nil {
		t.Fatal(err)
	}
	if !w.cluster.Running(5001) {
		t.Error("it was running and is off")
	}
}
