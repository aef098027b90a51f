package provider

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const (
	shop   = "pvrx_oci_instance.shop"
	shopID = 6001
)

// harbour is the simulated cluster with a registry beside it, and a page that says whether the application is well.
type harbour struct {
	*simulation
	shelf  *shelf
	clinic *httptest.Server
	health string // the health check that asks it
}

// newHarbour has app:1, app:2, app:broken (which runs and is not well) and app:more (which declares more volumes).
func newHarbour(t *testing.T, c cli, arguments ...string) *harbour {
	t.Helper()
	h := &harbour{shelf: newShelf(t)}
	h.simulation = simulate(t, c, append(arguments, h.shelf.block())...)
	config := func(version string, declared ...string) v1.Config {
		volumes := map[string]struct{}{}
		for _, path := range declared {
			volumes[path] = struct{}{}
		}
		return v1.Config{
			Entrypoint: []string{"/app/run"}, Cmd: []string{"serve", "all of it"}, User: "1000:1000", WorkingDir: "/srv", StopSignal: "SIGQUIT",
			Env: []string{"PATH=/image-" + version + ":/bin", "LEVEL=image"}, Volumes: volumes,
		}
	}
	h.shelf.put("app:1", imageFor(t, "1", config("1", "/data")))
	h.shelf.put("app:2", imageFor(t, "2", config("2", "/data")))
	h.shelf.put("app:broken", imageFor(t, "broken", config("3", "/data")))
	h.shelf.put("app:more", imageFor(t, "more", config("4", "/data", "/cache")))
	h.clinic = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		version, _ := h.world.ReadFile(shopID, "/version")
		if !h.world.Running(shopID) || version == "broken" || strings.Contains(h.world.Config(shopID)["env"], "BREAK=1") {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(h.clinic.Close)
	at, err := url.Parse(h.clinic.URL)
	if err != nil {
		t.Fatal(err)
	}
	h.health = fmt.Sprintf(`health_check = { http = { port = %s, address = "127.0.0.1" }, timeout = "1s" }`, at.Port())
	return h
}

// block is a block for the application with a volume, a network and its health check.
func (h *harbour) block(tag string, arguments ...string) string {
	return fmt.Sprintf(`resource "pvrx_oci_instance" "shop" {
  vmid     = %d
  hostname = "shop"
  node     = "pve1"
  image    = %q
  rootfs   = { storage = "local-lvm" }
  networks = { net0 = { bridge = "vmbr0", address = "dhcp" } }
  volumes  = { "/data" = { storage = "tank", size = "8GiB" } }
  %s
  %s
}
`, shopID, h.shelf.ref("app:"+tag), h.health, strings.Join(arguments, "\n  "))
}

// installed applies the block of the first image.
func (h *harbour) installed(arguments ...string) {
	h.t.Helper()
	h.write("main.tf", h.block("1", arguments...))
	h.plan(2)
	h.apply(0)
}

// by hand asks the cluster as root would.
func (h *harbour) byHand() *lab {
	h.t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(h.server.CertificatePEM())
	endpoint := regexp.MustCompile(`endpoint = "([^"]+)"`).FindStringSubmatch(h.read("provider.tf"))
	return &lab{
		t: h.t, endpoint: endpoint[1], token: h.world.RootToken, node: "pve1",
		client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}},
	}
}

// chart collects plans for a golden file.
type chart struct {
	h    *harbour
	text strings.Builder
}

// note writes down a plan: the part about the application and the diagnostics, without what differs from run to run or
// between the CLIs.
func (c *chart) note(title string, out output) {
	c.h.t.Helper()
	text := out.text
	var lines []string
	if strings.Contains(text, "# "+shop+" will be ") {
		lines = guestLines(c.h.t, text, shop)
	}
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, "(write-only attribute)") })
	shown := strings.Join(lines, "\n")
	for _, mark := range []string{"Warning: ", "Error: "} {
		for _, part := range strings.Split(text, mark)[1:] {
			if end := strings.Index(part, "\nWarning: "); end >= 0 {
				part = part[:end]
			}
			if end := strings.Index(part, "\nError: "); end >= 0 {
				part = part[:end]
			}
			if end := strings.Index(part, "\n\u2500"); end >= 0 {
				part = part[:end]
			}
			shown += "\n\n" + mark + strings.TrimSpace(part)
		}
	}
	if strings.Contains(text, "No changes.") {
		shown = "No changes." + shown
	}
	for _, equal := range [][2]string{
		{regexp.QuoteMeta(c.h.shelf.host), "registry.lan:5000"},
		{`sha256:([0-9a-f]{12})[0-9a-f]{52}`, "sha256:$1…"},
		{`"sha256:[0-9a-f]{32}"`, `"sha256:…"`},
		{`op-6001-\d{8}-[0-9a-f]+`, "op-6001-20261201-3f2a"},
		{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`, "2026-12-01T12:00:00Z"},
		{`\d+ unchanged attributes? hidden`, "… unchanged attributes hidden"},
		{`port( +)= \d+`, "port$1= 8080"},
		{`127\.0\.0\.1:\d+`, "127.0.0.1:8080"},
		{`:\d\d:\d\d:\d\d`, ":12:00:00"},
	} {
		shown = regexp.MustCompile(equal[0]).ReplaceAllString(shown, equal[1])
	}
	fmt.Fprintf(&c.text, "# %s\n\n%s\n\n", title, strings.TrimSpace(shown))
}

const (
	memory  = `memory = "1GiB"`
	domain  = `environment = { DOMAIN = "https://shop.example.org" }`
	another = `environment = { DOMAIN = "https://other.example.org", MODE = "prod" }`
)

// The plans of an application's life, as people read them, and what each apply leaves.
func TestInstanceLife(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		h := newHarbour(t, c)
		plans := &chart{h: h}
		step := func(title string, code int) output {
			t.Helper()
			out := h.plan(code)
			plans.note(title, out)
			return out
		}
		h.write("main.tf", h.block("1", domain))
		step("install", 2)
		h.untouched()
		h.apply(0)
		if state := h.state(shop); state["installed"] == nil || state["addresses"] == nil || state["status"] != "ready" {
			t.Errorf("state %v", state)
		}
		step("no change", 0)
		volume := h.world.VolumeOf(shopID, "mp0")
		h.world.WriteFile(shopID, "/data/marker", "kept")

		h.write("main.tf", h.block("2", domain))
		step("update to a new digest", 2)
		h.apply(0)
		h.plan(0)
		if version, _ := h.world.ReadFile(shopID, "/version"); version != "2" {
			t.Errorf("version %q runs", version)
		}
		if marker, _ := h.world.ReadFile(shopID, "/data/marker"); marker != "kept" || !strings.HasPrefix(h.world.Config(shopID)["mp0"], volume+",mp=/data,backup=1,size=8G") {
			t.Errorf("the marker is %q on %s", marker, h.world.Config(shopID)["mp0"])
		}
		if env := h.world.Config(shopID)["env"]; !strings.Contains(env, "PATH=/image-2:/bin") || !strings.Contains(env, "DOMAIN=https://shop.example.org") {
			t.Errorf("environment %q", env)
		}

		h.write("main.tf", strings.Replace(h.block("2", domain, memory, `tags = ["shop"]`), `"8GiB" }`, `"16GiB" }, "/cache" = { storage = "local-lvm", size = "1GiB", backup = false }`, 1))
		step("changes that need no restart", 2)
		h.apply(0)
		h.plan(0)
		if config := h.world.Config(shopID); config["memory"] != "1024" || !strings.Contains(config["mp0"], "size=16G") || !strings.Contains(config["mp1"], "mp=/cache") || config["tags"] != "shop" {
			t.Errorf("config %v", config)
		}

		more := func(tag string, arguments ...string) string {
			return strings.Replace(h.block(tag, append([]string{memory, `tags = ["shop"]`}, arguments...)...), `"8GiB" }`, `"16GiB" }, "/cache" = { storage = "local-lvm", size = "1GiB", backup = false }`, 1)
		}
		h.write("main.tf", more("2", another, `entrypoint = "/app/run --debug"`))
		step("changes that need a restart", 2)
		h.apply(0)
		h.plan(0)

		h.shelf.put("app:2", imageFor(t, "2 again", imageConfig()))
		h.write("main.tf", more("2", another, `entrypoint = "/app/run --debug"`, `update = "follow"`))
		step("a followed tag has moved", 2)
		h.apply(0)
		h.plan(0)

		h.write("main.tf", more("broken", another))
		h.plan(2)
		plans.note("an update that is not healthy", h.apply(1))
		step("after it was rolled back", 0)
		if version, _ := h.world.ReadFile(shopID, "/version"); version != "2 again" || h.state(shop)["status"] != "rolled_back" {
			t.Errorf("version %q runs, status %v", version, h.state(shop)["status"])
		}

		h.world.SetConfig(shopID, "timezone", "UTC")
		h.write("main.tf", more("1", another))
		step("changed by hand", 1)
		h.write("main.tf", more("1", another, "adopt = true"))
		h.plan(2)
		h.apply(0)

		h.write("main.tf", more("1", another, "deletion_protection = true"))
		h.plan(2)
		h.apply(0)
		h.write("main.tf", "")
		step("removal that is refused", 1)
		h.write("main.tf", more("1", another, "deletion_protection = false"))
		h.plan(2)
		h.apply(0)
		h.write("main.tf", "")
		step("removal", 2)
		h.apply(0)
		if slices.Contains(h.world.Guests(), shopID) {
			t.Error("the container is still there")
		}
		golden(t, "instance_plans.txt", plans.text.String())
	})
}

// An image that declares more volumes than are configured is a blocker, and can be waived.
func TestInstanceImageWithMoreVolumes(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		h := newHarbour(t, c)
		plans := &chart{h: h}
		h.installed()
		h.write("main.tf", h.block("more"))
		plans.note("an image that declares more volumes", h.plan(1))
		h.write("main.tf", h.block("more", `allow = ["image_volume_unbacked"]`))
		plans.note("the same, waived", h.plan(2))
		h.apply(0)
		h.plan(0)
		golden(t, "instance_unbacked.txt", plans.text.String())
	})
}

// A container that was restored under another VMID and on another storage is taken up by an import, and can be updated.
func TestInstanceRestoredElsewhere(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		h := newHarbour(t, c)
		plans := &chart{h: h}
		h.installed("deletion_protection = false")
		h.world.WriteFile(shopID, "/data/marker", "kept")
		archive := h.world.Backup(shopID, "backup", "nightly", false)
		h.write("main.tf", "")
		h.plan(2)
		h.apply(0)
		root := h.byHand()
		root.must(http.MethodPost, "/nodes/pve1/lxc", map[string]string{
			"vmid": "6002", "restore": "1", "ostemplate": archive, "storage": "tank",
		})
		block := strings.Replace(strings.Replace(h.block("1"), "= 6001", "= 6002", 1), `rootfs   = { storage = "local-lvm" }`, `rootfs   = { storage = "tank" }`, 1)
		block = strings.Replace(block, h.health, "started = false", 1)
		h.write("main.tf", strings.Replace(vaultImport, "vault", "shop", 1)+block)
		h.write("main.tf", strings.Replace(h.read("main.tf"), `id = "6001"`, `id = "6002"`, 1))
		plans.note("a restored container is imported", h.plan(2))
		h.apply(0)
		plans.note("what the restore lost", h.plan(0))
		h.write("main.tf", strings.Replace(h.read("main.tf"), "started = false", `triggers = { again = "1" }`, 1))
		h.plan(2)
		h.apply(0)
		if marker, _ := h.world.ReadFile(6002, "/data/marker"); marker != "kept" || !h.world.Running(6002) {
			t.Errorf("the marker is %q, it runs: %v", marker, h.world.Running(6002))
		}
		h.plan(0).lacks(t, "has lost")
		golden(t, "instance_adopt.txt", plans.text.String())
	})
}
