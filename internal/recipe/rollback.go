package recipe

import (
	"context"
	"fmt"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/stage"
)

// restoreArchive rebuilds the guest from the operation's own archive, past the point of no return. From its first write the
// record says rollback, so that a resume goes on with it.
func (o *operation) restoreArchive(ctx context.Context) (Result, error) {
	if o.j.Backup == "" && o.j.App == nil {
		return standing(Result{}, o.j), &Failure{
			Summary: o.title() + ": cannot roll back",
			Detail:  o.j.Operation + " is past the point of no return and made no archive of its own (backup was not asked for). Resume it, or close it when all is well.",
		}
	}
	if there, err := o.c.recordOn(ctx, o.parking, o.guest.VMID); err != nil || there == nil {
		return standing(Result{}, o.j), &Failure{
			Summary: o.title() + ": cannot roll back any more",
			Detail:  fmt.Sprintf("%s has finished all but its last step: parking guest CT %d is gone or cannot be seen, and the new guest holds everything. Resume it. Nothing was done.", o.j.Operation, o.parking.VMID),
			cause:   err,
		}
	}
	if !o.j.Made { // the last step had moved the record to the guest, which goes
		moved := o.j
		moved.Made, moved.Leaving = true, false
		if err := o.saveTo(ctx, o.parking, moved); err != nil {
			return standing(Result{}, o.j), fmt.Errorf("cannot move the record of %s to parking guest CT %d: %w", o.j.Operation, o.parking.VMID, err)
		}
	}
	o.turnBack()
	return o.report(ctx, o.engine().Run(ctx))
}

// turnBack makes the record one of the way back, from its first write.
func (o *operation) turnBack() {
	o.j.Kind, o.j.New, o.j.Task = kindRollback, false, 0
	if o.j.App != nil {
		app := *o.j.App
		app.Back = true
		o.j.App = &app
	}
}

// rollback is the way back past the point of no return (hazard A2): lift guard → park again each → guard → clear → restore
// the archive into the free VMID, root file system only and never by force → return each → … → settle.
func (o *operation) rollback() stage.Operation {
	lift := stage.Stage{Name: "lift guard", Do: o.liftGuard, Seen: func(ctx context.Context) (stage.Effect, error) {
		config, err := o.host.Config(ctx, o.parking)
		switch {
		case err != nil:
			return stage.Unclear, err
		case config.Values["protection"] == "1":
			return stage.None, nil
		}
		return stage.Whole, nil
	}}
	stages := []stage.Stage{lift}
	for i := range o.j.Parked {
		again := o.park(i)
		again.Name, again.Do, again.Undo = "park "+o.j.Parked[i].Key+" again", func(ctx context.Context) error { return o.parkAgain(ctx, i) }, nil
		stages = append(stages, again)
	}
	guard := o.guard()
	guard.Undo = nil
	stages = append(stages, guard, o.clear(), o.restoring())
	for i := range o.j.Parked {
		stages = append(stages, o.bringBack(i))
	}
	if len(o.j.Refs) > 0 {
		stages = append(stages, o.refer())
	}
	stages = append(append(stages, o.deploy()...), o.restore(), o.start(), o.settle())
	engine := o.run(stages)
	engine.Past = true
	return engine
}

// parkAgain sets a volume aside that may have come back already, or never left the parking guest.
func (o *operation) parkAgain(ctx context.Context, i int) error {
	key := o.j.Parked[i].Key
	there, err := o.host.Config(ctx, o.parking)
	if err != nil {
		return err
	}
	// A key alone proves nothing: the return that brought the volume away may have left it behind.
	if _, waits, err := o.volumeSeen(ctx, there, o.parking, key); err != nil || waits {
		return err
	}
	if config, err := o.host.Config(ctx, o.guest); err == nil && !o.mine(config) {
		return takenError{ref: o.guest}
	} else if err != nil {
		if guest.OutcomeOf(err) == guest.OutcomeMissing {
			return o.repair(ctx, i, o.parking) // nobody else can hold it
		}
		return err
	}
	if err := o.halt(ctx, o.guest); err != nil {
		return err
	}
	if err := o.handOver(ctx, i, o.guest, o.parking); err != nil {
		return fmt.Errorf("cannot set %s aside again: %w", key, err)
	}
	return nil
}

// clear removes the guest that the operation made, when it is there, ours, and seen to hold nothing that is to be kept.
func (o *operation) clear() stage.Stage {
	return stage.Stage{
		Name: "clear",
		Do: func(ctx context.Context) error {
			config, err := o.host.Config(ctx, o.guest)
			if err != nil {
				if guest.OutcomeOf(err) == guest.OutcomeMissing {
					return nil
				}
				return err
			}
			if !o.mine(config) {
				return takenError{ref: o.guest}
			}
			if err := o.guarded(ctx); err != nil {
				return err
			}
			if err := o.leaveHA(ctx); err != nil {
				return err
			}
			if err := o.edit(ctx, o.guest, func(c guest.Config) (map[string]string, []string) {
				var foreign []string // on a lost storage one would stop the destroy half-way (hazard A6)
				for _, key := range o.j.Refs {
					if _, there := c.Get(key); there {
						foreign = append(foreign, key)
					}
				}
				return nil, foreign
			}); err != nil {
				return err
			}
			return o.clearHalf(ctx)
		},
		Seen: func(ctx context.Context) (stage.Effect, error) {
			_, err := o.host.Config(ctx, o.guest)
			switch {
			case err == nil:
				return stage.None, nil
			case guest.OutcomeOf(err) == guest.OutcomeMissing:
				return stage.Whole, nil
			}
			return stage.Unclear, err
		},
	}
}

// restoring restores the archive into the free VMID. With rootfs given Proxmox recreates no mount point of the archive; it
// held none of the kept mounts' content, which the backup left out.
func (o *operation) restoring() stage.Stage {
	s := o.create()
	s.Name = "restore archive"
	s.Do = func(ctx context.Context) error {
		if o.j.New {
			return nil
		}
		state, err := o.halfMade(ctx, o.guest, o.j.Task)
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
			err = o.restoreGuest(ctx)
		case madeNothing:
			err = o.restoreGuest(ctx)
		case madeWhole:
		}
		if err != nil {
			return err
		}
		next := o.j
		next.New = true
		return o.save(ctx, next)
	}
	return s
}

func (o *operation) restoreGuest(ctx context.Context) error {
	next := o.j
	next.Task = o.c.now().Unix()
	if err := o.save(ctx, next); err != nil {
		return err
	}
	notes, err := o.notesFor(ctx, o.guest)
	if err != nil {
		return err
	}
	params := o.newGuest(notes)
	if was, err := guest.ParseMount("rootfs", o.j.Config["rootfs"]); err == nil {
		id, isVolume := was.Volume()
		if size, _, err := guest.ReadSize(was.SizeText); err == nil && isVolume && size > 0 {
			was.Source, was.SizeText = id.Storage+":"+size.CeilMiB().AllocationGiB(), ""
			params["rootfs"] = was.String()
		}
	}
	var warnings []string
	if o.j.App != nil { // a token's restore would lose the image's user, directory and stop signal
		if err := o.haveArchive(ctx); err != nil {
			return err
		}
		warnings, err = o.host.CreateContainer(ctx, o.guest, params)
	} else {
		for _, key := range []string{"ostemplate", "password", "ssh-public-keys"} {
			delete(params, key)
		}
		warnings, err = o.host.RestoreContainer(ctx, o.guest, o.j.Backup, params)
	}
	for _, w := range warnings {
		o.warn("restore: %s", w)
	}
	switch {
	case err == nil:
		return nil
	case guest.OutcomeOf(err) == guest.OutcomeTaken:
		return takenError{ref: o.guest, cause: err}
	}
	return fmt.Errorf("restoring CT %d from %s: %w", o.guest.VMID, params["ostemplate"]+o.j.Backup, err)
}

// declined is the contract of a guest whose new install was refused: what it was made from, and what not to try again.
func (o *operation) declined(was *guest.Contract) guest.Contract {
	contract := o.contract()
	if was != nil && was.App != nil { // nothing was installed: the environment names the contract that was there
		contract.Instance, contract.App = was.Instance, was.App
	}
	contract.Installed = guest.Install{}
	if o.j.Installed != nil {
		contract.Installed = *o.j.Installed
	}
	contract.Spent = o.j.Spent
	contract.Declined = append(contract.Declined, o.j.Declined...)
	if was != nil {
		contract.Declined = append([]string(nil), was.Declined...)
		contract.Spent = was.Spent
	}
	anywhere := o.j.Wanted
	anywhere.RootfsStorage = "" // a configuration need not name the storage
	for _, install := range []guest.Install{o.j.Wanted, anywhere} {
		if hash := install.Hash(); !contains(contract.Declined, hash) {
			contract.Declined = append(contract.Declined, hash)
		}
	}
	return contract
}
