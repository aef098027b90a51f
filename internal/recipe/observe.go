package recipe

import (
	"context"
	"fmt"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
)

func (c *Container) observe(ctx context.Context, id guest.VMID) (Observation, error) {
	return c.look(ctx, c.lists(), id)
}

// lists is where cluster-wide lists come from at plan.
func (c *Container) lists() Reader {
	if c.Shared != nil {
		return c.Shared
	}
	return c.Host
}

// look observes one guest: its row in the cluster's list, and one read of its configuration.
func (c *Container) look(ctx context.Context, lists Reader, id guest.VMID) (Observation, error) {
	row, found, err := locate(ctx, lists, id)
	if err != nil {
		return Observation{}, err
	}
	if !found {
		return c.lookForMissing(ctx, lists, id)
	}
	seen := Observation{Presence: guest.Present, Ref: row.Ref, Name: row.Name, Running: row.Status == "running"}
	if row.Kind != guest.KindContainer {
		seen.WrongType = true // perhaps it took the VMID while an operation had it free
		seen.Journal, err = c.recordByName(ctx, lists, id)
		return seen, err
	}
	config, err := c.Host.Config(ctx, row.Ref)
	if err != nil && guest.OutcomeOf(err) == guest.OutcomeMissing && lists != Reader(c.Host) {
		return c.look(ctx, c.Host, id) // the shared list is older than a migration or a destroy
	}
	switch guest.OutcomeOf(err) {
	case guest.OutcomeMissing:
		if err != nil {
			return c.lookForMissing(ctx, c.Host, id)
		}
	case guest.OutcomeUnreachable:
		if err != nil {
			seen.Presence = guest.PresenceUnknown
			seen.Problems = append(seen.Problems, fmt.Sprintf("node %s does not answer: %s", row.Node, err))
			return seen, nil
		}
	case guest.OutcomeRefused, guest.OutcomeFailed, guest.OutcomeUnknown, guest.OutcomeLocked, guest.OutcomeConflict, guest.OutcomeDenied, guest.OutcomeTaken:
	}
	if err != nil {
		return Observation{}, fmt.Errorf("cannot read the configuration of CT %d: %w", id, err)
	}
	seen.Config = config
	seen.Name = config.Hostname(id)
	seen.Acknowledged = preview.Acknowledge(guest.Guest{Ref: row.Ref, Config: config})
	notes := guest.NotesOf(id, config.Description())
	seen.Contract, seen.Journal, seen.Foreign = notes.Contract, notes.Journal, notes.Foreign
	for _, p := range notes.Problems {
		seen.Problems = append(seen.Problems, p.Sentence)
	}
	if seen.Journal != nil {
		seen.Journal, err = c.head(ctx, *seen.Journal)
		return seen, err
	}
	// A record may have been wiped from the notes (hazard C5), or the guest be the unfinished stub of a create (B6): the
	// parking guest still says so. Its name is in the list that was read anyway.
	seen.Journal, err = c.recordByName(ctx, lists, id)
	return seen, err
}

// recordByName reads the record about a guest from the parking guest that its hostname points out; nil when there is none.
func (c *Container) recordByName(ctx context.Context, lists Reader, id guest.VMID) (*guest.Journal, error) {
	rows, err := lists.Guests(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if row.Kind != guest.KindContainer || row.Name != parkingName(id) {
			continue
		}
		j, err := c.recordOn(ctx, row.Ref, id)
		if err != nil {
			return nil, fmt.Errorf("cannot read parking guest CT %d, which may hold the volumes of CT %d: %w", row.VMID, id, err)
		}
		if j != nil {
			return j, nil
		}
	}
	return nil, nil
}

// head returns the newer of a guest's record and its copy on the parking guest.
func (c *Container) head(ctx context.Context, j guest.Journal) (*guest.Journal, error) {
	if j.Parking == 0 {
		return &j, nil
	}
	there, err := c.recordOn(ctx, guest.Ref{VMID: j.Parking, Kind: guest.KindContainer, Node: j.Node}, j.Guest)
	if err != nil {
		return nil, fmt.Errorf("cannot read the record of %s on parking guest CT %d: %w", j.Operation, j.Parking, err)
	}
	if there != nil && there.Operation == j.Operation && there.Sequence > j.Sequence {
		return there, nil
	}
	return &j, nil
}

// recordOn reads the record about a guest in the notes of a parking guest; nil when there is none.
func (c *Container) recordOn(ctx context.Context, parking guest.Ref, about guest.VMID) (*guest.Journal, error) {
	config, err := c.Host.Config(ctx, parking)
	if err != nil {
		if guest.OutcomeOf(err) == guest.OutcomeMissing {
			return nil, nil
		}
		return nil, err
	}
	j := guest.NotesOf(parking.VMID, config.Description()).Journal
	if j == nil || j.Guest != about || j.Parking != parking.VMID {
		return nil, nil
	}
	return j, nil
}

func locate(ctx context.Context, lists Reader, id guest.VMID) (guest.Listed, bool, error) {
	rows, err := lists.Guests(ctx)
	if err != nil {
		return guest.Listed{}, false, fmt.Errorf("cannot list the guests of the cluster: %w", err)
	}
	for _, row := range rows {
		if row.VMID == id {
			return row, true, nil
		}
	}
	return guest.Listed{}, false, nil
}

// lookForMissing tells a guest that does not exist from one that the login may not see, and looks for a parking guest that
// says why it is missing: between destroy and create it is.
func (c *Container) lookForMissing(ctx context.Context, lists Reader, id guest.VMID) (Observation, error) {
	seen := Observation{Presence: guest.Absent, Ref: guest.Ref{VMID: id, Kind: guest.KindContainer}}
	taken, err := c.Host.VMIDTaken(ctx, id)
	if err != nil {
		return Observation{}, fmt.Errorf("cannot ask whether VMID %d is in use: %w", id, err)
	}
	if taken {
		seen.Presence = guest.PresenceUnknown
		seen.Problems = append(seen.Problems, fmt.Sprintf("VMID %d is in use by a guest that this login may not see (VM.Audit on /vms/%d)", id, id))
	}
	if seen.Journal, err = c.recordByName(ctx, lists, id); err != nil || seen.Journal != nil {
		seen.Ref.Node = nodeOf(seen.Journal)
		return seen, err
	}
	// A renamed parking guest is found by its notes; one that may not be read says nothing.
	rows, err := lists.Guests(ctx)
	if err != nil {
		return Observation{}, err
	}
	for _, row := range rows {
		if row.Kind != guest.KindContainer || row.Status == "running" {
			continue
		}
		if j, err := c.recordOn(ctx, row.Ref, id); err == nil && j != nil {
			seen.Journal, seen.Ref.Node = j, j.Node
			return seen, nil
		}
	}
	return seen, nil
}

func nodeOf(j *guest.Journal) string {
	if j == nil {
		return ""
	}
	return j.Node
}

// pending reports whether an operation is due.
func pending(seen Observation, wanted guest.Install, state *guest.Install) (bool, *guest.Install) {
	installed := installedNow(seen, state)
	if installed != nil && installed.Same(wanted) {
		return false, installed
	}
	if seen.Contract != nil && contains(seen.Contract.Declined, wanted.Hash()) {
		return false, installed
	}
	return true, installed
}
