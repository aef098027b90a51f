package recipe

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
)

// aim is the configuration that the guest shall have in the end: as it was, and of an application container with what the
// configuration sets over that. On the way back it is as it was.
func (o *operation) aim() map[string]string {
	if o.j.App == nil || o.j.App.Back {
		return o.j.Config
	}
	return merged(o.j)
}

// merged is what a record says of an application container, with what the configuration sets over it.
func merged(j guest.Journal) map[string]string { return overlaid(j.Config, j.App.Set) }

// overlaid is a configuration with settings over it; a setting without a value removes its key. Of a network, what only the
// container knows stays: its MAC, its type, who manages it.
func overlaid(config, set map[string]string) map[string]string {
	out := maps.Clone(config)
	if out == nil {
		out = map[string]string{}
	}
	for key, value := range set {
		switch {
		case beside(key):
		case value == "":
			delete(out, key)
		default:
			out[key] = overNetwork(key, config[key], value)
		}
	}
	return out
}

// overNetwork is a setting over what is there; of a network, what only the container knows stays.
func overNetwork(key, have, want string) string {
	if name, _, indexed := guest.SplitKey(key); name != "net" || !indexed {
		return want
	}
	n, err := guest.ParseNetwork(key, want)
	if err != nil {
		return want
	}
	was, err := guest.ParseNetwork(key, have)
	if err != nil {
		return want
	}
	for _, option := range []string{"name", "hwaddr", "type", "host-managed"} {
		if _, set := n.Options[option]; !set && was.Options[option] != "" {
			n.Options[option] = was.Options[option]
		}
	}
	return n.String()
}

// beside reports whether a setting is no key that a container is made with: the user's text lives in the notes, the pool
// beside the configuration, and protection would keep us from taking back what we made.
func beside(key string) bool { return key == "description" || key == "pool" || key == "protection" }

// runsInTheEnd reports whether the guest is started at the end.
func (o *operation) runsInTheEnd() bool {
	if o.j.App == nil || o.j.App.Back {
		return o.j.Running
	}
	return o.j.App.Start
}

// newVolumes are the volumes that an operation makes, on the way forward.
func (o *operation) newVolumes() []guest.NewVolume {
	if o.j.App == nil || o.j.App.Back {
		return nil
	}
	return o.j.App.New
}

// madeHere reports whether this operation made a volume that a guest names: it goes with the guest.
func (o *operation) madeHere(n guest.Named) bool {
	if o.j.App == nil {
		return false
	}
	return slices.ContainsFunc(o.j.App.New, func(v guest.NewVolume) bool {
		return v.Key == n.Key && (v.Now == "" || v.Now == n.ID.String())
	})
}

// mountAimed is how a volume that was set aside shall be mounted in the end.
func (o *operation) mountAimed(p guest.ParkedVolume) string {
	if o.j.App == nil || o.j.App.Back {
		return p.Value
	}
	options, changed := o.j.App.Mounts[p.Key]
	if !changed {
		return p.Value
	}
	source, _, _ := strings.Cut(p.Value, ",")
	return source + "," + options
}

// changeApp returns the record with another deployment; the one in memory stays as it was written.
func (o *operation) changeApp(change func(*guest.Deployment)) guest.Journal {
	next, app := o.j, *o.j.App
	app.New = slices.Clone(app.New)
	change(&app)
	next.App = &app
	return next
}

// made is the application that the guest is made of when the operation ends.
func (o *operation) made() guest.Application {
	if o.j.App.Back && o.j.App.Was != nil {
		return *o.j.App.Was
	}
	return o.j.App.Next
}

// carriedApp makes the parameters of a create those of an application container: its environment, its entrypoint and its
// console come from the image, and ours are set after it (hazards B8, C8).
func (o *operation) carriedApp(params map[string]string) {
	app := o.made()
	params["ostemplate"], params["ostype"], params["arch"], params["unprivileged"] = app.Archive, "unmanaged", app.Arch, "1"
}

// recordedWant is what the record says was wanted, for the looks that come after the plan: no configuration is needed for
// them. What was judged once, and has been set aside since, is not in it.
func (o *operation) recordedWant() preview.Want {
	next := o.j.App.Next
	want := o.req.Want
	want.VMID, want.Name = o.guest.VMID, guest.Config{Values: o.j.Config}.Hostname(o.guest.VMID)
	want.Triggers, want.Erase, want.Drop, want.Allow = o.j.Wanted.Triggers, o.j.Erase, o.j.Drop, o.j.Allow
	want.Rootfs = preview.Rootfs{Storage: o.j.Storage, Size: o.j.Size}
	archive, _ := guest.ParseVolumeID(next.Archive)
	want.Instance = &preview.InstanceWant{
		Node: o.guest.Node, ArchiveStorage: archive.Storage, Image: imageOf(next, o.j.Wanted), Started: o.j.App.Start, Hold: o.j.App.Hold,
		EnvVersion: next.EnvVersion, Entrypoint: o.j.App.Entrypoint,
	}
	return want
}

// imageOf is the image of a recorded application.
func imageOf(app guest.Application, install guest.Install) preview.Image {
	repository, _, _ := strings.Cut(install.Template, "@")
	archive, _ := guest.ParseVolumeID(app.Archive)
	return preview.Image{
		Reference: app.Image, Repository: repository, Digest: app.Digest, Manifest: app.Manifest, Arch: app.Arch,
		Archive: strings.TrimPrefix(archive.Name, "vztmpl/"),
	}
}

// judge judges what an operation does once more, from facts that were read again.
func (o *operation) judge(facts preview.Facts, want preview.Want) preview.Preview {
	switch {
	case o.j.Kind == kindRemove:
		return preview.InstanceRemoval(facts, want)
	case o.j.App != nil:
		return preview.Instance(facts, want)
	}
	return preview.Container(facts, want)
}

// unhealthyError says that the application itself is what does not work: Proxmox did all that it was asked for.
type unhealthyError struct{ error }

func (e unhealthyError) Unwrap() error { return e.error }

// ailing tells an application that does not start or is not healthy from a Proxmox that cannot be asked.
func (o *operation) ailing(err error) error {
	if err == nil || o.j.App == nil {
		return err
	}
	said := interface{ Outcome() guest.Outcome }(nil)
	if errors.As(err, &said) && said.Outcome() != guest.OutcomeFailed {
		return err
	}
	return unhealthyError{err}
}
