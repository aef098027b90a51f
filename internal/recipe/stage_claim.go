package recipe

import (
	"context"
	"fmt"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/stage"
)

// backUp makes the operation's own archive. It comes before the claim, so that no archive carries a record (hazard C6).
func (o *operation) backUp() stage.Stage {
	return stage.Stage{
		Name: "back up",
		Do: func(ctx context.Context) error {
			b := Backup{Ref: o.guest, Storage: o.j.Archive, Mode: o.req.Want.Backup.Mode, Compress: o.req.Want.Backup.Compress, Notes: "pvrx " + o.j.Operation}
			for _, p := range o.j.Parked {
				if m, err := guest.ParseMount(p.Key, p.Value); err == nil && m.Path != "" && m.Path != "-" {
					b.Exclude = append(b.Exclude, m.Path+"/?*")
				}
			}
			archive, err := o.host.Backup(ctx, b)
			if err != nil {
				return fmt.Errorf("cannot back up to %s: %w", o.j.Archive, err)
			}
			o.j.Backup = archive.String()
			return nil
		},
		Seen: func(context.Context) (stage.Effect, error) {
			if o.j.Backup != "" {
				return stage.Whole, nil
			}
			return stage.None, nil // an archive nobody waited for is protected, named after the operation, and harms nobody
		},
	}
}

// claim writes the record into the guest's notes, by digest: of two runs only one can.
func (o *operation) claim() stage.Stage {
	return stage.Stage{
		Name: "claim",
		Do:   o.doClaim,
		Undo: func(ctx context.Context) error {
			err := o.editNotes(ctx, o.guest, func(n *guest.Notes) (bool, error) {
				if n.Journal == nil || n.Journal.Operation != o.j.Operation {
					return false, nil
				}
				n.Journal = nil
				if o.j.Refused && !o.j.Dry {
					declined := o.declined(n.Contract)
					n.Contract = &declined
				}
				return true, nil
			})
			if err == nil {
				o.claimed = false
			}
			return err
		},
		Seen: func(ctx context.Context) (stage.Effect, error) {
			config, err := o.host.Config(ctx, o.guest)
			if err != nil {
				return stage.Unclear, err
			}
			switch {
			case !o.ours(config, o.guest.VMID):
				return stage.None, nil
			case o.claimedAs(config) != nil:
				return stage.Partly, nil //nolint:nilerr // claimed, and not the guest that was judged
			}
			return stage.Whole, nil
		},
	}
}

func (o *operation) doClaim(ctx context.Context) error {
	if o.claimed { // a resume, which the journal's own write has checked
		return nil
	}
	// The cluster's list may be ten seconds old, and what is started or left off at the end depends on this.
	running, _, err := o.host.Running(ctx, o.guest)
	if err != nil {
		return fmt.Errorf("cannot ask whether the guest runs: %w", err)
	}
	next := o.j
	next.Running = running
	next.Sequence++
	next.Stage, next.Index, next.Of = "claim", o.index("claim"), len(o.engine().Stages)
	err = o.editNotes(ctx, o.guest, func(n *guest.Notes) (bool, error) {
		if n.Journal != nil {
			if n.Journal.Operation == next.Operation {
				return false, nil
			}
			return false, &lostError{winner: n.Journal}
		}
		for _, p := range n.Problems {
			if p.Block == guest.BlockJournal && p.Kind != guest.ProblemForeign {
				return false, fmt.Errorf("cannot claim the guest: %s", p.Sentence)
			}
		}
		if diff := o.reinstalled(n.Contract); len(diff) > 0 { // before anything is written
			return false, changedError{when: "before it was claimed", diff: diff}
		}
		n.Journal = &next
		return true, nil
	})
	if err != nil {
		return err
	}
	o.j, o.claimed, o.started = next, true, true
	config, err := o.host.Config(ctx, o.guest)
	if err != nil {
		return err
	}
	return o.claimedAs(config)
}

// claimedAs compares the guest with what was judged before the claim: from the claim on nobody else installs it.
func (o *operation) claimedAs(config guest.Config) error {
	if diff := o.preview.Acknowledged.Compare(preview.Acknowledge(guest.Guest{Ref: o.guest, Config: config})); len(diff) > 0 {
		return changedError{when: "while it was being claimed", diff: diff}
	}
	return nil
}

// reinstalled says what a contract that somebody wrote since the judgement changes; nothing when it is the one that was seen.
func (o *operation) reinstalled(contract *guest.Contract) []preview.Difference {
	now := o.preview.Acknowledged
	if now.Install = ""; contract != nil {
		now.Install = contract.Instance
	}
	return o.preview.Acknowledged.Compare(now)
}

// index is the 1-based position of a stage.
func (o *operation) index(name string) int {
	for i, s := range o.engine().Stages {
		if s.Name == name {
			return i + 1
		}
	}
	return 0
}
