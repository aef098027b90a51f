package recipe

import (
	"context"
	"errors"
	"fmt"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/stage"
)

// lostError says that another run owns the operation or the guest: the loser returns the winner's record.
type lostError struct{ winner *guest.Journal }

func (e *lostError) Error() string {
	if e.winner == nil {
		return "our record is gone from the guest's notes: somebody removed it"
	}
	return fmt.Sprintf("another run holds the guest: %s, stage %d of %d (%s)", e.winner.Operation, e.winner.Index, e.winner.Of, e.winner.Stage)
}

// Write implements stage.Journal: the position goes into the notes of the guest that is the record's home, by digest.
// Before the claim there is no record, and after the last undo or the end there is none any more.
func (o *operation) Write(ctx context.Context, at stage.Position) error {
	if !o.claimed {
		return nil
	}
	next := o.j
	next.Stage, next.Index, next.Of = at.Stage, at.Index, at.Of
	next.Back = at.Back
	next.State = guest.JournalDoing
	switch {
	case at.Stuck:
		next.State = guest.JournalStuck
	case at.Back:
		next.State = guest.JournalUndoing
	}
	if at.Problem != "" {
		next.Error = shorten(guest.Printable(at.Problem), 300)
	}
	return o.save(ctx, next)
}

// save writes a changed record to its home: the parking guest once that is made, the guest before.
func (o *operation) save(ctx context.Context, next guest.Journal) error {
	return o.saveTo(ctx, o.home(), next)
}

// home is the guest whose notes hold the record: the parking guest once it is made, except where it goes before the record
// does: while the VM itself stays, in its own notes.
func (o *operation) home() guest.Ref {
	if o.j.Made && (o.guest.Kind == guest.KindContainer || o.j.Replace) {
		return o.parking
	}
	return o.guest
}

// saveTo writes a changed record into the notes of home. In the record's home what is there must be what this run wrote
// last, so that of two runs only one goes on; a resume takes it over by its first write. The copy that the other guest
// carries only has to be of this operation.
func (o *operation) saveTo(ctx context.Context, home guest.Ref, next guest.Journal) error {
	next.Sequence = o.j.Sequence + 1
	next.Updated = o.c.now().Unix()
	next.Holder = home.VMID
	next.Runner = o.runner
	fenced := home.VMID == o.home().VMID
	err := o.editNotes(ctx, home, func(n *guest.Notes) (bool, error) {
		there := n.Journal
		if there == nil && !fenced {
			n.Journal = &next // the copy was wiped by another tool (hazard C5); the record itself is elsewhere
			return true, nil
		}
		if there == nil || there.Operation != next.Operation {
			return false, &lostError{winner: there}
		}
		if there.Runner == o.runner && there.Sequence == next.Sequence {
			return false, nil // an earlier try arrived after all
		}
		if fenced && there.Runner != o.runner && there.Runner != o.takeover {
			return false, &lostError{winner: there}
		}
		n.Journal = &next
		return true, nil
	})
	if err == nil {
		o.j = next
	}
	return err
}

// editNotes changes a guest's notes by compare and swap. A lost swap reads again; an answer that never came is looked up.
func (o *operation) editNotes(ctx context.Context, ref guest.Ref, edit func(*guest.Notes) (bool, error)) error {
	const tries = 6
	var last error
	for range tries {
		config, err := o.host.Config(ctx, ref)
		if err != nil {
			return err
		}
		notes := guest.NotesOf(ref.VMID, config.Description())
		changed, err := edit(&notes)
		if err != nil || !changed {
			return err
		}
		text := notes.String()
		if n := guest.Length(text); n > guest.NotesLimit {
			return fmt.Errorf("cannot write the record into the notes of %s %d: %d characters, Proxmox takes %d", ref.Kind, ref.VMID, n, guest.NotesLimit)
		}
		set, remove := map[string]string{"description": text}, []string(nil)
		if text == "" {
			set, remove = nil, []string{"description"}
		}
		err = o.host.SetConfig(ctx, ref, set, remove, config.Digest)
		if err == nil {
			return nil
		}
		last = err
		switch guest.OutcomeOf(err) {
		case guest.OutcomeConflict, guest.OutcomeUnknown:
			if ctx.Err() != nil {
				return errors.Join(err, ctx.Err())
			}
		case guest.OutcomeRefused, guest.OutcomeFailed, guest.OutcomeLocked, guest.OutcomeDenied, guest.OutcomeMissing,
			guest.OutcomeUnreachable, guest.OutcomeTaken:
			return err
		}
	}
	return last
}

// ours reports whether a guest's notes carry this operation's record, written by this run.
func (o *operation) ours(config guest.Config, id guest.VMID) bool {
	j := guest.NotesOf(id, config.Description()).Journal
	return j != nil && j.Operation == o.j.Operation
}

// mine reports whether what has the guest's VMID now is the guest that this operation made: it carries our record, or it
// lost its notes to another tool and has the very hostname and networks, MACs included, that we gave it.
func (o *operation) mine(config guest.Config) bool {
	return o.ours(config, o.guest.VMID) || o.j.New && o.resembles(config)
}

// resembles reports whether a guest without any record has the hostname and the networks, MACs included, that we gave ours.
func (o *operation) resembles(config guest.Config) bool {
	if guest.NotesOf(o.guest.VMID, config.Description()).Journal != nil {
		return false
	}
	if o.j.Kind == kindInstall {
		return false // nobody had it before: what looks alike is somebody else's
	}
	return o.alike(guest.Config{Values: o.j.Config}, config) || o.j.App != nil && o.alike(guest.Config{Values: merged(o.j)}, config)
}

// alike reports whether two configurations have the same hostname and the same networks, MACs included.
func (o *operation) alike(was, config guest.Config) bool {
	before, _ := was.Networks()
	after, _ := config.Networks()
	if len(before) == 0 || len(before) != len(after) || was.Hostname(o.guest.VMID) != config.Hostname(o.guest.VMID) {
		return false
	}
	for i := range before {
		if before[i].MAC() == "" || !guest.SameNetwork(before[i], after[i]) {
			return false
		}
	}
	return true
}

// stillOurs refuses to go on with a guest that somebody else put under our VMID.
func (o *operation) stillOurs(ctx context.Context) error {
	config, err := o.host.Config(ctx, o.guest)
	if err != nil {
		return err
	}
	if !o.mine(config) {
		return takenError{ref: o.guest}
	}
	return nil
}

func shorten(s string, most int) string {
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	return string(r[:most-1]) + "…"
}
