package provider

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
)

// TestMain keeps the SDK's own logs out of the tests' output, since the provider runs in this process, and gives the tests
// that need a process of its own a folder to build it in.
func TestMain(m *testing.M) {
	for _, name := range []string{"TF_LOG_SDK", "TF_LOG_SDK_PROTO", "TF_LOG_SDK_FRAMEWORK", "TF_LOG_PROVIDER", "TF_LOG_PROVIDER_PVRX"} {
		if err := os.Setenv(name, "off"); err != nil {
			panic(err)
		}
	}
	folder, err := os.MkdirTemp("", "pvrx-test-")
	if err != nil {
		panic(err)
	}
	if err := os.Setenv("PVRX_TEST_PROGRAM", folder); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := os.RemoveAll(folder); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// cli is a tofu or terraform that scenarios run through.
type cli struct{ path string }

func (c cli) name() string { return filepath.Base(c.path) }

// clis returns the CLIs to run scenarios through: $PVRX_CLI, else the first of tofu and terraform that is there; all of
// them with PVRX_TEST_ALL_CLIS=1.
func clis(t *testing.T) []cli {
	t.Helper()
	if testing.Short() {
		t.Skip("drives a real CLI; `make scenarios` runs it")
	}
	if named := os.Getenv("PVRX_CLI"); named != "" && os.Getenv("PVRX_TEST_ALL_CLIS") != "1" {
		path, err := exec.LookPath(named)
		if err != nil {
			t.Fatalf("PVRX_CLI: %v", err)
		}
		return []cli{{path}}
	}
	var found []cli
	for _, candidate := range []string{"tofu", "../../.tools/bin/tofu", "terraform"} {
		path, err := exec.LookPath(candidate)
		if err != nil {
			continue
		}
		if path, err = filepath.Abs(path); err != nil {
			t.Fatal(err)
		}
		found = append(found, cli{path})
		if os.Getenv("PVRX_TEST_ALL_CLIS") != "1" {
			break
		}
	}
	if len(found) == 0 {
		t.Skip("no tofu or terraform is on PATH; `make scenarios` builds one")
	}
	return found
}

// everyCLI runs a test once for each CLI.
func everyCLI(t *testing.T, test func(t *testing.T, c cli)) {
	t.Helper()
	for _, c := range clis(t) {
		t.Run(c.name(), func(t *testing.T) { t.Parallel(); test(t, c) })
	}
}

// attach serves a provider from this process and returns how a CLI finds it.
func attach(t *testing.T, p *Provider) (variable string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	made, closed := make(chan *plugin.ReattachConfig), make(chan struct{})
	go func() {
		err := tf6server.Serve(Address, providerserver.NewProtocol6(p),
			tf6server.WithDebug(ctx, made, closed), tf6server.WithGoPluginLogger(hclog.NewNullLogger()))
		if err != nil {
			t.Errorf("cannot serve the provider: %v", err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-closed
	})
	var at *plugin.ReattachConfig
	select {
	case at = <-made:
	case <-time.After(20 * time.Second):
		t.Fatal("the provider did not come up")
	}
	data, err := json.Marshal(map[string]any{Address: map[string]any{
		"Protocol": string(at.Protocol), "ProtocolVersion": 6, "Pid": at.Pid, "Test": true,
		"Addr": map[string]string{"Network": at.Addr.Network(), "String": at.Addr.String()},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return "TF_REATTACH_PROVIDERS=" + string(data)
}

// workspace is a folder with a configuration and a state.
type workspace struct {
	t    *testing.T
	cli  cli
	dir  string
	env  []string
	last output
}

// output is what a CLI printed, and how it ended.
type output struct {
	text string
	code int
}

const providerBlock = `terraform {
  required_providers {
    pvrx = { source = "registry.opentofu.org/pvrx/pvrx" }
  }
}
`

func newWorkspace(t *testing.T, c cli, env ...string) *workspace {
	t.Helper()
	w := &workspace{t: t, cli: c, dir: t.TempDir()}
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); !strings.HasPrefix(name, "TF_") && !strings.HasPrefix(name, "PVRX_") && !strings.HasPrefix(name, "PROXMOX_") {
			w.env = append(w.env, variable)
		}
	}
	w.env = append(w.env, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1", "TF_CLI_CONFIG_FILE="+os.DevNull, "COLUMNS=80")
	w.env = append(w.env, env...)
	w.write("versions.tf", providerBlock)
	return w
}

func (w *workspace) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *workspace) remove(name string) {
	w.t.Helper()
	if err := os.Remove(filepath.Join(w.dir, name)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *workspace) read(name string) string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

// command prepares the CLI without running it.
func (w *workspace) command(args ...string) *exec.Cmd {
	cmd := exec.Command(w.cli.path, args...)
	cmd.Dir, cmd.Env = w.dir, w.env
	return cmd
}

// try runs the CLI, however it ends.
func (w *workspace) try(args ...string) output {
	w.t.Helper()
	data, err := w.command(args...).CombinedOutput()
	out := output{text: string(data)}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		out.code = exit.ExitCode()
	} else if err != nil {
		w.t.Fatal(err)
	}
	w.last = out
	return out
}

// run runs the CLI and demands an exit code.
func (w *workspace) run(code int, args ...string) output {
	w.t.Helper()
	out := w.try(args...)
	if out.code != code {
		w.t.Fatalf("%s %s ended with %d, want %d\n%s", w.cli.name(), strings.Join(args, " "), out.code, code, out.text)
	}
	return out
}

// plan plans into the file p: 0 for no changes, 2 for some, 1 for a refusal.
func (w *workspace) plan(code int, args ...string) output {
	w.t.Helper()
	return w.run(code, append([]string{"plan", "-no-color", "-input=false", "-detailed-exitcode", "-out=p"}, args...)...)
}

// apply applies the plan file p.
func (w *workspace) apply(code int) output {
	w.t.Helper()
	return w.run(code, "apply", "-no-color", "-input=false", "p")
}

// planned returns the planned values of a resource in the plan file p, as policies read them.
func (w *workspace) planned(address string) map[string]any {
	w.t.Helper()
	out, err := w.command("show", "-json", "p").Output()
	if err != nil {
		w.t.Fatalf("cannot show the plan: %v", err)
	}
	var shown struct {
		Changes []struct {
			Address string
			Change  struct {
				Actions []string
				After   map[string]any
				Unknown map[string]any `json:"after_unknown"`
			}
		} `json:"resource_changes"`
	}
	if err := json.Unmarshal(out, &shown); err != nil {
		w.t.Fatal(err)
	}
	for _, c := range shown.Changes {
		if c.Address == address {
			c.Change.After["after_unknown"] = c.Change.Unknown
			return c.Change.After
		}
	}
	w.t.Fatalf("the plan says nothing of %s", address)
	return nil
}

// state returns the values of a resource in the state.
func (w *workspace) state(address string) map[string]any {
	w.t.Helper()
	out, err := w.command("show", "-json").Output()
	if err != nil {
		w.t.Fatalf("cannot show the state: %v", err)
	}
	var shown struct {
		Values struct {
			Root struct {
				Resources []struct {
					Address string
					Values  map[string]any
					Tainted bool
				}
			} `json:"root_module"`
		}
	}
	if err := json.Unmarshal(out, &shown); err != nil {
		w.t.Fatal(err)
	}
	for _, r := range shown.Values.Root.Resources {
		if r.Address == address {
			if r.Tainted {
				w.t.Errorf("%s is tainted", address)
			}
			return r.Values
		}
	}
	return nil
}

// flat is the text without boxes and line breaks: what it says, wherever the CLI wrapped it.
func (o output) flat() string {
	return strings.Join(strings.Fields(strings.NewReplacer("│", " ", "╷", " ", "╵", " ").Replace(o.text)), " ")
}

// says demands sentences in the output.
func (o output) says(t *testing.T, sentences ...string) {
	t.Helper()
	for _, s := range sentences {
		if !strings.Contains(o.flat(), strings.Join(strings.Fields(s), " ")) {
			t.Errorf("the output does not say %q:\n%s", s, o.text)
		}
	}
}

// lacks demands that the output does not say something.
func (o output) lacks(t *testing.T, sentences ...string) {
	t.Helper()
	for _, s := range sentences {
		if strings.Contains(o.flat(), s) {
			t.Errorf("the output says %q:\n%s", s, o.text)
		}
	}
}
