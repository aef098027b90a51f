package recipe

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/stage"
)

// operation is one reinstall at work: the record in memory, where things are, and the secrets that no record holds.
type operation struct {
	c        *Container
	host     Host
	archives Archives // of application containers; nil for others
	req      Request

	j        guest.Journal // as last written
	runner   string        // this run, in the record
	takeover string        // the run whose record a resume takes over, "" otherwise
	claimed  bool          // a record exists somewhere

	guest, parking guest.Ref
	login          guest.Login
	preview        preview.Preview
	warnings       []string
	started        bool // anything was changed
	doubt          bool // a destroy was sent and its answer never came
	beaten         bool // somebody else took the VMID that an install was to get
}

// The kinds of operations that a record names.
const (
	kindReinstall = "reinstall"
	kindRollback  = "rollback" // past the point of no return, from the operation's own archive
	kindRebuild   = "rebuild"  // of a VM, in place
	kindReplace   = "replace"  // of a VM, on a new one
	kindAccept    = "accept"   // of a VM: what was set aside goes
	kindInstall   = "install"  // of an application container that does not exist yet
	kindUpdate    = "update"   // of an application container
	kindRemove    = "remove"   // of an application container
)

// Budgets. Before the point of no return a lock is somebody's backup: giving up is cheap. Past it, waiting is.
const (
	undoTime   = 30 * time.Minute
	finishTime = 4 * time.Hour
	lockBefore = 2 * time.Minute
	lockAfter  = 1 * time.Hour
	stopTime   = time.Minute // Proxmox's own
)

func (c *Container) now() time.Time {
	if c.Clock != nil {
		return c.Clock()
	}
	return time.Now()
}

func (c *Container) random() string {
	if c.Random != nil {
		return c.Random()
	}
	b := make([]byte, 4)
	_, _ = rand.Read(b) // never fails: the runtime ends the process instead
	return hex.EncodeToString(b)
}

func (c *Container) sleep(ctx context.Context, d time.Duration) error {
	if c.Sleep != nil {
		return c.Sleep(ctx, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (c *Container) log(ctx context.Context, message string, fields map[string]any) {
	if c.Log != nil {
		c.Log(ctx, message, fields)
	}
}

// begin makes the record of a new reinstall from what was judged.
func (c *Container) begin(req Request, seen Observation, facts preview.Facts, judged preview.Preview) *operation {
	now := c.now()
	want := req.Want
	o := &operation{
		c: c, host: c.Host, archives: c.archives, req: req, runner: c.random(), guest: seen.Ref, login: facts.Login, preview: judged,
		parking: guest.Ref{VMID: facts.Parking.VMID, Kind: guest.KindContainer, Node: seen.Ref.Node},
	}
	wanted := want.Install()
	wanted.RootfsStorage = rootfsStorage(seen.Config, want)
	timeout := want.Timeout
	if timeout <= 0 {
		timeout = 2 * time.Hour
	}
	o.j = guest.Journal{
		Version: 1, Operation: guest.NewOperationID(seen.Ref.VMID, now.UTC().Format("20060102"), c.random()[:4]), Kind: kindReinstall,
		Guest: seen.Ref.VMID, Parking: o.parking.VMID, Holder: seen.Ref.VMID, Node: seen.Ref.Node, Runner: o.runner,
		State: guest.JournalDoing, Started: now.Unix(), Updated: now.Unix(), Until: now.Add(timeout).Unix(),
		Wanted:    wanted,
		Installed: installedNow(seen, req.Installed),
		Erase:     want.Erase, Drop: want.Drop, Allow: want.Allow,
		Running: seen.Running, Secret: req.Password != "", Config: kept(seen.Config),
		Size: rootfsSize(facts, want), Storage: wanted.RootfsStorage, Health: req.Health.text(),
	}
	if seen.Contract != nil {
		o.j.Spent = seen.Contract.Spent
	}
	if want.Backup != nil {
		o.j.Archive, o.j.Keep = want.Backup.Storage, want.Backup.Keep
	}
	for _, s := range facts.Guest.Snapshots {
		o.j.Snaps = append(o.j.Snaps, s.Name)
	}
	for _, f := range judged.Volumes {
		o.fate(f)
	}
	// Proxmox gives a volume that arrives the lowest free number: in the order of their names they get their names back.
	slices.SortStableFunc(o.j.Parked, func(a, b guest.ParkedVolume) int { return guest.CompareKeys(numbered(a), numbered(b)) })
	if facts.Pool.OK {
		o.j.Pool = facts.Pool.Value
	}
	if facts.HA.OK && facts.HA.Value.Managed {
		o.j.HA = facts.HA.Value.Fields
	}
	if facts.ACL.OK {
		for _, e := range facts.ACL.Value {
			o.j.ACL = append(o.j.ACL, aclText(e))
		}
	}
	if facts.Leases.OK {
		for _, l := range facts.Leases.Value {
			o.j.Leases = append(o.j.Leases, l.Zone+" "+l.VNet+" "+l.MAC+" "+l.IP)
		}
	}
	return o
}

// fate writes what the preview says of a volume into the record: set aside, put back by reference, or doomed.
func (o *operation) fate(f preview.Fate) {
	value, main := o.j.Config[f.Key]
	switch {
	case f.Data == preview.DataErased && f.Volume != "":
		o.j.Doomed = append(o.j.Doomed, f.Volume)
	case !main || f.Mount != preview.MountReattached:
	case f.Data == preview.DataPreserved:
		o.j.Parked = append(o.j.Parked, guest.ParkedVolume{Key: f.Key, Value: value})
	default:
		o.j.Refs = append(o.j.Refs, f.Key)
	}
}

// numbered is a parked volume's name up to its number: "local:5001/vm-5001-disk-2".
func numbered(p guest.ParkedVolume) string {
	name, _, _ := strings.Cut(p.Value, ",")
	for _, format := range []string{".raw", ".qcow2", ".subvol", ".vmdk"} {
		name = strings.TrimSuffix(name, format)
	}
	return name
}

// resumed takes up the record of an operation that stopped half-way.
func (c *Container) resumed(req Request, seen Observation, login guest.Login) *operation {
	j := *seen.Journal
	return &operation{
		c: c, host: c.Host, archives: c.archives, req: req, j: j, runner: c.random(), takeover: j.Runner, claimed: true, login: login, started: true,
		guest:   guest.Ref{VMID: j.Guest, Kind: kindOf(j), Node: j.Node},
		parking: guest.Ref{VMID: j.Parking, Kind: kindOf(j), Node: j.Node},
	}
}

// engine is the operation as stages: back up → claim → rehearse → stop → (delete snapshots) → park each → guard →
// destroy → create → return each → (return references) → (make volumes → configure) → restore → start → settle. The point
// of no return is destroy.
func (o *operation) engine() stage.Operation {
	switch o.j.Kind {
	case kindRollback:
		return o.rollback()
	case kindRebuild:
		return o.rebuild()
	case kindReplace:
		return o.replace()
	case kindAccept:
		return o.acceptance()
	case kindInstall:
		return o.installation()
	case kindRemove:
		return o.removal()
	}
	var stages []stage.Stage
	if o.j.Archive != "" {
		stages = append(stages, o.backUp())
	}
	stages = append(stages, o.claim(), o.rehearse(), o.stop())
	if len(o.j.Snaps) > 0 {
		stages = append(stages, o.deleteSnapshots())
	}
	for i := len(o.j.Parked) - 1; i >= 0; i-- { // last first, so that an undo brings them back first to last
		stages = append(stages, o.park(i))
	}
	stages = append(stages, o.guard(), o.destroy(), o.create())
	for i := range o.j.Parked {
		stages = append(stages, o.bringBack(i))
	}
	if len(o.j.Refs) > 0 {
		stages = append(stages, o.refer())
	}
	stages = append(append(stages, o.deploy()...), o.restore(), o.start(), o.settle())
	return o.run(stages)
}

// rehearsal is the dry run: claim and rehearse, to be taken back again.
func (o *operation) rehearsal() stage.Operation {
	if o.guest.Kind == guest.KindVM {
		return o.run([]stage.Stage{o.claim(), o.prepare()})
	}
	return o.run([]stage.Stage{o.claim(), o.rehearse()})
}

// kindOf is the kind of guest that a record is about: only a VM's names system disks.
func kindOf(j guest.Journal) guest.Kind {
	if len(j.Disks) > 0 {
		return guest.KindVM
	}
	return guest.KindContainer
}

// run gives every stage its patience with locks: before the point of no return giving up is cheap; an undo, and what lies
// past the point, waits long for somebody's backup (hazard B1).
func (o *operation) run(stages []stage.Stage) stage.Operation {
	patience, after := cmp.Or(o.c.PatienceBefore, lockBefore), cmp.Or(o.c.PatienceAfter, lockAfter)
	for i := range stages {
		do, undo := stages[i].Do, stages[i].Undo
		limit := patience
		stages[i].Do = func(ctx context.Context) error { return do(guest.WithPatience(ctx, limit)) }
		if undo != nil {
			stages[i].Undo = func(ctx context.Context) error { return undo(guest.WithPatience(ctx, after)) }
		}
		if stages[i].Final {
			patience = after
		}
	}
	return stage.Operation{
		Stages: stages, Journal: o, UndoTime: undoTime, FinishTime: finishTime, Again: again, Sleep: o.c.Sleep,
		Log: func(ctx context.Context, message string, at stage.Position) {
			o.c.log(ctx, message, map[string]any{
				"operation": o.j.Operation, "guest": int(o.guest.VMID), "stage": at.Stage, "index": at.Index, "of": at.Of,
				"back": at.Back, "problem": at.Problem,
			})
		},
	}
}

// again says which errors past the point of no return are worth another try: those that say nothing was done, and may say
// otherwise later. A request that may have had its effect is never repeated by the engine.
func again(err error, tries int) (time.Duration, bool) {
	switch guest.OutcomeOf(err) {
	case guest.OutcomeLocked, guest.OutcomeUnreachable, guest.OutcomeConflict:
		return time.Duration(tries) * 5 * time.Second, tries <= 5
	case guest.OutcomeUnknown, guest.OutcomeRefused, guest.OutcomeFailed, guest.OutcomeDenied, guest.OutcomeMissing, guest.OutcomeTaken:
		return 0, false
	}
	return 0, false
}

func (o *operation) warn(format string, args ...any) {
	o.warnings = append(o.warnings, guest.Printable(fmt.Sprintf(format, args...)))
}

// position is where the record stands. A rehearsal that somebody resumes is on its way back from wherever it stands.
func (o *operation) position() stage.Position {
	return stage.Position{
		Stage: o.j.Stage, Index: o.j.Index, Of: o.j.Of, Back: o.j.Back || o.j.Dry, Stuck: o.j.State == guest.JournalStuck, Problem: o.j.Error,
	}
}

// kept is the configuration that the record keeps: everything but the notes, which travel as notes, and the environment,
// which holds secrets.
func kept(c guest.Config) map[string]string {
	out := make(map[string]string, len(c.Values))
	for k, v := range c.Values {
		if k != "description" && k != "env" {
			out[k] = v
		}
	}
	return out
}
