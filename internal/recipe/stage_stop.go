package recipe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/stage"
)

// stop takes the guest out of everything that would start it again (onboot, HA) and stops it: hazard B7.
func (o *operation) stop() stage.Stage {
	return stage.Stage{Name: "stop", Do: o.doStop, Undo: o.undoStop, Seen: func(ctx context.Context) (stage.Effect, error) {
		running, _, err := o.host.Running(ctx, o.guest)
		if err != nil {
			return stage.Unclear, err
		}
		config, err := o.host.Config(ctx, o.guest)
		if err != nil {
			return stage.Unclear, err
		}
		if running || config.Values["onboot"] == "1" {
			return stage.Partly, nil
		}
		if len(o.j.HA) > 0 {
			resources, err := o.host.HA(ctx)
			if err != nil {
				return stage.Unclear, err
			}
			if resources[o.guest.VMID].Managed {
				return stage.Partly, nil
			}
		}
		if o.compare(config, "while it was being stopped") != nil {
			return stage.Partly, nil //nolint:nilerr // stopped, and not the guest that was judged
		}
		return stage.Whole, nil
	}}
}

func (o *operation) doStop(ctx context.Context) error {
	if err := o.edit(ctx, o.guest, func(c guest.Config) (map[string]string, []string) {
		if c.Values["onboot"] != "1" {
			return nil, nil
		}
		return map[string]string{"onboot": "0"}, nil
	}); err != nil {
		return fmt.Errorf("cannot set onboot=0: %w", err)
	}
	if err := o.leaveHA(ctx); err != nil {
		return err
	}
	if err := o.shutDown(ctx); err != nil {
		return err
	}
	return o.unchanged(ctx, "while it was being stopped")
}

// leaveHA removes the HA resource, without purge so that its rules stay (hazard B12).
func (o *operation) leaveHA(ctx context.Context) error {
	if len(o.j.HA) == 0 {
		return nil
	}
	resources, err := o.host.HA(ctx)
	if err != nil {
		return fmt.Errorf("cannot read the HA resources: %w", err)
	}
	if !resources[o.guest.VMID].Managed {
		return nil
	}
	if err := o.host.RemoveHA(ctx, o.guest); err != nil {
		return fmt.Errorf("cannot set HA aside: %w", err)
	}
	return nil
}

func (o *operation) shutDown(ctx context.Context) error {
	running, _, err := o.host.Running(ctx, o.guest)
	if err != nil || !running {
		return err
	}
	limit := o.req.Stop.Timeout
	if limit <= 0 {
		limit = stopTime
	}
	err = o.host.Shutdown(ctx, o.guest, int(limit/time.Second))
	running, _, seen := o.host.Running(ctx, o.guest)
	switch {
	case seen != nil:
		return errors.Join(err, seen)
	case !running:
		return nil
	case !o.req.Stop.Force:
		return errors.Join(fmt.Errorf("the guest did not shut down within %s; stop = { force = true } would end it then", limit), err)
	}
	return o.halt(ctx, o.guest)
}

// undoStop brings back what made the guest start, and starts it if it ran.
func (o *operation) undoStop(ctx context.Context) error {
	if o.j.Config["onboot"] == "1" {
		if err := o.edit(ctx, o.guest, func(c guest.Config) (map[string]string, []string) {
			if c.Values["onboot"] == "1" {
				return nil, nil
			}
			return map[string]string{"onboot": "1"}, nil
		}); err != nil {
			return fmt.Errorf("cannot set onboot=1 again: %w", err)
		}
	}
	if err := o.returnToHA(ctx); err != nil {
		return err
	}
	return o.startIfItRan(ctx)
}

func (o *operation) returnToHA(ctx context.Context) error {
	if len(o.j.HA) == 0 {
		return nil
	}
	resources, err := o.host.HA(ctx)
	if err != nil {
		return fmt.Errorf("cannot read the HA resources: %w", err)
	}
	if resources[o.guest.VMID].Managed {
		return nil
	}
	err = o.host.AddHA(ctx, o.guest, o.j.HA)
	if err == nil {
		return nil
	}
	if resources, seen := o.host.HA(ctx); seen == nil && resources[o.guest.VMID].Managed {
		return nil
	}
	return fmt.Errorf("cannot give the guest back to HA: %w", err)
}

func (o *operation) startIfItRan(ctx context.Context) error {
	if !o.j.Running {
		return nil
	}
	return o.startIt(ctx)
}

func (o *operation) startIt(ctx context.Context) error {
	running, _, err := o.host.Running(ctx, o.guest)
	if err != nil || running {
		return err
	}
	err = o.host.Start(ctx, o.guest)
	if err == nil {
		return nil
	}
	if running, _, seen := o.host.Running(ctx, o.guest); seen == nil && running {
		return nil
	}
	return fmt.Errorf("the guest does not start: %w", err)
}

// changedError says that the guest is no longer what the plan showed.
type changedError struct {
	when string
	diff []preview.Difference
}

func (e changedError) Error() string {
	text := "the guest has changed " + e.when + ":"
	for _, d := range e.diff {
		text += " " + d.Text()
	}
	return text
}

// unchanged compares the guest with what the plan acknowledged, without what this operation changed itself.
func (o *operation) unchanged(ctx context.Context, when string) error {
	config, err := o.host.Config(ctx, o.guest)
	if err != nil {
		return err
	}
	return o.compare(config, when)
}

func (o *operation) compare(config guest.Config, when string) error {
	was := preview.Acknowledge(guest.Guest{Ref: o.guest, Config: guest.Config{Values: o.j.Config}})
	now := preview.Acknowledge(guest.Guest{Ref: o.guest, Config: config})
	if diff := was.CompareDuring(now, o.j); len(diff) > 0 {
		return changedError{when: when, diff: diff}
	}
	return nil
}

// deleteSnapshots deletes the snapshots that allow waived: a move refuses volumes that they hold. There is no way back, and
// the preview says so.
func (o *operation) deleteSnapshots() stage.Stage {
	left := func(ctx context.Context) ([]string, error) {
		snapshots, err := o.host.Snapshots(ctx, o.guest)
		if err != nil {
			return nil, err
		}
		var names []string
		for _, s := range snapshots {
			names = append(names, s.Name)
		}
		return names, nil
	}
	return stage.Stage{
		Name: "delete snapshots",
		Do: func(ctx context.Context) error {
			names, err := left(ctx)
			if err != nil {
				return err
			}
			for _, name := range names {
				if !contains(o.j.Snaps, name) {
					return fmt.Errorf("snapshot %q was taken after the plan", name)
				}
				if err := o.host.DeleteSnapshot(ctx, o.guest, name); err != nil {
					return fmt.Errorf("cannot delete snapshot %q: %w", name, err)
				}
			}
			return nil
		},
		Seen: func(ctx context.Context) (stage.Effect, error) {
			names, err := left(ctx)
			switch {
			case err != nil:
				return stage.Unclear, err
			case len(names) == 0:
				return stage.Whole, nil
			}
			return stage.Partly, nil
		},
	}
}

func contains(list []string, s string) bool {
	for _, have := range list {
		if have == s {
			return true
		}
	}
	return false
}
