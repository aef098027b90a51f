package preview

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// showInstance is what people read of an application container.
func showInstance(p Preview) string {
	var b strings.Builder
	for _, c := range p.Changes {
		fmt.Fprintf(&b, "change: %s: %s → %s (%s)\n", c.What, c.From, c.To, c.Takes)
	}
	return show(p) + b.String()
}

// instanceScenes are scenes of application containers for TestTexts.
func instanceScenes(add func(file, scene, text string)) {
	for _, r := range instanceReasons() {
		f, w := vaultUpdate()
		r.make(&f, &w)
		judge, what := Instance, ""
		if r.removal {
			judge, what = InstanceRemoval, " (removal)"
		}
		var text strings.Builder
		p := judge(f, w)
		for _, b := range p.Blockers {
			text.WriteString(b.Title + " [" + b.Attribute + "]\n    " + b.Text() + "\n")
		}
		add("instance_blockers", r.code.String()+": "+r.name+what, p.Summary+"\n"+text.String())
	}
	f, w := vault()
	add("instances", "nothing is due", showInstance(Instance(f, w)))
	f, w = vaultInstall()
	w.Instance.Image.User, w.Instance.Image.Declared = "1000", []string{"/data", "/cache"}
	add("instances", "an install", showInstance(Instance(f, w)))
	f, w = vaultUpdate()
	add("instances", "an update", showInstance(Instance(f, w)))
	w.Instance.Settings["memory"], w.Instance.Environment["DEBUG"], w.Instance.Hold = "1024", "1", true
	w.Instance.Volumes = map[string]VolumeWant{"/log": {Size: guest.GiB}}
	erase(&w, "mp0", "local-lvm:vm-6001-disk-1")
	w.Instance.Image.Declared = []string{"/data", "/cache"}
	w.Allow = []string{"image_volume_unbacked"}
	f.contract(func(_ *guest.Contract, app *guest.Application) {
		app.Previous = "local:vztmpl/pvrx-nginx-ffffffffffff.tar"
	})
	add("instances", "an update with everything", showInstance(Instance(f, w)))
	f, w = vaultUpdate()
	w.Instance.Image.Repository, w.Instance.Image.Digest = "ghcr.io/nginx/nginx", digestOld
	add("instances", "another repository", showInstance(Instance(f, w)))
	f, w = vault()
	w.Triggers = map[string]string{"rebuild": "2"}
	add("instances", "the same image again", showInstance(Instance(f, w)))
	f, w = vault()
	w.Instance.Settings["memory"], w.Instance.Settings["net0"], w.Instance.Environment["TOKEN"] = "1024", "name=eth0,bridge=vmbr0,ip=10.0.0.5/24,gw=10.0.0.1", "next"
	w.Instance.Volumes["/data"] = VolumeWant{Size: 16 * guest.GiB, SizeText: "16GiB"}
	add("instances", "a modification", showInstance(Instance(f, w)))
	w.Instance.Volumes = nil
	erase(&w, "mp0", "*")
	add("instances", "a modification that erases", showInstance(Instance(f, w)))
	f, w = vault()
	copyOf6000(&f)
	f.Guest.Running = false
	f.unset("mp0")
	f.Guest.Config.Raw = nil
	add("instances", "a restored copy", showInstance(Instance(f, w)))
	f, w = vault()
	f.set("timezone", "host\x1b[31m")
	w.Adopt = true
	add("instances", "adopting what was changed by hand", showInstance(Instance(f, w)))
	f, w = vault()
	f.set("mp2", "/srv/media,mp=/media")
	f.Backups.Value = []guest.StoredVolume{{ID: volumeID("local:backup/a.tar")}}
	add("instances", "a removal", showInstance(InstanceRemoval(f, w)))
	f, w = vaultInstall()
	f.Elsewhere = &guest.Journal{Operation: "op-6001-20261201-dddd", Kind: "install", Guest: 6001, State: guest.JournalStuck, Stage: "start", Index: 4, Of: 5, App: &guest.Deployment{}}
	add("instances", "an install that stopped, unknown to state", showInstance(Instance(f, w)))
	f, j := stuckUpdate()
	for _, op := range []Operation{OpResume, OpRollback, OpClose} {
		add("instances", op.String()+" of an update past the point of no return", showInstance(ReconcileInstance(op, j, f)))
	}
}

func TestImageNamesAreShort(t *testing.T) {
	t.Parallel()
	for pinned, want := range map[string]string{
		repository + "@" + digestOld: "docker.io/library/nginx sha256:0123456789ab…",
		"localhost:5000/a@sha256:ab": "localhost:5000/a sha256:ab", "x": "x", "": "unknown", "x@y": "x y",
	} {
		if got := imageName(pinned); got != want {
			t.Errorf("%q is called %q, want %q", pinned, got, want)
		}
	}
}

func TestRepositoryOfAContract(t *testing.T) {
	t.Parallel()
	for reference, want := range map[string]string{
		"docker.io/library/nginx:1.27": "docker.io/library/nginx", "localhost:5000/a/b:1": "localhost:5000/a/b", "localhost:5000/a/b": "localhost:5000/a/b",
		"ghcr.io/a/b:1@" + digestOld: "ghcr.io/a/b", "": "",
	} {
		if got := repositoryOf(&guest.Contract{App: &guest.Application{Image: reference}}); got != want {
			t.Errorf("%q is of %q, want %q", reference, got, want)
		}
	}
}
