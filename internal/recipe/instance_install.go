package recipe

import (
	"context"
	"fmt"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/stage"
)

// installation makes an application container: create → (make volumes) → configure → settings → start → settle. The record
// lives in the new guest's own notes, from the create on. Every stage can be taken back: what was made is destroyed.
func (o *operation) installation() stage.Operation {
	partly := func(context.Context) (stage.Effect, error) { return stage.Partly, nil }
	stages := []stage.Stage{{Name: "create", Do: o.doInstall, Undo: o.unmake, Seen: func(context.Context) (stage.Effect, error) {
		if o.j.New {
			return stage.Whole, nil
		}
		return stage.Partly, nil // an undo looks by itself
	}}}
	stages = append(stages, o.deploy()...)
	return o.run(append(stages,
		stage.Stage{Name: "settings", Do: o.doSettings, Seen: partly},
		o.start(),
		stage.Stage{Name: "settle", Do: o.doInstalled, Seen: partly},
	))
}

func (o *operation) doInstall(ctx context.Context) error {
	if o.j.New {
		return nil
	}
	state, err := o.halfMade(ctx, o.guest, o.j.Task)
	if err != nil {
		return err
	}
	switch state {
	case madeByOthers:
		o.beaten = true
		return takenError{ref: o.guest}
	case madeHalf:
		if err := o.unmake(ctx); err != nil {
			return err
		}
		err = o.createNew(ctx)
	case madeNothing:
		err = o.createNew(ctx)
	case madeWhole:
		o.claimed = true
	}
	if err != nil {
		return err
	}
	next := o.j
	next.New = true
	return o.save(ctx, next)
}

// createNew creates the guest with the record in its notes. Until the create has ended there is nothing to write into.
func (o *operation) createNew(ctx context.Context) error {
	if err := o.haveArchive(ctx); err != nil {
		return err
	}
	o.claimed = false
	next := o.j
	next.Task, next.Stage, next.Index, next.Of = o.c.now().Unix(), "create", 1, len(o.engine().Stages)
	next.Holder, next.Runner, next.State, next.Sequence = o.guest.VMID, o.runner, guest.JournalDoing, next.Sequence+1
	o.j = next
	notes := guest.Notes{User: o.j.App.Set["description"], Journal: &next}.String()
	if n := guest.Length(notes); n > guest.NotesLimit {
		return fmt.Errorf("cannot write the record into notes: %d characters, Proxmox takes %d", n, guest.NotesLimit)
	}
	o.started = true
	warnings, err := o.host.CreateContainer(ctx, o.guest, o.newGuest(notes))
	for _, w := range warnings {
		o.warn("create: %s", w)
	}
	switch {
	case err == nil:
		o.claimed = true
		return nil
	case guest.OutcomeOf(err) == guest.OutcomeTaken:
		o.beaten = true
		return takenError{ref: o.guest, cause: err}
	}
	return fmt.Errorf("creating CT %d: %w", o.guest.VMID, err)
}

// unmake destroys what the install made, when it is there and ours by its record, with exactly the volumes that were made.
func (o *operation) unmake(ctx context.Context) error {
	if o.beaten {
		return nil
	}
	state, err := o.halfMade(ctx, o.guest, o.j.Task)
	if err != nil || state == madeNothing || state == madeByOthers {
		return err
	}
	if err := o.halt(ctx, o.guest); err != nil {
		return err
	}
	if o.j.App.Set["protection"] == "1" { // our own, set last
		if err := o.edit(ctx, o.guest, func(c guest.Config) (map[string]string, []string) {
			if _, there := c.Get("protection"); !there {
				return nil, nil
			}
			return nil, []string{"protection"}
		}); err != nil {
			return err
		}
	}
	if err := o.clearHalf(ctx); err != nil {
		return err
	}
	o.claimed = false
	return nil
}

// doSettings sets what stays out of a create: tags, which a policy may refuse, and onboot, which would start half a guest.
func (o *operation) doSettings(ctx context.Context) error {
	if err := o.stillOurs(ctx); err != nil {
		return err
	}
	if err := o.rejoinPool(ctx); err != nil {
		return err
	}
	return o.restoreKeys(ctx)
}

// doInstalled writes the contract and takes the record out, in one request.
func (o *operation) doInstalled(ctx context.Context) error {
	config, err := o.host.Config(ctx, o.guest)
	if err != nil {
		return err
	}
	if !o.ours(config, o.guest.VMID) {
		if c := guest.NotesOf(o.guest.VMID, config.Description()).Contract; c != nil && c.Operation == o.j.Operation {
			return nil // an earlier try arrived after all
		}
		return takenError{ref: o.guest}
	}
	if config, err = o.lastKeys(ctx, config); err != nil {
		return err
	}
	contract := o.contract()
	o.describe(&contract, config)
	err = o.editNotes(ctx, o.guest, func(n *guest.Notes) (bool, error) {
		if n.Journal == nil && n.Contract != nil && n.Contract.Operation == o.j.Operation {
			return false, nil
		}
		if n.Journal == nil || n.Journal.Operation != o.j.Operation {
			return false, &lostError{winner: n.Journal}
		}
		n.Journal, n.Contract = nil, &contract
		return true, nil
	})
	if err == nil {
		o.claimed = false
	}
	return err
}
