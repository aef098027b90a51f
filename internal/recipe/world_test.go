package recipe_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/proxmox"
	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

const (
	oldTemplate = "local:vztmpl/debian-12-standard_12.7-1_amd64.tar.zst"
	newTemplate = "local:vztmpl/debian-13-standard_13.1-1_amd64.tar.zst"
)

// rights are what the README asks for, and no more.
func rights() map[string][]string {
	return map[string][]string{
		"/": {"Sys.Audit"}, "/access": {"Sys.Audit"},
		"/vms": {
			"VM.Audit", "VM.Allocate", "VM.PowerMgmt", "VM.Config.Disk", "VM.Config.CPU", "VM.Config.Memory", "VM.Config.Network",
			"VM.Config.Options", "VM.Console", "VM.Backup", "VM.Snapshot", "VM.Snapshot.Rollback", "Permissions.Modify",
		},
		"/storage": {"Datastore.Audit", "Datastore.AllocateSpace"},
		"/pool":    {"Pool.Audit", "Pool.Allocate", "VM.Allocate"},
		"/sdn":     {"SDN.Use", "SDN.Audit"},
	}
}

// world is a simulated cluster with the container that the tests reinstall.
type world struct {
	cluster *pvesim.Cluster
	server  *pvesim.Server
	token   string
	clock   time.Time
	stalls  bool                         // requests are given up soon
	names   atomic.Int64                 // of operations on application containers
	kept    map[string]map[string]string // identity -> content of what must survive
}

func newWorld() *world {
	c := pvesim.NewCluster(pvesim.Options{Nodes: []string{"pve1", "pve2"}})
	c.AddStorage(pvesim.StorageSpec{ID: "local", Type: "dir", Content: []string{"vztmpl", "backup", "iso", "rootdir", "images"}})
	c.AddStorage(pvesim.StorageSpec{ID: "local-lvm", Type: "lvmthin", Total: 2 << 40})
	c.AddStorage(pvesim.StorageSpec{ID: "tank", Type: "zfspool", Total: 2 << 40})
	for name, v := range map[string]string{oldTemplate: "12", newTemplate: "13"} {
		if err := c.AddTemplate("pve1", name, 120<<20, pvesim.Template{
			OSType: "debian",
			Files: map[string]string{
				"/etc/debian_version": v, "/srv/data/README": "from the template " + v, "/data/README": "from the template " + v, "/bin/sh": "sh " + v,
			},
		}); err != nil {
			panic(err)
		}
	}
	c.AddBridge("pve1", "vmbr0")
	c.AddContainer(pvesim.ContainerSpec{
		VMID: 5002, Template: oldTemplate,
		Config: map[string]string{"hostname": "db2", "rootfs": "local-lvm:4", "mp0": "local-lvm:50,mp=/shared"},
		Files:  map[string]string{"/shared/theirs": "belongs to 5002"},
	})
	shared := c.VolumeOf(5002, "mp0")
	c.AddContainer(pvesim.ContainerSpec{
		VMID: 5001, Template: oldTemplate, Pool: "web", Running: true,
		Config: map[string]string{
			"hostname": "web1", "cores": "2", "memory": "1024", "swap": "256", "onboot": "1", "tags": "prod;web",
			"description": "Runs the shop.\n\nAsk Jo before touching.\n", "nameserver": "192.0.2.53", "searchdomain": "example.org",
			"startup": "order=3,up=10", "features": "nesting=1", "timezone": "host",
			"net0":   "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:50:01,ip=192.0.2.51/24,gw=192.0.2.1,firewall=1,type=veth",
			"rootfs": "local-lvm:8.5,mountoptions=noatime", "mp0": "local-lvm:100,mp=/srv/data,backup=1,mountoptions=noatime;discard",
			"mp3": "tank:10,mp=/var/cache/app,replicate=0", "unused0": "local-lvm:4",
		},
		Files: map[string]string{"/srv/data/marker": "the only copy", "/var/cache/app/marker": "cached", "/etc/passwd": "old system"},
	})
	c.SetConfig(5001, "mp1", shared+",mp=/shared,ro=1,size=50G")
	c.SetFirewall(5001, pvesim.FirewallSpec{
		Options: map[string]string{"enable": "1", "policy_in": "DROP"}, Aliases: map[string]string{"office": "198.51.100.0/24"},
		Sets: map[string][]string{"admins": {"198.51.100.7", "!198.51.100.9"}},
		Rules: []map[string]string{
			{"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": "443", "enable": "1", "comment": "web"},
			{"type": "in", "action": "ACCEPT", "source": "+admins", "enable": "1"},
			{"type": "in", "action": "REJECT", "enable": "0"},
		},
	})
	c.AddACL("/vms/5001", "user", "jo@pve", "PVEVMUser", true)
	w := &world{cluster: c, token: c.AddToken("ci@pve", "pvrx", rights()), clock: time.Now()}
	w.server = pvesim.NewServer(c)
	return w
}

// host connects to the world without any network.
func (w *world) host(t testing.TB, transport http.RoundTripper) *proxmox.Host {
	t.Helper()
	h, err := proxmox.Connect(context.Background(), proxmox.Settings{
		Endpoints: []string{"https://pve1:8006"}, APIToken: w.token, Transport: transport, Pace: w.pace(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// pace is quick where it can be. A request has long on a busy machine, but where a test wants it to stall.
func (w *world) pace() proxmox.Pace {
	p := fast()
	if w.stalls {
		p.Request = 400 * time.Millisecond
	}
	return p
}

func fast() proxmox.Pace {
	const ms = time.Millisecond
	return proxmox.Pace{
		Request: 20 * time.Second, PollFirst: 10 * time.Microsecond, PollMost: ms, LockFirst: 10 * time.Microsecond, LockMost: ms,
		Locked: 20 * ms, Blind: 100 * ms, Find: 20 * ms, Grace: 500 * ms, Settle: 50 * ms,
	}
}

// container is the recipe over the world, with a clock that only sleeping moves.
func (w *world) container(t testing.TB) *recipe.Container { return w.containerOver(t, w.server) }

func (w *world) containerOver(t testing.TB, transport http.RoundTripper) *recipe.Container {
	t.Helper()
	n := 0
	return &recipe.Container{
		Host:        w.host(t, transport),
		ParkingFrom: 900000, ParkingTo: 909999,
		PatienceBefore: 20 * time.Millisecond, PatienceAfter: 60 * time.Millisecond,
		Clock:  func() time.Time { return w.clock },
		Random: func() string { n++; return fmt.Sprintf("%04x%04x", n, time.Now().UnixNano()&0xffff) },
		Sleep: func(ctx context.Context, d time.Duration) error {
			w.clock = w.clock.Add(d)
			return ctx.Err()
		},
	}
}

func wants() preview.Want {
	return preview.Want{
		VMID: 5001, Name: "web1", Template: newTemplate, Triggers: map[string]string{"again": "1"}, Timeout: 2 * time.Hour,
	}
}

// apply plans and applies as the provider does.
func (w *world) apply(t testing.TB, req recipe.Request) (recipe.Result, error) {
	t.Helper()
	c := w.container(t)
	ctx := context.Background()
	seen, err := c.Observe(ctx, req.Want.VMID)
	if err != nil {
		return recipe.Result{}, err
	}
	req.Planned = seen.Acknowledged
	return c.Apply(ctx, req)
}

func (w *world) reconcile(t testing.TB, want preview.Want, operation, action string) (recipe.Result, error) {
	t.Helper()
	return w.apply(t, recipe.Request{Want: want, Reconcile: &recipe.Reconcile{Operation: operation, Action: action}})
}

// journal is the record of an operation in progress, wherever it is; nil when there is none.
func (w *world) journal(t testing.TB, id guest.VMID) *guest.Journal {
	t.Helper()
	seen, err := w.container(t).Observe(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	return seen.Journal
}
