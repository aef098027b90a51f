package recipe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/stage"
)

// takeSnapshot takes the snapshot of the kept disks: the system disks are off their keys, so that it covers nothing else. Its
// text tells whoever sees it in Proxmox not to roll back there (hazard C11). Taken back, it returns the kept disks to it when
// that was asked for, and goes.
func (o *operation) takeSnapshot() stage.Stage {
	return stage.Stage{
		Name: "snapshot",
		Do: func(ctx context.Context) error {
			there, err := o.snapshotThere(ctx)
			if err != nil || there {
				return err
			}
			text := fmt.Sprintf("pvrx %s: kept disks only. Do not roll back here: use reconcile = { operation = %q, action = \"rollback_data\" }", o.j.Operation, o.j.Operation)
			err = o.host.TakeSnapshot(ctx, o.guest, o.j.Snapshot, text)
			if err == nil {
				return nil
			}
			if there, seen := o.snapshotThere(ctx); seen == nil && there && !guest.OutcomeOf(err).Harmless() {
				return nil
			}
			return fmt.Errorf("cannot take the snapshot: %w", err)
		},
		Undo: func(ctx context.Context) error {
			there, err := o.snapshotThere(ctx)
			if err != nil || !there {
				return err
			}
			if o.j.Return {
				if err := o.halt(ctx, o.guest); err != nil {
					return err
				}
				if err := o.host.RollbackSnapshot(ctx, o.guest, o.j.Snapshot); err != nil {
					return fmt.Errorf("cannot return the kept disks to the snapshot: %w", err)
				}
			}
			return o.dropSnapshot(ctx)
		},
		Seen: func(ctx context.Context) (stage.Effect, error) {
			there, err := o.snapshotThere(ctx)
			switch {
			case err != nil:
				return stage.Unclear, err
			case there:
				return stage.Whole, nil
			}
			return stage.None, nil
		},
	}
}

func (o *operation) snapshotThere(ctx context.Context) (bool, error) {
	snapshots, err := o.host.Snapshots(ctx, o.guest)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(snapshots, func(s guest.Snapshot) bool { return s.Name == o.j.Snapshot }), nil
}

func (o *operation) dropSnapshot(ctx context.Context) error {
	there, err := o.snapshotThere(ctx)
	if err != nil || !there {
		return err
	}
	err = o.host.DeleteSnapshot(ctx, o.guest, o.j.Snapshot)
	if err == nil {
		return nil
	}
	if there, seen := o.snapshotThere(ctx); seen == nil && !there {
		return nil
	}
	return fmt.Errorf("cannot delete snapshot %s: %w", o.j.Snapshot, err)
}

// cloud is what cloud-init is given, as the record keeps it.
func (o *operation) cloud() preview.CloudInit {
	var c preview.CloudInit
	if o.j.Cloud != "" {
		_ = json.Unmarshal([]byte(o.j.Cloud), &c) // what this record wrote itself
	}
	return c
}

// configure gives the new system its boot setting and its cloud-init.
func (o *operation) configure() stage.Stage {
	return stage.Stage{
		Name: "configure",
		Do:   o.doConfigure,
		Undo: func(ctx context.Context) error {
			if o.j.Replace {
				return nil // it goes with the new VM
			}
			return o.edit(ctx, o.guest, func(c guest.Config) (map[string]string, []string) {
				set, remove := map[string]string{}, []string(nil)
				for _, key := range []string{"ciuser", "sshkeys"} {
					was, had := o.j.Config[key]
					switch now, has := c.Get(key); {
					case had && now != was:
						set[key] = was
					case !had && has:
						remove = append(remove, key)
					}
				}
				return set, remove
			})
		},
		Seen: func(context.Context) (stage.Effect, error) { return stage.Partly, nil },
	}
}

func (o *operation) doConfigure(ctx context.Context) error {
	ref, cloud := o.subject(), o.cloud()
	if err := o.edit(ctx, ref, func(c guest.Config) (map[string]string, []string) {
		set := map[string]string{}
		if now := c.Values["boot"]; o.j.Boot != "" && now != o.j.Boot {
			set["boot"] = o.j.Boot
		}
		if cloud.User != "" && c.Values["ciuser"] != cloud.User {
			set["ciuser"] = cloud.User
		}
		if keys := strings.ReplaceAll(url.QueryEscape(strings.Join(cloud.Keys, "\n")), "+", "%20"); len(cloud.Keys) > 0 && c.Values["sshkeys"] != keys {
			set["sshkeys"] = keys
		}
		for _, key := range o.j.Refs { // other guests' disks, which only a name leads to
			if _, there := c.Get(key); o.j.Replace && !there && guest.IsDiskKey(key) {
				if s, err := guest.ParseSlot(guest.KindVM, key, o.j.Config[key]); err == nil {
					set[key] = s.With(s.Source)
				}
			}
		}
		return set, nil
	}); err != nil {
		return fmt.Errorf("cannot set the boot order and cloud-init: %w", err)
	}
	if o.req.Password != "" {
		config, err := o.host.Config(ctx, ref)
		if err != nil {
			return err
		}
		if err := o.host.SetConfig(ctx, ref, map[string]string{"cipassword": o.req.Password}, nil, config.Digest); err != nil {
			return fmt.Errorf("cannot set the cloud-init password: %w", err)
		}
	}
	if cloud.Keep {
		return nil
	}
	config, err := o.host.Config(ctx, ref)
	if err != nil {
		return err
	}
	disks, _ := guest.Disks(config)
	if !slices.ContainsFunc(disks, func(d guest.Disk) bool { return d.CloudInit }) {
		return nil
	}
	if err := o.host.RegenerateCloudInit(ctx, ref); err != nil {
		return fmt.Errorf("cannot make the cloud-init drive anew: %w", err)
	}
	return nil
}

// startVM starts the new system if the old one ran, and asks the probe until it is healthy.
func (o *operation) startVM() stage.Stage {
	return stage.Stage{
		Name: "start",
		Do: func(ctx context.Context) error {
			if !o.j.Running {
				return nil
			}
			config, err := o.host.Config(ctx, o.subject())
			if err != nil {
				return err
			}
			if !o.ours(config, o.subject().VMID) {
				return takenError{ref: o.subject()}
			}
			if o.j.Replace {
				if running, _, err := o.host.Running(ctx, o.guest); err != nil || running {
					return errors.Join(fmt.Errorf("VM %d runs again: two machines with one identity", o.guest.VMID), err)
				}
			}
			running, _, err := o.host.Running(ctx, o.subject())
			if err != nil {
				return err
			}
			if !running {
				err = o.host.Start(ctx, o.subject())
				if now, _, seen := o.host.Running(ctx, o.subject()); err != nil && (seen != nil || !now) {
					return fmt.Errorf("VM %d does not start: %w", o.subject().VMID, err)
				}
			}
			return o.healthy(ctx)
		},
		Undo: o.stopNew,
		Seen: func(context.Context) (stage.Effect, error) { return stage.Partly, nil }, // running is not healthy
	}
}

// stopNew stops the new system: gently first, since kept disks are mounted in it.
func (o *operation) stopNew(ctx context.Context) error {
	if err := o.leaveHAAs(ctx, o.subject()); err != nil { // HA would start it again
		return err
	}
	running, _, err := o.host.Running(ctx, o.subject())
	if err != nil || !running {
		return err
	}
	limit := o.req.Stop.Timeout
	if limit <= 0 {
		limit = stopTime
	}
	if err := o.host.Shutdown(ctx, o.subject(), int(limit.Seconds())); err == nil {
		if running, _, err := o.host.Running(ctx, o.subject()); err != nil || !running {
			return err
		}
	}
	return o.halt(ctx, o.subject())
}

// awaitTrust ends the operation: the parking VM goes once it is seen to own nothing, the contract says what the VM is made
// from now, and the record waits for a verdict.
func (o *operation) awaitTrust() stage.Stage {
	return stage.Stage{
		Name: "await trust",
		Do: func(ctx context.Context) error {
			if !o.j.Replace {
				if err := o.removeSpare(ctx); err != nil {
					return err
				}
				if err := o.restoreOnboot(ctx); err != nil {
					return err
				}
				if err := o.returnToHA(ctx); err != nil {
					return err
				}
			}
			contract := o.contract()
			next := o.j
			next.State, next.Error = guest.JournalWaiting, ""
			next.Sequence, next.Updated = o.j.Sequence+1, o.c.now().Unix()
			err := o.editNotes(ctx, o.home(), func(n *guest.Notes) (bool, error) {
				if n.Journal == nil || n.Journal.Operation != o.j.Operation {
					return false, &lostError{winner: n.Journal}
				}
				if n.Journal.State == guest.JournalWaiting {
					return false, nil
				}
				n.Journal, n.Contract = &next, &contract
				return true, nil
			})
			if err == nil {
				o.j = next
			}
			return err
		},
		Undo: func(ctx context.Context) error {
			return o.editNotes(ctx, o.home(), func(n *guest.Notes) (bool, error) {
				if n.Contract == nil || n.Contract.Operation != o.j.Operation {
					return false, nil
				}
				n.Contract = o.formerContract()
				return true, nil
			})
		},
		Seen: func(ctx context.Context) (stage.Effect, error) {
			config, err := o.host.Config(ctx, o.home())
			if err != nil {
				return stage.Unclear, err
			}
			j := guest.NotesOf(o.home().VMID, config.Description()).Journal
			if j != nil && j.Operation == o.j.Operation && j.State == guest.JournalWaiting {
				o.j.State = guest.JournalWaiting
				return stage.Whole, nil
			}
			return stage.Partly, nil
		},
	}
}

// formerContract is the contract as it was before, as far as the record knows.
func (o *operation) formerContract() *guest.Contract {
	if o.j.Installed == nil {
		return nil
	}
	c := o.contract()
	c.Installed, c.Spent, c.Operation = *o.j.Installed, o.j.Spent, ""
	return &c
}

// removeSpare destroys the parking VM when it is ours and holds nothing.
func (o *operation) removeSpare(ctx context.Context) error {
	config, err := o.host.Config(ctx, o.parking)
	if err != nil {
		if guest.OutcomeOf(err) == guest.OutcomeMissing {
			return nil
		}
		return err
	}
	if !o.ours(config, o.parking.VMID) {
		o.warn("VM %d is not our parking guest any more and was left alone", o.parking.VMID)
		return nil
	}
	for _, p := range o.j.Parked { // what did not arrive must not go with it
		id, there, err := o.volumeSeen(ctx, config, o.parking, p.Key)
		switch {
		case err != nil:
			return err
		case there:
			return fmt.Errorf("VM %d still holds %s (%s)", o.parking.VMID, p.Key, id)
		case id != (guest.VolumeID{}):
			if err := o.dropDead(ctx, o.parking, p.Key, id); err != nil {
				return err
			}
		}
	}
	if err := o.halt(ctx, o.parking); err != nil {
		return err
	}
	return o.destroyParking(ctx)
}

// restoreOnboot gives the guest the onboot that it had before the stop.
func (o *operation) restoreOnboot(ctx context.Context) error {
	return o.edit(ctx, o.guest, func(c guest.Config) (map[string]string, []string) {
		if o.j.Config["onboot"] != "1" || c.Values["onboot"] == "1" {
			return nil, nil
		}
		return map[string]string{"onboot": "1"}, nil
	})
}

// forget takes the record out: the operation is over.
func (o *operation) forget() stage.Stage {
	return stage.Stage{Name: "settle", Do: func(ctx context.Context) error {
		err := o.editNotes(ctx, o.home(), func(n *guest.Notes) (bool, error) {
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
	}, Seen: func(context.Context) (stage.Effect, error) { return stage.Partly, nil }}
}

// deleteOurSnapshot deletes the snapshot of the kept disks at an accept.
func (o *operation) deleteOurSnapshot() stage.Stage {
	return stage.Stage{Name: "delete snapshot", Do: o.dropSnapshot, Seen: func(ctx context.Context) (stage.Effect, error) {
		there, err := o.snapshotThere(ctx)
		switch {
		case err != nil:
			return stage.Unclear, err
		case there:
			return stage.None, nil
		}
		return stage.Whole, nil
	}}
}

// deleteOld deletes an old system disk at an accept, by its volume id. One that an older snapshot of the user's still holds
// stays (hazard C12).
func (o *operation) deleteOld(i int) stage.Stage {
	d := o.j.Disks[i]
	return stage.Stage{
		Name: "delete old " + d.Key,
		Do: func(ctx context.Context) error {
			id, err := guest.ParseVolumeID(d.Was)
			if err != nil {
				return err
			}
			snapshots, err := o.host.Snapshots(ctx, o.guest)
			if err != nil {
				return err
			}
			for _, s := range snapshots {
				if names(s.Config, id) {
					o.warn("the old %s (%s) stays as an unused entry until snapshot %s is deleted", d.Key, d.Was, s.Name)
					return nil
				}
			}
			return o.dropVolume(ctx, id)
		},
		Seen: func(ctx context.Context) (stage.Effect, error) {
			config, err := o.host.Config(ctx, o.guest)
			if err != nil {
				return stage.Unclear, err
			}
			if namesText(config, d.Was) {
				return stage.None, nil
			}
			return stage.Partly, nil
		},
	}
}
