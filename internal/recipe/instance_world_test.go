package recipe_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

const (
	repository = "registry.example/shop/app"
	secret     = "correct-horse-battery-staple"
)

// digestOf makes a digest that is recognised in errors.
func digestOf(word string) string {
	return "sha256:" + strings.Repeat("0", 64-len(word)) + word
}

// application is an image of the tests: what a container makes of it.
func application(version string, env ...string) pvesim.Template {
	return pvesim.Template{
		Arch:  "amd64",
		Files: map[string]string{"/version": version, "/entry.sh": "program", "/data/README": "from the image " + version},
		OCI: &pvesim.OCIImage{
			Entrypoint: []string{"/entry.sh"}, Cmd: []string{"serve", "all of it"}, Env: env, User: true, UID: 1000, GID: 1000,
			WorkingDir: "/srv", StopSignal: "SIGQUIT", Volumes: []string{"/data"},
		},
	}
}

// images are what the registry of the tests has, by the word in their digest. "bad" is an image whose application runs and
// is not healthy, "dead" one whose application ends right after its start.
func images() map[string]pvesim.Template {
	ends := application("ends", "PATH=/image-3:/bin")
	ends.Files["/entry.sh"] = "#!/bin/sh\nexit 1\n"
	return map[string]pvesim.Template{
		"dead": ends,
		"0dd":  application("odd", "PATH=/image-5:/bin", "X.Y=1"),
		"fee":  application("fee", "PATH=/image-6:/bin", "GREETING=grüß"),
		"a1":   application("1", "PATH=/image-1:/bin", "OLD_ONLY=1", "LEVEL=image"),
		"b2":   application("2", "PATH=/image-2:/bin", "LEVEL=image", "NEW_ONLY=2"),
		"bad":  application("broken", "PATH=/image-3:/bin"),
		"d4":   application("4"),
		"c3":   application("3", "PATH=/image-3:/bin"),
	}
}

func image(word string) preview.Image {
	return preview.Image{
		Reference: repository + ":" + word, Repository: repository, Digest: digestOf(word), Manifest: digestOf(word + "ff"), Arch: "amd64",
		Archive: "pvrx-app-" + word + ".tar", Size: 40 << 20, Read: true, Declared: []string{"/data"}, User: "1000",
	}
}

// shelf stands for the registry and the upload: it puts archives into the simulated storage.
type shelf struct {
	w    *world
	dead func() bool

	mu      sync.Mutex
	placed  []string // archives that were really brought
	removed []string
	fail    error
}

func (s *shelf) Place(_ context.Context, node, storage string, img preview.Image) (guest.VolumeID, error) {
	id := guest.VolumeID{Storage: storage, Name: "vztmpl/pvrx-app-" + strings.TrimLeft(strings.TrimPrefix(img.Digest, "sha256:"), "0") + ".tar"}
	if s.dead != nil && s.dead() {
		return id, errDied
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return id, s.fail
	}
	if _, there := s.w.cluster.Volume(id.String()); there {
		return id, nil
	}
	for word, template := range images() {
		if digestOf(word) == img.Digest {
			s.placed = append(s.placed, id.String())
			return id, s.w.cluster.AddTemplate(node, id.String(), 40<<20, template)
		}
	}
	return id, fmt.Errorf("%s: not found", img.Digest)
}

func (s *shelf) Remove(_ context.Context, _ string, archive guest.VolumeID) error {
	if s.dead != nil && s.dead() {
		return errDied
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removed = append(s.removed, archive.String())
	s.w.cluster.RemoveVolume(archive.String())
	return nil
}

// clinic answers health probes for the worlds of a test: the page /<number> is well while the world's container runs an
// application that is.
type clinic struct {
	server *httptest.Server
	mu     sync.Mutex
	worlds map[string]*world
	pages  int
}

// dismiss forgets a world, whose trace is over.
func (c *clinic) dismiss(health *recipe.Health) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.worlds, health.HTTP.Path)
}

func newClinic(t testing.TB) *clinic {
	t.Helper()
	c := &clinic{worlds: map[string]*world{}}
	c.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		world := c.worlds[r.URL.Path]
		c.mu.Unlock()
		if world == nil || !world.well() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(c.server.Close)
	return c
}

// well reports whether the application in 8001 runs and works: not the broken one, and not with a broken setting.
func (w *world) well() bool {
	version, _ := w.cluster.ReadFile(8001, "/version")
	return w.cluster.Running(8001) && version != "broken" && !strings.Contains(w.cluster.Config(8001)["env"], "BREAK=1")
}

// admit lets a world's container be asked.
func (c *clinic) admit(w *world) *recipe.Health {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pages++
	page := fmt.Sprintf("/%d", c.pages)
	c.worlds[page] = w
	address, err := url.Parse(c.server.URL)
	if err != nil {
		panic(err)
	}
	port, err := strconv.Atoi(address.Port())
	if err != nil {
		panic(err)
	}
	return &recipe.Health{HTTP: &recipe.HTTPProbe{Port: port, Path: page}, Host: "127.0.0.1", Timeout: 2 * time.Second}
}

// instanceRights are those of rights, and what bringing archives takes.
func instanceRights() map[string][]string {
	all := rights()
	all["/storage"] = append(all["/storage"], "Datastore.AllocateTemplate", "Datastore.Allocate")
	return all
}

// newInstanceWorld is a cluster with another container, and nothing under 8001 yet.
func newInstanceWorld() *world {
	c := pvesim.NewCluster(pvesim.Options{Nodes: []string{"pve1", "pve2"}})
	c.AddStorage(pvesim.StorageSpec{ID: "local", Type: "dir", Content: []string{"vztmpl", "backup"}})
	c.AddStorage(pvesim.StorageSpec{ID: "local-lvm", Type: "lvmthin", Total: 2 << 40})
	c.AddStorage(pvesim.StorageSpec{ID: "tank", Type: "zfspool", Total: 2 << 40})
	c.AddBridge("pve1", "vmbr0")
	if err := c.AddTemplate("pve1", oldTemplate, 120<<20, pvesim.Template{OSType: "debian", Files: map[string]string{"/etc/debian_version": "12", "/bin/sh": "sh"}}); err != nil {
		panic(err)
	}
	c.AddContainer(pvesim.ContainerSpec{
		VMID: 5002, Template: oldTemplate,
		Config: map[string]string{"hostname": "db2", "rootfs": "local-lvm:4", "mp0": "local-lvm:50,mp=/shared"},
		Files:  map[string]string{"/shared/theirs": "belongs to 5002"},
	})
	w := &world{cluster: c, token: c.AddToken("ci@pve", "pvrx", instanceRights()), clock: time.Now()}
	w.server = pvesim.NewServer(c)
	return w
}

// instance is the recipe over the world.
func (w *world) instance(t testing.TB) (*recipe.Instance, *shelf) { return w.instanceOver(t, w.server) }

func (w *world) instanceOver(t testing.TB, transport http.RoundTripper) (*recipe.Instance, *shelf) {
	t.Helper()
	s := &shelf{w: w}
	if l, ok := transport.(*wire); ok {
		s.dead = func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.dead
		}
	}
	i := &recipe.Instance{Container: *w.containerOver(t, transport), Archives: s}
	i.Random = func() string { return fmt.Sprintf("%04x%04x", w.names.Add(1), time.Now().UnixNano()&0xffff) } // no two operations of a world are called the same
	return i, s
}

// wantsInstance is the configuration of the tests.
func wantsInstance(word string) preview.Want {
	return preview.Want{
		VMID: 8001, Name: "shop", Timeout: 2 * time.Hour, Rootfs: preview.Rootfs{Storage: "local-lvm"},
		Instance: &preview.InstanceWant{
			Node: "pve1", Image: image(word), Started: true, Create: true,
			Settings: map[string]string{
				"cores": "2", "memory": "512", "net0": "name=eth0,bridge=vmbr0,ip=192.0.2.81/24,gw=192.0.2.1", "tags": "shop;web", "onboot": "1",
				"description": "Sells things.",
			},
			Environment: map[string]string{"LEVEL": "ours", "TOKEN": secret},
			WriteOnly:   []string{"TOKEN"}, EnvVersion: 1,
			Volumes: map[string]preview.VolumeWant{"/data": {Storage: "tank", Size: 8 << 30}, "/cache": {Storage: "local-lvm", Size: 2 << 30, NoBackup: true}},
		},
	}
}

// applyInstance plans and applies as the provider does.
func (w *world) applyInstance(t testing.TB, req recipe.Request) (recipe.Result, error) {
	t.Helper()
	i, _ := w.instance(t)
	return planAndApply(i, req)
}

func planAndApply(i *recipe.Instance, req recipe.Request) (recipe.Result, error) {
	ctx := context.Background()
	seen, err := i.Observe(ctx, req.Want.VMID)
	if err != nil {
		return recipe.Result{}, err
	}
	req.Planned = seen.Acknowledged
	return i.Apply(ctx, req)
}

// installed is a world with the application of an image in 8001, data in its volumes, and a page that says whether it is well.
func installed(t testing.TB, c *clinic, word string) (*world, *recipe.Health) {
	t.Helper()
	w := newInstanceWorld()
	health := c.admit(w)
	if _, err := w.applyInstance(t, recipe.Request{Want: wantsInstance(word), Health: health}); err != nil {
		t.Fatal(err)
	}
	w.cluster.WriteFile(8001, "/data/marker", "the only copy")
	w.cluster.WriteFile(8001, "/cache/marker", "cached")
	w.keep(w.cluster.VolumeOf(8001, "mp0"), w.cluster.VolumeOf(8001, "mp1"), w.cluster.VolumeOf(5002, "mp0"))
	return w, health
}

// update is the request for another image, as a state that knows the instance asks.
func update(word string, health *recipe.Health) recipe.Request {
	want := wantsInstance(word)
	want.Instance.Create, want.Instance.Node = false, ""
	return recipe.Request{Want: want, Health: health, Stop: recipe.Stop{Force: true}}
}

// contract is what the notes of a guest say of it.
func (w *world) contract(id int) *guest.Contract {
	return guest.NotesOf(guest.VMID(id), w.cluster.Config(id)["description"]).Contract
}

// environment is what the application sees.
func (w *world) environment(id int) map[string]string {
	return guest.ReadEnvironment(w.cluster.Config(id)["env"])
}
