package recipe_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/proxmox"
	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// All other changes ride along with an update: there is one start.
func TestInstanceUpdateWithEverythingElse(t *testing.T) {
	w, health := installed(t, newClinic(t), "a1")
	w.cluster.SetConfig(8001, "memory", "768") // by hand, and tolerated
	req := update("b2", health)
	delete(req.Want.Instance.Settings, "memory")
	req.Want.Instance.Settings["cores"] = "3"
	req.Want.Instance.Settings["net1"] = "name=eth1,bridge=vmbr0,ip=dhcp"
	req.Want.Instance.Settings["description"] = "Sells more."
	req.Want.Instance.Volumes["/data"] = preview.VolumeWant{Storage: "tank", Size: 9 << 30, Options: "noatime"}
	req.Want.Instance.Volumes["/more"] = preview.VolumeWant{Storage: "tank", Size: 1 << 30}
	req.Want.Instance.Entrypoint = "/entry.sh better"
	w.server.ResetRequests()
	if _, err := w.applyInstance(t, req); err != nil {
		t.Fatal(err)
	}
	w.sound(t)
	c := w.cluster.Config(8001)
	if c["memory"] != "768" || c["cores"] != "3" || !strings.Contains(c["net1"], "eth1") || c["entrypoint"] != "/entry.sh better" || guest.NotesOf(8001, c["description"]).User != "Sells more." {
		t.Error(c)
	}
	if v, _ := w.cluster.Volume(w.cluster.VolumeOf(8001, "mp1")); v.Size != 9<<30 || !strings.Contains(c["mp1"], "mountoptions=noatime") || w.cluster.VolumeOf(8001, "mp2") == "" {
		t.Errorf("%d, %q, %q", v.Size, c["mp1"], c["mp2"])
	}
	if n := w.starts("8001"); n != 1 {
		t.Errorf("it was started %d times", n)
	}
	w.inert(t, req)
}

// An unhealthy update takes the volumes that it made with it and leaves those that it grew.
func TestInstanceRollbackTakesNewVolumesBack(t *testing.T) {
	w, health := installed(t, newClinic(t), "a1")
	req := update("bad", health)
	req.Want.Instance.Volumes["/data"] = preview.VolumeWant{Storage: "tank", Size: 9 << 30, Options: "noatime"}
	req.Want.Instance.Volumes["/more"] = preview.VolumeWant{Storage: "tank", Size: 1 << 30}
	before := w.cluster.Config(8001)["mp1"]
	if r, err := w.applyInstance(t, req); r.Status != recipe.StatusRolledBack {
		t.Fatal(err)
	}
	w.sound(t)
	c := w.cluster.Config(8001)
	if c["mp2"] != "" || strings.Replace(c["mp1"], "size=9G", "size=8G", 1) != before {
		t.Errorf("mp1 %q, mp2 %q", c["mp1"], c["mp2"])
	}
	for _, v := range w.cluster.Volumes() {
		if v.Owner == 8001 && !slices.Contains([]string{w.cluster.VolumeOf(8001, "rootfs"), w.cluster.VolumeOf(8001, "mp0"), w.cluster.VolumeOf(8001, "mp1")}, v.ID) {
			t.Errorf("%s is left", v.ID)
		}
	}
}

// An application that ends by itself is no failed rehearsal; how the container ends up is for its own health check to say.
func TestInstanceApplicationThatEnds(t *testing.T) {
	w, health := installed(t, newClinic(t), "a1")
	w.server.Inject(pvesim.Fault{Kind: pvesim.FaultWorldAfter, Method: "POST", Path: `/lxc/908001/status/start$`, Times: -1, World: func(c *pvesim.Cluster) { c.SetRunning(908001, false) }})
	if _, err := w.applyInstance(t, update("b2", health)); err != nil {
		t.Fatal(err)
	}
	w.sound(t)
}

// Whoever may not see the environment would lose it: nothing is claimed, and nothing is stopped.
func TestInstanceHiddenEnvironmentIsNotLost(t *testing.T) {
	w, health := installed(t, newClinic(t), "a1")
	all := instanceRights()
	all["/vms"] = slices.DeleteFunc(all["/vms"], func(p string) bool { return p == "VM.Config.Options" })
	w.token = w.cluster.AddToken("ci@pve", "less", all)
	before := w.dump()
	w.server.ResetRequests()
	_, err := w.applyInstance(t, update("b2", health))
	w.cluster.RemoveVolume("local:vztmpl/pvrx-app-b2.tar")
	w.untouched(t, before, err, "VM.Config.Options")
	if n := w.server.Mutations(); n > 0 {
		t.Errorf("%d changes were sent", n)
	}
}

// A setting that somebody changes while the update is under way is not lost without a word.
func TestInstanceChangedMeanwhileIsTakenBack(t *testing.T) {
	w, health := installed(t, newClinic(t), "a1")
	w.server.Inject(pvesim.Fault{Kind: pvesim.FaultWorldAfter, Method: "POST", Path: `/lxc/8001/status/shutdown$`, World: func(c *pvesim.Cluster) { c.SetConfig(8001, "nameserver", "192.0.2.9") }})
	before := w.dump()
	_, err := w.applyInstance(t, update("b2", health))
	w.cluster.RemoveVolume("local:vztmpl/pvrx-app-b2.tar")
	w.cluster.SetConfig(8001, "nameserver", "")
	w.untouched(t, before, err, "nameserver", "taken back")
}

// rootWorld is an instance whose operator is root@pam with a password: directories and devices of the node may be given to it.
func rootInstance(t *testing.T, w *world) *recipe.Instance {
	t.Helper()
	w.cluster.SetPassword("root@pam", secret+"-root")
	h, err := proxmox.Connect(t.Context(), proxmox.Settings{Endpoints: []string{"https://pve1:8006"}, Username: "root@pam", Password: secret + "-root", Transport: w.server, Pace: fast()})
	if err != nil {
		t.Fatal(err)
	}
	i, _ := w.instance(t)
	i.Host = h
	return i
}

// Directories and devices of the node reach the container, and never its parking guest.
func TestInstanceHostDirectoriesAndDevices(t *testing.T) {
	w := newInstanceWorld()
	health := newClinic(t).admit(w)
	i := rootInstance(t, w)
	want := wantsInstance("a1")
	want.Instance.HostPaths = map[string]preview.HostPath{"/media": {Source: "/srv/media", ReadOnly: true}}
	want.Instance.Devices = map[string]string{"dev0": "/dev/dri/renderD128,mode=0666"}
	if _, err := planAndApply(i, recipe.Request{Want: want, Health: health}); err != nil {
		t.Fatal(err)
	}
	host := func() (bind, device string) {
		c := w.cluster.Config(8001)
		for key, value := range c {
			if strings.HasPrefix(value, "/srv/media,") {
				bind = key + "=" + value
			}
		}
		return bind, c["dev0"]
	}
	bind, device := host()
	if !strings.Contains(bind, "ro=1") || !strings.HasPrefix(device, "/dev/dri/renderD128") {
		t.Fatalf("%q %q: %v", bind, device, w.cluster.Config(8001))
	}
	w.server.ResetRequests()
	want.Instance.Image, want.Instance.Create = image("b2"), false
	req := recipe.Request{Want: want, Health: health, Stop: recipe.Stop{Force: true}}
	if _, err := planAndApply(i, req); err != nil {
		t.Fatal(err)
	}
	if b, d := host(); b != bind || d != device {
		t.Errorf("%q %q, and was %q %q", b, d, bind, device)
	}
	for _, r := range w.server.Requests() {
		if r.Method == http.MethodGet || !strings.Contains(r.Path, "908001") && r.Params["vmid"] != "908001" {
			continue
		}
		for _, value := range slices.Collect(maps.Values(r.Params)) {
			if strings.Contains(value, "/srv/media,") || strings.HasPrefix(value, "/dev/") {
				t.Errorf("the parking guest was given %q", value)
			}
		}
	}
}

// A resume by somebody who has no environment takes back what is still before the point of no return, and says why.
func TestInstanceResumeWithoutEnvironment(t *testing.T) {
	w, health := installed(t, newClinic(t), "a1")
	before := w.state()
	l := &wire{w: w, changes: true, dieAt: 1, after: true} // right after the claim
	i, _ := w.instanceOver(t, l)
	if _, err := planAndApply(i, update("b2", health)); err == nil {
		t.Fatal("it did not die")
	}
	j := w.journal(t, 8001)
	if j == nil {
		t.Fatal("no record")
	}
	req := update("b2", health)
	req.Reconcile = &recipe.Reconcile{Operation: j.Operation, Action: "resume"}
	_, err := w.applyInstance(t, without(req))
	if err == nil || !strings.Contains(err.Error(), "environment must be given again") {
		t.Error(err)
	}
	if now := w.state(); now != before {
		t.Errorf("the world changed:\n%s", difference(before, now))
	}
	w.sound(t)
}

// A container moves to the pool that the configuration names, out of the one that it is in.
func TestInstanceMovesBetweenPools(t *testing.T) {
	w, health := installed(t, newClinic(t), "a1")
	w.cluster.SetRights("ci@pve!pvrx", "/pool", "Pool.Audit", "Pool.Allocate")
	w.cluster.AddPool("one", 8001)
	w.cluster.AddPool("two")
	req := update("a1", health)
	req.Want.Instance.Settings["pool"] = "two"
	if _, err := w.applyInstance(t, req); err != nil {
		t.Fatal(err)
	}
	if pool := w.cluster.PoolOf(8001); pool != "two" {
		t.Errorf("it is in pool %q", pool)
	}
	w.inert(t, req)
}
