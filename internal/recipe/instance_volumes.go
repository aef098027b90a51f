package recipe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/stage"
)

// deploy are the stages between a create and what follows it that only application containers have.
func (o *operation) deploy() []stage.Stage {
	if o.j.App == nil {
		return nil
	}
	var stages []stage.Stage
	if d := o.j.App; !d.Back && len(d.New)+len(d.Mounts)+len(d.Grow) > 0 {
		stages = append(stages, o.makeVolumes())
	}
	return append(stages, o.configureApp())
}

// makeVolumes makes the volumes that are new, mounts the others as they shall be mounted from now on, and grows them, all
// before the first start.
func (o *operation) makeVolumes() stage.Stage {
	return stage.Stage{
		Name: "make volumes",
		Do: func(ctx context.Context) error {
			if err := o.stillOurs(ctx); err != nil {
				return err
			}
			if err := o.halt(ctx, o.guest); err != nil { // somebody started it: it would run without them
				return err
			}
			for n := range o.j.App.New {
				if err := o.makeVolume(ctx, n); err != nil {
					return err
				}
			}
			for _, key := range slices.Sorted(maps.Keys(o.j.App.Mounts)) {
				if err := o.remount(ctx, key, o.j.App.Mounts[key]); err != nil {
					return err
				}
			}
			for _, key := range slices.Sorted(maps.Keys(o.j.App.Grow)) {
				if err := o.c.growTo(ctx, o.guest, key, o.j.App.Grow[key]); err != nil {
					return err
				}
			}
			return nil
		},
		Seen: func(ctx context.Context) (stage.Effect, error) {
			return stage.Partly, nil // each is looked at by Do
		},
	}
}

// makeVolume makes one volume: one key a request, since Proxmox would leave what it had allocated for another one.
func (o *operation) makeVolume(ctx context.Context, n int) error {
	v := o.j.App.New[n]
	want, err := guest.ParseMount(v.Key, v.Value)
	if err != nil {
		return err
	}
	if err := o.edit(ctx, o.guest, func(c guest.Config) (map[string]string, []string) {
		if _, there := c.Get(v.Key); there {
			return nil, nil
		}
		return map[string]string{v.Key: v.Value}, nil
	}); err != nil {
		return fmt.Errorf("cannot make a volume for %s: %w", v.Path, err)
	}
	config, err := o.host.Config(ctx, o.guest)
	if err != nil {
		return err
	}
	have, err := guest.ParseMount(v.Key, config.Values[v.Key])
	if err != nil || !have.SameOptions(want) {
		return errors.Join(fmt.Errorf("%s of CT %d is %q and was to be %q", v.Key, o.guest.VMID, config.Values[v.Key], v.Value), err)
	}
	if have.Source == v.Now {
		return nil
	}
	return o.save(ctx, o.changeApp(func(d *guest.Deployment) { d.New[n].Now = have.Source }))
}

// remount changes the options of a mount whose volume stays.
func (o *operation) remount(ctx context.Context, key, options string) error {
	if err := o.edit(ctx, o.guest, func(c guest.Config) (map[string]string, []string) {
		value, change := remounted(key, c.Values[key], options)
		if !change {
			return nil, nil
		}
		return map[string]string{key: value}, nil
	}); err != nil {
		return fmt.Errorf("cannot change how %s is mounted: %w", key, err)
	}
	return nil
}

// remounted is a mount with other options and the same volume; change is false when that is how it is mounted.
func remounted(key, value, options string) (now string, change bool) {
	have, err := guest.ParseMount(key, value)
	if err != nil {
		return "", false
	}
	want, err := guest.ParseMount(key, have.Source+","+options)
	if err != nil || have.SameOptions(want) {
		return "", false
	}
	return want.WithoutSize(), true
}

// growTo grows a volume to a size, when it is smaller. Its size is what its storage says.
func (c *Container) growTo(ctx context.Context, ref guest.Ref, key string, size guest.Bytes) error {
	now, err := c.volumeSize(ctx, ref, key)
	if err != nil || now >= size {
		return err
	}
	err = c.Host.Resize(ctx, ref, key, size)
	if err == nil {
		return nil
	}
	if now, seen := c.volumeSize(ctx, ref, key); seen == nil && now >= size {
		return nil
	}
	return fmt.Errorf("cannot grow %s to %s: %w", key, size.GiB(), err)
}

func (c *Container) volumeSize(ctx context.Context, ref guest.Ref, key string) (guest.Bytes, error) {
	config, err := c.Host.Config(ctx, ref)
	if err != nil {
		return 0, err
	}
	id, err := volumeAt(config, key)
	if err != nil {
		return 0, err
	}
	rows, err := c.Host.Content(ctx, ref.Node, id.Storage, ref.VMID)
	if err != nil {
		return 0, fmt.Errorf("cannot list storage %s: %w", id.Storage, err)
	}
	for _, row := range rows {
		if row.ID == id {
			return row.Size, nil
		}
	}
	return 0, fmt.Errorf("%s (%s) is not on its storage", key, id)
}

// lastKeys sets what comes last, protection, and reads the guest as the contract will describe it.
func (o *operation) lastKeys(ctx context.Context, config guest.Config) (guest.Config, error) {
	if o.j.App == nil {
		return config, nil
	}
	if want := o.j.App.Set["protection"]; want == "1" && !o.j.App.Back && config.Values["protection"] != "1" {
		if err := o.edit(ctx, o.guest, func(c guest.Config) (map[string]string, []string) {
			if c.Values["protection"] == want {
				return nil, nil
			}
			return map[string]string{"protection": want}, nil
		}); err != nil {
			return config, fmt.Errorf("cannot protect CT %d: %w", o.guest.VMID, err)
		}
	}
	return o.host.Config(ctx, o.guest)
}

// describe puts into a contract what an application container was made from and how the operation left it.
func (o *operation) describe(contract *guest.Contract, config guest.Config) {
	if o.j.App == nil {
		return
	}
	app := o.made()
	app.Keys, app.Raw = preview.ContractKeys(config), config.Raw
	contract.App = &app
}

// retell makes the notes' text for people the configured one.
func (o *operation) retell(n *guest.Notes) {
	if o.j.App == nil || o.j.App.Back {
		return
	}
	if text, set := o.j.App.Set["description"]; set {
		n.User = text
	}
}
