package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryMutantApplies keeps the table in step with the code: what a mutant replaces is there once, and its test exists.
func TestEveryMutantApplies(t *testing.T) {
	t.Parallel()
	const root = "../.."
	seen := map[string]bool{}
	for _, m := range mutants() {
		text, err := os.ReadFile(filepath.Join(root, m.file))
		if err != nil {
			t.Errorf("%s: %v", m.breaks, err)
			continue
		}
		broken, err := m.apply(string(text))
		if err != nil {
			t.Errorf("%s: %v", m.breaks, err)
		}
		if broken == string(text) || m.breaks == "" || seen[m.breaks] {
			t.Errorf("%s: it changes nothing, or is there twice", m.breaks)
		}
		seen[m.breaks] = true
		if !exists(t, filepath.Join(root, m.pkg), m.test) {
			t.Errorf("%s: there is no test %s in %s", m.breaks, m.test, m.pkg)
		}
	}
	if len(seen) < 40 {
		t.Errorf("there are %d mutants", len(seen))
	}
}

// exists reports whether a package has the test that a pattern names.
func exists(t *testing.T, folder, pattern string) bool {
	t.Helper()
	name, _, _ := strings.Cut(strings.TrimPrefix(pattern, "^"), "$")
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(name) + `\(`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if declared.Match(text) {
			return true
		}
	}
	return false
}
