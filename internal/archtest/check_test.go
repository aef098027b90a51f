package archtest_test

import (
	"slices"
	"testing"
	"testing/fstest"

	"github.com/pvrx/terraform-provider-pvrx/internal/archtest"
)

const own = "github.com/pvrx/terraform-provider-pvrx/internal/"

// TestCheck plants one import at a time and asks whether the layout notices it.
func TestCheck(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pkg, imports string
		allowed      bool
	}{
		// Along the arrows.
		{".", own + "provider", true},
		{"internal/provider", own + "run", true},
		{"internal/provider", own + "proxmox", true},
		{"internal/provider", own + "oci", true},
		{"internal/provider", own + "preview", true},
		{"internal/run", own + "recipe", true},
		{"internal/recipe", own + "preview", true},
		{"internal/recipe", own + "stage", true},
		{"internal/preview", own + "guest", true},
		{"internal/proxmox", own + "guest", true},
		{"internal/pvesim/cmd/pvesim", own + "pvesim", true},

		// Against them.
		{"internal/guest", own + "preview", false},
		{"internal/guest", own + "stage", false},
		{"internal/preview", own + "stage", false},
		{"internal/preview", own + "recipe", false},
		{"internal/stage", own + "guest", false},
		{"internal/stage", own + "proxmox", false},
		{"internal/recipe", own + "proxmox", false},
		{"internal/recipe", own + "run", false},
		{"internal/run", own + "proxmox", false},
		{"internal/proxmox", own + "recipe", false},
		{"internal/proxmox", own + "stage", false},
		{"internal/oci", own + "guest", true}, // guest.Printable
		{"internal/oci", own + "proxmox", false},
		{".", own + "proxmox", false},

		// Nothing imports the provider but main.
		{"internal/run", own + "provider", false},
		{"internal/proxmox", own + "provider", false},
		{"internal/provider/schemas", own + "provider", false},

		// The simulator stands alone, and no product package leans on it.
		{"internal/pvesim", own + "guest", false},
		{"internal/pvesim/cmd/pvesim", own + "proxmox", false},
		{"internal/provider", own + "pvesim", false},
		{"internal/proxmox", own + "pvesim", false},

		// Each foreign library has one home.
		{"internal/proxmox", "github.com/luthermonson/go-proxmox", true},
		{"internal/recipe", "github.com/luthermonson/go-proxmox", false},
		{"internal/provider", "github.com/luthermonson/go-proxmox", false},
		{"internal/pvesim", "github.com/luthermonson/go-proxmox", false},
		{"internal/provider", "github.com/hashicorp/terraform-plugin-framework/resource/schema", true},
		{"internal/provider", "github.com/hashicorp/terraform-plugin-log/tflog", true},
		{"internal/run", "github.com/hashicorp/terraform-plugin-framework/types", false},
		{"internal/proxmox", "github.com/hashicorp/terraform-plugin-log/tflog", false},
		{".", "github.com/hashicorp/terraform-plugin-framework/providerserver", true},
		{".", "github.com/hashicorp/terraform-plugin-framework/types", false},
		{"internal/oci", "github.com/google/go-containerregistry/pkg/name", true},
		{"internal/provider", "github.com/google/go-containerregistry/pkg/name", false},
		{"internal/guest", "pgregory.net/rapid", false},

		// The standard library is open to all; a name that only begins like an allowed one is not it.
		{"internal/guest", "encoding/json", true},
		{"internal/pvesim", "net/http", true},
		{"internal/proxmox", "github.com/luthermonson/go-proxmox-extras", false},
		{"internal/recipe", own + "previewer", false},

		// A package nobody gave a place.
		{"internal/util", "strings", false},
		{"cmd/extra", "strings", false},
	}
	for _, tt := range tests {
		t.Run(tt.pkg+" imports "+tt.imports, func(t *testing.T) {
			t.Parallel()
			violations := archtest.Check(archtest.Graph{tt.pkg: {tt.imports}}, archtest.Layout())
			if allowed := len(violations) == 0; allowed != tt.allowed {
				t.Errorf("allowed = %v, want %v: %v", allowed, tt.allowed, violations)
			}
		})
	}
}

// TestCheckNamesEveryViolation: a person mends them all in one go, in an order that does not change.
func TestCheckNamesEveryViolation(t *testing.T) {
	t.Parallel()
	graph := archtest.Graph{
		"internal/stage": {"fmt", own + "guest", own + "proxmox"},
		"internal/guest": {"strings", "pgregory.net/rapid"},
		"internal/util":  nil,
	}
	got := make([]string, 0, 4)
	for _, violation := range archtest.Check(graph, archtest.Layout()) {
		got = append(got, violation.String())
	}
	want := []string{
		"internal/guest imports pgregory.net/rapid: facts about guests are pure: values in, values out",
		"internal/stage imports " + own + "guest: the engine knows no Proxmox and no guests: what it proves holds for every recipe",
		"internal/stage imports " + own + "proxmox: the engine knows no Proxmox and no guests: what it proves holds for every recipe",
		"internal/util: has no place in the layout: give it a rule",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// TestRead: what counts as an import of the product, and what does not.
func TestRead(t *testing.T) {
	t.Parallel()
	text := func(source string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(source)} }
	graph, err := archtest.Read(fstest.MapFS{
		"go.mod":                           text("module x\n"),
		"main.go":                          text("package main\nimport \"os\"\n"),
		"internal/a/a.go":                  text("package a\nimport (\n\"fmt\"\nalias \"strings\"\n)\n"),
		"internal/a/a_windows.go":          text("package a\nimport \"syscall\"\n"),
		"internal/a/more.go":               text("//go:build never\n\npackage a\nimport \"fmt\"\n"),
		"internal/a/a_test.go":             text("package a\nimport \"testing\"\n"),
		"internal/a/testdata/b.go":         text("package b\nimport \"net\"\n"),
		"internal/tools/lint/go.mod":       text("module y\n"),
		"internal/tools/lint/tools.go":     text("package lint\nimport \"net\"\n"),
		".tools/cache/some/where/cache.go": text("package cache\nimport \"net\"\n"),
		"internal/empty/README.md":         text("import nothing\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := archtest.Graph{".": {"os"}, "internal/a": {"fmt", "strings", "syscall"}}
	if len(graph) != len(want) {
		t.Fatalf("got %v, want %v", graph, want)
	}
	for pkg, imports := range want {
		if !slices.Equal(graph[pkg], imports) {
			t.Errorf("%s: got %v, want %v", pkg, graph[pkg], imports)
		}
	}
}

// TestReadRefusesWhatItCannotParse: an unreadable file must not pass for one without imports.
func TestReadRefusesWhatItCannotParse(t *testing.T) {
	t.Parallel()
	_, err := archtest.Read(fstest.MapFS{"internal/a/a.go": {Data: []byte("import first, package later")}})
	if err == nil {
		t.Fatal("a file that is no Go was read without an error")
	}
}
