package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// berth is one application container in memory behind the instance operator: enough to test what Terraform is told.
type berth struct {
	world // what a provider needs of the other kinds of guests

	mu      sync.Mutex
	there   guest.Presence
	running bool
	values  map[string]string
	env     map[string]string
	made    *guest.Contract
	foreign *guest.Contract
	open    *guest.Journal
	written int64 // time of the last contract
	done    []string
	refused []preview.Blocker
	// fail is how the next operation ends.
	fail *recipe.Result
}

const berthID = guest.VMID(6001)

func newBerth() *berth {
	return &berth{there: guest.Absent, world: world{guests: map[guest.VMID]*container{}}, written: 1764576000}
}

// provider returns a provider of this world.
func (b *berth) provider() *Provider {
	p := New("test")
	p.connect = func(context.Context, setup) (operator, error) { return b, nil }
	return p
}

// change changes the container by hand.
func (b *berth) change(how func(b *berth)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	how(b)
}

// did demands the operations that were done.
func (b *berth) did(t *testing.T, want ...string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if fmt.Sprint(b.done) != fmt.Sprint(want) {
		t.Errorf("operations done: %v, want %v", b.done, want)
	}
}

func (b *berth) Machine(context.Context, string) (string, error) { return "x86_64", nil }

func (b *berth) Observe(context.Context, guest.VMID) (recipe.Observation, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ref := guest.Ref{VMID: berthID, Kind: guest.KindContainer, Node: "pve1"}
	seen := recipe.Observation{Presence: b.there, Ref: ref, Journal: b.open}
	if b.there != guest.Present {
		seen.Ref.Node = ""
		return seen, nil
	}
	seen.Name, seen.Running, seen.Contract, seen.Foreign = "vault", b.running, b.made, b.foreign
	seen.Config = guest.Config{Values: maps.Clone(b.values)}
	seen.Acknowledged = preview.Acknowledge(guest.Guest{Ref: ref, Config: seen.Config})
	return seen, nil
}

func (b *berth) Addresses(context.Context, guest.Ref) (map[string][]string, error) {
	return map[string][]string{"bc:24:11:00:00:01": {"10.0.0.5", "fe80::1"}}, nil
}

func (b *berth) Plan(_ context.Context, seen recipe.Observation, w preview.Want) (preview.Preview, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := preview.Preview{Acknowledged: seen.Acknowledged, Precondition: seen.Acknowledged.Precondition(), Blockers: b.refused}
	contract := seen.Contract
	switch {
	case seen.Journal != nil:
		p.Operation = preview.OpUpdate
		p.Blockers = append(p.Blockers, preview.Blocker{
			Code: preview.CodeNeedsReconcile, Attribute: "reconcile",
			Title: "CT 6001 vault: an operation stopped half-way (needs_reconcile)", Found: seen.Journal.Operation + " stopped.", Remedy: "Say how to go on.",
		})
	case seen.Presence == guest.Absent:
		p.Operation = preview.OpInstall
	case seen.Foreign != nil:
		p.Operation = preview.OpAdopt
	case contract == nil:
		p.Blockers = append(p.Blockers, preview.Blocker{Code: preview.CodeTargetInUse, Attribute: "vmid", Title: "CT 6001: taken", Found: "It is.", Remedy: "No."})
	case w.Instance.KnownAt > contract.At:
		p.Blockers = append(p.Blockers, preview.Blocker{Code: preview.CodeNameMismatch, Title: "CT 6001 vault: restored over itself", Found: "It was.", Remedy: "Adopt."})
	case !contract.Installed.Same(w.Install()) && len(contract.Declined) > 0 && contract.Declined[0] == w.Install().Hash():
		p.Warnings = []string{"CT 6001 vault: the update was rolled back"}
	case !contract.Installed.Same(w.Install()):
		p.Operation = preview.OpUpdate
		p.Changes = []preview.Change{{What: "image", From: contract.Installed.Template, To: w.Install().Template, Takes: preview.TakesRootfs}}
	default:
		if !maps.Equal(b.env, w.Instance.Environment) {
			p.Changes = append(p.Changes, preview.Change{What: "environment", To: fmt.Sprint(len(w.Instance.Environment)), Takes: preview.TakesRestart})
		}
		if m := w.Instance.Settings["memory"]; m != "" && m != b.values["memory"] {
			p.Changes = append(p.Changes, preview.Change{What: "memory", From: b.values["memory"], To: m, Takes: preview.TakesNothing})
		}
		if len(p.Changes) > 0 {
			p.Operation = preview.OpModify
		}
	}
	if why := w.Instance.Image.Why; why != "" {
		p.Blockers = append(p.Blockers, preview.Blocker{Code: preview.CodeTemplateMissing, Attribute: "image", Title: "CT 6001 vault: image_unresolvable", Found: why, Remedy: "Wait."})
	}
	if p.Operation != 0 {
		p.Summary = fmt.Sprintf("CT 6001 vault: %s", p.Operation)
	}
	return p, nil
}

func (b *berth) PlanReconcile(_ context.Context, seen recipe.Observation, _ preview.Want, r recipe.Reconcile) (preview.Preview, error) {
	op, known := preview.ParseOperation(r.Action)
	if !known {
		return preview.Preview{}, errors.New("no such action")
	}
	return preview.Preview{Operation: op, Summary: "CT 6001 vault: " + r.Action, Acknowledged: seen.Acknowledged}, nil
}

func (b *berth) PlanRemove(_ context.Context, seen recipe.Observation, w preview.Want) (preview.Preview, error) {
	p := preview.Preview{Operation: preview.OpRemove, Summary: "CT 6001 vault: remove", Acknowledged: seen.Acknowledged}
	if w.Instance.Protected {
		p.Blockers = []preview.Blocker{{
			Code: preview.CodeProtected, Attribute: "deletion_protection", Title: "CT 6001 vault: deletion_protected",
			Found: "deletion_protection is true.", Remedy: "Set it to false.",
		}}
	}
	return p, nil
}

func (b *berth) Apply(_ context.Context, req recipe.Request) (recipe.Result, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := req.Want
	install := w.Install()
	word := "modify"
	switch {
	case req.Reconcile != nil:
		word = req.Reconcile.Action
	case b.there == guest.Absent:
		word = "install"
	case b.foreign != nil:
		word = "adopt"
	case b.made != nil && !b.made.Installed.Same(install):
		word = "update"
	}
	b.done = append(b.done, word)
	b.written++
	result := recipe.Result{Status: recipe.StatusReady, Operation: fmt.Sprintf("op-6001-20261201-%04d", len(b.done)), Installed: &install, Changed: true}
	if f := b.fail; f != nil {
		b.fail = nil
		result.Status, result.Stage, result.Index, result.Of, result.Exists = f.Status, f.Stage, f.Index, f.Of, f.Exists
		switch f.Status {
		case recipe.StatusNeedsReconcile:
			b.open = &guest.Journal{Operation: result.Operation, State: guest.JournalStuck, Stage: f.Stage}
		case recipe.StatusRolledBack:
			b.made.Declined, b.made.At = []string{install.Hash()}, b.written
		case recipe.StatusReady, recipe.StatusInProgress, recipe.StatusAwaitingTrust:
		}
		return result, errors.New("nothing answers on port 8080")
	}
	b.open, b.there, b.running = nil, guest.Present, w.Instance.Started
	if word == "adopt" {
		b.made, b.foreign = b.foreign, nil
		b.made.Guest, b.made.At = berthID, b.written
		return result, nil
	}
	if b.values == nil {
		b.values = map[string]string{"rootfs": "local-lvm:vm-6001-disk-0,size=4G", "memory": "512", "net0": "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:01,ip=dhcp"}
	}
	if m := w.Instance.Settings["memory"]; m != "" {
		b.values["memory"] = m
	}
	b.env = maps.Clone(w.Instance.Environment)
	image := w.Instance.Image
	if req.Reconcile == nil {
		b.made = &guest.Contract{
			Guest: berthID, Instance: fmt.Sprintf("i%d", b.written), At: b.written, Installed: install,
			App: &guest.Application{Image: image.Reference, Digest: image.Digest, Manifest: image.Manifest, Arch: image.Arch},
		}
	}
	return result, nil
}

func (b *berth) Remove(context.Context, recipe.Request) (recipe.Result, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done = append(b.done, "remove")
	if b.fail != nil {
		result := *b.fail
		b.fail = nil
		return result, errors.New("storage 'local-lvm' does not answer")
	}
	b.there, b.values, b.made, b.env = guest.Absent, nil, nil, nil
	return recipe.Result{Status: recipe.StatusReady}, nil
}

const vault = "pvrx_oci_instance.vault"

// vaultBlock is a block for the container in memory.
func vaultBlock(image string, arguments ...string) string {
	return fmt.Sprintf("resource \"pvrx_oci_instance\" \"vault\" {\n  vmid = 6001\n  hostname = \"vault\"\n  node = \"pve1\"\n  image = %q\n  %s\n}\n",
		image, strings.Join(arguments, "\n  "))
}

const vaultImport = "import {\n  to = pvrx_oci_instance.vault\n  id = \"6001\"\n}\n"

// dock is a workspace over a container in memory and a registry with two images of one repository.
type dock struct {
	*workspace
	*berth
	shelf  *shelf
	v1, v2 string
}

func newDock(t *testing.T, c cli, arguments ...string) *dock {
	t.Helper()
	d := &dock{berth: newBerth(), shelf: newShelf(t)}
	d.v1 = d.shelf.put("app:1", imageFor(t, "1", v1.Config{Env: []string{"PATH=/bin"}, User: "1000"}))
	d.v2 = d.shelf.put("app:2", imageFor(t, "2", v1.Config{Env: []string{"PATH=/bin"}}))
	d.workspace = newWorkspace(t, c, attach(t, d.provider()))
	d.write("provider.tf", fmt.Sprintf("provider \"pvrx\" {\n  endpoint = \"https://pve1.test:8006\"\n  api_token = \"u@pve!t=x\"\n  %s\n  %s\n}\n",
		d.shelf.block(), strings.Join(arguments, "\n  ")))
	return d
}

// install writes a block for the first image and applies it.
func (d *dock) install(arguments ...string) {
	d.t.Helper()
	d.write("main.tf", vaultBlock(d.shelf.ref("app:1"), arguments...))
	d.plan(2)
	d.apply(0)
}
