package recipe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/stage"
)

// park sets one volume aside: it is handed to the parking guest by renaming, under the same key, with its options.
func (o *operation) park(i int) stage.Stage {
	return stage.Stage{
		Name: "park " + o.j.Parked[i].Key,
		Do: func(ctx context.Context) error {
			if err := o.haltParking(ctx); err != nil { // somebody started it: it would run on the kept data (hazard B7)
				return err
			}
			if err := o.handOver(ctx, i, o.guest, o.parking); err != nil {
				return fmt.Errorf("cannot set %s aside: %w", o.j.Parked[i].Key, err)
			}
			return nil
		},
		Undo: func(ctx context.Context) error { return o.takeHome(ctx, i) },
		Seen: o.movedTo(i, func() (guest.Ref, guest.Ref) { return o.guest, o.parking }),
	}
}

// takeHome undoes a park. Whoever started the parking guest, or the guest without its data, has it stopped first; the guest
// is started again once it has everything. Nothing is stopped for a volume that will not move.
func (o *operation) takeHome(ctx context.Context, i int) error {
	key := o.j.Parked[i].Key
	there, err := o.host.Config(ctx, o.parking)
	if err != nil {
		return err
	}
	here, err := o.host.Config(ctx, o.guest)
	if err != nil {
		return err
	}
	parked, waits, err := o.volumeSeen(ctx, there, o.parking, key)
	if err != nil {
		return err
	}
	own, home, err := o.volumeSeen(ctx, here, o.guest, key)
	if err != nil {
		return err
	}
	switch {
	case waits && home:
		return twiceError{from: o.parking, to: o.guest, a: parked, b: own, key: key}
	case waits:
		if err := o.haltParking(ctx); err != nil {
			return err
		}
		if err := o.halt(ctx, o.guest); err != nil {
			return err
		}
	}
	return o.handOver(ctx, i, o.parking, o.guest)
}

// isParking refuses a guest under the parking VMID that does not carry our record in its own notes. A record alone proves
// nothing: whoever may write the notes of one guest could point at another one in it, and have it emptied.
func (o *operation) isParking(config guest.Config) error {
	if o.ours(config, o.parking.VMID) {
		return nil
	}
	return fmt.Errorf("%s %d does not carry the record of %s: it is not our parking guest, or somebody overwrote its notes; it is not touched", o.parking.Kind, o.parking.VMID, o.j.Operation)
}

// haltParking makes sure that the parking guest does not run.
func (o *operation) haltParking(ctx context.Context) error {
	config, err := o.host.Config(ctx, o.parking)
	if err != nil {
		return err
	}
	if err := o.isParking(config); err != nil {
		return err
	}
	return o.halt(ctx, o.parking)
}

// twiceError says that two guests name a volume under the key that one volume is handed over by.
type twiceError struct {
	from, to guest.Ref
	a, b     guest.VolumeID
	key      string
}

func (e twiceError) Error() string {
	return fmt.Sprintf("both %s %d (%s) and %s %d (%s) name a volume under %s", e.from.Kind, e.from.VMID, e.a, e.to.Kind, e.to.VMID, e.b, e.key)
}

// bringBack hands one volume to the new guest: the same key, the same options.
func (o *operation) bringBack(i int) stage.Stage {
	return stage.Stage{
		Name: "return " + o.j.Parked[i].Key,
		Do: func(ctx context.Context) error {
			if err := o.stillOurs(ctx); err != nil {
				return err
			}
			if err := o.haltParking(ctx); err != nil {
				return err
			}
			if err := o.halt(ctx, o.guest); err != nil { // somebody started it: it would run without its data (hazard B7)
				return err
			}
			if err := o.handOver(ctx, i, o.parking, o.guest); err != nil {
				return fmt.Errorf("cannot bring %s back: %w", o.j.Parked[i].Key, err)
			}
			return nil
		},
		Seen: o.movedTo(i, func() (guest.Ref, guest.Ref) { return o.parking, o.guest }),
	}
}

func (o *operation) movedTo(i int, ends func() (from, to guest.Ref)) func(context.Context) (stage.Effect, error) {
	return func(ctx context.Context) (stage.Effect, error) {
		from, to := ends()
		p := o.j.Parked[i]
		source, err := o.host.Config(ctx, from)
		if err != nil {
			return stage.Unclear, err
		}
		target, err := o.host.Config(ctx, to)
		if err != nil {
			return stage.Unclear, err
		}
		_, here := source.Get(p.Key)
		value, there := target.Get(p.Key)
		switch {
		case there && !here && sameMount(p, value):
			return stage.Whole, nil
		case here && !there:
			return stage.None, nil
		}
		return stage.Partly, nil
	}
}

// handOver brings volume i from one guest to the other, whatever an earlier try left: it looks where the volume is, moves
// it when it is still with from, repairs the hole when a move renamed it and wrote only one configuration or none, and
// verifies the options. The record names what the receiver owned before, so that a repair never has to guess (hazard B5).
func (o *operation) handOver(ctx context.Context, i int, from, to guest.Ref) error {
	p := o.j.Parked[i]
	for tries := 0; ; tries++ {
		source, err := o.host.Config(ctx, from)
		if err != nil {
			return err
		}
		target, err := o.host.Config(ctx, to)
		if err != nil {
			return err
		}
		for ref, config := range map[guest.Ref]guest.Config{from: source, to: target} {
			if ref != o.parking {
				continue
			}
			if err := o.isParking(config); err != nil {
				return err
			}
		}
		id, there, err := o.volumeSeen(ctx, source, from, p.Key)
		if err != nil {
			return err
		}
		at, arrived, err := o.volumeSeen(ctx, target, to, p.Key)
		if err != nil {
			return err
		}
		none := guest.VolumeID{}
		switch {
		case arrived && id == none:
			return o.settleMount(ctx, i, to)
		case arrived && !there && source.Values["protection"] == "1":
			return o.settleMount(ctx, i, to) // the dead key goes with the guard, when the parking guest goes
		case arrived && !there:
			if err := o.dropDead(ctx, from, p.Key, id); err != nil {
				return err
			}
			return o.settleMount(ctx, i, to)
		case arrived:
			return twiceError{from: from, to: to, a: id, b: at, key: p.Key}
		case at != none && there:
			err = o.dropDead(ctx, to, p.Key, at) // an earlier move away left its name behind
		case there:
			err = o.move(ctx, i, from, to, id)
		case p.To == from.VMID:
			err = o.repair(ctx, i, from) // the move before this one lost it: an undo goes on from there
		default:
			err = o.repair(ctx, i, to)
		}
		switch {
		case err != nil && (tries >= 3 || ctx.Err() != nil || guest.OutcomeOf(err) != guest.OutcomeConflict):
			return err
		case tries > 6:
			return fmt.Errorf("%s does not arrive on %s %d although Proxmox says it was moved", p.Key, to.Kind, to.VMID)
		}
		// Look again, also after success: a task's OK is not proof.
	}
}

// volumeSeen is the volume that a key names, and whether its storage shows it as the guest's own.
func (o *operation) volumeSeen(ctx context.Context, config guest.Config, of guest.Ref, key string) (id guest.VolumeID, there bool, err error) {
	if id, err = volumeAt(config, key); err != nil || id == (guest.VolumeID{}) {
		return id, false, err
	}
	there, err = o.listed(ctx, id, of.VMID)
	return id, there, err
}

// move checks everything that would make Proxmox stop half-way (hazards B1, B4), records what the receiver owns, and moves.
func (o *operation) move(ctx context.Context, i int, from, to guest.Ref, id guest.VolumeID) error {
	p := o.j.Parked[i]
	for _, ref := range []guest.Ref{from, to} {
		if err := o.unlocked(ctx, ref); err != nil {
			return err
		}
	}
	target, err := o.host.Config(ctx, to)
	if err != nil {
		return err
	}
	if target.Values["protection"] == "1" && to.Kind == guest.KindContainer {
		return fmt.Errorf("CT %d is protected: a move into it would lose the volume from both configurations; lift the protection", to.VMID)
	}
	if err := o.takes(ctx, id.Storage); err != nil {
		return err
	}
	before, err := o.owns(ctx, to, id.Storage)
	if err != nil {
		return err
	}
	next := o.j
	next.Parked = append([]guest.ParkedVolume(nil), o.j.Parked...)
	next.Parked[i].To, next.Parked[i].Before = to.VMID, before
	if err := o.save(ctx, next); err != nil {
		return err
	}
	// Our own record may have changed one of the digests: read them again, and compare what they stand for.
	source, err := o.host.Config(ctx, from)
	if err != nil {
		return err
	}
	if now, err := volumeAt(source, p.Key); err != nil || now != id {
		return fmt.Errorf("%s of %s %d changed while it was looked at: it was %s and is %s", p.Key, from.Kind, from.VMID, id, now)
	}
	if target, err = o.host.Config(ctx, to); err != nil {
		return err
	}
	if value, taken := target.Get(p.Key); taken {
		return fmt.Errorf("%s of %s %d is taken by %s", p.Key, to.Kind, to.VMID, value)
	}
	err = o.host.MoveVolume(ctx, Move{
		From: from, To: to, FromKey: p.Key, ToKey: p.Key, Volume: id, FromDigest: source.Digest, ToDigest: target.Digest,
	})
	if err == nil {
		return nil
	}
	// Did it happen after all? Then the next look goes on from there.
	now, seen := o.host.Config(ctx, from)
	if seen != nil {
		return errors.Join(err, seen)
	}
	if left, seen := volumeAt(now, p.Key); seen == nil && left == (guest.VolumeID{}) {
		return nil
	}
	if !guest.OutcomeOf(err).Harmless() {
		if there, seen := o.listed(ctx, id, from.VMID); seen == nil && !there {
			return nil
		}
	}
	return err
}

// owns lists the volume ids that a guest owns on a storage.
func (o *operation) owns(ctx context.Context, ref guest.Ref, storage string) ([]string, error) {
	rows, err := o.host.Content(ctx, ref.Node, storage, ref.VMID)
	if err != nil {
		return nil, fmt.Errorf("cannot list storage %s: %w", storage, err)
	}
	ids := []string{}
	for _, row := range rows {
		if row.Owner == ref.VMID && row.Content != "backup" {
			ids = append(ids, row.ID.String())
		}
	}
	return ids, nil
}

// takes proves that a storage still takes container volumes: one that does not loses a volume in mid-move (hazard B4).
func (o *operation) takes(ctx context.Context, name string) error {
	content, what := "rootdir", "container volumes"
	if o.guest.Kind == guest.KindVM {
		content, what = "images", "disks of VMs"
	}
	storages, err := o.host.Storages(ctx, o.guest.Node)
	if err != nil {
		return err
	}
	for _, s := range storages {
		switch {
		case s.Name != name:
		case !s.Enabled || !s.Active:
			return fmt.Errorf("storage %s is not active on %s", name, o.guest.Node)
		case !s.Has(content):
			return fmt.Errorf("storage %s no longer takes %s (content %s)", name, what, content)
		default:
			return nil
		}
	}
	return fmt.Errorf("storage %s does not exist on %s", name, o.guest.Node)
}

// unlocked waits until nobody holds a lock on the guest: a backup's lock is somebody's work, not an error (hazard B1).
func (o *operation) unlocked(ctx context.Context, ref guest.Ref) error {
	patience, said := guest.Patience(ctx)
	if !said {
		patience = lockBefore
	}
	deadline := o.c.now().Add(patience)
	for tries := 0; ; tries++ {
		_, lock, err := o.host.Running(ctx, ref)
		if err != nil || lock == "" {
			return err
		}
		if o.c.now().After(deadline) || tries > 2000 {
			return lockedError{ref: ref, lock: lock, waited: patience}
		}
		o.c.log(ctx, "waiting for a lock", map[string]any{"guest": int(ref.VMID), "lock": lock})
		if err := o.c.sleep(ctx, waitFor(tries)); err != nil {
			return errors.Join(lockedError{ref: ref, lock: lock, waited: patience}, err)
		}
	}
}

// lockedError says whose lock was waited for in vain. Nothing was done.
type lockedError struct {
	ref    guest.Ref
	lock   string
	waited time.Duration
}

func (e lockedError) Error() string {
	return fmt.Sprintf("%s %d is locked (%s); waited up to %s for it", e.ref.Kind, e.ref.VMID, e.lock, e.waited)
}

// Outcome implements what guest.OutcomeOf asks.
func (e lockedError) Outcome() guest.Outcome { return guest.OutcomeLocked }

// waitFor grows from a moment to ten seconds.
func waitFor(tries int) time.Duration {
	return min(10*time.Second, time.Duration(tries+1)*250*time.Millisecond)
}

// repair mends the hole of a move: the storage renamed the volume, and no configuration names it. The volume is the one
// that the receiver owns now and did not before; anything but exactly one is refused.
func (o *operation) repair(ctx context.Context, i int, to guest.Ref) error {
	p := o.j.Parked[i]
	m, err := guest.ParseSlot(to.Kind, p.Key, p.Value)
	if err != nil {
		return err
	}
	was, ok := m.Volume()
	if !ok {
		return fmt.Errorf("%s names no volume: %s", p.Key, p.Value)
	}
	// A storage without the content type lists no such volume: then nothing says that it is gone.
	if err := o.takes(ctx, was.Storage); err != nil {
		return fmt.Errorf("whose %s is now cannot be seen: %w", p.Key, err)
	}
	if p.To != to.VMID { // Before goes with To; a record keeps an empty one as none
		return fmt.Errorf("%s is in nobody's configuration, and the record does not say what %s %d owned on %s before: find the volume by hand", p.Key, to.Kind, to.VMID, was.Storage)
	}
	owned, err := o.owns(ctx, to, was.Storage)
	if err != nil {
		return err
	}
	named := map[string]bool{}
	target, err := o.host.Config(ctx, to)
	if err != nil {
		return err
	}
	for _, n := range guest.Volumes(to.Kind, target) {
		named[n.ID.String()] = true
	}
	var found []string
	for _, id := range owned {
		if !contains(p.Before, id) && !named[id] {
			found = append(found, id)
		}
	}
	if len(found) != 1 {
		return fmt.Errorf("%s is in nobody's configuration, and %d volumes on %s could be it %v: nothing is guessed", p.Key, len(found), was.Storage, found)
	}
	if target.Values["protection"] == "1" && to.Kind == guest.KindContainer {
		return fmt.Errorf("%s waits on %s as %s, but CT %d is protected by somebody: lift the protection and resume", p.Key, was.Storage, found[0], to.VMID)
	}
	if err := o.edit(ctx, to, func(c guest.Config) (map[string]string, []string) {
		if _, there := c.Get(p.Key); there {
			return nil, nil
		}
		return map[string]string{p.Key: m.With(found[0])}, nil
	}); err != nil {
		return fmt.Errorf("cannot put %s back as %s: %w", found[0], p.Key, err)
	}
	o.warn("%s had been renamed to %s and was in nobody's configuration; it was found and put back", p.Key, found[0])
	return nil
}

// dropDead removes a key whose volume is gone to the other guest: first the key, then the unused entry that Proxmox makes
// of it, whose volume does not exist.
func (o *operation) dropDead(ctx context.Context, ref guest.Ref, key string, dead guest.VolumeID) error {
	if name, _, _ := guest.SplitKey(key); name == "unused" {
		return o.dropUnusedDead(ctx, ref, dead)
	}
	if err := o.edit(ctx, ref, func(c guest.Config) (map[string]string, []string) {
		if now, err := volumeAt(c, key); err != nil || now != dead {
			return nil, nil
		}
		return nil, []string{key}
	}); err != nil {
		return err
	}
	return o.dropUnusedDead(ctx, ref, dead)
}

func (o *operation) dropUnusedDead(ctx context.Context, ref guest.Ref, dead guest.VolumeID) error {
	config, err := o.host.Config(ctx, ref)
	if err != nil {
		return err
	}
	for _, m := range guest.Volumes(ref.Kind, config) {
		if name, _, _ := guest.SplitKey(m.Key); name != "unused" || m.ID != dead {
			continue
		}
		there, err := o.listed(ctx, dead, ref.VMID)
		if err != nil || there {
			return errors.Join(err, fmt.Errorf("%s of %s %d names %s, which is there after all", m.Key, ref.Kind, ref.VMID, dead))
		}
		if err := o.host.DropUnused(ctx, ref, m.Key, dead, config.Digest); err != nil {
			return err
		}
	}
	return nil
}

// settleMount verifies that a volume that arrived is mounted as it was, puts lost options back, and records its new name.
func (o *operation) settleMount(ctx context.Context, i int, to guest.Ref) error {
	p := o.j.Parked[i]
	want, err := guest.ParseSlot(to.Kind, p.Key, p.Value)
	if err != nil {
		return err
	}
	if err := o.edit(ctx, to, func(c guest.Config) (map[string]string, []string) {
		have, err := guest.ParseSlot(to.Kind, p.Key, c.Values[p.Key])
		if err != nil || have.SameOptions(want) {
			return nil, nil
		}
		return map[string]string{p.Key: want.With(have.Source)}, nil
	}); err != nil {
		return fmt.Errorf("cannot give %s its options back: %w", p.Key, err)
	}
	config, err := o.host.Config(ctx, to)
	if err != nil {
		return err
	}
	id, err := volumeAt(config, p.Key)
	if err != nil {
		return err
	}
	there, err := o.listed(ctx, id, to.VMID)
	if err != nil {
		return err
	}
	if !there {
		return fmt.Errorf("%s of %s %d names %s, which its storage does not show as owned by that guest", p.Key, to.Kind, to.VMID, id)
	}
	if !sameMount(p, config.Values[p.Key]) {
		return fmt.Errorf("%s of %s %d is %q and was %q", p.Key, to.Kind, to.VMID, config.Values[p.Key], p.Value)
	}
	next := o.j
	next.Parked = append([]guest.ParkedVolume(nil), o.j.Parked...)
	if to == o.parking {
		next.Parked[i].Parked, next.Parked[i].Now = id.String(), ""
	} else {
		next.Parked[i].Now = id.String()
	}
	o.j = next // written with the next stage
	return nil
}

// volumeAt is the volume that a key names; zero when the key is not there.
func volumeAt(c guest.Config, key string) (guest.VolumeID, error) {
	value, there := c.Get(key)
	if !there {
		return guest.VolumeID{}, nil
	}
	s, err := guest.ParseSlot(kindOfKey(key), key, value)
	if err != nil {
		return guest.VolumeID{}, err
	}
	id, ok := s.Volume()
	if !ok {
		return guest.VolumeID{}, fmt.Errorf("%s names no volume: %s", key, value)
	}
	return id, nil
}

// kindOfKey is the kind of guest that a storage key is of. An unused entry reads the same on both.
func kindOfKey(key string) guest.Kind {
	if name, _, indexed := guest.SplitKey(key); guest.IsDiskKey(key) && (!indexed || name != "unused") {
		return guest.KindVM
	}
	return guest.KindContainer
}

// sameMount reports whether a value mounts like the parked volume did, whatever the volume is called now.
func sameMount(p guest.ParkedVolume, value string) bool {
	kind := kindOfKey(p.Key)
	want, err := guest.ParseSlot(kind, p.Key, p.Value)
	if err != nil {
		return false
	}
	have, err := guest.ParseSlot(kind, p.Key, value)
	return err == nil && have.SameOptions(want)
}
