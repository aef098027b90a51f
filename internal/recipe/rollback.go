package recipe

import (
	"context"
)

// restoreArchive rebuilds the guest from the operation's own archive, past the point of no return.
func (o *operation) restoreArchive(ctx context.Context) (Result, error) {
	return standing(Result{}, o.j), &Failure{
		Summary: o.title() + ": cannot roll back",
		Detail:  o.j.Operation + " is past the point of no return.",
	}
}
