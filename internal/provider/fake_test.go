package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// world is a few containers in memory, behind the operator interface: enough to test what Terraform is told, and nothing
// of what a recipe does.
type world struct {
	mu     sync.Mutex
	guests map[guest.VMID]*container
	// applied are the operations done, as "5001 reinstall".
	applied []string
	looks   int
	// passwords are those that applies were handed.
	passwords []string
	// hold, when set, is called during an apply.
	hold func(ctx context.Context)
}

// container is one of them.
type container struct {
	name     string
	values   map[string]string
	contract *guest.Contract
	journal  *guest.Journal
	gone     bool
	blockers []preview.Blocker
	// fail is how the next operation ends.
	fail *recipe.Result
}

const (
	debian12 = "local:vztmpl/debian-12-standard_12.7-1_amd64.tar.zst"
	debian13 = "local:vztmpl/debian-13-standard_13.1-1_amd64.tar.zst"
)

func newWorld(ids ...guest.VMID) *world {
	w := &world{guests: map[guest.VMID]*container{}}
	for i, id := range ids {
		w.guests[id] = &container{name: fmt.Sprintf("web%d", i+1), values: map[string]string{
			"rootfs": fmt.Sprintf("local-lvm:vm-%d-disk-0,size=8G", id),
			"mp0":    fmt.Sprintf("local-lvm:vm-%d-disk-1,mp=/srv/data,size=100G", id),
		}}
	}
	return w
}

// provider returns a provider of this world.
func (w *world) provider() *Provider {
	p := New("test")
	p.connect = func(context.Context, setup) (operator, error) { return w, nil }
	return p
}

// change changes one container.
func (w *world) change(id guest.VMID, how func(c *container)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	how(w.guests[id])
}

// looked says how often guests were looked at.
func (w *world) looked() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.looks
}

// did demands the operations that were done.
func (w *world) did(t *testing.T, want ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if fmt.Sprint(w.applied) != fmt.Sprint(want) {
		t.Errorf("operations done: %v, want %v", w.applied, want)
	}
}

func (w *world) Observe(_ context.Context, id guest.VMID) (recipe.Observation, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks++
	ref := guest.Ref{VMID: id, Kind: guest.KindContainer, Node: "pve1"}
	c := w.guests[id]
	if c == nil {
		return recipe.Observation{Presence: guest.Absent, Ref: guest.Ref{VMID: id, Kind: guest.KindContainer}}, nil
	}
	seen := recipe.Observation{Presence: guest.Present, Ref: ref, Name: c.name, Journal: c.journal}
	if c.gone {
		seen.Presence, seen.Name = guest.Absent, ""
		return seen, nil
	}
	seen.Config = guest.Config{Values: maps.Clone(c.values)}
	seen.Contract = c.contract
	seen.Acknowledged = preview.Acknowledge(guest.Guest{Ref: ref, Config: seen.Config})
	return seen, nil
}

func (w *world) Plan(_ context.Context, seen recipe.Observation, want preview.Want) (preview.Preview, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.shown(seen, want, preview.OpReinstall)
	if j := seen.Journal; j != nil {
		p.Blockers = append(p.Blockers, preview.Blocker{
			Code: preview.CodeNeedsReconcile, Title: fmt.Sprintf("CT %d web1: an operation stopped half-way (needs_reconcile)", want.VMID),
			Attribute: "reconcile", Found: j.Operation + " stopped.", Remedy: "Say how to go on.",
		})
	}
	if c := w.guests[want.VMID]; c != nil {
		p.Blockers = append(p.Blockers, c.blockers...)
	}
	return p, nil
}

func (w *world) PlanGrow(_ context.Context, seen recipe.Observation, want preview.Want) (preview.Preview, error) {
	return w.shown(seen, want, preview.OpGrow), nil
}

func (w *world) PlanReconcile(_ context.Context, seen recipe.Observation, want preview.Want, r recipe.Reconcile) (preview.Preview, error) {
	op, known := preview.ParseOperation(r.Action)
	if !known {
		return preview.Preview{}, errors.New("no such action")
	}
	return w.shown(seen, want, op), nil
}

func (w *world) shown(seen recipe.Observation, want preview.Want, op preview.Operation) preview.Preview {
	password := "none"
	if want.PasswordGiven {
		password = "given"
	}
	p := preview.Preview{
		Operation: op, Summary: fmt.Sprintf("CT %d %s: %s: 1 volume stays, 1 is erased", want.VMID, want.Name, op),
		AlsoLost: map[string]string{"root file system": "lost: what only lives there"}, RootPassword: password,
		Acknowledged: seen.Acknowledged, Precondition: seen.Acknowledged.Precondition(), ErasedBytes: 8 * guest.GiB,
	}
	for _, key := range []string{"rootfs", "mp0", "mp1"} {
		value, there := seen.Config.Get(key)
		if !there {
			continue
		}
		f := preview.Fate{
			Key: key, Volume: value[:len("local-lvm:vm-5001-disk-0")], Owner: want.VMID, Size: 100 * guest.GiB, Path: "/srv",
			Data: preview.DataPreserved, Mount: preview.MountReattached, Reason: "it belongs to the guest and stays",
		}
		if key == "rootfs" {
			f.Data, f.Mount, f.Size, f.Path = preview.DataErased, preview.MountRecreated, 8*guest.GiB, "/"
		}
		p.Volumes = append(p.Volumes, f)
	}
	return p
}

func (w *world) Apply(ctx context.Context, req recipe.Request) (recipe.Result, error) {
	if w.hold != nil {
		w.hold(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c, op := w.guests[req.Want.VMID], "reinstall"
	installed := guest.Install{Template: req.Want.Template, Triggers: req.Want.Triggers, RootfsStorage: "local-lvm"}
	w.passwords = append(w.passwords, req.Password)
	if req.Reconcile != nil {
		op, c.gone, c.journal = req.Reconcile.Action, false, nil
	}
	w.applied = append(w.applied, fmt.Sprintf("%d %s", req.Want.VMID, op))
	result := recipe.Result{
		Status: recipe.StatusReady, Operation: fmt.Sprintf("op-%d-20261201-%04d", req.Want.VMID, len(w.applied)), Installed: &installed, Changed: true,
	}
	if c.fail != nil {
		result.Status, result.Stage, result.Index, result.Of, result.Exists = c.fail.Status, c.fail.Stage, c.fail.Index, c.fail.Of, c.fail.Exists
		result.Parking, result.Installed = c.fail.Parking, nil
		if result.Status == recipe.StatusNeedsReconcile {
			c.gone = c.fail.Exists != nil && !*c.fail.Exists
			c.journal = &guest.Journal{Operation: result.Operation, State: guest.JournalStuck, Stage: result.Stage}
		}
		c.fail = nil
		return result, errors.New("storage 'local-lvm' is full")
	}
	if op == "rollback" {
		result.Status = recipe.StatusRolledBack
		c.contract = &guest.Contract{Guest: req.Want.VMID, Installed: guest.Install{Template: debian12}, Declined: []string{guest.Install{Template: req.Want.Template, Triggers: req.Want.Triggers}.Hash()}, At: 1764576000}
		result.Installed = &c.contract.Installed
		return result, nil
	}
	if size := req.Want.Rootfs.Size; size > 0 {
		c.values["rootfs"] = fmt.Sprintf("local-lvm:vm-%d-disk-0,size=%s", req.Want.VMID, size.ConfigText())
	}
	c.contract = &guest.Contract{Guest: req.Want.VMID, Installed: installed, At: 1764576000}
	return result, nil
}

// lockedBlocker is a blocker that no argument can fix.
var lockedBlocker = preview.Blocker{
	Code: preview.CodeLocked, Title: "CT 5001 web1: it is locked (locked)", Found: "The lock is backup.", Remedy: "Wait for it.",
}

// id is the VMID of the i-th container that newWorld makes.
func (w *world) id(i int) guest.VMID { return guest.VMID(5001 + i) }
