package provider

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/proxmox"
	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// quick is patience for a server that answers at once.
var quick = proxmox.Pace{
	PollFirst: time.Millisecond, PollMost: 20 * time.Millisecond, LockFirst: 5 * time.Millisecond, LockMost: 50 * time.Millisecond,
	Locked: 2 * time.Second, Blind: 2 * time.Second, Find: time.Second, Grace: 2 * time.Second, Settle: 5 * time.Second,
}

// runnerMAC is the hardware address of the machine that the tests pretend to run on.
const runnerMAC = "bc:24:11:aa:00:01"

// simulation is the demo cluster behind a server, with a workspace whose provider talks to it.
type simulation struct {
	*workspace
	world  *pvesim.Demo
	server *pvesim.Server
}

// simulate starts a demo cluster of its own for a test; arguments go into the provider block.
func simulate(t *testing.T, c cli, arguments ...string) *simulation {
	t.Helper()
	if onServer() {
		t.Skip("needs a cluster that can be told what to do; `make scenarios` runs it on the simulated one")
	}
	s := &simulation{world: pvesim.NewDemo()}
	s.world.SetRights("pvrx@pve!demo", "/pool/web", "Pool.Audit", "Pool.Allocate", "VM.Allocate")
	s.world.SetRights("pvrx@pve!demo", "/pool", "Pool.Audit")
	s.server = pvesim.NewServer(s.world.Cluster)
	endpoint, err := s.server.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.server.Close)
	p := New("test")
	p.connect = func(ctx context.Context, set setup) (operator, error) {
		set.Pace = quick
		op, err := connectProxmox(ctx, set)
		if c, ok := op.(*recipe.Container); ok {
			c.Self = preview.Self{MACs: []string{runnerMAC}} // not the machine that runs the tests
		}
		return op, err
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

// web1Block is the usual block for the demo container, whose bind mount a token cannot set again.
func web1Block(arguments ...string) string {
	return block("web1", pvesim.DemoWeb, "web1", append([]string{template(pvesim.DemoTemplate13), `drop = ["mp2"]`}, arguments...)...)
}

// imported writes an import of the demo container and its block.
func (s *simulation) imported(arguments ...string) {
	s.write("main.tf", importOf("web1", pvesim.DemoWeb)+web1Block(arguments...))
}

// inState writes a state that knows a container, as if it had been imported long ago.
func (s *simulation) inState(id int, name string) {
	s.write("terraform.tfstate", fmt.Sprintf(`{
  "version": 4, "terraform_version": "1.11.0", "serial": 1, "lineage": "6f5902ac-237c-4b9f-8a6f-bb2f0d7e9b1e", "outputs": {},
  "resources": [{"mode": "managed", "type": "pvrx_container_reinstall", "name": "web1",
    "provider": "provider[\"registry.opentofu.org/pvrx/pvrx\"]",
    "instances": [{"schema_version": 0, "attributes": {"vmid": %d, "name": %q, "template": %q, "status": "ready", "node": "pve1"}}]}]
}`, id, name, pvesim.DemoTemplate12))
}
