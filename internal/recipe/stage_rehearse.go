package recipe

import (
	"context"
	"errors"
	"fmt"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/stage"
)

// trialSize is the size of the throw-away volumes that prove the mount paths: 10 MiB.
const trialSize = 10 << 20

// rehearse proves everything a create needs before anything is at stake: a parking guest is made from the new template with
// the carried configuration, given the firewall, started once with throw-away volumes on the kept mount paths, and stopped.
func (o *operation) rehearse() stage.Stage {
	return stage.Stage{
		Name: "rehearse",
		Do:   o.doRehearse,
		Undo: o.removeParking,
		Seen: func(ctx context.Context) (stage.Effect, error) {
			config, err := o.host.Config(ctx, o.parking)
			switch {
			case guest.OutcomeOf(err) == guest.OutcomeMissing && err != nil:
				return stage.None, nil //nolint:nilerr // that it is missing is the answer
			case err != nil:
				return stage.Unclear, err
			case !o.ours(config, o.parking.VMID):
				return stage.None, nil
			}
			return stage.Partly, nil
		},
	}
}

func (o *operation) doRehearse(ctx context.Context) error {
	if err := o.makeParking(ctx); err != nil {
		return err
	}
	firewall, err := o.host.Firewall(ctx, o.guest)
	if err != nil {
		return fmt.Errorf("cannot read the firewall of CT %d: %w", o.guest.VMID, err)
	}
	if !firewall.Empty() {
		if err := o.host.SetFirewall(ctx, o.parking, firewall); err != nil {
			return fmt.Errorf("cannot copy the firewall to parking guest CT %d: %w", o.parking.VMID, err)
		}
	}
	if err := o.rehearseEnvironment(ctx); err != nil {
		return err
	}
	return o.tryStart(ctx)
}

// makeParking creates the parking guest. Somebody may take the VMID first: then another one is chosen, and recorded before
// it is used.
func (o *operation) makeParking(ctx context.Context) error {
	if o.j.Made {
		return nil
	}
	create := o.createParking
	if o.guest.Kind == guest.KindVM {
		create = o.createSpareVM
	}
	for tries := 0; ; tries++ {
		state, err := o.halfMade(ctx, o.parking, o.j.Task)
		if err != nil {
			return err
		}
		switch state {
		case madeNothing:
			err = create(ctx)
		case madeWhole:
		case madeHalf:
			if err = o.destroyParking(ctx); err == nil {
				err = create(ctx)
			}
		case madeByOthers:
			err = errTaken
		}
		switch {
		case err == nil:
			made := o.j
			made.Made = true
			return o.madeParking(ctx, made)
		case tries < 5 && !o.j.Replace && (errors.Is(err, errTaken) || guest.OutcomeOf(err) == guest.OutcomeTaken):
			id, err := o.c.chooseParking(ctx, o.host, o.guest, o.parking.VMID+1)
			if err != nil {
				return err
			}
			next := o.j
			next.Parking = id
			if err := o.save(ctx, next); err != nil {
				return err
			}
			o.parking.VMID = id
		default:
			return err
		}
	}
}

// madeParking moves the record to the guest that is its home from now on.
func (o *operation) madeParking(ctx context.Context, made guest.Journal) error {
	if o.guest.Kind == guest.KindVM && !o.j.Replace {
		return o.save(ctx, made)
	}
	return o.saveTo(ctx, o.parking, made)
}

var errTaken = errors.New("another guest has taken the VMID")

func (o *operation) createParking(ctx context.Context) error {
	next := o.j
	next.Task, next.Leaving = o.c.now().Unix(), false
	if err := o.save(ctx, next); err != nil {
		return err
	}
	notes, err := o.notesFor(ctx, o.parking)
	if err != nil {
		return err
	}
	warnings, err := o.host.CreateContainer(ctx, o.parking, o.rehearsedGuest(notes))
	for _, w := range warnings {
		o.warn("rehearsal: %s", w)
	}
	if err != nil {
		return fmt.Errorf("rehearsal: cannot create parking guest CT %d: %w", o.parking.VMID, err)
	}
	return nil
}

// notesFor is the guest's own text with the record in it, as notes of ref.
func (o *operation) notesFor(ctx context.Context, ref guest.Ref) (string, error) {
	home := o.home()
	config, err := o.host.Config(ctx, home)
	if err != nil {
		return "", err
	}
	record := o.j
	record.Holder = ref.VMID
	text := guest.NotesOf(home.VMID, config.Description()).WithoutProblems().WithContract(nil).WithJournal(&record).String()
	if n := guest.Length(text); n > guest.NotesLimit {
		return "", fmt.Errorf("cannot write the record into notes: %d characters, Proxmox takes %d", n, guest.NotesLimit)
	}
	return text, nil
}

// tryStart starts the parking guest with throw-away volumes where kept ones will be mounted. They come after the create:
// in it they would be filled by the template.
func (o *operation) tryStart(ctx context.Context) error {
	for _, m := range o.mountsToCome() {
		if err := o.edit(ctx, o.parking, func(c guest.Config) (map[string]string, []string) {
			if _, there := c.Get(m.Key); there {
				return nil, nil
			}
			return map[string]string{m.Key: o.j.Storage + ":" + guest.Bytes(trialSize).AllocationGiB() + ",mp=" + m.Path}, nil
		}); err != nil {
			return fmt.Errorf("rehearsal: cannot mount a throw-away volume on %s of parking guest CT %d: %w", m.Path, o.parking.VMID, err)
		}
	}
	switch err := o.host.Start(ctx, o.parking); {
	case err == nil:
	case o.j.App != nil && guest.EndedAtOnce(err): // it has neither network nor data here: the real start tells
		o.warn("in the rehearsal the application ended right after its start")
	default:
		return fmt.Errorf("rehearsal: parking guest CT %d does not start: %w", o.parking.VMID, err)
	}
	if running, _, err := o.host.Running(ctx, o.parking); err != nil || !running && o.j.App == nil { // an application may be done
		return errors.Join(fmt.Errorf("rehearsal: parking guest CT %d was started and does not run", o.parking.VMID), err)
	}
	if err := o.halt(ctx, o.parking); err != nil {
		return err
	}
	return o.clearTrials(ctx)
}

// mountsToCome are the mount points that will be brought back.
func (o *operation) mountsToCome() []guest.Mount {
	var mounts []guest.Mount
	add := func(key, value string) {
		if m, err := guest.ParseMount(key, value); err == nil && m.Path != "-" {
			mounts = append(mounts, m)
		}
	}
	for _, p := range o.j.Parked {
		add(p.Key, p.Value)
	}
	for _, key := range o.j.Refs {
		add(key, o.j.Config[key])
	}
	for _, v := range o.newVolumes() {
		add(v.Key, v.Value)
	}
	return mounts
}

// clearTrials removes the throw-away volumes from the parking guest. It may run only while every kept volume is at home.
func (o *operation) clearTrials(ctx context.Context) error {
	if err := o.allHome(ctx); err != nil {
		return err
	}
	const passes = 4
	for range passes {
		// Somebody may have started it again: what is removed from a running guest only waits (hazard B7).
		if err := o.halt(ctx, o.parking); err != nil {
			return err
		}
		if err := o.clearPass(ctx); err != nil {
			return err
		}
		config, err := o.host.Config(ctx, o.parking)
		if err != nil {
			return err
		}
		if mounts, bad := config.Mounts(); len(mounts) <= 1 && len(bad) == 0 {
			return nil
		}
	}
	return fmt.Errorf("rehearsal: throw-away volumes of parking guest CT %d do not go away", o.parking.VMID)
}

// clearPass removes what it finds: first the mount points, then the unused volumes that they become.
func (o *operation) clearPass(ctx context.Context) error {
	for _, prefix := range []string{"mp", "unused"} {
		config, err := o.host.Config(ctx, o.parking)
		if err != nil {
			return err
		}
		mounts, _ := config.Mounts()
		for _, m := range mounts {
			name, _, indexed := guest.SplitKey(m.Key)
			if !indexed || name != prefix {
				continue
			}
			if name == "mp" {
				err = o.edit(ctx, o.parking, func(c guest.Config) (map[string]string, []string) {
					if _, there := c.Get(m.Key); !there {
						return nil, nil
					}
					return nil, []string{m.Key}
				})
			} else if id, ok := m.Volume(); ok {
				err = o.dropTrial(ctx, m.Key, id)
			}
			if err != nil {
				return fmt.Errorf("rehearsal: cannot remove throw-away volume %s of parking guest CT %d: %w", m.Key, o.parking.VMID, err)
			}
		}
	}
	return nil
}

func (o *operation) dropTrial(ctx context.Context, key string, id guest.VolumeID) error {
	for tries := 0; ; tries++ {
		config, err := o.host.Config(ctx, o.parking)
		if err != nil {
			return err
		}
		m, err := guest.ParseMount(key, config.Values[key])
		if err != nil || m.Source != id.String() {
			return nil //nolint:nilerr // it is gone, which is what was wanted
		}
		err = o.host.DropUnused(ctx, o.parking, key, id, config.Digest)
		if err == nil || tries >= 5 || guest.OutcomeOf(err) != guest.OutcomeConflict {
			return err
		}
	}
}

// allHome proves that every volume that is to be kept is where it was: on the guest, and on its storage.
func (o *operation) allHome(ctx context.Context) error {
	config, err := o.host.Config(ctx, o.guest)
	if err != nil {
		return fmt.Errorf("cannot see whether the kept volumes are with CT %d: %w", o.guest.VMID, err)
	}
	for _, p := range o.j.Parked {
		m, err := guest.ParseMount(p.Key, config.Values[p.Key])
		if err != nil {
			return fmt.Errorf("%s is not with CT %d", p.Key, o.guest.VMID)
		}
		id, ok := m.Volume()
		if !ok {
			return fmt.Errorf("%s of CT %d names no volume", p.Key, o.guest.VMID)
		}
		there, err := o.listed(ctx, id, o.guest.VMID)
		if err != nil {
			return err
		}
		if !there {
			return fmt.Errorf("%s (%s) of CT %d is not on its storage under that name", p.Key, id, o.guest.VMID)
		}
	}
	return nil
}

// listed reports whether the storage lists a volume as owned by a guest.
func (o *operation) listed(ctx context.Context, id guest.VolumeID, owner guest.VMID) (bool, error) {
	rows, err := o.host.Content(ctx, o.guest.Node, id.Storage, owner)
	if err != nil {
		return false, fmt.Errorf("cannot list storage %s: %w", id.Storage, err)
	}
	for _, row := range rows {
		if row.ID == id {
			return true, nil
		}
	}
	return false, nil
}
