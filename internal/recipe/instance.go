package recipe

import (
	"context"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
)

// Archives brings images to storages. It decides nothing and is asked before anything is stopped.
type Archives interface {
	// Place makes sure that the archive of an image is on a storage of the node and returns its volume id. An archive that is
	// there already, whole, is neither fetched nor uploaded. The image is named by digest; a tag is not asked for.
	Place(ctx context.Context, node, storage string, image preview.Image) (guest.VolumeID, error)
	// Remove deletes an archive that Place made. The port refuses any other file.
	Remove(ctx context.Context, node string, archive guest.VolumeID) error
}

// Instance keeps application containers made from OCI images. Install: place archive → create → attach volumes → configure →
// start → settle. Update: the container recipe with the archive as source, and a configure between create and start.
// Modify: what can be done on the live container, with a restart where one is needed. Remove: claim → stop → destroy.
type Instance struct {
	Container

	Archives Archives
}

// Observe looks at an application container with one config read. A contract that names another VMID is in
// Observation.Foreign: the container was restored or cloned, and Plan says whether it can be adopted.
func (i *Instance) Observe(ctx context.Context, id guest.VMID) (Observation, error) {
	return i.observe(ctx, id)
}
