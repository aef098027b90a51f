package provider

import (
	"strings"
	"testing"
)

func TestAddressesThatShiftReinstallNothing(t *testing.T) {
	t.Parallel()
	const fleet = `
locals { fleet = ["web1", "web2", "web3"] }
resource "pvrx_container_reinstall" "all" {
  count    = length(local.fleet)
  vmid     = 5000 + tonumber(trimprefix(local.fleet[count.index], "web"))
  name     = local.fleet[count.index]
  template = "` + debian13 + `"
}
import {
  for_each = ["5001", "5002", "5003"]
  to       = pvrx_container_reinstall.all[each.key]
  id       = each.value
}
`
	everyCLI(t, func(t *testing.T, c cli) {
		w := newWorld(5001, 5002, 5003)
		ws := desk(t, c, w)
		ws.write("main.tf", fleet)
		ws.plan(2).says(t, "3 to import, 0 to add, 3 to change")
		ws.apply(0)
		ws.plan(0)
		// The first of a counted list goes away: every address means another guest now.
		shifted, _, _ := strings.Cut(fleet, "import {")
		ws.write("main.tf", strings.Replace(shifted, `"web1", "web2", "web3"`, `"web2", "web3"`, 1))
		ws.plan(1).says(t, "vmid cannot change to 5002")
		if len(w.applied) != 3 {
			t.Errorf("operations done: %v, want three", w.applied)
		}
	})
}

func TestTargetTouchesOnlyItsTarget(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		w := newWorld(5001, 5002)
		ws := desk(t, c, w)
		ws.write("main.tf", importOf("web1", 5001)+block("web1", 5001, "web1", template(debian13))+
			importOf("web2", 5002)+block("web2", 5002, "web2", template(debian13)))
		ws.plan(2, "-target="+web1)
		ws.apply(0)
		w.did(t, "5001 reinstall")
	})
}

func TestMovedBlockStaysOneGuest(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		w := newWorld(5001)
		ws := reinstalled(t, c, w)
		ws.remove("import.tf")
		ws.write("main.tf", block("www", 5001, "web1", template(debian12)))
		ws.write("moved.tf", "moved {\n  from = "+web1+"\n  to = pvrx_container_reinstall.www\n}\n")
		ws.plan(2).says(t, "has moved to")
		ws.apply(0)
		ws.plan(0)
		w.did(t, "5001 reinstall")
	})
}

func TestRefreshOffStillComparesBeforeItActs(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		w := newWorld(5001)
		ws := reinstalled(t, c, w)
		ws.write("main.tf", block("web1", 5001, "web1", template(debian13)))
		w.change(5001, func(c *container) { c.values["mp1"] = "local-lvm:vm-5001-disk-9,mp=/new,size=4G" })
		ws.plan(1, "-refresh=false").says(t, "CT 5001 web1 has changed since the plan", "without -refresh=false")
		ws.plan(2)
		ws.apply(0)
		w.did(t, "5001 reinstall", "5001 reinstall")
	})
}

func TestReconcileNamingAFinishedOperationIsInert(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		w := newWorld(5001)
		ws := reinstalled(t, c, w)
		ws.write("main.tf", block("web1", 5001, "web1", template(debian12),
			`reconcile = { operation = "op-5001-20260101-aaaa", action = "rollback" }`))
		ws.plan(2).lacks(t, "Warning")
		ws.apply(0)
		ws.plan(0)
		ws.write("main.tf", block("web1", 5001, "web1", template(debian12)))
		ws.plan(2)
		ws.apply(0)
		ws.plan(0)
		w.did(t, "5001 reinstall")
	})
}
