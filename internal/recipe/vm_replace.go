package recipe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/stage"
)

// retire renames the old VM, which is off and is not started at boot any more, so that nobody takes it for the new one.
// Taken back, it gets its name and its boot setting back.
func (o *operation) retire() stage.Stage {
	old := retiredName(o.j.Config["name"], o.guest.VMID)
	return stage.Stage{
		Name: "retire",
		Do: func(ctx context.Context) error {
			if err := o.edit(ctx, o.guest, func(c guest.Config) (map[string]string, []string) {
				if c.Values["name"] == old {
					return nil, nil
				}
				return map[string]string{"name": old}, nil
			}); err != nil {
				return fmt.Errorf("cannot rename VM %d: %w", o.guest.VMID, err)
			}
			return nil
		},
		Undo: func(ctx context.Context) error {
			return o.edit(ctx, o.guest, func(c guest.Config) (map[string]string, []string) {
				set, remove := o.withBoot(c, map[string]string{})
				if was, had := o.j.Config["name"]; !had && c.Values["name"] == old {
					remove = append(remove, "name")
				} else if had && c.Values["name"] != was {
					set["name"] = was
				}
				return set, remove
			})
		},
		Seen: func(ctx context.Context) (stage.Effect, error) {
			config, err := o.host.Config(ctx, o.guest)
			switch {
			case err != nil:
				return stage.Unclear, err
			case config.Values["name"] == old:
				return stage.Whole, nil
			}
			return stage.None, nil
		},
	}
}

// retiredName is what the old VM is called from then on. A label of a DNS name has 63 characters at most; a VM without a name
// gets one by its VMID.
func retiredName(name string, id guest.VMID) string {
	const suffix, longest = "-old", 63
	if name == "" {
		name = "vm-" + id.String()
	}
	domain, label := "", name
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		domain, label = name[:i+1], name[i+1:]
	}
	if len(label)+len(suffix) > longest {
		label = strings.TrimRight(label[:longest-len(suffix)], "-")
	}
	return domain + label + suffix
}

// follow gives the new VM what the cluster keeps beside a configuration: pool, access control, tags, onboot, HA. The firewall
// came with the disks. Backup jobs that name the old VM name the new one: a backup of the old one has no data in it any more
// and would push a good one out (hazard A4). Where the login may not change them, that is said.
func (o *operation) follow() stage.Stage {
	return stage.Stage{
		Name: "follow",
		Do: func(ctx context.Context) error {
			if err := o.rejoinPool(ctx); err != nil {
				return err
			}
			if err := o.regrant(ctx); err != nil {
				return err
			}
			if err := o.restoreKeys(ctx); err != nil {
				return err
			}
			if err := o.giveToHA(ctx); err != nil {
				return err
			}
			return o.followJobs(ctx)
		},
		Undo: func(ctx context.Context) error {
			for _, id := range o.j.Jobs {
				if err := o.host.RenameInBackupJob(ctx, id, o.parking.VMID, o.guest.VMID); err != nil && guest.OutcomeOf(err) != guest.OutcomeMissing {
					return fmt.Errorf("cannot let backup job %s name VM %d again: %w", id, o.guest.VMID, err)
				}
			}
			return o.leaveHAAs(ctx, o.parking)
		},
		Seen: func(context.Context) (stage.Effect, error) { return stage.Partly, nil },
	}
}

// leaveHAAs takes a VM out of HA, where the operation knows of HA at all.
func (o *operation) leaveHAAs(ctx context.Context, ref guest.Ref) error {
	if len(o.j.HA) == 0 {
		return nil
	}
	resources, err := o.host.HA(ctx)
	if err != nil {
		return fmt.Errorf("cannot read the HA resources: %w", err)
	}
	if !resources[ref.VMID].Managed {
		return nil
	}
	if err := o.host.RemoveHA(ctx, ref); err != nil {
		return fmt.Errorf("cannot take %s %d out of HA: %w", ref.Kind, ref.VMID, err)
	}
	return nil
}

func (o *operation) giveToHA(ctx context.Context) error {
	if len(o.j.HA) == 0 {
		return nil
	}
	resources, err := o.host.HA(ctx)
	if err != nil {
		return fmt.Errorf("cannot read the HA resources: %w", err)
	}
	if resources[o.parking.VMID].Managed {
		return nil
	}
	err = o.host.AddHA(ctx, o.parking, o.j.HA)
	if err == nil {
		return nil
	}
	if resources, seen := o.host.HA(ctx); seen == nil && resources[o.parking.VMID].Managed {
		return nil
	}
	return fmt.Errorf("cannot give VM %d to HA: %w", o.parking.VMID, err)
}

// followJobs records which jobs it changes before it does, so that an undo changes no others.
func (o *operation) followJobs(ctx context.Context) error {
	jobs, err := o.host.BackupJobs(ctx)
	if err != nil {
		o.warn("backup jobs could not be read: %s", err)
		return nil
	}
	next := o.j
	for _, job := range jobs {
		if slices.Contains(job.Covers, o.guest.VMID) && job.Pool == "" && !job.All && !slices.Contains(job.Covers, o.parking.VMID) && !contains(next.Jobs, job.ID) {
			next.Jobs = append(slices.Clone(next.Jobs), job.ID)
		}
	}
	if len(next.Jobs) == 0 {
		return nil
	}
	if err := o.save(ctx, next); err != nil {
		return err
	}
	for _, id := range next.Jobs {
		err := o.host.RenameInBackupJob(ctx, id, o.guest.VMID, o.parking.VMID)
		switch {
		case err == nil:
		case guest.OutcomeOf(err) == guest.OutcomeDenied:
			o.warn("backup job %s names VM %d, and this login may not change it: let it name VM %d", id, o.guest.VMID, o.parking.VMID)
		default:
			return fmt.Errorf("cannot let backup job %s name VM %d: %w", id, o.parking.VMID, err)
		}
	}
	return nil
}

// destroyOld destroys the old VM at an accept, once it is seen to own nothing that was to be kept: attached, unused, pending,
// in snapshots, or by a storage's listing.
func (o *operation) destroyOld() stage.Stage {
	return stage.Stage{
		Name: "destroy old VM",
		Do:   o.doDestroyOld,
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

func (o *operation) doDestroyOld(ctx context.Context) error {
	config, err := o.host.Config(ctx, o.guest)
	if err != nil {
		if guest.OutcomeOf(err) == guest.OutcomeMissing {
			return nil
		}
		return err
	}
	if !o.ours(config, o.guest.VMID) {
		return takenError{ref: o.guest}
	}
	running, _, err := o.host.Running(ctx, o.guest)
	if err != nil || running {
		return errors.Join(fmt.Errorf("VM %d runs: it is not destroyed", o.guest.VMID), err)
	}
	facts, err := (*VM)(o.c).reconcileFacts(ctx, o.host, o.j, o.req.Want)
	if err != nil {
		return err
	}
	if judged := preview.ReconcileVM(preview.OpAccept, o.j, facts); len(judged.Blockers) > 0 {
		var found []string
		for _, b := range judged.Blockers {
			found = append(found, b.Found)
		}
		return errors.New(strings.Join(found, " "))
	}
	var announced []guest.VolumeID
	for _, n := range guest.Volumes(guest.KindVM, config) {
		announced = append(announced, n.ID) // each was judged just now
	}
	warnings, err := o.host.Destroy(ctx, o.guest, announced)
	for _, w := range warnings {
		o.warn("destroying VM %d: %s", o.guest.VMID, w)
	}
	if err == nil {
		return nil
	}
	if _, seen := o.host.Config(ctx, o.guest); seen != nil && guest.OutcomeOf(seen) == guest.OutcomeMissing {
		return nil
	}
	return fmt.Errorf("cannot destroy VM %d: %w", o.guest.VMID, err)
}
