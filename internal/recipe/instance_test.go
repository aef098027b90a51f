package recipe_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

func TestInstanceInstall(t *testing.T) {
	w := newInstanceWorld()
	health := newClinic(t).admit(w)
	result, err := w.applyInstance(t, recipe.Request{Want: wantsInstance("a1"), Health: health})
	if err != nil {
		t.Fatal(err)
	}
	if result.Status != recipe.StatusReady || result.Exists == nil || !*result.Exists || result.Installed == nil || result.Installed.Template != repository+"@"+digestOf("a1") {
		t.Errorf("the result is %+v", result)
	}
	config := w.cluster.Config(8001)
	for key, want := range map[string]string{
		"hostname": "shop", "cores": "2", "memory": "512", "tags": "shop;web", "onboot": "1", "unprivileged": "1", "ostype": "unmanaged", "arch": "amd64",
		"entrypoint": "/entry.sh serve 'all of it'",
	} {
		if config[key] != want {
			t.Errorf("%s is %q, want %q", key, config[key], want)
		}
	}
	env := w.environment(8001)
	for name, want := range map[string]string{"PATH": "/image-1:/bin", "OLD_ONLY": "1", "LEVEL": "ours", "TOKEN": secret, guest.ContractVariable: result.Operation} {
		if env[name] != want {
			t.Errorf("%s is %q, want %q", name, env[name], want)
		}
	}
	contract := w.contract(8001)
	if contract == nil || contract.App == nil || contract.Instance != result.Operation || contract.Installed.Template != repository+"@"+digestOf("a1") {
		t.Fatalf("the contract is %+v", contract)
	}
	app := *contract.App
	if !slices.Equal(app.Own, []string{"LEVEL", "TOKEN"}) || !slices.Equal(app.Theirs, []string{"LEVEL", "OLD_ONLY", "PATH"}) || app.Archive != "local:vztmpl/pvrx-app-a1.tar" ||
		!maps.Equal(app.Volumes, map[string]string{"/cache": "mp0", "/data": "mp1"}) || len(app.Raw) != 4 || app.EnvVersion != 1 {
		t.Errorf("it says %+v", app)
	}
	if notes := guest.NotesOf(8001, config["description"]); notes.Journal != nil || notes.User != "Sells things." {
		t.Errorf("the notes are %+v", notes)
	}
	if strings.Contains(config["description"], secret) {
		t.Error("the notes hold a secret")
	}
	if !w.cluster.Running(8001) || !slices.Equal(w.cluster.Guests(), []int{5002, 8001}) {
		t.Errorf("running %v, guests %v", w.cluster.Running(8001), w.cluster.Guests())
	}
	if got, _ := w.cluster.ReadFile(8001, "/data/README"); got != "" {
		t.Errorf("the image was unpacked into the volume: %q", got)
	}
	w.inert(t, recipe.Request{Want: wantsInstance("a1"), Health: health})
	w.inert(t, update("a1", health))
}

// inert applies and expects that nothing is changed and nothing is brought.
func (w *world) inert(t *testing.T, req recipe.Request) {
	t.Helper()
	w.server.ResetRequests()
	i, shelf := w.instance(t)
	result, err := planAndApply(i, req)
	if err != nil || w.server.Mutations() > 0 || result.Changed || len(shelf.placed) > 0 {
		t.Errorf("an apply of the same is not inert: %d changes, brought %v, %v (%v)", w.server.Mutations(), shelf.placed, err, result.Preview.Changes)
	}
}

// A create writes every variable that an image has. Some of them no change may write, and some come back as others.
func TestInstanceVariablesThatProxmoxDoesNotKeep(t *testing.T) {
	c := newClinic(t)
	w := newInstanceWorld()
	result, err := w.applyInstance(t, recipe.Request{Want: wantsInstance("0dd"), Health: c.admit(w)})
	if err != nil || !slices.ContainsFunc(result.Warnings, func(text string) bool { return strings.Contains(text, "X.Y is left out") }) {
		t.Fatalf("%q: %v", result.Warnings, err)
	}
	if _, there := w.environment(8001)["X.Y"]; there || slices.Contains(w.contract(8001).App.Theirs, "X.Y") {
		t.Errorf("X.Y: %v, recorded %v", there, w.contract(8001).App.Theirs)
	}

	w = newInstanceWorld()
	before := w.dump()
	if _, err := w.applyInstance(t, recipe.Request{Want: wantsInstance("fee"), Health: c.admit(w)}); err == nil || !strings.Contains(err.Error(), "GREETING") || strings.Contains(err.Error(), "grüß") {
		t.Errorf("a variable that would come back as another one: %v", err)
	}
	if now := w.dump(); now != before {
		t.Errorf("something is left:\n%s", difference(before, now))
	}
}

func TestInstanceFailedInstallLeavesNothing(t *testing.T) {
	c := newClinic(t)
	w := newInstanceWorld()
	before := w.dump()
	_, err := w.applyInstance(t, recipe.Request{Want: wantsInstance("bad"), Health: c.admit(w)})
	w.untouched(t, before, err, "not healthy", "not installed", "nothing of it is left")
	if strings.Contains(err.Error(), secret) {
		t.Error("the error holds a secret")
	}
}

// A VMID that is in use is an error, and what is there is not touched.
func TestInstanceVMIDInUse(t *testing.T) {
	w := newInstanceWorld()
	before := w.dump()
	want := wantsInstance("a1")
	want.VMID = 5002
	_, err := w.applyInstance(t, recipe.Request{Want: want})
	w.untouched(t, before, err, preview.CodeNotAnInstance.String())
}
