package provider

import (
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

func TestInstanceCreateInstallsAndThenNothingIsDue(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		d := newDock(t, c)
		d.write("main.tf", vaultBlock(d.shelf.ref("app:1")))
		d.plan(2).says(t, "CT 6001 vault: install")
		if after := d.planned(vault); after["digest"] != d.v1 || after["update_available"] != false {
			t.Errorf("planned %v", after)
		}
		d.apply(0)
		d.did(t, "install")
		state := d.state(vault)
		addresses, _ := state["addresses"].(map[string]any)
		if state["digest"] != d.v1 || state["status"] != "ready" || state["current_node"] != "pve1" || len(addresses) != 1 {
			t.Errorf("state %v", state)
		}
		d.shelf.forget()
		d.plan(0)
		d.apply(0)
		d.did(t, "install")
		if n := d.shelf.count("GET blobs") + d.shelf.count("HEAD blobs") + d.shelf.count("GET manifests"); n != 0 {
			t.Errorf("with nothing due the registry was asked for more than a HEAD: %v", d.shelf.asked)
		}
	})
}

func TestInstanceChangesAreOneOperationEach(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		d := newDock(t, c)
		d.install()
		d.write("main.tf", vaultBlock(d.shelf.ref("app:1"), `memory = "1GiB"`))
		d.plan(2)
		shown, _ := d.planned(vault)["preview"].(map[string]any)
		changes, _ := shown["changes"].(map[string]any)
		if changes["memory"] != "512 → 1024 (live)" {
			t.Errorf("changes %v", changes)
		}
		d.apply(0)
		d.plan(0)
		d.write("main.tf", vaultBlock(d.shelf.ref("app:2"), `memory = "1GiB"`))
		d.plan(2).says(t, "CT 6001 vault: update")
		d.apply(0)
		d.plan(0)
		d.did(t, "install", "modify", "update")
		if state := d.state(vault); state["digest"] != d.v2 {
			t.Errorf("digest %v", state["digest"])
		}
	})
}

// A tag that moves only says so; followed, it makes an update due, and plan and apply mean the digest that the plan showed.
func TestInstanceTagThatMoves(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		d := newDock(t, c)
		d.install()
		moved := d.shelf.put("app:1", imageFor(t, "moved", imageConfig()))
		d.plan(0)
		d.apply(0)
		if state := d.state(vault); state["update_available"] != true || state["available_digest"] != moved || state["digest"] != d.v1 {
			t.Errorf("state %v", state)
		}
		d.write("main.tf", vaultBlock(d.shelf.ref("app:1"), `update = "follow"`))
		d.plan(2).says(t, "CT 6001 vault: update")
		d.shelf.put("app:1", imageFor(t, "moved again", imageConfig()))
		d.apply(0)
		if state := d.state(vault); state["digest"] != moved {
			t.Errorf("the apply took %v, the plan showed %s", state["digest"], moved)
		}
		d.plan(2)
		d.shelf.putAway(true)
		d.plan(0).says(t, "whether there is an update is not known")
		d.did(t, "install", "update")
	})
}

// A followed update that was rolled back waits for the tag to move on; not followed any more, the recorded image is the wanted one.
func TestInstanceFollowedUpdateThatIsRolledBack(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		d := newDock(t, c)
		d.install(`update = "follow"`)
		d.shelf.put("app:1", imageFor(t, "bad", imageConfig()))
		d.change(func(b *berth) { b.fail = &recipe.Result{Status: recipe.StatusRolledBack} })
		d.plan(2)
		d.apply(1)
		d.shelf.forget()
		d.plan(0).says(t, "was rolled back")
		if n := d.shelf.count("GET blobs"); n != 0 {
			t.Errorf("%d blobs of the refused image were fetched", n)
		}
		d.write("main.tf", vaultBlock(d.shelf.ref("app:1")))
		d.plan(2).lacks(t, "was rolled back") // only the argument
		d.apply(0)
		d.write("main.tf", vaultBlock(d.shelf.ref("app:1"), `update = "follow"`))
		good := d.shelf.put("app:1", imageFor(t, "good", imageConfig()))
		d.plan(2)
		d.apply(0)
		d.plan(0)
		if state := d.state(vault); state["digest"] != good || state["status"] != "ready" {
			t.Errorf("state %v", state)
		}
		d.did(t, "install", "update", "update")
	})
}

// Between plan and apply of what a tag was resolved for, the tag may move: then nothing is done.
func TestInstanceTagThatMovesBeforeItsInstall(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		d := newDock(t, c)
		d.write("main.tf", vaultBlock(d.shelf.ref("app:1")))
		d.plan(2)
		moved := d.shelf.put("app:1", imageFor(t, "moved", imageConfig()))
		d.apply(1).says(t, d.v1, moved)
		d.did(t)
	})
}

func TestInstanceWithoutItsRegistry(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		d := newDock(t, c)
		d.install()
		d.shelf.putAway(true)
		d.plan(0)
		d.apply(0)
		if state := d.state(vault); state["update_available"] != nil || state["available_digest"] != nil || state["digest"] != d.v1 {
			t.Errorf("state %v", state)
		}
		d.write("main.tf", vaultBlock(d.shelf.ref("app:1"), `memory = "1GiB"`, `triggers = { again = "1" }`))
		d.plan(2).says(t, "CT 6001 vault: update") // from the recorded digest
		d.write("main.tf", vaultBlock(d.shelf.ref("app:2")))
		d.plan(1).says(t, "image_unresolvable", d.shelf.host)
		d.did(t, "install")
	})
}

// A refused update is recorded with its arguments, and not tried again.
func TestInstanceRolledBackUpdate(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		d := newDock(t, c)
		d.install()
		d.change(func(b *berth) { b.fail = &recipe.Result{Status: recipe.StatusRolledBack} })
		d.write("main.tf", vaultBlock(d.shelf.ref("app:2")))
		d.plan(2)
		d.apply(1).says(t, "Nothing answers on port 8080")
		state := d.state(vault)
		if state["status"] != "rolled_back" || state["digest"] != d.v1 || state["image"] != d.shelf.ref("app:2") || state["update_available"] != true {
			t.Errorf("state %v", state)
		}
		d.shelf.forget()
		d.plan(0)
		if n := d.shelf.count("GET blobs"); n != 0 {
			t.Errorf("%d blobs of the refused image were fetched", n)
		}
		d.shelf.putAway(true) // what was refused is known without it
		d.plan(0).says(t, "CT 6001 vault: the update was rolled back")
		d.shelf.putAway(false)
		d.shelf.put("app:2", imageFor(t, "another 2", imageConfig()))
		d.plan(0)
		d.did(t, "install", "update")
	})
}

// An operation that stopped half-way keeps the old arguments, blocks, and is resumed by one argument.
func TestInstanceStuckUpdate(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		d := newDock(t, c)
		d.install()
		d.change(func(b *berth) {
			b.fail = &recipe.Result{Status: recipe.StatusNeedsReconcile, Stage: "create", Index: 8, Of: 12}
		})
		d.write("main.tf", vaultBlock(d.shelf.ref("app:2")))
		d.plan(2)
		d.apply(1).says(t, "needs_reconcile", "op-6001-20261201-0002", "create")
		if state := d.state(vault); state["image"] != d.shelf.ref("app:1") || state["status"] != "needs_reconcile" {
			t.Errorf("state %v", state)
		}
		d.plan(1).says(t, "needs_reconcile")
		d.write("main.tf", vaultBlock(d.shelf.ref("app:2"), reconcileWith("op-6001-20261201-0002", "resume")))
		d.plan(2)
		d.apply(0)
		d.did(t, "install", "update", "resume")
	})
}

// A failed install leaves no resource, so nothing is tainted; one that stopped half-way is found again by an import.
func TestInstanceFailedInstall(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		d := newDock(t, c)
		d.change(func(b *berth) { b.fail = &recipe.Result{Status: recipe.StatusReady} })
		d.write("main.tf", vaultBlock(d.shelf.ref("app:1")))
		d.plan(2)
		d.apply(1).says(t, "install failed", "Nothing answers on port 8080")
		if state := d.state(vault); state != nil {
			t.Errorf("state %v", state)
		}
		d.change(func(b *berth) {
			b.fail = &recipe.Result{Status: recipe.StatusNeedsReconcile, Stage: "start", Index: 4, Of: 5}
		})
		d.plan(2)
		d.apply(1).says(t, "needs_reconcile", "import {", "pvrx_oci_instance")
		if state := d.state(vault); state != nil {
			t.Errorf("state %v", state)
		}
		d.plan(1).says(t, "needs_reconcile")
		d.write("main.tf", vaultImport+vaultBlock(d.shelf.ref("app:1"), reconcileWith("op-6001-20261201-0002", "resume")))
		d.change(func(b *berth) {
			b.there, b.values = guest.Present, map[string]string{"rootfs": "local-lvm:vm-6001-disk-0,size=4G"}
		})
		d.plan(2).says(t, "CT 6001 vault: resume")
		d.apply(0)
	})
}

// Read drops what nothing has the VMID of any more, and nothing that it cannot see.
func TestInstanceReadDropsOnlyWhatIsGone(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		d := newDock(t, c)
		d.install()
		d.change(func(b *berth) { b.there = guest.PresenceUnknown })
		d.plan(1).says(t, "whether it exists cannot be determined")
		if d.state(vault) == nil {
			t.Error("what cannot be seen was dropped")
		}
		d.change(func(b *berth) {
			b.there, b.open = guest.Absent, &guest.Journal{Operation: "op-6001-20261201-aaaa", State: guest.JournalStuck, Stage: "create"}
		})
		d.plan(1).says(t, "needs_reconcile")
		d.change(func(b *berth) { b.open = nil })
		d.plan(2).says(t, "CT 6001 vault: install", "1 to add")
	})
}

// A container that is this one already is recorded as it is; any other is refused.
func TestInstanceLostState(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		d := newDock(t, c)
		d.install()
		d.remove("terraform.tfstate")
		d.plan(2).says(t, "is recorded as it is", "Nothing is touched")
		d.apply(0)
		d.plan(0)
		d.did(t, "install")
		d.remove("terraform.tfstate")
		d.write("main.tf", vaultBlock(d.shelf.ref("other:1")))
		d.plan(1)
		d.change(func(b *berth) { b.made = nil })
		d.write("main.tf", vaultBlock(d.shelf.ref("app:1")))
		d.plan(1).says(t, "CT 6001: taken")
		d.did(t, "install")
	})
}

func TestInstanceRemoval(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		d := newDock(t, c)
		d.install()
		d.write("main.tf", "")
		d.plan(1).says(t, "deletion_protected")
		d.write("main.tf", vaultBlock(d.shelf.ref("app:1"), "deletion_protection = false"))
		d.plan(2)
		d.apply(0)
		d.did(t, "install")
		d.write("main.tf", "")
		d.plan(2).says(t, "CT 6001 vault: remove")
		d.change(func(b *berth) { b.fail = &recipe.Result{Status: recipe.StatusReady} })
		d.apply(1).says(t, "remove failed", "does not answer")
		if d.state(vault) == nil {
			t.Error("a failed removal was forgotten")
		}
		d.plan(2)
		d.apply(0)
		if d.state(vault) != nil {
			t.Error("a removed container is still in the state")
		}
		d.did(t, "install", "remove", "remove")
	})
}

// What was restored is told from what this state knows, and taken up by consent.
func TestInstanceRestored(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		d := newDock(t, c)
		d.install()
		d.write("main.tf", vaultBlock(d.shelf.ref("app:2")))
		old := *d.made
		d.plan(2)
		d.apply(0)
		d.change(func(b *berth) { b.made = &old })
		d.plan(1).says(t, "restored over itself")
		d.plan(1).says(t, "restored over itself") // a refresh does not make it the truth
		d.did(t, "install", "update")

		d.remove("terraform.tfstate")
		d.change(func(b *berth) { b.made, b.foreign = nil, &old })
		d.write("main.tf", vaultImport+vaultBlock(d.shelf.ref("app:1")))
		d.plan(2).says(t, "CT 6001 vault: adopt")
		d.apply(0)
		d.did(t, "install", "update", "adopt")
		if state := d.state(vault); state["digest"] != d.v1 {
			t.Errorf("digest %v", state["digest"])
		}
	})
}

func TestInstanceChangedSinceThePlan(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		d := newDock(t, c)
		d.install()
		d.write("main.tf", vaultBlock(d.shelf.ref("app:2")))
		d.plan(2)
		d.change(func(b *berth) { b.values["features"] = "nesting=1" })
		d.apply(1).says(t, "has changed since the plan", "features was added.", "Nothing was touched")
		d.did(t, "install")
	})
}

func TestInstanceBlockedIsSkipped(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		d := newDock(t, c, `blocked_guests = "skip"`)
		d.install()
		d.change(func(b *berth) { b.refused = []preview.Blocker{lockedBlocker} })
		d.write("main.tf", vaultBlock(d.shelf.ref("app:2")))
		d.plan(2).says(t, "left alone (locked)")
		d.apply(0)
		d.plan(2).says(t, "left alone (locked)")
		d.did(t, "install")
	})
}

func TestInstanceIsNeverReplaced(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		d := newDock(t, c)
		d.install("deletion_protection = false")
		d.plan(1, "-replace="+vault).says(t, "is never replaced")
		d.write("main.tf", vaultBlock(d.shelf.ref("app:1"), "deletion_protection = false")+
			"resource \"pvrx_oci_instance\" \"twin\" {\n  vmid = 6001\n  hostname = \"vault\"\n  node = \"pve1\"\n  image = \""+d.shelf.ref("app:1")+"\"\n}\n")
		d.plan(1).says(t, "vmid")
		d.did(t, "install")
	})
}

// Variables may come from what is made in the same apply. When they turn out to be the present ones, nothing follows.
func TestInstanceEnvironmentThatIsNotKnownYet(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		d := newDock(t, c)
		late := func(value string) string {
			return "resource \"terraform_data\" \"late\" {\n  triggers_replace = \"" + value + "\"\n  input = \"" + value + "\"\n}\n"
		}
		block := vaultBlock(d.shelf.ref("app:1"), `environment = { KIND = trimprefix(substr(terraform_data.late.id, 0, 1), substr(terraform_data.late.id, 0, 1)) }`)
		d.write("main.tf", late("a")+block)
		d.plan(2)
		d.apply(0)
		d.plan(0)
		d.write("main.tf", late("b")+block)
		d.plan(2)
		d.apply(0)
		d.plan(0)
		d.did(t, "install")
		if state := d.state(vault); state["preview"] != nil || state["status"] != "ready" {
			t.Errorf("state %v", state)
		}
	})
}

// An image that comes from what is made in the same apply counts as changed: the fates are known, the digest is not.
func TestInstanceImageThatIsNotKnownYet(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		d := newDock(t, c)
		late := func(tag string) string {
			return "resource \"terraform_data\" \"late\" {\n  input = \"" + d.shelf.ref("app:"+tag) + "\"\n}\n" +
				strings.Replace(vaultBlock("IMAGE"), `"IMAGE"`, "terraform_data.late.output", 1)
		}
		d.write("main.tf", late("1"))
		d.plan(2)
		d.apply(0)
		d.plan(0)
		d.write("main.tf", late("2"))
		d.plan(2)
		after := d.planned(vault)
		shown, _ := after["preview"].(map[string]any)
		unknown, _ := after["after_unknown"].(map[string]any)
		if shown["operation"] != "update" || unknown["digest"] != true {
			t.Errorf("preview %v, unknown %v", shown, unknown)
		}
		d.apply(0)
		d.plan(0)
		d.did(t, "install", "update")
		if state := d.state(vault); state["digest"] != d.v2 || state["update_available"] != false {
			t.Errorf("state %v", state)
		}
	})
}

// Writing the recorded digest beside the tag, or taking it away, changes nothing, and no blob is fetched to find that out.
func TestInstanceReferenceOfTheSameImage(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		d := newDock(t, c)
		d.install()
		for _, reference := range []string{d.shelf.ref("app:1@" + d.v1), d.shelf.ref("app@" + d.v1), d.shelf.ref("app:1")} {
			d.write("main.tf", vaultBlock(reference))
			d.shelf.forget()
			d.try("plan", "-no-color", "-input=false", "-detailed-exitcode", "-out=p")
			if after := d.planned(vault); after["preview"] != nil || after["digest"] != d.v1 {
				t.Errorf("%s: %v", reference, after)
			}
			d.apply(0)
			d.plan(0)
			if n := d.shelf.count("GET blobs"); n != 0 {
				t.Errorf("%s: %d blobs were fetched", reference, n)
			}
		}
		d.did(t, "install")
	})
}
