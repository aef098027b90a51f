package preview

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// The application container of most tests: CT 6001 vault, made from nginx, with a volume on /data, as its contract says and
// as the configuration wants it. Nothing is due.
const (
	repository = "docker.io/library/nginx"
	digestOld  = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	digestNew  = "sha256:456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123"
	archiveOld = "local:vztmpl/pvrx-nginx-0123456789ab.tar"
	identity   = "op-6001-20261201-aaaa"
	secret     = "tWeNtYtHrEe-secret"
)

func environment(pairs ...string) string { return strings.Join(pairs, "\x00") }

func vault() (Facts, Want) {
	f, _ := web1()
	f.Users = map[guest.VolumeID][]User{}
	f.Volumes = map[guest.VolumeID]guest.StoredVolume{}
	f.Template, f.TemplateKnown = guest.StoredVolume{}, guest.PresenceUnknown
	f.Guest = guest.Guest{
		Ref: guest.Ref{VMID: 6001, Kind: guest.KindContainer, Node: "pve1"}, Running: true,
		Config: guest.Config{
			Digest: "d1",
			Values: map[string]string{
				"rootfs": "local-lvm:vm-6001-disk-0,size=4G", "mp0": "local-lvm:vm-6001-disk-1,mp=/data,backup=1,size=8G",
				"hostname": "vault", "cores": "2", "memory": "512", "swap": "0", "tags": "prod;web", "unprivileged": "1",
				"net0":   "name=eth0,bridge=vmbr0,host-managed=1,hwaddr=BC:24:11:00:60:01,ip=dhcp,type=veth",
				"ostype": "unmanaged", "arch": "amd64", "cmode": "console", "entrypoint": "/docker-entrypoint.sh nginx",
				"env":         environment("PATH=/usr/bin", "NGINX_VERSION=1.27", "TOKEN="+secret, guest.ContractVariable+"="+identity),
				"description": "the vault\n",
			},
			Raw: [][2]string{{"lxc.init.uid", "101"}, {"lxc.init.cwd", "/srv"}, {"lxc.signal.halt", "SIGQUIT"}},
		},
	}
	f.stored("local-lvm:vm-6001-disk-0", 6001, 4*guest.GiB)
	f.stored("local-lvm:vm-6001-disk-1", 6001, 8*guest.GiB)
	f.archive(archiveOld)
	f.Privileges = Privileges{}
	f.grant("/vms/6001", "VM.Allocate", "VM.Audit", "VM.Backup", "VM.Config.CPU", "VM.Config.Disk", "VM.Config.Memory", "VM.Config.Network", "VM.Config.Options", "VM.PowerMgmt", "VM.Snapshot")
	f.grant("/vms/900000", "VM.Allocate", "VM.Audit", "VM.Config.CPU", "VM.Config.Disk", "VM.Config.Memory", "VM.Config.Network", "VM.Config.Options", "VM.PowerMgmt")
	for _, s := range []string{"local-lvm", "local", "tank"} {
		f.grant("/storage/"+s, "Datastore.Audit", "Datastore.AllocateSpace")
	}
	f.grant("/storage/local", "Datastore.AllocateTemplate", "Datastore.Allocate")
	f.grant("/sdn/zones/localnetwork/vmbr0", "SDN.Use")
	f.EnvSeen, f.Instances = true, Known[[]OtherInstance]{OK: true}
	f.edit("local", func(s *guest.Storage) { s.Content = []string{"vztmpl", "backup"} })
	f.edit("tank", func(s *guest.Storage) { s.Content = []string{"images"} })
	f.Journal = guest.Notes{User: "the vault", Contract: &guest.Contract{
		Version: 1, Guest: 6001, Instance: identity, Operation: identity, At: 1796000000,
		Installed: guest.Install{Template: repository + "@" + digestOld, RootfsStorage: "local-lvm"},
		App: &guest.Application{
			Image: repository + ":1.27", Digest: digestOld, Manifest: digestOld, Arch: "amd64", Archive: archiveOld,
			Own: []string{"TOKEN"}, Theirs: []string{"NGINX_VERSION", "PATH"}, Entrypoint: "/docker-entrypoint.sh nginx", Declared: []string{"/data"},
			Volumes: map[string]string{"/data": "mp0"}, Set: []string{"cores", "memory", "net0", "tags"},
			Keys: ContractKeys(f.Guest.Config), Raw: f.Guest.Config.Raw,
		},
	}}
	w := Want{
		VMID: 6001, Name: "vault", Timeout: time.Hour,
		Instance: &InstanceWant{
			Image: Image{
				Reference: repository + ":1.27", Repository: repository, Digest: digestOld, Manifest: digestOld, Arch: "amd64",
				Archive: "pvrx-nginx-0123456789ab.tar", Size: 60 * guest.MiB, Read: true, Declared: []string{"/data"},
			},
			Settings:    map[string]string{"cores": "2", "memory": "512", "net0": "name=eth0,bridge=vmbr0,ip=dhcp", "tags": "web;prod"},
			Environment: map[string]string{"TOKEN": secret},
			Volumes:     map[string]VolumeWant{"/data": {Storage: "local-lvm", Size: 8 * guest.GiB, SizeText: "8GiB"}},
			Started:     true, Known: identity, KnownAt: 1796000000,
		},
	}
	return f, w
}

// archive adds an uploaded archive.
func (f *Facts) archive(id string) {
	f.Volumes[volumeID(id)] = guest.StoredVolume{ID: volumeID(id), Content: "vztmpl", Size: 60 * guest.MiB}
}

// newer asks for another digest of the image.
func newer(w *Want) {
	w.Instance.Image.Digest, w.Instance.Image.Manifest, w.Instance.Image.Archive = digestNew, digestNew, "pvrx-nginx-456789abcdef.tar"
}

// vaultUpdate is an update that nothing blocks.
func vaultUpdate() (Facts, Want) {
	f, w := vault()
	newer(&w)
	return f, w
}

// vaultInstall is an install that nothing blocks.
func vaultInstall() (Facts, Want) {
	f, w := vault()
	f.Presence = guest.Absent
	f.Guest = guest.Guest{Ref: guest.Ref{VMID: 6001, Kind: guest.KindContainer, Node: "pve1"}}
	f.Journal, f.Volumes = guest.Notes{}, map[guest.VolumeID]guest.StoredVolume{}
	w.Instance.Node, w.Instance.Create, w.Instance.Known, w.Instance.KnownAt = "pve1", true, "", 0
	return f, w
}

// copyOf6000 makes the container a restored copy of CT 6000.
func copyOf6000(f *Facts) {
	c := *f.Journal.Contract
	c.Guest = 6000
	f.Journal.Contract, f.Journal.Foreign = nil, &c
}

// contract lets a test change the contract without touching another's.
func (f *Facts) contract(change func(c *guest.Contract, app *guest.Application)) {
	c, app := *f.Journal.Contract, *f.Journal.Contract.App
	app.Keys, app.Volumes = maps.Clone(app.Keys), maps.Clone(app.Volumes)
	change(&c, &app)
	c.App = &app
	f.Journal.Contract = &c
}

// wantDue asserts what is due and that nothing blocks it.
func wantDue(t *testing.T, p Preview, op Operation, codes ...Code) {
	t.Helper()
	if p.Operation != op {
		t.Errorf("%q: due is %s, want %s", p.Summary, p.Operation, op)
	}
	wantOnly(t, p, codes...)
}
