package recipe_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// Hazard B8: a start that fails for the new image, its environment or its entrypoint fails in the rehearsal, while the
// container still runs.
func TestB8InstanceStartsInTheRehearsal(t *testing.T) {
	for _, entrypoint := range []string{"", "/not/there --at all"} {
		w, health := installed(t, newClinic(t), "a1")
		if entrypoint == "" {
			w.server.Inject(pvesim.Fault{Kind: pvesim.FaultTaskFail, Method: "POST", Path: `/lxc/908001/status/start$`, Text: "startup for container failed"})
		}
		before := w.dump()
		w.server.ResetRequests()
		req := update("b2", health)
		req.Want.Instance.Entrypoint = entrypoint
		_, err := w.applyInstance(t, req)
		w.cluster.RemoveVolume("local:vztmpl/pvrx-app-b2.tar")
		w.untouched(t, before, err, "rehearsal", "does not start")
		for _, r := range w.server.Requests() {
			if r.Method == http.MethodPost && strings.Contains(r.Path, "/lxc/8001/status/") {
				t.Errorf("the container was touched by %s %s", r.Method, r.Path)
			}
		}
	}
}

// Hazard C8: an image without an environment of its own leaves what the create was sent. Neither environment nor entrypoint
// is ever passed to a create, so nothing of the old image lingers.
func TestC8ImageWithoutEnvironment(t *testing.T) {
	w, health := installed(t, newClinic(t), "a1")
	w.server.ResetRequests()
	if _, err := w.applyInstance(t, update("d4", health)); err != nil {
		t.Fatal(err)
	}
	w.sound(t)
	env := w.environment(8001)
	if delete(env, guest.ContractVariable); len(env) != 2 || env["LEVEL"] != "ours" || env["TOKEN"] != secret {
		t.Errorf("the environment has %d variables, PATH=%q, OLD_ONLY=%q", len(env), env["PATH"], env["OLD_ONLY"])
	}
	for _, r := range w.server.Requests() {
		if r.Method == http.MethodPost && strings.HasSuffix(r.Path, "/lxc") && r.Params["env"]+r.Params["entrypoint"]+r.Params["cmode"] != "" {
			t.Errorf("a create was sent env %q, entrypoint %q, cmode %q", r.Params["env"], r.Params["entrypoint"], r.Params["cmode"])
		}
	}
}

// Hazard C6: a backup that was taken while an update was under way carries its record; where it is restored, the record binds
// nobody, and adopting the container takes it out.
func TestC6RecordInABackupBindsNobody(t *testing.T) {
	w, health := installed(t, newClinic(t), "a1")
	w.server.Inject(pvesim.Fault{Kind: pvesim.FaultWorldAfter, Method: "POST", Path: `/lxc/8001/status/shutdown$`, World: func(c *pvesim.Cluster) { c.Backup(8001, "local", "in the middle", false) }})
	if _, err := w.applyInstance(t, update("b2", health)); err != nil {
		t.Fatal(err)
	}
	var archive string
	for _, v := range w.cluster.Volumes() {
		if v.Type == "backup" {
			archive = v.ID
		}
	}
	w.cluster.SetRunning(8001, false)
	w.cluster.RemoveGuest(8001)
	w.kept = nil
	w.restore(t, archive, 8101)
	i, _ := w.instance(t)
	seen, err := i.Observe(t.Context(), 8101)
	if err != nil || seen.Journal != nil || seen.Foreign == nil || len(seen.Problems) == 0 {
		t.Fatalf("%+v: %v", seen, err)
	}
	req := update("a1", nil)
	req.Want.VMID, req.Want.Rootfs.Storage, req.Want.Instance.Started = 8101, "", false
	if result, err := w.applyInstance(t, req); err != nil || result.Preview.Operation != preview.OpAdopt {
		t.Fatalf("%+v: %v", result.Preview.Blockers, err)
	}
	if text := w.cluster.Config(8101)["description"]; strings.Contains(text, "pvrx-journal") || guest.NotesOf(8101, text).Contract == nil {
		t.Errorf("the notes are %s", text)
	}
}

// Hazard B4: a return whose worker dies renames a volume and leaves its name behind on the parking guest. An update that turns
// out unhealthy after that parks the volume again, and does not take the name for it.
func TestB4KeyLeftBehindIsNotParked(t *testing.T) {
	w, health := installed(t, newClinic(t), "a1")
	w.server.Inject(pvesim.Fault{Kind: pvesim.FaultTaskKill, At: "renamed", Method: "POST", Path: `/lxc/908001/move_volume$`, Times: 1})
	req := update("bad", health)
	result, err := w.applyInstance(t, req)
	for range 2 {
		if j := w.journal(t, 8001); j != nil {
			req.Reconcile = &recipe.Reconcile{Operation: j.Operation, Action: "resume"}
			result, err = w.applyInstance(t, req)
		}
	}
	if result.Status != recipe.StatusRolledBack {
		t.Fatalf("%+v: %v", result.Status, err)
	}
	w.sound(t)
}

// An install that loses its VMID to somebody takes nothing away from them.
func TestInstanceInstallTakesBackOnlyItsOwn(t *testing.T) {
	w := newInstanceWorld()
	w.server.Inject(pvesim.Fault{Kind: pvesim.FaultTaskFailAfter, Method: "POST", Path: `/lxc$`, Text: "command failed: exit code 5"})
	i, _ := w.instanceOver(t, &hooked{over: w.server, when: func(r string) bool {
		return strings.HasPrefix(r, "GET ") && strings.HasSuffix(r, "/lxc/8001/config") && w.server.FaultsStruck() > 0
	}, do: func() {
		w.cluster.Wait()
		w.cluster.RemoveGuest(8001)
		w.cluster.AddContainer(pvesim.ContainerSpec{VMID: 8001, Template: oldTemplate, Config: map[string]string{"hostname": "shop", "rootfs": "local-lvm:4"}})
	}})
	_, err := planAndApply(i, recipe.Request{Want: wantsInstance("a1")})
	if err == nil || w.cluster.Config(8001)["ostype"] != "debian" {
		t.Errorf("%v: %v", err, w.cluster.Config(8001))
	}
}
