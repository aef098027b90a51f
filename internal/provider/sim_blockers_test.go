package provider

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
)

func itoa(n int) string { return strconv.Itoa(n) }

// blockerCase is a world in which the demo container must not be reinstalled.
type blockerCase struct {
	code preview.Code
	// world makes it so.
	world func(s *simulation)
	// arguments of the block beside template and drop; main replaces the whole configuration.
	arguments []string
	main      string
	provider  []string
	inState   bool
	says      []string
}

const web = pvesim.DemoWeb

// blockerCases has a row for every code that a container can be blocked by.
func blockerCases() []blockerCase {
	return []blockerCase{
		{code: preview.CodeGuestMissing, inState: true, world: func(s *simulation) { s.world.RemoveGuest(web) }},
		{
			code: preview.CodeGuestWrongType, inState: true, world: func(s *simulation) {
				s.world.RemoveGuest(web)
				s.world.AddVM(pvesim.VMSpec{VMID: web, Config: map[string]string{"name": "web1"}})
			},
		},
		{
			code: preview.CodeNameMismatch, main: importOf("web1", web) + block("web1", web, "db3", template(pvesim.DemoTemplate13)),
			says: []string{"web1", "db3"},
		},
		{
			code: preview.CodeDuplicate, main: importOf("web1", web) + web1Block() + importOf("again", web) +
				strings.Replace(web1Block(), `"web1" {`, `"again" {`, 1),
		},
		{code: preview.CodeProtected, world: func(s *simulation) { s.world.Protect(web, true) }},
		{code: preview.CodeLocked, world: func(s *simulation) { s.world.Lock(web, "backup") }, says: []string{"backup"}},
		{
			code: preview.CodeTaskRunning, world: func(s *simulation) { s.world.StartTask("pve1", "vzdump", itoa(web), "root@pam") },
			says: []string{"vzdump"},
		},
		{code: preview.CodeProtectedBackup, world: func(s *simulation) { s.world.Backup(web, "backup", "golden", true) }},
		{
			code: preview.CodeRootfsShrink, arguments: []string{`rootfs = { size = "8GiB" }`},
			says: []string{"9126805504", "8589934592"},
		},
		{
			code: preview.CodeVolumeShared, world: func(s *simulation) {
				s.world.SetConfig(pvesim.DemoPlain, "mp0", s.world.VolumeOf(web, "mp0")+",mp=/stolen")
			}, says: []string{"5003"},
		},
		{
			code: preview.CodeMountUnclassified, world: func(s *simulation) {
				s.world.SetRawConfig(web, "mp7", s.world.VolumeOf(web, "mp0")+",mp=/twice")
			}, says: []string{"mp0", "mp7"},
		},
		{
			code: preview.CodeStorageUnavailable, world: func(s *simulation) {
				s.world.AddStorage(pvesim.StorageSpec{ID: "tank", Type: "zfspool", Unreachable: true, Options: map[string]string{"pool": "tank/guests"}})
			}, says: []string{"tank"},
		},
		{
			code: preview.CodeNotPreservable, world: func(s *simulation) {
				s.world.AddStorage(pvesim.StorageSpec{ID: "folder", Type: "dir", Options: map[string]string{"path": "/srv/folder"}})
				s.world.SetRights("pvrx@pve!demo", "/storage/folder", pvesim.DemoRights()["/storage/tank"]...)
				if err := s.world.AddVolume("pve1", "folder:5001/subvol-5001-disk-4.subvol", 1<<30); err != nil {
					s.t.Fatal(err)
				}
				s.world.SetRawConfig(web, "mp4", "folder:5001/subvol-5001-disk-4.subvol,mp=/srv/folder,size=0T")
			}, says: []string{"mp4", "erase"},
		},
		{code: preview.CodeEraseMismatch, arguments: []string{`erase = { mp0 = "tank:subvol-5001-disk-9" }`}, says: []string{"tank:subvol-5001-disk-0"}},
		{
			code: preview.CodeNotRecreatable, main: importOf("web1", web) + block("web1", web, "web1", template(pvesim.DemoTemplate13)),
			says: []string{"mp2", "drop"},
		},
		{code: preview.CodeSnapshotsPresent, world: func(s *simulation) { s.world.Snapshot(web, "before-upgrade") }, says: []string{"before-upgrade", "allow"}},
		{code: preview.CodeHAManaged, world: func(s *simulation) { s.world.AddHA(web, map[string]string{"state": "started"}) }, says: []string{"allow"}},
		{code: preview.CodeReplicated, world: func(s *simulation) { s.world.AddReplication("5001-0", "pve2") }},
		{
			code: preview.CodeBackupWindow, world: func(s *simulation) {
				s.world.AddBackupJob("soon", map[string]string{"vmid": itoa(web), "storage": "backup", "schedule": "*:0/30"}, time.Now().Add(20*time.Minute))
			}, says: []string{"soon", "allow"},
		},
		{
			code: preview.CodeBackupLimit, arguments: []string{`backup = { storage = "backup" }`}, world: func(s *simulation) {
				s.world.AddStorage(pvesim.StorageSpec{
					ID: "backup", Type: "dir", Content: []string{"backup"}, Total: 4 << 40,
					Options: map[string]string{"path": "/srv/backup", "max-protected-backups": "0"},
				})
			}, says: []string{"backup"},
		},
		{
			code: preview.CodeTemplateMissing, main: importOf("web1", web) + block("web1", web, "web1",
				template("local:vztmpl/debian-99-standard_99.1-1_amd64.tar.zst"), `drop = ["mp2"]`), says: []string{"debian-99"},
		},
		{code: preview.CodeSpace, arguments: []string{`rootfs = { size = "3TiB" }`}, says: []string{"local-lvm"}},
		{code: preview.CodeIsTemplate, world: func(s *simulation) { s.world.SetRunning(web, false); s.world.SetRawConfig(web, "template", "1") }},
		{code: preview.CodePendingChanges, world: func(s *simulation) { s.world.SetPending(web, "memory", "4096", false) }, says: []string{"memory"}},
		{code: preview.CodeNotesTooLong, world: func(s *simulation) { s.world.SetConfig(web, "description", strings.Repeat("x", 8000)) }, says: []string{"8000"}},
		{code: preview.CodeNodeOffline, inState: true, world: func(s *simulation) { s.elsewhere(); s.world.SetNodeOnline("pve2", false) }},
		{code: preview.CodeNoQuorum, world: func(s *simulation) { s.world.SetQuorum(false) }},
		{
			code: preview.CodeRunningInsideTarget, world: func(s *simulation) {
				s.world.SetConfig(web, "net0", "name=eth0,bridge=vmbr0,hwaddr="+strings.ToUpper(runnerMAC)+",ip=dhcp")
			},
		},
		{code: preview.CodeUnsupportedVersion, world: func(s *simulation) { s.world.SetVersion("8.4.1") }, says: []string{"8.4.1"}},
		{
			code: preview.CodePrivileges, world: func(s *simulation) { s.rights("/vms", "VM.PowerMgmt") },
			says: []string{"VM.PowerMgmt", "/vms/5001"},
		},
		{code: preview.CodeIDMapDiffers, world: func(s *simulation) { s.world.AddRawLXC(web, "lxc.idmap", "u 0 100000 1000") }},
		{
			code: preview.CodeSizeUnreadable, world: func(s *simulation) {
				s.world.SetRights("pvrx@pve!demo", "/storage/local-lvm", "Datastore.AllocateSpace")
				s.world.SetRawConfig(web, "rootfs", s.world.VolumeOf(web, "rootfs")+",size=9126805504")
			},
		},
		{
			code: preview.CodeGuestsUnseen, world: func(s *simulation) {
				rights := pvesim.DemoRights()["/vms"]
				s.world.SetRights("pvrx@pve!demo", "/vms")
				s.world.SetRights("pvrx@pve!demo", "/vms/5001", rights...)
			},
		},
		{code: preview.CodeParkingUnavailable, provider: []string{`parking = { vmids = "5001-5004" }`}},
	}
}

// rights leaves the token its rights on a path but for some.
func (s *simulation) rights(path string, without ...string) {
	var left []string
	for _, right := range pvesim.DemoRights()[path] {
		if !slices.Contains(without, right) {
			left = append(left, right)
		}
	}
	s.world.SetRights("pvrx@pve!demo", path, left...)
}

// elsewhere moves the demo container to the node that does not answer the API.
func (s *simulation) elsewhere() {
	s.t.Helper()
	if err := s.world.MoveGuest(web, "pve2"); err != nil {
		s.t.Fatal(err)
	}
}

func TestEveryBlockerFailsThePlanAndTouchesNothing(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		for _, row := range blockerCases() {
			t.Run(row.code.String(), func(t *testing.T) {
				t.Parallel()
				s := simulate(t, c, row.provider...)
				if row.inState {
					s.inState(web, "web1")
				}
				if row.world != nil {
					row.world(s)
				}
				main := row.main
				if main == "" {
					main = web1Block(row.arguments...)
					if !row.inState {
						main = importOf("web1", web) + main
					}
				}
				s.write("main.tf", main)
				out := s.plan(1)
				out.says(t, append([]string{fmt.Sprintf("(%s)", row.code), "CT 5001"}, row.says...)...)
				s.untouched()
			})
		}
	})
}

func TestEveryBlockerOfAContainerHasAScenario(t *testing.T) {
	t.Parallel()
	elsewhere := map[preview.Code]string{
		preview.CodeOperationInFlight: "TestTwoPipelines", preview.CodeNeedsReconcile: "TestFailuresPastThePoint",
		preview.CodeEraseSpent: "TestConsentIsSpent", preview.CodeLinkedBaseInUse: "package preview", preview.CodeParkingHoldsData: "TestCloseKeepsData",
	}
	shown := map[preview.Code]bool{}
	for _, row := range blockerCases() {
		shown[row.code] = true
	}
	for _, code := range preview.Codes() {
		if ofVMs(code) {
			continue
		}
		if !shown[code] && elsewhere[code] == "" {
			t.Errorf("%s has no scenario", code)
		}
	}
}

// ofVMs reports whether only virtual machines can be blocked by a code.
func ofVMs(code preview.Code) bool {
	return code >= preview.CodeSystemKeyMissing && code < preview.CodePrivileges
}
