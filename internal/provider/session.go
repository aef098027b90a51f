package provider

import (
	"context"
	"sync/atomic"

	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
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

// session is one provider configuration at work: what its resources share.
type session struct {
	containers operator
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
