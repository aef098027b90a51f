package proxmox

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

const haResources = "/cluster/ha/resources"

// haID is the name of a guest among HA resources: "ct:5001", "vm:7131".
func haID(ref guest.Ref) string { return strings.ToLower(ref.Kind.String()) + ":" + ref.VMID.String() }

// HA returns the HA resource of every guest that has one.
func (h *Host) HA(ctx context.Context) (map[guest.VMID]guest.HA, error) {
	var rows []fields
	if err := h.ask(ctx, "list the HA resources", guest.Ref{}, haResources, nil, &rows); err != nil {
		return nil, err
	}
	found := map[guest.VMID]guest.HA{}
	for _, row := range rows {
		_, number, _ := strings.Cut(row["sid"], ":")
		id, err := strconv.Atoi(number)
		if err != nil {
			continue
		}
		delete(row, "digest")
		found[guest.VMID(id)] = guest.HA{Managed: true, State: cmp.Or(row["state"], "started"), Fields: row}
	}
	return found, nil
}

// RemoveHA takes a guest out of HA and leaves the rules that name it: by default Proxmox would delete them too.
func (h *Host) RemoveHA(ctx context.Context, ref guest.Ref) error {
	p := haResources + "/" + haID(ref)
	return h.change(ctx, request{
		op: "take " + describe(ref) + " out of HA", ref: ref, method: http.MethodDelete, path: p,
		params: map[string]any{"purge": "0"}, announced: []string{p},
	})
}

// AddHA puts a guest under HA with all the fields it had.
func (h *Host) AddHA(ctx context.Context, ref guest.Ref, had map[string]string) error {
	op := "put " + describe(ref) + " under HA"
	kept := maps.Clone(had)
	for _, key := range []string{"digest", "type", "sid"} {
		delete(kept, key)
	}
	params, err := text(kept)
	if err != nil {
		return refuse(op, ref, guest.OutcomeRefused, "%v", err)
	}
	params["sid"] = haID(ref)
	return h.change(ctx, request{op: op, ref: ref, method: http.MethodPost, path: haResources, params: params})
}
