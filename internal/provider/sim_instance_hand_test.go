package provider

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// What people do to a container behind a state's back is told from what the configuration asks for, and taken up by consent.

func TestInstanceRestoredOverItself(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		h := newHarbour(t, c)
		block := func(tag string, arguments ...string) string { // on the storage that a restore takes
			return strings.Replace(h.block(tag, arguments...), `"tank"`, `"local-lvm"`, 1)
		}
		h.write("main.tf", block("1"))
		h.plan(2)
		h.apply(0)
		archive := h.world.Backup(shopID, "backup", "nightly", false)
		h.write("main.tf", block("2"))
		h.plan(2)
		h.apply(0)
		root := h.byHand()
		root.must(http.MethodPost, root.path(shopID)+"/status/stop", nil)
		root.must(http.MethodPost, "/nodes/pve1/lxc", map[string]string{
			"vmid": "6001", "restore": "1", "force": "1", "ostemplate": archive, "storage": "local-lvm",
		})
		h.plan(1).says(t, "(contract_differs)", "restored")
		h.plan(1).says(t, "(contract_differs)") // a refresh does not make it the truth
		h.write("main.tf", block("2", "adopt = true"))
		h.plan(2).says(t, "adopt")
		h.apply(0)
		h.plan(2).says(t, "CT 6001 shop: update")
		h.apply(0)
		h.plan(0)
		if version, _ := h.world.ReadFile(shopID, "/version"); version != "2" {
			t.Errorf("version %q", version)
		}
	})
}

func TestC7InstanceRolledBackToASnapshot(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		h := newHarbour(t, c)
		h.installed()
		h.world.Snapshot(shopID, "before")
		h.write("main.tf", h.block("1", domain))
		h.plan(2)
		h.apply(0)
		h.plan(0)
		root := h.byHand()
		root.must(http.MethodPost, root.path(shopID)+"/status/stop", nil)
		root.must(http.MethodPost, root.path(shopID)+"/snapshot/before/rollback", nil)
		root.must(http.MethodPost, root.path(shopID)+"/status/start", nil)
		h.plan(1).says(t, "(contract_differs)", "snapshot")
		h.write("main.tf", h.block("1", domain, "adopt = true"))
		h.plan(2)
		h.apply(0)
		h.plan(2) // what the rollback took away is due again
		h.apply(0)
		h.plan(0)
		if env := h.world.Config(shopID)["env"]; !strings.Contains(env, "DOMAIN=") {
			t.Errorf("environment %q", env)
		}
	})
}

func TestInstanceClone(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		h := newHarbour(t, c)
		h.installed()
		root := h.byHand()
		root.must(http.MethodPost, root.path(shopID)+"/status/stop", nil)
		root.must(http.MethodPost, root.path(shopID)+"/clone", map[string]string{"newid": "6003", "hostname": "shop", "full": "1"})
		twin := strings.Replace(strings.Replace(h.block("1"), `"shop" {`, `"twin" {`, 1), "= 6001", "= 6003", 1)
		h.write("twin.tf", "import {\n  to = pvrx_oci_instance.twin\n  id = \"6003\"\n}\n"+twin)
		h.write("main.tf", h.block("1", "started = false"))
		h.plan(1).says(t, "(duplicate_identity)", "CT 6003 shop and CT 6001 are the same instance")
	})
}

// What is stopped by hand is started again, and nothing else is done to it.
func TestInstanceStoppedByHand(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		h := newHarbour(t, c)
		h.installed()
		root := h.byHand()
		root.must(http.MethodPost, root.path(shopID)+"/status/stop", nil)
		h.plan(2).says(t, "started")
		h.apply(0)
		if !h.world.Running(shopID) {
			t.Error("it is still stopped")
		}
		h.plan(0)
	})
}

// With on_failure = "hold" an update that is not healthy waits for a person, who goes back or goes on.
func TestInstanceUpdateThatIsHeld(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		h := newHarbour(t, c)
		hold := `on_failure = "hold"`
		h.installed(hold)
		h.world.WriteFile(shopID, "/data/marker", "kept")
		h.write("main.tf", h.block("broken", hold))
		h.plan(2)
		h.apply(1).says(t, "(needs_reconcile)", "rollback")
		if status := h.state(shop)["status"]; status != "needs_reconcile" {
			t.Errorf("status %v", status)
		}
		out := h.plan(1)
		out.says(t, "(needs_reconcile)")
		open := regexp.MustCompile(`op-6001-[0-9]{8}-[0-9a-f]{4}`).FindString(out.text)
		h.write("main.tf", h.block("broken", hold, reconcileWith(open, "rollback")))
		h.plan(2).says(t, "rollback")
		h.apply(0)
		version, _ := h.world.ReadFile(shopID, "/version")
		marker, _ := h.world.ReadFile(shopID, "/data/marker")
		if state := h.state(shop); version != "1" || marker != "kept" || state["status"] != "rolled_back" || !h.world.Running(shopID) {
			t.Errorf("version %q, the marker is %q, state %v", version, marker, state)
		}
		h.write("main.tf", h.block("broken", hold))
		h.plan(2) // the argument goes, and nothing else happens
		h.apply(0)
		h.shelf.putAway(true) // what was refused is known without it
		h.plan(0).says(t, "was rolled back")
	})
}
