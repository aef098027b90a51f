package proxmox

import (
	"context"
	"maps"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// Firewall reads everything a guest's own firewall holds, without what Proxmox adds by itself (positions, digests, address
// families), so that it can be written again.
func (h *Host) Firewall(ctx context.Context, ref guest.Ref) (guest.Firewall, error) {
	op := "read the firewall of " + describe(ref)
	var fw guest.Firewall
	var options fields
	var aliases, sets, rules []fields
	for _, part := range []struct {
		name string
		into any
	}{{"options", &options}, {"aliases", &aliases}, {"ipset", &sets}, {"rules", &rules}} {
		if err := h.ask(ctx, op, ref, guestPath(ref, "firewall", part.name), nil, part.into); err != nil {
			return guest.Firewall{}, err
		}
	}
	if own := ownFields(options); len(own) > 0 {
		fw.Options = own
	}
	for _, a := range aliases {
		fw.Aliases = append(fw.Aliases, ownFields(a))
	}
	for _, r := range rules {
		fw.Rules = append(fw.Rules, ownFields(r))
	}
	for _, s := range sets {
		set := guest.IPSet{Name: s["name"], Comment: s["comment"]}
		var entries []fields
		if err := h.ask(ctx, op, ref, guestPath(ref, "firewall", "ipset", set.Name), nil, &entries); err != nil {
			return guest.Firewall{}, err
		}
		for _, e := range entries {
			set.Entries = append(set.Entries, ownFields(e))
		}
		fw.IPSets = append(fw.IPSets, set)
	}
	return fw, nil
}

// ownFields leaves out what an answer carries and no request may.
func ownFields(f fields) map[string]string {
	own := maps.Clone(map[string]string(f))
	for _, key := range []string{"pos", "digest", "ipversion", "errors"} {
		delete(own, key)
	}
	return own
}
