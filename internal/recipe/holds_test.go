package recipe

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/proxmox"
	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
)

// halfway is an operation with a guest and a parking guest, as far as the looks at them are concerned.
func halfway(t *testing.T) (*operation, *pvesim.Cluster) {
	t.Helper()
	c := pvesim.NewCluster(pvesim.Options{Nodes: []string{"pve1"}})
	c.AddStorage(pvesim.StorageSpec{ID: "local-lvm", Type: "lvmthin", Total: 2 << 40})
	c.AddStorage(pvesim.StorageSpec{ID: "tank", Type: "zfspool", Total: 2 << 40})
	c.AddContainer(pvesim.ContainerSpec{VMID: 5001, Config: map[string]string{
		"hostname": "web1", "rootfs": "local-lvm:8", "mp0": "local-lvm:20,mp=/data", "mp1": "tank:10,mp=/more",
	}})
	j := guest.Journal{
		Version: 1, Operation: "op-5001-20260101-0001", Kind: kindReinstall, Guest: 5001, Parking: 905001, Holder: 905001, Node: "pve1",
		Runner: "aaaa", Storage: "local-lvm", Made: true, Stage: "guard", Index: 6, Of: 12, State: guest.JournalDoing,
		Parked: []guest.ParkedVolume{{Key: "mp0", Value: c.Config(5001)["mp0"]}, {Key: "mp1", Value: c.Config(5001)["mp1"]}},
	}
	c.AddContainer(pvesim.ContainerSpec{VMID: 905001, Config: map[string]string{
		"hostname": "pvrx-parking-5001", "rootfs": "local-lvm:8", "description": guest.Notes{Journal: &j}.String(),
	}})
	const ms = time.Millisecond
	host, err := proxmox.Connect(context.Background(), proxmox.Settings{
		Endpoints: []string{"https://pve1:8006"}, APIToken: c.AddToken("root@pam", "all", nil), Transport: pvesim.NewServer(c),
		Pace: proxmox.Pace{Request: time.Second, PollFirst: ms, PollMost: ms, LockFirst: ms, LockMost: ms, Locked: 20 * ms, Blind: 100 * ms, Find: 20 * ms, Grace: time.Second, Settle: time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	o := &operation{
		c: &Container{Host: host}, host: host, j: j, runner: "aaaa", claimed: true,
		guest: guest.Ref{VMID: 5001, Kind: guest.KindContainer, Node: "pve1"}, parking: guest.Ref{VMID: 905001, Kind: guest.KindContainer, Node: "pve1"},
	}
	return o, c
}

// hand gives a volume of the guest to the parking guest, as a move does.
func hand(c *pvesim.Cluster, key, as string) {
	c.SetRawConfig(905001, as, c.Config(5001)[key])
	c.SetConfig(5001, key, "")
}

// Hazard A3: what stands before every destroy of a parking guest says no to everything but an empty one that can be seen.
func TestA3RemovableSaysNo(t *testing.T) {
	t.Parallel()
	o, _ := halfway(t)
	if _, err := o.removable(context.Background(), o.parking); err != nil {
		t.Fatalf("an empty one: %v", err)
	}
	for name, row := range map[string]struct {
		world func(*operation, *pvesim.Cluster)
		says  string
	}{
		"a mount point":    {func(_ *operation, c *pvesim.Cluster) { hand(c, "mp0", "mp0") }, "holds mp0"},
		"an unused volume": {func(_ *operation, c *pvesim.Cluster) { c.SetRawConfig(905001, "unused0", c.VolumeOf(5001, "mp0")) }, "holds unused0"},
		"a host path":      {func(_ *operation, c *pvesim.Cluster) { c.SetRawConfig(905001, "mp4", "/srv,mp=/srv") }, "holds mp4"},
		"a snapshot":       {func(_ *operation, c *pvesim.Cluster) { c.Snapshot(905001, "theirs") }, `snapshot "theirs"`},
		"a pending change": {func(_ *operation, c *pvesim.Cluster) { c.SetPending(905001, "cores", "4", false) }, "pending changes (cores)"},
		"a volume nobody names": {func(_ *operation, c *pvesim.Cluster) {
			if err := c.AddVolume("pve1", "tank:subvol-905001-disk-3", 1<<30); err != nil {
				t.Error(err)
			}
		}, "tank:subvol-905001-disk-3 belongs to it"},
		"its rootfs is not listed": {func(_ *operation, c *pvesim.Cluster) { c.RemoveVolume(c.VolumeOf(905001, "rootfs")) }, "cannot be seen"},
		"a storage is away": {func(_ *operation, c *pvesim.Cluster) {
			c.AddStorage(pvesim.StorageSpec{ID: "tank", Type: "zfspool", Total: 2 << 40, Unreachable: true})
		}, "tank is not active"},
		"a storage is gone": {func(o *operation, _ *pvesim.Cluster) { o.j.Storage = "elsewhere" }, "elsewhere does not exist"},
	} {
		o, c := halfway(t)
		row.world(o, c)
		if _, err := o.removable(context.Background(), o.parking); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Hazard A3: clearing throw-away volumes destroys what the parking guest holds; it does so only while every kept volume is
// with the guest, in its configuration and on its storage.
func TestA3TrialsAreClearedOnlyWhileAllIsHome(t *testing.T) {
	t.Parallel()
	for name, world := range map[string]func(*pvesim.Cluster){
		"a kept volume is parked":                func(c *pvesim.Cluster) { hand(c, "mp0", "mp0") },
		"a kept volume is gone from its storage": func(c *pvesim.Cluster) { c.RemoveVolume(c.VolumeOf(5001, "mp1")) },
	} {
		o, c := halfway(t)
		c.SetConfig(905001, "mp5", "local-lvm:1,mp=/trial")
		world(c)
		if err := o.clearTrials(context.Background()); err == nil || c.Config(905001)["mp5"] == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	o, c := halfway(t)
	c.SetConfig(905001, "mp5", "local-lvm:1,mp=/trial")
	if err := o.clearTrials(context.Background()); err != nil || c.Config(905001)["mp5"] != "" {
		t.Errorf("all at home: %v, %v", err, c.Config(905001))
	}
}

// Hazard A3: a name is dropped as dead only when its storage does not show the volume: dropping it would destroy it.
func TestA3DeadNamesOnly(t *testing.T) {
	t.Parallel()
	o, c := halfway(t)
	c.SetRawConfig(5001, "unused0", c.VolumeOf(5001, "mp0"))
	id, err := guest.ParseVolumeID(c.VolumeOf(5001, "mp0"))
	if err != nil {
		t.Fatal(err)
	}
	c.SetConfig(5001, "mp0", "")
	if err := o.dropDead(context.Background(), o.guest, "unused0", id); err == nil || !strings.Contains(err.Error(), "is there after all") {
		t.Errorf("a volume that is there: %v", err)
	}
	if _, there := c.Volume(id.String()); !there {
		t.Fatal("the volume is gone")
	}
	c.RemoveVolume(id.String())
	if err := o.dropDead(context.Background(), o.guest, "unused0", id); err != nil || c.Config(5001)["unused0"] != "" {
		t.Errorf("a dead name: %v, %v", err, c.Config(5001))
	}
}

// Before the point of no return the parking guest must be ours, off, guarded, and hold every kept volume where it can be seen.
func TestGuardedSaysNo(t *testing.T) {
	t.Parallel()
	guarded := func(c *pvesim.Cluster) {
		hand(c, "mp0", "mp0")
		hand(c, "mp1", "mp1")
		rename(t, c, "mp0", "local-lvm:vm-905001-disk-8")
		rename(t, c, "mp1", "tank:subvol-905001-disk-8")
		c.SetRawConfig(905001, "protection", "1")
		c.SetRawConfig(905001, "entrypoint", noStart)
	}
	o, c := halfway(t)
	guarded(c)
	if err := o.guarded(context.Background()); err != nil {
		t.Fatalf("a guarded one: %v", err)
	}
	for name, row := range map[string]struct {
		world func(*pvesim.Cluster)
		says  string
	}{
		"without our record":     {func(c *pvesim.Cluster) { c.SetRawConfig(905001, "description", "theirs") }, "no longer carries our record"},
		"unprotected":            {func(c *pvesim.Cluster) { c.SetConfig(905001, "protection", "") }, "not guarded"},
		"startable":              {func(c *pvesim.Cluster) { c.SetConfig(905001, "entrypoint", "") }, "not guarded"},
		"running":                {func(c *pvesim.Cluster) { c.SetRunning(905001, true) }, "runs"},
		"without a volume":       {func(c *pvesim.Cluster) { c.SetConfig(905001, "mp1", "") }, "mp1 is not with"},
		"with a volume not seen": {func(c *pvesim.Cluster) { c.RemoveVolume("local-lvm:vm-905001-disk-8") }, "not on its storage"},
	} {
		o, c := halfway(t)
		guarded(c)
		row.world(c)
		if err := o.guarded(context.Background()); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// rename gives a volume that the parking guest names its own name, as a move does.
func rename(t *testing.T, c *pvesim.Cluster, key, id string) {
	t.Helper()
	old, options, _ := strings.Cut(c.Config(905001)[key], ",")
	v, ok := c.Volume(old)
	if !ok {
		t.Fatalf("no volume %s", old)
	}
	c.RemoveVolume(old)
	if err := c.AddVolume("pve1", id, v.Size); err != nil {
		t.Fatal(err)
	}
	c.SetRawConfig(905001, key, id+","+options)
}

// A protection that is not our guard belongs to somebody: lifting the guard leaves it alone.
func TestSomebodyElsesProtectionIsNotLifted(t *testing.T) {
	t.Parallel()
	o, c := halfway(t)
	c.Protect(905001, true)
	if err := o.liftGuard(context.Background()); err != nil || c.Config(905001)["protection"] != "1" {
		t.Errorf("%v, %v", err, c.Config(905001))
	}
	c.SetRawConfig(905001, "entrypoint", noStart)
	if err := o.liftGuard(context.Background()); err != nil || c.Config(905001)["protection"] != "" || c.Config(905001)["entrypoint"] != "" {
		t.Errorf("our own: %v, %v", err, c.Config(905001))
	}
}

// An unfinished guest is made again; one that already holds a volume is not removed for that.
func TestUnfinishedGuestWithDataIsNotRemoved(t *testing.T) {
	t.Parallel()
	o, c := halfway(t)
	if err := o.clearHalf(context.Background()); err == nil || !strings.Contains(err.Error(), "already holds mp") {
		t.Errorf("the error is %v", err)
	}
	if c.VolumeOf(5001, "mp0") == "" {
		t.Fatal("it is gone")
	}
	c.SetConfig(5001, "mp0", "")
	c.SetConfig(5001, "mp1", "")
	if err := o.clearHalf(context.Background()); err != nil {
		t.Errorf("one with a root file system only: %v", err)
	}
}
