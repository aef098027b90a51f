package recipe

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/stage"
)

// detach takes the old system disks off their keys: they become unused entries, the way back. That a task ends well proves
// nothing: configuration and pending changes are read, and what waits is reverted (hazard C13).
func (o *operation) detach() stage.Stage {
	return stage.Stage{Name: "detach", Do: func(ctx context.Context) error {
		var keys []string
		for _, d := range o.j.Disks {
			keys = append(keys, d.Key)
		}
		return o.takeOff(ctx, func(d guest.SystemDisk, at guest.VolumeID) bool { return at.String() == d.Was }, keys)
	}, Undo: o.reattach, Seen: func(ctx context.Context) (stage.Effect, error) {
		config, err := o.host.Config(ctx, o.guest)
		if err != nil {
			return stage.Unclear, err
		}
		on := 0
		for _, d := range o.j.Disks {
			if at, err := volumeAt(config, d.Key); err == nil && at.String() == d.Was {
				on++
			}
			if !namesText(config, d.Was) {
				return stage.Partly, nil // off its key, and no unused entry leads back to it
			}
		}
		switch on {
		case 0:
			return stage.Whole, nil
		case len(o.j.Disks):
			return stage.None, nil
		}
		return stage.Partly, nil
	}}
}

// takeOff removes those of the keys whose volume is one to go, and proves that they are gone and nothing is lost by it.
func (o *operation) takeOff(ctx context.Context, goes func(guest.SystemDisk, guest.VolumeID) bool, keys []string) error {
	var last error
	for range 6 {
		if err := o.unlocked(ctx, o.guest); err != nil {
			return err
		}
		running, _, err := o.host.Running(ctx, o.guest)
		if err != nil {
			return err
		}
		config, err := o.host.Config(ctx, o.guest)
		if err != nil {
			return err
		}
		var remove []string
		off := map[string]guest.VolumeID{}
		for _, d := range o.j.Disks {
			at, err := volumeAt(config, d.Key)
			if err != nil {
				return err
			}
			if at != (guest.VolumeID{}) && contains(keys, d.Key) && goes(d, at) {
				remove = append(remove, d.Key)
				off[d.Key] = at
			}
		}
		if len(remove) == 0 {
			return o.nothingWaits(ctx, keys, last)
		}
		if running {
			return errors.Join(fmt.Errorf("VM %d runs again: somebody started it, and a disk of a running VM is not taken off", o.guest.VMID), last)
		}
		_, last = o.host.ChangeVM(ctx, o.guest, nil, remove, config.Digest)
		if err := o.nothingWaits(ctx, remove, last); err != nil {
			return err
		}
		after, err := o.host.Config(ctx, o.guest)
		if err != nil {
			return errors.Join(last, err)
		}
		for key, id := range off {
			if _, still := after.Get(key); !still && !names(after, id) {
				return errors.Join(fmt.Errorf("%s (%s) was taken off VM %d and no unused entry names it", key, id, o.guest.VMID), last)
			}
		}
		if outcome := guest.OutcomeOf(last); last != nil && outcome != guest.OutcomeConflict && outcome != guest.OutcomeUnknown && outcome != guest.OutcomeFailed {
			return last
		}
		if last != nil && ctx.Err() != nil {
			return errors.Join(last, ctx.Err())
		}
	}
	return errors.Join(fmt.Errorf("%v cannot be taken off VM %d", keys, o.guest.VMID), last)
}

func names(c guest.Config, id guest.VolumeID) bool {
	return slices.ContainsFunc(guest.Volumes(guest.KindVM, c), func(n guest.Named) bool { return n.ID == id })
}

// namesText is names for a volume id as the record keeps it.
func namesText(c guest.Config, volume string) bool {
	id, err := guest.ParseVolumeID(volume)
	return err == nil && names(c, id)
}

// nothingWaits reverts removals that a running VM, or a failed request, left pending: they would be applied at the next stop.
func (o *operation) nothingWaits(ctx context.Context, keys []string, cause error) error {
	changes, err := o.host.Pending(ctx, o.guest)
	if err != nil {
		return err
	}
	var waiting []string
	for _, c := range changes {
		if contains(keys, c.Key) || c.Key == "boot" {
			waiting = append(waiting, c.Key)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	config, err := o.host.Config(ctx, o.guest)
	if err != nil {
		return err
	}
	if err := o.host.Revert(ctx, o.guest, waiting, config.Digest); err != nil {
		return errors.Join(fmt.Errorf("changes of %v wait for the VM's next stop and cannot be reverted: %w", waiting, err), cause)
	}
	return errors.Join(fmt.Errorf("the removal of %v did not take effect and was reverted: VM %d ran, or runs", waiting, o.guest.VMID), cause)
}

// reattach gives the old system disks back to their keys, with their options, and the boot setting with them.
func (o *operation) reattach(ctx context.Context) error {
	if err := o.halt(ctx, o.guest); err != nil {
		return err
	}
	for _, d := range o.j.Disks {
		id, err := guest.ParseVolumeID(d.Was)
		if err != nil {
			return err
		}
		there, err := o.listed(ctx, id, o.guest.VMID)
		if err != nil {
			return err
		}
		if !there {
			return fmt.Errorf("the old %s (%s) is not on its storage any more", d.Key, d.Was)
		}
	}
	err := o.edit(ctx, o.guest, func(c guest.Config) (map[string]string, []string) {
		set := map[string]string{}
		for _, d := range o.j.Disks {
			was, err := guest.ParseSlot(guest.KindVM, d.Key, o.j.Config[d.Key])
			if _, there := c.Get(d.Key); err != nil || there {
				continue
			}
			set[d.Key] = was.With(d.Was)
		}
		return o.withBoot(c, set)
	})
	if err != nil {
		return fmt.Errorf("cannot give the old system disks back to their keys: %w", err)
	}
	config, err := o.host.Config(ctx, o.guest)
	if err != nil {
		return err
	}
	for _, d := range o.j.Disks {
		have, err := guest.ParseSlot(guest.KindVM, d.Key, config.Values[d.Key])
		was, bad := guest.ParseSlot(guest.KindVM, d.Key, o.j.Config[d.Key])
		if err != nil || bad != nil || have.Source != d.Was || !have.SameOptions(was) {
			return fmt.Errorf("%s of VM %d is %q and was %q", d.Key, o.guest.VMID, config.Values[d.Key], o.j.Config[d.Key])
		}
	}
	return nil
}

// withBoot adds the old boot setting to what is set, where it differs.
func (o *operation) withBoot(c guest.Config, set map[string]string) (map[string]string, []string) {
	was, had := o.j.Config["boot"]
	now, has := c.Get("boot")
	switch {
	case had && now != was:
		set["boot"] = was
	case !had && has:
		return set, []string{"boot"}
	}
	return set, nil
}

// attach puts a new system disk in place, by renaming.
func (o *operation) attach(i int) stage.Stage {
	key := o.j.Parked[i].Key
	return stage.Stage{
		Name: "attach " + key,
		Do: func(ctx context.Context) error {
			if err := o.handOver(ctx, i, o.parking, o.guest); err != nil {
				return fmt.Errorf("cannot put the new %s in place: %w", key, err)
			}
			o.recordNew(key, o.j.Parked[i].Now)
			return nil
		},
		Undo: func(ctx context.Context) error { return o.takeNewOff(ctx, i, key) },
		Seen: o.movedTo(i, func() (guest.Ref, guest.Ref) { return o.parking, o.guest }),
	}
}

// recordNew says in the record what a key's new disk is called on the VM; it is written with the next stage.
func (o *operation) recordNew(key, volume string) {
	disks := slices.Clone(o.j.Disks)
	for i := range disks {
		if disks[i].Key == key {
			disks[i].Now = volume
		}
	}
	o.j.Disks = disks
}

// takeNewOff takes a new system disk off its key again. It stays as an unused entry until the parking VM is gone too, and is
// deleted then. i is its index among what moves, -1 for one that was imported in place.
func (o *operation) takeNewOff(ctx context.Context, i int, key string) error {
	if err := o.halt(ctx, o.guest); err != nil {
		return err
	}
	if i >= 0 {
		if err := o.closeHole(ctx, i); err != nil {
			return err
		}
	}
	config, err := o.host.Config(ctx, o.guest)
	if err != nil {
		return err
	}
	at, err := volumeAt(config, key)
	if err != nil || at == (guest.VolumeID{}) {
		return err
	}
	d := o.disk(key)
	if at.String() == d.Was {
		return nil
	}
	if d.Now == "" {
		o.recordNew(key, at.String())
		if err := o.save(ctx, o.j); err != nil { // before it has no key any more
			return err
		}
	} else if d.Now != at.String() {
		return fmt.Errorf("%s of VM %d is %s, which this operation did not put there", key, o.guest.VMID, at)
	}
	return o.takeOff(ctx, func(d guest.SystemDisk, at guest.VolumeID) bool { return at.String() != d.Was }, []string{key})
}

// closeHole brings a disk to the VM that a move renamed and wrote into no configuration, so that it can be taken off and
// deleted like any other.
func (o *operation) closeHole(ctx context.Context, i int) error {
	p := o.j.Parked[i]
	if p.To != o.guest.VMID || o.disk(p.Key).Now != "" {
		return nil
	}
	config, err := o.host.Config(ctx, o.guest)
	if err != nil {
		return err
	}
	if at, err := volumeAt(config, p.Key); err != nil || at != (guest.VolumeID{}) {
		return err
	}
	was, err := guest.ParseSlot(guest.KindVM, p.Key, p.Value)
	if err != nil {
		return err
	}
	id, ok := was.Volume()
	if !ok {
		return nil
	}
	owned, err := o.owns(ctx, o.guest, id.Storage)
	if err != nil {
		return err
	}
	for _, volume := range owned {
		if id, err := guest.ParseVolumeID(volume); err == nil && !contains(p.Before, volume) && !names(config, id) {
			return o.repair(ctx, i, o.guest)
		}
	}
	return nil
}

func (o *operation) disk(key string) guest.SystemDisk {
	for _, d := range o.j.Disks {
		if d.Key == key {
			return d
		}
	}
	return guest.SystemDisk{}
}

// importLate makes a new system disk in place, after the stop, where its storage cannot rename.
func (o *operation) importLate(i int) stage.Stage {
	d := o.j.Disks[i]
	return stage.Stage{
		Name: "import " + d.Key,
		Do: func(ctx context.Context) error {
			if err := o.importHere(ctx, d); err != nil {
				return fmt.Errorf("cannot make the new %s: %w", d.Key, err)
			}
			return nil
		},
		Undo: func(ctx context.Context) error { return o.takeNewOff(ctx, -1, d.Key) },
		Seen: func(context.Context) (stage.Effect, error) { return stage.Partly, nil }, // its size counts too: Do looks
	}
}

func (o *operation) importHere(ctx context.Context, d guest.SystemDisk) error {
	var last error
	for range 3 {
		config, err := o.host.Config(ctx, o.guest)
		if err != nil {
			return err
		}
		at, err := volumeAt(config, d.Key)
		if err != nil {
			return err
		}
		if at.String() == d.Was {
			return fmt.Errorf("%s still holds the old disk", d.Key)
		}
		if at != (guest.VolumeID{}) {
			if d.Size > 0 && d.Source != "" {
				if err := o.host.Resize(ctx, o.guest, d.Key, d.Size); err != nil {
					return err
				}
			}
			o.recordNew(d.Key, at.String())
			return nil
		}
		_, last = o.host.ChangeVM(ctx, o.guest, map[string]string{d.Key: newDisk(d)}, nil, config.Digest)
		if outcome := guest.OutcomeOf(last); last != nil && outcome != guest.OutcomeConflict && outcome != guest.OutcomeUnknown {
			return last
		}
	}
	return last
}
