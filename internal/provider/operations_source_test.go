package provider

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// Survey answers for the world in memory with one row of everything.
func (w *world) Survey(_ context.Context, scope recipe.Scope) (preview.Report, error) {
	if scope.Node == "pve9" {
		return preview.Report{Summary: "Nothing is half done and nothing was left behind."}, nil
	}
	held := []preview.HeldVolume{{Key: "mp0", Volume: "local-lvm:vm-900012-disk-1", Holder: 900012, Size: 100 * guest.GiB}, {Key: "mp1", Volume: "tank:x"}}
	return preview.Report{
		Operations: []preview.SurveyedOperation{{
			Operation: "op-5001-20261201-3f2a", Kind: "reinstall", Guest: 5001, Parking: 900012, Label: "CT 5001 web1", State: preview.OperationStuck,
			Stage: "create", Index: 8, Stages: 12, Of: guest.KindContainer, Updated: 1796100000, Age: "2 hours", Exists: guest.Absent, Volumes: held, Reconcile: "reconcile = {}", Remedy: "Go on.",
		}},
		Parking:  []preview.ParkingGuest{{VMID: 900012, Guest: 5001, Label: "CT 900012 pvrx-parking-5001", Guarded: true, Holds: held[:1], Remedy: "Leave it."}},
		Unnamed:  []preview.UnnamedVolume{{Volume: "tank:x", Owner: 5009, Exists: guest.PresenceUnknown, Remedy: "Look."}},
		Archives: []preview.LeftArchive{{Archive: "local:backup/a", VMID: 900012, Guest: 5001, Protected: true, Remedy: "Keep it."}},
		Problems: []preview.BlockProblem{{VMID: 5002, Label: "CT 5002 db2", Kind: "damaged", Sentence: "It cannot be used.", Remedy: "Take it out."}},
		Unseen:   []string{"node pve2 does not answer"}, Summary: "CT 5001 web1: stopped",
	}, nil
}

// surveyed reads the data source in a workspace and returns what it says.
func surveyed(t *testing.T, s *workspace, arguments string) map[string]any {
	t.Helper()
	s.write("survey.tf", "data \"pvrx_operations\" \"all\" {\n  "+arguments+"\n}\noutput \"all\" {\n  value = jsonencode(data.pvrx_operations.all)\n}\n")
	s.run(0, "apply", "-no-color", "-input=false", "-auto-approve")
	out, err := s.command("output", "-raw", "all").Output()
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(out, &m); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return m
}

// row is the only row of a list.
func row(t *testing.T, m map[string]any, list string) map[string]any {
	t.Helper()
	rows, ok := m[list].([]any)
	if !ok || len(rows) != 1 {
		t.Fatalf("%s: %v", list, m[list])
	}
	only, ok := rows[0].(map[string]any)
	if !ok {
		t.Fatalf("%s: %v", list, rows[0])
	}
	return only
}

func TestOperationsAreListed(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		w := desk(t, c, newWorld(5001))
		m := surveyed(t, w, "")
		o := row(t, m, "operations")
		for key, want := range map[string]any{
			"operation": "op-5001-20261201-3f2a", "status": "stuck", "guest_exists": false, "vmid": 5001.0, "parking_vmid": 900012.0,
			"updated": "2026-12-01T04:40:00Z", "started": nil, "stage": "create", "stages": 12.0, "age": "2 hours", "error": nil,
		} {
			if o[key] != want {
				t.Errorf("%s is %v, want %v", key, o[key], want)
			}
		}
		volumes, _ := o["volumes"].([]any)
		if len(volumes) != 2 || volumes[1].(map[string]any)["holder"] != nil {
			t.Errorf("%v", volumes)
		}
		if p := row(t, m, "parking_guests"); p["operation"] != nil || p["guarded"] != true || p["of"] != 5001.0 {
			t.Errorf("%v", p)
		}
		if v := row(t, m, "unnamed_volumes"); v["owner_exists"] != nil || v["certain"] != false {
			t.Errorf("%v", v)
		}
		if a := row(t, m, "archives"); a["protected"] != true || a["of"] != 5001.0 {
			t.Errorf("%v", a)
		}
		if p := row(t, m, "problems"); p["kind"] != "damaged" {
			t.Errorf("%v", p)
		}
		if len(m["unseen"].([]any)) != 1 || m["summary"] != "CT 5001 web1: stopped" {
			t.Errorf("%v", m)
		}
		if quiet := surveyed(t, w, `node = "pve9"`); len(quiet["operations"].([]any)) != 0 {
			t.Errorf("%v", quiet)
		}
	})
}

// TestOperationsOfAHalfDoneCluster: somebody else's apply stopped after the destroy; nothing is at hand but an endpoint.
func TestOperationsOfAHalfDoneCluster(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		s := simulate(t, c)
		s.write("main.tf", importOf("web1", 5001)+block("web1", 5001, "web1", template(pvesim.DemoTemplate13), `drop = ["mp2"]`))
		s.server.Inject(pvesim.Fault{Kind: pvesim.FaultStatus, Status: 500, Path: `^/nodes/[^/]+/lxc$`, Params: map[string]string{"vmid": "5001"}, Times: -1, Text: "storage 'local-lvm' is full"})
		s.plan(2)
		s.apply(1)
		s.server.ClearFaults()
		for _, name := range []string{"main.tf", "terraform.tfstate"} {
			s.remove(name)
		}
		s.server.ResetRequests()
		m := surveyed(t, s.workspace, "")
		s.untouched()
		o := row(t, m, "operations")
		if o["status"] != "stuck" || o["guest_exists"] != false || o["stage"] != "create" {
			t.Errorf("%v", o)
		}
		if remedy, _ := o["remedy"].(string); !strings.Contains(remedy, `action = "resume"`) || !strings.Contains(remedy, "import {") {
			t.Errorf("%v", o["remedy"])
		}
		for _, v := range o["volumes"].([]any) {
			if v.(map[string]any)["holder"] != o["parking_vmid"] {
				t.Errorf("%v", v)
			}
		}
		// What it says to paste brings the guest back.
		s.remove("survey.tf")
		s.write("main.tf", importOf("web1", 5001)+block("web1", 5001, "web1", template(pvesim.DemoTemplate13), `drop = ["mp2"]`, o["reconcile"].(string)))
		s.plan(2)
		s.apply(0)
		s.remove("main.tf")
		if after := surveyed(t, s.workspace, "vmid = 5001"); len(after["operations"].([]any)) != 0 || !strings.HasPrefix(after["summary"].(string), "Nothing is half done") {
			t.Errorf("%v", after["summary"])
		}
	})
}
