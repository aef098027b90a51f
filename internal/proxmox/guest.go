package proxmox

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// Guests lists all guests that the login may see, with one request.
func (h *Host) Guests(ctx context.Context) ([]guest.Listed, error) {
	var rows []struct {
		Type     words `json:"type"`
		VMID     whole `json:"vmid"`
		Node     words `json:"node"`
		Name     words `json:"name"`
		Status   words `json:"status"`
		Lock     words `json:"lock"`
		Tags     words `json:"tags"`
		Pool     words `json:"pool"`
		Template flag  `json:"template"`
		HAState  words `json:"hastate"`
	}
	if err := h.ask(ctx, "list the guests", guest.Ref{}, "/cluster/resources", url.Values{"type": {"vm"}}, &rows); err != nil {
		return nil, err
	}
	guests := make([]guest.Listed, 0, len(rows))
	for _, row := range rows {
		kind, ok := kindOf(string(row.Type))
		if !ok {
			continue
		}
		guests = append(guests, guest.Listed{
			Ref:  guest.Ref{VMID: guest.VMID(row.VMID), Kind: kind, Node: string(row.Node)},
			Name: string(row.Name), Status: string(row.Status), Lock: string(row.Lock), Tags: string(row.Tags),
			Pool: string(row.Pool), Template: bool(row.Template), HAState: string(row.HAState),
		})
	}
	return guests, nil
}

func kindOf(word string) (guest.Kind, bool) {
	for _, kind := range []guest.Kind{guest.KindContainer, guest.KindVM} {
		if kind.Path() == word {
			return kind, true
		}
	}
	return 0, false
}

// Config reads the current configuration of a guest, without pending changes. guest.OutcomeMissing: that node has none.
func (h *Host) Config(ctx context.Context, ref guest.Ref) (guest.Config, error) {
	return h.config(ctx, "read the configuration of "+describe(ref), ref, guestPath(ref, "config"), url.Values{"current": {"1"}})
}

func (h *Host) config(ctx context.Context, op string, ref guest.Ref, path string, query url.Values) (guest.Config, error) {
	var data map[string]json.RawMessage
	if err := h.ask(ctx, op, ref, path, query, &data); err != nil {
		return guest.Config{}, err
	}
	if len(data) == 0 {
		return guest.Config{}, &Error{Op: op, Guest: ref, Kind: guest.OutcomeUnreachable, Words: "the answer is empty"}
	}
	config, err := guest.FromJSON(data)
	if err != nil {
		return guest.Config{}, &Error{Op: op, Guest: ref, Kind: guest.OutcomeUnreachable, Words: err.Error(), cause: err}
	}
	return config, nil
}

// pendingRow is one key of /pending: its current value, and what waits for a restart.
type pendingRow struct {
	Key     words  `json:"key"`
	Value   *words `json:"value"`
	Pending *words `json:"pending"`
	Delete  whole  `json:"delete"`
}

func (h *Host) pending(ctx context.Context, ref guest.Ref) ([]pendingRow, error) {
	var rows []pendingRow
	err := h.ask(ctx, "read the pending changes of "+describe(ref), ref, guestPath(ref, "pending"), nil, &rows)
	return rows, err
}

// Pending lists the changes that wait for a restart.
func (h *Host) Pending(ctx context.Context, ref guest.Ref) ([]guest.Change, error) {
	rows, err := h.pending(ctx, ref)
	if err != nil {
		return nil, err
	}
	var changes []guest.Change
	for _, row := range rows {
		switch {
		case row.Delete != 0:
			changes = append(changes, guest.Change{Key: string(row.Key), Delete: true})
		case row.Pending != nil:
			changes = append(changes, guest.Change{Key: string(row.Key), Value: string(*row.Pending)})
		}
	}
	return changes, nil
}

// Named returns every value of every key, current and pending, and the name of the newest snapshot, "" for none.
func (h *Host) Named(ctx context.Context, ref guest.Ref) (values map[string][]string, parent string, err error) {
	rows, err := h.pending(ctx, ref)
	if err != nil {
		return nil, "", err
	}
	values = make(map[string][]string, len(rows))
	for _, row := range rows {
		for _, value := range []*words{row.Value, row.Pending} {
			if value == nil {
				continue
			}
			if row.Key == "parent" {
				parent = string(*value)
			}
			values[string(row.Key)] = append(values[string(row.Key)], string(*value))
		}
	}
	return values, parent, nil
}

// Snapshots lists a guest's snapshots, each with its own configuration: one request, and one more for each.
func (h *Host) Snapshots(ctx context.Context, ref guest.Ref) ([]guest.Snapshot, error) {
	op := "list the snapshots of " + describe(ref)
	var rows []struct {
		Name        words `json:"name"`
		Parent      words `json:"parent"`
		Description words `json:"description"`
		Time        whole `json:"snaptime"`
	}
	if err := h.ask(ctx, op, ref, guestPath(ref, "snapshot"), nil, &rows); err != nil {
		return nil, err
	}
	var snapshots []guest.Snapshot
	for _, row := range rows {
		if row.Name == "current" { // not a snapshot: where the guest is now
			continue
		}
		s := guest.Snapshot{Name: string(row.Name), Parent: string(row.Parent), Description: string(row.Description), Time: int64(row.Time)}
		var err error
		if s.Config, err = h.config(ctx, op, ref, guestPath(ref, "snapshot", s.Name, "config"), nil); err != nil {
			return nil, err
		}
		snapshots = append(snapshots, s)
	}
	return snapshots, nil
}

// state is what status/current says.
type state struct {
	Status words `json:"status"`
	Lock   words `json:"lock"`
	Disk   whole `json:"maxdisk"`
}

func (h *Host) state(ctx context.Context, ref guest.Ref) (state, error) {
	var s state
	err := h.ask(ctx, "read the state of "+describe(ref), ref, guestPath(ref, "status", "current"), nil, &s)
	return s, err
}

// Running tells whether a guest runs, and the word of its lock, "" for none.
func (h *Host) Running(ctx context.Context, ref guest.Ref) (running bool, lock string, err error) {
	s, err := h.state(ctx, ref)
	if err == nil && s.Status == "" {
		err = &Error{Op: "read the state of " + describe(ref), Guest: ref, Kind: guest.OutcomeUnreachable, Words: "the answer says no status"}
	}
	return s.Status == "running", string(s.Lock), err
}

// DiskTotal is the size that the state gives for the root file system: of the file system itself while the guest runs.
func (h *Host) DiskTotal(ctx context.Context, ref guest.Ref) (guest.Bytes, error) {
	s, err := h.state(ctx, ref)
	return guest.Bytes(s.Disk), err
}

// Addresses returns MAC -> addresses of a running guest's interfaces, loopback left out. A VM answers through its agent.
func (h *Host) Addresses(ctx context.Context, ref guest.Ref) (map[string][]string, error) {
	op := "read the addresses of " + describe(ref)
	var list []netInterface
	switch ref.Kind {
	case guest.KindContainer:
		if err := h.ask(ctx, op, ref, guestPath(ref, "interfaces"), nil, &list); err != nil {
			return nil, err
		}
	case guest.KindVM:
		var answer struct {
			Result []netInterface `json:"result"`
		}
		if err := h.ask(ctx, op, ref, guestPath(ref, "agent", "network-get-interfaces"), nil, &answer); err != nil {
			return nil, err
		}
		list = answer.Result
	}
	return addressesByMAC(list), nil
}
