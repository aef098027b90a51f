package provider

import (
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
)

func TestRightsThatADestroyTakesAwayAreRefusedAtPlan(t *testing.T) {
	t.Parallel()
	vms := pvesim.DemoRights()["/vms"]
	rows := map[string]struct {
		world func(s *simulation)
		says  []string
	}{
		"only on the guest's own path": {func(s *simulation) {
			s.world.SetRights("pvrx@pve!demo", "/vms")
			s.world.SetRights("pvrx@pve!demo", "/vms/5001", vms...)
			for _, id := range []string{"900000", "900001"} {
				s.world.SetRights("pvrx@pve!demo", "/vms/"+id, vms...)
			}
		}, []string{"(privileges)", "/vms/5001", "destroy removes"}},
		"only through the pool": {func(s *simulation) {
			s.world.SetRights("pvrx@pve!demo", "/vms", "VM.Audit")
			s.world.SetRights("pvrx@pve!demo", "/pool/web", append([]string{"Pool.Audit", "Pool.Allocate"}, vms...)...)
		}, []string{"(privileges)", "/vms/5001"}},
		"no right on the bridge": {func(s *simulation) {
			s.world.SetRights("pvrx@pve!demo", "/sdn/zones/localnetwork")
		}, []string{"(privileges)", "SDN.Use"}},
		"no right on the storage of the data": {func(s *simulation) {
			s.world.SetRights("pvrx@pve!demo", "/storage/tank", "Datastore.Audit")
		}, []string{"(privileges)", "Datastore.AllocateSpace", "/storage/tank"}},
		"tasks cannot be seen": {func(s *simulation) {
			s.world.SetRights("pvrx@pve!demo", "/nodes")
			s.world.SetRights("pvrx@pve!demo", "/")
		}, []string{"(privileges)", "Sys.Audit"}},
	}
	everyCLI(t, func(t *testing.T, c cli) {
		for name, row := range rows {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := simulate(t, c)
				row.world(s)
				s.imported()
				s.plan(1).says(t, row.says...)
				s.untouched()
			})
		}
	})
}

func TestWhatNoPlanCanSeeIsStoppedByTheRehearsal(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		s := simulate(t, c)
		s.imported()
		s.plan(2)
		// A policy that no list shows: the create is refused, on the spare VMID first.
		s.server.Inject(pvesim.Fault{
			Kind: pvesim.FaultStatus, Method: "POST", Path: `^/nodes/pve1/lxc$`, Status: 403, Text: "Permission check failed (user-privileged-only)", Times: -1,
		})
		s.apply(1).says(t, "CT 5001 web1", "user-privileged-only")
		for _, r := range s.server.Requests() {
			if r.Mutates() && strings.HasPrefix(r.Path, "/nodes/pve1/lxc/5001/status/") {
				t.Errorf("the guest was stopped: %s", r.Path)
			}
		}
		if !s.world.Running(web) {
			t.Error("it ran before and does not now")
		}
		if got := s.state(web1)["status"]; got != "ready" {
			t.Errorf("status = %v", got)
		}
	})
}

func TestRequestsOfAPlan(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		s := simulate(t, c)
		s.imported()
		s.plan(2)
		if n := guestReads(s, web); n > 6 {
			t.Errorf("a plan with an operation made %d requests about the guest, want at most 6: %v", n, paths(s))
		}
		seen := map[string]int{}
		for _, r := range s.server.Requests() {
			if !strings.Contains(r.Path, "/lxc/5001/") {
				seen[r.Path+"?"+r.Params["path"]+r.Params["type"]+r.Params["vmid"]+r.Params["statuses"]+r.Params["content"]]++
			}
		}
		for path, n := range seen {
			most := 1
			if strings.HasPrefix(path, "/cluster/resources") || strings.HasPrefix(path, "/access/permissions") {
				most = 2 // pools are told by the same list, and what can be granted again by the same rights
			}
			if n > most {
				t.Errorf("%s was asked %d times in one plan", path, n)
			}
		}
	})
}

// paths are the requests about the demo container.
func paths(s *simulation) (all []string) {
	for _, r := range s.server.Requests() {
		if strings.Contains(r.Path, "/lxc/5001/") {
			all = append(all, r.Path)
		}
	}
	return all
}
