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

// container is the recipe that installs and updates share with reinstalls.
func (i *Instance) container() *Container {
	c := i.Container
	c.archives = i.Archives
	return &c
}

// Machine returns what a node's kernel calls its processor: "x86_64", "aarch64".
func (i *Instance) Machine(ctx context.Context, node string) (string, error) {
	return i.Host.Machine(ctx, node)
}

// Observe looks at an application container with one config read. A contract that names another VMID is in
// Observation.Foreign: the container was restored or cloned, and Plan says whether it can be adopted.
func (i *Instance) Observe(ctx context.Context, id guest.VMID) (Observation, error) {
	return i.observe(ctx, id)
}

// Plan judges what is due: Preview.Operation is OpInstall, OpUpdate, OpModify or OpAdopt, and zero when nothing is. Every
// fact is read as far as it is needed, nothing is changed.
func (i *Instance) Plan(ctx context.Context, seen Observation, want preview.Want) (preview.Preview, error) {
	return i.plan(ctx, i.lists(), seen, want)
}

// PlanRemove judges the removal of the container.
func (i *Instance) PlanRemove(ctx context.Context, seen Observation, want preview.Want) (preview.Preview, error) {
	return i.planRemove(ctx, i.lists(), seen, want)
}

// PlanReconcile judges what resume, rollback or close would do to the operation in seen.Journal.
func (i *Instance) PlanReconcile(ctx context.Context, seen Observation, want preview.Want, r Reconcile) (preview.Preview, error) {
	return i.planReconcile(ctx, seen, want, r)
}

// Apply does what Plan judges, which is judged again, or what Reconcile asks. An update that turned out unhealthy and was
// taken back has the status StatusRolledBack and an error that says so.
func (i *Instance) Apply(ctx context.Context, req Request) (Result, error) {
	return i.apply(ctx, req)
}

// Remove removes the container with its volumes, after judging it again.
func (i *Instance) Remove(ctx context.Context, req Request) (Result, error) {
	return i.remove(ctx, req)
}
