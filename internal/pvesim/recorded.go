package pvesim

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// recordedFiles are the recordings under testdata/recorded, in the order in which they were made: each
// builds on what the ones before it left.
func recordedFiles() []string { return []string{"lxc", "ct2", "qemu", "qemu2", "oci", "perm", "extra"} }

// Recording is one exchange with a real Proxmox VE 9.2 server.
type Recording struct {
	// File and Index say where it is; Section what the calls around it were about.
	File    string
	Index   int
	Section string
	// Method and Path are the call; Params its parameters, path variables not among them.
	Method, Path string
	Params       map[string]string
	// Status is 0 when the answer was not kept.
	Status int
	Reason string
	// Data is the answer's data, Message and Errors what came with a refusal.
	Data    any
	Message string
	Errors  map[string]string
	// Exit is how the task ended that the call started, Log its log; empty when it started none.
	Exit string
	Log  []string
}

// ReadRecordings reads the recordings below a directory (testdata/recorded of this package) in the
// order in which they were made.
func ReadRecordings(dir string) ([]Recording, error) {
	var out []Recording
	for _, name := range recordedFiles() {
		f, err := os.Open(filepath.Join(dir, name+".jsonl.gz"))
		if err != nil {
			return nil, fmt.Errorf("cannot read recordings: %w", err)
		}
		recs, err := readRecordings(f, name)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("cannot read recordings of %s: %w", name, err)
		}
		out = append(out, recs...)
	}
	return out, nil
}

func readRecordings(r io.Reader, file string) ([]Recording, error) {
	zr, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(zr)
	lines.Buffer(nil, 1<<20)
	var out []Recording
	for lines.Scan() {
		var raw struct {
			Section, Method, Path, Params, Status, ExitStatus string
			Body                                              any
			Log                                               []string
		}
		if err := json.Unmarshal(lines.Bytes(), &raw); err != nil {
			return nil, err
		}
		rec := Recording{File: file, Index: len(out), Section: raw.Section, Method: raw.Method, Path: raw.Path, Exit: raw.ExitStatus, Log: raw.Log}
		params := raw.Params
		if raw.Status == "" {
			// a parameter with a line end in it broke the recording in two
			rest, _ := raw.Body.(string)
			params += "\n" + rest
		}
		if rec.Params, err = splitRecordedParams(raw.Method, raw.Path, strings.TrimRight(params, "\n")); err != nil {
			return nil, fmt.Errorf("call %d: %w", rec.Index, err)
		}
		if fields := strings.SplitN(raw.Status, " ", 3); len(fields) == 3 {
			rec.Status, _ = strconv.Atoi(fields[1])
			rec.Reason = fields[2]
		}
		rec.readBody(raw.Body)
		out = append(out, rec)
	}
	return out, lines.Err()
}

func (r *Recording) readBody(body any) {
	if s, ok := body.(string); ok && r.Status != 0 {
		// trailing words of the recorder may follow the answer
		body = nil
		if err := json.NewDecoder(strings.NewReader(s)).Decode(&body); err != nil {
			return
		}
	}
	m, ok := body.(map[string]any)
	if !ok {
		return
	}
	r.Data = m["data"]
	r.Message, _ = m["message"].(string)
	if errs, ok := m["errors"].(map[string]any); ok {
		r.Errors = map[string]string{}
		for k, v := range errs {
			r.Errors[k], _ = v.(string)
		}
	}
}

var paramStartRE = regexp.MustCompile(`(?:^|[ \n])([a-zA-Z][a-zA-Z0-9-]*[a-zA-Z0-9]|[a-z])=`)

// splitRecordedParams takes "key=value key2=value with spaces" apart: a new pair starts at a name that
// the method knows, or that nothing else can be.
func splitRecordedParams(method, path, s string) (map[string]string, error) {
	out := map[string]string{}
	if s == "" {
		return out, nil
	}
	op := operationFor(method, path)
	var starts [][2]int
	for _, m := range paramStartRE.FindAllStringSubmatchIndex(s, -1) {
		name := s[m[2]:m[3]]
		if len(starts) == 0 || op == nil || op.arg(name) != nil || !strings.Contains(s[:m[0]], "description=") {
			starts = append(starts, [2]int{m[2], m[3]})
		}
	}
	if len(starts) == 0 || starts[0][0] != 0 {
		return nil, fmt.Errorf("parameters %q do not start with a name", s)
	}
	for i, st := range starts {
		end := len(s)
		if i+1 < len(starts) {
			end = starts[i+1][0] - 1
		}
		out[s[st[0]:st[1]]] = s[st[1]+1 : end]
	}
	return out, nil
}

// operationFor finds the method a concrete path means, nil for none.
func operationFor(method, path string) *operation {
	have := strings.Split(strings.Trim(path, "/"), "/")
	var best *operation
	for _, op := range apiSchema().Methods {
		want := strings.Split(strings.Trim(op.Path, "/"), "/")
		if op.Method != method || len(want) != len(have) && !slices.Contains(want, "{volume}") || len(want) > len(have) {
			continue
		}
		fits, fixed := true, 0
		for i, w := range want {
			if w == have[i] {
				fixed++
			} else if !strings.HasPrefix(w, "{") {
				fits = false
			}
		}
		if fits && (best == nil || fixed > strings.Count(best.Path, "/")-strings.Count(best.Path, "{")) {
			best = op
		}
	}
	return best
}
