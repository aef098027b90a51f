package recipe

import (
	"context"
	"fmt"
	"slices"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/stage"
)

// prepare makes the new system disks on a VM that is left off, while the old system still runs: image, space and privileges
// are proven before anything is at stake. In place that VM is a parking guest; of a replacement it is the new VM.
func (o *operation) prepare() stage.Stage {
	return stage.Stage{
		Name: "prepare",
		Do:   o.doPrepare,
		Undo: func(ctx context.Context) error {
			if err := o.removeParking(ctx); err != nil {
				return err
			}
			return o.dropNewDisks(ctx)
		},
		Seen: func(ctx context.Context) (stage.Effect, error) {
			config, err := o.host.Config(ctx, o.parking)
			switch {
			case err != nil && guest.OutcomeOf(err) == guest.OutcomeMissing:
				return stage.None, nil
			case err != nil:
				return stage.Unclear, err
			case !o.ours(config, o.parking.VMID):
				return stage.None, nil
			}
			return stage.Partly, nil
		},
	}
}

func (o *operation) doPrepare(ctx context.Context) error {
	if err := o.makeParking(ctx); err != nil {
		return err
	}
	config, err := o.host.Config(ctx, o.parking)
	if err != nil {
		return err
	}
	next := o.j
	next.Parked = slices.Clone(o.j.Parked)
	for _, d := range o.j.Disks {
		if d.Storage == "" || d.Late {
			continue
		}
		if id, err := volumeAt(config, d.Key); err != nil || id == (guest.VolumeID{}) {
			return fmt.Errorf("VM %d was made without %s: %w", o.parking.VMID, d.Key, err)
		}
		if d.Size > 0 && d.Source != "" {
			if err := o.host.Resize(ctx, o.parking, d.Key, d.Size); err != nil {
				return fmt.Errorf("cannot make %s as large as %s: %w", d.Key, d.Size.GiB(), err)
			}
		}
	}
	if config, err = o.host.Config(ctx, o.parking); err != nil {
		return err
	}
	for i, p := range next.Parked {
		if value, there := config.Get(p.Key); there && !o.j.Replace {
			next.Parked[i].Value = value
		}
	}
	if err := o.save(ctx, next); err != nil {
		return err
	}
	if !o.j.Replace {
		return nil
	}
	firewall, err := o.host.Firewall(ctx, o.guest)
	if err != nil {
		return fmt.Errorf("cannot read the firewall of VM %d: %w", o.guest.VMID, err)
	}
	if firewall.Empty() {
		return nil
	}
	if err := o.host.SetFirewall(ctx, o.parking, firewall); err != nil {
		return fmt.Errorf("cannot copy the firewall to VM %d: %w", o.parking.VMID, err)
	}
	return nil
}

// createSpareVM creates the VM that gets the new system disks.
func (o *operation) createSpareVM(ctx context.Context) error {
	next := o.j
	next.Task, next.Leaving = o.c.now().Unix(), false
	if err := o.save(ctx, next); err != nil {
		return err
	}
	notes, err := o.notesFor(ctx, o.parking)
	if err != nil {
		return err
	}
	params := map[string]string{"name": parkingName(o.guest.VMID)}
	if o.c.ParkingPool != "" {
		params["pool"] = o.c.ParkingPool
	}
	if o.j.Replace {
		params = o.newHardware()
	}
	params["description"], params["onboot"] = notes, "0"
	for _, d := range o.j.Disks {
		if d.Storage != "" && !d.Late {
			params[d.Key] = newDisk(d)
		}
	}
	warnings, err := o.host.CreateVM(ctx, o.parking, params)
	for _, w := range warnings {
		o.warn("VM %d: %s", o.parking.VMID, w)
	}
	if err != nil {
		return fmt.Errorf("cannot create VM %d: %w", o.parking.VMID, err)
	}
	return nil
}

// newHardware is the configuration of the VM that replaces the old one, without its disks: those are made or handed over. It
// gets a cloud-init drive of its own where the old one has one: such a drive is never data and never moved (hazard C10).
func (o *operation) newHardware() map[string]string {
	params := preview.CarryVM(o.j.Config, o.j.Drop, o.login.RootTicket, o.req.Want.VM.NewIdentity)
	if o.j.Pool != "" {
		params["pool"] = o.j.Pool
	}
	disks, _ := guest.Disks(guest.Config{Values: o.j.Config})
	for _, d := range disks {
		switch id, isVolume := d.Volume(); {
		case d.CloudInit && isVolume:
			params[d.Key] = id.Storage + ":cloudinit"
		case d.CDROM && contains(o.j.Refs, d.Key):
			params[d.Key] = d.WithoutSize()
		}
	}
	return params
}

// removableVM answers whether a VM that the operation made holds nothing but what the operation made: new system disks and
// what Proxmox generates. Its configuration (main, pending, snapshots) must name only those, and the content lists nothing
// else of that VMID. Not seen is unknown, and unknown is no (hazard A3).
func (o *operation) removableVM(ctx context.Context) ([]guest.VolumeID, error) {
	no := func(format string, args ...any) ([]guest.VolumeID, error) {
		return nil, fmt.Errorf("VM %d is not removed: %s", o.parking.VMID, fmt.Sprintf(format, args...))
	}
	config, err := o.host.Config(ctx, o.parking)
	if err != nil {
		return nil, err
	}
	var own []guest.VolumeID
	disks, bad := guest.Disks(config)
	if len(bad) > 0 {
		return no("%s cannot be read: %s", bad[0].Key, bad[0].Why)
	}
	for _, d := range disks {
		id, isVolume := d.Volume()
		switch {
		case d.CloudInit && isVolume:
			own = append(own, id)
		case d.CDROM:
		case isVolume && slices.ContainsFunc(o.j.Disks, func(s guest.SystemDisk) bool { return s.Key == d.Key && s.Storage != "" }):
			own = append(own, id)
		default:
			return no("it holds %s (%s)", d.Key, d.Source)
		}
	}
	changes, err := o.host.Pending(ctx, o.parking)
	if err != nil {
		return nil, err
	}
	if len(changes) > 0 {
		return no("it has pending changes (%s)", changes[0].Key)
	}
	snapshots, err := o.host.Snapshots(ctx, o.parking)
	if err != nil {
		return nil, err
	}
	if len(snapshots) > 0 {
		return no("it has snapshot %q", snapshots[0].Name)
	}
	owned, err := o.ownedBy(ctx, o.parking)
	if err != nil {
		return nil, err
	}
	for _, row := range owned {
		if !slices.Contains(own, row.ID) {
			return no("volume %s belongs to it", row.ID)
		}
	}
	return own, nil
}

// dropNewDisks deletes the new system disks that were put in place and taken out again. Each is deleted by its volume id,
// and none that the VM had before (hazard C13: keys are used again).
func (o *operation) dropNewDisks(ctx context.Context) error {
	if o.j.Replace {
		return nil // they went with the new VM
	}
	for _, d := range o.j.Disks {
		id, err := guest.ParseVolumeID(d.Now)
		if err != nil {
			continue
		}
		if slices.ContainsFunc(guest.Volumes(guest.KindVM, guest.Config{Values: o.j.Config}), func(n guest.Named) bool { return n.ID == id }) {
			return fmt.Errorf("the record takes %s for a new disk, and the VM had it before: nothing is deleted", id)
		}
		if err := o.dropVolume(ctx, id); err != nil {
			return fmt.Errorf("cannot delete the new %s: %w", d.Key, err)
		}
	}
	return nil
}

// dropVolume deletes a volume of the VM that an unused entry names. One that nothing names, and no storage lists, is gone.
func (o *operation) dropVolume(ctx context.Context, id guest.VolumeID) error {
	for tries := 0; ; tries++ {
		config, err := o.host.Config(ctx, o.guest)
		if err != nil {
			return err
		}
		at := ""
		for _, n := range guest.Volumes(guest.KindVM, config) {
			if n.ID == id {
				at = n.Key
			}
		}
		if at == "" {
			there, err := o.listed(ctx, id, o.guest.VMID)
			if err != nil || !there {
				return err
			}
			return fmt.Errorf("%s is on its storage and no key of VM %d names it", id, o.guest.VMID)
		}
		if name, _, _ := guest.SplitKey(at); name != "unused" {
			return fmt.Errorf("%s is in use as %s of VM %d", id, at, o.guest.VMID)
		}
		err = o.host.DropUnused(ctx, o.guest, at, id, config.Digest)
		if err == nil {
			continue // look again: done is when nothing names it
		}
		if outcome := guest.OutcomeOf(err); tries >= 5 || outcome != guest.OutcomeConflict && outcome != guest.OutcomeUnknown || ctx.Err() != nil {
			return err
		}
	}
}
