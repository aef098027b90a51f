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
)

// kindModify names a change of a container that is there. It has no record: each of its requests leaves a container that the
// next plan understands, and what is left to do is what that plan shows.
const kindModify = "modify"

// modification is such a change at work.
type modification struct {
	*operation
	work   preview.Work
	was    guest.Contract    // as it was before
	before map[string]string // the configuration before, with its environment
	made   []guest.NewVolume // what is there by now of what it makes
	erased map[string]bool   // keys whose volumes are gone by now
}

// modify makes every change that the container can take where it is: one request for its keys and its contract, one for each
// volume, and a restart where something waits for one.
func (i *Instance) modify(ctx context.Context, d due) (Result, error) {
	c := i.container()
	o := &operation{
		c: c, host: c.Host, archives: c.archives, req: d.req, runner: c.random(), guest: d.seen.Ref, login: d.facts.Login, preview: d.judged,
		j: guest.Journal{
			Operation: guest.NewOperationID(d.seen.Ref.VMID, c.now().UTC().Format("20060102"), c.random()[:4]), Kind: kindModify, Guest: d.seen.Ref.VMID,
			Node: d.seen.Ref.Node, Running: d.seen.Running, Config: kept(d.seen.Config), Installed: installedNow(d.seen, d.req.Installed),
		},
	}
	m := &modification{operation: o, work: preview.InstanceWork(d.facts, d.req.Want), was: *d.seen.Contract, before: d.seen.Config.Values, erased: map[string]bool{}}
	o.j.App = &guest.Deployment{Next: *m.was.App, Set: m.work.Set, Start: d.req.Want.Instance.Started}
	err := m.run(guest.WithPatience(ctx, lockBefore), d.seen.Config)
	r := d.untouched()
	r.Operation, r.Changed, r.Warnings = o.j.Operation, o.started, o.warnings
	if now, seen := i.look(context.WithoutCancel(ctx), i.Host, d.seen.Ref.VMID); seen == nil {
		r.Acknowledged = now.Acknowledged
	}
	if err == nil {
		return r, nil
	}
	detail := sentence(err) + " What was changed stays; the next plan shows what is left. Plan again."
	if !o.started {
		detail = sentence(err) + " Nothing was touched. Plan again."
	}
	summary := title(d.seen) + ": not everything was changed"
	if undone := (takenBackError{}); errors.As(err, &undone) {
		summary, detail = title(d.seen)+": it was not healthy with its new settings", sentence(err)+" "+undone.text+" Correct the cause and apply again."
	}
	return r, &Failure{Summary: summary, Detail: detail, cause: err}
}

func (m *modification) run(ctx context.Context, config guest.Config) error {
	if err := m.setKeys(ctx, config); err != nil {
		return err
	}
	for _, v := range m.work.Make {
		if err := m.add(ctx, v); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m.work.Grow)) {
		m.started = true
		if err := m.c.growTo(ctx, m.guest, key, m.work.Grow[key]); err != nil {
			return err
		}
	}
	if m.work.Pool != nil && *m.work.Pool != "" {
		m.started, m.j.Pool = true, *m.work.Pool
		if err := m.rejoinPool(ctx); err != nil {
			return err
		}
	}
	if err := m.power(ctx); err != nil {
		return err
	}
	return m.remember(ctx, m.contractNow())
}

// contractNow is the contract with what this change sets.
func (m *modification) contractNow() guest.Contract {
	contract, app, want := m.was, *m.was.App, *m.req.Want.Instance
	if want.Image.Reference != "" && want.Image.Digest == app.Digest {
		app.Image = want.Image.Reference
	}
	app.Set, app.Volumes = settingNames(want), volumesOf(guest.Config{Values: m.before}, want, m.made)
	app.Keys = maps.Clone(app.Keys)
	for _, v := range m.made {
		app.Keys[v.Key] = v.Value
	}
	for path, key := range m.was.App.Volumes { // one that is to go stays known until it is gone
		if slices.Contains(m.work.Erase, key) && !m.erased[key] {
			app.Volumes[path] = key
		}
	}
	maps.DeleteFunc(app.Keys, func(key, _ string) bool { return m.erased[key] })
	if m.writesEnvironment() {
		app.Own, app.EnvVersion = ownNames(want), want.EnvVersion
		app.Before = &guest.Generation{ID: m.was.Instance, Image: m.was.Installed.Template}
		contract.Instance, contract.Operation = m.j.Operation, m.j.Operation
	}
	contract.App, contract.At = &app, m.c.now().Unix()
	contract.Spent = maps.Clone(m.was.Spent)
	for key := range m.erased {
		if id, ok := m.req.Want.Erase[key]; ok && id != "*" {
			if contract.Spent == nil {
				contract.Spent = map[string]string{}
			}
			contract.Spent[key] = id
		}
	}
	return contract
}

// writesEnvironment reports whether the environment is written: with it goes the contract's id, which a rollback to a
// snapshot brings back (hazard C7).
func (m *modification) writesEnvironment() bool {
	_, entrypoint := m.work.Set["entrypoint"]
	return m.work.Environment != nil || entrypoint || slices.Contains(m.work.Delete, "entrypoint")
}

// setKeys sets and removes keys and writes the contract, by one request that is bound to the container as it was judged.
func (m *modification) setKeys(ctx context.Context, config guest.Config) error {
	set, remove := map[string]string{}, slices.Clone(m.work.Delete)
	for key, value := range m.work.Set {
		if value == "" {
			remove = append(remove, key)
			continue
		}
		set[key] = value
	}
	if m.writesEnvironment() {
		all := maps.Clone(m.work.Environment)
		if all == nil {
			all = guest.ReadEnvironment(m.before["env"])
		}
		all[guest.ContractVariable] = m.j.Operation
		set["env"] = guest.WriteEnvironment(all)
	}
	remove = slices.DeleteFunc(remove, func(key string) bool { _, there := config.Get(key); return !there })
	contract := m.contractNow()
	text := m.notes(config, contract)
	if n := guest.Length(text); n > guest.NotesLimit {
		return fmt.Errorf("cannot write the contract into notes: %d characters, Proxmox takes %d", n, guest.NotesLimit)
	}
	set["description"] = text
	m.started = true
	err := m.host.SetConfig(ctx, m.guest, set, remove, config.Digest)
	if err == nil {
		return nil
	}
	if guest.OutcomeOf(err) == guest.OutcomeUnknown {
		now, seen := m.host.Config(ctx, m.guest)
		if c := guest.NotesOf(m.guest.VMID, now.Description()).Contract; seen == nil && c != nil && c.At == contract.At && c.Instance == contract.Instance {
			return nil // it arrived after all
		}
	}
	m.started = !guest.OutcomeOf(err).Harmless()
	return fmt.Errorf("cannot change the configuration: %w", err)
}

func (m *modification) notes(config guest.Config, contract guest.Contract) string {
	notes := guest.NotesOf(m.guest.VMID, config.Description()).WithContract(&contract)
	if m.work.Notes != nil {
		notes.User = *m.work.Notes
	}
	return notes.String()
}

// add makes a volume, and the contract knows it from the same request on: what is recorded is there.
func (m *modification) add(ctx context.Context, v guest.NewVolume) error {
	m.started, m.made = true, append(m.made, v)
	contract := m.contractNow()
	if err := m.edit(ctx, m.guest, func(c guest.Config) (map[string]string, []string) {
		if _, there := c.Get(v.Key); there {
			return nil, nil
		}
		return map[string]string{v.Key: v.Value, "description": m.notes(c, contract)}, nil
	}); err != nil {
		return fmt.Errorf("cannot make a volume for %s: %w", v.Path, err)
	}
	return nil
}

// power restarts, starts or stops the container, and asks whether it is healthy when it was started.
func (m *modification) power(ctx context.Context) error {
	running, _, err := m.host.Running(ctx, m.guest)
	if err != nil {
		return err
	}
	if running && (m.work.Restart || m.work.Stop || len(m.work.Erase) > 0) {
		m.started = true
		if err := m.shutDown(ctx); err != nil {
			return err
		}
	}
	if err := m.eraseVolumes(ctx); err != nil {
		return err
	}
	starts := m.work.Start || running && m.work.Restart || running && len(m.work.Erase) > 0
	if m.work.Stop || !starts {
		return nil
	}
	m.started = true
	err = m.startIt(ctx)
	if err == nil {
		err = m.healthy(ctx)
	}
	if unhealthy := (unhealthyError{}); errors.As(m.ailing(err), &unhealthy) {
		return m.takeBack(ctx, err)
	}
	return err
}

// eraseVolumes removes the volumes whose paths are configured no longer, with consent: the key first, then its volume.
func (m *modification) eraseVolumes(ctx context.Context) error {
	for _, key := range m.work.Erase {
		id, err := volumeAt(guest.Config{Values: m.before}, key)
		if err != nil {
			return err
		}
		m.started, m.erased[key] = true, true
		contract := m.contractNow()
		if err := m.edit(ctx, m.guest, func(c guest.Config) (map[string]string, []string) {
			if now, err := volumeAt(c, key); err != nil || now != id {
				return nil, nil
			}
			return map[string]string{"description": m.notes(c, contract)}, []string{key}
		}); err != nil {
			return fmt.Errorf("cannot take %s away: %w", key, err)
		}
		config, err := m.host.Config(ctx, m.guest)
		if err != nil {
			return err
		}
		for _, n := range guest.Volumes(m.guest.Kind, config) {
			if !strings.HasPrefix(n.Key, "unused") || n.ID != id {
				continue
			}
			if err := m.host.DropUnused(ctx, m.guest, n.Key, id, config.Digest); err != nil {
				return fmt.Errorf("cannot erase %s (%s): %w", key, id, err)
			}
		}
	}
	return nil
}

// takenBackError says that an unhealthy change was taken back as far as that goes.
type takenBackError struct {
	error
	text string
}

func (e takenBackError) Unwrap() error { return e.error }

// takeBack returns environment and entrypoint, after a restart with new ones that was not healthy, and restarts once more.
func (m *modification) takeBack(ctx context.Context, why error) error {
	if !m.writesEnvironment() {
		return fmt.Errorf("it is not healthy after the restart: %w", why)
	}
	if err := m.halt(ctx, m.guest); err != nil {
		return errors.Join(why, err)
	}
	if err := m.edit(ctx, m.guest, func(c guest.Config) (map[string]string, []string) {
		set, remove := map[string]string{}, []string(nil)
		for _, key := range []string{"env", "entrypoint"} {
			was, had := m.before[key]
			switch now, has := c.Get(key); {
			case had && now != was:
				set[key] = was
			case !had && has:
				remove = append(remove, key)
			}
		}
		return set, remove
	}); err != nil {
		return errors.Join(why, fmt.Errorf("cannot set the environment back: %w", err))
	}
	contract, app := m.contractNow(), *m.was.App
	app.Set, app.Volumes, app.Image = contract.App.Set, contract.App.Volumes, contract.App.Image
	contract.Instance, contract.Operation, contract.App = m.was.Instance, m.was.Operation, &app
	if err := m.remember(ctx, contract); err != nil {
		return errors.Join(why, err)
	}
	done := takenBackError{error: why, text: "Environment and entrypoint are as they were before, and it was started again."}
	if err := m.startIt(ctx); err != nil {
		done.text = "Environment and entrypoint are as they were before; it does not start: " + sentence(err)
	}
	return done
}

// remember writes the contract with the configuration as it is now, as Proxmox wrote it.
func (m *modification) remember(ctx context.Context, contract guest.Contract) error {
	config, err := m.host.Config(ctx, m.guest)
	if err != nil {
		return err
	}
	app := *contract.App
	app.Keys, app.Raw = preview.ContractKeys(config), m.was.App.Raw
	contract.App = &app
	if err := m.editNotes(ctx, m.guest, func(n *guest.Notes) (bool, error) {
		if n.Contract != nil && n.Contract.Instance == contract.Instance && n.Contract.App != nil && maps.Equal(n.Contract.App.Keys, app.Keys) {
			return false, nil
		}
		n.Contract = &contract
		return true, nil
	}); err != nil {
		return fmt.Errorf("cannot write the contract: %w", err)
	}
	return nil
}

// adopt records a container as it is, by one request that changes nothing but its notes. It stays stopped, if it is.
func (i *Instance) adopt(ctx context.Context, d due) (Result, error) {
	c := i.container()
	o := &operation{c: c, host: c.Host, req: d.req, guest: d.seen.Ref, login: d.facts.Login}
	contract := preview.AdoptedContract(d.facts, d.req.Want)
	contract.At = c.now().Unix()
	r := d.untouched()
	r.Changed = true
	err := o.editNotes(ctx, d.seen.Ref, func(n *guest.Notes) (bool, error) {
		if n.Journal != nil {
			return false, &lostError{winner: n.Journal}
		}
		if n.Contract != nil && n.Contract.Instance == contract.Instance && n.Contract.At == contract.At {
			return false, nil
		}
		n.Contract = &contract
		return true, nil
	})
	if err != nil {
		return r, &Failure{Summary: title(d.seen) + ": not adopted", Detail: sentence(err) + " Nothing else was touched. Apply again.", cause: err}
	}
	r.Installed = &contract.Installed
	if now, seen := i.look(context.WithoutCancel(ctx), i.Host, d.seen.Ref.VMID); seen == nil {
		r.Acknowledged = now.Acknowledged
	}
	return r, nil
}
