package pvesim

import "time"

// Demo is the cluster of the demo and of most tests, with the credentials to talk to it.
type Demo struct {
	*Cluster
	// Token is that of an operator with no more rights than a reinstall needs, RootToken one of
	// root@pam without privilege separation, AuditToken one that may only look.
	Token, RootToken, AuditToken string
	// Username and Password log root@pam in.
	Username, Password string
}

// The guests of the demo cluster.
const (
	// DemoWeb is container web1: rootfs of 8.5 GiB, data of its own, a volume of DemoShared, a bind
	// mount, an unused volume.
	DemoWeb = 5001
	// DemoShared is container files1, which owns the volume that DemoWeb mounts too.
	DemoShared = 5002
	// DemoPlain is container cache1: a root file system and nothing else, stopped.
	DemoPlain = 5003
	// DemoMail is container mail1, with two volumes of its own on two storages, running.
	DemoMail = 5004
)

// Templates of the demo cluster.
const (
	DemoTemplate12 = "local:vztmpl/debian-12-standard_12.12-1_amd64.tar.zst"
	DemoTemplate13 = "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst"
	DemoAlpine     = "local:vztmpl/alpine-3.22-default_20250617_amd64.tar.xz"
	// DemoImage is a cloud image with a disk of 3 GiB, to import into virtual machines.
	DemoImage = "local:import/debian-13-genericcloud-amd64.qcow2"
)

// DemoRights are the rights of the demo's operator token, by path.
func DemoRights() map[string][]string {
	space := []string{"Datastore.AllocateSpace", "Datastore.Audit"}
	return map[string][]string{
		"/": {"Sys.Audit"},
		"/vms": {
			"VM.Audit", "VM.Allocate", "VM.PowerMgmt", "VM.Backup", "VM.Snapshot", "VM.Clone", "VM.Console",
			"VM.Config.Disk", "VM.Config.CPU", "VM.Config.Memory", "VM.Config.Network", "VM.Config.Options",
			"VM.Config.HWType", "VM.Config.CDROM", "VM.Config.Cloudinit", "VM.GuestAgent.Audit",
			"Permissions.Modify",
		},
		"/storage/local":          {"Datastore.AllocateSpace", "Datastore.AllocateTemplate", "Datastore.Audit", "Datastore.Allocate"},
		"/storage/local-lvm":      space,
		"/storage/tank":           space,
		"/storage/nas":            space,
		"/storage/backup":         space,
		"/sdn/zones/localnetwork": {"SDN.Use", "SDN.Audit"},
		"/pool/web":               {"Pool.Audit", "Pool.Allocate"},
		"/nodes":                  {"Sys.Audit", "Sys.AccessNetwork"},
	}
}

// NewDemo makes the demo cluster: node pve1 with everything on it, an almost empty pve2.
func NewDemo() *Demo { return NewDemoWith(Options{}) }

// NewDemoWith is NewDemo with options; the nodes are always pve1 and pve2.
func NewDemoWith(o Options) *Demo {
	o.Nodes = []string{"pve1", "pve2"}
	c := NewCluster(o)
	d := &Demo{Cluster: c, Username: rootUser, Password: "demo-password"}
	c.SetPassword(rootUser, d.Password)
	d.addStorages()
	d.addContainers()
	d.addVMs()
	d.RootToken = c.AddToken(rootUser, "demo", nil)
	d.Token = c.AddToken("pvrx@pve", "demo", DemoRights())
	d.AuditToken = c.AddToken("audit@pve", "demo", map[string][]string{"/": {
		"VM.Audit", "Datastore.Audit", "Sys.Audit", "Pool.Audit", "SDN.Audit",
	}})
	return d
}

func (d *Demo) addStorages() {
	c := d.Cluster
	for _, s := range []StorageSpec{
		{ID: "local", Type: "dir", Content: []string{"vztmpl", "iso", "import", "snippets", "backup"}, Options: map[string]string{"path": "/var/lib/vz"}},
		{ID: "local-lvm", Type: "lvmthin", Content: []string{"images", "rootdir"}, Total: 2 << 40, Options: map[string]string{"vgname": "pve", "thinpool": "data"}},
		{ID: "tank", Type: "zfspool", Content: []string{"images", "rootdir"}, Total: 4 << 40, Options: map[string]string{"pool": "tank/guests", "sparse": "1"}},
		{ID: "nas", Type: "nfs", Content: []string{"images", "rootdir", "backup"}, Shared: true, Total: 8 << 40, Options: map[string]string{"path": "/mnt/pve/nas", "server": "192.0.2.50", "export": "/export/pve"}},
		{ID: "backup", Type: "dir", Content: []string{"backup"}, Total: 4 << 40, Options: map[string]string{"path": "/srv/backup", "prune-backups": "keep-last=5"}},
	} {
		c.AddStorage(s)
	}
	debian := func(version string) Template {
		return Template{OSType: "debian", Files: map[string]string{
			"/etc/os-release": "ID=debian\nVERSION_ID=" + version, "/etc/debian_version": version,
			"/usr/bin/bash": "bash of debian " + version, "/sbin/init": "systemd of debian " + version,
			"/srv/README": "brought along by the template",
			// whoever mounts kept data while this is unpacked gets these into it
			"/srv/data/from-template": "debian " + version, "/var/vmail/from-template": "debian " + version,
		}, Links: map[string]string{"/bin": "usr/bin", "/var/run": "/run"}}
	}
	for _, node := range []string{"pve1", "pve2"} {
		must(c.AddTemplate(node, DemoTemplate12, 126<<20, debian("12")))
		must(c.AddTemplate(node, DemoTemplate13, 128<<20, debian("13")))
		must(c.AddTemplate(node, DemoAlpine, 3<<20, Template{OSType: "alpine", Files: map[string]string{
			"/etc/os-release": "ID=alpine", "/bin/busybox": "busybox", "/sbin/init": "busybox",
		}}))
		must(c.AddImage(node, DemoImage, 330<<20, 3<<30, map[string]string{"/etc/os-release": "ID=debian\nVERSION_ID=13"}))
	}
}

func must(err error) {
	if err != nil {
		panic("pvesim: " + err.Error())
	}
}

func (d *Demo) addContainers() {
	c := d.Cluster
	c.AddContainer(ContainerSpec{
		VMID: DemoShared, Template: DemoTemplate12, Running: true,
		Config: map[string]string{
			"hostname": "files1", "cores": "1", "memory": "1024", "rootfs": "local-lvm:4",
			"mp0":  "local-lvm:50,mp=/srv/files,backup=1",
			"net0": "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:50:02,ip=dhcp",
		},
		Files: map[string]string{"/srv/files/shared.txt": "belongs to files1"},
	})
	c.AddContainer(ContainerSpec{
		VMID: DemoWeb, Template: DemoTemplate12, Running: true, Pool: "web",
		Config: map[string]string{
			"hostname": "web1", "description": "web server\n\nowner: team web\n", "tags": "web;prod",
			"cores": "2", "cpulimit": "1.5", "cpuunits": "200", "memory": "2048", "swap": "256",
			"onboot": "1", "startup": "order=2,up=10,down=30", "features": "nesting=1",
			"nameserver": "192.0.2.53 192.0.2.54", "searchdomain": "example.test", "timezone": "Europe/Vienna", "tty": "3",
			"rootfs":  "local-lvm:8.5,mountoptions=noatime",
			"mp0":     "tank:100,mp=/srv/data,acl=1,backup=1,mountoptions=noatime;nosuid",
			"mp1":     c.VolumeOf(DemoShared, "mp0") + ",mp=/srv/shared,ro=1",
			"mp2":     "/mnt/media,mp=/srv/media,ro=1",
			"unused0": "local-lvm:2",
			"net0":    "name=eth0,bridge=vmbr0,firewall=1,gw=192.0.2.1,hwaddr=BC:24:11:00:50:01,ip=192.0.2.81/24,ip6=auto",
			"net1":    "name=eth1,bridge=vmbr1,hwaddr=BC:24:11:00:51:01,ip=10.0.0.81/24,mtu=1400,tag=30",
		},
		Files: map[string]string{
			"/var/www/index.html": "written by hand into the root file system",
			"/srv/data/customers": "the data that must stay",
		},
	})
	c.AddBridge("pve1", "vmbr1")
	c.SetFirewall(DemoWeb, FirewallSpec{
		Options: map[string]string{"enable": "1", "policy_in": "DROP", "policy_out": "ACCEPT"},
		Aliases: map[string]string{"office": "203.0.113.0/24", "monitor": "192.0.2.10"},
		Sets:    map[string][]string{"admins": {"203.0.113.7", "203.0.113.8", "!203.0.113.9"}},
		Rules: []map[string]string{
			{"type": "in", "action": "ACCEPT", "enable": "1", "proto": "tcp", "dport": "443", "comment": "https"},
			{"type": "in", "action": "ACCEPT", "enable": "1", "proto": "tcp", "dport": "22", "source": "+admins"},
			{"type": "in", "action": "ACCEPT", "enable": "1", "macro": "Ping", "source": "monitor"},
			{"type": "in", "action": "ACCEPT", "enable": "0", "proto": "tcp", "dport": "8080", "source": "office"},
		},
	})
	c.AddUser("ops@pve", "ops-password", "")
	c.AddUser("tfa@pve", "tfa-password", "123456")
	c.AddACL("/vms/5001", "user", "ops@pve", "PVEVMUser", true)
	c.AddContainer(ContainerSpec{
		VMID: DemoPlain, Template: DemoTemplate12,
		Config: map[string]string{
			"hostname": "cache1", "rootfs": "local-lvm:4", "net0": "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:50:03,ip=dhcp",
		},
	})
	c.AddContainer(ContainerSpec{
		VMID: DemoMail, Template: DemoTemplate12, Running: true,
		Config: map[string]string{
			"hostname": "mail1", "rootfs": "local-lvm:8", "memory": "1024", "onboot": "1",
			"mp0":  "local-lvm:20,mp=/var/vmail,backup=1",
			"mp1":  "nas:200,mp=/var/archive,backup=0",
			"net0": "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:50:04,ip=dhcp",
		},
		Files: map[string]string{"/var/vmail/inbox": "letters", "/var/archive/2019": "old letters"},
	})
	c.Backup(DemoWeb, "backup", "web1 nightly", false)
	c.AddBackupJob("nightly", map[string]string{"all": "1", "storage": "backup", "schedule": "03:00", "node": "pve2"}, time.Time{})
}
