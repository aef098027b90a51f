package recipe

import (
	"context"
	"fmt"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
)

// fetch brings the archive of an image to a storage, before anything is claimed or stopped. fresh says that it was not there.
func (i *Instance) fetch(ctx context.Context, node, storage string, image preview.Image, facts preview.Facts) (archive guest.VolumeID, fresh bool, err error) {
	if i.Archives == nil {
		return guest.VolumeID{}, false, errNoArchives
	}
	archive, err = i.Archives.Place(ctx, node, storage, image)
	if err != nil {
		return archive, false, fmt.Errorf("cannot bring %s@%s to storage %s: %w", image.Repository, image.Digest, storage, err)
	}
	_, there := facts.Volumes[archive]
	return archive, !there && facts.Listed[storage], nil
}

// haveArchive makes sure that the archive of a recorded application is still where the record says, right before a create.
func (o *operation) haveArchive(ctx context.Context) error {
	if o.j.App == nil {
		return nil
	}
	app, install := o.made(), o.j.Wanted
	if o.j.App.Back && o.j.Installed != nil {
		install = *o.j.Installed
	}
	id, err := guest.ParseVolumeID(app.Archive)
	if err != nil {
		return fmt.Errorf("the record names no archive: %w", err)
	}
	rows, err := o.host.Content(ctx, o.guest.Node, id.Storage, 0)
	if err != nil {
		return fmt.Errorf("cannot list storage %s: %w", id.Storage, err)
	}
	for _, row := range rows {
		if row.ID == id {
			return nil
		}
	}
	if o.archives == nil {
		return errNoArchives
	}
	placed, err := o.archives.Place(ctx, o.guest.Node, id.Storage, imageOf(app, install))
	if err == nil && placed != id {
		err = fmt.Errorf("it was brought to %s", placed)
	}
	if err != nil {
		return fmt.Errorf("archive %s is gone and cannot be brought back: %w", id, err)
	}
	return nil
}

// sweepArchives removes the archives that the operation made superfluous: the one before the last, or on the way back the
// refused one. One that any other guest's contract or record names stays. What it cannot remove it reports.
func (o *operation) sweepArchives(ctx context.Context) {
	if o.j.App == nil || o.j.App.Was == nil {
		return
	}
	now := o.made()
	for _, archive := range []string{o.j.App.Next.Archive, o.j.App.Was.Previous} {
		if archive != "" && archive != now.Archive && archive != now.Previous {
			o.removeArchive(ctx, archive)
		}
	}
}

// removeArchive removes an archive that nobody else names.
func (o *operation) removeArchive(ctx context.Context, archive string) {
	if err := o.c.removeArchive(ctx, o.archives, o.guest, archive); err != nil {
		o.warn("archive %s stays: %s", archive, err)
	}
}

// removeArchive removes an archive that no other guest's contract or record names. A guest that cannot be read could.
func (c *Container) removeArchive(ctx context.Context, archives Archives, of guest.Ref, archive string) error {
	if archives == nil {
		return errNoArchives
	}
	id, err := guest.ParseVolumeID(archive)
	if err != nil {
		return err
	}
	rows, err := c.Host.Guests(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.Kind != guest.KindContainer || row.VMID == of.VMID {
			continue
		}
		config, err := c.Host.Config(ctx, row.Ref)
		if err != nil {
			if guest.OutcomeOf(err) == guest.OutcomeMissing {
				continue
			}
			return fmt.Errorf("CT %d, which may be made from it, cannot be read: %w", row.VMID, err)
		}
		if contains(guest.ReadNotes(config.Description()).Archives(), archive) {
			return nil // in use, and nothing to report
		}
	}
	return archives.Remove(ctx, of.Node, id)
}
