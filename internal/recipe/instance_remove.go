package recipe

import (
	"context"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/stage"
)

// removal is claim → stop → destroy. There is no parking guest: nothing is kept. After the destroy there is nothing left to
// write a record into, and nothing left to do but to remove the archives.
func (o *operation) removal() stage.Operation {
	stages := []stage.Stage{o.claim(), o.stop()}
	if len(o.j.Snaps) > 0 {
		stages = append(stages, o.deleteSnapshots())
	}
	return o.run(append(stages, o.destroy()))
}

func (i *Instance) remove(ctx context.Context, req Request) (Result, error) {
	if req.Want.Instance == nil {
		req.Want.Instance = &preview.InstanceWant{}
	}
	seen, err := i.look(ctx, i.Host, req.Want.VMID)
	if err != nil {
		return Result{Status: StatusReady}, err
	}
	if req.Reconcile != nil {
		return i.reconcile(ctx, req, seen)
	}
	r := untouched(seen, installedNow(seen, req.Installed))
	if seen.Presence == guest.Absent && seen.Journal == nil {
		return r, nil // somebody removed it
	}
	c := i.container()
	facts, err := c.factsFor(ctx, i.Host, seen, req.Want, nil, true)
	if err != nil {
		return r, err
	}
	judged := preview.InstanceRemoval(facts, req.Want)
	r.Preview = judged
	if seen.Journal != nil {
		r = standing(r, *seen.Journal)
	}
	if err := admissible(req, judged, title(seen)); err != nil {
		return refused(ctx, r, seen, i.lookAgain(seen.Ref.VMID), err)
	}
	o := c.begin(req, seen, facts, judged)
	o.j.Kind, o.j.Parking, o.parking = kindRemove, 0, guest.Ref{}
	o.j.App = &guest.Deployment{}
	if seen.Contract != nil && seen.Contract.App != nil {
		o.j.Wanted = seen.Contract.Installed
		o.j.App.Next = *seen.Contract.App
		o.j.App.Next.Keys, o.j.App.Next.Raw = nil, nil
	}
	return o.report(ctx, o.engine().Run(ctx))
}

// removed removes the archives of a container that is gone, where nobody else names them.
func (o *operation) removed(ctx context.Context) {
	for _, archive := range []string{o.j.App.Next.Archive, o.j.App.Next.Previous} {
		if archive != "" {
			o.removeArchive(ctx, archive)
		}
	}
}
