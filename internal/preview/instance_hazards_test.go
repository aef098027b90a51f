package preview

import (
	"slices"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// warned reports whether a warning holds all of the words.
func warned(p Preview, words ...string) bool {
	return slices.ContainsFunc(p.Warnings, func(text string) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
	})
}

// What only containers from images have is carried from image to image by a rule of its own, and blocks a reinstall from a
// template as before.
func TestB8OnlyAnInstanceHasItsEntrypointCarried(t *testing.T) {
	t.Parallel()
	f, w := vaultUpdate()
	wantDue(t, Instance(f, w), OpUpdate)
	work := InstanceWork(f, w)
	for _, key := range []string{"entrypoint", "env", "cmode", "ostype", "arch"} {
		if _, set := work.Set[key]; set {
			t.Errorf("%s is set though nobody asked for it", key)
		}
	}
	w.Template, w.Instance = template, nil
	f.Template, f.TemplateKnown = guest.StoredVolume{ID: volumeID(template), Content: "vztmpl"}, guest.Present
	p := Container(f, w)
	for _, key := range []string{"cmode", "entrypoint", "env"} {
		if !slices.ContainsFunc(p.Blockers, func(b Blocker) bool { return b.Code == CodeNotRecreatable && b.Subject == key }) {
			t.Errorf("%s would be carried to a template", key)
		}
	}
}

// A backup or a clone carries the contract. It says nothing of another VMID, a second one of the same identity is refused,
// and a copy alone is adopted and nothing else.
func TestC6CopiesOfAContract(t *testing.T) {
	t.Parallel()
	f, w := vaultUpdate()
	copyOf6000(&f)
	p := Instance(f, w)
	wantDue(t, p, OpAdopt)
	if len(p.Changes) != 0 || len(p.Erased()) != 0 || !strings.Contains(p.Summary, "adopt this copy of CT 6000 as it is") {
		t.Errorf("%q changes %v and erases %v", p.Summary, p.Changes, p.Erased())
	}
	c := AdoptedContract(f, w)
	if c.Guest != 6001 || c.Instance != identity || c.Installed.Template != repository+"@"+digestOld {
		t.Errorf("adopted is %+v", c)
	}
	f.Journal.Contract, f.Journal.Foreign = &c, nil
	wantDue(t, Instance(f, w), OpUpdate)

	for _, id := range []string{"", "op-6000-20261201-0000"} {
		f, w := vaultUpdate()
		copyOf6000(&f)
		f.Instances.Value = []OtherInstance{{VMID: 6000, ID: id}}
		wantDue(t, Instance(f, w), OpAdopt)
	}
	f, w = vaultUpdate()
	copyOf6000(&f)
	f.Instances.Value = []OtherInstance{{VMID: 6002, ID: identity}, {VMID: 6000, ID: identity}}
	b := find(t, Instance(f, w).Blockers, CodeDuplicateIdentity)
	if !strings.Contains(b.Found, "CT 6000 and CT 6002") {
		t.Errorf("%q does not name both", b.Found)
	}
	wantDue(t, InstanceRemoval(f, w), OpRemove, CodeNotAnInstance)
}

// A restored copy is listed with everything that it lacks before anything changes.
func TestC6WhatARestoredCopyLacks(t *testing.T) {
	t.Parallel()
	f, w := vault()
	f.contract(func(_ *guest.Contract, app *guest.Application) {
		app.Keys["dev0"], app.Keys["mp3"] = "/dev/fuse,uid=101", "/srv/media,mp=/media"
		app.Volumes["/log"], app.Keys["mp1"] = "mp1", "local-lvm:vm-6000-disk-2,mp=/log,size=1G"
	})
	copyOf6000(&f)
	f.Guest.Running = false
	f.set("mp0", "usb:vm-6001-disk-1,mp=/data,backup=1,size=8G")
	delete(f.Volumes, volumeID(archiveOld))
	f.Guest.Config.Raw = nil
	p := Instance(f, w)
	wantDue(t, p, OpAdopt)
	for _, words := range [][]string{
		{"volume /log (mp1) is missing"},
		{"device dev0 (/dev/fuse) is missing"},
		{"host directory /srv/media on /media is missing"},
		{"mp0 is on storage usb, which does not exist on node pve1"},
		{archiveOld, "not on this node"},
		{"lxc.init.uid = 101", "change triggers"},
		{"stays stopped"},
	} {
		if !warned(p, words...) {
			t.Errorf("nothing says %q", words)
		}
	}
	// What was missing stays missing until somebody says so: nothing new and empty takes its place.
	w.Instance.Volumes["/log"] = VolumeWant{Size: guest.GiB}
	c := AdoptedContract(f, w)
	f.Journal.Contract, f.Journal.Foreign = &c, nil
	f.set("mp0", "local-lvm:vm-6001-disk-1,mp=/data,backup=1,size=8G")
	p = Instance(f, w)
	wantDue(t, p, OpModify, CodeContractDiffers)
	if len(InstanceWork(f, w).Make) != 0 {
		t.Error("an empty volume takes the place of a missing one")
	}
	w.Adopt = true
	wantDue(t, Instance(f, w), OpAdopt)
	c = AdoptedContract(f, w)
	f.Journal.Contract = &c
	p = Instance(f, w)
	wantDue(t, p, OpModify)
	if len(InstanceWork(f, w).Make) != 1 {
		t.Errorf("after the second adoption the volume is not made: %v", p.Changes)
	}
}

// A restore by a token loses raw settings of the image: said, with the remedy, and never in the way of the update that
// repairs it.
func TestC7RawSettingsLostByARestore(t *testing.T) {
	t.Parallel()
	f, w := vault()
	f.Guest.Config.Raw = f.Guest.Config.Raw[2:]
	p := Instance(f, w)
	wantDue(t, p, 0)
	if !warned(p, "lxc.init.uid = 101, lxc.init.cwd = /srv", "An update at the same digest", "triggers") {
		t.Errorf("warnings are %q", p.Warnings)
	}
	w.Triggers = map[string]string{"repair": "1"}
	p = Instance(f, w)
	wantDue(t, p, OpUpdate)
	if !strings.Contains(p.Summary, "sha256:0123456789ab… again (trigger repair)") {
		t.Errorf("summary %q", p.Summary)
	}
}

// A rollback to a snapshot leaves the notes and returns the environment: the container is not what its contract says, and
// nothing updates it until that is adopted. Not being able to look is not a mismatch.
func TestC7RolledBackToASnapshot(t *testing.T) {
	t.Parallel()
	older := "op-6001-20261101-0000"
	rolledBack := func() (Facts, Want) {
		f, w := vaultUpdate()
		f.set("env", environment("PATH=/old/bin", "TOKEN="+secret, guest.ContractVariable+"="+older))
		return f, w
	}
	f, w := rolledBack()
	p := Instance(f, w)
	wantDue(t, p, OpUpdate, CodeContractDiffers)
	if b := p.Blockers[0]; !strings.Contains(b.Found, older) || b.Attribute != "adopt" {
		t.Errorf("%+v", b)
	}
	w.Instance.Image.Digest = digestOld
	if p := Instance(f, w); p.Operation != 0 || !warned(p, "rolled back to a snapshot") {
		t.Errorf("%s %q", p.Operation, p.Warnings)
	}
	w.Adopt = true
	wantDue(t, Instance(f, w), OpAdopt)
	c := AdoptedContract(f, w)
	if c.Instance != older || c.Installed.Template != "" || c.App.Digest != "" || !slices.Equal(c.App.Own, []string{"TOKEN"}) || !slices.Equal(c.App.Theirs, []string{"PATH"}) {
		t.Errorf("adopted is %+v, %+v", c, c.App)
	}
	f.Journal.Contract = &c
	p = Instance(f, w) // to the wanted digest, because what it is from is not known
	wantDue(t, p, OpUpdate)
	if !warned(p, "cannot go back") {
		t.Errorf("%q", p.Warnings)
	}

	f, w = rolledBack()
	f.contract(func(_ *guest.Contract, app *guest.Application) {
		app.Before, app.Previous = &guest.Generation{ID: older, Image: repository + "@" + digestNew}, "local:vztmpl/pvrx-nginx-456789abcdef.tar"
	})
	c = AdoptedContract(f, w)
	if c.Installed.Template != repository+"@"+digestNew || c.App.Digest != digestNew || c.App.Archive != "local:vztmpl/pvrx-nginx-456789abcdef.tar" || c.App.Previous != "" {
		t.Errorf("the generation before is adopted as %+v, %+v", c, c.App)
	}

	for name, hide := range map[string]func(f *Facts){
		"absent": func(f *Facts) { f.unset("env"); f.EnvSeen = false },
		"masked": func(f *Facts) { f.set("env", hiddenEnvironment) },
	} {
		f, w := rolledBack()
		hide(&f)
		p := Instance(f, w)
		if has(p.Blockers, CodeContractDiffers) || !warned(p, "cannot be read", "VM.Config.Options") {
			t.Errorf("%s: %v, %q", name, codesOf(p.Blockers), p.Warnings)
		}
	}
}

// Variables of the configuration and of the image are kept apart, so that what only the old image had does not linger, and
// no value is ever in what is shown.
func TestC8EnvironmentByNames(t *testing.T) {
	t.Parallel()
	f, w := vault()
	w.Instance.Environment = map[string]string{"TOKEN": "another-" + secret, "EXTRA": secret + "-more"}
	p := Instance(f, w)
	wantDue(t, p, OpModify)
	if p.Changes[0].To != "EXTRA and TOKEN set" {
		t.Errorf("%+v", p.Changes)
	}
	work := InstanceWork(f, w)
	if got := guest.WriteEnvironment(work.Environment); got != environment("EXTRA="+secret+"-more", "NGINX_VERSION=1.27", "PATH=/usr/bin", "TOKEN=another-"+secret) {
		t.Error("the merged environment is wrong")
	}
	newer(&w)
	p = Instance(f, w)
	wantDue(t, p, OpUpdate)
	if strings.Contains(everything(p), secret) {
		t.Error("a secret is shown")
	}
}

// New volumes belong to root and hold lost+found: said before, and louder for an image that runs as somebody else.
func TestC9NewVolumesBelongToRoot(t *testing.T) {
	t.Parallel()
	for user, loud := range map[string]bool{"": false, "0": false, "root": false, "root:root": false, "0:0": false, "1000": true, "nginx": true, "101:0": true} {
		f, w := vaultInstall()
		w.Instance.Image.User = user
		p := Instance(f, w)
		wantDue(t, p, OpInstall)
		if !warned(p, "/data", "will belong to root", "lost+found") || warned(p, "cannot write there") != loud {
			t.Errorf("user %q: %q", user, p.Warnings)
		}
	}
	f, w := vault()
	if p := Instance(f, w); warned(p, "belong to root") {
		t.Error("nothing is made, and yet it is said")
	}
}

// The way back of an update is said before it begins: what it returns, what it cannot, and an archive that is gone.
func TestC9WhatARollbackCannotReturn(t *testing.T) {
	t.Parallel()
	f, w := vaultUpdate()
	w.Instance.HostPaths = map[string]HostPath{"/media": {Source: "/srv/media"}}
	f.Login.RootTicket = true
	delete(f.Volumes, volumeID(archiveOld))
	p := Instance(f, w)
	wantDue(t, p, OpUpdate)
	for _, words := range [][]string{
		{"goes back to docker.io/library/nginx sha256:0123456789ab…", "not rolled back", "root file system is gone"},
		{archiveOld, "fetched again by digest"},
		{"host directories (/media)", "every rollback"},
	} {
		if !warned(p, words...) {
			t.Errorf("nothing says %q: %q", words, p.Warnings)
		}
	}
	if p.AlsoLost["host directories"] == "" {
		t.Errorf("%v", p.AlsoLost)
	}
	w.Instance.Hold = true
	if p := Instance(f, w); !warned(p, "waits for reconcile") || warned(p, "fetched again") {
		t.Errorf("%q", p.Warnings)
	}
}

// What an earlier guest of the VMID left behind would be the new container's, and its end the end of that.
func TestB5LeftoversBlockAnInstall(t *testing.T) {
	t.Parallel()
	f, w := vaultInstall()
	f.stored("local-lvm:vm-6001-disk-3", 6001, guest.GiB)
	f.Volumes[volumeID("local:backup/vzdump-lxc-6001-x.tar")] = guest.StoredVolume{ID: volumeID("local:backup/vzdump-lxc-6001-x.tar"), Owner: 6001, Content: "backup"}
	b := find(t, Instance(f, w).Blockers, CodeTargetInUse)
	if !strings.Contains(b.Found, "vm-6001-disk-3") || strings.Contains(b.Found, "vzdump") {
		t.Errorf("%q", b.Found)
	}
}
