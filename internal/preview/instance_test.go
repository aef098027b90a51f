package preview

import (
	"slices"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// What is due, change by change: the operation, what is said of the change, and what it takes.
func TestWhatIsDueForAnInstance(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make    func(f *Facts, w *Want)
		due     Operation
		changes string
	}{
		"nothing": {func(*Facts, *Want) {}, 0, ""},
		"tolerated drift": {func(f *Facts, w *Want) {
			w.Instance.Settings = map[string]string{"net0": w.Instance.Settings["net0"]}
			f.set("memory", "4096")
			f.set("swap", "64")
			f.set("cores", "8")
			f.set("cpulimit", "1")
			f.set("cpuunits", "50")
			f.set("onboot", "1")
			f.set("startup", "order=1")
			f.set("net1", "name=eth1,bridge=vmbr0,hwaddr=BC:24:11:00:60:02,type=veth")
		}, 0, ""},
		"other spellings": {func(f *Facts, w *Want) {
			w.Instance.Settings = map[string]string{
				"tags": "WEB;prod;web", "memory": "512.0", "onboot": "0", "protection": "0", "console": "1", "features": "nesting=0",
				"swap": "0", "net0": "ip=dhcp,bridge=vmbr0", "description": "the vault",
			}
		}, 0, ""},
		"a description with the notes' line end": {func(_ *Facts, w *Want) { w.Instance.Settings["description"] = "the vault\n" }, 0, ""},
		"another description":                    {func(_ *Facts, w *Want) { w.Instance.Settings["description"] = "mine" }, OpModify, "description (live)"},
		"memory":                                 {func(_ *Facts, w *Want) { w.Instance.Settings["memory"] = "1024" }, OpModify, "memory 512→1024 (live)"},
		"network": {
			func(_ *Facts, w *Want) { w.Instance.Settings["net0"] = "name=eth0,bridge=vmbr0,ip=10.0.0.5/24,tag=5" }, OpModify,
			"net0 ip=dhcp→ip=10.0.0.5/24,tag=5 (live)",
		},
		"another hardware address": {
			func(_ *Facts, w *Want) { w.Instance.Settings["net0"] += ",hwaddr=BC:24:11:00:60:99" }, OpModify,
			"net0 hwaddr=BC:24:11:00:60:01→hwaddr=BC:24:11:00:60:99 (live)",
		},
		"a network more": {
			func(_ *Facts, w *Want) { w.Instance.Settings["net1"] = "name=eth1,bridge=vmbr0" }, OpModify,
			"net1 not set→name=eth1,bridge=vmbr0,host-managed=1 (live)",
		},
		"a network goes": {func(_ *Facts, w *Want) { delete(w.Instance.Settings, "net0") }, OpModify, "net0 "},
		"pool":           {func(_ *Facts, w *Want) { w.Instance.Settings["pool"] = "apps" }, OpModify, "pool not set→apps (live)"},
		"hostname":       {func(_ *Facts, w *Want) { w.Name = "vault2" }, OpModify, "hostname vault→vault2 (restart)"},
		"features":       {func(_ *Facts, w *Want) { w.Instance.Settings["features"] = "nesting=1" }, OpModify, "features not set→nesting=1 (restart)"},
		"nameserver":     {func(_ *Facts, w *Want) { w.Instance.Settings["nameserver"] = "10.0.0.1" }, OpModify, "nameserver not set→10.0.0.1 (restart)"},
		"environment":    {func(_ *Facts, w *Want) { w.Instance.Environment["TOKEN"] = "other" }, OpModify, "environment →TOKEN set (restart)"},
		"a further variable": {
			func(_ *Facts, w *Want) { w.Instance.Environment["DEBUG"] = "1" }, OpModify,
			"environment →DEBUG set (restart)",
		},
		"a variable goes": {func(_ *Facts, w *Want) { w.Instance.Environment = nil }, OpModify, "environment →TOKEN removed (restart)"},
		"a write-only variable by its value": {func(_ *Facts, w *Want) {
			w.Instance.WriteOnly, w.Instance.Environment["TOKEN"] = []string{"TOKEN"}, "other"
		}, 0, ""},
		"a write-only variable by its version": {func(_ *Facts, w *Want) {
			w.Instance.WriteOnly, w.Instance.EnvVersion = []string{"TOKEN"}, 2
		}, OpModify, "environment →TOKEN set (restart)"},
		"another version of the write-only ones": {
			func(_ *Facts, w *Want) { w.Instance.EnvVersion = 3 }, OpModify,
			"environment →another version of the write-only variables (restart)",
		},
		"an entrypoint that waits for a restart": {func(f *Facts, _ *Want) {
			f.set("entrypoint", "/own")
			f.Guest.Pending = []guest.Change{{Key: "entrypoint", Value: "/docker-entrypoint.sh nginx"}}
		}, OpModify, "entrypoint →waits for a restart (restart)"},
		"a firewall that is off": {func(f *Facts, w *Want) {
			f.set("net0", f.Guest.Config.Values["net0"]+",firewall=0,link_down=0")
		}, 0, ""},
		"the image's variable returns": {func(f *Facts, w *Want) {
			f.contract(func(_ *guest.Contract, app *guest.Application) {
				app.Theirs = append(slices.Clone(app.Theirs), "TOKEN")
			})
			w.Instance.Environment = nil
		}, OpUpdate, "environment TOKEN→the image's own TOKEN (new root file system)"},
		"entrypoint": {func(_ *Facts, w *Want) { w.Instance.Entrypoint = "/app --token " + secret }, OpModify, "entrypoint →as configured (restart)"},
		"the image's entrypoint": {func(f *Facts, _ *Want) {
			f.set("entrypoint", "/own")
			f.contract(func(_ *guest.Contract, app *guest.Application) { app.Keys["entrypoint"] = "/own" })
		}, OpModify, "entrypoint →the image's own (restart)"},
		"a larger volume": {func(_ *Facts, w *Want) { w.Instance.Volumes["/data"] = VolumeWant{Size: 9 * guest.GiB} }, OpModify, "volume /data 8 GiB→9 GiB (live)"},
		"a read-only volume": {
			func(_ *Facts, w *Want) { w.Instance.Volumes["/data"] = VolumeWant{Size: 8 * guest.GiB, ReadOnly: true} }, OpModify,
			"volume /data backup=1→backup=1,ro=1 (restart)",
		},
		"a volume without backup": {func(_ *Facts, w *Want) { w.Instance.Volumes["/data"] = VolumeWant{NoBackup: true} }, OpModify, "volume /data backup=1→no options (restart)"},
		"a new volume": {
			func(_ *Facts, w *Want) { w.Instance.Volumes["/log"] = VolumeWant{Size: guest.GiB} }, OpModify,
			"volume /log not there→new, 1 GiB on local-lvm (live)",
		},
		"a larger rootfs":  {func(_ *Facts, w *Want) { w.Rootfs.Size = 6 * guest.GiB }, OpModify, "rootfs 4 GiB→6 GiB (live)"},
		"a smaller rootfs": {func(_ *Facts, w *Want) { w.Rootfs.Size = 2 * guest.GiB }, 0, ""},
		"stopped":          {func(f *Facts, _ *Want) { f.Guest.Running = false }, OpModify, "started stopped→running (live)"},
		"to be stopped":    {func(_ *Facts, w *Want) { w.Instance.Started = false }, OpModify, "started running→stopped (live)"},
		"a newer image":    {func(_ *Facts, w *Want) { newer(w) }, OpUpdate, "image docker.io/library/nginx sha256:0123456789ab…→docker.io/library/nginx sha256:456789abcdef… (new root file system)"},
		"a declined image": {func(f *Facts, w *Want) {
			newer(w)
			f.contract(func(c *guest.Contract, _ *guest.Application) { c.Declined = []string{w.Install().Hash()} })
		}, 0, ""},
		"an image that is not known yet":  {func(_ *Facts, w *Want) { w.Instance.Image.Digest = "" }, OpUpdate, "image docker.io/library/nginx sha256:0123456789ab…→an image that is not known yet (new root file system)"},
		"a trigger":                       {func(_ *Facts, w *Want) { w.Triggers = map[string]string{"k": "1"} }, OpUpdate, "trigger k not set→1 (new root file system)"},
		"triggers that are not known yet": {func(_ *Facts, w *Want) { w.Triggers = map[string]string{"": "(known after apply)"} }, OpUpdate, "triggers not set→(known after apply) (new root file system)"},
		"another rootfs storage": {func(f *Facts, w *Want) {
			f.edit("tank", func(s *guest.Storage) { s.Content = []string{"rootdir"} })
			w.Rootfs.Storage = "tank"
		}, OpUpdate, "rootfs storage local-lvm→tank (new root file system)"},
		"a restored copy": {func(f *Facts, _ *Want) { copyOf6000(f) }, OpAdopt, ""},
		"adopt with nothing to adopt": {func(_ *Facts, w *Want) {
			w.Adopt = true
			newer(w)
		}, OpUpdate, "image docker.io/library/nginx sha256:0123456789ab…→docker.io/library/nginx sha256:456789abcdef… (new root file system)"},
		"adopt what was changed by hand": {func(f *Facts, w *Want) {
			w.Adopt = true
			f.set("timezone", "host")
			newer(w)
		}, OpAdopt, ""},
		"what waits for a restart": {func(f *Facts, w *Want) {
			f.contract(func(_ *guest.Contract, app *guest.Application) { app.Keys["features"] = "nesting=1" })
			f.Guest.Pending = []guest.Change{{Key: "features", Value: "nesting=1"}}
			w.Instance.Settings["features"] = "nesting=1"
		}, OpModify, "features not set→nesting=1 (restart)"},
		"an environment that waits for a restart": {func(f *Facts, w *Want) {
			w.Instance.Environment["TOKEN"] = "next"
			f.contract(func(c *guest.Contract, _ *guest.Application) { c.Instance = "op-6001-20261202-bbbb" })
			f.Guest.Pending = []guest.Change{{Key: "env", Value: environment("PATH=/usr/bin", "TOKEN=next", guest.ContractVariable+"=op-6001-20261202-bbbb")}}
			w.Instance.Known = "op-6001-20261202-bbbb"
		}, OpModify, "environment →TOKEN set (restart)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, w := vault()
			f.grant("/pool/apps", "Pool.Allocate")
			f.grant("/sdn/zones/localnetwork/vmbr0/5", "SDN.Use")
			f.grant("/storage/tank", "Datastore.AllocateSpace")
			c.make(&f, &w)
			p := Instance(f, w)
			wantDue(t, p, c.due)
			var words []string
			for _, change := range p.Changes {
				text := change.What
				if change.From+change.To != "" {
					text += " " + change.From + "→" + change.To
				}
				words = append(words, text+" ("+change.Takes.String()+")")
			}
			if got := strings.Join(words, "; "); !strings.HasPrefix(got, c.changes) || c.changes == "" && got != "" {
				t.Errorf("changes are %q, want %q", got, c.changes)
			}
			for _, v := range p.Volumes {
				if v.Data == DataErased && (v.Key != "rootfs" || c.due != OpUpdate) {
					t.Errorf("%s is %s", v.Key, v.Data)
				}
			}
		})
	}
}

// The same list decides what is shown and what is done.
func TestInstanceWorkIsWhatThePreviewShows(t *testing.T) {
	t.Parallel()
	f, w := vault()
	w.Instance.Settings["memory"], w.Instance.Settings["pool"], w.Instance.Settings["description"] = "1024", "apps", "mine"
	w.Instance.Settings["net0"] = "name=eth0,bridge=vmbr0,ip=dhcp,firewall=1"
	w.Instance.Environment = map[string]string{"DEBUG": "1", guest.ContractVariable: "forged"}
	w.Instance.Volumes["/data"] = VolumeWant{Size: 8*guest.GiB + 1, ReadOnly: true, Options: "noatime"}
	w.Instance.Volumes["/log"] = VolumeWant{Storage: "local-lvm", Size: 512 * guest.MiB, NoBackup: true}
	w.Instance.Volumes["/cache"] = VolumeWant{Size: guest.GiB}
	work := InstanceWork(f, w)
	for key, value := range map[string]string{
		"memory": "1024", "net0": "name=eth0,bridge=vmbr0,firewall=1,host-managed=1,hwaddr=BC:24:11:00:60:01,ip=dhcp,type=veth",
		"mp0": "local-lvm:vm-6001-disk-1,mp=/data,backup=1,mountoptions=noatime,ro=1",
	} {
		if work.Set[key] != value {
			t.Errorf("%s is set to %q, want %q", key, work.Set[key], value)
		}
	}
	if len(work.Set) != 3 || len(work.Delete) != 0 || *work.Pool != "apps" || *work.Notes != "mine" || !work.Restart || work.Start || work.Stop {
		t.Errorf("%+v", work)
	}
	want := []guest.NewVolume{
		{Key: "mp1", Path: "/cache", Value: "local-lvm:1,mp=/cache,backup=1"}, {Key: "mp2", Path: "/log", Value: "local-lvm:0.5,mp=/log"},
	}
	if !slices.Equal(work.Make, want) {
		t.Errorf("made are %v, want %v", work.Make, want)
	}
	if len(work.Grow) != 1 || work.Grow["mp0"] != 8*guest.GiB+guest.MiB {
		t.Errorf("grown are %v", work.Grow)
	}
	if got := guest.WriteEnvironment(work.Environment); got != environment("DEBUG=1", "NGINX_VERSION=1.27", "PATH=/usr/bin") {
		t.Errorf("the environment becomes %q", got)
	}
}

// An install gets everything that the configuration sets.
func TestInstallWork(t *testing.T) {
	t.Parallel()
	f, w := vaultInstall()
	f.Login.RootTicket = true
	w.Instance.HostPaths = map[string]HostPath{"/media": {Source: "/srv/media", ReadOnly: true}}
	w.Instance.Devices = map[string]string{"dev0": "/dev/dri/renderD128"}
	w.Instance.Entrypoint = "/app"
	p := Instance(f, w)
	wantDue(t, p, OpInstall)
	work := InstanceWork(f, w)
	for key, value := range map[string]string{
		"hostname": "vault", "memory": "512", "net0": "name=eth0,bridge=vmbr0,ip=dhcp", "entrypoint": "/app", "dev0": "/dev/dri/renderD128",
		"mp1": "/srv/media,mp=/media,ro=1",
	} {
		if work.Set[key] != value {
			t.Errorf("%s is set to %q, want %q", key, work.Set[key], value)
		}
	}
	if len(work.Make) != 1 || work.Make[0].Value != "local-lvm:8,mp=/data,backup=1" || !work.Start || work.Restart {
		t.Errorf("%+v", work)
	}
	if len(p.Volumes) != 0 || p.ErasedBytes != 0 {
		t.Errorf("an install has no fates: %v", p.Volumes)
	}
}

func TestInstanceStorages(t *testing.T) {
	t.Parallel()
	f, w := vaultInstall()
	if archive, rootfs := InstanceStorages(f, w); archive != "local" || rootfs != "local-lvm" {
		t.Errorf("the only ones are %q and %q", archive, rootfs)
	}
	f.edit("tank", func(s *guest.Storage) { s.Content = []string{"rootdir", "vztmpl"} })
	if archive, rootfs := InstanceStorages(f, w); archive != "" || rootfs != "" {
		t.Errorf("of several %q and %q were chosen", archive, rootfs)
	}
	w.Instance.ArchiveStorage, w.Rootfs.Storage = "tank", "local-lvm"
	if archive, rootfs := InstanceStorages(f, w); archive != "tank" || rootfs != "local-lvm" {
		t.Errorf("wanted are tank and local-lvm, not %q and %q", archive, rootfs)
	}
	f, w = vault()
	f.edit("tank", func(s *guest.Storage) { s.Content = []string{"rootdir", "vztmpl"} })
	if archive, rootfs := InstanceStorages(f, w); archive != "local" || rootfs != "local-lvm" {
		t.Errorf("the container's own are %q and %q", archive, rootfs)
	}
	f.edit("local", func(s *guest.Storage) { s.Active = false })
	if archive, _ := InstanceStorages(f, w); archive != "tank" {
		t.Errorf("while its own is away the only other one is %q", archive)
	}
}
