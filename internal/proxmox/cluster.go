package proxmox

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// Login says who we are to Proxmox, and which version answers.
func (h *Host) Login(ctx context.Context) (guest.Login, error) {
	var version struct {
		Version words `json:"version"`
	}
	if err := h.ask(ctx, "ask for the version", guest.Ref{}, "/version", nil, &version); err != nil {
		return guest.Login{}, err
	}
	_, ticket := h.login.(*ticketLogin)
	user := h.login.user()
	return guest.Login{User: user, RootTicket: ticket && user == "root@pam", Version: string(version.Version)}, nil
}

// Machine returns what a node's kernel calls its processor: "x86_64", "aarch64". It takes Sys.Audit on the node.
func (h *Host) Machine(ctx context.Context, node string) (string, error) {
	var status struct {
		Kernel struct {
			Machine words `json:"machine"`
		} `json:"current-kernel"`
	}
	err := h.ask(ctx, "read the state of node "+node, guest.Ref{Node: node}, "/nodes/"+node+"/status", nil, &status)
	return string(status.Kernel.Machine), err
}

// Nodes tells which nodes are online, and whether the cluster has quorum. A login without Sys.Audit on / may not read the
// cluster's own answer; then half of the nodes online counts as quorum, since whoever lacks it is refused before any effect.
func (h *Host) Nodes(ctx context.Context) (online map[string]bool, quorate bool, err error) {
	var rows []struct {
		Type    words `json:"type"`
		Name    words `json:"name"`
		Node    words `json:"node"`
		Online  flag  `json:"online"`
		Status  words `json:"status"`
		Quorate flag  `json:"quorate"`
	}
	online = map[string]bool{}
	err = h.ask(ctx, "read the state of the cluster", guest.Ref{}, "/cluster/status", nil, &rows)
	if err == nil {
		quorate = true // a single node has no row about a cluster
		for _, row := range rows {
			switch row.Type {
			case "node":
				online[string(row.Name)] = bool(row.Online)
			case "cluster":
				quorate = bool(row.Quorate)
			}
		}
		return online, quorate, nil
	}
	if guest.OutcomeOf(err) != guest.OutcomeDenied {
		return nil, false, err
	}
	if err := h.ask(ctx, "list the nodes", guest.Ref{}, "/nodes", nil, &rows); err != nil {
		return nil, false, err
	}
	up := 0
	for _, row := range rows {
		online[string(row.Node)] = row.Status == "online"
		if row.Status == "online" {
			up++
		}
	}
	return online, 2*up >= len(rows), nil
}

// VMIDTaken asks whether any guest, seen or unseen, has a VMID.
func (h *Host) VMIDTaken(ctx context.Context, id guest.VMID) (bool, error) {
	err := h.ask(ctx, "ask whether VMID "+id.String()+" is free", guest.Ref{}, "/cluster/nextid", url.Values{"vmid": {id.String()}}, nil)
	if err != nil && guest.OutcomeOf(err) == guest.OutcomeTaken {
		return true, nil
	}
	return false, err
}

// NextVMID returns the lowest VMID at or above from that no guest has.
func (h *Host) NextVMID(ctx context.Context, from guest.VMID) (guest.VMID, error) {
	listed, err := h.Guests(ctx)
	if err != nil {
		return 0, err
	}
	taken := map[guest.VMID]bool{}
	for _, g := range listed {
		taken[g.VMID] = true
	}
	for id := from; id <= 999999999; id++ {
		if taken[id] {
			continue
		}
		used, err := h.VMIDTaken(ctx, id)
		if err != nil {
			return 0, err
		}
		if !used {
			return id, nil
		}
	}
	return 0, &Error{Op: "find a free VMID", Kind: guest.OutcomeTaken, Words: "none is free from " + from.String() + " on"}
}

// ClusterOptions returns the datacenter's options. An option of several parts comes as "name=value,…", a list as "a;b".
func (h *Host) ClusterOptions(ctx context.Context) (map[string]string, error) {
	var raw map[string]any
	if err := h.ask(ctx, "read the datacenter's options", guest.Ref{}, "/cluster/options", nil, &raw); err != nil {
		return nil, err
	}
	options := make(map[string]string, len(raw))
	for key, value := range raw {
		options[key] = flat(value)
	}
	return options, nil
}

// flat writes a decoded JSON value the way Proxmox writes it into its own files.
func flat(value any) string {
	switch v := value.(type) {
	case map[string]any:
		var parts []string
		for name, inner := range v {
			parts = append(parts, name+"="+flat(inner))
		}
		slices.Sort(parts)
		return strings.Join(parts, ",")
	case []any:
		var parts []string
		for _, inner := range v {
			parts = append(parts, flat(inner))
		}
		return strings.Join(parts, ";")
	case nil:
		return ""
	default:
		return scalar(v)
	}
}

// Replicated returns the guests that have replication jobs.
func (h *Host) Replicated(ctx context.Context) (map[guest.VMID]bool, error) {
	var rows []struct {
		Guest whole `json:"guest"`
		ID    words `json:"id"`
	}
	if err := h.ask(ctx, "list the replication jobs", guest.Ref{}, "/cluster/replication", nil, &rows); err != nil {
		return nil, err
	}
	found := map[guest.VMID]bool{}
	for _, row := range rows {
		number, _, _ := strings.Cut(string(row.ID), "-")
		var fromID whole
		if row.Guest == 0 && fromID.UnmarshalJSON([]byte(`"`+number+`"`)) != nil {
			continue
		}
		found[guest.VMID(cmp.Or(row.Guest, fromID))] = true
	}
	return found, nil
}
