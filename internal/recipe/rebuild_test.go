package recipe_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

func mustVM(t *testing.T, r recipe.Result, err error, status recipe.Status) recipe.Result {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != status {
		t.Fatalf("status %q, want %q", r.Status, status)
	}
	return r
}

// The whole way in place: a new system from an image, a blank scratch disk, the data disk neither copied nor touched, MAC,
// uuid, vmgenid and boot order unchanged; then accept deletes what was the way back.
func TestRebuildInPlace(t *testing.T) {
	w := newVMWorld()
	before := w.cluster.Config(7131)
	oldSystem, oldScratch := w.cluster.VolumeOf(7131, "scsi0"), w.cluster.VolumeOf(7131, "scsi1")
	r, err := w.applyVM(t, recipe.Request{Want: wantsVM()})
	mustVM(t, r, err, recipe.StatusAwaitingTrust)
	after := w.cluster.Config(7131)
	for _, key := range []string{"net0", "smbios1", "vmgenid", "boot", "scsi2", "onboot", "tags", "memory", "name", "ide2"} {
		if before[key] != after[key] {
			t.Errorf("%s was %q and is %q", key, before[key], after[key])
		}
	}
	if got := w.content(7131, "scsi0", "/etc/os-release"); got != "VERSION_ID=13" {
		t.Errorf("the new system disk holds %q", got)
	}
	if got := w.content(7131, "scsi1", "/scratch"); got != "" {
		t.Errorf("the new scratch disk holds %q", got)
	}
	for _, want := range []string{"discard=on", "ssd=1", "size=32G"} {
		if !strings.Contains(after["scsi0"], want) {
			t.Errorf("scsi0 is %q, without %s", after["scsi0"], want)
		}
	}
	if after["unused0"] != oldSystem || after["unused1"] != oldScratch {
		t.Errorf("the way back is %q and %q", after["unused0"], after["unused1"])
	}
	if !w.cluster.Running(7131) || len(w.lost()) > 0 {
		t.Errorf("running %v, lost %v", w.cluster.Running(7131), w.lost())
	}
	if len(w.cluster.Guests()) != 1 {
		t.Errorf("guests %v: the parking VM stayed", w.cluster.Guests())
	}
	if user := guest.ReadNotes(after["description"]).User; user != "Runs the directory.\n\nAsk Jo before touching." {
		t.Errorf("the user's notes are %q", user)
	}
	slowBetweenStopAndStart(t, w)

	again, err := w.applyVM(t, recipe.Request{Want: wantsVM()})
	if mustVM(t, again, err, recipe.StatusAwaitingTrust); again.Changed {
		t.Error("a second apply changed something")
	}
	want := wantsVM()
	want.Triggers = map[string]string{"again": "2"}
	if _, err := w.applyVM(t, recipe.Request{Want: want}); err == nil || !strings.Contains(err.Error(), "awaiting_trust") {
		t.Errorf("a rebuild while one awaits trust: %v", err)
	}

	r, err = w.reconcileVM(t, wantsVM(), r.Operation, "accept")
	mustVM(t, r, err, recipe.StatusReady)
	for _, id := range []string{oldSystem, oldScratch} {
		if _, there := w.cluster.Volume(id); there {
			t.Errorf("%s is still there after accept", id)
		}
	}
	if w.recordVM(t, 7131) != nil || len(w.lost()) > 0 {
		t.Errorf("after accept: record %v, lost %v", w.recordVM(t, 7131), w.lost())
	}
	r, err = w.reconcileVM(t, wantsVM(), r.Operation, "accept")
	mustVM(t, r, err, recipe.StatusReady) // naming what is over is inert
}

// slowBetweenStopAndStart fails when anything slow was asked for while the VM was down.
func slowBetweenStopAndStart(t *testing.T, w *world) {
	t.Helper()
	down := false
	for _, r := range w.server.Requests() {
		switch {
		case strings.HasSuffix(r.Path, "/7131/status/shutdown"), strings.HasSuffix(r.Path, "/7131/status/stop"):
			down = true
		case strings.HasSuffix(r.Path, "/status/start"):
			down = false
		case down && r.Method != http.MethodGet && (strings.HasSuffix(r.Path, "/qemu") || strings.HasSuffix(r.Path, "/resize") || strings.HasSuffix(r.Path, "/clone")):
			t.Errorf("%s %s while the VM was down", r.Method, r.Path)
		case down && r.Method != http.MethodGet:
			for key, value := range r.Params {
				if strings.Contains(value, "import-from") || key == "storage" {
					t.Errorf("%s %s %s=%s while the VM was down", r.Method, r.Path, key, value)
				}
			}
		}
	}
}

// Rolling back after the rebuild gives the old system back, with its options, boot order and run state.
func TestRebuildRollback(t *testing.T) {
	w := newVMWorld()
	before := w.dumpVM()
	r, err := w.applyVM(t, recipe.Request{Want: wantsVM()})
	mustVM(t, r, err, recipe.StatusAwaitingTrust)
	r, err = w.reconcileVM(t, wantsVM(), r.Operation, "rollback")
	mustVM(t, r, err, recipe.StatusRolledBack)
	if now := w.dumpVM(); now != before {
		t.Errorf("not as before:\n%s", difference(before, now))
	}
	if !w.cluster.Running(7131) {
		t.Error("it does not run")
	}
	// The refused install is not due again until something changes.
	r, err = w.applyVM(t, recipe.Request{Want: wantsVM()})
	if mustVM(t, r, err, recipe.StatusReady); r.Changed {
		t.Error("the declined install was tried again")
	}
}

// rollback_data also returns the kept disk to what it held at the snapshot; rollback leaves it as it is.
func TestRebuildRollbackData(t *testing.T) {
	for action, want := range map[string]string{"rollback_data": "the only copy", "rollback": "migrated by the new system"} {
		w := newVMWorld()
		before := w.dumpVM()
		req := recipe.Request{Want: wantsVM()}
		req.Want.VM.Snapshot = true
		r, err := w.applyVM(t, req)
		mustVM(t, r, err, recipe.StatusAwaitingTrust)
		if err := w.cluster.WriteVolume(w.cluster.VolumeOf(7131, "scsi2"), "/var/lib/id", "migrated by the new system"); err != nil {
			t.Fatal(err)
		}
		r, err = w.reconcileVM(t, req.Want, r.Operation, action)
		mustVM(t, r, err, recipe.StatusRolledBack)
		if got := w.content(7131, "scsi2", "/var/lib/id"); got != want {
			t.Errorf("%s: the kept disk holds %q, want %q", action, got, want)
		}
		if got := w.content(7131, "scsi0", "/etc/os-release"); got != "VERSION_ID=12" || !w.cluster.Running(7131) {
			t.Errorf("%s: the system is %q, running %v", action, got, w.cluster.Running(7131))
		}
		if action == "rollback_data" {
			for line := range strings.Lines(difference(before, w.dumpVM())) {
				if !strings.Contains(line, "vmgenid") {
					t.Errorf("not as before: %s", line)
				}
			}
		}
	}
}

// The dry run proves image, space and privileges while the VM runs, and leaves no trace.
func TestRebuildRehearseOnly(t *testing.T) {
	w := newVMWorld()
	before := w.dumpVM()
	want := wantsVM()
	want.RehearseOnly = true
	r, err := w.applyVM(t, recipe.Request{Want: want})
	mustVM(t, r, err, recipe.StatusReady)
	if now := w.dumpVM(); now != before {
		t.Errorf("it left a trace:\n%s", difference(before, now))
	}
	for _, r := range w.server.Requests() {
		if strings.Contains(r.Path, "/7131/status/") && r.Method == http.MethodPost {
			t.Errorf("the VM was touched: %s", r.Path)
		}
	}
}

// staleList gives the cluster's list as it was when it was first asked for: Proxmox refreshes the run states in it every ten
// seconds.
type staleList struct {
	over http.RoundTripper
	body []byte
}

func (l *staleList) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet || !strings.HasSuffix(req.URL.Path, "/cluster/resources") {
		return l.over.RoundTrip(req)
	}
	res, err := l.over.RoundTrip(req)
	if err != nil {
		return res, err
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if l.body == nil {
		l.body = body
	}
	res.Body = io.NopCloser(bytes.NewReader(l.body))
	return res, err
}

// What was started, or stopped, a moment before the apply is what the list does not say yet: it counts all the same.
func TestRebuildRunStateIsThatOfTheMoment(t *testing.T) {
	for _, s := range vmScenes() {
		for _, runs := range []bool{true, false} {
			w := newVMWorld()
			w.cluster.SetRunning(7131, !runs)
			list := &staleList{over: w.server}
			if _, err := w.vmOver(t, list).Observe(t.Context(), 7131); err != nil {
				t.Fatal(err)
			}
			w.cluster.SetRunning(7131, runs)
			req := s.req()
			r, err := w.applyVMOver(t, list, req)
			mustVM(t, r, err, recipe.StatusAwaitingTrust)
			id := 7131
			if req.Want.VM.Replaces != 0 {
				id = 9131
			}
			if now := w.cluster.Running(id); now != runs {
				t.Errorf("%s: VM %d runs %v, and the VM ran %v", s.name, id, now, runs)
			}
		}
	}
}
