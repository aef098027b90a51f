package recipe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/stage"
)

func (i *Instance) apply(ctx context.Context, req Request) (Result, error) {
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
	if seen.Presence == guest.Present && !seen.WrongType { // the cluster's list may be ten seconds old
		if seen.Running, _, err = i.Host.Running(ctx, seen.Ref); err != nil {
			return untouched(seen, req.Installed), fmt.Errorf("cannot ask whether CT %d runs: %w", req.Want.VMID, err)
		}
	}
	installed := installedNow(seen, req.Installed)
	r := untouched(seen, installed)
	facts, judged, err := i.judged(ctx, i.Host, seen, req.Want)
	if err != nil {
		return r, err
	}
	r.Preview = judged
	if seen.Journal != nil {
		r = standing(r, *seen.Journal)
	}
	if err := admissible(req, judged, title(seen)); err != nil {
		return refused(ctx, r, seen, i.lookAgain(seen.Ref.VMID), err)
	}
	d := due{req: req, seen: seen, facts: facts, judged: judged}
	switch judged.Operation { //nolint:exhaustive // what an application container can be due for
	case preview.OpInstall:
		return i.install(ctx, d)
	case preview.OpUpdate:
		return i.update(ctx, d)
	case preview.OpModify:
		return i.modify(ctx, d)
	case preview.OpAdopt:
		return i.adopt(ctx, d)
	}
	return r, nil
}

// due is an operation that was judged and may begin.
type due struct {
	req    Request
	seen   Observation
	facts  preview.Facts
	judged preview.Preview
}

// untouched is the result while nothing was done.
func (d due) untouched() Result {
	r := untouched(d.seen, installedNow(d.seen, d.req.Installed))
	r.Preview = d.judged
	return r
}

// notFetched says that an image could not be brought, and that this is all that happened.
func (d due) notFetched(title string, err error) (Result, error) {
	return d.untouched(), &Failure{Summary: title + ": its image cannot be brought to the node", Detail: sentence(err) + " Nothing was stopped, and nothing of the container was touched. Apply again when the cause is gone.", cause: err}
}

// newRootfs is the size of a root file system that the configuration gives none.
const newRootfs = 4 * guest.GiB

// install makes the container. What a failed install brought along goes again, too.
func (i *Instance) install(ctx context.Context, d due) (Result, error) {
	want := *d.req.Want.Instance
	d.seen.Ref = guest.Ref{VMID: d.req.Want.VMID, Kind: guest.KindContainer, Node: want.Node}
	d.seen.Name = d.req.Want.Name
	storage, rootfs := preview.InstanceStorages(d.facts, d.req.Want)
	if d.req.Want.Rootfs.Storage = rootfs; d.req.Want.Rootfs.Size == 0 {
		d.req.Want.Rootfs.Size = newRootfs
	}
	archive, fresh, err := i.fetch(ctx, want.Node, storage, want.Image, d.facts)
	if err != nil {
		return d.notFetched(title(d.seen), err)
	}
	o := i.begin(d, archive)
	o.j.Config["hostname"] = d.req.Want.Name
	o.j.Kind, o.j.Parking, o.parking = kindInstall, 0, guest.Ref{}
	o.j.Installed = nil
	report := o.engine().Run(ctx)
	if fresh && report.End == stage.Undone {
		o.removeArchive(context.WithoutCancel(ctx), archive.String())
	}
	return o.report(ctx, report)
}

// update makes the container anew from another image, with what goes back should it turn out to be unhealthy.
func (i *Instance) update(ctx context.Context, d due) (Result, error) {
	want := *d.req.Want.Instance
	storage, _ := preview.InstanceStorages(d.facts, d.req.Want)
	archive, _, err := i.fetch(ctx, d.seen.Ref.Node, storage, want.Image, d.facts)
	if err != nil {
		return d.notFetched(title(d.seen), err)
	}
	o := i.begin(d, archive)
	o.j.Kind = kindUpdate
	was := *o.j.App.Was
	if was.Digest == "" && !o.j.App.Hold {
		o.j.App.Hold = true
		o.warn("it is not known from which image the container was made: an unhealthy update would wait for a decision instead of going back")
	}
	if !o.j.App.Hold {
		image, at := imageOf(was, d.seen.Contract.Installed), storage
		if id, err := guest.ParseVolumeID(was.Archive); err == nil && d.facts.Storages[id.Storage].Has("vztmpl") {
			at = id.Storage // unless it moved to a node without
		}
		before, _, err := i.fetch(ctx, d.seen.Ref.Node, at, image, d.facts)
		if err != nil {
			return d.notFetched(title(d.seen)+" as it is now", err)
		}
		o.j.App.Was.Archive = before.String()
	}
	return o.report(ctx, o.engine().Run(ctx))
}

// begin makes the record of an install or an update from what was judged.
func (i *Instance) begin(d due, archive guest.VolumeID) *operation {
	o := i.container().begin(d.req, d.seen, d.facts, d.judged)
	want := *d.req.Want.Instance
	work := preview.InstanceWork(d.facts, d.req.Want)
	next := guest.Application{
		Image: want.Image.Reference, Digest: want.Image.Digest, Manifest: want.Image.Manifest, Arch: want.Image.Arch, Archive: archive.String(),
		Own: ownNames(want), EnvVersion: want.EnvVersion, Declared: want.Image.Declared, Set: settingNames(want),
		Volumes: volumesOf(d.seen.Config, want, work.Make),
	}
	if next.Arch == "" {
		next.Arch = "amd64"
	}
	app := guest.Deployment{
		Set: map[string]string{}, Entrypoint: want.Entrypoint, New: work.Make, Start: want.Started, Hold: want.Hold,
		Mounts: map[string]string{}, Grow: work.Grow,
	}
	delete(app.Grow, "rootfs") // it is made anew, as large as it shall be
	if seen := d.seen.Contract; seen != nil && seen.App != nil {
		was := *seen.App
		was.Keys, was.Raw = nil, nil // both are read from the container that is made again
		app.Was = &was
		if next.Previous = was.Archive; next.Archive == was.Archive {
			next.Previous = was.Previous
		}
		if !want.Image.Read && was.Digest == next.Digest {
			next.Declared = was.Declared
		}
		next.Before = &guest.Generation{ID: seen.Instance, Image: seen.Installed.Template}
		o.j.Declined = seen.Declined
	}
	for key, value := range work.Set {
		m, err := guest.ParseMount(key, value)
		switch {
		case key == "entrypoint":
		case err != nil:
			app.Set[key] = value
		case m.Kind == guest.SourceVolume:
			_, app.Mounts[key], _ = strings.Cut(value, ",")
		default: // a directory of the node is put in like a volume
			app.New = append(app.New, guest.NewVolume{Key: key, Path: m.Path, Value: value})
		}
	}
	for _, key := range work.Delete {
		app.Set[key] = ""
	}
	if work.Notes != nil {
		app.Set["description"] = *work.Notes
	}
	if work.Pool != nil {
		o.j.Pool = *work.Pool
	}
	app.Next = next
	o.j.App = &app
	return o
}

// ownNames are the names of the variables that the configuration sets.
func ownNames(want preview.InstanceWant) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(want.Environment)) {
		if name != guest.ContractVariable {
			names = append(names, name)
		}
	}
	return names
}

// settingNames are the keys that the configuration sets.
func settingNames(want preview.InstanceWant) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(want.Settings)), maps.Keys(want.Devices))
	slices.Sort(names)
	return names
}

// volumesOf are the keys of the volumes that the configuration asks for, by path: those that are there and those to be made.
func volumesOf(config guest.Config, want preview.InstanceWant, made []guest.NewVolume) map[string]string {
	keys := map[string]string{}
	mounts, _ := config.Mounts()
	for _, m := range mounts {
		if _, asked := want.Volumes[m.Path]; asked && m.Kind == guest.SourceVolume {
			keys[m.Path] = m.Key
		}
	}
	for _, v := range made {
		keys[v.Path] = v.Key
	}
	return keys
}

// goesBack reports whether an update ended with an application that does not work, and goes back by itself.
func (o *operation) goesBack(report stage.Report) bool {
	unhealthy := unhealthyError{}
	return o.j.Kind == kindUpdate && o.j.App.Was != nil && !o.j.App.Hold && report.End == stage.Stuck && report.At.Stage == "start" && errors.As(report.Err, &unhealthy)
}

// goBack makes the container again from the image before, with the data that was kept and the environment that it had.
func (o *operation) goBack(ctx context.Context, why stage.Report) (Result, error) {
	o.c.log(ctx, "going back", map[string]any{"operation": o.j.Operation, "guest": int(o.guest.VMID), "problem": sentence(why.Err)})
	o.turnBack()
	r, err := o.report(ctx, o.engine().Run(ctx))
	if err != nil {
		return r, err
	}
	was := "the image before"
	if o.j.Installed != nil {
		was = guest.Printable(o.j.Installed.Template)
	}
	return r, &Failure{
		Summary: o.title() + ": the update was not healthy and was rolled back",
		Detail: sentence(why.Err) + "\n\nThe container was made again from " + was + ", with its volumes and its environment. What the new version wrote into them is still there, and its root file system is gone." +
			" This update is declined and not tried again until image or triggers change.",
		cause: why.Err,
	}
}

// closing is the contract that a person's close leaves with an application container, which would belong to nobody without:
// it says what the container is made from now. nil where the notes hold one already. The parking guest goes, if it can.
func (o *operation) closing(ctx context.Context) *guest.Contract {
	if o.j.App == nil || o.j.Kind == kindRemove || !o.j.New {
		return nil
	}
	config, err := o.host.Config(ctx, o.guest)
	if err != nil || !o.mine(config) {
		return nil
	}
	if o.parking.VMID != 0 {
		if err := o.leaveParking(ctx); err != nil {
			o.warn("parking guest CT %d stays: %s", o.parking.VMID, err)
		}
	}
	contract := o.contract()
	if o.j.Kind == kindRollback {
		contract = o.declined(nil)
	}
	o.describe(&contract, config)
	return &contract
}
