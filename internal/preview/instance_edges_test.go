package preview

import (
	"slices"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// An adoption writes notes and nothing else: what holds the container, or who may not write, blocks it, and nothing more.
func TestWhatBlocksAnAdoption(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make func(f *Facts, w *Want)
		code Code
	}{
		"locked":            {func(f *Facts, _ *Want) { f.set("lock", "backup") }, CodeLocked},
		"a task":            {func(f *Facts, _ *Want) { f.Tasks.Value = []Task{{Type: "vzdump", ID: "6001"}} }, CodeTaskRunning},
		"no right to write": {func(f *Facts, _ *Want) { f.revoke("/vms/6001", "VM.Config.Options") }, CodePrivileges},
		"an operation": {func(f *Facts, _ *Want) {
			f.Elsewhere = &guest.Journal{Operation: "op-6001-20261201-dddd", Guest: 6001, Until: f.Now + 1, State: guest.JournalDoing}
		}, CodeOperationInFlight},
		"the node is away":              {func(f *Facts, _ *Want) { f.NodeOnline = false }, CodeNodeOffline},
		"protection":                    {func(f *Facts, _ *Want) { f.set("protection", "1") }, 0},
		"snapshots":                     {func(f *Facts, _ *Want) { f.snapshot("daily") }, 0},
		"an image that is not resolved": {func(_ *Facts, w *Want) { w.Instance.Image.Digest, w.Instance.Image.Why = "", "registry down" }, 0},
		"volumes that would shrink":     {func(_ *Facts, w *Want) { w.Instance.Volumes["/data"] = VolumeWant{Size: guest.GiB} }, 0},
		"no rights but that one": {func(f *Facts, _ *Want) {
			f.Privileges = Privileges{}
			f.grant("/vms/6001", "VM.Config.Options")
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, w := vaultUpdate()
			copyOf6000(&f)
			c.make(&f, &w)
			p := Instance(f, w)
			if c.code == 0 {
				wantDue(t, p, OpAdopt)
			} else {
				wantDue(t, p, OpAdopt, c.code)
			}
			if warned(p, "belong to root") || len(p.Changes) > 0 {
				t.Errorf("an adoption speaks of changes: %q %v", p.Warnings, p.Changes)
			}
		})
	}
}

// What an adoption records is the container as it is: where its root file system is, what is mounted, which variables it has.
func TestAdoptedContractIsWhatIsThere(t *testing.T) {
	t.Parallel()
	f, w := vault()
	f.set("rootfs", "tank:subvol-6001-disk-0,size=4G")
	f.stored("tank:subvol-6001-disk-0", 6001, 4*guest.GiB)
	f.set("mp4", "local-lvm:vm-6001-disk-4,mp=/log,size=1G")
	f.stored("local-lvm:vm-6001-disk-4", 6001, guest.GiB)
	w.Instance.Volumes["/log"] = VolumeWant{Size: guest.GiB}
	f.set("mp0", "local-lvm:vm-6001-disk-1,mp=/moved,backup=1,size=8G")
	f.set("env", environment("PATH=/usr/bin", "TOKEN=x", "BY_HAND=1", guest.ContractVariable+"="+identity))
	f.set("lock", "backup")
	c := AdoptedContract(f, w)
	if c.Installed.RootfsStorage != "tank" || c.Instance != identity || c.Guest != 6001 {
		t.Errorf("%+v", c)
	}
	if len(c.App.Volumes) != 1 || c.App.Volumes["/log"] != "mp4" {
		t.Errorf("volumes are %v", c.App.Volumes)
	}
	if !slices.Equal(c.App.Own, []string{"TOKEN"}) || !slices.Equal(c.App.Theirs, []string{"BY_HAND", "PATH"}) {
		t.Errorf("variables are %v and %v", c.App.Own, c.App.Theirs)
	}
	for key, recorded := range map[string]bool{"memory": true, "mp4": true, "env": false, "description": false, "lock": false} {
		if _, there := c.App.Keys[key]; there != recorded {
			t.Errorf("%s recorded: %t", key, there)
		}
	}
	f.unset("lock")
	f.Journal.Contract = &c
	w.Instance.Settings, w.Instance.Volumes, w.Instance.Environment = nil, map[string]VolumeWant{"/log": {Size: guest.GiB, NoBackup: true}}, map[string]string{"TOKEN": "x"}
	w.Instance.Settings = map[string]string{"net0": "name=eth0,bridge=vmbr0,ip=dhcp"}
	if p := Instance(f, w); p.Operation != 0 || len(p.Warnings) > 0 {
		t.Errorf("after it something is due: %q %q", p.Summary, p.Warnings)
	}
	f, w = vault()
	f.unset("env")
	f.EnvSeen = false
	if c := AdoptedContract(f, w); !slices.Equal(c.App.Own, []string{"TOKEN"}) || c.Instance != identity || c.Installed.Template == "" {
		t.Errorf("an environment that cannot be read was taken for an empty one: %+v %+v", c, c.App)
	}
	f.Journal = guest.Notes{}
	if c := AdoptedContract(f, w); c.App != nil {
		t.Errorf("made of nothing: %+v", c)
	}
}

// Room is counted where it is needed, once.
func TestRoomOfAnInstance(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		facts   func() (Facts, Want)
		make    func(f *Facts, w *Want)
		storage string
		need    guest.Bytes
	}{
		"install":          {vaultInstall, func(*Facts, *Want) {}, "local-lvm", 12 * guest.GiB},
		"install, archive": {vaultInstall, func(*Facts, *Want) {}, "local", 60 * guest.MiB},
		"install of 6 GiB": {vaultInstall, func(_ *Facts, w *Want) { w.Rootfs.Size = 6 * guest.GiB }, "local-lvm", 14 * guest.GiB},
		"update":           {vaultUpdate, func(*Facts, *Want) {}, "local-lvm", 4 * guest.GiB},
		"update, larger":   {vaultUpdate, func(_ *Facts, w *Want) { w.Rootfs.Size = 6 * guest.GiB }, "local-lvm", 8 * guest.GiB},
		"update, volumes too": {vaultUpdate, func(_ *Facts, w *Want) {
			w.Instance.Volumes["/data"] = VolumeWant{Size: 9 * guest.GiB}
			w.Instance.Volumes["/log"] = VolumeWant{Size: guest.GiB}
		}, "local-lvm", 6 * guest.GiB},
		"update to another storage": {vaultUpdate, func(f *Facts, w *Want) {
			f.edit("tank", func(s *guest.Storage) { s.Content = []string{"rootdir"} })
			w.Rootfs.Storage = "tank"
		}, "tank", 8 * guest.GiB},
		"update, archive there": {vaultUpdate, func(f *Facts, _ *Want) { f.archive("local:vztmpl/pvrx-nginx-456789abcdef.tar") }, "local", 0},
		"modification, rootfs":  {vault, func(_ *Facts, w *Want) { w.Rootfs.Size = 6 * guest.GiB }, "local-lvm", 2 * guest.GiB},
	} {
		for _, short := range []bool{false, true} {
			f, w := c.facts()
			c.make(&f, &w)
			f.edit(c.storage, func(s *guest.Storage) {
				if s.Available = c.need; short {
					s.Available--
				}
			})
			b := Instance(f, w).Blockers
			if has(b, CodeSpace) != (short && c.need > 0) {
				t.Errorf("%s, short %t: %v", name, short, codesOf(b))
			}
		}
	}
}

// Options that the configuration does not know stay with a volume; the others are as it says.
func TestMountOptionsOfAnInstance(t *testing.T) {
	t.Parallel()
	f, w := vault()
	f.set("mp0", "local-lvm:vm-6001-disk-1,mp=/data,acl=1,mountoptions=nodev,quota=0,replicate=0,ro=1,size=8G")
	w.Instance.Volumes["/data"] = VolumeWant{Size: 8 * guest.GiB, Options: "noatime"}
	if got := InstanceWork(f, w).Set["mp0"]; got != "local-lvm:vm-6001-disk-1,mp=/data,acl=1,backup=1,mountoptions=noatime,quota=0,replicate=0" {
		t.Errorf("mp0 becomes %q", got)
	}
	f.set("mp0", "local-lvm:vm-6001-disk-1,mp=/data,backup=1,mountoptions=nodev;noatime,size=8G")
	w.Instance.Volumes["/data"] = VolumeWant{Size: 8 * guest.GiB, Options: "noatime;nodev"}
	wantDue(t, Instance(f, w), 0)
}

// A volume that is no longer configured goes only by its name and by its volume, and only it.
func TestErasingAnUnconfiguredVolume(t *testing.T) {
	t.Parallel()
	for consent, code := range map[string]Code{"local-lvm:vm-6001-disk-1": 0, "*": 0, "local-lvm:vm-6001-disk-2": CodeVolumeUnconfigured, "": CodeVolumeUnconfigured} {
		f, w := vault()
		f.set("mp1", "local-lvm:vm-6001-disk-5,mp=/log,backup=1,size=1G")
		f.stored("local-lvm:vm-6001-disk-5", 6001, guest.GiB)
		f.contract(func(_ *guest.Contract, app *guest.Application) {
			app.Keys, app.Volumes["/log"] = ContractKeys(f.Guest.Config), "mp1"
		})
		w.Instance.Volumes = map[string]VolumeWant{"/log": {Size: guest.GiB}}
		if consent != "" {
			erase(&w, "mp0", consent)
		}
		p := Instance(f, w)
		if has(p.Blockers, CodeVolumeUnconfigured) != (code != 0) {
			t.Errorf("%q: %v", consent, codesOf(p.Blockers))
		}
		if erased := p.Erased(); len(p.Blockers) == 0 && (len(erased) != 1 || erased["mp0"] != "local-lvm:vm-6001-disk-1") {
			t.Errorf("%q erases %v", consent, erased)
		}
		if got := InstanceWork(f, w).Erase; !slices.Equal(got, []string{"mp0"}) {
			t.Errorf("%q: %v", consent, got)
		}
	}
}

// What is missing of the image's own settings is asked of the image again; what somebody added is named as lost.
func TestRawSettingsOfAnUpdate(t *testing.T) {
	t.Parallel()
	f, w := vaultUpdate()
	f.Guest.Config.Raw = append(slices.Clone(f.Guest.Config.Raw), [2]string{"lxc.mount.entry", "tmpfs"}, [2]string{"lxc.init.cwd", "/elsewhere"})
	wantDue(t, Instance(f, w), OpUpdate, CodeNotRecreatable)
	w.Drop = []string{"lxc.mount.entry"}
	p := Instance(f, w)
	wantDue(t, p, OpUpdate)
	if !strings.Contains(p.AlsoLost["raw settings"], "lxc.mount.entry = tmpfs, lxc.init.cwd = /elsewhere") {
		t.Errorf("%v", p.AlsoLost)
	}
	f.Guest.Config.Raw = append(f.Guest.Config.Raw, [2]string{"lxc.idmap", "u 0 100000 65536"})
	w.Drop = append(w.Drop, "lxc.idmap")
	wantDue(t, Instance(f, w), OpUpdate, CodeIDMapDiffers)
}
