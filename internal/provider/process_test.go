package provider

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
)

// built is the folder of the provider's program, built once for all tests that need a process of its own. TestMain makes
// the folder and removes it.
var built = sync.OnceValues(func() (string, error) {
	dir := os.Getenv("PVRX_TEST_PROGRAM")
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "terraform-provider-pvrx"), "../..")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build the provider: %w\n%s", err, out)
	}
	return dir, nil
})

// apart replaces the provider in this process by one that the CLI starts itself.
func (w *workspace) apart() {
	w.t.Helper()
	dir, err := built()
	if err != nil {
		w.t.Fatal(err)
	}
	w.write("cli.tfrc", fmt.Sprintf("provider_installation {\n  dev_overrides {\n    %q = %q\n  }\n  direct {}\n}\n", Address, dir))
	var env []string
	for _, variable := range w.env {
		if !strings.HasPrefix(variable, "TF_REATTACH_PROVIDERS=") && !strings.HasPrefix(variable, "TF_CLI_CONFIG_FILE=") {
			env = append(env, variable)
		}
	}
	env = append(env, "TF_CLI_CONFIG_FILE="+filepath.Join(w.dir, "cli.tfrc"))
	w.env = env
}

// eventually waits for something to hold.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(90 * time.Second); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// providers are the processes of the built provider whose parent is not, or no longer, the given one.
func providers(t *testing.T, folder string) (pids []string) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		exe, err := os.Readlink(link)
		if err != nil || filepath.Base(exe) != "terraform-provider-pvrx" {
			continue // ended meanwhile, or another program
		}
		pid := filepath.Base(filepath.Dir(link))
		if cwd, err := os.Readlink("/proc/" + pid + "/cwd"); err == nil && cwd == folder {
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestSecretsAreInNoLogStatePlanOrNotes(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-correct-horse"
	everyCLI(t, func(t *testing.T, c cli) {
		s := simulate(t, c)
		s.apart()
		log := filepath.Join(s.dir, "log")
		s.imported("root_password_wo = var.pw")
		s.write("variables.tf", "variable \"pw\" {\n  type = string\n  ephemeral = true\n}\n")
		s.env = append(s.env, "TF_LOG=TRACE", "TF_LOG_PATH="+log, "TF_VAR_pw="+secret)
		s.plan(2)
		s.apply(0)
		handed := false
		for _, r := range s.server.Requests() {
			handed = handed || r.Params["password"] == secret
		}
		if !handed {
			t.Error("the new guest was made without the password")
		}
		for _, file := range []string{"terraform.tfstate", "p", "log"} {
			if strings.Contains(s.read(file), secret) {
				t.Errorf("%s holds the password", file)
			}
		}
		if !strings.Contains(s.read("log"), "pvrx_container_reinstall") {
			t.Error("the log is not a trace")
		}
		_, token, _ := strings.Cut(s.world.Token, "=")
		if strings.Contains(s.read("log"), token) {
			t.Error("the log holds the token")
		}
		for _, id := range s.world.Guests() {
			if strings.Contains(s.world.Config(id)["description"], secret) {
				t.Errorf("the notes of guest %d hold the password", id)
			}
		}
	})
}

func TestKilledCLILeavesAProviderThatFinishesAndEnds(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("looks for processes in /proc, which only Linux has")
	}
	everyCLI(t, func(t *testing.T, c cli) {
		s := simulate(t, c)
		s.apart()
		s.imported()
		s.plan(2)
		entered := make(chan struct{})
		s.server.Inject(pvesim.Fault{
			Kind: pvesim.FaultWorld, Method: "POST", Path: `^/nodes/pve1/lxc$`, Params: map[string]string{"vmid": "5001"},
			World: func(*pvesim.Cluster) { close(entered); time.Sleep(2 * time.Second) },
		})
		cmd := s.command("apply", "-no-color", "-input=false", "p")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-entered // past the point of no return: the guest is destroyed, its successor not made yet
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if len(providers(t, s.dir)) != 1 {
			t.Fatalf("want one provider left behind, found %v", providers(t, s.dir))
		}
		eventually(t, "the operation is finished", func() bool {
			text, _ := s.world.ReadFile(web, "/etc/debian_version")
			return text == "13" && s.world.Running(web) && len(s.world.Guests()) < 7 && !strings.Contains(s.world.Config(web)["description"], "stage")
		})
		eventually(t, "the orphaned provider has ended", func() bool { return len(providers(t, s.dir)) == 0 })
	})
}

func TestInterruptBeforeThePointUndoes(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		s := simulate(t, c)
		s.apart()
		s.imported()
		s.plan(2)
		before := s.world.Dump(pvesim.IgnoreIdentity())
		entered := make(chan struct{})
		s.server.Inject(pvesim.Fault{
			Kind: pvesim.FaultWorldAfter, Method: "POST", Path: `^/nodes/pve1/lxc/5001/status/shutdown$`,
			World: func(*pvesim.Cluster) { close(entered); time.Sleep(time.Second) },
		})
		var out bytes.Buffer
		cmd := s.command("apply", "-no-color", "-input=false", "p")
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-entered
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Errorf("an interrupted apply ended well:\n%s", out.String())
		}
		if after := s.world.Dump(pvesim.IgnoreIdentity()); after != before {
			t.Errorf("the cluster changed:\n%s\nwas:\n%s\n%s", after, before, out.String())
		}
		s.plan(2)
	})
}

func TestInterruptWhileWaitingForATurnReturnsAtOnce(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		w := newWorld(5001, 5002)
		ws := desk(t, c, w)
		entered := make(chan struct{}, 2)
		w.hold = func(ctx context.Context) {
			entered <- struct{}{}
			<-ctx.Done()
		}
		for i, name := range []string{"web1", "web2"} {
			ws.write(name+".tf", importOf(name, w.id(i))+block(name, w.id(i), name, template(debian13)))
		}
		ws.plan(2)
		before := w.looked()
		var out bytes.Buffer
		cmd := ws.command("apply", "-no-color", "-input=false", "p")
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-entered
		// Each guest is looked at once more when the apply plans it, and the one at work when its operation starts.
		eventually(t, "both guests have come to their operation", func() bool { return w.looked() >= before+3 })
		time.Sleep(time.Second) // the last step into the queue is not to be seen from here
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Error("an interrupted apply ended well")
		}
		output{text: out.String()}.says(t, "not started", "The run was cancelled while this operation waited for its turn")
		if len(w.applied) != 1 {
			t.Errorf("operations begun: %v, want one", w.applied)
		}
	})
}
