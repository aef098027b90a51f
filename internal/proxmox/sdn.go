package proxmox

import (
	"context"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// Leases lists the addresses that the cluster's own IPAM holds for guests, gateways left out.
func (h *Host) Leases(ctx context.Context) ([]guest.Lease, error) {
	var rows []struct {
		Zone    words `json:"zone"`
		VNet    words `json:"vnet"`
		MAC     words `json:"mac"`
		IP      words `json:"ip"`
		Gateway flag  `json:"gateway"`
	}
	if err := h.ask(ctx, "list the addresses of the IPAM", guest.Ref{}, "/cluster/sdn/ipams/pve/status", nil, &rows); err != nil {
		return nil, err
	}
	var leases []guest.Lease
	for _, row := range rows {
		if bool(row.Gateway) || row.MAC == "" {
			continue
		}
		leases = append(leases, guest.Lease{
			Zone: string(row.Zone), VNet: string(row.VNet), MAC: strings.ToLower(string(row.MAC)), IP: string(row.IP),
		})
	}
	return leases, nil
}

// Zones returns the zone of each virtual network. A bridge that is not among them is a node's own, in zone localnetwork.
func (h *Host) Zones(ctx context.Context) (map[string]string, error) {
	var rows []struct {
		VNet words `json:"vnet"`
		Zone words `json:"zone"`
	}
	if err := h.ask(ctx, "list the virtual networks", guest.Ref{}, "/cluster/sdn/vnets", nil, &rows); err != nil {
		return nil, err
	}
	zones := make(map[string]string, len(rows))
	for _, row := range rows {
		zones[string(row.VNet)] = string(row.Zone)
	}
	return zones, nil
}
