package provider

import (
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
)

// failureCases are the three places past the point of no return where an operation can stop.
func failureCases() map[string]struct {
	fault  pvesim.Fault
	exists any // what last_operation.guest_exists says
} {
	return map[string]struct {
		fault  pvesim.Fault
		exists any
	}{
		"destroy": {pvesim.Fault{
			Kind: pvesim.FaultTaskKill, Method: "DELETE", Path: `^/nodes/pve1/lxc/5001$`, At: "rootfs-freed",
		}, true},
		"create": {pvesim.Fault{
			Kind: pvesim.FaultTaskFail, Method: "POST", Path: `^/nodes/pve1/lxc$`, Params: map[string]string{"vmid": "5001"}, Times: -1,
			Text: "storage 'local-lvm' is full",
		}, false},
		"return": {pvesim.Fault{
			Kind: pvesim.FaultTaskFail, Method: "POST", Path: `^/nodes/pve1/lxc/9\d+/move_volume$`, Times: -1, Text: "no such logical volume",
		}, true},
	}
}

func TestFailuresPastThePointNeedReconcilingAndResume(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		for name, row := range failureCases() {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := simulate(t, c)
				s.imported()
				data := identity(t, s, s.world.VolumeOf(web, "mp0"))
				s.plan(2)
				s.server.Inject(row.fault)
				out := s.apply(1)
				out.says(t, "(needs_reconcile)", "CT 5001", `action = "resume"`)
				if s.server.FaultsStruck() == 0 {
					t.Fatal("the fault never struck")
				}
				state := s.state(web1)
				last, _ := state["last_operation"].(map[string]any)
				if state["status"] != "needs_reconcile" || last["stage"] == nil || last["guest_exists"] != row.exists || state["template"] == pvesim.DemoTemplate13 {
					t.Errorf("status %v, last_operation %v, template %v", state["status"], last, state["template"])
				}
				id, _ := last["id"].(string)
				if _, found := s.world.VolumeByIdentity(data.Identity); !found {
					t.Fatal("the data is gone")
				}
				s.server.ClearFaults()

				s.server.ResetRequests()
				s.plan(1).says(t, "(needs_reconcile)", id)
				s.untouched()

				s.imported(`reconcile = { operation = "` + id + `", action = "resume" }`)
				s.plan(2).says(t, "resume")
				s.apply(0)
				if now, found := s.world.VolumeByIdentity(data.Identity); !found || now.ID != s.world.VolumeOf(web, "mp0") || now.Digest() != data.Digest() {
					t.Errorf("the data is not back: %+v", now)
				}
				if text, _ := s.world.ReadFile(web, "/etc/debian_version"); text != "13" {
					t.Errorf("the new system is %q", text)
				}
				if got := s.state(web1); got["status"] != "ready" {
					t.Errorf("status = %v", got["status"])
				}
				s.plan(0)
				s.imported()
				s.run(0, "apply", "-no-color", "-input=false", "-auto-approve")
				s.plan(0)
				if log := s.world.Config(web)["description"]; strings.Contains(log, id+" stage") {
					t.Errorf("a journal is left behind: %s", log)
				}
			})
		}
	})
}

func TestLostStateFindsTheOpenOperationAgain(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		s := simulate(t, c)
		s.imported()
		s.plan(2)
		s.server.Inject(failureCases()["create"].fault)
		s.apply(1)
		s.server.ClearFaults()
		s.remove("terraform.tfstate")
		s.plan(1).says(t, "(needs_reconcile)", "CT 5001 web1", `action = "resume"`)
		s.write("main.tf", web1Block())
		s.plan(1).says(t, "an operation on it is open and it is not in this state", "import {")
	})
}

func TestTwoPipelines(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		s := simulate(t, c)
		s.imported()
		s.plan(2)
		var other output
		second := newWorkspace(t, c, s.env...)
		second.write("provider.tf", s.read("provider.tf"))
		second.write("main.tf", s.read("main.tf"))
		s.server.Inject(pvesim.Fault{
			Kind: pvesim.FaultWorldAfter, Method: "POST", Path: `^/nodes/pve1/lxc/5001/status/shutdown$`,
			World: func(*pvesim.Cluster) { other = second.plan(1) },
		})
		s.apply(0)
		other.says(t, "(operation_in_flight)", "CT 5001")
		s.plan(0)
	})
}

func TestFailureBeforeThePointLeavesEverythingAsItWas(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		s := simulate(t, c)
		s.imported()
		s.plan(2)
		before := s.world.Dump(pvesim.IgnoreIdentity())
		s.server.Inject(pvesim.Fault{
			Kind: pvesim.FaultTaskFail, Method: "POST", Path: `^/nodes/pve1/lxc$`, Text: "unable to create CT: template is damaged", Times: -1,
		})
		s.apply(1).says(t, "CT 5001 web1", "template is damaged")
		if after := s.world.Dump(pvesim.IgnoreIdentity()); after != before {
			t.Errorf("the cluster changed:\n%s\nwas:\n%s", after, before)
		}
		if got := s.state(web1); got["status"] != "ready" {
			t.Errorf("status = %v", got["status"])
		}
		s.server.ClearFaults()
		s.plan(2)
		s.apply(0)
		s.plan(0)
	})
}

func TestRehearsalOnlyLeavesEverythingAsItWasAndStaysDue(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		s := simulate(t, c)
		s.imported("rehearse_only = true")
		before := s.world.Dump(pvesim.IgnoreIdentity())
		s.plan(2)
		s.apply(0)
		if after := s.world.Dump(pvesim.IgnoreIdentity()); after != before {
			t.Errorf("the cluster changed:\n%s\nwas:\n%s", after, before)
		}
		for _, r := range s.server.Requests() {
			if r.Mutates() && strings.Contains(r.Path, "/lxc/5001/status/") {
				t.Errorf("the guest was touched: %s %s", r.Method, r.Path)
			}
		}
		s.plan(2)
	})
}
