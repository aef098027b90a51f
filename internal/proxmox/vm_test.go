package proxmox

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
)

const simImage = "local:import/debian-13-genericcloud-amd64.qcow2"

var (
	oldVM   = guest.Ref{VMID: 7131, Kind: guest.KindVM, Node: "pve1"}
	spareVM = guest.Ref{VMID: 907131, Kind: guest.KindVM, Node: "pve1"}
)

// simulatedVMs returns a host over a simulated cluster: VM 7131 with a system disk, a data disk and a cloud-init drive, off,
// and VM 907131 without disks.
func simulatedVMs(t testing.TB) (*Host, *pvesim.Server) {
	t.Helper()
	c := pvesim.NewCluster(pvesim.Options{Nodes: []string{"pve1", "pve2"}})
	c.AddStorage(pvesim.StorageSpec{ID: "local", Type: "dir", Content: []string{"images", "import", "iso", "backup"}})
	c.AddStorage(pvesim.StorageSpec{ID: "tank", Type: "zfspool"})
	wantNoError(t, c.AddImage("pve1", simImage, 300<<20, 3<<30, map[string]string{"/etc/os-release": "VERSION_ID=13"}))
	c.AddVM(pvesim.VMSpec{
		VMID: 7131,
		Config: map[string]string{
			"name": "id01", "agent": "1", "boot": "order=scsi0", "scsihw": "virtio-scsi-single",
			"scsi0": "tank:8,discard=on", "scsi2": "tank:40,discard=on,iothread=1,serial=IDDATA,ssd=1", "net0": "virtio=BC:24:11:00:71:31,bridge=vmbr0",
		},
		Files: map[string]map[string]string{"scsi2": {"/var/lib/id": "the only copy"}},
	})
	wantNoError(t, c.AddVolume("pve1", "tank:vm-7131-cloudinit", 4<<20))
	c.SetConfig(7131, "ide0", "tank:vm-7131-cloudinit,media=cdrom")
	c.AddVM(pvesim.VMSpec{VMID: 907131, Config: map[string]string{"name": "pvrx-parking-7131"}})
	s := pvesim.NewServer(c)
	h := hostOver(t, s, func(set *Settings) { set.APIToken = c.AddToken("root@pam", "lab", nil) })
	return h, s
}

func handOver(t testing.TB, h *Host, s *pvesim.Server, key string) guest.Move {
	t.Helper()
	return guest.Move{
		From: oldVM, To: spareVM, FromKey: key, ToKey: key, Volume: volumeOf(t, s, 7131, key),
		FromDigest: digestOf(t, h, oldVM), ToDigest: digestOf(t, h, spareVM),
	}
}

func TestMovedDiskKeepsDataAndOptions(t *testing.T) {
	t.Parallel()
	h, s := simulatedVMs(t)
	before, _ := s.Cluster().Volume(s.Cluster().VolumeOf(7131, "scsi2"))
	_, options, _ := strings.Cut(s.Cluster().Config(7131)["scsi2"], ",")
	wantNoError(t, h.MoveVolume(context.Background(), handOver(t, h, s, "scsi2")))
	after, _ := s.Cluster().Volume(s.Cluster().VolumeOf(907131, "scsi2"))
	if before.Identity == "" || after.Identity != before.Identity || after.Content["/var/lib/id"] != "the only copy" {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if value := s.Cluster().Config(907131)["scsi2"]; !strings.HasSuffix(value, ","+options) {
		t.Errorf("%q, want the options %q", value, options)
	}
	if value, there := s.Cluster().Config(7131)["scsi2"]; there {
		t.Errorf("VM 7131 still names %q", value)
	}
}

// Both digests bind a move, in our own look and in Proxmox's: whoever changes either VM in between makes it refuse.
func TestMovedDiskIsBoundToBothDigests(t *testing.T) {
	t.Parallel()
	for _, id := range []int{7131, 907131} {
		h, s := simulatedVMs(t)
		m := handOver(t, h, s, "scsi2")
		s.Cluster().SetConfig(id, "memory", "1024")
		wantOutcome(t, h.MoveVolume(context.Background(), m), guest.OutcomeConflict)
		if got := changes(s); len(got) != 0 {
			t.Errorf("VM %d changed before the look: sent %v", id, got)
		}

		h, s = simulatedVMs(t)
		m = handOver(t, h, s, "scsi2")
		s.Inject(pvesim.Fault{Kind: pvesim.FaultWorld, Method: http.MethodPost, Path: "/move_disk$", World: func(c *pvesim.Cluster) {
			c.SetConfig(id, "memory", "1024")
		}})
		wantOutcome(t, h.MoveVolume(context.Background(), m), guest.OutcomeConflict)
		if s.Cluster().VolumeOf(7131, "scsi2") == "" || s.FaultsStruck() != 1 {
			t.Errorf("VM %d changed after the look: %v", id, s.Cluster().Config(7131))
		}
	}
}

// A key of the target that is in use, a running source and a disk in a snapshot: nothing is moved.
func TestMovedDiskRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*pvesim.Cluster)
		want  guest.Outcome
		sent  int
	}{
		"the target's key is in use": {func(c *pvesim.Cluster) { c.SetConfig(907131, "scsi2", "none,media=cdrom") }, guest.OutcomeTaken, 0},
		"the source runs":            {func(c *pvesim.Cluster) { c.SetRunning(7131, true) }, guest.OutcomeRefused, 1},
		"a snapshot uses it":         {func(c *pvesim.Cluster) { c.Snapshot(7131, "daily") }, guest.OutcomeRefused, 1},
		"it stands under two keys":   {func(c *pvesim.Cluster) { c.SetRawConfig(7131, "sata1", c.VolumeOf(7131, "scsi2")) }, guest.OutcomeRefused, 0},
		"the source is locked":       {func(c *pvesim.Cluster) { c.Lock(7131, "backup") }, guest.OutcomeLocked, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, s := simulatedVMs(t)
			c.spoil(s.Cluster())
			volume := s.Cluster().VolumeOf(7131, "scsi2")
			ctx := guest.WithPatience(context.Background(), time.Millisecond)
			wantOutcome(t, h.MoveVolume(ctx, handOver(t, h, s, "scsi2")), c.want)
			if got := changes(s); len(got) < c.sent || c.sent == 0 && len(got) > 0 {
				t.Errorf("sent %v", got)
			}
			if s.Cluster().VolumeOf(7131, "scsi2") != volume {
				t.Errorf("it is %q", s.Cluster().Config(7131)["scsi2"])
			}
		})
	}
}

func TestCreateVM(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h, s := simulatedVMs(t)
	fresh := guest.Ref{VMID: 9131, Kind: guest.KindVM, Node: "pve1"}
	params := map[string]string{
		"name": "id01", "onboot": "0", "scsi0": "tank:0,import-from=" + simImage + ",discard=on", "scsi1": "tank:64", "ide0": "tank:cloudinit",
		"ide2": "none,media=cdrom",
	}
	_, err := h.CreateVM(ctx, fresh, params)
	wantNoError(t, err)
	made := s.Cluster().Config(9131)
	system, _ := s.Cluster().Volume(s.Cluster().VolumeOf(9131, "scsi0"))
	if s.Cluster().Running(9131) || system.Content["/etc/os-release"] != "VERSION_ID=13" || !strings.Contains(made["scsi0"], "discard=on") || !strings.Contains(made["scsi1"], "size=64G") {
		t.Errorf("running %v, %v", s.Cluster().Running(9131), made)
	}
	_, err = h.CreateVM(ctx, fresh, params)
	wantOutcome(t, err, guest.OutcomeTaken)
	if now := s.Cluster().Config(9131); !maps.Equal(now, made) {
		t.Errorf("the second create changed %v to %v", made, now)
	}
}

// What would take somebody's disk, start the VM or forge a state is not sent.
func TestCreateVMRefusesWhatItNeverMeans(t *testing.T) {
	t.Parallel()
	h, s := simulatedVMs(t)
	existing := s.Cluster().VolumeOf(7131, "scsi2")
	for key, value := range map[string]string{
		"scsi0": existing, "virtio0": "file=" + existing + ",discard=on", "ide2": existing + ",media=disk", "unused0": existing, "efidisk0": existing + ",efitype=4m",
		"sata0": "/dev/sda", "start": "1", "ha-managed": "1", "lock": "create", "template": "1", "archive": "local:backup/x.vma", "vmid": "7131", "parent": "x",
	} {
		_, err := h.CreateVM(context.Background(), guest.Ref{VMID: 9131, Kind: guest.KindVM, Node: "pve1"}, map[string]string{key: value})
		if guest.OutcomeOf(err) != guest.OutcomeRefused || err == nil {
			t.Errorf("%s=%s: %v", key, value, err)
		}
	}
	for _, ref := range []guest.Ref{ct, {VMID: 9131, Kind: guest.KindVM}, {Kind: guest.KindVM, Node: "pve1"}} {
		if _, err := h.CreateVM(context.Background(), ref, nil); err == nil {
			t.Errorf("%+v is taken", ref)
		}
	}
	if got := changes(s); len(got) != 0 {
		t.Errorf("sent %v", got)
	}
}

// A create whose answer is lost is sent once, and its end is found.
func TestCreateVMWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	h, s := simulatedVMs(t)
	s.Inject(pvesim.Fault{Kind: pvesim.FaultLoseAnswer, Method: http.MethodPost, Path: "/qemu$"})
	_, err := h.CreateVM(context.Background(), guest.Ref{VMID: 9131, Kind: guest.KindVM, Node: "pve1"}, map[string]string{"name": "id01", "scsi0": "tank:8"})
	wantNoError(t, err)
	if got := changes(s); len(got) != 1 || s.Cluster().VolumeOf(9131, "scsi0") == "" {
		t.Errorf("sent %v, made %v", got, s.Cluster().Config(9131))
	}
}

// A removed drive becomes an unused entry; a digest that is not the VM's is a conflict, and nothing changes; what would destroy a
// volume is not sent.
func TestChangeVM(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h, s := simulatedVMs(t)
	before := s.Cluster().Config(7131)
	_, err := h.ChangeVM(ctx, oldVM, map[string]string{"boot": "order=net0"}, []string{"scsi0"}, strings.Repeat("0", 40))
	wantOutcome(t, err, guest.OutcomeConflict)
	if now := s.Cluster().Config(7131); !maps.Equal(now, before) {
		t.Errorf("a conflict changed %v to %v", before, now)
	}
	_, err = h.ChangeVM(ctx, oldVM, map[string]string{"boot": "order=net0", "scsi1": "tank:4"}, []string{"scsi0"}, digestOf(t, h, oldVM))
	wantNoError(t, err)
	now := s.Cluster().Config(7131)
	old, _, _ := strings.Cut(before["scsi0"], ",")
	if now["unused0"] != old || now["scsi0"] != "" || now["boot"] != "order=net0" || !strings.Contains(now["scsi1"], "size=4G") {
		t.Errorf("%v", now)
	}
	sent := len(changes(s))
	for _, err := range []error{
		func() error {
			_, err := h.ChangeVM(ctx, oldVM, nil, []string{"unused0"}, digestOf(t, h, oldVM))
			return err
		}(),
		func() error {
			_, err := h.ChangeVM(ctx, oldVM, map[string]string{"memory": "1024"}, nil, "")
			return err
		}(),
		func() error {
			_, err := h.ChangeVM(ctx, ct, map[string]string{"memory": "1024"}, nil, "x")
			return err
		}(),
	} {
		wantOutcome(t, err, guest.OutcomeRefused)
	}
	if _, err := h.ChangeVM(ctx, oldVM, nil, nil, "x"); err != nil || len(changes(s)) != sent {
		t.Errorf("nothing to change: %v, sent %v", err, changes(s)[sent:])
	}
}

// On a running VM the removal waits for the next stop, whatever the task says; reverting takes it back.
func TestC13VMRemovalThatWaitsIsSeenAndReverted(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h, s := simulatedVMs(t)
	s.Cluster().SetRunning(7131, true)
	before := s.Cluster().Config(7131)
	_, _ = h.ChangeVM(ctx, oldVM, nil, []string{"scsi0"}, digestOf(t, h, oldVM)) // OK or not proves nothing
	waiting, err := h.Pending(ctx, oldVM)
	wantNoError(t, err)
	var keys []string
	for _, c := range waiting {
		keys = append(keys, c.Key)
	}
	if !slices.Contains(keys, "scsi0") { // and the boot order with it
		t.Fatalf("pending: %+v", waiting)
	}
	wantOutcome(t, h.Revert(ctx, oldVM, keys, strings.Repeat("0", 40)), guest.OutcomeConflict)
	wantOutcome(t, h.Revert(ctx, oldVM, keys, ""), guest.OutcomeRefused)
	wantOutcome(t, h.Revert(ctx, oldVM, nil, digestOf(t, h, oldVM)), guest.OutcomeRefused)
	wantNoError(t, h.Revert(ctx, oldVM, keys, digestOf(t, h, oldVM)))
	if waiting, err := h.Pending(ctx, oldVM); err != nil || len(waiting) != 0 {
		t.Errorf("pending after the revert: %+v, %v", waiting, err)
	}
	s.Cluster().SetRunning(7131, false)
	if now := s.Cluster().Config(7131); now["scsi0"] != before["scsi0"] {
		t.Errorf("scsi0 is %q and was %q", now["scsi0"], before["scsi0"])
	}
}

func TestSnapshotOfAVM(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h, s := simulatedVMs(t)
	disk := s.Cluster().VolumeOf(7131, "scsi2")
	wantNoError(t, h.TakeSnapshot(ctx, oldVM, "pvrx-op", "kept disks only"))
	list, err := h.Snapshots(ctx, oldVM)
	wantNoError(t, err)
	if len(list) != 1 || list[0].Name != "pvrx-op" || list[0].Config.Values["vmstate"] != "" {
		t.Errorf("%+v", list)
	}
	if err := h.TakeSnapshot(ctx, oldVM, "pvrx-op", "again"); err == nil {
		t.Error("a second one of that name is taken")
	}
	wantNoError(t, s.Cluster().WriteVolume(disk, "/var/lib/id", "migrated"))
	wantNoError(t, h.RollbackSnapshot(ctx, oldVM, "pvrx-op"))
	if v, _ := s.Cluster().Volume(disk); v.Content["/var/lib/id"] != "the only copy" || s.Cluster().Running(7131) {
		t.Errorf("it holds %v, running %v", v.Content, s.Cluster().Running(7131))
	}
	wantNoError(t, h.DeleteSnapshot(ctx, oldVM, "pvrx-op"))
	if err := h.RollbackSnapshot(ctx, oldVM, "pvrx-op"); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("a snapshot that is gone: %v", err)
	}
	sent := len(changes(s))
	for _, name := range []string{"", "current"} {
		wantOutcome(t, h.RollbackSnapshot(ctx, oldVM, name), guest.OutcomeRefused)
	}
	if len(changes(s)) != sent {
		t.Errorf("sent %v", changes(s)[sent:])
	}
}

func TestRegenerateCloudInitAndPing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h, s := simulatedVMs(t)
	wantNoError(t, h.RegenerateCloudInit(ctx, oldVM))
	if got := changes(s); len(got) != 1 || got[0] != "PUT /nodes/pve1/qemu/7131/cloudinit" {
		t.Errorf("sent %v", got)
	}
	if err := h.PingAgent(ctx, oldVM); err == nil || !strings.Contains(err.Error(), "not running") {
		t.Errorf("off: %v", err)
	}
	s.Cluster().SetRunning(7131, true)
	wantNoError(t, h.PingAgent(ctx, oldVM))
	s.Cluster().SetRunning(907131, true)
	if err := h.PingAgent(ctx, spareVM); err == nil {
		t.Error("a VM without an agent answers")
	}
	wantOutcome(t, h.PingAgent(ctx, guest.Ref{VMID: 7999, Kind: guest.KindVM, Node: "pve1"}), guest.OutcomeMissing)
}

// A job names the new VM in the place of the old one, once; one that does not name it, or covers all, is left as it is.
func TestRenameInBackupJob(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h, s := simulatedVMs(t)
	for id, covers := range map[string]string{"both": "5002,7131,7200", "already": "7131,9131", "others": "5002"} {
		s.Cluster().AddBackupJob(id, map[string]string{"vmid": covers, "storage": "local", "schedule": "03:00"}, time.Time{})
	}
	s.Cluster().AddBackupJob("all", map[string]string{"all": "1", "storage": "local", "schedule": "03:00"}, time.Time{})
	for _, id := range []string{"both", "already", "others", "all"} {
		wantNoError(t, h.RenameInBackupJob(ctx, id, 7131, 9131))
	}
	jobs, err := h.BackupJobs(ctx)
	wantNoError(t, err)
	want := map[string][]guest.VMID{"both": {5002, 7200, 9131}, "already": {9131}, "others": {5002}}
	for _, job := range jobs {
		covers, named := want[job.ID]
		if !named {
			if !job.All {
				t.Errorf("%+v", job)
			}
			continue
		}
		for _, id := range covers {
			if len(job.Covers) != len(covers) || !slices.Contains(job.Covers, id) {
				t.Errorf("%s covers %v, want %v", job.ID, job.Covers, covers)
			}
		}
	}
	if got := changes(s); len(got) != 2 {
		t.Errorf("sent %v", got)
	}
	if err := h.RenameInBackupJob(ctx, "none", 7131, 9131); err == nil {
		t.Error("a job that is not there is renamed")
	}
	mere := hostOver(t, s, func(set *Settings) {
		set.APIToken = s.Cluster().AddToken("ci@pve", "x2", map[string][]string{"/": {"Sys.Audit"}, "/vms": {"VM.Audit"}})
	})
	wantOutcome(t, mere.RenameInBackupJob(ctx, "both", 9131, 7131), guest.OutcomeDenied)
}

// recordedParams takes the parameters of a recording apart.
func (r recorded) recordedParams() map[string]string {
	params := map[string]string{}
	for _, part := range strings.Fields(r.Params) {
		if key, value, ok := strings.Cut(part, "="); ok {
			params[key] = value
		}
	}
	return params
}

func recordedVMID(text string) guest.VMID {
	id, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return guest.VMID(id)
}

// asMethod makes the recorded change by the port's own method for it; made is false for a change that no method of VMs makes.
func asMethod(ctx context.Context, h *Host, r recorded) (made bool, err error) {
	params := r.recordedParams()
	ref, below, isGuest := r.ref()
	switch {
	case r.Method == http.MethodPost && strings.HasSuffix(r.Path, "/qemu") && params["archive"] == "":
		id := recordedVMID(params["vmid"])
		delete(params, "vmid")
		_, err = h.CreateVM(ctx, guest.Ref{VMID: id, Kind: guest.KindVM, Node: "pve"}, params)
		return true, err
	case !isGuest || ref.Kind != guest.KindVM:
		return false, nil
	case r.Method == http.MethodPost && below == "/config" && !strings.HasPrefix(params["delete"], "unused"):
		var remove []string
		if list := params["delete"]; list != "" {
			remove = strings.Split(list, ",")
		}
		delete(params, "delete")
		_, err = h.ChangeVM(ctx, ref, params, remove, "d")
	case r.Method == http.MethodPost && below == "/snapshot" && params["vmstate"] == "":
		err = h.TakeSnapshot(ctx, ref, params["snapname"], params["description"])
	case r.Method == http.MethodPost && strings.HasSuffix(below, "/rollback"):
		err = h.RollbackSnapshot(ctx, ref, strings.Split(below, "/")[2])
	case r.Method == http.MethodPost && below == "/agent/ping":
		err = h.PingAgent(ctx, ref)
	case r.Method == http.MethodPost && below == "/move_disk" && params["target-disk"] != "" && params["digest"] == "":
		to := ref
		if to.VMID = recordedVMID(params["target-vmid"]); to.VMID == ref.VMID {
			return false, nil
		}
		volume, _ := guest.ParseVolumeID("local:" + ref.VMID.String() + "/vm-" + ref.VMID.String() + "-disk-9.qcow2")
		err = h.MoveVolume(ctx, guest.Move{
			From: ref, To: to, FromKey: params["disk"], ToKey: params["target-disk"], Volume: volume, FromDigest: "d", ToDigest: "d",
		})
	default:
		return false, nil
	}
	return true, err
}

// Every recorded change of a VM that the port can make is made by its own method and ends as it was recorded: the refusal with
// its outcome, the task as its exit status says.
func TestRecordedVMChangesEndAsRecorded(t *testing.T) {
	t.Parallel()
	good, bad := 0, 0
	for _, r := range recordings(t) {
		if r.Method == http.MethodGet || r.Method == http.MethodDelete {
			continue
		}
		h, _ := scripted(t, func(s sent) answer {
			switch {
			case s.Method == http.MethodGet && strings.HasSuffix(s.Path, "/log"):
				return data("[]")
			case s.Method == http.MethodGet && strings.HasSuffix(s.Path, "/status"):
				return data(`{"status":"stopped","exitstatus":` + mustJSON(t, r.Exit) + `}`)
			case s.Method == http.MethodGet && strings.HasSuffix(s.Path, "/config"):
				id := strings.Split(s.Path, "/")[4]
				if disk := r.recordedParams()["disk"]; disk != "" && strings.Contains(r.Path, "/"+id+"/") {
					return data(`{"digest":"d",` + mustJSON(t, disk) + `:"local:` + id + `/vm-` + id + `-disk-9.qcow2"}`)
				}
				return data(`{"digest":"d"}`)
			case s.Method == http.MethodGet && strings.HasSuffix(s.Path, "/content"):
				ref, _, _ := r.ref()
				return data(`[{"volid":"local:` + ref.VMID.String() + `/vm-` + ref.VMID.String() + `-disk-9.qcow2","vmid":` + ref.VMID.String() + `,"content":"images","format":"qcow2","size":1073741824}]`)
			case s.Method == http.MethodGet:
				return data("[]")
			}
			return answer{status: r.code(), body: string(r.Body)}
		})
		made, err := asMethod(guest.WithPatience(context.Background(), time.Millisecond), h, r)
		if !made {
			continue
		}
		switch {
		case !r.ok():
			bad++
			if want := recordedOutcome(r); err == nil || guest.OutcomeOf(err) != want {
				t.Errorf("%s:%d: %s %s %s: %v, want %s", r.file, r.line, r.Method, r.Path, r.Params, err, want)
			}
		case r.Exit == "OK" || strings.HasPrefix(r.Exit, "WARNINGS"):
			good++
			if err != nil {
				t.Errorf("%s:%d: %s %s %s: %v", r.file, r.line, r.Method, r.Path, r.Params, err)
			}
		default:
			bad++
			if words := strings.Fields(r.Exit); err == nil || !strings.Contains(err.Error(), words[len(words)-1]) {
				t.Errorf("%s:%d: %s %s %s: %v, want %q", r.file, r.line, r.Method, r.Path, r.Params, err, r.Exit)
			}
		}
	}
	t.Logf("%d recorded changes of VMs go through by their own method, %d fail as they did", good, bad)
	if good < 25 || bad < 12 {
		t.Errorf("only %d and %d were compared", good, bad)
	}
}
