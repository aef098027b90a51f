package provider

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
)

var update = flag.Bool("update", false, "write golden files anew")

// golden compares a text with a file, volatile words made equal.
func golden(t *testing.T, name, text string) {
	t.Helper()
	text = regexp.MustCompile(`sha256:[0-9a-f]{32}`).ReplaceAllString(text, "sha256:…")
	text = regexp.MustCompile(`[~ ] (\w+ += \(write-only)`).ReplaceAllString(text, "  $1") // tofu marks them as changed, always
	file := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != text {
		t.Errorf("%s differs (go test -update writes it anew):\n%s\nwas:\n%s", name, text, want)
	}
}

// guestLines is the part of a plan that is about one resource, from its heading to its closing brace.
func guestLines(t *testing.T, plan, address string) []string {
	t.Helper()
	lines := strings.Split(plan, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(strings.TrimSpace(line), "# "+address+" will be ") {
			continue
		}
		for j := i; j < len(lines); j++ {
			if strings.TrimRight(lines[j], " ") == "    }" {
				return lines[i : j+1]
			}
		}
	}
	t.Fatalf("the plan says nothing of %s:\n%s", address, plan)
	return nil
}

// mostLines is how long a guest's part of a plan may be, without its heading and its braces.
const mostLines = 35

func TestPlanOfTheDemoFitsAScreen(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		s := simulate(t, c)
		s.imported()
		s.write("mail.tf", importOf("mail1", pvesim.DemoMail)+block("mail1", pvesim.DemoMail, "mail1", template(pvesim.DemoTemplate13)))
		out := s.plan(2)
		both := guestLines(t, out.text, web1)
		both = append(both, guestLines(t, out.text, "pvrx_container_reinstall.mail1")...)
		golden(t, "plan.txt", strings.Join(both, "\n")+"\n"+warnings(out.text))
		for _, address := range []string{web1, "pvrx_container_reinstall.mail1"} {
			lines := guestLines(t, out.text, address)
			lines = lines[slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, "resource \"") })+1 : len(lines)-1]
			t.Logf("%s takes %d lines", address, len(lines))
			if len(lines) > mostLines {
				t.Errorf("%s takes %d lines, want at most %d", address, len(lines), mostLines)
			}
			for _, line := range lines {
				if strings.Contains(line, `+ "mp0"`) && utf8.RuneCountInString(line) > 110 {
					t.Errorf("a fate does not fit a line: %s", line)
				}
			}
		}
	})
}

// warnings are the plan's warnings, by guest: the CLIs print them in the order in which providers answered.
func warnings(plan string) string {
	parts := strings.Split(plan, "Warning: ")[1:]
	for i := range parts {
		parts[i] = "Warning: " + strings.TrimRight(parts[i], "\n") + "\n"
	}
	slices.Sort(parts)
	return strings.Join(parts, "\n")
}

func TestPlanIsKnownToPolicies(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		s := simulate(t, c)
		s.imported()
		s.plan(2)
		after := s.planned(web1)
		unknown, _ := after["after_unknown"].(map[string]any)
		if holds(unknown["preview"]) {
			t.Errorf("parts of the preview are unknown: %v", unknown["preview"])
		}
		shown, _ := after["preview"].(map[string]any)
		fates, _ := shown["fates"].(map[string]any)
		for key, starts := range map[string]string{
			"rootfs": "erased       recreated", "mp0": "preserved    reattached", "mp1": "excluded     reattached",
			"mp2": "host_managed dropped", "unused0": "preserved    reattached",
		} {
			if line, _ := fates[key].(string); !strings.HasPrefix(line, starts) {
				t.Errorf("fates[%s] = %q, want %q …", key, line, starts)
			}
		}
		if got, _ := json.Marshal(shown["erased"]); string(got) != `{"rootfs":"local-lvm:vm-5001-disk-0"}` {
			t.Errorf("erased = %s", got)
		}
		if shown["erased_bytes"] != float64(9126805504) || shown["blockers"] != nil || shown["root_password"] != "none" {
			t.Errorf("preview = %v", shown)
		}
	})
}

// holds reports whether anything inside is true: that is how the CLI marks the unknown.
func holds(unknown any) bool {
	switch v := unknown.(type) {
	case bool:
		return v
	case map[string]any:
		for _, part := range v {
			if holds(part) {
				return true
			}
		}
	case []any:
		for _, part := range v {
			if holds(part) {
				return true
			}
		}
	}
	return false
}

func TestPreviewDataSourceNeedsOnlyAnAuditToken(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		s := simulate(t, c)
		s.write("provider.tf", strings.Replace(s.read("provider.tf"), s.world.Token, s.world.AuditToken, 1))
		s.world.Lock(web, "snapshot")
		s.write("main.tf", `data "pvrx_preview" "web1" {
  vmid     = 5001
  template = "`+pvesim.DemoTemplate13+`"
}
output "preview" { value = data.pvrx_preview.web1.preview }
output "volumes" { value = data.pvrx_preview.web1.volumes }
output "due" { value = data.pvrx_preview.web1.due }
`)
		s.run(0, "apply", "-no-color", "-input=false", "-auto-approve")
		s.untouched()
		out := s.run(0, "output", "-json")
		var shown struct {
			Preview struct {
				Value struct {
					Blockers []struct{ Code, Found string }
					Fates    map[string]string
				}
			}
			Volumes struct {
				Value map[string]struct {
					Data, Mount string
					Size        int64 `json:"size_bytes"`
				}
			}
			Due struct{ Value bool }
		}
		if err := json.Unmarshal([]byte(out.text), &shown); err != nil {
			t.Fatalf("%v\n%s", err, out.text)
		}
		codes := map[string]bool{}
		for _, b := range shown.Preview.Value.Blockers {
			codes[b.Code] = true
		}
		if !codes["locked"] || !codes["privileges"] || !codes["not_recreatable"] {
			t.Errorf("blockers = %v", shown.Preview.Value.Blockers)
		}
		// It may not list the storages' volumes, so it cannot tell whose mp0 is.
		if v := shown.Volumes.Value["mp0"]; len(shown.Volumes.Value) != 5 || v.Size != 100<<30 || v.Data != "unknown" {
			t.Errorf("volumes = %v", shown.Volumes.Value)
		}
		if !shown.Due.Value {
			t.Error("nothing is recorded, so a reinstall is due")
		}
	})
}
