package recipe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/stage"
)

// refer puts back what is only referred to: volumes of other guests, and host paths where the login may set them.
func (o *operation) refer() stage.Stage {
	missing := func(c guest.Config) map[string]string {
		set := map[string]string{}
		for _, key := range o.j.Refs {
			want, err := guest.ParseMount(key, o.j.Config[key])
			if err != nil {
				continue
			}
			have, err := guest.ParseMount(key, c.Values[key])
			if err != nil || have.Source != want.Source || !have.SameOptions(want) {
				set[key] = want.WithoutSize()
			}
		}
		return set
	}
	return stage.Stage{
		Name: "return references",
		Do: func(ctx context.Context) error {
			if err := o.stillOurs(ctx); err != nil {
				return err
			}
			for range o.j.Refs { // one key a request: Proxmox writes none of them when one fails
				if err := o.edit(ctx, o.guest, func(c guest.Config) (map[string]string, []string) {
					for key, value := range missing(c) {
						return map[string]string{key: value}, nil
					}
					return nil, nil
				}); err != nil {
					return fmt.Errorf("cannot put a mount back by reference: %w", err)
				}
			}
			config, err := o.host.Config(ctx, o.guest)
			if err != nil {
				return err
			}
			for key, value := range missing(config) {
				return fmt.Errorf("%s is %q and was %q", key, config.Values[key], value)
			}
			return nil
		},
		Seen: func(ctx context.Context) (stage.Effect, error) {
			config, err := o.host.Config(ctx, o.guest)
			if err != nil {
				return stage.Unclear, err
			}
			if len(missing(config)) == 0 {
				return stage.Whole, nil
			}
			return stage.Partly, nil
		},
	}
}

// restore puts back what the destroy took away and no configuration remembers: firewall, pool, access control, tags, HA,
// onboot. Everything is read back.
func (o *operation) restore() stage.Stage {
	return stage.Stage{Name: "restore", Do: o.doRestore, Seen: func(context.Context) (stage.Effect, error) {
		return stage.Partly, nil // many small effects, each looked at by Do: run it again
	}}
}

func (o *operation) doRestore(ctx context.Context) error {
	if err := o.stillOurs(ctx); err != nil {
		return err
	}
	firewall, err := o.host.Firewall(ctx, o.parking)
	if err != nil {
		return fmt.Errorf("cannot read the firewall kept on parking guest CT %d: %w", o.parking.VMID, err)
	}
	if !firewall.Empty() {
		if err := o.host.SetFirewall(ctx, o.guest, firewall); err != nil {
			return fmt.Errorf("cannot restore the firewall: %w", err)
		}
	}
	if err := o.rejoinPool(ctx); err != nil {
		return err
	}
	if err := o.regrant(ctx); err != nil {
		return err
	}
	if err := o.restoreKeys(ctx); err != nil {
		return err
	}
	if err := o.returnToHA(ctx); err != nil {
		return err
	}
	o.compareLeases(ctx)
	return nil
}

// subject is the guest that lives on: the new VM of a replacement, else the guest itself.
func (o *operation) subject() guest.Ref {
	if o.j.Replace && o.j.Made {
		return o.parking
	}
	return o.guest
}

func (o *operation) rejoinPool(ctx context.Context) error {
	if o.j.Pool == "" {
		return nil
	}
	pools, err := o.host.Pools(ctx)
	if err != nil {
		return fmt.Errorf("cannot read the pools: %w", err)
	}
	id := o.subject().VMID
	if pools[id] == o.j.Pool {
		return nil
	}
	if err := o.host.AddToPool(ctx, o.j.Pool, id, o.j.Kind == kindModify); err != nil {
		if pools, seen := o.host.Pools(ctx); seen == nil && pools[id] == o.j.Pool {
			return nil
		}
		return fmt.Errorf("cannot put the guest back into pool %s: %w", o.j.Pool, err)
	}
	return nil
}

func (o *operation) regrant(ctx context.Context) error {
	if len(o.j.ACL) == 0 {
		return nil
	}
	there, err := o.aclNow(ctx)
	if err != nil {
		return err
	}
	for _, text := range o.j.ACL {
		if there[text] {
			continue
		}
		entry, err := parseACL(text, o.subject().VMID)
		if err != nil {
			return err
		}
		if err := o.host.Grant(ctx, entry); err != nil {
			return fmt.Errorf("cannot grant %s to %s %s again: %w", entry.Role, entry.Type, entry.Who, err)
		}
	}
	if there, err = o.aclNow(ctx); err != nil {
		return err
	}
	for _, text := range o.j.ACL {
		if !there[text] {
			return fmt.Errorf("access control entry %q was granted again and is not there", text)
		}
	}
	return nil
}

func (o *operation) aclNow(ctx context.Context) (map[string]bool, error) {
	entries, err := o.host.ACL(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot read the access control entries: %w", err)
	}
	there := map[string]bool{}
	for _, e := range entries {
		if e.Path == vmPath(o.subject().VMID) {
			there[aclText(e)] = true
		}
	}
	return there, nil
}

// restoreKeys sets tags and onboot, which stayed out of the create.
func (o *operation) restoreKeys(ctx context.Context) error {
	for _, key := range []string{"tags", "onboot"} {
		want := o.aim()[key]
		if key == "tags" && (strings.TrimSpace(want) == "" || contains(o.j.Drop, key)) {
			continue
		}
		if err := o.edit(ctx, o.subject(), func(c guest.Config) (map[string]string, []string) {
			have, there := c.Get(key)
			switch {
			case have == want:
				return nil, nil
			case want == "" && there:
				return nil, []string{key}
			case want == "":
				return nil, nil
			}
			return map[string]string{key: want}, nil
		}); err != nil {
			return fmt.Errorf("cannot set %s again: %w", key, err)
		}
	}
	return nil
}

// compareLeases reports addresses that the cluster's IPAM gave to somebody else in between.
func (o *operation) compareLeases(ctx context.Context) {
	if len(o.j.Leases) == 0 {
		return
	}
	leases, err := o.host.Leases(ctx)
	if err != nil {
		o.warn("the address leases could not be compared: %s", err)
		return
	}
	now := map[string]string{}
	for _, l := range leases {
		now[strings.ToLower(l.Zone+" "+l.VNet+" "+l.MAC)] = l.IP
	}
	for _, text := range o.j.Leases {
		f := strings.Fields(text)
		if len(f) != 4 {
			continue
		}
		if ip := now[strings.ToLower(f[0]+" "+f[1]+" "+f[2])]; ip != f[3] {
			o.warn("MAC %s had the address %s in %s and now has %q: reserve it again in the IPAM if the guest needs it", f[2], f[3], f[1], ip)
		}
	}
}

// vmPath is the access control path of a guest.
func vmPath(id guest.VMID) string { return "/vms/" + id.String() }

// aclText is an entry on /vms/<guest> as the record keeps it.
func aclText(e guest.ACLEntry) string {
	propagate := "0"
	if e.Propagate {
		propagate = "1"
	}
	return e.Type + " " + e.Who + " " + e.Role + " " + propagate
}

func parseACL(text string, id guest.VMID) (guest.ACLEntry, error) {
	f := strings.Fields(text)
	if len(f) != 4 {
		return guest.ACLEntry{}, fmt.Errorf("cannot read access control entry %q", text)
	}
	return guest.ACLEntry{Path: vmPath(id), Type: f[0], Who: f[1], Role: f[2], Propagate: f[3] == "1"}, nil
}

// start starts the guest if it ran, and asks the probe until it is healthy.
func (o *operation) start() stage.Stage {
	return stage.Stage{
		Name: "start",
		Do: func(ctx context.Context) error {
			if err := o.stillOurs(ctx); err != nil {
				return err
			}
			if !o.runsInTheEnd() {
				return nil
			}
			if err := o.startIt(ctx); err != nil {
				return o.ailing(err)
			}
			return o.ailing(o.healthy(ctx))
		},
		Seen: func(context.Context) (stage.Effect, error) { return stage.Partly, nil }, // running is not healthy
	}
}

// settle writes the contract, removes the parking guest, and takes the record out last, so that a crash here is seen.
func (o *operation) settle() stage.Stage {
	return stage.Stage{Name: "settle", Do: o.doSettle, Seen: func(context.Context) (stage.Effect, error) { return stage.Partly, nil }}
}

func (o *operation) doSettle(ctx context.Context) error {
	config, err := o.host.Config(ctx, o.guest)
	if err != nil {
		return err
	}
	if !o.mine(config) {
		return takenError{ref: o.guest}
	}
	if err := o.complete(config); err != nil {
		return err
	}
	if o.j.Made {
		moved := o.j
		moved.Made = false
		if err := o.saveTo(ctx, o.guest, moved); err != nil {
			return err
		}
	}
	if config, err = o.lastKeys(ctx, config); err != nil {
		return err
	}
	contract := o.contract()
	if o.j.Kind == kindRollback {
		contract = o.declined(guest.NotesOf(o.guest.VMID, config.Description()).Contract)
	}
	o.describe(&contract, config)
	if err := o.editNotes(ctx, o.guest, func(n *guest.Notes) (bool, error) {
		if n.Journal == nil || n.Journal.Operation != o.j.Operation {
			return false, &lostError{winner: n.Journal}
		}
		o.retell(n)
		if n.Contract != nil && n.Contract.Instance == contract.Instance && n.Contract.Operation == contract.Operation {
			return false, nil
		}
		n.Contract = &contract
		return true, nil
	}); err != nil {
		return fmt.Errorf("cannot write the contract: %w", err)
	}
	if err := o.leaveParking(ctx); err != nil {
		return err
	}
	o.thinOut(ctx)
	o.sweepArchives(ctx)
	o.reportLeftovers(ctx)
	err = o.editNotes(ctx, o.guest, func(n *guest.Notes) (bool, error) {
		if n.Journal == nil || n.Journal.Operation != o.j.Operation {
			return false, nil
		}
		n.Journal = nil
		return true, nil
	})
	if err == nil {
		o.claimed = false
	}
	return err
}

// complete compares the new guest with the record: every volume that was to come back is there.
func (o *operation) complete(config guest.Config) error {
	for _, p := range o.j.Parked {
		value, there := config.Get(p.Key)
		if p.Value = o.mountAimed(p); !there || !sameMount(p, value) {
			return fmt.Errorf("%s is %q and was %q", p.Key, value, p.Value)
		}
	}
	return nil
}

// leaveParking lifts our guard and destroys the parking guest, when it is seen to hold nothing.
func (o *operation) leaveParking(ctx context.Context) error {
	config, err := o.host.Config(ctx, o.parking)
	if err != nil {
		if guest.OutcomeOf(err) == guest.OutcomeMissing {
			return nil
		}
		return err
	}
	if !o.ours(config, o.parking.VMID) {
		o.warn("CT %d is not our parking guest any more and was left alone", o.parking.VMID)
		return nil
	}
	if err := o.allHome(ctx); err != nil { // before the guard goes
		return err
	}
	if err := o.halt(ctx, o.parking); err != nil {
		return err
	}
	if err := o.liftGuard(ctx); err != nil {
		return err
	}
	for _, p := range o.j.Parked { // names that a move left behind, whose volumes are not there any more
		id, there, err := o.volumeSeen(ctx, config, o.parking, p.Key)
		if err != nil {
			return err
		}
		if id == (guest.VolumeID{}) || there {
			continue
		}
		if err := o.dropDead(ctx, o.parking, p.Key, id); err != nil {
			return err
		}
	}
	return o.destroyParking(ctx)
}

// contract is what the notes will say about the new guest.
func (o *operation) contract() guest.Contract {
	spent := map[string]string{}
	for k, v := range o.j.Spent {
		spent[k] = v
	}
	for k, v := range o.j.Erase {
		if v != "*" && contains(o.j.Doomed, v) {
			spent[k] = v
		}
	}
	return guest.Contract{
		Version: 1, Guest: o.subject().VMID, Instance: o.j.Operation, Operation: o.j.Operation, Installed: o.j.Wanted,
		Spent: spent, At: o.c.now().Unix(),
	}
}

// thinOut removes older archives that operations of ours made of the guest, when the configuration says how many stay. What
// it cannot remove it reports: the operation is done all the same.
func (o *operation) thinOut(ctx context.Context) {
	if o.j.Keep <= 0 || o.j.Archive == "" {
		return
	}
	rows, err := o.host.Content(ctx, o.guest.Node, o.j.Archive, o.guest.VMID)
	if err != nil {
		o.warn("older archives on %s could not be listed: %s", o.j.Archive, err)
		return
	}
	rows = slices.DeleteFunc(rows, func(row guest.StoredVolume) bool {
		return row.Content != "backup" || row.Owner != o.guest.VMID || !preview.OurBackup(row)
	})
	slices.SortFunc(rows, func(a, b guest.StoredVolume) int { return cmp.Compare(b.Created, a.Created) })
	for _, row := range rows[min(o.j.Keep, len(rows)):] {
		if row.ID.String() == o.j.Backup {
			continue
		}
		if err := o.host.RemoveArchive(ctx, o.guest, row.ID); err != nil {
			o.warn("older archive %s could not be removed: %s", row.ID, err)
		}
	}
}

// reportLeftovers names what the operation may have left behind: archives that a backup job made of the parking guest
// (hazard A4), and volumes of the guest's VMID that nothing names (hazard C4). It changes nothing.
func (o *operation) reportLeftovers(ctx context.Context) {
	storages, err := o.host.Storages(ctx, o.guest.Node)
	if err != nil {
		o.warn("leftovers could not be looked for: %s", err)
		return
	}
	config, err := o.host.Config(ctx, o.guest)
	if err != nil {
		return
	}
	named := map[string]bool{}
	for _, n := range guest.Volumes(o.guest.Kind, config) {
		named[n.ID.String()] = true
	}
	var errs []error
	for _, s := range storages {
		if !s.Enabled || !s.Active {
			continue
		}
		if s.Has("backup") {
			rows, err := o.host.Content(ctx, o.guest.Node, s.Name, o.parking.VMID)
			errs = append(errs, err)
			for _, row := range rows {
				if row.Content == "backup" && row.Owner == o.parking.VMID {
					o.warn("archive %s was made of the parking guest while it held data of CT %d: keep or delete it", row.ID, o.guest.VMID)
				}
			}
		}
		if s.Has("rootdir") || s.Has("images") {
			rows, err := o.host.Content(ctx, o.guest.Node, s.Name, o.guest.VMID)
			errs = append(errs, err)
			for _, row := range rows {
				if row.Owner == o.guest.VMID && row.Content != "backup" && !named[row.ID.String()] {
					o.warn("volume %s belongs to CT %d by its name and nothing names it", row.ID, o.guest.VMID)
				}
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		o.warn("leftovers could not be looked for everywhere: %s", err)
	}
}
