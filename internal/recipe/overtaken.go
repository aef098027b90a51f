package recipe

import (
	"context"
	"errors"
	"fmt"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// refused is what an apply that must not go on returns. What was read while another run works on the guest is half old and
// half new, and so is what would be said about it: then that run is reported instead, also when it has just finished.
func refused(ctx context.Context, r Result, seen Observation, look func(context.Context) (Observation, error), refusal error) (Result, error) {
	now := seen
	if seen.Journal == nil {
		var err error
		if now, err = look(ctx); err != nil {
			return r, refusal
		}
	}
	const did = "This run changed nothing."
	changed := new(changedError)
	switch {
	case now.Journal != nil:
		r = standing(r, *now.Journal)
		if seen.Journal == nil || errors.As(refusal, changed) {
			refusal = overtaken(title(seen), seen.Ref, *now.Journal, did)
		}
	case now.Contract != nil && (seen.Contract == nil || now.Contract.Instance != seen.Contract.Instance):
		refusal = &Failure{
			Summary: title(seen) + ": another run was faster", cause: refusal,
			Detail: fmt.Sprintf("%s has ended on %s %d since this run looked at it. %s Plan again.", now.Contract.Instance, seen.Ref.Kind, seen.Ref.VMID, did),
		}
	}
	return r, refusal
}

// lookAgain looks once more at a container, or a VM.
func (c *Container) lookAgain(id guest.VMID) func(context.Context) (Observation, error) {
	return func(ctx context.Context) (Observation, error) { return c.look(ctx, c.Host, id) }
}

func (v *VM) lookAgain(id guest.VMID) func(context.Context) (Observation, error) {
	return func(ctx context.Context) (Observation, error) { return v.look(ctx, v.Host, id) }
}

// overtaken says which run has the guest, and where it stands.
func overtaken(title string, ref guest.Ref, winner guest.Journal, did string) error {
	f := &Failure{
		Summary: title + ": another run has it (operation_in_flight)",
		Detail: fmt.Sprintf("%s holds %s %d and stands at stage %d of %d (%s). %s Wait until it ends, then plan again.",
			winner.Operation, ref.Kind, ref.VMID, winner.Index, winner.Of, guest.Printable(winner.Stage), did),
		cause: &lostError{winner: &winner},
	}
	if winner.State == guest.JournalWaiting {
		f.Summary = title + ": another run has rebuilt it (awaiting_trust)"
		f.Detail = fmt.Sprintf("%s is done and waits for a verdict. %s Plan again.", winner.Operation, did)
	}
	return f
}
