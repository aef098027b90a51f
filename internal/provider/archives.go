package provider

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/oci"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// archiveStore is what archives need of Proxmox; *proxmox.Host is one.
type archiveStore interface {
	Content(ctx context.Context, node, storage string, owner guest.VMID) ([]guest.StoredVolume, error)
	UploadTemplate(ctx context.Context, node, storage, name, sha256 string, content io.ReaderAt, size int64) (guest.VolumeID, error)
	DeleteTemplate(ctx context.Context, node string, volume guest.VolumeID) error
}

// archives brings images from registries to storages. It is safe for concurrent use; one image at a time is on its way.
type archives struct {
	images *oci.Resolver
	store  archiveStore
	turn   chan struct{} // holds one token
}

func newArchives(images *oci.Resolver, store archiveStore) *archives {
	return &archives{images: images, store: store, turn: make(chan struct{}, 1)}
}

var _ recipe.Archives = (*archives)(nil)

// archivesOf are the archives at the place of a recipe; nil where there is no server behind it.
func archivesOf(containers operator, images *oci.Resolver) recipe.Archives {
	c, ok := containers.(*recipe.Container)
	if !ok {
		return nil
	}
	store, ok := c.Host.(archiveStore)
	if !ok {
		return nil
	}
	return newArchives(images, store)
}

// Place makes sure that the archive of an image is on a storage. One of its name and size is the archive, since the server
// compared its checksum when it was uploaded and its name holds the image's digest.
func (a *archives) Place(ctx context.Context, node, storage string, image preview.Image) (guest.VolumeID, error) {
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return guest.VolumeID{}, ctx.Err()
	}
	defer func() { <-a.turn }()
	wanted, err := pinned(image)
	if err != nil {
		return guest.VolumeID{}, err
	}
	found, err := a.there(ctx, node, storage, oci.ArchiveName(wanted.Reference, wanted.Manifest))
	if err != nil {
		return guest.VolumeID{}, err
	}
	outline, err := a.images.Outline(ctx, wanted)
	switch {
	case err != nil && found != nil && answersNothing(err):
		// The registry cannot tell the size. What has the name was uploaded whole, or it would not be there.
		tflog.Warn(ctx, "archive taken by its name: "+err.Error(), map[string]any{"archive": found.ID.String()})
		return found.ID, nil
	case err != nil:
		return guest.VolumeID{}, err
	case found != nil && int64(found.Size) == outline.Size:
		return found.ID, nil
	}
	fields := map[string]any{"image": wanted.String(), "storage": storage, "node": node}
	tflog.Info(ctx, "fetching the image", fields)
	archive, err := a.images.Fetch(ctx, wanted, "", progress(ctx, wanted.String()))
	if err != nil {
		return guest.VolumeID{}, err
	}
	defer func() {
		if err := archive.Close(); err != nil {
			tflog.Warn(ctx, "the temporary file of an archive cannot be closed: "+err.Error())
		}
	}()
	tflog.Info(ctx, "uploading the archive", fields)
	id, err := a.store.UploadTemplate(ctx, node, storage, archive.Name, archive.SHA256, archive.Reader(), archive.Size)
	if err == nil {
		tflog.Info(ctx, "the archive is uploaded and its checksum is compared", map[string]any{"archive": id.String()})
	}
	return id, err
}

// there looks an archive up by its name; nil when the storage does not have it.
func (a *archives) there(ctx context.Context, node, storage, name string) (*guest.StoredVolume, error) {
	rows, err := a.store.Content(ctx, node, storage, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot list storage %s: %w", storage, err)
	}
	for _, row := range rows {
		if row.ID.Storage == storage && row.ID.Name == "vztmpl/"+name {
			return &row, nil
		}
	}
	return nil, nil
}

// Remove deletes an archive. The port refuses any file that is not named like one.
func (a *archives) Remove(ctx context.Context, node string, archive guest.VolumeID) error {
	return a.store.DeleteTemplate(ctx, node, archive)
}

// answersNothing reports whether an error of a registry says nothing against the image: it cannot be asked, or has it no more.
func answersNothing(err error) bool {
	switch oci.ProblemOf(err) {
	case oci.ProblemUnreachable, oci.ProblemLimited, oci.ProblemMissing, oci.ProblemDenied:
		return true
	case oci.ProblemReference, oci.ProblemSettings, oci.ProblemMismatch, oci.ProblemPlatform, oci.ProblemUnsupported,
		oci.ProblemDamaged, oci.ProblemDisk, oci.ProblemCancelled:
	}
	return false
}

// pinned is an image by digest alone, for the registry.
func pinned(image preview.Image) (oci.Image, error) {
	text := image.Reference
	if text == "" {
		text = image.Pinned()
	}
	ref, err := oci.ParseReference(text)
	if err != nil {
		return oci.Image{}, err
	}
	digest, err := oci.ParseDigest(image.Digest)
	if err != nil {
		return oci.Image{}, err
	}
	manifest, err := oci.ParseDigest(image.Manifest)
	if err != nil {
		return oci.Image{}, err
	}
	platform, err := oci.ParsePlatform(image.Arch)
	if err != nil {
		return oci.Image{}, err
	}
	return oci.Image{Reference: ref.At(digest), Digest: digest, Manifest: manifest, Platform: platform}, nil
}

// progress logs how far a fetch has come, every ten seconds.
func progress(ctx context.Context, image string) func(oci.Progress) {
	last := time.Now()
	return func(p oci.Progress) {
		if time.Since(last) < 10*time.Second {
			return
		}
		last = time.Now()
		tflog.Info(ctx, fmt.Sprintf("fetching the image: %s of %s", guest.Bytes(p.Done).GiB(), guest.Bytes(p.Total).GiB()),
			map[string]any{"image": strings.TrimSpace(image)})
	}
}
