package recipe

import (
	"context"
	"errors"

	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
)

var errInstance = errors.New("application containers cannot be operated on by this version")

func (i *Instance) plan(_ context.Context, _ Reader, seen Observation, _ preview.Want) (preview.Preview, error) {
	return preview.Preview{Acknowledged: seen.Acknowledged}, errInstance
}

func (i *Instance) planRemove(_ context.Context, _ Reader, seen Observation, _ preview.Want) (preview.Preview, error) {
	return preview.Preview{Acknowledged: seen.Acknowledged}, errInstance
}

func (i *Instance) planReconcile(ctx context.Context, seen Observation, want preview.Want, r Reconcile) (preview.Preview, error) {
	return i.container().planReconcile(ctx, seen, want, r)
}

func (i *Instance) apply(_ context.Context, _ Request) (Result, error) { return Result{}, errInstance }

func (i *Instance) remove(_ context.Context, _ Request) (Result, error) { return Result{}, errInstance }
