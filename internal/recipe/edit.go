package recipe

import (
	"context"
	"errors"
	"fmt"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// edit changes keys of a guest by compare and swap: change sees the present configuration and says what to set and what to
// remove; nothing to do ends it. Repeating is safe, since every request is bound to the digest it was made for.
func (o *operation) edit(ctx context.Context, ref guest.Ref, change func(guest.Config) (set map[string]string, remove []string)) error {
	const tries = 6
	var last error
	for range tries {
		config, err := o.host.Config(ctx, ref)
		if err != nil {
			return err
		}
		set, remove := change(config)
		if len(set) == 0 && len(remove) == 0 {
			return nil
		}
		last = o.host.SetConfig(ctx, ref, set, remove, config.Digest)
		switch outcome := guest.OutcomeOf(last); {
		case last == nil:
			return nil
		case ctx.Err() != nil:
			return errors.Join(last, ctx.Err())
		case outcome != guest.OutcomeConflict && outcome != guest.OutcomeUnknown:
			return last
		}
	}
	return last
}

// halt makes sure that a guest does not run, at once.
func (o *operation) halt(ctx context.Context, ref guest.Ref) error {
	running, _, err := o.host.Running(ctx, ref)
	if err != nil {
		return err
	}
	if !running {
		return nil
	}
	err = o.host.Stop(ctx, ref)
	running, _, seen := o.host.Running(ctx, ref)
	if seen != nil {
		return errors.Join(err, seen)
	}
	if running {
		return errors.Join(fmt.Errorf("%s %d does not stop", ref.Kind, ref.VMID), err)
	}
	return nil
}

// made says how far a create got.
type made uint8

const (
	madeNothing  made = iota + 1 // nobody is there
	madeWhole                    // ours, and its task ended well
	madeHalf                     // ours, and its task did not end well
	madeByOthers                 // somebody else's guest
)

// halfMade looks at a VMID that this operation creates a guest under. A complete-looking configuration proves nothing: only
// a task that ended well does (hazard B6). A create that still runs is waited for.
func (o *operation) halfMade(ctx context.Context, ref guest.Ref, since int64) (made, error) {
	for tries := 0; ; tries++ {
		config, err := o.host.Config(ctx, ref)
		if err != nil && guest.OutcomeOf(err) == guest.OutcomeDenied {
			return madeByOthers, nil
		}
		if err != nil && guest.OutcomeOf(err) != guest.OutcomeMissing {
			return 0, err
		}
		if err != nil {
			taken, err := o.host.VMIDTaken(ctx, ref.VMID)
			switch {
			case err != nil:
				return 0, err
			case taken:
				return madeByOthers, nil
			}
			return madeNothing, nil
		}
		var task FoundTask
		if since > 0 {
			if task, err = o.host.FindTask(ctx, ref.Node, o.makes(), ref.VMID, since); err != nil {
				return 0, err
			}
		}
		lock, mine := config.Values["lock"], o.ours(config, ref.VMID)
		switch {
		case task.Found && task.Running:
			if err := o.c.sleep(ctx, waitFor(tries)); err != nil {
				return 0, err
			}
		case lock == "create":
			return 0, stubError{ref: ref}
		case !mine && ref == o.guest && task.Good && o.resembles(config):
			return madeWhole, nil // another tool overwrote its notes before the record said that it is made (hazard C5)
		case !mine:
			return madeByOthers, nil
		case task.Found && task.Good:
			return madeWhole, nil
		default:
			return madeHalf, nil
		}
	}
}

// stubError says that a killed create left a guest that no API call can remove.
type stubError struct{ ref guest.Ref }

func (e stubError) Error() string {
	tool := "pct"
	if e.ref.Kind == guest.KindVM {
		tool = "qm"
	}
	return fmt.Sprintf("%s %d is the stub of a create or a destroy that was killed, locked for ever: as root on %s run: %s unlock %d && %s destroy %d", e.ref.Kind, e.ref.VMID, e.ref.Node, tool, e.ref.VMID, tool, e.ref.VMID)
}

// makes is the type of the task that makes a guest in this operation.
func (o *operation) makes() string {
	switch {
	case o.guest.Kind == guest.KindVM:
		return "qmcreate"
	case o.j.Kind == kindRollback && o.j.App == nil:
		return "vzrestore"
	}
	return "vzcreate"
}
