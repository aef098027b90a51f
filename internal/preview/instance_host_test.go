package preview

import (
	"slices"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// hosted is a container that root@pam gave a directory and a device of the host, as contract and configuration say.
func hosted() (Facts, Want) {
	f, w := vault()
	f.set("mp1", "/srv/media,mp=/media,ro=1")
	f.set("dev0", "/dev/fuse,uid=101")
	f.contract(func(_ *guest.Contract, app *guest.Application) { app.Keys = ContractKeys(f.Guest.Config) })
	w.Instance.HostPaths = map[string]HostPath{"/media": {Source: "/srv/media", ReadOnly: true}}
	w.Instance.Devices = map[string]string{"dev0": "/dev/fuse,uid=101"}
	f.Login.RootTicket = true
	return f, w
}

// What of the host a container gets is compared like everything else. Only root@pam sets it, everybody may leave it as it is,
// and taking it away is for others to say twice.
func TestInstanceHostDirectoriesAndDevices(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make  func(f *Facts, w *Want)
		token Code // what blocks a token, 0 for nothing
		set   map[string]string
		gone  []string
	}{
		"as they are":        {make: func(*Facts, *Want) {}},
		"in another order":   {make: func(f *Facts, _ *Want) { f.set("mp1", "/srv/media,ro=1,mp=/media/") }},
		"another source":     {func(_ *Facts, w *Want) { w.Instance.HostPaths["/media"] = HostPath{Source: "/srv/new", ReadOnly: true} }, CodeNotRecreatable, map[string]string{"mp1": "/srv/new,mp=/media,ro=1"}, nil},
		"to be written":      {func(_ *Facts, w *Want) { w.Instance.HostPaths["/media"] = HostPath{Source: "/srv/media"} }, CodeNotRecreatable, map[string]string{"mp1": "/srv/media,mp=/media"}, nil},
		"other options stay": {func(f *Facts, _ *Want) { f.set("mp1", "/srv/media,mp=/media,mountoptions=noatime") }, CodeNotRecreatable, map[string]string{"mp1": "/srv/media,mp=/media,mountoptions=noatime,ro=1"}, nil},
		"one more":           {func(_ *Facts, w *Want) { w.Instance.HostPaths["/more"] = HostPath{Source: "/srv/more"} }, CodeNotRecreatable, map[string]string{"mp2": "/srv/more,mp=/more"}, nil},
		"no longer":          {func(_ *Facts, w *Want) { w.Instance.HostPaths = nil }, CodeNotRecreatable, nil, []string{"mp1"}},
		"no longer, dropped": {func(_ *Facts, w *Want) { w.Instance.HostPaths, w.Drop = nil, []string{"mp1"} }, 0, nil, []string{"mp1"}},
		"another device":     {func(_ *Facts, w *Want) { w.Instance.Devices["dev0"] = "/dev/dri/card0" }, CodeNotRecreatable, map[string]string{"dev0": "/dev/dri/card0"}, nil},
		"no device":          {func(_ *Facts, w *Want) { w.Instance.Devices = nil }, CodeNotRecreatable, nil, []string{"dev0"}},
		"no device, dropped": {func(_ *Facts, w *Want) { w.Instance.Devices, w.Drop = nil, []string{"dev0"} }, 0, nil, []string{"dev0"}},
		"no device, but gone": {make: func(f *Facts, w *Want) {
			w.Instance.Devices = nil
			f.unset("dev0")
			f.contract(func(_ *guest.Contract, app *guest.Application) { delete(app.Keys, "dev0") })
		}},
		"no longer, and it waits for a restart": {func(f *Facts, w *Want) {
			w.Instance.HostPaths, w.Drop = nil, []string{"mp1"}
			f.Guest.Pending = []guest.Change{{Key: "mp1", Delete: true}}
		}, 0, nil, []string{"mp1"}},
		"a mount nobody has any more": {make: func(f *Facts, w *Want) {
			w.Instance.HostPaths = nil
			f.unset("mp1")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, w := hosted()
			c.make(&f, &w)
			work := InstanceWork(f, w)
			op := Operation(0)
			if len(c.set)+len(c.gone) > 0 {
				op = OpModify
			}
			wantDue(t, Instance(f, w), op)
			if len(work.Set) != len(c.set) || !slices.Equal(work.Delete, c.gone) {
				t.Errorf("set %v and deleted %v, want %v and %v", work.Set, work.Delete, c.set, c.gone)
			}
			for key, value := range c.set {
				if work.Set[key] != value {
					t.Errorf("%s is set to %q, want %q", key, work.Set[key], value)
				}
			}
			f.Login.RootTicket = false
			if c.token == 0 {
				wantDue(t, Instance(f, w), op)
				return
			}
			wantDue(t, Instance(f, w), op, c.token)
		})
	}
}

// An update keeps what is configured and leaves what is not, whoever could set it again.
func TestUpdateOfAHostedInstance(t *testing.T) {
	t.Parallel()
	f, w := hosted()
	newer(&w)
	p := Instance(f, w)
	wantDue(t, p, OpUpdate)
	wantFate(t, p, "mp1", DataHostManaged, MountReattached)
	wantFate(t, p, "dev0", DataHostManaged, MountReattached)
	w.Instance.HostPaths, w.Instance.Devices = nil, nil
	p = Instance(f, w)
	wantDue(t, p, OpUpdate)
	wantFate(t, p, "mp1", DataHostManaged, MountDropped)
	wantFate(t, p, "dev0", DataHostManaged, MountDropped)
	f.Login.RootTicket = false
	wantDue(t, Instance(f, w), OpUpdate, CodeNotRecreatable)
	w.Drop = []string{"mp1", "dev0"}
	wantDue(t, Instance(f, w), OpUpdate)
	f, w = hosted()
	newer(&w)
	f.set("hookscript", "local:snippets/x.pl")
	f.contract(func(_ *guest.Contract, app *guest.Application) { app.Keys["hookscript"] = "local:snippets/x.pl" })
	wantDue(t, Instance(f, w), OpUpdate)
	f.Login.RootTicket = false
	if p := Instance(f, w); !slices.ContainsFunc(p.Blockers, func(b Blocker) bool { return b.Subject == "hookscript" }) {
		t.Errorf("blocked by %v", codesOf(p.Blockers))
	}
}

// What blocks a modification, and what blocks an update only.
func TestWhatBlocksAModification(t *testing.T) {
	t.Parallel()
	memory := func(w *Want) { w.Instance.Settings["memory"] = "1024" }
	growing := func(w *Want) { w.Instance.Volumes["/data"] = VolumeWant{Size: 9 * guest.GiB} }
	reading := func(w *Want) { w.Instance.Volumes["/data"] = VolumeWant{Size: 8 * guest.GiB, ReadOnly: true} }
	adding := func(w *Want) { w.Instance.Volumes["/log"] = VolumeWant{Size: guest.GiB} }
	erasing := func(w *Want) {
		w.Instance.Volumes = nil
		erase(w, "mp0", "local-lvm:vm-6001-disk-1")
	}
	for name, c := range map[string]struct {
		want func(w *Want)
		make func(f *Facts)
		code Code // 0: it goes on
	}{
		"protection, memory":        {memory, func(f *Facts) { f.set("protection", "1") }, 0},
		"protection, growing":       {growing, func(f *Facts) { f.set("protection", "1") }, 0},
		"protection, a new volume":  {adding, func(f *Facts) { f.set("protection", "1") }, 0},
		"protection, mount options": {reading, func(f *Facts) { f.set("protection", "1") }, CodeProtected},
		"protection, erasing":       {erasing, func(f *Facts) { f.set("protection", "1") }, CodeProtected},
		"snapshots, memory":         {memory, func(f *Facts) { f.snapshot("daily") }, 0},
		"snapshots, erasing":        {erasing, func(f *Facts) { f.snapshot("daily") }, CodeSnapshotsPresent},
		"HA":                        {memory, func(f *Facts) { f.HA.Value.Managed = true }, 0},
		"no parking guest":          {memory, func(f *Facts) { f.Parking = Parking{} }, 0},
		"locked":                    {memory, func(f *Facts) { f.set("lock", "backup") }, CodeLocked},
		"a task":                    {memory, func(f *Facts) { f.Tasks.Value = []Task{{Type: "vzdump", ID: "6001"}} }, CodeTaskRunning},
		"somebody's pending change": {memory, func(f *Facts) { f.Guest.Pending = []guest.Change{{Key: "features", Value: "nesting=1"}} }, CodePendingChanges},
		"our own pending change": {reading, func(f *Facts) {
			f.Guest.Pending = []guest.Change{{Key: "mp0", Value: "local-lvm:vm-6001-disk-1,mp=/data,ro=1,backup=1"}}
		}, 0},
		"a shared volume, memory":  {memory, func(f *Facts) { f.Users[volumeID("local-lvm:vm-6001-disk-1")] = []User{{VMID: 6002, Key: "mp0"}} }, 0},
		"a shared volume, erasing": {erasing, func(f *Facts) { f.Users[volumeID("local-lvm:vm-6001-disk-1")] = []User{{VMID: 6002, Key: "mp0"}} }, CodeVolumeShared},
		"another guest's, growing": {growing, func(f *Facts) {
			f.set("mp0", "local-lvm:vm-6002-disk-1,mp=/data,backup=1,size=8G")
			f.stored("local-lvm:vm-6002-disk-1", 6002, 8*guest.GiB)
		}, CodeMountUnclassified},
		"two owners, growing":        {growing, func(f *Facts) { f.stored("local-lvm:vm-6001-disk-1", 6002, 8*guest.GiB) }, CodeMountUnclassified},
		"no room, growing":           {growing, func(f *Facts) { f.edit("local-lvm", func(s *guest.Storage) { s.Available = guest.MiB }) }, CodeSpace},
		"no room, a new volume":      {adding, func(f *Facts) { f.edit("local-lvm", func(s *guest.Storage) { s.Available = guest.MiB }) }, CodeSpace},
		"storage down, growing":      {growing, func(f *Facts) { f.edit("local-lvm", func(s *guest.Storage) { s.Active = false }) }, CodeStorageUnavailable},
		"storage down, a new volume": {adding, func(f *Facts) { f.edit("local-lvm", func(s *guest.Storage) { s.Enabled = false }) }, CodeStorageUnavailable},
		"storage down, memory":       {memory, func(f *Facts) { f.edit("local-lvm", func(s *guest.Storage) { s.Active = false }) }, 0},
		"no rights known":            {memory, func(f *Facts) { f.Privileges = Privileges{Why: "403"} }, CodePrivileges},
		"archives cannot be deleted": {memory, func(f *Facts) { f.revoke("/storage/local", "Datastore.Allocate") }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, w := vault()
			c.want(&w)
			wantDue(t, Instance(f, w), OpModify)
			c.make(&f)
			if c.code == 0 {
				wantDue(t, Instance(f, w), OpModify)
				return
			}
			wantDue(t, Instance(f, w), OpModify, c.code)
		})
	}
}

// A change asks for the rights that it uses and for no others.
func TestRightsOfAModification(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		want  func(w *Want)
		needs string
	}{
		"memory":      {func(w *Want) { w.Instance.Settings["memory"] = "1024" }, "VM.Config.Memory VM.Config.Options"},
		"cores":       {func(w *Want) { w.Instance.Settings["cores"] = "4" }, "VM.Config.CPU VM.Config.Options"},
		"tags":        {func(w *Want) { w.Instance.Settings["tags"] = "x" }, "VM.Config.Options"},
		"features":    {func(w *Want) { w.Instance.Settings["features"] = "nesting=1" }, "VM.Allocate VM.Config.Options VM.PowerMgmt"},
		"hostname":    {func(w *Want) { w.Name = "other" }, "VM.Config.Network VM.Config.Options VM.PowerMgmt"},
		"environment": {func(w *Want) { w.Instance.Environment["X"] = "1" }, "VM.Config.Options VM.PowerMgmt"},
		"network":     {func(w *Want) { w.Instance.Settings["net0"] = "name=eth0,bridge=vmbr1,ip=dhcp" }, "SDN.Use VM.Config.Network VM.Config.Options"},
		"a volume":    {func(w *Want) { w.Instance.Volumes["/log"] = VolumeWant{Size: guest.GiB} }, "Datastore.AllocateSpace VM.Config.Disk VM.Config.Options"},
		"growth":      {func(w *Want) { w.Rootfs.Size = 5 * guest.GiB }, "Datastore.AllocateSpace VM.Config.Disk VM.Config.Options"},
		"stop":        {func(w *Want) { w.Instance.Started = false }, "VM.Config.Options VM.PowerMgmt"},
		"pool":        {func(w *Want) { w.Instance.Settings["pool"] = "apps" }, "Pool.Allocate VM.Allocate VM.Config.Options"},
		"nothing":     {func(*Want) {}, "VM.Config.Options"},
	} {
		f, w := vault()
		c.want(&w)
		var got []string
		for _, n := range NeedsInstance(f, w) {
			got = append(got, n.Privileges...)
		}
		slices.Sort(got)
		if words := strings.Join(slices.Compact(got), " "); words != c.needs {
			t.Errorf("%s needs %s, want %s", name, words, c.needs)
		}
	}
}
