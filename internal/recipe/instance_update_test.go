package recipe_test

import (
	"bytes"
	"errors"
	"io"
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

// sound checks what holds after every operation on 8001: nothing lost, nothing left, and no secret where none belongs.
func (w *world) sound(t *testing.T) {
	t.Helper()
	if lost := append(w.lost(), w.orphaned()...); len(lost) > 0 {
		t.Error(lost)
	}
	if j := w.journal(t, 8001); j != nil {
		t.Errorf("a record is left at %s: %s", j.Stage, j.Error)
	}
	if !slices.Equal(w.cluster.Guests(), []int{5002, 8001}) {
		t.Errorf("guests: %v", w.cluster.Guests())
	}
	for key, want := range map[string]string{"/data/marker": "the only copy", "/cache/marker": "cached"} {
		if got, _ := w.cluster.ReadFile(8001, key); got != want {
			t.Errorf("%s is %q", key, got)
		}
	}
	contract := w.contract(8001)
	if contract == nil || contract.App == nil || w.environment(8001)[guest.ContractVariable] != contract.Instance {
		t.Errorf("the environment is of contract %q, the notes of %+v", w.environment(8001)[guest.ContractVariable], contract)
	}
	for _, r := range w.server.Requests() {
		for name, value := range r.Params {
			if name != "env" && strings.Contains(value, secret) || name == "description" && tells(value) {
				t.Errorf("%s %s carries the secret in %s", r.Method, r.Path, name)
			}
		}
	}
}

// starts counts how often a guest was started.
func (w *world) starts(id string) (n int) {
	for _, r := range w.server.Requests() {
		if r.Method == http.MethodPost && strings.HasSuffix(r.Path, "/lxc/"+id+"/status/start") {
			n++
		}
	}
	return n
}

func TestC8InstanceUpdate(t *testing.T) {
	w, health := installed(t, newClinic(t), "a1")
	before, archive := w.cluster.Config(8001), w.contract(8001).App.Archive
	w.server.ResetRequests()
	result, err := w.applyInstance(t, update("b2", health))
	if err != nil {
		t.Fatal(err)
	}
	if result.Status != recipe.StatusReady || result.Installed.Template != repository+"@"+digestOf("b2") || result.Preview.Operation != preview.OpUpdate {
		t.Errorf("the result is %+v", result)
	}
	w.sound(t)
	if v, _ := w.cluster.ReadFile(8001, "/version"); v != "2" {
		t.Errorf("the version is %q", v)
	}
	want := map[string]string{"PATH": "/image-2:/bin", "LEVEL": "ours", "TOKEN": secret, "NEW_ONLY": "2", guest.ContractVariable: result.Operation}
	if env := w.environment(8001); !maps.Equal(env, want) {
		t.Errorf("the environment is %v", slices.Sorted(maps.Keys(env)))
	}
	after := w.cluster.Config(8001)
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if key != "description" && key != "env" && after[key] != before[key] {
			t.Errorf("%s is %q and was %q", key, after[key], before[key])
		}
	}
	if n := w.starts("8001"); n != 1 {
		t.Errorf("the container was started %d times", n)
	}
	app := w.contract(8001).App
	if app.Previous != archive || !slices.Equal(app.Theirs, []string{"LEVEL", "NEW_ONLY", "PATH"}) || app.Entrypoint != "/entry.sh serve 'all of it'" {
		t.Errorf("the contract says %+v", app)
	}
	w.inert(t, update("b2", health))
	// The next one lets go of the archive before the last.
	i, shelf := w.instance(t)
	if _, err := planAndApply(i, update("c3", health)); err != nil || !slices.Equal(shelf.removed, []string{archive}) {
		t.Errorf("removed %v: %v", shelf.removed, err)
	}
	w.sound(t)
}

// Triggers make the root file system anew from the digest that is recorded; nothing is brought for that.
func TestInstanceTriggersAtTheSameDigest(t *testing.T) {
	w, health := installed(t, newClinic(t), "a1")
	w.cluster.WriteFile(8001, "/scratch", "left by the application")
	req := update("a1", health)
	req.Want.Triggers = map[string]string{"again": "1"}
	i, shelf := w.instance(t)
	if _, err := planAndApply(i, req); err != nil || len(shelf.placed)+len(shelf.removed) > 0 {
		t.Fatal(err, shelf.placed, shelf.removed)
	}
	w.sound(t)
	if left, _ := w.cluster.ReadFile(8001, "/scratch"); left != "" {
		t.Error("the root file system is the old one")
	}
	w.inert(t, req)
}

// An application that ends right after its start may only miss its network in the rehearsal. The real start decides.
func TestInstanceThatEndsAtOnceGoesBack(t *testing.T) {
	w, _ := installed(t, newClinic(t), "a1")
	i, _ := w.instance(t)
	result, err := planAndApply(i, update("dead", nil))
	if err == nil || result.Status != recipe.StatusRolledBack || !strings.Contains(err.Error(), "rolled back") {
		t.Fatalf("%+v: %v", result, err)
	}
	if !slices.ContainsFunc(result.Warnings, func(text string) bool { return strings.Contains(text, "in the rehearsal the application ended") }) {
		t.Errorf("warnings: %q", result.Warnings)
	}
	if !w.cluster.Running(8001) {
		t.Error("the application before does not run")
	}
	w.sound(t)
}

func TestInstanceUnhealthyUpdateGoesBack(t *testing.T) {
	w, health := installed(t, newClinic(t), "a1")
	before, config, env := w.dump(), w.cluster.Config(8001), w.environment(8001)
	raw := w.contract(8001).App.Raw
	i, shelf := w.instance(t)
	result, err := planAndApply(i, update("bad", health))
	if err == nil || result.Status != recipe.StatusRolledBack || result.Installed.Template != repository+"@"+digestOf("a1") {
		t.Fatalf("%+v: %v", result, err)
	}
	for _, text := range []string{"not healthy", "rolled back", "declined"} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not say %q: %v", text, err)
		}
	}
	w.sound(t)
	delete(env, guest.ContractVariable)
	now := w.environment(8001)
	delete(now, guest.ContractVariable)
	if !maps.Equal(env, now) {
		t.Errorf("the environment is not the old one: %v", slices.Sorted(maps.Keys(now)))
	}
	for key, value := range w.cluster.Config(8001) {
		if key != "description" && key != "env" && config[key] != value {
			t.Errorf("%s is %q and was %q", key, value, config[key])
		}
	}
	if !slices.Equal(w.contract(8001).App.Raw, raw) || !w.cluster.Running(8001) {
		t.Errorf("raw settings %v, running %v", w.contract(8001).App.Raw, w.cluster.Running(8001))
	}
	if !slices.Equal(shelf.removed, []string{"local:vztmpl/pvrx-app-bad.tar"}) {
		t.Errorf("removed archives: %v", shelf.removed)
	}
	if now := w.dump(); now != before {
		t.Logf("the worlds differ in:\n%s", difference(before, now))
	}
	for range 10 {
		w.inert(t, update("bad", health))
	}
	if _, err := w.applyInstance(t, update("b2", health)); err != nil {
		t.Fatal(err)
	}
	w.sound(t)
}

func TestInstanceHoldWaitsForADecision(t *testing.T) {
	for action, version := range map[string]string{"rollback": "1", "close": "broken", "resume": "broken"} {
		t.Run(action, func(t *testing.T) {
			w, health := installed(t, newClinic(t), "a1")
			req := update("bad", health)
			req.Want.Instance.Hold = true
			result, err := w.applyInstance(t, req)
			if err == nil || result.Status != recipe.StatusNeedsReconcile || result.Stage != "start" {
				t.Fatalf("%+v: %v", result, err)
			}
			if action == "resume" { // the application recovers
				w.cluster.WriteFile(8001, "/version", "mended")
				version = "mended"
			}
			req.Reconcile = &recipe.Reconcile{Operation: result.Operation, Action: action}
			result, err = w.applyInstance(t, req)
			if err != nil {
				t.Fatal(err)
			}
			w.sound(t)
			if v, _ := w.cluster.ReadFile(8001, "/version"); v != version {
				t.Errorf("the version is %q", v)
			}
			if status := map[string]recipe.Status{"rollback": recipe.StatusRolledBack, "close": recipe.StatusReady, "resume": recipe.StatusReady}; result.Status != status[action] {
				t.Errorf("the status is %q", result.Status)
			}
			req.Reconcile = nil
			w.inert(t, req)
		})
	}
}

// refuser refuses changes whose parameters carry a text, in words that quote what was sent.
type refuser struct {
	over http.RoundTripper
	text string
}

func (r refuser) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPut {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		if strings.Contains(string(body), r.text) || strings.Contains(string(body), `"`+strings.TrimSuffix(r.text, "=")+`"`) {
			return &http.Response{
				StatusCode: http.StatusBadRequest, Status: "400 Parameter verification failed.", Request: req, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(`{"errors":{"env":"TOKEN=` + secret + ` is not right"},"data":null}`)),
			}, nil
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	return r.over.RoundTrip(req)
}

// Everything that goes wrong before the destroy leaves the container as it was, and running.
func TestInstanceUpdateRefusedOrTakenBack(t *testing.T) {
	tests := []struct {
		name    string
		shelf   error
		fault   *pvesim.Fault
		change  func(*pvesim.Cluster)
		refuses string // changes that carry this are refused, with words that quote the secret
		says    []string
	}{
		{name: "the registry does not answer", shelf: errors.New("429 Too Many Requests"), says: []string{"429", "Nothing was stopped"}},
		{name: "the environment is refused", refuses: "env=", says: []string{"rehearsal", "is not right"}},
		{name: "A6 a storage is away", change: func(c *pvesim.Cluster) {
			c.AddStorage(pvesim.StorageSpec{ID: "tank", Type: "zfspool", Total: 2 << 40, Unreachable: true})
		}, says: []string{"storage_unavailable"}},
		{name: "a key was changed by hand", change: func(c *pvesim.Cluster) { c.SetConfig(8001, "nameserver", "192.0.2.9") }, says: []string{"contract_differs", "nameserver"}},
		{name: "the new image cannot be unpacked", fault: &pvesim.Fault{Kind: pvesim.FaultTaskFail, Method: "POST", Path: `/lxc$`, Text: "unable to create CT: no space left on device"}, says: []string{"rehearsal", "no space left"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, health := installed(t, newClinic(t), "a1")
			if tt.change != nil {
				tt.change(w.cluster)
			}
			before := w.dump()
			i, shelf := w.instance(t)
			if tt.refuses != "" {
				i, shelf = w.instanceOver(t, refuser{over: w.server, text: tt.refuses})
			}
			shelf.fail = tt.shelf
			if tt.fault != nil {
				w.server.Inject(*tt.fault)
			}
			_, err := planAndApply(i, update("b2", health))
			w.server.ClearFaults()
			w.cluster.RemoveVolume("local:vztmpl/pvrx-app-b2.tar") // it is used by the next try
			w.untouched(t, before, err, tt.says...)
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error holds a secret: %v", err)
			}
		})
	}
}
