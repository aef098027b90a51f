package provider

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/proxmox"
	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
)

// quick is patience for a server that answers at once.
var quick = proxmox.Pace{
	PollFirst: time.Millisecond, PollMost: 20 * time.Millisecond, LockFirst: 5 * time.Millisecond, LockMost: 50 * time.Millisecond,
	Locked: 2 * time.Second, Blind: 2 * time.Second, Find: time.Second, Grace: 2 * time.Second, Settle: 5 * time.Second,
}

// simulation is the demo cluster behind a server, with a workspace whose provider talks to it.
type simulation struct {
	*workspace
	world  *pvesim.Demo
	server *pvesim.Server
}

// simulate starts a demo cluster of its own for a test; arguments go into the provider block.
func simulate(t *testing.T, c cli, arguments ...string) *simulation {
	t.Helper()
	s := &simulation{world: pvesim.NewDemo()}
	s.world.SetRights("pvrx@pve!demo", "/pool/web", "Pool.Audit", "Pool.Allocate", "VM.Allocate")
	s.server = pvesim.NewServer(s.world.Cluster)
	endpoint, err := s.server.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.server.Close)
	p := New("test")
	p.connect = func(ctx context.Context, set setup) (operator, error) {
		set.Pace = quick
		return connectProxmox(ctx, set)
	}
	s.workspace = newWorkspace(t, c, attach(t, p))
	ca := filepath.Join(s.dir, "ca.pem")
	if err := os.WriteFile(ca, s.server.CertificatePEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	s.write("provider.tf", fmt.Sprintf("provider \"pvrx\" {\n  endpoint = %q\n  api_token = %q\n  tls = { ca_file = %q }\n  %s\n}\n",
		endpoint, s.world.Token, ca, strings.Join(arguments, "\n  ")))
	return s
}

// untouched demands that the server saw no request that could have changed something.
func (s *simulation) untouched() {
	s.t.Helper()
	for _, r := range s.server.Requests() {
		if r.Mutates() {
			s.t.Errorf("the server saw %s %s", r.Method, r.Path)
		}
	}
}

func TestDemoContainerIsReinstalled(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		s := simulate(t, c)
		s.write("main.tf", importOf("web1", 5001)+block("web1", 5001, "web1", template(pvesim.DemoTemplate13), `drop = ["mp2"]`))
		out := s.plan(2)
		t.Log(out.text)
		s.untouched()
		s.apply(0)
		s.plan(0)
	})
}
