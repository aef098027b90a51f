package proxmox

import (
	"context"
	"net/http"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// Pools returns the pool of each guest that is in one. A login without Pool.Audit sees none.
func (h *Host) Pools(ctx context.Context) (map[guest.VMID]string, error) {
	listed, err := h.Guests(ctx)
	if err != nil {
		return nil, err
	}
	pools := map[guest.VMID]string{}
	for _, g := range listed {
		if g.Pool != "" {
			pools[g.VMID] = g.Pool
		}
	}
	return pools, nil
}

// AddToPool puts a guest into a pool. One that is in it already stays; one that is in another is refused, unless it shall move.
func (h *Host) AddToPool(ctx context.Context, pool string, id guest.VMID, move bool) error {
	params := map[string]any{"poolid": pool, "vms": id.String()}
	if move {
		params["allow-move"] = 1
	}
	err := h.change(ctx, request{
		op:     "add guest " + id.String() + " to pool " + pool,
		method: http.MethodPut, path: "/pools",
		params: params,
	})
	if said(err, "VM "+id.String()+" is already a pool member") {
		return nil
	}
	return err
}
