package provider

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fleetImages are the images of a scenario: two that are well and one that is not, all of one application.
type fleetImages struct {
	one, two, broken string
	health           string // the health check that tells them apart
	registry         string // how the registry is reached, for the provider block
}

// images are those that the environment names on a real server, and three small ones on the simulated cluster, where the
// health check looks into the container that id names by then.
func (l *lab) images(id func() int) fleetImages {
	l.t.Helper()
	if l.real {
		i := fleetImages{one: os.Getenv("PVRX_TEST_OCI_IMAGE_1"), two: os.Getenv("PVRX_TEST_OCI_IMAGE_2"), broken: os.Getenv("PVRX_TEST_OCI_IMAGE_BROKEN")}
		if i.one == "" || i.two == "" || i.broken == "" {
			l.t.Skip("PVRX_TEST_OCI_IMAGE_1, _2 and _BROKEN are not set: two images of an application, and one whose application ends after a moment")
		}
		i.health = `health_check = { running_for = "5s", timeout = "1m" }`
		if port := os.Getenv("PVRX_TEST_OCI_PORT"); port != "" {
			i.health = fmt.Sprintf(`health_check = { http = { port = %s }, timeout = "1m" }`, port)
		}
		if os.Getenv("PVRX_TEST_OCI_PLAIN_HTTP") == "1" {
			host, _, _ := strings.Cut(i.one, "/")
			i.registry = fmt.Sprintf("registries = { %q = { plain_http = true } }", host)
		}
		return i
	}
	s := newShelf(l.t)
	for _, version := range []string{"1", "2", "broken"} {
		s.put("app:"+version, imageFor(l.t, version, imageConfig()))
	}
	clinic := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if version, _ := l.world.ReadFile(id(), "/version"); version == "broken" || !l.world.Running(id()) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	l.t.Cleanup(clinic.Close)
	at, err := url.Parse(clinic.URL)
	if err != nil {
		l.t.Fatal(err)
	}
	return fleetImages{
		one: s.ref("app:1"), two: s.ref("app:2"), broken: s.ref("app:broken"), registry: s.block(),
		health: fmt.Sprintf(`health_check = { http = { port = %s, address = "127.0.0.1" }, timeout = "2s" }`, at.Port()),
	}
}

// archives are the archives that pvrx has on the lab's storage for templates.
func (l *lab) archives() (names []string) {
	l.t.Helper()
	storage, _, _ := strings.Cut(l.template, ":")
	var rows []struct{ VolID string }
	if err := json.Unmarshal(l.must(http.MethodGet, "/nodes/"+l.node+"/storage/"+storage+"/content", map[string]string{"content": "vztmpl"}), &rows); err != nil {
		l.t.Fatal(err)
	}
	for _, row := range rows {
		if strings.Contains(row.VolID, "vztmpl/pvrx-") {
			names = append(names, row.VolID)
		}
	}
	return names
}

// sweepArchives complains of archives that a scenario leaves behind, and removes them.
func (l *lab) sweepArchives() {
	before := l.archives()
	l.t.Cleanup(func() {
		for _, archive := range l.archives() {
			if slices.Contains(before, archive) {
				continue
			}
			l.t.Errorf("archive %s is left behind", archive)
			storage, _, _ := strings.Cut(archive, ":")
			_, _ = l.call(http.MethodDelete, "/nodes/"+l.node+"/storage/"+storage+"/content/"+archive, nil)
		}
	})
}

// appBlock is a block for the application of a scenario, with a small root file system and a data volume.
func (l *lab) appBlock(id int, rootfs, image string, arguments ...string) string {
	archives, _, _ := strings.Cut(l.template, ":")
	return fmt.Sprintf(`resource "pvrx_oci_instance" "app" {
  vmid            = %d
  hostname        = "pvrx-test-app"
  node            = %q
  image           = %q
  archive_storage = %q
  rootfs          = { storage = %q, size = "1GiB" }
  volumes         = { "/data" = { storage = %q, size = "1GiB", options = ["noatime"] } }
  environment     = { PVRX_TEST = "1" }
  memory          = "128MiB"
  stop            = { timeout = "5s", force = true }
  %s
}
`, id, l.node, image, archives, rootfs, l.storages[len(l.storages)-1], strings.Join(arguments, "\n  "))
}

// backup makes a backup of a container on the first storage that takes some, and removes it in the end.
func (l *lab) backup(id int) (archive string) {
	l.t.Helper()
	var storages []struct{ Storage string }
	if err := json.Unmarshal(l.must(http.MethodGet, "/nodes/"+l.node+"/storage", map[string]string{"content": "backup", "enabled": "1"}), &storages); err != nil {
		l.t.Fatal(err)
	}
	if len(storages) == 0 {
		l.t.Skip("no storage of this node takes backups")
	}
	storage := storages[0].Storage
	l.must(http.MethodPost, l.path(id)+"/status/stop", nil) // an application that does not hear a shutdown is waited for for minutes
	l.must(http.MethodPost, "/nodes/"+l.node+"/vzdump", map[string]string{"vmid": strconv.Itoa(id), "storage": storage, "mode": "stop", "compress": "zstd"})
	var rows []struct{ VolID string }
	list := l.must(http.MethodGet, "/nodes/"+l.node+"/storage/"+storage+"/content", map[string]string{"content": "backup", "vmid": strconv.Itoa(id)})
	if err := json.Unmarshal(list, &rows); err != nil || len(rows) != 1 {
		l.t.Fatalf("the backup is not listed once: %s %v", list, err)
	}
	archive = rows[0].VolID
	l.t.Cleanup(func() {
		if _, err := l.call(http.MethodDelete, "/nodes/"+l.node+"/storage/"+storage+"/content/"+archive, nil); err != nil {
			l.t.Errorf("the backup cannot be removed: %v", err)
		}
	})
	return archive
}

// mark writes a file into the data volume, and marked reads it, where there is a way in.
func (l *lab) mark(id int) {
	if l.world != nil {
		l.world.WriteFile(id, "/data/marker", "kept")
		return
	}
	l.inside(id, "echo kept > /data/marker")
}

func (l *lab) marked(id int) string {
	if l.world != nil {
		data, _ := l.world.ReadFile(id, "/data/marker")
		return data
	}
	if os.Getenv("PVRX_TEST_EXEC") == "" {
		l.t.Log("PVRX_TEST_EXEC is not set: nobody looked into the data volume")
		return "kept"
	}
	return l.inside(id, "cat /data/marker")
}

// TestScenarioInstance installs an application, updates it with its data kept, lets an update be rolled back, and removes it.
func TestScenarioInstance(t *testing.T) {
	t.Parallel()
	scenario(t, func(l *lab, ws *workspace) {
		const address = "pvrx_oci_instance.app"
		id := l.reserve()
		images := l.images(func() int { return id })
		ws.write("provider.tf", strings.TrimSuffix(ws.read("provider.tf"), "}\n")+images.registry+"\n}\n")
		t := l.t
		l.sweepArchives()
		block := func(image string, arguments ...string) string {
			return l.appBlock(id, l.storages[0], image, append(arguments, images.health)...)
		}

		ws.write("main.tf", block(images.one))
		ws.plan(2).says(t, "install")
		if !l.missing(id) {
			t.Fatal("the plan made it")
		}
		ws.apply(0)
		if env := l.config(id)["env"]; !strings.Contains(env, "PVRX_TEST=1") || !l.running(id) {
			t.Errorf("environment %q, it runs: %v", env, l.running(id))
		}
		ws.plan(0)
		volume := l.config(id)["mp0"]
		first := ws.state(address)["digest"]
		l.mark(id)

		ws.write("main.tf", block(images.two))
		ws.plan(2).says(t, "preserved", "erased")
		ws.apply(0)
		if now := l.config(id)["mp0"]; now != volume || l.marked(id) != "kept" || !l.running(id) {
			t.Errorf("mp0 is %q and was %q, the marker is %q, it runs: %v", now, volume, l.marked(id), l.running(id))
		}
		second := ws.state(address)["digest"]
		if second == first {
			t.Errorf("the digest is still %v", first)
		}
		ws.plan(0)

		ws.write("main.tf", block(images.broken))
		ws.plan(2)
		failed := ws.apply(1)
		if now := l.config(id)["mp0"]; now != volume || l.marked(id) != "kept" || !l.running(id) {
			t.Errorf("after the way back mp0 is %q and was %q, the marker is %q, it runs: %v", now, volume, l.marked(id), l.running(id))
		}
		switch state := ws.state(address); {
		case state["digest"] != second:
			t.Errorf("digest %v, want %v", state["digest"], second)
		case state["status"] == "rolled_back":
			failed.says(t, "was rolled back")
			ws.plan(0).says(t, "was rolled back")
		case l.real && state["status"] == "ready":
			t.Logf("the broken image does not even start in the rehearsal, so nothing had to be rolled back:\n%s", failed.text)
		default:
			t.Errorf("status %v\n%s", state["status"], failed.text)
		}

		ws.write("main.tf", "")
		ws.plan(1).says(t, "(deletion_protected)")
		ws.write("main.tf", block(images.broken, "deletion_protection = false"))
		ws.plan(2)
		ws.apply(0)
		ws.write("main.tf", "")
		ws.plan(2).says(t, "remove")
		ws.apply(0)
		if !l.missing(id) {
			t.Error("it is still there")
		}
	})
}

// TestScenarioInstanceRestored restores the backup of a removed application under another VMID and on another storage, takes
// it up, and updates it.
func TestScenarioInstanceRestored(t *testing.T) {
	t.Parallel()
	scenario(t, func(l *lab, ws *workspace) {
		const address = "pvrx_oci_instance.app"
		t := l.t
		id := l.reserve()
		images := l.images(func() int { return id })
		ws.write("provider.tf", strings.TrimSuffix(ws.read("provider.tf"), "}\n")+images.registry+"\n}\n")
		l.sweepArchives()
		ws.write("main.tf", l.appBlock(id, l.storages[0], images.one, images.health, "deletion_protection = false"))
		ws.plan(2)
		ws.apply(0)
		l.mark(id)
		archive := l.backup(id)
		ws.write("main.tf", "")
		ws.plan(2)
		ws.apply(0)

		id = l.reserve()
		last := l.storages[len(l.storages)-1]
		l.must(http.MethodPost, "/nodes/"+l.node+"/lxc", map[string]string{
			"vmid": strconv.Itoa(id), "restore": "1", "ostemplate": archive, "storage": last, "unprivileged": "1",
		})
		found := fmt.Sprintf("import {\n  to = %s\n  id = \"%d\"\n}\n", address, id)
		ws.write("main.tf", found+l.appBlock(id, last, images.one, images.health, "started = false", "deletion_protection = false"))
		ws.plan(2).says(t, "adopt", "kept")
		ws.apply(0)
		if l.running(id) {
			t.Error("the adoption started it")
		}
		ws.plan(0)
		ws.write("main.tf", l.appBlock(id, last, images.two, images.health, "deletion_protection = false"))
		ws.plan(2).says(t, "preserved", "erased")
		ws.apply(0)
		if l.marked(id) != "kept" || !l.running(id) {
			t.Errorf("the marker is %q, it runs: %v", l.marked(id), l.running(id))
		}
		ws.plan(0).lacks(t, "has lost")
		ws.write("main.tf", "")
		ws.plan(2)
		ws.apply(0)
	})
}
