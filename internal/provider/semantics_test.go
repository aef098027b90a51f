package provider

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// providerArguments makes the fake world reachable: it needs no server, but the schema wants to know where one is.
const providerArguments = `
provider "pvrx" {
  endpoint  = "https://127.0.0.1:1"
  api_token = "ci@pve!t=7d2f9c7e"
%s}
`

// block is a resource block for a container.
func block(label string, id guest.VMID, name string, arguments ...string) string {
	return fmt.Sprintf("resource \"pvrx_container_reinstall\" %q {\n  vmid = %d\n  name = %q\n  %s\n}\n", label, id, name, strings.Join(arguments, "\n  "))
}

func importOf(label string, id guest.VMID) string {
	return fmt.Sprintf("import {\n  to = pvrx_container_reinstall.%s\n  id = \"%d\"\n}\n", label, id)
}

func template(id string) string { return fmt.Sprintf("template = %q", id) }

// desk is a workspace over a fake world.
func desk(t *testing.T, c cli, w *world, arguments ...string) *workspace {
	t.Helper()
	ws := newWorkspace(t, c, attach(t, w.provider()))
	ws.write("provider.tf", fmt.Sprintf(providerArguments, "  "+strings.Join(arguments, "\n  ")+"\n"))
	return ws
}

const web1 = "pvrx_container_reinstall.web1"

// reinstalled brings CT 5001 to a reinstalled state.
func reinstalled(t *testing.T, c cli, w *world, arguments ...string) *workspace {
	t.Helper()
	ws := desk(t, c, w, arguments...)
	ws.write("import.tf", importOf("web1", 5001))
	ws.write("main.tf", block("web1", 5001, "web1", template(debian12)))
	ws.plan(2)
	ws.apply(0)
	w.did(t, "5001 reinstall")
	return ws
}

func TestImportReinstallsOnceAndThePlanAfterIsEmpty(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		w := newWorld(5001)
		ws := desk(t, c, w)
		ws.write("import.tf", importOf("web1", 5001))
		ws.write("main.tf", block("web1", 5001, "web1", template(debian13)))
		out := ws.plan(2)
		out.says(t, "1 to import, 0 to add, 1 to change, 0 to destroy", "Warning: CT 5001 web1: reinstall: 1 volume stays, 1 is erased")
		after := ws.planned(web1)
		shown, ok := after["preview"].(map[string]any)
		if !ok || shown["operation"] != "reinstall" || shown["erased_bytes"] != float64(8<<30) || shown["schema"] != float64(1) {
			t.Errorf("preview = %v", after["preview"])
		}
		w.did(t)
		ws.apply(0)
		w.did(t, "5001 reinstall")
		looks := w.looked()
		ws.plan(0)
		if n := w.looked() - looks; n != 1 {
			t.Errorf("a plan without changes looked %d times, want 1", n)
		}
		state := ws.state(web1)
		if state["status"] != "ready" || state["node"] != "pve1" {
			t.Errorf("state = %v", state)
		}
	})
}

func TestSecondOperationShowsItsWholePreviewAndFewOtherLines(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		w := newWorld(5001)
		ws := reinstalled(t, c, w)
		ws.write("main.tf", block("web1", 5001, "web1", template(debian12), `triggers = { again = "1" }`))
		out := ws.plan(2)
		out.says(t, "+ preview", "+ operation = \"reinstall\"", "preserved reattached 100 GiB local-lvm:vm-5001-disk-1")
		out.lacks(t, "-> null")
		ws.apply(0)
		w.did(t, "5001 reinstall", "5001 reinstall")
		ws.plan(0)
	})
}

func TestCreateNeverTouchesAGuest(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		w := newWorld(5001)
		ws := desk(t, c, w)
		ws.write("main.tf", block("web1", 5001, "web1", template(debian13)))
		ws.plan(1).says(t, "CT 5001 web1 exists and is not in this state", "import {", `id = "5001"`, "adopt = true")

		ws.write("main.tf", block("web1", 5001, "web1", template(debian13), "adopt = true"))
		ws.plan(2).says(t, "1 to add", "CT 5001 web1 is recorded as it is")
		ws.apply(0)
		ws.plan(0)
		w.did(t)

		ws.write("main.tf", block("web1", 5009, "web9", template(debian13), "adopt = true"))
		ws.plan(1).says(t, "vmid cannot change to 5009")
		w.did(t)
	})
}

func TestLostStateAdoptsByContract(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		w := newWorld(5001)
		ws := reinstalled(t, c, w)
		ws.remove("import.tf")
		ws.remove("terraform.tfstate")
		ws.plan(2).says(t, "1 to add", "is recorded as it is")
		ws.apply(0)
		ws.plan(0)
		w.did(t, "5001 reinstall")
	})
}

func TestContractWipedByAnotherToolReinstallsNothing(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		w := newWorld(5001)
		ws := reinstalled(t, c, w)
		w.change(5001, func(c *container) { c.contract = nil })
		ws.plan(0)
		w.did(t, "5001 reinstall")
	})
}

func TestReplaceAndTaintAreRefused(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		w := newWorld(5001)
		ws := reinstalled(t, c, w)
		ws.plan(1, "-replace="+web1).says(t, "CT 5001 web1: it is in this state already, and is never replaced")
		ws.run(0, "taint", web1)
		ws.plan(1).says(t, "CT 5001 web1: it is in this state already, and is never replaced")
		ws.run(0, "untaint", web1)
		ws.plan(0)
		w.did(t, "5001 reinstall")
	})
}

func TestForgettingSaysSo(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		w := newWorld(5001)
		ws := reinstalled(t, c, w)
		ws.remove("import.tf")
		ws.remove("main.tf")
		ws.plan(2).says(t, "will be destroyed", "CT 5001 web1 is only forgotten; nothing is touched")
		ws.apply(0)
		w.did(t, "5001 reinstall")
		if got := ws.state(web1); got != nil {
			t.Errorf("state = %v", got)
		}
	})
}

func TestGuestChangedBetweenPlanAndApply(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		w := newWorld(5001)
		ws := desk(t, c, w)
		ws.write("import.tf", importOf("web1", 5001))
		ws.write("main.tf", block("web1", 5001, "web1", template(debian13)))
		ws.plan(2)
		w.change(5001, func(c *container) { c.values["mp1"] = "local-lvm:vm-5001-disk-9,mp=/new,size=4G" })
		ws.apply(1).says(t, "CT 5001 web1 has changed since the plan", "mp1", "Nothing was touched. Plan again")
		w.did(t)
		ws.plan(2)
		ws.apply(0)
		w.did(t, "5001 reinstall")
	})
}

func TestFailureNeedsReconcileThenResume(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		w := newWorld(5001)
		ws := reinstalled(t, c, w)
		w.change(5001, func(c *container) {
			c.fail = &recipe.Result{Status: recipe.StatusNeedsReconcile, Stage: "create", Index: 8, Of: 12, Exists: new(false), Parking: 900012}
		})
		ws.write("main.tf", block("web1", 5001, "web1", template(debian13)))
		ws.plan(2)
		ws.apply(1).says(t, "CT 5001 web1: an operation stopped half-way (needs_reconcile)",
			"op-5001-20261201-0002 stopped at stage 8 of 12, create: Storage 'local-lvm' is full.", "CT 5001 does not exist now.", "CT 900012",
			`reconcile = { operation = "op-5001-20261201-0002", action = "resume" }`)
		state := ws.state(web1)
		if state["status"] != "needs_reconcile" || state["template"] != debian12 {
			t.Errorf("status %v, template %v: want needs_reconcile and the old template", state["status"], state["template"])
		}
		last, _ := state["last_operation"].(map[string]any)
		if last["id"] != "op-5001-20261201-0002" || last["stage"] != "create" || last["guest_exists"] != false || last["parking_vmid"] != float64(900012) {
			t.Errorf("last_operation = %v", last)
		}
		ws.plan(1).says(t, "needs_reconcile")
		w.did(t, "5001 reinstall", "5001 reinstall")

		resume := `reconcile = { operation = "op-5001-20261201-0002", action = "resume" }`
		ws.write("main.tf", block("web1", 5001, "web1", template(debian13), resume))
		ws.plan(2).says(t, "CT 5001 web1: resume")
		ws.apply(0)
		w.did(t, "5001 reinstall", "5001 reinstall", "5001 resume")
		ws.plan(0)
		ws.write("main.tf", block("web1", 5001, "web1", template(debian13)))
		ws.plan(2)
		ws.apply(0)
		ws.plan(0)
		w.did(t, "5001 reinstall", "5001 reinstall", "5001 resume")
	})
}

func TestRollbackIsNotDoneAgainUntilSomethingChanges(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		w := newWorld(5001)
		ws := reinstalled(t, c, w)
		w.change(5001, func(c *container) {
			c.fail = &recipe.Result{Status: recipe.StatusNeedsReconcile, Stage: "start", Index: 11, Of: 12, Exists: new(true)}
		})
		ws.write("main.tf", block("web1", 5001, "web1", template(debian13)))
		ws.plan(2)
		ws.apply(1)
		ws.write("main.tf", block("web1", 5001, "web1", template(debian13),
			`reconcile = { operation = "op-5001-20261201-0002", action = "rollback" }`))
		ws.plan(2)
		ws.apply(0)
		state := ws.state(web1)
		if state["status"] != "rolled_back" {
			t.Errorf("status = %v", state["status"])
		}
		ws.plan(0).says(t, "this install was rolled back and is not done again")
		w.did(t, "5001 reinstall", "5001 reinstall", "5001 rollback")
	})
}

func TestBlockedGuestFailsThePlan(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		w := newWorld(5001)
		w.change(5001, locked)
		ws := desk(t, c, w)
		ws.write("import.tf", importOf("web1", 5001))
		ws.write("main.tf", block("web1", 5001, "web1", template(debian13)))
		ws.plan(1).says(t, "Error: CT 5001 web1: it is locked (locked)", "The lock is backup.", "Wait for it.")
		w.did(t)
	})
}

func TestBlockedGuestIsSkippedAndStaysDue(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		w := newWorld(5001, 5002, 5003)
		w.change(5002, locked)
		ws := desk(t, c, w, `blocked_guests = "skip"`)
		for i, id := range []guest.VMID{5001, 5002, 5003} {
			name := fmt.Sprintf("web%d", i+1)
			ws.write(name+".tf", importOf(name, id)+block(name, id, name, template(debian13)))
		}
		ws.plan(2).says(t, "Warning: CT 5002 web2: left alone (locked)")
		ws.apply(0)
		if len(w.applied) != 2 {
			t.Errorf("operations done: %v", w.applied)
		}
		ws.plan(2).says(t, "Warning: CT 5002 web2: left alone (locked)", "0 to add, 1 to change")
		w.change(5002, func(c *container) { c.blockers = nil })
		ws.plan(2)
		ws.apply(0)
		ws.plan(0)
		if len(w.applied) != 3 {
			t.Errorf("operations done: %v", w.applied)
		}
	})
}

func TestStopAfterFailureStartsNothingMore(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		w := newWorld(5001, 5002)
		for _, id := range []guest.VMID{5001, 5002} {
			w.change(id, func(c *container) {
				c.fail = &recipe.Result{Status: recipe.StatusNeedsReconcile, Stage: "create", Index: 8, Of: 12}
			})
		}
		ws := desk(t, c, w)
		for i, id := range []guest.VMID{5001, 5002} {
			name := fmt.Sprintf("web%d", i+1)
			ws.write(name+".tf", importOf(name, id)+block(name, id, name, template(debian13)))
		}
		ws.plan(2)
		ws.apply(1).says(t, "not started, because another operation stopped half-way", "exists could not be determined")
		if len(w.applied) != 1 {
			t.Errorf("operations done: %v, want one", w.applied)
		}
	})
}

func TestTwoBlocksForOneGuest(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		w := newWorld(5001)
		ws := desk(t, c, w)
		ws.write("main.tf", importOf("web1", 5001)+block("web1", 5001, "web1", template(debian13))+
			importOf("again", 5001)+block("again", 5001, "web1", template(debian13)))
		ws.plan(1).says(t, "CT 5001 web1: two blocks name it (duplicate)")
		w.did(t)
	})
}

func TestGrowAlone(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		w := newWorld(5001)
		ws := reinstalled(t, c, w)
		ws.write("main.tf", block("web1", 5001, "web1", template(debian12), `rootfs = { size = "9GiB" }`))
		ws.plan(2).says(t, "CT 5001 web1: grow")
		ws.apply(0)
		ws.plan(0)
		ws.write("main.tf", block("web1", 5001, "web1", template(debian12), `rootfs = { size = "7GiB" }`))
		ws.plan(2).lacks(t, "Warning")
		ws.apply(0)
		ws.plan(0)
		if len(w.applied) != 2 {
			t.Errorf("operations done: %v, want a reinstall and a grow", w.applied)
		}
	})
}

func TestUnknownTemplateCountsAsChanged(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		w := newWorld(5001)
		ws := reinstalled(t, c, w)
		ws.write("main.tf", block("web1", 5001, "web1", "template = terraform_data.t.output")+
			fmt.Sprintf("resource \"terraform_data\" \"t\" {\n  input = %q\n}\n", debian13))
		ws.plan(2)
		shown, _ := ws.planned(web1)["preview"].(map[string]any)
		if fates, _ := shown["fates"].(map[string]any); len(fates) != 2 {
			t.Errorf("fates are not known: %v", shown)
		}
		ws.apply(0)
		ws.plan(0)
		w.did(t, "5001 reinstall", "5001 reinstall")
	})
}

func TestUnknownDecisiveArgumentsAreRefused(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		for argument, value := range map[string]string{
			"erase": `{ mp0 = terraform_data.t.output }`, "drop": `[terraform_data.t.output]`,
			"rootfs": `{ size = terraform_data.t.output }`, "name": "terraform_data.t.output",
		} {
			w := newWorld(5001)
			ws := desk(t, c, w)
			body := block("web1", 5001, "web1", template(debian13), argument+" = "+value)
			if argument == "name" {
				body = strings.Replace(body, `name = "web1"`, "", 1)
			}
			ws.write("main.tf", importOf("web1", 5001)+body+"resource \"terraform_data\" \"t\" {\n  input = \"9GiB\"\n}\n")
			ws.plan(1).says(t, argument+" is not known at plan")
		}
	})
}

func TestPasswordIsNowhere(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-correct-horse"
	everyCLI(t, func(t *testing.T, c cli) {
		w := newWorld(5001)
		ws := desk(t, c, w)
		ws.env = append(ws.env, "TF_LOG=TRACE", "TF_LOG_PATH="+ws.dir+"/log")
		ws.write("main.tf", importOf("web1", 5001)+block("web1", 5001, "web1", template(debian13), "root_password_wo = var.pw")+
			"variable \"pw\" {\n  type = string\n  ephemeral = true\n  default = null\n}\n")
		given := func(do func()) {
			bare := slices.Clone(ws.env)
			ws.env = append(ws.env, "TF_VAR_pw="+secret)
			do()
			ws.env = bare
		}
		given(func() { ws.plan(2) })
		shown, _ := ws.planned(web1)["preview"].(map[string]any)
		if shown["root_password"] != "given" {
			t.Errorf("root_password = %v", shown["root_password"])
		}
		ws.apply(1)
		w.did(t)
		given(func() {
			ws.plan(2)
			ws.apply(0)
		})
		if len(w.passwords) != 1 || w.passwords[0] != secret {
			t.Errorf("the recipe was handed %q", w.passwords)
		}
		for _, file := range []string{"terraform.tfstate", "p", "log"} {
			if strings.Contains(ws.read(file), secret) {
				t.Errorf("%s holds the password", file)
			}
		}
	})
}

func locked(c *container) {
	c.blockers = append(c.blockers, lockedBlocker)
}
