package provider

import (
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
)

// changeCase is a way in which a guest stops being what the plan showed.
type changeCase struct {
	change func(s *simulation)
	says   []string
	// late says that the change can also happen once the guest is stopped for its operation.
	late bool
}

func changeCases() map[string]changeCase {
	return map[string]changeCase{
		"a mount was added": {
			func(s *simulation) { s.world.SetConfig(web, "mp5", "local-lvm:4,mp=/new") },
			[]string{"mp5"},
			true,
		},
		"a volume was swapped": {func(s *simulation) {
			options := strings.SplitN(s.world.Config(web)["mp0"], ",", 2)[1]
			s.world.SetConfig(web, "unused7", s.world.VolumeOf(web, "mp0"))
			s.world.SetConfig(web, "mp0", "")
			s.world.SetConfig(web, "mp0", "tank:100,"+options)
		}, []string{"mp0"}, true},
		"a volume was resized": {func(s *simulation) {
			s.world.SetRawConfig(web, "mp0", strings.Replace(s.world.Config(web)["mp0"], "size=100G", "size=120G", 1))
		}, []string{"mp0"}, true},
		"an option changed": {func(s *simulation) {
			s.world.SetRawConfig(web, "mp0", s.world.Config(web)["mp0"]+",ro=1")
		}, []string{"mp0"}, true},
		"a snapshot was taken": {
			func(s *simulation) { s.world.Snapshot(web, "monday") },
			[]string{"Snapshot monday was taken."},
			true,
		},
		"it moved to another node": {
			func(s *simulation) { s.elsewhere() },
			[]string{"pve2"},
			false,
		},
	}
}

func TestChangedGuestIsRefusedBeforeTheFirstEffect(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		for name, row := range changeCases() {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := simulate(t, c)
				s.imported()
				s.plan(2)
				row.change(s)
				out := s.apply(1)
				out.says(t, append([]string{"Error: CT 5001 web1 has changed since the plan", "Nothing was touched. Plan again"}, row.says...)...)
				out.lacks(t, "bug in the provider")
				s.untouched()
			})
		}
	})
}

func TestChangedGuestAfterTheRehearsalIsUndone(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		for name, row := range changeCases() {
			if !row.late {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := simulate(t, c)
				s.imported()
				s.plan(2)
				s.server.Inject(pvesim.Fault{
					Kind: pvesim.FaultWorldAfter, Method: "POST", Path: `^/nodes/pve1/lxc/5001/status/shutdown$`,
					World: func(*pvesim.Cluster) { row.change(s) },
				})
				s.apply(1).says(t, "CT 5001 web1")
				if s.server.FaultsStruck() != 1 {
					t.Fatal("the guest was never stopped")
				}
				for _, r := range s.server.Requests() {
					if r.Method == "DELETE" && r.Path == "/nodes/pve1/lxc/5001" {
						t.Error("the guest was destroyed")
					}
				}
				if !s.world.Running(web) {
					t.Error("it ran before and does not now")
				}
			})
		}
	})
}

func TestLargerRootfs(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		s := simulate(t, c)
		s.imported(`rootfs = { size = "8703M" }`)
		s.plan(1).says(t, "(rootfs_shrink)", "9126805504", "9125756928")
		s.imported(`rootfs = { size = "9GiB" }`)
		s.plan(2)
		s.apply(0)
		if v := identity(t, s, s.world.VolumeOf(web, "rootfs")); v.Size != 9<<30 {
			t.Errorf("rootfs has %d bytes", v.Size)
		}
		s.plan(0)
		s.imported(`rootfs = { size = "10GiB" }`)
		s.server.ResetRequests()
		s.plan(2).says(t, "CT 5001 web1", "grow")
		s.apply(0)
		if v := identity(t, s, s.world.VolumeOf(web, "rootfs")); v.Size != 10<<30 {
			t.Errorf("rootfs has %d bytes", v.Size)
		}
		for _, r := range s.server.Requests() {
			if r.Mutates() && !strings.HasSuffix(r.Path, "/resize") {
				t.Errorf("growing made the request %s %s", r.Method, r.Path)
			}
		}
		s.plan(0)
	})
}

func TestSizesAreReadAtPlan(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		for text, ends := range map[string]int{"9G": 2, "9216M": 2, "9437184K": 2, "8.6G": 2, "9": 1, "9g": 1, "nine": 1, "-9G": 1, "8704M": 2} {
			s := simulate(t, c)
			s.imported(`rootfs = { size = "` + text + `" }`)
			if out := s.plan(ends); ends == 1 {
				out.says(t, "rootfs.size is not usable")
			}
		}
	})
}

func TestConsentIsSpent(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		s := simulate(t, c)
		s.world.SetConfig(web, "mp3", "local-lvm:4,mp=/scratch")
		volume := s.world.VolumeOf(web, "mp3")
		doomed := identity(t, s, volume)
		consent := `erase = { mp3 = "` + volume + `" }`
		s.imported(consent)
		s.plan(2).says(t, "erased")
		s.apply(0)
		if _, there := s.world.VolumeByIdentity(doomed.Identity); there {
			t.Error("the erased volume is still there")
		}
		s.plan(0)
		// The consent stands in the configuration, and Proxmox gives the number to a new volume.
		s.world.SetConfig(web, "mp3", "local-lvm:4,mp=/important")
		if got := s.world.VolumeOf(web, "mp3"); got != volume {
			s.world.SetRawConfig(web, "mp3", volume+",mp=/important,size=4G")
			if err := s.world.AddVolume("pve1", volume, 4<<30); err != nil {
				t.Fatal(err)
			}
		}
		s.imported(consent, `triggers = { again = "1" }`)
		s.server.ResetRequests()
		s.plan(1).says(t, "(erase_spent)", "mp3")
		s.world.SetConfig(web, "description", "")
		s.plan(1).says(t, "(erase_spent)", "mp3")
		s.untouched()
	})
}
