package provider

import (
	"context"
	"sync/atomic"

	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/oci"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
	"github.com/pvrx/terraform-provider-pvrx/internal/run"
)

// operator is what the semantics of a guest resource need of a recipe; *recipe.Container is one.
type operator interface {
	// Observe looks at a guest with one config read.
	Observe(ctx context.Context, id guest.VMID) (recipe.Observation, error)
	// Plan judges a reinstall.
	Plan(ctx context.Context, seen recipe.Observation, want preview.Want) (preview.Preview, error)
	// PlanGrow judges growing the root file system in place, when nothing else is due.
	PlanGrow(ctx context.Context, seen recipe.Observation, want preview.Want) (preview.Preview, error)
	// PlanReconcile judges a reconcile action.
	PlanReconcile(ctx context.Context, seen recipe.Observation, want preview.Want, r recipe.Reconcile) (preview.Preview, error)
	// Apply does what was judged.
	Apply(ctx context.Context, req recipe.Request) (recipe.Result, error)
	// Survey looks through the cluster for what operations left half done.
	Survey(ctx context.Context, scope recipe.Scope) (preview.Report, error)
}

// instanceOperator is what the resource for application containers needs of a recipe; *recipe.Instance is one.
type instanceOperator interface {
	Observe(ctx context.Context, id guest.VMID) (recipe.Observation, error)
	// Plan judges what is due: an install, an update, changes to what is there, an adoption, or nothing.
	Plan(ctx context.Context, seen recipe.Observation, want preview.Want) (preview.Preview, error)
	PlanReconcile(ctx context.Context, seen recipe.Observation, want preview.Want, r recipe.Reconcile) (preview.Preview, error)
	// PlanRemove judges a removal.
	PlanRemove(ctx context.Context, seen recipe.Observation, want preview.Want) (preview.Preview, error)
	Apply(ctx context.Context, req recipe.Request) (recipe.Result, error)
	// Remove destroys the container and what belongs to it.
	Remove(ctx context.Context, req recipe.Request) (recipe.Result, error)
	// Machine returns what a node's kernel calls its processor.
	Machine(ctx context.Context, node string) (string, error)
}

// session is one provider configuration at work: what its resources share.
type session struct {
	containers operator
	instances  instanceOperator
	images     *oci.Resolver
	looks      looks
	host       any // what is behind the recipes, for what only some resources ask; nil where there is no server
	gate       *run.Gate
	blocks     *run.Blocks
	// skipBlocked leaves blocked guests alone with a warning instead of failing the plan.
	skipBlocked bool
	// operations counts those at work in the process.
	operations *atomic.Int64
	// secrets are the words that no log may show.
	secrets []string
}

// masked returns a context whose log lines show none of the session's secrets, nor those given.
func (s *session) masked(ctx context.Context, more ...string) context.Context {
	var secrets []string
	for _, secret := range append(more, s.secrets...) {
		if secret != "" {
			secrets = append(secrets, secret)
		}
	}
	ctx = tflog.MaskAllFieldValuesStrings(ctx, secrets...)
	return tflog.MaskMessageStrings(ctx, secrets...)
}
