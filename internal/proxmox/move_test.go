package proxmox

import (
	"context"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// A key of the target that is in use is seen before anything is sent, whatever the digests say.
func TestMoveOntoATakenKeyIsNotSent(t *testing.T) {
	t.Parallel()
	h, s := simulated(t)
	s.Cluster().SetConfig(900000, "mp0", "tank:1,mp=/theirs")
	wantOutcome(t, h.MoveVolume(context.Background(), parkMove(t, h, s, "mp0")), guest.OutcomeTaken)
	if got := changes(s); len(got) != 0 {
		t.Errorf("sent %v", got)
	}
}
