package provider

import (
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
)

// killed applies the plan, and kills the provider when a request has had its effect.
func (h *harbour) killed(method, path string) {
	h.t.Helper()
	entered, release := make(chan struct{}), make(chan struct{})
	h.server.Inject(pvesim.Fault{Kind: pvesim.FaultWorldAfter, Method: method, Path: path, World: func(*pvesim.Cluster) {
		close(entered)
		<-release
	}})
	cmd := h.command("apply", "-no-color", "-input=false", "p")
	var out transcript
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, 10*time.Second
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-entered:
	case err := <-ended:
		close(release)
		h.t.Fatalf("the apply ended before its death came: %v\n%s", err, out.String())
	}
	for _, pid := range providers(h.t, h.dir) {
		if n, err := strconv.Atoi(pid); err == nil {
			_ = syscall.Kill(n, syscall.SIGKILL) // those that ended by themselves are as good
		}
	}
	if err := <-ended; err == nil {
		h.t.Errorf("an apply whose provider was killed ended well:\n%s", out.String())
	}
	close(release)
	eventually(h.t, "the provider has ended", func() bool { return len(providers(h.t, h.dir)) == 0 })
	h.world.Wait()
	h.server.ClearFaults()
}

// goesOn does what the plans say until nothing is left to do.
func (h *harbour) goesOn(block func(arguments ...string) string) {
	h.t.Helper()
	h.write("main.tf", block())
	for range 5 {
		out := h.try("plan", "-no-color", "-input=false", "-detailed-exitcode", "-out=p")
		switch out.code {
		case 0:
			return
		case 1:
			open := regexp.MustCompile(`op-6001-[0-9]{8}-[0-9a-f]{4}`).FindString(out.text)
			if open == "" || !strings.Contains(out.text, "(needs_reconcile)") && !strings.Contains(out.text, "(operation_in_flight)") {
				h.t.Fatalf("the plan names no operation to go on with:\n%s", out.text)
			}
			h.write("main.tf", block(reconcileWith(open, "resume")))
			continue
		}
		h.apply(0)
	}
	h.t.Fatalf("the plan does not become empty:\n%s", h.last.text)
}

// A provider that is killed in the middle of an install, an update or a removal leaves its record in Proxmox, from which the
// next run goes on: of an install by an import, since no state knows it.
func TestInstanceWhoseProviderIsKilled(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("looks for processes in /proc, which only Linux has")
	}
	everyCLI(t, func(t *testing.T, c cli) {
		h := newHarbour(t, c)
		h.apart()
		h.write("main.tf", h.block("1", domain))
		h.plan(2)
		h.killed("POST", "^/nodes/pve1/lxc$")
		if state := h.state(shop); state != nil {
			t.Errorf("state %v", state)
		}
		h.plan(1).says(t, "Import it first")
		found := strings.Replace(vaultImport, "vault", "shop", 1)
		h.goesOn(func(arguments ...string) string { return found + h.block("1", append(arguments, domain)...) })
		h.write("main.tf", h.block("1", domain))
		h.plan(2) // the argument goes, and nothing else happens
		h.apply(0)
		if env := h.world.Config(shopID)["env"]; !strings.Contains(env, "DOMAIN=") || !h.world.Running(shopID) {
			t.Errorf("environment %q, it runs: %v", env, h.world.Running(shopID))
		}

		h.world.WriteFile(shopID, "/data/marker", "kept")
		h.write("main.tf", h.block("2", domain))
		h.plan(2)
		h.killed("DELETE", "^/nodes/pve1/lxc/6001$")
		h.goesOn(func(arguments ...string) string { return h.block("2", append(arguments, domain)...) })
		if version, _ := h.world.ReadFile(shopID, "/version"); version != "2" {
			t.Errorf("version %q", version)
		}
		if marker, _ := h.world.ReadFile(shopID, "/data/marker"); marker != "kept" || !h.world.Running(shopID) {
			t.Errorf("the marker is %q, it runs: %v", marker, h.world.Running(shopID))
		}
		if env := h.world.Config(shopID)["env"]; !strings.Contains(env, "DOMAIN=") || !strings.Contains(env, "/image-2") {
			t.Errorf("environment %q", env)
		}

		h.write("main.tf", h.block("2", domain, "deletion_protection = false"))
		h.plan(2)
		h.apply(0)
		h.write("main.tf", "")
		h.plan(2)
		h.killed("DELETE", "^/nodes/pve1/lxc/6001$")
		h.try("apply", "-no-color", "-input=false", "-auto-approve")
		h.plan(0)
		if slices.Contains(h.world.Guests(), shopID) {
			t.Error("the container is still there")
		}
	})
}
