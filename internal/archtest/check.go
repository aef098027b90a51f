// Package archtest answers whether the packages of this module import only what their layer allows.
package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// A Graph maps each package, as a folder relative to the module's root, to the import paths of its
// non-test files.
type Graph map[string][]string

// A Violation is one import that a rule does not allow.
type Violation struct {
	// Package is the importing folder, relative to the module's root.
	Package string
	// Import is the path that is not allowed; empty when the package itself has no rule.
	Import string
	// Why is the broken rule's sentence.
	Why string
}

// String is the line that the failing test prints.
func (v Violation) String() string {
	if v.Import == "" {
		return fmt.Sprintf("%s: %s", v.Package, v.Why)
	}
	return fmt.Sprintf("%s imports %s: %s", v.Package, v.Import, v.Why)
}

// Check returns every import in graph that rules do not allow, sorted by package and import; none when the
// layout holds.
func Check(graph Graph, rules Rules) []Violation {
	var violations []Violation
	for pkg, imports := range graph {
		rule, ok := rules.of(pkg)
		if !ok {
			violations = append(violations, Violation{Package: pkg, Why: "has no place in the layout: give it a rule"})
			continue
		}
		for _, path := range imports {
			if !rule.allows(path) {
				violations = append(violations, Violation{Package: pkg, Import: path, Why: rule.Why})
			}
		}
	}
	slices.SortFunc(violations, func(a, b Violation) int {
		if byPackage := strings.Compare(a.Package, b.Package); byPackage != 0 {
			return byPackage
		}
		return strings.Compare(a.Import, b.Import)
	})
	return violations
}

// of finds the rule of the longest folder that contains pkg. The root's rule is the root's alone.
func (r Rules) of(pkg string) (Rule, bool) {
	if pkg == "." {
		rule, ok := r["."]
		return rule, ok
	}
	longest, found := "", false
	for folder := range r {
		if folder != "." && within(pkg, folder) && len(folder) > len(longest) {
			longest, found = folder, true
		}
	}
	return r[longest], found
}

func (r Rule) allows(path string) bool {
	if own, ok := strings.CutPrefix(path, module+"/internal/"); ok {
		return slices.ContainsFunc(r.Ours, func(name string) bool { return within(own, name) })
	}
	if standard(path) {
		return true
	}
	return slices.ContainsFunc(r.Modules, func(name string) bool { return within(path, name) })
}

// standard reports whether path is the standard library's: only foreign paths begin with a host name, and
// a host name has a dot.
func standard(path string) bool {
	host, _, _ := strings.Cut(path, "/")
	return !strings.Contains(host, ".")
}

func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}
