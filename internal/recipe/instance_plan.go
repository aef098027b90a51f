package recipe

import (
	"context"
	"fmt"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
)

func (i *Instance) plan(ctx context.Context, lists Reader, seen Observation, want preview.Want) (preview.Preview, error) {
	if want.Instance == nil {
		want.Instance = &preview.InstanceWant{}
	}
	_, judged, err := i.judged(ctx, lists, seen, want)
	return judged, err
}

// judged judges what is due. While nothing is, the container's own configuration and what the run has read anyway are enough.
func (i *Instance) judged(ctx context.Context, lists Reader, seen Observation, want preview.Want) (preview.Facts, preview.Preview, error) {
	c := i.container()
	if seen.Presence == guest.Present && seen.Journal == nil && !seen.WrongType {
		facts, err := c.factsAtHand(ctx, lists, seen, want)
		if err != nil {
			return facts, preview.Preview{}, err
		}
		if p := preview.Instance(facts, want); p.Operation == 0 && len(p.Blockers) == 0 {
			return facts, p, nil
		}
	}
	facts, err := c.facts(ctx, lists, seen, want, nil)
	if err != nil {
		return facts, preview.Preview{}, err
	}
	return facts, preview.Instance(facts, want), nil
}

// factsAtHand are the facts that cost nothing beyond what the whole run shares.
func (c *Container) factsAtHand(ctx context.Context, lists Reader, seen Observation, want preview.Want) (preview.Facts, error) {
	f, err := c.basics(ctx, lists, seen)
	if err != nil || !f.NodeOnline {
		return f, err
	}
	g := &gathering{c: c, lists: lists, seen: seen, want: want, f: &f}
	if err := g.storages(ctx); err != nil {
		return f, err
	}
	if g.perms, err = lists.AllPermissions(ctx); err != nil {
		return f, fmt.Errorf("cannot read our permissions: %w", err)
	}
	f.Pool, f.EnvSeen = g.pool(ctx), g.seesEnvironment()
	return f, nil
}

// seesEnvironment reports whether this login reads the environment of the container.
func (g *gathering) seesEnvironment() bool {
	return g.f.Login.RootTicket || g.held(vmPath(g.seen.Ref.VMID), "VM.Config.Options")
}

// instances reads what the contracts of all other containers of the cluster say: whether one is the same instance, and which
// archives they name. A guest that cannot be read could say anything.
func (g *gathering) instances(ctx context.Context) error {
	if g.want.Instance == nil {
		return nil
	}
	g.f.EnvSeen = g.seesEnvironment()
	rows, err := g.lists.Guests(ctx)
	if err != nil {
		return err
	}
	online, _, err := g.lists.Nodes(ctx)
	if err != nil {
		return err
	}
	others := make([]*preview.OtherInstance, len(rows))
	missed := make([]bool, len(rows))
	each(len(rows), func(n int) {
		row := rows[n]
		if row.Kind != guest.KindContainer || row.VMID == g.seen.Ref.VMID {
			return
		}
		if !online[row.Node] {
			missed[n] = true
			return
		}
		values, _, err := g.namedBy(ctx, row.Ref)
		if err != nil {
			missed[n] = guest.OutcomeOf(err) != guest.OutcomeMissing // else it was destroyed meanwhile
			return
		}
		if len(values["description"]) > 0 {
			others[n] = otherInstance(row.VMID, values["description"][0])
		}
	})
	var found []preview.OtherInstance
	for _, other := range others {
		if other != nil {
			found = append(found, *other)
		}
	}
	g.f.Instances = preview.Known[[]preview.OtherInstance]{OK: g.f.AllSeen, Why: "VM.Audit on /vms", Value: found}
	for n, row := range rows {
		if missed[n] {
			g.f.Instances.OK, g.f.Instances.Why = false, fmt.Sprintf("CT %d could not be read", row.VMID)
		}
	}
	return nil
}

// otherInstance is what a guest's notes say of an application container; nil when they say nothing.
func otherInstance(id guest.VMID, description string) *preview.OtherInstance {
	notes := guest.NotesOf(id, description)
	other := preview.OtherInstance{VMID: id, Archives: notes.Archives()}
	if notes.Contract != nil && notes.Contract.App != nil {
		other.ID = notes.Contract.Instance
	}
	if other.ID == "" && len(other.Archives) == 0 {
		return nil
	}
	return &other
}

func (i *Instance) planRemove(ctx context.Context, lists Reader, seen Observation, want preview.Want) (preview.Preview, error) {
	if want.Instance == nil {
		want.Instance = &preview.InstanceWant{}
	}
	facts, err := i.container().factsFor(ctx, lists, seen, want, nil, true)
	if err != nil {
		return preview.Preview{}, err
	}
	return preview.InstanceRemoval(facts, want), nil
}

func (i *Instance) planReconcile(ctx context.Context, seen Observation, want preview.Want, r Reconcile) (preview.Preview, error) {
	return i.container().planReconcile(ctx, seen, want, r)
}

func (i *Instance) reconcile(ctx context.Context, req Request, seen Observation) (Result, error) {
	return i.container().reconcile(ctx, req, seen)
}
