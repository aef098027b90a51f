package recipe

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/stage"
)

// noStart is the entrypoint of a guarded parking guest: a start fails at once instead of running on the kept data.
const noStart = "/bin/false"

// recordRoom is how many characters the record may still grow after the guard: names of volumes that came back, an error.
const recordRoom = 900

// guard makes sure that nobody deletes the parking guest or starts it on the data that waits there.
func (o *operation) guard() stage.Stage {
	return stage.Stage{
		Name: "guard",
		Do: func(ctx context.Context) error {
			if err := o.haltParking(ctx); err != nil { // what is set on a running guest only waits
				return err
			}
			if err := o.storeEnvironment(ctx); err != nil {
				return err
			}
			if err := o.edit(ctx, o.parking, func(c guest.Config) (map[string]string, []string) {
				if c.Values["protection"] == "1" && c.Values["entrypoint"] == noStart {
					return nil, nil
				}
				return map[string]string{"protection": "1", "entrypoint": noStart}, nil
			}); err != nil {
				return fmt.Errorf("cannot guard parking guest CT %d: %w", o.parking.VMID, err)
			}
			return o.guarded(ctx)
		},
		Undo: o.liftGuard,
		Seen: func(ctx context.Context) (stage.Effect, error) {
			config, err := o.host.Config(ctx, o.parking)
			switch {
			case err != nil:
				return stage.Unclear, err
			case config.Values["protection"] != "1" || config.Values["entrypoint"] != noStart:
				return stage.None, nil
			case o.guarded(ctx) != nil:
				return stage.Partly, nil //nolint:nilerr // guarded, and something is missing that is to be guarded
			}
			return stage.Whole, nil
		},
	}
}

// liftGuard takes our own guard away again.
func (o *operation) liftGuard(ctx context.Context) error {
	if err := o.edit(ctx, o.parking, func(c guest.Config) (map[string]string, []string) {
		if c.Values["entrypoint"] != noStart {
			return nil, nil // not our guard
		}
		remove := []string{"entrypoint"}
		if c.Values["protection"] != "" {
			remove = append(remove, "protection")
		}
		return nil, remove
	}); err != nil {
		return fmt.Errorf("cannot lift the guard of parking guest CT %d: %w", o.parking.VMID, err)
	}
	return nil
}

// guarded proves that the parking guest is off, guarded, ours, and holds every kept volume, in its configuration and on the
// storages.
func (o *operation) guarded(ctx context.Context) error {
	config, err := o.host.Config(ctx, o.parking)
	if err != nil {
		return fmt.Errorf("cannot see parking guest CT %d: %w", o.parking.VMID, err)
	}
	if !o.ours(config, o.parking.VMID) {
		return fmt.Errorf("parking guest CT %d no longer carries our record", o.parking.VMID)
	}
	if config.Values["protection"] != "1" || config.Values["entrypoint"] != noStart {
		return fmt.Errorf("parking guest CT %d is not guarded: protection=%q, entrypoint=%q", o.parking.VMID, config.Values["protection"], config.Values["entrypoint"])
	}
	if err := o.storedEnvironment(config); err != nil {
		return err
	}
	if n := guest.Length(config.Description()) + recordRoom; n > guest.NotesLimit {
		return fmt.Errorf("the record would outgrow the notes of parking guest CT %d past the point of no return: %d of %d characters; shorten the guest's own notes", o.parking.VMID, n, guest.NotesLimit)
	}
	if running, _, err := o.host.Running(ctx, o.parking); err != nil || running {
		return errors.Join(fmt.Errorf("parking guest CT %d runs or cannot be seen not to", o.parking.VMID), err)
	}
	for _, p := range o.j.Parked {
		id, err := volumeAt(config, p.Key)
		if err != nil || id == (guest.VolumeID{}) {
			return errors.Join(fmt.Errorf("%s is not with parking guest CT %d", p.Key, o.parking.VMID), err)
		}
		there, err := o.listed(ctx, id, o.parking.VMID)
		if err != nil {
			return err
		}
		if !there {
			return fmt.Errorf("%s (%s) is not on its storage as owned by CT %d", p.Key, id, o.parking.VMID)
		}
	}
	return nil
}

// destroy crosses the point of no return. Before the one irreversible call everything is looked at a third time.
func (o *operation) destroy() stage.Stage {
	return stage.Stage{Name: "destroy", Final: true, Do: o.doDestroy, Seen: o.seenDestroy}
}

func (o *operation) doDestroy(ctx context.Context) error {
	config, err := o.host.Config(ctx, o.guest)
	if err != nil && guest.OutcomeOf(err) == guest.OutcomeMissing && o.j.Digest != "" {
		if effect, seen := o.seenDestroy(ctx); effect == stage.Whole {
			return nil
		} else if seen != nil {
			return seen
		}
	}
	if err != nil {
		return err
	}
	if config.Values["lock"] == "destroyed" && o.j.Digest != "" {
		return stubError{ref: o.guest} // a destroy that died after the volumes: nothing of the guest is left but this
	}
	doomed, err := o.lastLook(ctx, config)
	if err != nil {
		return err
	}
	next := o.j
	next.Digest, next.Task = config.Digest, o.c.now().Unix()
	if err := o.save(ctx, next); err != nil {
		return err
	}
	warnings, err := o.host.Destroy(ctx, o.guest, doomed)
	for _, w := range warnings {
		o.warn("destroy: %s", w)
	}
	if err != nil {
		o.doubt = guest.OutcomeOf(err) == guest.OutcomeUnknown
		return fmt.Errorf("destroying CT %d: %w", o.guest.VMID, err)
	}
	if _, err := o.host.Config(ctx, o.guest); err == nil || guest.OutcomeOf(err) != guest.OutcomeMissing {
		o.doubt = true
		return errors.Join(fmt.Errorf("CT %d is still there although its destroy ended well", o.guest.VMID), err)
	}
	return nil
}

// lastLook is the third look: our record, what the plan acknowledged, every blocker, the parking guest, and that nothing
// would be destroyed that the preview did not show. It returns the volumes that go.
func (o *operation) lastLook(ctx context.Context, config guest.Config) ([]guest.VolumeID, error) {
	record := guest.NotesOf(o.guest.VMID, config.Description()).Journal
	if record == nil || record.Operation != o.j.Operation {
		return nil, &lostError{winner: record} // wiped (hazard C5) or somebody else's
	}
	if err := errors.Join(o.compare(config, "since the plan"), o.sameKeys(config)); err != nil {
		return nil, err
	}
	if o.parking.VMID != 0 {
		if err := o.guarded(ctx); err != nil {
			return nil, err
		}
	}
	running, _, err := o.host.Running(ctx, o.guest)
	if err != nil || running {
		return nil, errors.Join(fmt.Errorf("CT %d runs or cannot be seen not to", o.guest.VMID), err)
	}
	seen := Observation{Presence: guest.Present, Ref: o.guest, Config: config, Name: config.Hostname(o.guest.VMID)}
	want := o.req.Want
	want.Rootfs.Size, want.Rootfs.Storage = o.j.Size, o.j.Storage
	if o.j.App != nil {
		want = o.recordedWant()
	}
	facts, err := o.c.facts(ctx, o.host, seen, want, &o.j)
	if err != nil {
		return nil, err
	}
	judged := o.judge(facts, want)
	if blockers := o.standing(judged.Blockers, config); len(blockers) > 0 {
		return nil, blockedError{blockers: blockers}
	}
	var doomed []guest.VolumeID
	for _, f := range judged.Volumes {
		if f.Owner != o.guest.VMID || f.Volume == "" {
			continue
		}
		if !contains(o.j.Doomed, f.Volume) {
			return nil, fmt.Errorf("%s (%s) belongs to CT %d and the preview did not show it as erased", f.Key, f.Volume, o.guest.VMID)
		}
		id, err := guest.ParseVolumeID(f.Volume)
		if err != nil {
			return nil, err
		}
		doomed = append(doomed, id)
	}
	return doomed, nil
}

// standing leaves out what a destroy of ours that stopped half-way causes itself: freed volumes have no size. Only while the
// configuration is the very one that it was sent for.
func (o *operation) standing(blockers []preview.Blocker, config guest.Config) []preview.Blocker {
	half := o.j.Digest != "" && config.Digest == o.j.Digest
	return slices.DeleteFunc(slices.Clone(blockers), func(b preview.Blocker) bool {
		switch b.Code { //nolint:exhaustive // what an operation does not cause itself stands
		case preview.CodeSizeUnreadable:
			return half
		case preview.CodeContractDiffers:
			return o.j.App != nil // set aside is not there; what it was when it was claimed is compared by itself
		}
		return false
	})
}

// seenDestroy is strict about None: only a configuration with the very digest, and no destroy that was sent into silence,
// proves that nothing happened.
func (o *operation) seenDestroy(ctx context.Context) (stage.Effect, error) {
	config, err := o.host.Config(ctx, o.guest)
	switch {
	case err == nil && o.j.Digest == "":
		if o.doubt {
			return stage.Unclear, nil
		}
		return stage.None, nil // no destroy was ever recorded as sent
	case err == nil:
		task, err := o.host.FindTask(ctx, o.guest.Node, "vzdestroy", o.guest.VMID, o.j.Task)
		switch {
		case err != nil:
			return stage.Unclear, err
		case task.Found && task.Good && !o.ours(config, o.guest.VMID):
			return stage.Unclear, takenError{ref: o.guest} // somebody was fast
		case task.Found && task.Running, o.doubt:
			return stage.Unclear, nil
		case config.Digest == o.j.Digest && !(task.Found && task.Good):
			if task.Found {
				return o.untouched(ctx, config)
			}
			return stage.None, nil
		}
		return stage.Partly, nil
	case guest.OutcomeOf(err) != guest.OutcomeMissing:
		return stage.Unclear, err
	}
	taken, err := o.host.VMIDTaken(ctx, o.guest.VMID)
	switch {
	case err != nil:
		return stage.Unclear, err
	case taken:
		return stage.Unclear, fmt.Errorf("CT %d is not on %s, but its VMID is in use: it was moved to another node, or another guest took it", o.guest.VMID, o.guest.Node)
	case o.j.Digest == "":
		return stage.Unclear, fmt.Errorf("CT %d is gone, and not by us", o.guest.VMID)
	}
	return stage.Whole, nil
}

// untouched looks whether a destroy that failed had freed anything before it did: it frees the root file system first.
func (o *operation) untouched(ctx context.Context, config guest.Config) (stage.Effect, error) {
	for _, n := range guest.Volumes(o.guest.Kind, config) {
		if !contains(o.j.Doomed, n.ID.String()) {
			continue
		}
		there, err := o.listed(ctx, n.ID, o.guest.VMID)
		switch {
		case err != nil:
			return stage.Unclear, err
		case !there:
			return stage.Partly, nil
		}
	}
	return stage.None, nil
}

// create makes the new guest under the old VMID: a root file system from the template and the carried configuration,
// nothing kept, not started.
func (o *operation) create() stage.Stage {
	return stage.Stage{Name: "create", Do: o.doCreate, Seen: func(ctx context.Context) (stage.Effect, error) {
		if o.j.New {
			return stage.Whole, nil
		}
		state, err := o.halfMade(ctx, o.guest, o.j.Task)
		switch {
		case err != nil:
			return stage.Unclear, err
		case state == madeNothing:
			return stage.None, nil
		}
		return stage.Partly, nil
	}}
}

func (o *operation) doCreate(ctx context.Context) error {
	if o.j.New {
		return nil
	}
	since := o.j.Task
	if o.j.Stage != "create" {
		since = 0
	}
	state, err := o.halfMade(ctx, o.guest, since)
	if err != nil {
		return err
	}
	switch state {
	case madeByOthers:
		return takenError{ref: o.guest}
	case madeHalf:
		if err := o.clearHalf(ctx); err != nil {
			return err
		}
		err = o.createGuest(ctx)
	case madeNothing:
		err = o.createGuest(ctx)
	case madeWhole:
	}
	if err != nil {
		return err
	}
	next := o.j
	next.New = true
	return o.save(ctx, next)
}

func (o *operation) createGuest(ctx context.Context) error {
	next := o.j
	next.Task = o.c.now().Unix()
	if err := o.save(ctx, next); err != nil {
		return err
	}
	notes, err := o.notesFor(ctx, o.guest)
	if err != nil {
		return err
	}
	if err := o.haveArchive(ctx); err != nil {
		return err
	}
	warnings, err := o.host.CreateContainer(ctx, o.guest, o.newGuest(notes))
	for _, w := range warnings {
		o.warn("create: %s", w)
	}
	switch {
	case err == nil:
		return nil
	case guest.OutcomeOf(err) == guest.OutcomeTaken:
		return takenError{ref: o.guest, cause: err}
	}
	return fmt.Errorf("creating CT %d: %w", o.guest.VMID, err)
}

// clearHalf removes a guest that our own unfinished create left: it is ours by its record, and nothing kept is in it.
func (o *operation) clearHalf(ctx context.Context) error {
	config, err := o.host.Config(ctx, o.guest)
	if err != nil {
		return err
	}
	var own []guest.VolumeID
	for _, n := range guest.Volumes(o.guest.Kind, config) {
		if n.Key != "rootfs" && !o.madeHere(n) {
			return fmt.Errorf("the unfinished CT %d already holds %s (%s): it is not removed", o.guest.VMID, n.Key, n.ID)
		}
		own = append(own, n.ID)
	}
	if err := o.halt(ctx, o.guest); err != nil {
		return err
	}
	if _, err := o.host.Destroy(ctx, o.guest, own); err != nil {
		return fmt.Errorf("cannot remove the unfinished CT %d: %w", o.guest.VMID, err)
	}
	return nil
}

// takenError says that somebody else's guest has our VMID: it is never touched.
type takenError struct {
	ref   guest.Ref
	cause error
}

func (e takenError) Error() string {
	return fmt.Sprintf("VMID %d belongs to a guest that this operation did not make: it is not touched; move it to another VMID, then resume", e.ref.VMID)
}

func (e takenError) Unwrap() error { return e.cause }

// Outcome implements what guest.OutcomeOf asks.
func (e takenError) Outcome() guest.Outcome { return guest.OutcomeTaken }

// blockedError says that a look right before an effect found reasons not to go on.
type blockedError struct{ blockers []preview.Blocker }

func (e blockedError) Error() string {
	text := "blocked:"
	for _, b := range e.blockers {
		text += " " + b.Text()
	}
	return text
}
