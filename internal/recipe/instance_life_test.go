package recipe_test

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// What a running container takes is made while it runs; what waits for a restart gets exactly one.
func TestInstanceModify(t *testing.T) {
	tests := []struct {
		name     string
		change   func(*preview.Want)
		restarts int
		check    func(t *testing.T, w *world)
	}{
		{name: "memory and cores", change: func(w *preview.Want) { w.Instance.Settings["memory"], w.Instance.Settings["cores"] = "1024", "4" }, check: func(t *testing.T, w *world) {
			if c := w.cluster.Config(8001); c["memory"] != "1024" || c["cores"] != "4" {
				t.Error(c)
			}
		}},
		{name: "tags, notes and network", change: func(w *preview.Want) {
			w.Instance.Settings["tags"], w.Instance.Settings["description"] = "other", "Sells more."
			w.Instance.Settings["net0"] = "name=eth0,bridge=vmbr0,ip=192.0.2.82/24,gw=192.0.2.1"
			w.Instance.Settings["net1"] = "name=eth1,bridge=vmbr0,ip=dhcp"
		}, check: func(t *testing.T, w *world) {
			c := w.cluster.Config(8001)
			if n := guest.NotesOf(8001, c["description"]); c["tags"] != "other" || n.User != "Sells more." || !strings.Contains(c["net0"], "192.0.2.82") || !strings.Contains(c["net0"], "host-managed=1") || c["net1"] == "" {
				t.Error(c)
			}
		}},
		{name: "a volume grows", change: func(w *preview.Want) {
			w.Instance.Volumes["/data"] = preview.VolumeWant{Storage: "tank", Size: 12 << 30}
		}, check: func(t *testing.T, w *world) {
			if v, _ := w.cluster.Volume(w.cluster.VolumeOf(8001, "mp1")); v.Size != 12<<30 {
				t.Error(v.Size)
			}
		}},
		{name: "a new volume", change: func(w *preview.Want) {
			w.Instance.Volumes["/more"] = preview.VolumeWant{Storage: "tank", Size: 1 << 30}
		}, check: func(t *testing.T, w *world) {
			if w.cluster.VolumeOf(8001, "mp2") == "" || w.contract(8001).App.Volumes["/more"] != "mp2" {
				t.Error(w.cluster.Config(8001), w.contract(8001).App.Volumes)
			}
		}},
		{name: "the environment", restarts: 1, change: func(w *preview.Want) {
			w.Instance.Environment = map[string]string{"LEVEL": "higher", "TOKEN": secret + "2", "MORE": "1"}
			w.Instance.EnvVersion = 2
		}, check: func(t *testing.T, w *world) {
			env := w.environment(8001)
			if env["LEVEL"] != "higher" || env["TOKEN"] != secret+"2" || env["MORE"] != "1" || env["PATH"] != "/image-1:/bin" || w.contract(8001).App.EnvVersion != 2 {
				t.Error(slices.Sorted(maps.Keys(env)), w.contract(8001).App)
			}
		}},
		{name: "the entrypoint", restarts: 1, change: func(w *preview.Want) { w.Instance.Entrypoint = "/entry.sh other" }, check: func(t *testing.T, w *world) {
			if c := w.cluster.Config(8001); c["entrypoint"] != "/entry.sh other" || w.contract(8001).App.Entrypoint != "/entry.sh serve 'all of it'" {
				t.Error(c["entrypoint"], w.contract(8001).App.Entrypoint)
			}
		}},
		{name: "a volume goes, with consent", restarts: 1, change: func(w *preview.Want) {
			delete(w.Instance.Volumes, "/cache")
			w.Erase = map[string]string{"mp0": "*"}
		}, check: func(t *testing.T, w *world) {
			if c := w.cluster.Config(8001); c["mp0"] != "" || c["unused0"] != "" {
				t.Error(c)
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, health := installed(t, newClinic(t), "a1")
			rootfs := w.cluster.VolumeOf(8001, "rootfs")
			req := update("a1", health)
			tt.change(&req.Want)
			if len(req.Want.Erase) > 0 { // and the only copy of the other
				w.keep(w.cluster.VolumeOf(8001, "mp1"))
			}
			w.server.ResetRequests()
			result, err := w.applyInstance(t, req)
			if err != nil || result.Preview.Operation != preview.OpModify || !result.Changed {
				t.Fatalf("%s: %v", result.Preview.Summary, err)
			}
			if n := w.starts("8001"); n != tt.restarts {
				t.Errorf("it was started %d times, want %d", n, tt.restarts)
			}
			tt.check(t, w)
			if w.cluster.VolumeOf(8001, "rootfs") != rootfs || !w.cluster.Running(8001) {
				t.Error("the root file system was replaced, or it does not run")
			}
			if lost := append(w.lost(), w.orphaned()...); len(lost) > 0 {
				t.Error(lost)
			}
			if c := w.contract(8001); w.environment(8001)[guest.ContractVariable] != c.Instance || !maps.Equal(c.App.Keys, keysNow(w)) {
				t.Errorf("the contract is %s, the environment of %s; it records %v", c.Instance, w.environment(8001)[guest.ContractVariable], c.App.Keys)
			}
			w.inert(t, req)
			req.Want.Instance.Image = image("b2")
			if _, err := w.applyInstance(t, req); err != nil {
				t.Errorf("an update afterwards: %v", err)
			}
		})
	}
}

// keysNow are the keys of 8001 that a contract records.
func keysNow(w *world) map[string]string {
	return preview.ContractKeys(guest.Config{Values: w.cluster.Config(8001)})
}

// An environment with which the application is not healthy is put back.
func TestInstanceUnhealthySettingsAreTakenBack(t *testing.T) {
	w, health := installed(t, newClinic(t), "a1")
	env, entrypoint := w.cluster.Config(8001)["env"], w.cluster.Config(8001)["entrypoint"]
	req := update("a1", health)
	req.Want.Instance.Environment["BREAK"] = "1"
	req.Want.Instance.Entrypoint = "/entry.sh other"
	_, err := w.applyInstance(t, req)
	if err == nil || !strings.Contains(err.Error(), "not healthy") || !strings.Contains(err.Error(), "as they were before") {
		t.Fatal(err)
	}
	if c := w.cluster.Config(8001); c["env"] != env || c["entrypoint"] != entrypoint || !w.well() {
		t.Errorf("%q, entrypoint %q, well %v", slices.Sorted(maps.Keys(w.environment(8001))), c["entrypoint"], w.well())
	}
	w.sound(t)
	w.inert(t, update("a1", health))
}

func TestInstanceRemove(t *testing.T) {
	w, health := installed(t, newClinic(t), "a1")
	i, shelf := w.instance(t)
	req := update("a1", health)
	req.Want.Instance.Protected = true
	before := w.dump()
	_, err := i.Remove(t.Context(), req)
	w.untouched(t, before, err, preview.CodeDeletionProtected.String())
	req.Want.Instance.Protected = false
	seen, err := i.Observe(t.Context(), 8001)
	if err != nil {
		t.Fatal(err)
	}
	p, err := i.PlanRemove(t.Context(), seen, req.Want)
	if err != nil || p.Operation != preview.OpRemove || p.ErasedBytes != 14<<30 || len(p.Blockers) > 0 {
		t.Errorf("the preview is %+v: %v", p, err)
	}
	w.keep(w.cluster.VolumeOf(5002, "mp0"))
	result, err := i.Remove(t.Context(), req)
	if err != nil || result.Exists == nil || *result.Exists {
		t.Fatal(result, err)
	}
	if left := append(w.lost(), w.orphaned()...); len(left) > 0 || !slices.Equal(w.cluster.Guests(), []int{5002}) {
		t.Error(left, w.cluster.Guests())
	}
	if !slices.Equal(shelf.removed, []string{"local:vztmpl/pvrx-app-a1.tar"}) {
		t.Errorf("removed archives: %v", shelf.removed)
	}
	for _, v := range w.cluster.Volumes() {
		if v.Owner == 8001 {
			t.Errorf("%s is left", v.ID)
		}
	}
	if result, err := i.Remove(t.Context(), req); err != nil || result.Changed {
		t.Errorf("removing what is gone: %+v %v", result, err)
	}
}

// An archive that another container is made from stays, whichever of the two goes.
func TestInstanceArchiveInUseStays(t *testing.T) {
	w, health := installed(t, newClinic(t), "a1")
	other := wantsInstance("a1")
	other.VMID, other.Name = 8002, "shop2"
	other.Instance.Settings["net0"] = "name=eth0,bridge=vmbr0,ip=dhcp"
	i, shelf := w.instance(t)
	if _, err := planAndApply(i, recipe.Request{Want: other}); err != nil || len(shelf.placed) > 0 {
		t.Fatal(err, shelf.placed)
	}
	req := update("a1", health)
	if _, err := i.Remove(t.Context(), req); err != nil || len(shelf.removed) > 0 {
		t.Errorf("removed %v: %v", shelf.removed, err)
	}
}

// restore puts a backup under another VMID and storage, as a token's restore does.
func (w *world) restore(t *testing.T, archive string, id int) {
	t.Helper()
	w.post(t, "/nodes/pve1/lxc", url.Values{"vmid": {strconv.Itoa(id)}, "ostemplate": {archive}, "restore": {"1"}, "storage": {"tank"}})
}

// post sends what a person sends by hand, and waits.
func (w *world) post(t *testing.T, path string, form url.Values) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://pve1:8006/api2/json"+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "PVEAPIToken="+w.token)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := w.server.RoundTrip(req)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res, err)
	}
	_ = res.Body.Close()
	w.cluster.Wait()
}

func TestC6RestoredInstanceIsAdoptedAndUpdated(t *testing.T) {
	w, health := installed(t, newClinic(t), "a1")
	instance := w.contract(8001).Instance
	w.restore(t, w.cluster.Backup(8001, "local", "nightly", false), 8101)
	req := update("a1", nil)
	req.Want.VMID, req.Want.Rootfs.Storage = 8101, ""
	req.Want.Instance.Started = false
	before := w.dump()
	_, err := w.applyInstance(t, req)
	w.untouched(t, before, err, preview.CodeDuplicateIdentity.String(), "8001")
	_ = health
	w.cluster.SetRunning(8001, false)
	w.cluster.RemoveGuest(8001)
	w.kept = nil
	w.server.ResetRequests()
	result, err := w.applyInstance(t, req)
	if err != nil || result.Preview.Operation != preview.OpAdopt {
		t.Fatalf("%+v: %v", result.Preview, err)
	}
	if n := w.server.Mutations(); n != 1 {
		t.Errorf("adopting took %d changes", n)
	}
	contract := w.contract(8101)
	if contract == nil || contract.Instance != instance || contract.Guest != 8101 || w.cluster.Running(8101) {
		t.Errorf("the contract is %+v, running %v", contract, w.cluster.Running(8101))
	}
	if p := result.Preview; !strings.Contains(strings.Join(p.Warnings, "\n"), "lxc.init.uid") {
		t.Errorf("that the restore lost what the image asked for is not said: %v", p.Warnings)
	}
	if v, _ := w.cluster.Volume(w.cluster.VolumeOf(8101, "mp1")); v.Content["/marker"] != "the only copy" {
		t.Errorf("the restored volume holds %v", v.Content)
	}
	w.keep(w.cluster.VolumeOf(8101, "mp1"))
	req = update("b2", nil)
	req.Want.VMID, req.Want.Rootfs.Storage = 8101, ""
	req.Want.Instance.Volumes["/data"] = preview.VolumeWant{Storage: "tank", Size: 8 << 30}
	req.Want.Instance.Volumes["/cache"] = preview.VolumeWant{Storage: "tank", Size: 2 << 30, NoBackup: true}
	result, err = w.applyInstance(t, req)
	if err != nil || result.Preview.Operation != preview.OpUpdate {
		t.Fatalf("%+v: %v", result.Preview.Blockers, err)
	}
	if v, _ := w.cluster.ReadFile(8101, "/version"); v != "2" || len(w.contract(8101).App.Raw) != 4 {
		t.Errorf("version %q, raw %v", v, w.contract(8101).App.Raw)
	}
	if lost := w.lost(); len(lost) > 0 {
		t.Error(lost)
	}
}

// Hazard C7: a rollback to a snapshot leaves the notes and returns the environment.
func TestC7RolledBackToASnapshotIsNotUpdated(t *testing.T) {
	w, health := installed(t, newClinic(t), "a1")
	w.cluster.Snapshot(8001, "before")
	req := update("a1", health)
	req.Want.Instance.Environment["MORE"] = "1"
	if _, err := w.applyInstance(t, req); err != nil {
		t.Fatal(err)
	}
	w.post(t, "/nodes/pve1/lxc/8001/snapshot/before/rollback", nil)
	if w.environment(8001)["MORE"] != "" || w.contract(8001).App.Before == nil {
		t.Fatalf("the environment was not rolled back: %v", slices.Sorted(maps.Keys(w.environment(8001))))
	}
	before := w.dump()
	next := update("b2", health)
	next.Want.Allow = []string{"snapshots_present"}
	_, err := w.applyInstance(t, next)
	w.untouched(t, before, err, preview.CodeContractDiffers.String(), "snapshot")
	next.Want.Adopt = true
	w.server.ResetRequests()
	result, err := w.applyInstance(t, next)
	if err != nil || result.Preview.Operation != preview.OpAdopt || w.server.Mutations() != 1 {
		t.Fatalf("%+v, %d changes: %v", result.Preview.Blockers, w.server.Mutations(), err)
	}
	next.Want.Adopt = false
	if result, err := w.applyInstance(t, next); err != nil || result.Preview.Operation != preview.OpUpdate {
		t.Errorf("%+v: %v", result.Preview.Blockers, err)
	}
}

// A container restored over itself has an older contract than the one that is known.
func TestC6RestoredOverItselfIsNotUpdated(t *testing.T) {
	w, health := installed(t, newClinic(t), "a1")
	notes, env := w.cluster.Config(8001)["description"], w.cluster.Config(8001)["env"]
	w.clock = w.clock.Add(1e12)
	req := update("a1", health)
	req.Want.Instance.Environment["MORE"] = "1"
	if _, err := w.applyInstance(t, req); err != nil {
		t.Fatal(err)
	}
	known := w.contract(8001)
	w.cluster.SetConfig(8001, "description", notes)
	w.cluster.SetConfig(8001, "env", env)
	req = update("b2", health)
	req.Want.Instance.Known, req.Want.Instance.KnownAt = known.Instance, known.At
	before := w.dump()
	_, err := w.applyInstance(t, req)
	w.untouched(t, before, err, preview.CodeContractDiffers.String(), "restored over itself")
}

// Hazard C9: new volumes belong to root; the plan says so, and how much that matters to the image.
func TestC9NewVolumesAreRootOwned(t *testing.T) {
	w := newInstanceWorld()
	i, _ := w.instance(t)
	seen, err := i.Observe(t.Context(), 8001)
	if err != nil {
		t.Fatal(err)
	}
	p, err := i.Plan(t.Context(), seen, wantsInstance("a1"))
	if err != nil || !strings.Contains(strings.Join(p.Warnings, "\n"), "lost+found") {
		t.Errorf("%v: %v", p.Warnings, err)
	}
}

// Two pipelines install at once: one wins, the other takes nothing away from it.
func TestInstanceTwoPipelinesInstall(t *testing.T) {
	w := newInstanceWorld()
	second, _ := w.instance(t)
	inner := recipe.Request{Want: wantsInstance("a1")}
	var won error
	over := &hooked{over: w.server, when: func(r string) bool { return strings.HasPrefix(r, "POST ") && strings.HasSuffix(r, "/lxc") }, do: func() {
		_, won = planAndApply(second, inner)
	}}
	first, _ := w.instanceOver(t, over)
	_, err := planAndApply(first, recipe.Request{Want: wantsInstance("a1")})
	if err == nil || won != nil {
		t.Fatalf("first %v, second %v", err, won)
	}
	if !w.cluster.Running(8001) || w.contract(8001) == nil {
		t.Errorf("the winner's container: %v", w.cluster.Config(8001))
	}
}

// An update and an update, at once: one wins, and the loser's error says who has it.
func TestInstanceTwoPipelinesUpdate(t *testing.T) {
	w, health := installed(t, newClinic(t), "a1")
	second, _ := w.instance(t)
	var won error
	over := &hooked{over: w.server, when: func(r string) bool { return strings.HasPrefix(r, "PUT ") && strings.HasSuffix(r, "/lxc/8001/config") }, do: func() {
		_, won = planAndApply(second, update("b2", health))
	}}
	first, _ := w.instanceOver(t, over)
	_, err := planAndApply(first, update("c3", health))
	if err == nil || won != nil {
		t.Fatalf("first %v, second %v", err, won)
	}
	w.sound(t)
	if v, _ := w.cluster.ReadFile(8001, "/version"); v != "2" {
		t.Errorf("the version is %q", v)
	}
}
