package proxmox

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
)

const simTemplate = "local:vztmpl/debian-13-standard_13.1-1_amd64.tar.zst"

var (
	other   = guest.Ref{VMID: 5002, Kind: guest.KindContainer, Node: "pve1"}
	parking = guest.Ref{VMID: 900000, Kind: guest.KindContainer, Node: "pve1"}
)

// simulated returns a host over a simulated cluster: CT 5001 with a volume of its own, one of CT 5002 and one unused, and an
// empty parking guest.
func simulated(t testing.TB) (*Host, *pvesim.Server) {
	t.Helper()
	c := pvesim.NewCluster(pvesim.Options{Nodes: []string{"pve1", "pve2"}})
	c.AddStorage(pvesim.StorageSpec{ID: "local", Type: "dir", Content: []string{"rootdir", "images", "vztmpl", "backup", "iso"}, Options: map[string]string{"path": "/var/lib/vz", "prune-backups": "keep-last=1"}})
	c.AddStorage(pvesim.StorageSpec{ID: "tank", Type: "lvmthin", Content: []string{"rootdir", "images"}, Options: map[string]string{"vgname": "pve", "thinpool": "data"}})
	wantNoError(t, c.AddTemplate("pve1", simTemplate, 100<<20, pvesim.Template{OSType: "debian", Files: map[string]string{"/etc/os-release": "ID=debian"}}))
	c.AddContainer(pvesim.ContainerSpec{VMID: 5002, Config: map[string]string{"rootfs": "local:1", "mp0": "local:1,mp=/shared"}})
	c.AddContainer(pvesim.ContainerSpec{
		VMID: 5001, Template: simTemplate,
		Config: map[string]string{
			"hostname": "web1", "rootfs": "local:2", "mp0": "tank:1,mp=/data,backup=1,mountoptions=noatime",
			"mp1": c.VolumeOf(5002, "mp0") + ",mp=/shared", "unused0": "tank:1", "net0": "name=eth0,bridge=vmbr0,hwaddr=02:00:00:00:50:01,firewall=1",
		},
		Files: map[string]string{"/data/marker": "kept"},
	})
	c.AddContainer(pvesim.ContainerSpec{VMID: 900000, Config: map[string]string{"rootfs": "local:1"}})
	s := pvesim.NewServer(c)
	h := hostOver(t, s, func(set *Settings) { set.APIToken = c.AddToken("root@pam", "lab", nil) })
	return h, s
}

// changes returns the requests that could change something, as "METHOD path".
func changes(s *pvesim.Server) []string {
	var all []string
	for _, r := range s.Requests() {
		if r.Mutates() {
			all = append(all, r.Method+" "+r.Path)
		}
	}
	return all
}

func volumeOf(t testing.TB, s *pvesim.Server, vmid int, key string) guest.VolumeID {
	t.Helper()
	id, err := guest.ParseVolumeID(s.Cluster().VolumeOf(vmid, key))
	wantNoError(t, err)
	return id
}

func digestOf(t testing.TB, h *Host, ref guest.Ref) string {
	t.Helper()
	config, err := h.Config(context.Background(), ref)
	wantNoError(t, err)
	return config.Digest
}

func parkMove(t testing.TB, h *Host, s *pvesim.Server, key string) guest.Move {
	t.Helper()
	return guest.Move{
		From: ct, To: parking, FromKey: key, ToKey: key, Volume: volumeOf(t, s, 5001, key),
		FromDigest: digestOf(t, h, ct), ToDigest: digestOf(t, h, parking),
	}
}

func TestMoveKeepsDataAndOptions(t *testing.T) {
	h, s := simulated(t)
	before, _ := s.Cluster().Volume(s.Cluster().VolumeOf(5001, "mp0"))
	wantNoError(t, h.MoveVolume(context.Background(), parkMove(t, h, s, "mp0")))
	after, _ := s.Cluster().Volume(s.Cluster().VolumeOf(900000, "mp0"))
	if before.Identity == "" || after.Identity != before.Identity || after.Content["/marker"] != "kept" {
		t.Fatalf("before %+v, after %+v", before, after)
	}
	if value := s.Cluster().Config(900000)["mp0"]; !strings.Contains(value, "mountoptions=noatime") {
		t.Errorf("%q", value)
	}
}

// Whatever happens to the answer of a move, it is sent once, and its end is found.
func TestMoveWhoseAnswerIsLostIsFoundAndNotRepeated(t *testing.T) {
	for _, f := range []pvesim.Fault{
		{Kind: pvesim.FaultLoseAnswer},
		{Kind: pvesim.FaultStatusAfter, Status: 596, Text: "Broken pipe"},
		{Kind: pvesim.FaultStatusAfter, Status: 595, Text: "Connection refused"},
		{Kind: pvesim.FaultStatusAfter, Status: 502, Text: "Bad Gateway"},
	} {
		t.Run(f.Kind.String(), func(t *testing.T) {
			h, s := simulated(t)
			m := parkMove(t, h, s, "mp0")
			f.Method, f.Path = http.MethodPost, "/move_volume$"
			s.Inject(f)
			wantNoError(t, h.MoveVolume(context.Background(), m))
			if got := changes(s); len(got) != 1 || s.FaultsStruck() != 1 {
				t.Fatalf("sent %v", got)
			}
			if s.Cluster().VolumeOf(900000, "mp0") == "" {
				t.Error("the volume did not arrive")
			}
		})
	}
	t.Run("nothing had started", func(t *testing.T) {
		h, s := simulated(t)
		m := parkMove(t, h, s, "mp0")
		s.Inject(pvesim.Fault{Kind: pvesim.FaultReset, Method: http.MethodPost})
		wantOutcome(t, h.MoveVolume(context.Background(), m), guest.OutcomeUnknown)
		if got := changes(s); len(got) != 1 {
			t.Fatalf("sent %v", got)
		}
	})
	t.Run("killed half-way", func(t *testing.T) {
		h, s := simulated(t)
		m := parkMove(t, h, s, "mp0")
		s.Inject(pvesim.Fault{Kind: pvesim.FaultTaskKill, At: "renamed", Method: http.MethodPost})
		wantOutcome(t, h.MoveVolume(context.Background(), m), guest.OutcomeUnknown)
	})
}

// C1: a volume under two keys, a volume of another guest, a key that holds something else: refused, whatever the recipe says.
func TestC1ForeignAndDoubleVolumesAreNotMoved(t *testing.T) {
	for name, spoil := range map[string]struct {
		world func(*pvesim.Cluster)
		move  func(*testing.T, *Host, *pvesim.Server) guest.Move
		want  guest.Outcome
	}{
		"two keys, one volume": {
			func(c *pvesim.Cluster) { c.SetRawConfig(5001, "mp5", c.VolumeOf(5001, "mp0")+",mp=/again") },
			func(t *testing.T, h *Host, s *pvesim.Server) guest.Move { return parkMove(t, h, s, "mp0") }, guest.OutcomeRefused,
		},
		"foreign mount": {
			func(*pvesim.Cluster) {},
			func(t *testing.T, h *Host, s *pvesim.Server) guest.Move { return parkMove(t, h, s, "mp1") }, guest.OutcomeRefused,
		},
		"foreign unused": {
			func(c *pvesim.Cluster) {
				c.SetRawConfig(5001, "unused7", c.VolumeOf(5002, "mp0"))
				c.SetConfig(5001, "mp1", "")
			},
			func(t *testing.T, h *Host, s *pvesim.Server) guest.Move { return parkMove(t, h, s, "unused7") }, guest.OutcomeRefused,
		},
		"key holds another volume": {
			func(*pvesim.Cluster) {},
			func(t *testing.T, h *Host, s *pvesim.Server) guest.Move {
				m := parkMove(t, h, s, "mp0")
				m.Volume = volumeOf(t, s, 5001, "unused0")
				return m
			}, guest.OutcomeRefused,
		},
		"key is gone": {
			func(*pvesim.Cluster) {},
			func(t *testing.T, h *Host, s *pvesim.Server) guest.Move {
				m := parkMove(t, h, s, "mp0")
				m.FromKey = "mp9"
				return m
			}, guest.OutcomeRefused,
		},
		"source changed since": {
			func(*pvesim.Cluster) {},
			func(t *testing.T, h *Host, s *pvesim.Server) guest.Move {
				m := parkMove(t, h, s, "mp0")
				s.Cluster().SetConfig(5001, "cores", "4")
				return m
			}, guest.OutcomeConflict,
		},
		"target key in use": {
			func(c *pvesim.Cluster) { c.SetConfig(900000, "mp0", "tank:1,mp=/x") },
			func(t *testing.T, h *Host, s *pvesim.Server) guest.Move { return parkMove(t, h, s, "mp0") }, guest.OutcomeTaken,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, s := simulated(t)
			spoil.world(s.Cluster())
			wantOutcome(t, h.MoveVolume(context.Background(), spoil.move(t, h, s)), spoil.want)
			if got := changes(s); len(got) != 0 {
				t.Errorf("sent %v", got)
			}
		})
	}
}

// B4: Proxmox notices a protected target, or a storage that lost its content type, only after it has written the source.
func TestB4MovesThatWouldEndInNobodysConfigurationAreNotSent(t *testing.T) {
	t.Run("target protected", func(t *testing.T) {
		h, s := simulated(t)
		s.Cluster().Protect(900000, true)
		wantOutcome(t, h.MoveVolume(context.Background(), parkMove(t, h, s, "mp0")), guest.OutcomeRefused)
		if got := changes(s); len(got) != 0 {
			t.Errorf("sent %v", got)
		}
	})
	t.Run("storage without containers", func(t *testing.T) {
		h, s := simulated(t)
		s.Cluster().AddStorage(pvesim.StorageSpec{ID: "tank", Type: "lvmthin", Content: []string{"none"}, Options: map[string]string{"vgname": "pve", "thinpool": "data"}})
		wantOutcome(t, h.MoveVolume(context.Background(), parkMove(t, h, s, "mp0")), guest.OutcomeRefused)
		if got := changes(s); len(got) != 0 {
			t.Errorf("sent %v", got)
		}
	})
	t.Run("source protected is fine", func(t *testing.T) {
		h, s := simulated(t)
		s.Cluster().Protect(5001, true)
		wantNoError(t, h.MoveVolume(context.Background(), parkMove(t, h, s, "mp0")))
	})
}

// A warning of a move means that the target did not take the volume as it should.
func TestMoveWithWarningsFailed(t *testing.T) {
	h, s := simulated(t)
	m := parkMove(t, h, s, "mp0")
	s.Inject(pvesim.Fault{Kind: pvesim.FaultTaskWarn, Method: http.MethodPost, Text: "unable to hotplug mp0"})
	err := h.MoveVolume(context.Background(), m)
	wantOutcome(t, err, guest.OutcomeFailed)
	if !strings.Contains(err.Error(), "unable to hotplug mp0") {
		t.Error(err)
	}
}

func owned(t testing.TB, s *pvesim.Server) []guest.VolumeID {
	return []guest.VolumeID{volumeOf(t, s, 5001, "rootfs"), volumeOf(t, s, 5001, "mp0"), volumeOf(t, s, 5001, "unused0")}
}

func TestDestroyTakesOnlyWhatWasAnnounced(t *testing.T) {
	ctx := context.Background()
	h, s := simulated(t)
	all := owned(t, s)
	for i := range all {
		_, err := h.Destroy(ctx, ct, slices.Delete(slices.Clone(all), i, i+1))
		wantOutcome(t, err, guest.OutcomeConflict)
		if !strings.Contains(err.Error(), all[i].String()) {
			t.Errorf("%v does not name %s", err, all[i])
		}
	}
	s.Cluster().SetPending(5001, "mp4", "tank:vm-5001-disk-9,mp=/later", false)
	_, err := h.Destroy(ctx, ct, all)
	wantOutcome(t, err, guest.OutcomeConflict)
	if got := changes(s); len(got) != 0 {
		t.Fatalf("sent %v", got)
	}
}

func TestDestroyWaitsUntilTheGuestIsGone(t *testing.T) {
	h, s := simulated(t)
	foreign := s.Cluster().VolumeOf(5002, "mp0")
	warnings, err := h.Destroy(context.Background(), ct, owned(t, s))
	wantNoError(t, err)
	if slices.Contains(s.Cluster().Guests(), 5001) {
		t.Fatal("it is still there")
	}
	if _, there := s.Cluster().Volume(foreign); !there {
		t.Fatal("the other guest's volume is gone")
	}
	_ = warnings // what Proxmox only mentions in passing is no warning of the task
	for _, r := range s.Requests() {
		if r.Method == http.MethodDelete && (r.Params["purge"] != "" || r.Params["destroy-unreferenced-disks"] != "" || r.Params["force"] != "") {
			t.Errorf("sent %v", r.Params)
		}
	}
}

// The task's good end is not the guest's: its configuration has to be gone.
func TestDestroyIsDoneWhenTheConfigurationIsGone(t *testing.T) {
	serve := taskServer(strings.ReplaceAll(startUPID, "vzstart", "vzdestroy"), func(int) answer { return stopped("OK") }, `[]`)
	for _, lingers := range []int{4, 1 << 30} {
		reads := 0
		h, _ := scripted(t, func(r sent) answer {
			switch {
			case r.Method == http.MethodDelete:
				return data(`"` + strings.ReplaceAll(startUPID, "vzstart", "vzdestroy") + `"`)
			case strings.HasSuffix(r.Path, "/pending"):
				return data("[]")
			case strings.HasSuffix(r.Path, "/config"):
				if reads++; reads > lingers {
					return died("Configuration file 'nodes/pve1/lxc/5001.conf' does not exist")
				}
				return data(`{"lock":"destroyed"}`)
			}
			return serve(r)
		})
		_, err := h.Destroy(context.Background(), ct, nil)
		if lingers == 4 {
			wantNoError(t, err)
			continue
		}
		wantOutcome(t, err, guest.OutcomeUnknown)
	}
}

// What waits for a restart is not the guest's configuration yet.
func TestConfigIsTheCurrentOne(t *testing.T) {
	ctx := context.Background()
	h, s := simulated(t)
	s.Cluster().SetConfig(5001, "cores", "2")
	s.Cluster().SetPending(5001, "cores", "8", false)
	s.Cluster().SetPending(5001, "mp0", "", true)
	config, err := h.Config(ctx, ct)
	wantNoError(t, err)
	if config.Values["cores"] != "2" || config.Values["mp0"] == "" {
		t.Errorf("%v", config.Values)
	}
	changes, err := h.Pending(ctx, ct)
	wantNoError(t, err)
	slices.SortFunc(changes, func(a, b guest.Change) int { return strings.Compare(a.Key, b.Key) })
	if len(changes) != 2 || changes[0] != (guest.Change{Key: "cores", Value: "8"}) || changes[1] != (guest.Change{Key: "mp0", Delete: true}) {
		t.Errorf("%+v", changes)
	}
	values, _, err := h.Named(ctx, ct)
	wantNoError(t, err)
	if !slices.Equal(values["cores"], []string{"2", "8"}) || len(values["mp0"]) != 1 {
		t.Errorf("%v", values)
	}
}

func TestDestroyWhoseAnswerIsLostIsFoundAndNotRepeated(t *testing.T) {
	h, s := simulated(t)
	s.Inject(pvesim.Fault{Kind: pvesim.FaultLoseAnswer, Method: http.MethodDelete})
	_, err := h.Destroy(context.Background(), ct, owned(t, s))
	wantNoError(t, err)
	if got := changes(s); len(got) != 1 {
		t.Fatalf("sent %v", got)
	}
}

// B3: a destroy that Proxmox refuses before any effect is a plain refusal, and the configuration is as it was.
func TestB3RefusedDestroysAreHarmless(t *testing.T) {
	for name, world := range map[string]func(*pvesim.Cluster){
		"locked":     func(c *pvesim.Cluster) { c.Lock(5001, "backup") },
		"protected":  func(c *pvesim.Cluster) { c.Protect(5001, true) },
		"running":    func(c *pvesim.Cluster) { c.SetRunning(5001, true) },
		"HA":         func(c *pvesim.Cluster) { c.AddHA(5001, map[string]string{"state": "ignored"}) },
		"replicated": func(c *pvesim.Cluster) { c.AddReplication("5001-0", "pve2") },
	} {
		t.Run(name, func(t *testing.T) {
			h, s := simulated(t)
			world(s.Cluster())
			before := digestOf(t, h, ct)
			_, err := h.Destroy(guest.WithPatience(context.Background(), 0), ct, owned(t, s))
			if err == nil || !guest.OutcomeOf(err).Harmless() {
				t.Fatalf("%s: %v", guest.OutcomeOf(err), err)
			}
			if digestOf(t, h, ct) != before {
				t.Error("the configuration has changed")
			}
		})
	}
}

func TestDropUnusedDestroysOnlyThatVolume(t *testing.T) {
	ctx := context.Background()
	h, s := simulated(t)
	unused := volumeOf(t, s, 5001, "unused0")
	wantOutcome(t, h.DropUnused(ctx, ct, "unused0", volumeOf(t, s, 5001, "mp0"), digestOf(t, h, ct)), guest.OutcomeRefused)
	wantOutcome(t, h.DropUnused(ctx, ct, "unused0", unused, "0000"), guest.OutcomeConflict)
	if got := changes(s); len(got) != 0 {
		t.Fatalf("sent %v", got)
	}
	wantNoError(t, h.DropUnused(ctx, ct, "unused0", unused, digestOf(t, h, ct)))
	if _, there := s.Cluster().Volume(unused.String()); there {
		t.Error("it is still there")
	}
	if _, there := s.Cluster().Volume(s.Cluster().VolumeOf(5001, "mp0")); !there {
		t.Error("the kept volume is gone")
	}
}

func TestClaimIsCompareAndSwap(t *testing.T) {
	ctx := context.Background()
	h, _ := simulated(t)
	digest := digestOf(t, h, ct)
	wantNoError(t, h.SetConfig(ctx, ct, map[string]string{"description": "first"}, nil, digest))
	wantOutcome(t, h.SetConfig(ctx, ct, map[string]string{"description": "second"}, nil, digest), guest.OutcomeConflict)
	config, err := h.Config(ctx, ct)
	wantNoError(t, err)
	if strings.TrimSpace(config.Description()) != "first" {
		t.Errorf("%q", config.Description())
	}
}

// A5: our own archive is protected and prunes nothing, although the storage keeps only the last one.
func TestA5BackupPrunesNothing(t *testing.T) {
	h, s := simulated(t)
	old := s.Cluster().Backup(5001, "local", "older", false)
	id, err := h.Backup(context.Background(), guest.Backup{
		Ref: ct, Storage: "local", Mode: "stop", Exclude: []string{"/data/?*"}, Notes: "pvrx op-1 {{node}}\nline two",
	})
	wantNoError(t, err)
	if _, there := s.Cluster().Volume(old); !there {
		t.Error("the older archive was pruned")
	}
	v, there := s.Cluster().Volume(id.String())
	if !there || !v.Protected || v.Size <= 0 || id.String() == old {
		t.Fatalf("%s: %+v", id, v)
	}
	for _, r := range s.Requests() {
		if strings.HasSuffix(r.Path, "/vzdump") && (r.Params["remove"] != "0" || r.Params["protected"] != "1" || r.Params["vmid"] != "5001") {
			t.Errorf("sent %v", r.Params)
		}
	}
	if strings.Contains(v.Notes, "pve1") || !strings.Contains(v.Notes, "line two") {
		t.Errorf("the notes came out as %q", v.Notes)
	}
}

func TestBackupThatLeftNoArchiveFailed(t *testing.T) {
	h, s := simulated(t)
	s.Inject(pvesim.Fault{Kind: pvesim.FaultWorldAfter, Path: "/vzdump$", World: func(c *pvesim.Cluster) {
		for _, v := range c.Volumes() {
			if v.Type == "backup" {
				c.RemoveVolume(v.ID)
			}
		}
	}})
	_, err := h.Backup(context.Background(), guest.Backup{Ref: ct, Storage: "local", Mode: "stop"})
	wantOutcome(t, err, guest.OutcomeFailed)
}

func TestBackupOnANodeThatHasNoSuchGuest(t *testing.T) {
	h, _ := scripted(t, func(sent) answer { return data(`"OK"`) })
	_, err := h.Backup(context.Background(), guest.Backup{Ref: ct, Storage: "local"})
	wantOutcome(t, err, guest.OutcomeMissing)
}

// A file with an odd name is nobody's volume; a volume that cannot be named is an error and never overlooked.
func TestContentWithOddNames(t *testing.T) {
	list := func(content string) ([]guest.StoredVolume, error) {
		h, _ := scripted(t, func(sent) answer {
			return data(`[{"volid":"local:iso/a,b.iso","content":"` + content + `","size":1},{"volid":"local:5001/vm-5001-disk-0.raw","content":"rootdir","vmid":"5001","size":"1073741824","ctime":5,"protected":1}]`)
		})
		return h.Content(context.Background(), "pve1", "local", 0)
	}
	rows, err := list("iso")
	wantNoError(t, err)
	if len(rows) != 1 || rows[0].Owner != 5001 || rows[0].Size != 1<<30 || rows[0].Created != 5 || !rows[0].Protected {
		t.Errorf("%+v", rows)
	}
	_, err = list("images")
	wantOutcome(t, err, guest.OutcomeUnreachable)
}

func TestCreateAndRestore(t *testing.T) {
	ctx := context.Background()
	h, s := simulated(t)
	fresh := guest.Ref{VMID: 6001, Kind: guest.KindContainer, Node: "pve1"}
	params := map[string]string{"ostemplate": simTemplate, "rootfs": "local:1", "hostname": "new", "unprivileged": "1"}
	_, err := h.CreateContainer(ctx, fresh, params)
	wantNoError(t, err)
	_, err = h.CreateContainer(ctx, fresh, params)
	wantOutcome(t, err, guest.OutcomeTaken)

	archive := s.Cluster().Backup(5001, "local", "", false)
	_, err = h.RestoreContainer(ctx, ct, archive, map[string]string{"rootfs": "local:2"})
	wantOutcome(t, err, guest.OutcomeTaken) // A2: never over an existing guest
	restored := guest.Ref{VMID: 6002, Kind: guest.KindContainer, Node: "pve1"}
	_, err = h.RestoreContainer(ctx, restored, archive, map[string]string{"rootfs": "local:2"})
	wantNoError(t, err)
	if config := s.Cluster().Config(6002); config["mp0"] != "" || config["rootfs"] == "" {
		t.Errorf("%v", config)
	}
}

// B6: a create whose worker dies says neither yes nor no.
func TestB6KilledCreateIsUnknown(t *testing.T) {
	for _, at := range []string{"stub", "extracted"} {
		h, s := simulated(t)
		s.Inject(pvesim.Fault{Kind: pvesim.FaultTaskKill, At: at, Method: http.MethodPost})
		_, err := h.CreateContainer(context.Background(), guest.Ref{VMID: 6001, Kind: guest.KindContainer, Node: "pve1"}, map[string]string{"ostemplate": simTemplate, "rootfs": "local:1"})
		wantOutcome(t, err, guest.OutcomeUnknown)
	}
}

func TestPowerAndState(t *testing.T) {
	ctx := context.Background()
	h, s := simulated(t)
	for _, step := range []struct {
		do   func() error
		want bool
	}{
		{func() error { return h.Start(ctx, ct) }, true},
		{func() error { return h.Start(ctx, ct) }, true},
		{func() error { return h.Shutdown(ctx, ct, 5) }, false},
		{func() error { return h.Shutdown(ctx, ct, 5) }, false},
		{func() error { return h.Start(ctx, ct) }, true},
		{func() error { return h.Stop(ctx, ct) }, false},
		{func() error { return h.Stop(ctx, ct) }, false},
	} {
		wantNoError(t, step.do())
		running, lock, err := h.Running(ctx, ct)
		wantNoError(t, err)
		if running != step.want || lock != "" {
			t.Fatalf("running=%v lock=%q", running, lock)
		}
	}
	wantNoError(t, h.Start(ctx, ct))
	s.Cluster().IgnoreShutdown(5001, true)
	wantOutcome(t, h.Shutdown(ctx, ct, 1), guest.OutcomeFailed)
	addresses, err := h.Addresses(ctx, ct)
	wantNoError(t, err)
	if _, there := addresses["02:00:00:00:50:01"]; !there || len(addresses) != 1 {
		t.Errorf("%v", addresses)
	}
}

func TestResize(t *testing.T) {
	ctx := context.Background()
	h, s := simulated(t)
	wantNoError(t, h.Resize(ctx, ct, "rootfs", 3<<30))
	wantNoError(t, h.Resize(ctx, ct, "rootfs", 3<<30))
	wantOutcome(t, h.Resize(ctx, ct, "rootfs", 1<<30), guest.OutcomeRefused)
	if v, _ := s.Cluster().Volume(s.Cluster().VolumeOf(5001, "rootfs")); v.Size != 3<<30 {
		t.Errorf("%d", v.Size)
	}
}

func TestSnapshots(t *testing.T) {
	ctx := context.Background()
	h, s := simulated(t)
	s.Cluster().SetConfig(5001, "mp1", "")
	s.Cluster().Snapshot(5001, "one")
	s.Cluster().SetConfig(5001, "cores", "3")
	s.Cluster().Snapshot(5001, "two")
	list, err := h.Snapshots(ctx, ct)
	wantNoError(t, err)
	slices.SortFunc(list, func(a, b guest.Snapshot) int { return strings.Compare(a.Name, b.Name) })
	if len(list) != 2 || list[1].Parent != "one" || list[0].Time == 0 || list[0].Config.Values["cores"] != "" || list[1].Config.Values["cores"] != "3" {
		t.Fatalf("%+v", list)
	}
	_, parent, err := h.Named(ctx, ct)
	wantNoError(t, err)
	if parent != "two" {
		t.Errorf("parent %q", parent)
	}
	wantOutcome(t, h.DeleteSnapshot(ctx, ct, "three"), guest.OutcomeMissing)
}

// B2: a job over several guests has an empty id; a filter by guest would not show it.
func TestB2RunningTasksAreListedWithoutAFilter(t *testing.T) {
	h, s := simulated(t)
	_, end := s.Cluster().StartTask("pve1", "vzdump", "", "root@pam")
	tasks, err := h.Tasks(context.Background(), "pve1")
	wantNoError(t, err)
	if len(tasks) != 1 || tasks[0].Type != "vzdump" || tasks[0].ID != "" {
		t.Fatalf("%+v", tasks)
	}
	end("OK")
	tasks, err = h.Tasks(context.Background(), "pve1")
	wantNoError(t, err)
	if len(tasks) != 0 {
		t.Fatalf("%+v", tasks)
	}
}

// B12: the HA rules that name a guest survive its removal from HA, and all its fields come back.
func TestB12HAComesBackWithItsFieldsAndRules(t *testing.T) {
	ctx := context.Background()
	h, s := simulated(t)
	s.Cluster().AddHA(5001, map[string]string{"state": "stopped", "comment": "web", "max_restart": "3", "max_relocate": "2"})
	s.Cluster().AddHARule("r1", map[string]string{"type": "node-affinity", "resources": "ct:5001", "nodes": "pve1"})
	before, err := h.HA(ctx)
	wantNoError(t, err)
	if !before[5001].Managed || before[5001].State != "stopped" {
		t.Fatalf("%+v", before)
	}
	wantNoError(t, h.RemoveHA(ctx, ct))
	gone, err := h.HA(ctx)
	wantNoError(t, err)
	if gone[5001].Managed {
		t.Fatal("it is still there")
	}
	wantNoError(t, h.AddHA(ctx, ct, before[5001].Fields))
	after, err := h.HA(ctx)
	wantNoError(t, err)
	for key, value := range before[5001].Fields {
		if after[5001].Fields[key] != value {
			t.Errorf("%s was %q, is %q", key, value, after[5001].Fields[key])
		}
	}
	var rule fields
	wantNoError(t, h.ask(ctx, "read the rule", guest.Ref{}, "/cluster/ha/rules/r1", nil, &rule))
	if !strings.Contains(rule["resources"], "ct:5001") {
		t.Errorf("the rule lost its guest: %v", rule)
	}
}

func TestSurroundings(t *testing.T) {
	ctx := context.Background()
	h, s := simulated(t)
	c := s.Cluster()
	c.AddPool("prod", 5001)
	c.AddReplication("5002-0", "pve2")
	next := time.Now().Add(time.Hour)
	c.AddBackupJob("named", map[string]string{"vmid": "5001,5002", "storage": "local"}, next)
	c.AddBackupJob("pooled", map[string]string{"pool": "prod", "storage": "local"}, next)
	c.AddBackupJob("off", map[string]string{"all": "1", "enabled": "0", "storage": "local"}, next)
	c.AddVnet("dhcp", "vnet0", "10.0.0.0/24", "10.0.0.10", "10.0.0.20")
	c.AddContainer(pvesim.ContainerSpec{VMID: 5003, Config: map[string]string{"rootfs": "local:1", "net0": "name=eth0,bridge=vnet0,hwaddr=02:00:00:00:50:03,ip=dhcp"}})

	login, err := h.Login(ctx)
	wantNoError(t, err)
	if login.User != "root@pam!lab" || login.RootTicket || login.Version == "" {
		t.Errorf("%+v", login)
	}
	online, quorate, err := h.Nodes(ctx)
	wantNoError(t, err)
	if len(online) != 2 || !online["pve1"] || !quorate {
		t.Errorf("%v %v", online, quorate)
	}
	pools, err := h.Pools(ctx)
	wantNoError(t, err)
	if len(pools) != 1 || pools[5001] != "prod" {
		t.Errorf("%v", pools)
	}
	replicated, err := h.Replicated(ctx)
	wantNoError(t, err)
	if len(replicated) != 1 || !replicated[5002] {
		t.Errorf("%v", replicated)
	}
	jobs, err := h.BackupJobs(ctx)
	wantNoError(t, err)
	slices.SortFunc(jobs, func(a, b guest.BackupJob) int { return strings.Compare(a.ID, b.ID) })
	if len(jobs) != 2 || jobs[0].NextRun != next.Unix() || !jobs[0].Reaches(5001, "pve1", "") || jobs[0].Reaches(900000, "pve1", "") ||
		!slices.Equal(jobs[1].Covers, []guest.VMID{5001}) || !jobs[1].Reaches(900000, "pve1", "prod") {
		t.Errorf("%+v", jobs)
	}
	leases, err := h.Leases(ctx)
	wantNoError(t, err)
	if len(leases) != 1 || leases[0].MAC != "02:00:00:00:50:03" || leases[0].VNet != "vnet0" || leases[0].Zone != "dhcp" || leases[0].IP == "" {
		t.Errorf("%+v", leases)
	}
	zones, err := h.Zones(ctx)
	wantNoError(t, err)
	if zones["vnet0"] != "dhcp" {
		t.Errorf("%v", zones)
	}
	c.SetOption("user-tag-access", "user-allow=existing")
	options, err := h.ClusterOptions(ctx)
	wantNoError(t, err)
	if !strings.Contains(options["user-tag-access"], "user-allow=existing") {
		t.Errorf("%v", options)
	}
	next2, err := h.NextVMID(ctx, 5001)
	wantNoError(t, err)
	if next2 != 5004 {
		t.Errorf("next %d", next2)
	}
	taken, err := h.VMIDTaken(ctx, 5001)
	wantNoError(t, err)
	if !taken {
		t.Error("5001 is taken")
	}
	storages, err := h.Storages(ctx, "pve1")
	wantNoError(t, err)
	if i := slices.IndexFunc(storages, func(s guest.Storage) bool { return s.Name == "tank" }); i < 0 || storages[i].Type != guest.StorageLVMThin || !storages[i].Has("rootdir") || !storages[i].Enabled || storages[i].Total <= 0 {
		t.Errorf("%+v", storages)
	}
	definition, err := h.StorageConfig(ctx, "tank")
	wantNoError(t, err)
	if definition["vgname"] != "pve" {
		t.Errorf("%v", definition)
	}
	_, err = h.StorageConfig(ctx, "nostore")
	wantOutcome(t, err, guest.OutcomeMissing)
	wantNoError(t, h.AddToPool(ctx, "prod", 5002, false))
	wantNoError(t, h.AddToPool(ctx, "prod", 5002, false))
	if c.PoolOf(5002) != "prod" {
		t.Error("it is not in the pool")
	}
	listed, err := h.Guests(ctx)
	wantNoError(t, err)
	if len(listed) != 4 {
		t.Errorf("%+v", listed)
	}
	_, err = h.Config(ctx, guest.Ref{VMID: 5001, Kind: guest.KindContainer, Node: "pve2"})
	wantOutcome(t, err, guest.OutcomeMissing)
}

func TestMachineOfANode(t *testing.T) {
	h, s := simulated(t)
	c := s.Cluster()
	for _, want := range []string{"x86_64", "aarch64"} {
		c.SetMachine("pve1", want)
		if machine, err := h.Machine(context.Background(), "pve1"); err != nil || machine != want {
			t.Errorf("%q, %v", machine, err)
		}
	}
	_, err := h.Machine(context.Background(), "nowhere")
	if err == nil {
		t.Error("a node that is not there has a processor")
	}
}

// B11: what a token may not see reads as empty; the entries it sees say whether it could grant them again.
func TestB11ACLSaysWhatCanBeGrantedAgain(t *testing.T) {
	ctx := context.Background()
	_, s := simulated(t)
	c := s.Cluster()
	c.AddACL("/vms/5001", "user", "alice@pve", "PVEVMUser", true)
	c.AddRole("Deep", "VM.Audit", "VM.Console", "Permissions.Modify")
	c.AddACL("/vms/5001", "group", "ops", "Deep", false)
	enough := []string{"VM.Allocate", "VM.Audit", "VM.Backup", "VM.Config.CDROM", "VM.Config.Cloudinit", "VM.Console", "VM.GuestAgent.Audit", "VM.PowerMgmt"}
	for _, who := range []struct {
		name   string
		privs  map[string][]string
		wantOK map[string]bool // role -> can be restored
	}{
		{"owner of all", nil, map[string]bool{"PVEVMUser": true, "Deep": true}},
		{"what it takes, on /vms", map[string][]string{"/vms": enough, "/access": {"Sys.Audit"}}, map[string]bool{"PVEVMUser": true, "Deep": false}},
		{"what it takes, on the guest alone", map[string][]string{"/vms/5001": enough, "/access": {"Sys.Audit"}}, map[string]bool{"PVEVMUser": false, "Deep": false}},
		{"too little", map[string][]string{"/vms": {"VM.Allocate", "VM.Audit"}, "/access": {"Sys.Audit"}}, map[string]bool{"PVEVMUser": false, "Deep": false}},
	} {
		t.Run(who.name, func(t *testing.T) {
			world := pvesim.NewServer(c.Clone())
			user := "ci@pve"
			if who.privs == nil {
				user = "root@pam"
			}
			h := hostOver(t, world, func(set *Settings) { set.APIToken = world.Cluster().AddToken(user, "x1", who.privs) })
			entries, err := h.ACL(ctx)
			wantNoError(t, err)
			for role, want := range who.wantOK {
				i := slices.IndexFunc(entries, func(e guest.ACLEntry) bool { return e.Role == role })
				if i < 0 {
					t.Fatalf("%s is not listed: %+v", role, entries)
				}
				e := entries[i]
				if e.CanRestore != want || (e.Missing == "") != want {
					t.Errorf("%+v", e)
				}
				if want {
					wantNoError(t, h.Grant(ctx, e))
				}
			}
		})
	}
}

// A restricted token reads its own rights; what it may not read is a denial and no empty answer.
func TestRestrictedToken(t *testing.T) {
	ctx := context.Background()
	_, s := simulated(t)
	h := hostOver(t, s, func(set *Settings) {
		set.APIToken = s.Cluster().AddToken("ci@pve", "pvrx", map[string][]string{"/vms/5001": {"VM.Audit"}})
	})
	held, err := h.Permissions(ctx, "/vms/5001")
	wantNoError(t, err)
	if _, ok := held["VM.Audit"]; !ok || len(held) != 1 {
		t.Errorf("%v", held)
	}
	none, err := h.Permissions(ctx, "/vms/5002")
	wantNoError(t, err)
	if len(none) != 0 {
		t.Errorf("%v", none)
	}
	online, _, err := h.Nodes(ctx)
	wantNoError(t, err)
	if !online["pve1"] {
		t.Errorf("%v", online)
	}
	for name, err := range map[string]error{
		"config of another": func() error { _, err := h.Config(ctx, other); return err }(),
		"HA":                func() error { _, err := h.HA(ctx); return err }(),
		"backup jobs":       func() error { _, err := h.BackupJobs(ctx); return err }(),
		"content":           func() error { _, err := h.Content(ctx, "pve1", "local", 0); return err }(),
		"change":            h.SetConfig(ctx, ct, map[string]string{"cores": "2"}, nil, ""),
	} {
		if err == nil || guest.OutcomeOf(err) != guest.OutcomeDenied || !strings.Contains(err.Error(), "Permission check failed") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPasswordLoginOfRoot(t *testing.T) {
	ctx := context.Background()
	_, s := simulated(t)
	s.Cluster().SetPassword("root@pam", testPassword)
	byPassword := func(user string) *Host {
		return hostOver(t, s, func(set *Settings) { set.APIToken, set.Username, set.Password = "", user, testPassword })
	}
	h := byPassword("root")
	login, err := h.Login(ctx)
	wantNoError(t, err)
	if login.User != "root@pam" || !login.RootTicket {
		t.Errorf("%+v", login)
	}
	wantNoError(t, h.SetConfig(ctx, ct, map[string]string{"mp7": "/srv/media,mp=/media"}, nil, digestOf(t, h, ct)))
	s.Cluster().AddUser("eve@pve", testPassword, "123456")
	_, err = byPassword("eve@pve").Login(ctx)
	wantOutcome(t, err, guest.OutcomeDenied)
}
