package provider

import (
	"archive/zip"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// unzipped is everything that a plan file holds.
func unzipped(t *testing.T, file string) string {
	t.Helper()
	r, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var all strings.Builder
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(&all, in); err != nil {
			t.Fatal(err)
		}
		in.Close()
	}
	return all.String()
}

// Secret variables reach the container and nothing else: no plan, no state, no log, no notes; nor does a registry's password
// get into a log.
func TestInstanceSecretsAreInNoLogStatePlanOrNotes(t *testing.T) {
	t.Parallel()
	const secret, password = "hunter2-correct-horse", "registry-battery-staple"
	everyCLI(t, func(t *testing.T, c cli) {
		h := newHarbour(t, c)
		h.apart()
		h.shelf.lock("robot:" + password)
		h.write("provider.tf", strings.Replace(h.read("provider.tf"), "plain_http = true", fmt.Sprintf("plain_http = true, username = \"robot\", password = %q", password), 1))
		h.write("variables.tf", "variable \"token\" {\n  type = string\n  ephemeral = true\n}\n")
		h.env = append(h.env, "TF_LOG=TRACE", "TF_LOG_PATH="+filepath.Join(h.dir, "log"), "TF_VAR_token="+secret)
		wo := func(version int) string {
			return fmt.Sprintf("environment_wo = { ADMIN_TOKEN = var.token }\n  environment_wo_version = %d", version)
		}
		h.write("main.tf", h.block("1", wo(1)))
		h.plan(2)
		shown, err := h.command("show", "-json", "p").Output()
		if err != nil {
			t.Fatal(err)
		}
		plan := unzipped(t, filepath.Join(h.dir, "p")) + string(shown)
		h.apply(0)
		if env := h.world.Config(shopID)["env"]; !strings.Contains(env, "ADMIN_TOKEN="+secret) {
			t.Fatalf("the container was not given it: %q", env)
		}
		h.plan(0)
		h.write("main.tf", h.block("2", wo(1)))
		h.plan(2)
		h.apply(0)
		if env := h.world.Config(shopID)["env"]; !strings.Contains(env, "ADMIN_TOKEN="+secret) {
			t.Fatalf("the update lost it: %q", env)
		}
		h.write("main.tf", h.block("2", wo(2)))
		h.plan(2)
		plan += unzipped(t, filepath.Join(h.dir, "p"))
		h.apply(0)
		for what, text := range map[string]string{"the state": h.read("terraform.tfstate"), "the plan": plan, "the log": h.read("log")} {
			if strings.Contains(text, secret) {
				t.Errorf("%s holds the secret variable", what)
			}
			if strings.Contains(text, password) && what != "the plan" { // a plan file holds the provider's own arguments
				t.Errorf("%s holds the registry's password", what)
			}
		}
		if !strings.Contains(h.read("log"), "uploading the archive") {
			t.Error("the log says nothing of the upload")
		}
		for _, id := range h.world.Guests() {
			if strings.Contains(h.world.Config(id)["description"], secret) {
				t.Errorf("the notes of guest %d hold the secret", id)
			}
		}
		for _, r := range h.server.Requests() {
			for name, value := range r.Params {
				if strings.Contains(value, secret) && name != "env" {
					t.Errorf("%s %s carries the secret in %s", r.Method, r.Path, name)
				}
			}
		}
	})
}

// With nothing due the registry is asked for one HEAD, and Proxmox for one read of the container and nothing that changes it.
func TestInstanceNoChangeIsQuiet(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		h := newHarbour(t, c)
		h.installed()
		before := len(h.server.Requests())
		h.shelf.forget()
		h.plan(0)
		config, own := 0, 0
		for _, r := range h.server.Requests()[before:] {
			if r.Mutates() {
				t.Errorf("the plan sent %s %s", r.Method, r.Path)
			}
			if strings.Contains(r.Path, "/lxc/6001/") {
				own++
			}
			if strings.HasSuffix(r.Path, "/lxc/6001/config") {
				config++
			}
		}
		if config != 1 || own != 2 {
			t.Errorf("%d reads of its configuration and %d requests about it, want 1 and, with its addresses, 2", config, own)
		}
		h.apply(0)
		for _, r := range h.server.Requests()[before:] {
			if r.Mutates() {
				t.Errorf("the apply sent %s %s", r.Method, r.Path)
			}
		}
		if heads := h.shelf.count("HEAD manifests"); heads == 0 || len(h.shelf.asked) != heads {
			t.Errorf("the registry was asked %v", h.shelf.asked)
		}
	})
}

// The archive of an image is fetched and uploaded once, however many containers are made from it.
func TestInstanceArchiveIsUploadedOnce(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		h := newHarbour(t, c)
		h.installed()
		h.shelf.forget()
		before := len(h.server.Requests())
		second := strings.NewReplacer(`"shop" {`, `"second" {`, "= 6001", "= 6002", `hostname = "shop"`, `hostname = "second"`, h.health, "").Replace(h.block("1"))
		h.write("second.tf", second)
		h.plan(2)
		blobs := h.shelf.count("GET blobs") // the image's description
		h.apply(0)
		for _, r := range h.server.Requests()[before:] {
			if strings.HasSuffix(r.Path, "/upload") {
				t.Errorf("the server saw %s %s", r.Method, r.Path)
			}
		}
		if more := h.shelf.count("GET blobs") - blobs; more > blobs {
			t.Errorf("%d more blobs were fetched", more)
		}
	})
}

func TestInstanceDigestThatContradictsItsTag(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		h := newHarbour(t, c)
		other := "sha256:" + strings.Repeat("0a", 32)
		h.write("main.tf", h.block("1@"+other))
		h.plan(1).says(t, "image_unresolvable", other, "image    =")
		h.untouched()
	})
}

// What must be told about an instance before anything is done to it.
func TestInstancePlansThatAreRefused(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		h := newHarbour(t, c)
		for _, refused := range []struct {
			block string
			says  []string
		}{
			{strings.Replace(h.block("1"), `rootfs   = { storage = "local-lvm" }`, "", 1), []string{"storage_ambiguous", "local-lvm", "tank"}},
			{strings.Replace(h.block("1"), `node     = "pve1"`, "", 1), []string{"node"}},
			{strings.Replace(h.block("1"), "= 6001", "= 5001", 1), []string{"5001", "not_an_instance"}},
			{h.block("1", `host_directories = { "/media" = { source = "/mnt/media" } }`), []string{"not_recreatable", "root@pam"}},
			{h.block("none"), []string{"image_unresolvable"}},
			{h.block("1", `environment = { PVRX_CONTRACT = "x" }`), []string{"PVRX_CONTRACT"}},
			{h.block("1", "environment = { A = \"x\\ny\" }"), []string{"line break"}},
			{h.block("1", `environment = { A = "1" }`, `environment_wo = { A = "2" }`), []string{"A is set twice"}},
			{strings.Replace(h.block("1"), `"/data" =`, `"data" =`, 1), []string{"must be absolute"}},
			{h.block("1", `platform = "linux/arm64"`), []string{"image_unresolvable", "amd64"}},
		} {
			h.write("main.tf", refused.block)
			h.plan(1).says(t, refused.says...)
		}
		h.untouched()
	})
}
