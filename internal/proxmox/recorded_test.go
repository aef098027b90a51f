package proxmox

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// recorded is one exchange with a real server.
type recorded struct {
	Section string          `json:"section"`
	Method  string          `json:"method"`
	Path    string          `json:"path"`
	Params  string          `json:"params"`
	Status  string          `json:"status"` // "HTTP/1.1 200 OK"
	Body    json.RawMessage `json:"body"`
	Exit    string          `json:"exitstatus"`

	file string
	line int
}

func (r recorded) code() string { return strings.TrimPrefix(r.Status, "HTTP/1.1 ") }
func (r recorded) ok() bool     { return strings.HasPrefix(r.code(), "200") }

func recordings(t testing.TB) []recorded {
	t.Helper()
	files, err := filepath.Glob("../pvesim/testdata/recorded/*.jsonl.gz")
	wantNoError(t, err)
	if len(files) == 0 {
		t.Fatal("there are no recordings")
	}
	var all []recorded
	for _, name := range files {
		f, err := os.Open(name)
		wantNoError(t, err)
		packed, err := gzip.NewReader(f)
		wantNoError(t, err)
		lines := bufio.NewScanner(packed)
		lines.Buffer(nil, 4<<20)
		for n := 1; lines.Scan(); n++ {
			r := recorded{file: filepath.Base(name), line: n}
			wantNoError(t, json.Unmarshal(lines.Bytes(), &r))
			if r.Status != "" { // two lines of the recordings were torn and hold no answer
				all = append(all, r)
			}
		}
		wantNoError(t, lines.Err())
		wantNoError(t, f.Close())
	}
	return all
}

// replay returns a host whose server gives one recorded answer to everything.
func replay(t testing.TB, r recorded) *Host {
	h, _ := scripted(t, func(sent) answer { return answer{status: r.code(), body: string(r.Body)} })
	return h
}

var recordedGuest = regexp.MustCompile(`^/nodes/([^/]+)/(lxc|qemu)/(\d+)(/.*)?$`)

func (r recorded) ref() (ref guest.Ref, below string, ok bool) {
	m := recordedGuest.FindStringSubmatch(r.Path)
	if m == nil {
		return guest.Ref{}, "", false
	}
	kind, _ := kindOf(m[2])
	var id whole
	if id.UnmarshalJSON([]byte(m[3])) != nil {
		return guest.Ref{}, "", false
	}
	return guest.Ref{VMID: guest.VMID(id), Kind: kind, Node: m[1]}, m[4], true
}

// readRecorded gives a recorded read to the method that makes the same call, and returns how many values came through beside
// how many were recorded. made is false for calls that the port does not make.
func readRecorded(t *testing.T, h *Host, r recorded) (got, want int, made bool, err error) {
	ctx := context.Background()
	var list []json.RawMessage
	var object map[string]json.RawMessage
	var body struct {
		Data json.RawMessage `json:"data"`
	}
	if r.ok() {
		wantNoError(t, json.Unmarshal(r.Body, &body))
		if json.Unmarshal(body.Data, &list) != nil {
			_ = json.Unmarshal(body.Data, &object) // neither: a single value
		}
	}
	ref, below, isGuest := r.ref()
	path := strings.TrimSuffix(r.Path, "/")
	content := regexp.MustCompile(`^/nodes/([^/]+)/storage/([^/]+)/content$`).FindStringSubmatch(path)
	switch {
	case isGuest && (below == "/config" || strings.HasPrefix(below, "/snapshot/") && strings.HasSuffix(below, "/config")):
		config, err := h.Config(ctx, ref)
		if err == nil {
			sameConfig(t, r, config, object)
		}
		return 0, 0, true, err
	case isGuest && below == "/pending":
		values, _, err := h.Named(ctx, ref)
		return len(values), len(list), true, err
	case isGuest && below == "/status/current":
		_, _, err := h.Running(ctx, ref)
		return 0, 0, true, err
	case isGuest && below == "/firewall/rules", isGuest && below == "/firewall/options":
		_, err := h.Firewall(ctx, ref)
		return 0, 0, r.code() != "200 OK", err // its four parts cannot be one recorded answer
	case path == "/cluster/resources":
		guests, err := h.Guests(ctx)
		want := 0
		for _, row := range list {
			if strings.Contains(string(row), `"vmid"`) {
				want++
			}
		}
		return len(guests), want, true, err
	case content != nil:
		volumes, err := h.Content(ctx, content[1], content[2], 0)
		return len(volumes), len(list), true, err
	case path == "/cluster/nextid" && strings.Contains(r.Params, "vmid="):
		_, err := h.VMIDTaken(ctx, 112)
		return 0, 0, true, err
	case path == "/version":
		login, err := h.Login(ctx)
		return len(login.Version), len("9.2.11"), true, err
	case path == "/cluster/status", path == "/nodes":
		online, _, err := h.Nodes(ctx)
		if path == "/nodes" {
			return 0, 0, !r.ok(), err // the list of nodes is asked for only after a refusal
		}
		return len(online), len(list), true, err
	case path == "/access/permissions":
		held, err := h.AllPermissions(ctx)
		return len(held), len(object), true, err
	case path == "/cluster/ha/resources":
		ha, err := h.HA(ctx)
		return len(ha), len(list), true, err
	case path == "/cluster/backup":
		jobs, err := h.BackupJobs(ctx)
		return len(jobs), len(list), true, err
	case regexp.MustCompile(`^/nodes/[^/]+/tasks$`).MatchString(path):
		rows, err := h.taskList(ctx, "pve", url.Values{})
		return len(rows), len(list), true, err
	case strings.HasPrefix(path, "/storage/"):
		definition, err := h.StorageConfig(ctx, "tmpst")
		return len(definition), 0, !r.ok(), err
	}
	return 0, 0, false, nil
}

// sameConfig demands that every recorded value is there, as text.
func sameConfig(t *testing.T, r recorded, config guest.Config, object map[string]json.RawMessage) {
	t.Helper()
	want := map[string]string{}
	pairs := 0
	for key, raw := range object {
		var text words
		switch {
		case key == "digest":
			continue
		case key == "lxc":
			var list [][]string
			wantNoError(t, json.Unmarshal(raw, &list))
			pairs = len(list)
		default:
			wantNoError(t, text.UnmarshalJSON(raw))
			want[key] = string(text)
		}
	}
	if !maps.Equal(want, config.Values) || pairs != len(config.Raw) {
		t.Errorf("%s:%d: %s: read %v and %d pairs, recorded %v and %d", r.file, r.line, r.Path, config.Values, len(config.Raw), want, pairs)
	}
}

// Every recorded answer to a read that the port makes comes through whole.
func TestRecordedReadsComeThroughWhole(t *testing.T) {
	reads, refused := 0, 0
	for _, r := range recordings(t) {
		if r.Method != http.MethodGet {
			continue
		}
		got, want, made, err := readRecorded(t, replay(t, r), r)
		switch {
		case !made:
			continue
		case r.ok() && err != nil:
			t.Errorf("%s:%d: %s: %v", r.file, r.line, r.Path, err)
		case !r.ok() && err == nil && r.Path != "/cluster/nextid":
			t.Errorf("%s:%d: %s: %s is taken for an answer", r.file, r.line, r.Path, r.Status)
		case r.ok() && got != want:
			t.Errorf("%s:%d: %s: %d values came through, %d were recorded", r.file, r.line, r.Path, got, want)
		case r.ok():
			reads++
		default:
			refused++
		}
	}
	t.Logf("%d recorded answers to reads came through whole, %d refusals were recognised", reads, refused)
	if reads < 140 || refused < 8 {
		t.Errorf("only %d reads and %d refusals were compared", reads, refused)
	}
}

// calledBy says whether the port makes such a change.
func calledBy(r recorded) bool {
	ref, below, ok := r.ref()
	switch {
	case r.Method == http.MethodGet, r.Method == http.MethodDelete && r.Path == "/pools":
		return false
	case ok:
		return below == "" || regexp.MustCompile(`^/(?:config|move_volume|move_disk|resize|status/(?:start|stop|shutdown)|snapshot/[^/]+|firewall/.*)$`).MatchString(below) && ref.Node != ""
	}
	return regexp.MustCompile(`^/nodes/[^/]+/(?:lxc|qemu|vzdump)$|^/pools$|^/access/acl$|^/cluster/ha/resources`).MatchString(r.Path)
}

// recordedOutcome is what a recorded refusal means, by its own status and words; written down apart from the port's table.
func recordedOutcome(r recorded) guest.Outcome {
	code, words := r.code()[:3], r.code()[4:]+" "+string(r.Body)
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(words, p) {
				return true
			}
		}
		return false
	}
	switch {
	case code == "401", code == "403":
		return guest.OutcomeDenied
	case has("is locked"):
		return guest.OutcomeLocked
	case has("detected modified", "checksum mismatch"):
		return guest.OutcomeConflict
	case has("unable to apply pending change"):
		return guest.OutcomeFailed
	case has("already exists", "already in use", "already a pool member"):
		return guest.OutcomeTaken
	case has("bridge '"):
		return guest.OutcomeRefused
	case has("does not exist", "not a pool member", "could not find", "No such job"):
		return guest.OutcomeMissing
	}
	return guest.OutcomeRefused
}

// Every recorded refusal of a change that the port makes gets its outcome, and keeps its words.
func TestRecordedRefusalsGetTheirOutcome(t *testing.T) {
	compared, done := 0, 0
	for _, r := range recordings(t) {
		if !calledBy(r) {
			continue
		}
		req := request{op: "replay", method: r.Method, path: r.Path, announced: []string{r.Path}}
		if strings.HasPrefix(r.Path, haResources+"/") {
			req.params = map[string]any{"purge": "0"}
		}
		err := replay(t, r).exchange(context.Background(), req, nil)
		if r.ok() {
			if done++; err != nil {
				t.Errorf("%s:%d: %s %s: %v", r.file, r.line, r.Method, r.Path, err)
			}
			continue
		}
		compared++
		if err == nil {
			t.Errorf("%s:%d: %s %s: %s is taken for success", r.file, r.line, r.Method, r.Path, r.Status)
			continue
		}
		if want := recordedOutcome(r); err.Kind != want {
			t.Errorf("%s:%d: %s %s: %s: %s, want %s", r.file, r.line, r.Method, r.Path, r.Status, err.Kind, want)
		}
		if first := guest.Printable(r.code()[4:]); first != "Parameter verification failed." && !strings.Contains(err.Words, strings.TrimSpace(first)) {
			t.Errorf("%s:%d: the words %q are lost in %q", r.file, r.line, first, err.Words)
		}
	}
	t.Logf("%d recorded refusals compared, %d recorded successes", compared, done)
	if compared < 80 || done < 150 {
		t.Errorf("only %d refusals and %d successes were compared", compared, done)
	}
}

// Every recorded task ends as recorded.
func TestRecordedTasksEndAsRecorded(t *testing.T) {
	wants := map[string]guest.Outcome{
		"is locked (": guest.OutcomeLocked, "snapshot 'nosnap' does not exist": guest.OutcomeMissing,
		"Configuration file": guest.OutcomeMissing, "already running": guest.OutcomeRefused,
		"shrinking disks": guest.OutcomeRefused,
	}
	ended := 0
	for _, r := range recordings(t) {
		var body struct {
			Data words `json:"data"`
		}
		if r.Exit == "" || json.Unmarshal(r.Body, &body) != nil {
			continue
		}
		task, err := parseUPID(string(body.Data))
		wantNoError(t, err)
		h, _ := scripted(t, func(s sent) answer {
			if strings.HasSuffix(s.Path, "/log") {
				return data("[]")
			}
			return data(`{"status":"stopped","exitstatus":` + mustJSON(t, r.Exit) + `}`)
		})
		_, failed := h.follow(context.Background(), request{op: "replay"}, task)
		ended++
		if good := r.Exit == "OK" || strings.HasPrefix(r.Exit, "WARNINGS"); good != (failed == nil) {
			t.Errorf("%s:%d: %s: %v", r.file, r.line, r.Exit, failed)
		}
		if failed == nil {
			continue
		}
		want := guest.OutcomeFailed
		for words, kind := range wants {
			if strings.Contains(r.Exit, words) {
				want = kind
			}
		}
		if task.kind == "resize" {
			want = guest.OutcomeRefused // all checks of a VM's resize are made in its task
		}
		if failed.Kind != want {
			t.Errorf("%s:%d: %s task %q: %s, want %s", r.file, r.line, task.kind, r.Exit, failed.Kind, want)
		}
	}
	t.Logf("%d recorded tasks", ended)
	if ended < 190 {
		t.Errorf("only %d", ended)
	}
}

func mustJSON(t testing.TB, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	wantNoError(t, err)
	return string(raw)
}

func BenchmarkConfig(b *testing.B) {
	var longest recorded
	for _, r := range recordings(b) {
		if _, below, ok := r.ref(); ok && below == "/config" && r.Method == http.MethodGet && r.ok() && len(r.Body) > len(longest.Body) {
			longest = r
		}
	}
	h := replay(b, longest)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Config(context.Background(), ct); err != nil {
			b.Fatal(err)
		}
	}
}
