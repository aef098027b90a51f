package proxmox

import (
	"context"
	"net/url"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// Storages lists the storages that a node has, with their state there.
func (h *Host) Storages(ctx context.Context, node string) ([]guest.Storage, error) {
	var rows []struct {
		Storage   words `json:"storage"`
		Type      words `json:"type"`
		Content   words `json:"content"`
		Enabled   flag  `json:"enabled"`
		Active    flag  `json:"active"`
		Shared    flag  `json:"shared"`
		Available whole `json:"avail"`
		Total     whole `json:"total"`
	}
	if err := h.ask(ctx, "list the storages of node "+node, guest.Ref{Node: node}, path("nodes", node, "storage"), nil, &rows); err != nil {
		return nil, err
	}
	definitions, err := h.storageDefinitions(ctx)
	if err != nil {
		return nil, err
	}
	storages := make([]guest.Storage, 0, len(rows))
	for _, row := range rows {
		chain := definitions[string(row.Storage)]["snapshot-as-volume-chain"]
		storages = append(storages, guest.Storage{
			Name: string(row.Storage), Type: guest.StorageType(row.Type),
			Content: strings.FieldsFunc(string(row.Content), func(r rune) bool { return r == ',' || r == ' ' }),
			Enabled: bool(row.Enabled), Active: bool(row.Active), Shared: bool(row.Shared),
			Available: guest.Bytes(row.Available), Total: guest.Bytes(row.Total),
			ChainSnapshots: chain == "1",
		})
	}
	return storages, nil
}

// storageDefinitions reads the datacenter's definitions that the login may see, by name. The list asks for less than the
// definition of a single storage does.
func (h *Host) storageDefinitions(ctx context.Context) (map[string]map[string]string, error) {
	var rows []fields
	if err := h.ask(ctx, "read the definitions of the storages", guest.Ref{}, "/storage", nil, &rows); err != nil {
		return nil, err
	}
	byName := make(map[string]map[string]string, len(rows))
	for _, row := range rows {
		byName[row["storage"]] = row
	}
	return byName, nil
}

// StorageConfig returns the datacenter's definition of a storage.
func (h *Host) StorageConfig(ctx context.Context, storage string) (map[string]string, error) {
	all, err := h.storageDefinitions(ctx)
	if err != nil {
		return nil, err
	}
	if definition, listed := all[storage]; listed {
		return definition, nil
	}
	// Asked for by name, Proxmox says whether it does not exist or may not be seen.
	var definition fields
	err = h.ask(ctx, "read the definition of storage "+storage, guest.Ref{}, path("storage", storage), nil, &definition)
	return definition, err
}

// Content lists what a storage holds: of one owner, or with owner 0 all that the login may see. Nothing is asked for by kind,
// since the volumes of a guest that does not exist at the moment count as another kind.
func (h *Host) Content(ctx context.Context, node, storage string, owner guest.VMID) ([]guest.StoredVolume, error) {
	op := "list the content of storage " + storage + " on node " + node
	query := url.Values{}
	if owner != 0 {
		query.Set("vmid", owner.String())
	}
	var rows []struct {
		ID        words `json:"volid"`
		Owner     whole `json:"vmid"`
		Content   words `json:"content"`
		Format    words `json:"format"`
		Size      whole `json:"size"`
		Created   whole `json:"ctime"`
		Notes     words `json:"notes"`
		Protected flag  `json:"protected"`
		Parent    words `json:"parent"`
	}
	if err := h.ask(ctx, op, guest.Ref{Node: node}, path("nodes", node, "storage", storage, "content"), query, &rows); err != nil {
		return nil, err
	}
	volumes := make([]guest.StoredVolume, 0, len(rows))
	for _, row := range rows {
		id, err := guest.ParseVolumeID(string(row.ID))
		switch {
		case err == nil:
		case row.Content == "rootdir" || row.Content == "images":
			// A guest's volume that cannot be named cannot be accounted for either.
			return nil, &Error{Op: op, Kind: guest.OutcomeUnreachable, Words: err.Error()}
		default:
			continue // a file with an odd name is nobody's volume
		}
		volumes = append(volumes, guest.StoredVolume{
			ID: id, Owner: guest.VMID(row.Owner), Content: string(row.Content), Format: string(row.Format),
			Size: guest.Bytes(row.Size), Created: int64(row.Created), Notes: string(row.Notes),
			Protected: bool(row.Protected), Parent: string(row.Parent),
		})
	}
	return volumes, nil
}
