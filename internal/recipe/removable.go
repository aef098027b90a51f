package recipe

import (
	"context"
	"fmt"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// removable answers the one question that stands before every destroy of a parking guest: does it hold nothing but its own
// root file system? Its configuration (main, pending, snapshots) must name only that, and the content list of every storage
// must show it, as proof that we can see, and nothing else of that VMID. Not seen is unknown, and unknown is no (hazard A3).
func (o *operation) removable(ctx context.Context, parking guest.Ref) (rootfs guest.VolumeID, err error) {
	no := func(format string, args ...any) (guest.VolumeID, error) {
		return guest.VolumeID{}, fmt.Errorf("parking guest CT %d is not removed: %s", parking.VMID, fmt.Sprintf(format, args...))
	}
	config, err := o.host.Config(ctx, parking)
	if err != nil {
		return guest.VolumeID{}, err
	}
	mounts, bad := config.Mounts()
	if len(bad) > 0 {
		return no("%s cannot be read: %s", bad[0].Key, bad[0].Why)
	}
	for _, m := range mounts {
		id, isVolume := m.Volume()
		switch {
		case m.Key == "rootfs" && isVolume:
			rootfs = id
		default:
			return no("it holds %s (%s)", m.Key, m.Source)
		}
	}
	if rootfs == (guest.VolumeID{}) {
		return no("it names no root file system")
	}
	changes, err := o.host.Pending(ctx, parking)
	if err != nil {
		return guest.VolumeID{}, err
	}
	if len(changes) > 0 {
		return no("it has pending changes (%s)", changes[0].Key)
	}
	snapshots, err := o.host.Snapshots(ctx, parking)
	if err != nil {
		return guest.VolumeID{}, err
	}
	if len(snapshots) > 0 {
		return no("it has snapshot %q", snapshots[0].Name)
	}
	owned, err := o.ownedBy(ctx, parking)
	if err != nil {
		return guest.VolumeID{}, err
	}
	seen := false
	for _, row := range owned {
		if row.ID != rootfs {
			return no("volume %s belongs to it", row.ID)
		}
		seen = true
	}
	if !seen && !o.j.Leaving { // a destroy of ours that died half-way has freed it
		return no("storage %s does not show its root file system %s, so it cannot be seen what else it owns", rootfs.Storage, rootfs.Name)
	}
	return rootfs, nil
}

// ownedBy lists every disk that any storage of the node shows as owned by a guest. A storage that does not answer is an
// error when the operation touches it.
func (o *operation) ownedBy(ctx context.Context, ref guest.Ref) ([]guest.StoredVolume, error) {
	storages, err := o.host.Storages(ctx, ref.Node)
	if err != nil {
		return nil, err
	}
	touched := o.touched()
	var owned []guest.StoredVolume
	for _, s := range storages {
		if !s.Has("rootdir") && !s.Has("images") && !touched[s.Name] {
			continue
		}
		if !s.Enabled || !s.Active {
			if touched[s.Name] {
				return nil, fmt.Errorf("storage %s is not active on %s", s.Name, ref.Node)
			}
			continue
		}
		rows, err := o.host.Content(ctx, ref.Node, s.Name, ref.VMID)
		if err != nil {
			if touched[s.Name] {
				return nil, fmt.Errorf("cannot list storage %s: %w", s.Name, err)
			}
			continue
		}
		for _, row := range rows {
			if row.Owner == ref.VMID && (row.Content == "rootdir" || row.Content == "images") {
				owned = append(owned, row)
			}
		}
		delete(touched, s.Name)
	}
	for name := range touched {
		return nil, fmt.Errorf("storage %s does not exist on %s", name, ref.Node)
	}
	return owned, nil
}

// touched names the storages that hold what the operation makes or moves.
func (o *operation) touched() map[string]bool {
	names := map[string]bool{}
	if o.j.Storage != "" {
		names[o.j.Storage] = true
	}
	for _, d := range o.j.Disks {
		if d.Storage != "" {
			names[d.Storage] = true
		}
	}
	for _, p := range o.j.Parked {
		if s, err := guest.ParseSlot(o.guest.Kind, p.Key, p.Value); err == nil {
			if id, ok := s.Volume(); ok {
				names[id.Storage] = true
			}
		}
	}
	return names
}

// removeParking is the undo of the rehearsal: the parking guest goes when it is ours, off, and seen to hold nothing.
func (o *operation) removeParking(ctx context.Context) error {
	config, err := o.host.Config(ctx, o.parking)
	if err != nil {
		if guest.OutcomeOf(err) == guest.OutcomeMissing {
			return o.forgetParking(ctx)
		}
		return err
	}
	if config.Values["lock"] == "create" {
		if _, err := o.halfMade(ctx, o.parking, o.j.Task); err != nil {
			return err
		}
		return o.removeParking(ctx)
	}
	if !o.ours(config, o.parking.VMID) {
		return o.forgetParking(ctx) // somebody else's guest: never touched
	}
	if err := o.halt(ctx, o.parking); err != nil {
		return err
	}
	if o.guest.Kind == guest.KindContainer {
		if err := o.clearTrials(ctx); err != nil {
			return err
		}
		if err := o.liftGuard(ctx); err != nil { // set while somebody had it running, it came into force only now
			return err
		}
	}
	if err := o.forgetParking(ctx); err != nil {
		return err
	}
	return o.destroyParking(ctx)
}

// forgetParking moves the record's home back to the guest: what comes after must not write into a guest that goes.
func (o *operation) forgetParking(ctx context.Context) error {
	if !o.j.Made {
		return nil
	}
	next := o.j
	next.Made = false
	return o.saveTo(ctx, o.guest, next)
}

// spareVolumes are the volumes that go with the parking guest, when nothing else does.
func (o *operation) spareVolumes(ctx context.Context) ([]guest.VolumeID, error) {
	if o.guest.Kind == guest.KindVM {
		return o.removableVM(ctx)
	}
	rootfs, err := o.removable(ctx, o.parking)
	return []guest.VolumeID{rootfs}, err
}

// destroyParking destroys the parking guest when removable says so.
func (o *operation) destroyParking(ctx context.Context) error {
	announced, err := o.spareVolumes(ctx)
	if err != nil {
		if guest.OutcomeOf(err) == guest.OutcomeMissing {
			return nil
		}
		return err
	}
	next := o.j
	next.Leaving = true
	if err := o.save(ctx, next); err != nil {
		return err
	}
	warnings, err := o.host.Destroy(ctx, o.parking, announced)
	for _, w := range warnings {
		o.warn("removing parking guest %s %d: %s", o.parking.Kind, o.parking.VMID, w)
	}
	if err == nil {
		return nil
	}
	if _, seen := o.host.Config(ctx, o.parking); seen != nil && guest.OutcomeOf(seen) == guest.OutcomeMissing {
		return nil
	}
	return fmt.Errorf("cannot remove parking guest %s %d: %w", o.parking.Kind, o.parking.VMID, err)
}
