package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/oci"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
)

// usualPlatform is what an image is taken for when nobody says otherwise: what Proxmox VE runs on.
const usualPlatform = "linux/amd64"

// platformOf is the platform that is asked for, else the one that is recorded, else the node's, else the usual one.
func platformOf(asked, recorded, machine string) (oci.Platform, error) {
	switch {
	case asked != "":
		return oci.ParsePlatform(asked)
	case recorded != "":
		return oci.ParsePlatform(recorded)
	case machine == "aarch64":
		return oci.ParsePlatform("linux/arm64")
	case machine == "riscv64":
		return oci.ParsePlatform("linux/riscv64")
	}
	return oci.ParsePlatform(usualPlatform)
}

// machine asks for the processor of the node that a container is to be made on. A login that may not (Sys.Audit on the node)
// leaves it open.
func (r *instanceResource) machine(ctx context.Context, m *instanceModel, known guest.Application) string {
	if known.Arch != "" || m.Platform.ValueString() != "" || m.Node.ValueString() == "" {
		return ""
	}
	machine, err := r.operator().Machine(ctx, m.Node.ValueString())
	if err != nil {
		tflog.Debug(r.session.masked(ctx), "the node does not say which processor it has", map[string]any{"node": m.Node.ValueString(), "problem": err.Error()})
		return ""
	}
	return machine
}

// seenImage is what a look at the registry found for a reference, in a form that lasts from plan to apply.
type seenImage struct {
	Reference string `json:"reference"`
	Digest    string `json:"digest"`
	Manifest  string `json:"manifest,omitempty"`
}

// applicationOf is what the container's record says it is made from; nil when nothing does.
func applicationOf(contract, foreign *guest.Contract) *guest.Application {
	switch {
	case contract != nil && contract.App != nil:
		return contract.App
	case contract == nil && foreign != nil:
		return foreign.App
	}
	return nil
}

// image finds out which image is wanted. While the reference is the recorded one, that is the recorded digest, and the
// registry is not asked; one that is followed was asked for by Read, so that plan and apply mean the same digest. Otherwise
// the reference is resolved. A registry that cannot say leaves the digest open, with the reason.
func (r *instanceResource) image(ctx context.Context, m *instanceModel, app *guest.Application, last instanceMemo) (image preview.Image, diags diag.Diagnostics) {
	var known guest.Application
	if app != nil {
		known = *app
	}
	platform, err := platformOf(m.Platform.ValueString(), known.Arch, r.machine(ctx, m, known))
	if err != nil {
		diags.AddAttributeError(path.Root("platform"), "platform is not usable", sentence(err.Error()))
		return image, diags
	}
	if known.Arch != "" && platform.Arch() != known.Arch {
		diags.AddAttributeError(path.Root("platform"), "platform cannot change",
			fmt.Sprintf("The container is made for %s, and stays so. Put platform back, or make another container.", known.Arch))
		return image, diags
	}
	if m.Image.IsUnknown() {
		return preview.Image{Arch: platform.Arch()}, diags // it counts as changed; the apply resolves it before any effect
	}
	ref, err := oci.ParseReference(m.Image.ValueString())
	if err != nil {
		diags.AddAttributeError(path.Root("image"), "image is not usable", sentence(err.Error()))
		return image, diags
	}
	image = preview.Image{Reference: ref.String(), Repository: ref.Name(), Arch: platform.Arch()}
	follows := m.Follows.ValueString() == "follow"
	recorded := seenImage{Reference: known.Image, Digest: known.Digest, Manifest: known.Manifest}
	moved := follows && last.Available.Reference == image.Reference && last.Available.Digest != "" && last.Available.Digest != known.Digest
	switch {
	case known.Image == image.Reference && !moved:
		return recorded.of(image), diags
	case last.Declined.Reference == image.Reference && (!follows || last.Declined.Digest == last.Available.Digest):
		return last.Declined.of(image), diags
	case moved:
		ref.Tag, ref.Digest = "", oci.Digest(last.Available.Digest)
	}
	return r.resolve(ctx, image, ref, platform, recorded), diags
}

// of completes an image with the digests that were seen before.
func (s seenImage) of(image preview.Image) preview.Image {
	image.Digest, image.Manifest = s.Digest, s.Manifest
	if manifest, err := oci.ParseDigest(s.Manifest); err == nil {
		if ref, err := oci.ParseReference(image.Reference); err == nil {
			image.Archive = oci.ArchiveName(ref, manifest)
		}
	}
	return image
}

// resolve asks the registry: the reference, then, when that is not the recorded image, what the image says about itself. No
// layer is fetched.
func (r *instanceResource) resolve(ctx context.Context, image preview.Image, ref oci.Reference, platform oci.Platform, recorded seenImage) preview.Image {
	ctx = r.session.masked(ctx)
	found, err := r.session.images.Resolve(ctx, ref, platform)
	if err != nil {
		image.Why = err.Error()
		return image
	}
	if found.Digest.String() == recorded.Digest && found.Manifest.String() == recorded.Manifest {
		return recorded.of(image)
	}
	config, err := r.session.images.Inspect(ctx, found)
	if err != nil {
		image.Why = err.Error()
		return image
	}
	outline, err := r.session.images.Outline(ctx, found)
	if err != nil {
		image.Why = err.Error()
		return image
	}
	image.Digest, image.Manifest = found.Digest.String(), found.Manifest.String()
	image.Archive, image.Size = outline.Name, guest.Bytes(outline.Size)
	image.Read, image.Declared, image.User = true, config.Volumes, config.User
	return image
}

// available asks which digest the reference names now: one HEAD, and none for a reference without a tag.
func (r *instanceResource) available(ctx context.Context, reference string) (seenImage, error) {
	ref, err := oci.ParseReference(reference)
	if err != nil {
		return seenImage{}, err
	}
	seen := seenImage{Reference: ref.String(), Digest: ref.Digest.String()}
	if ref.Tag == "" {
		return seen, nil
	}
	ref.Digest = "" // it may be another one by now, and that is what is asked
	digest, err := r.session.images.Digest(r.session.masked(ctx), ref)
	seen.Digest = digest.String()
	return seen, err
}
