package provider

import (
	"maps"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
)

func TestReinstallKeepsAllThatShouldStay(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		s := simulate(t, c)
		s.imported()
		const shared = pvesim.DemoShared
		before, sharedBefore, firewall, pool := s.world.Config(web), s.world.Config(shared), s.world.Firewall(web), s.world.PoolOf(web)
		data := identity(t, s, s.world.VolumeOf(web, "mp0"))
		spare := identity(t, s, s.world.VolumeOf(web, "unused0"))
		others := identity(t, s, s.world.VolumeOf(shared, "mp0"))

		s.plan(2)
		s.untouched()
		shown := s.planned(web1)
		s.apply(0)

		for key, was := range map[string]pvesim.Volume{"mp0": data, "unused0": spare} {
			now, found := s.world.VolumeByIdentity(was.Identity)
			if !found || now.ID != s.world.VolumeOf(web, key) || now.Digest() != was.Digest() {
				t.Errorf("%s: the volume %s is not the one that was there: %+v", key, s.world.VolumeOf(web, key), now)
			}
		}
		if now, _ := s.world.Volume(others.ID); now.Digest() != others.Digest() || now.Identity != others.Identity {
			t.Errorf("the other guest's volume changed: %+v", now)
		}
		if got := s.world.Config(shared); !maps.Equal(got, sharedBefore) {
			t.Errorf("the other guest changed: %v", got)
		}
		if text, _ := s.world.ReadFile(web, "/etc/debian_version"); text != "13" {
			t.Errorf("the new system is %q", text)
		}
		if _, there := s.world.ReadFile(web, "/var/www/index.html"); there {
			t.Error("a file of the old root file system is still there")
		}
		if text, _ := s.world.ReadFile(web, "/srv/data/customers"); text != "the data that must stay" {
			t.Errorf("the data is %q", text)
		}
		if text, _ := s.world.ReadFile(web, "/srv/data/from-template"); text == "debian 13" {
			t.Error("the template was unpacked into the kept data")
		}
		after := s.world.Config(web)
		for key, value := range before {
			switch key {
			case "mp2": // dropped by consent
			case "description":
				if !strings.HasPrefix(after[key], strings.TrimRight(value, "\n")) {
					t.Errorf("the notes are %q", after[key])
				}
			case "mp0", "unused0", "rootfs":
				if _, was, _ := strings.Cut(value, ","); !strings.HasSuffix(after[key], was) {
					t.Errorf("%s = %q, was %q", key, after[key], value)
				}
			default:
				if after[key] != value {
					t.Errorf("%s = %q, was %q", key, after[key], value)
				}
			}
			delete(after, key)
		}
		if len(after) != 0 {
			t.Errorf("new keys: %v", after)
		}
		if got := s.world.Firewall(web); got != firewall {
			t.Errorf("firewall:\n%s\nwas:\n%s", got, firewall)
		}
		if got := s.world.PoolOf(web); got != pool {
			t.Errorf("pool %q, was %q", got, pool)
		}
		if !s.world.Running(web) {
			t.Error("it ran before and does not now")
		}
		for _, id := range s.world.Guests() {
			if id >= 900000 && id <= 900999 {
				t.Errorf("parking guest %d is left behind", id)
			}
		}
		state := s.state(web1)
		if last, _ := state["last_operation"].(map[string]any); last["kind"] != "reinstall" || last["status"] != "ready" || last["stage"] != nil {
			t.Errorf("last_operation = %v", last)
		}
		if volumes, _ := state["last_operation"].(map[string]any)["volumes"].(map[string]any); len(volumes) != 5 {
			t.Errorf("last_operation.volumes = %v", volumes)
		}
		if shownPreview, kept := shown["preview"].(map[string]any), state["preview"].(map[string]any); shownPreview["precondition"] != kept["precondition"] {
			t.Errorf("the state keeps another precondition than the plan showed: %v, %v", kept, shownPreview)
		}

		s.server.ResetRequests()
		s.plan(0)
		s.untouched()
		if n := guestReads(s, web); n != 1 {
			t.Errorf("a plan without changes made %d requests about the guest, want 1", n)
		}
	})
}

// identity finds a volume.
func identity(t *testing.T, s *simulation, id string) pvesim.Volume {
	t.Helper()
	v, found := s.world.Volume(id)
	if !found {
		t.Fatalf("there is no volume %q", id)
	}
	return v
}

// guestReads counts the requests about one guest.
func guestReads(s *simulation, id int) (n int) {
	for _, r := range s.server.Requests() {
		if r.Params["vmid"] == itoa(id) || strings.Contains(r.Path, "/lxc/"+itoa(id)+"/") {
			n++
		}
	}
	return n
}
