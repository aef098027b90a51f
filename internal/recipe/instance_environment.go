package recipe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/stage"
)

// The environment of an application container holds secrets, so it is in no record. While an update is under way it waits in
// the parking guest's own environment: the new one, a mark, and the old guest's. A resume finds both there, without state and
// without configuration.

// envMark divides them.
const envMark = "PVRX_BEFORE="

// mark is the item that divides the two environments of this operation.
func (o *operation) mark() string { return envMark + o.j.Operation }

// split takes the parking guest's environment apart; ok is false when it does not hold both.
func (o *operation) split(env string) (next, old string, ok bool) {
	next, old, ok = strings.Cut("\x00"+env+"\x00", "\x00"+o.mark()+"\x00")
	return strings.Trim(next, "\x00"), strings.Trim(old, "\x00"), ok
}

// ownEnvironment is what the configuration sets. It is in no record: a resume that still needs it must be given it again.
func (o *operation) ownEnvironment() (map[string]string, error) {
	var given map[string]string
	if o.req.Want.Instance != nil {
		given = o.req.Want.Instance.Environment
	}
	for _, name := range o.j.App.Next.Own {
		if _, there := given[name]; !there {
			return nil, fmt.Errorf("the environment must be given again: %s is in no record, since it may be secret", guest.Printable(name))
		}
	}
	own := map[string]string{}
	for _, name := range o.j.App.Next.Own {
		own[name] = given[name]
	}
	return own, nil
}

// laidOver is the image's environment as a create wrote it, with ours over it and the contract's id (hazards C7, C8).
func (o *operation) laidOver(image string) (string, error) {
	own, err := o.ownEnvironment()
	if err != nil {
		return "", err
	}
	all := guest.ReadEnvironment(image)
	maps.Copy(all, own)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch why := guest.UnkeptVariable(name, all[name]); {
		case why == "":
		case guest.UnkeptVariable(name, "") != "": // a create takes it, a change does not
			delete(all, name)
			o.warn("the image's variable %s is left out: %s", name, why)
		default:
			return "", fmt.Errorf("the image's variable %s cannot be kept: %s; set it to another value in environment", guest.Printable(name), why)
		}
	}
	all[guest.ContractVariable] = o.j.Operation
	return guest.WriteEnvironment(all), nil
}

// ourEnvironment reports whether an environment was written by this operation.
func (o *operation) ourEnvironment(env string) bool {
	return guest.ReadEnvironment(env)[guest.ContractVariable] == o.j.Operation
}

// learn records what came with the image, before ours goes over it: names, never values.
func (o *operation) learn(ctx context.Context, made guest.Config) error {
	theirs := slices.Sorted(maps.Keys(guest.ReadEnvironment(made.Values["env"])))
	theirs = slices.DeleteFunc(theirs, func(name string) bool { return guest.UnkeptVariable(name, "") != "" }) // see laidOver
	return o.save(ctx, o.changeApp(func(d *guest.Deployment) {
		d.Next.Theirs = theirs
		d.Next.Entrypoint = made.Values["entrypoint"]
	}))
}

// giveEnvironment lays our environment over the image's on a guest that was just made, and sets the entrypoint; what came
// with the image is learned first.
func (o *operation) giveEnvironment(ctx context.Context, ref guest.Ref) error {
	config, err := o.host.Config(ctx, ref)
	if err != nil {
		return err
	}
	if o.ourEnvironment(config.Values["env"]) {
		return nil
	}
	env, err := o.laidOver(config.Values["env"])
	if err != nil {
		return err
	}
	if err := o.learn(ctx, config); err != nil {
		return err
	}
	return o.setEnvironment(ctx, ref, env, o.j.App.Entrypoint)
}

// setEnvironment sets environment and entrypoint by one request and reads them back. An entrypoint of "" leaves what is there.
func (o *operation) setEnvironment(ctx context.Context, ref guest.Ref, env, entrypoint string) error {
	if err := o.edit(ctx, ref, func(c guest.Config) (map[string]string, []string) {
		if sameEnvironment(c, env, entrypoint) {
			return nil, nil
		}
		set, remove := map[string]string{}, []string(nil)
		if entrypoint != "" {
			set["entrypoint"] = entrypoint
		}
		if set["env"] = env; env == "" {
			delete(set, "env")
			remove = append(remove, "env")
		}
		return set, remove
	}); err != nil {
		return fmt.Errorf("cannot set the environment of CT %d: %w", ref.VMID, err)
	}
	config, err := o.host.Config(ctx, ref)
	if err != nil {
		return err
	}
	if !sameEnvironment(config, env, entrypoint) {
		return fmt.Errorf("the environment or the entrypoint of CT %d was set and is another one when it is read back", ref.VMID)
	}
	return nil
}

func sameEnvironment(c guest.Config, env, entrypoint string) bool {
	return maps.Equal(guest.ReadEnvironment(c.Values["env"]), guest.ReadEnvironment(env)) && (entrypoint == "" || c.Values["entrypoint"] == entrypoint)
}

// rehearseEnvironment gives the parking guest the environment that the new guest will have: the start that follows proves it.
func (o *operation) rehearseEnvironment(ctx context.Context) error {
	if o.j.App == nil {
		return nil
	}
	old, err := o.host.Config(ctx, o.guest)
	if err != nil {
		return err
	}
	if err := o.readable(old); err != nil {
		return err
	}
	if err := o.giveEnvironment(ctx, o.parking); err != nil {
		return fmt.Errorf("rehearsal: %w", err)
	}
	return nil
}

// storeEnvironment keeps the old guest's environment on the parking guest, behind the new one.
func (o *operation) storeEnvironment(ctx context.Context) error {
	if o.j.App == nil {
		return nil
	}
	config, err := o.host.Config(ctx, o.parking)
	if err != nil {
		return err
	}
	if _, _, stored := o.split(config.Values["env"]); stored {
		return nil
	}
	old, err := o.host.Config(ctx, o.guest)
	if err != nil {
		return err
	}
	if err := o.readable(old); err != nil {
		return err
	}
	both := strings.TrimSuffix(config.Values["env"]+"\x00"+o.mark()+"\x00"+old.Values["env"], "\x00")
	if err := o.edit(ctx, o.parking, func(c guest.Config) (map[string]string, []string) {
		if c.Values["env"] == both {
			return nil, nil
		}
		return map[string]string{"env": both}, nil
	}); err != nil {
		return fmt.Errorf("cannot keep the environment on parking guest CT %d: %w", o.parking.VMID, err)
	}
	return nil
}

// readable refuses an environment that this login may not see: taken for empty it would be lost.
func (o *operation) readable(old guest.Config) error {
	env, was := old.Values["env"], o.j.App.Was
	if hidden := env != "" && !strings.Contains(env, "="); hidden || env == "" && was != nil && len(was.Own)+len(was.Theirs) > 0 {
		return fmt.Errorf("the environment of CT %d cannot be read (VM.Config.Options on %s): it would be lost", o.guest.VMID, vmPath(o.guest.VMID))
	}
	for name, value := range guest.ReadEnvironment(env) {
		if why := guest.UnkeptVariable(name, value); why != "" && !o.j.App.Hold {
			return fmt.Errorf("the variable %s of CT %d could not be given back, should the update go back: %s; set it to another value first", guest.Printable(name), o.guest.VMID, why)
		}
	}
	return nil
}

// storedEnvironment proves that the parking guest holds both environments.
func (o *operation) storedEnvironment(parking guest.Config) error {
	if o.j.App == nil {
		return nil
	}
	if next, _, ok := o.split(parking.Values["env"]); !ok || !o.ourEnvironment(next) {
		return fmt.Errorf("parking guest CT %d does not hold the environment of the new guest and of the old one", o.parking.VMID)
	}
	return nil
}

// sameKeys refuses a container of which somebody changed a setting since the operation began: the new one would not have it.
// What the operation changed itself, and what is compared elsewhere, does not count.
func (o *operation) sameKeys(config guest.Config) error {
	if o.j.App == nil || o.j.Kind == kindRemove {
		return nil
	}
	was, now := preview.ContractKeys(guest.Config{Values: o.j.Config}), preview.ContractKeys(config)
	for _, keys := range []map[string]string{was, now} {
		maps.DeleteFunc(keys, func(key, _ string) bool {
			_, err := guest.ParseMount(key, keys[key])
			return err == nil || key == "onboot"
		})
	}
	for key := range was {
		if was[key] != now[key] {
			return fmt.Errorf("%s was %q when the operation began and is %q", key, was[key], now[key])
		}
	}
	for key := range now {
		if _, had := was[key]; !had {
			return fmt.Errorf("%s (%s) was set after the operation began", key, now[key])
		}
	}
	return nil
}

// configureApp gives the new guest its environment and its entrypoint, before its first start.
func (o *operation) configureApp() stage.Stage {
	return stage.Stage{
		Name: "configure",
		Do: func(ctx context.Context) error {
			if err := o.stillOurs(ctx); err != nil {
				return err
			}
			if err := o.halt(ctx, o.guest); err != nil { // what is set on a running guest only waits
				return err
			}
			if o.j.Kind == kindInstall {
				return o.giveEnvironment(ctx, o.guest)
			}
			env, entrypoint, err := o.environmentAimed(ctx)
			if err != nil {
				return err
			}
			return o.setEnvironment(ctx, o.guest, env, entrypoint)
		},
		Seen: func(ctx context.Context) (stage.Effect, error) {
			config, err := o.host.Config(ctx, o.guest)
			switch {
			case err != nil:
				return stage.Unclear, err
			case o.ourEnvironment(config.Values["env"]):
				return stage.Whole, nil // one request sets both
			}
			return stage.Partly, nil
		},
	}
}

// environmentAimed is what waits on the parking guest for the guest: the new environment, or on the way back the old one,
// with the id of the contract that will be written.
func (o *operation) environmentAimed(ctx context.Context) (env, entrypoint string, err error) {
	config, err := o.host.Config(ctx, o.parking)
	if err != nil {
		return "", "", fmt.Errorf("cannot read the environment kept on parking guest CT %d: %w", o.parking.VMID, err)
	}
	next, old, ok := o.split(config.Values["env"])
	if !ok {
		return "", "", o.storedEnvironment(config)
	}
	if !o.j.App.Back {
		return next, o.j.App.Entrypoint, nil
	}
	all := guest.ReadEnvironment(old)
	all[guest.ContractVariable] = o.j.Operation
	return guest.WriteEnvironment(all), o.j.Config["entrypoint"], nil
}

var errNoArchives = errors.New("internal error: nobody brings images to storages")
