package recipe

import (
	"context"
	"fmt"
	"slices"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
)

// look observes one VM: its row in the cluster's list, and one read of its configuration.
func (v *VM) look(ctx context.Context, lists Reader, id guest.VMID) (Observation, error) {
	row, found, err := locate(ctx, lists, id)
	if err != nil {
		return Observation{}, err
	}
	if !found {
		return v.lookForMissing(ctx, id)
	}
	seen := Observation{Presence: guest.Present, Ref: row.Ref, Name: row.Name, Running: row.Status == "running"}
	if row.Kind != guest.KindVM {
		seen.WrongType = true
		return seen, nil
	}
	config, err := v.Host.Config(ctx, row.Ref)
	if err != nil && guest.OutcomeOf(err) == guest.OutcomeMissing {
		if lists != Reader(v.Host) {
			return v.look(ctx, v.Host, id) // the shared list is older than a migration or a destroy
		}
		return v.lookForMissing(ctx, id)
	}
	if err != nil && guest.OutcomeOf(err) == guest.OutcomeUnreachable {
		seen.Presence = guest.PresenceUnknown
		seen.Problems = append(seen.Problems, fmt.Sprintf("node %s does not answer: %s", row.Node, err))
		return seen, nil
	}
	if err != nil {
		return Observation{}, fmt.Errorf("cannot read the configuration of VM %d: %w", id, err)
	}
	seen.Config, seen.Name = config, config.Name(guest.KindVM, id)
	seen.Acknowledged = preview.Acknowledge(guest.Guest{Ref: row.Ref, Config: config})
	notes := guest.NotesOf(id, config.Description())
	seen.Contract, seen.Journal = notes.Contract, notes.Journal
	for _, p := range notes.Problems {
		seen.Problems = append(seen.Problems, p.Sentence)
	}
	if seen.Journal == nil {
		seen.Journal, err = v.recordByName(ctx, lists, id)
		return seen, err
	}
	seen.Journal, err = v.head(ctx, *seen.Journal)
	return seen, err
}

// head returns the newest copy of a record: the VM that it is about, and its parking VM, carry one each.
func (v *VM) head(ctx context.Context, j guest.Journal) (*guest.Journal, error) {
	newest := j
	for _, id := range []guest.VMID{j.Guest, j.Parking} {
		if id == 0 || id == j.Holder {
			continue
		}
		config, err := v.Host.Config(ctx, guest.Ref{VMID: id, Kind: guest.KindVM, Node: j.Node})
		if err != nil {
			if guest.OutcomeOf(err) == guest.OutcomeMissing {
				continue
			}
			return nil, fmt.Errorf("cannot read the record of %s on VM %d: %w", j.Operation, id, err)
		}
		there := guest.NotesOf(id, config.Description()).Journal
		if there != nil && there.Operation == j.Operation && there.Sequence > newest.Sequence {
			newest = *there
		}
	}
	return &newest, nil
}

// recordByName reads the record about a VM from the parking VM that its name points out: the VM's own copy may have been
// wiped by another tool (hazard C5). Nil when there is none.
func (v *VM) recordByName(ctx context.Context, lists Reader, id guest.VMID) (*guest.Journal, error) {
	rows, err := lists.Guests(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if row.Kind != guest.KindVM || row.Name != parkingName(id) {
			continue
		}
		j, err := v.container().recordOn(ctx, row.Ref, id)
		if err != nil {
			return nil, fmt.Errorf("cannot read parking guest VM %d of VM %d: %w", row.VMID, id, err)
		}
		if j != nil {
			return j, nil
		}
	}
	return nil, nil
}

// lookForMissing tells a VM that does not exist from one that the login may not see.
func (v *VM) lookForMissing(ctx context.Context, id guest.VMID) (Observation, error) {
	seen := Observation{Presence: guest.Absent, Ref: guest.Ref{VMID: id, Kind: guest.KindVM}}
	taken, err := v.Host.VMIDTaken(ctx, id)
	if err != nil {
		return Observation{}, fmt.Errorf("cannot ask whether VMID %d is in use: %w", id, err)
	}
	if taken {
		seen.Presence = guest.PresenceUnknown
		seen.Problems = append(seen.Problems, fmt.Sprintf("VMID %d is in use by a guest that this login may not see (VM.Audit on /vms/%d)", id, id))
	}
	return seen, nil
}

// facts reads what the judgement of a rebuild looks at; seen is the VM that is wanted, or the one that is to be replaced. What
// is wanted comes back as it applies: a new VM that is there already is rebuilt in place.
func (v *VM) facts(ctx context.Context, lists Reader, seen Observation, want preview.Want) (preview.Facts, preview.Want, error) {
	special := preview.VMWant{}
	if want.VM != nil {
		special = *want.VM
	}
	old := seen
	switch {
	case special.Replaces == 0, special.Replaces == seen.Ref.VMID:
	case seen.Presence == guest.Present && (seen.Journal != nil || seen.Contract != nil):
		special.Replaces = 0
	default:
		var err error
		if old, err = v.look(ctx, lists, special.Replaces); err != nil {
			return preview.Facts{}, want, err
		}
	}
	want.VM = &special
	facts, err := v.container().facts(ctx, lists, old, want, nil)
	return facts, want, err
}

// reconcileFacts reads what a reconcile looks at: the VM that had the data when the operation began, and all volumes.
func (v *VM) reconcileFacts(ctx context.Context, lists Reader, j guest.Journal, want preview.Want) (preview.Facts, error) {
	seen, err := v.look(ctx, lists, j.Guest)
	if err != nil {
		return preview.Facts{}, err
	}
	special := preview.VMWant{}
	if want.VM != nil {
		special = *want.VM
	}
	special.Replaces = 0
	want.VM, want.VMID = &special, j.Guest
	return v.container().facts(ctx, lists, seen, want, &j)
}

// sources finds what each new system disk is made from: an image among the listed volumes, or a disk of another VM of this
// node.
func (g *gathering) sources(ctx context.Context) error {
	if g.want.VM == nil {
		return nil
	}
	g.f.Sources = map[string]preview.Source{}
	for key, d := range g.want.VM.SystemDisks {
		switch {
		case d.Image != "":
			g.f.Sources[key] = g.image(d.Image)
		case d.Template.VMID != 0:
			source, err := g.templateDisk(ctx, d.Template)
			if err != nil {
				return err
			}
			g.f.Sources[key] = source
		}
	}
	return nil
}

func (g *gathering) image(text string) preview.Source {
	id, err := guest.ParseVolumeID(text)
	if err != nil {
		return preview.Source{Why: fmt.Sprintf("%q is no volume id", text)}
	}
	row, listed := g.f.Volumes[id]
	switch {
	case !listed:
		return preview.Source{Why: fmt.Sprintf("storage %s of node %s does not list it, or this login may not see it", id.Storage, g.seen.Ref.Node)}
	case row.Content != "import":
		return preview.Source{Why: "it is of content " + row.Content + ", not import"}
	}
	return preview.Source{Volume: row}
}

func (g *gathering) templateDisk(ctx context.Context, t preview.TemplateDisk) (preview.Source, error) {
	row, found, err := locate(ctx, g.lists, t.VMID)
	switch {
	case err != nil:
		return preview.Source{}, err
	case !found || row.Kind != guest.KindVM:
		return preview.Source{Why: fmt.Sprintf("there is no VM %d, or this login may not see it", t.VMID)}, nil
	case row.Node != g.seen.Ref.Node:
		return preview.Source{Why: fmt.Sprintf("VM %d is on node %s, not on %s", t.VMID, row.Node, g.seen.Ref.Node)}, nil
	}
	config, err := g.c.Host.Config(ctx, row.Ref)
	if err != nil {
		return preview.Source{}, fmt.Errorf("cannot read the configuration of VM %d: %w", t.VMID, err)
	}
	disks, _ := guest.Disks(config)
	at := slices.IndexFunc(disks, func(d guest.Disk) bool { return d.Key == t.Disk && !d.CDROM && !d.CloudInit })
	if at < 0 {
		return preview.Source{Why: fmt.Sprintf("VM %d has no disk %s", t.VMID, t.Disk)}, nil
	}
	d := disks[at]
	id, _ := d.Volume()
	volume, listed := g.f.Volumes[id]
	if !listed {
		return preview.Source{Why: fmt.Sprintf("storage %s does not list %s", id.Storage, d.Source)}, nil
	}
	return preview.Source{Volume: volume}, nil
}

// target asks whether the VMID of a replacement is free.
func (g *gathering) target(ctx context.Context) error {
	g.f.Target = guest.Absent
	taken, err := g.c.Host.VMIDTaken(ctx, g.want.VMID)
	if err != nil {
		return fmt.Errorf("cannot ask whether VMID %d is free: %w", g.want.VMID, err)
	}
	if taken {
		g.f.Target = guest.Present
	}
	g.f.Parking.VMID = g.want.VMID
	return nil
}
