// Command mutants breaks the code on purpose, one place at a time, and expects the test that is named for that place to
// fail: a test that passes on broken code proves nothing. The broken file is laid over the real one for that one test run;
// the tree itself is never touched. It ends with 0 when every mutant was caught, or survives for the reason it gives.
//
//	go run ./internal/mutants              all of them
//	go run ./internal/mutants -only recipe those whose name or file matches
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// mutant is one break of the code.
type mutant struct {
	// breaks says what is taken away.
	breaks string
	// file is the file, from the root of the repository.
	file string
	// find is replaced by put. It must be there exactly once, so it is as distinctive as it must be and no longer.
	find, put string
	// pkg and test name the test that must fail; test is a pattern as -run takes it, for one test.
	pkg, test string
	// survives says why no test can notice; "" for all that must be caught.
	survives string
}

// mutants are all, in the order of the layers.
func mutants() []mutant {
	var all []mutant
	for _, part := range [][]mutant{ofStage(), ofRecipe(), ofVM(), ofInstance(), ofRecords(), ofPort(), ofFacts()} {
		all = append(all, part...)
	}
	return all
}

// apply returns the broken text of a file.
func (m mutant) apply(text string) (string, error) {
	if n := strings.Count(text, m.find); n != 1 {
		return "", fmt.Errorf("what it replaces is there %d times in %s", n, m.file)
	}
	return strings.Replace(text, m.find, m.put, 1), nil
}

// verdict is what became of a mutant.
type verdict string

const (
	caught   verdict = "caught"
	accepted verdict = "survives"
	survived verdict = "SURVIVED"
	stale    verdict = "STALE"
	broken   verdict = "BROKEN"
)

func main() {
	only := flag.String("only", "", "a regular expression: run those whose sentence or file matches")
	flag.Parse()
	code, err := run(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		code = 2
	}
	os.Exit(code)
}

func run(only string) (code int, err error) {
	chosen, err := regexp.Compile(only)
	if err != nil {
		return 2, fmt.Errorf("cannot read -only: %w", err)
	}
	folder, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return 2, fmt.Errorf("cannot make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	counts := map[verdict]int{}
	sound := map[string]bool{}
	for _, m := range mutants() {
		if !chosen.MatchString(m.breaks) && !chosen.MatchString(m.file) {
			continue
		}
		v, why := m.try(folder, sound)
		counts[v]++
		line := fmt.Sprintf("%-9s %s (%s %s)", v, m.breaks, m.pkg, m.test)
		if why != "" {
			line += ": " + why
		}
		fmt.Println(line)
	}
	wrong := counts[survived] + counts[stale] + counts[broken]
	fmt.Printf("mutants: %d caught, %d survive as said, %d wrong\n", counts[caught], counts[accepted], wrong)
	if wrong > 0 {
		return 1, nil
	}
	return 0, nil
}

// try runs the mutant's test on the broken code; before, once per test, on the sound code.
func (m mutant) try(folder string, sound map[string]bool) (verdict, string) {
	text, err := os.ReadFile(m.file)
	if err != nil {
		return stale, err.Error()
	}
	mutated, err := m.apply(string(text))
	if err != nil {
		return stale, err.Error()
	}
	if key := m.pkg + m.test; !sound[key] {
		if out, err := m.goTest(""); err != nil || strings.Contains(out, "no tests to run") {
			return broken, "the test does not pass on the sound code:\n" + indented(out)
		}
		sound[key] = true
	}
	overlay, err := lay(folder, m.file, mutated)
	if err != nil {
		return broken, err.Error()
	}
	out, err := m.goTest(overlay)
	switch {
	case err == nil && m.survives != "":
		return accepted, m.survives
	case err == nil:
		return survived, "it passes all the same"
	case strings.Contains(out, "build failed") || strings.Contains(out, "setup failed"):
		return broken, "it does not compile:\n" + indented(out)
	case m.survives != "":
		return survived, "it is caught although it says that it survives: " + m.survives
	}
	return caught, ""
}

// lay writes what tells the compiler to take the broken text for the file.
func lay(folder, file, text string) (string, error) {
	whole, err := filepath.Abs(file)
	if err != nil {
		return "", fmt.Errorf("cannot find %s: %w", file, err)
	}
	mutated, overlay := filepath.Join(folder, "mutated.go"), filepath.Join(folder, "overlay.json")
	data, err := json.Marshal(map[string]map[string]string{"Replace": {whole: mutated}})
	if err != nil {
		return "", fmt.Errorf("cannot write the overlay: %w", err)
	}
	return overlay, errors.Join(os.WriteFile(mutated, []byte(text), 0o600), os.WriteFile(overlay, data, 0o600)) //nolint:gosec // a folder of its own
}

// goTest runs the test. The overlay goes through the environment, so that tests which build the provider build it broken.
func (m mutant) goTest(overlay string) (string, error) {
	args := []string{"test", "-vet=off", "-timeout=5m", "-run", m.test}
	if overlay != "" {
		args = append(args, "-count=1") // what a test builds itself is not in the key of its cached result
	}
	args = append(args, m.pkg)
	cmd := exec.Command("go", args...) //nolint:noctx // it ends by its own time limit, and runs what the table names
	if overlay != "" {
		cmd.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func indented(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > 12 {
		lines = lines[len(lines)-12:]
	}
	return "          " + strings.Join(lines, "\n          ")
}
