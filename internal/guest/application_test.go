package guest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// instanceContract is what a large application container needs: 30 keys, 60 variables, six volumes, a long history.
func instanceContract() *Contract {
	app := &Application{
		Image: "registry.example.org:5000/team/product/application-server:2026.12.1-alpine", Digest: "sha256:" + strings.Repeat("0123456789abcdef", 4),
		Manifest: "sha256:" + strings.Repeat("fedcba9876543210", 4), Arch: "amd64",
		Archive: "local:vztmpl/pvrx-application-server-0123456789ab.tar", Previous: "local:vztmpl/pvrx-application-server-fedcba987654.tar",
		Before:     &Generation{ID: "op-6001-20261130-1111", Image: "registry.example.org:5000/team/product/application-server@sha256:" + strings.Repeat("89abcdef01234567", 4)},
		Entrypoint: "/usr/local/bin/docker-entrypoint.sh 'application-server' --config /etc/application/server.yaml", EnvVersion: 7,
		Declared: []string{"/var/lib/application", "/var/cache/application"}, Volumes: map[string]string{}, Keys: maps.Clone(realisticJournal().Config),
		Raw: [][2]string{{"lxc.init.uid", "1000"}, {"lxc.init.gid", "1000"}, {"lxc.init.groups", "1000,44"}, {"lxc.init.cwd", "/srv/application"}, {"lxc.signal.halt", "SIGQUIT"}},
	}
	for n := range 6 {
		app.Volumes[fmt.Sprintf("/srv/data-%d", n)] = fmt.Sprintf("mp%d", n)
	}
	for n := range 30 {
		app.Own = append(app.Own, fmt.Sprintf("APPLICATION_SETTING_%d", n))
		app.Theirs = append(app.Theirs, fmt.Sprintf("IMAGE_VERSION_OF_%d", n))
	}
	app.Set = []string{"cores", "memory", "net0", "net1", "tags"}
	return &Contract{
		Version: 1, Guest: 5001, Instance: "op-5001-20261201-3f2a", Operation: "op-5001-20261201-3f2a", At: 1796102299,
		Installed: Install{Template: "registry.example.org:5000/team/product/application-server@" + app.Digest, Triggers: map[string]string{"rebuild": "12"}, RootfsStorage: "local-lvm"},
		Declined:  []string{"0123456789abcdef"}, App: app,
	}
}

// instanceJournal is the record of an update of it in its largest form: everything parked, everything changed.
func instanceJournal() *Journal {
	j := realisticJournal()
	j.Kind = "update"
	was, next := *instanceContract().App, *instanceContract().App
	was.Keys, was.Raw = nil, nil // both are read from the container that is made again
	next.Keys, next.Raw = nil, nil
	next.Digest, next.Archive = "sha256:"+strings.Repeat("76543210fedcba98", 4), "local:vztmpl/pvrx-application-server-76543210fedc.tar"
	j.App = &Deployment{
		Next: next, Was: &was, Set: map[string]string{"memory": "16384", "net0": j.Config["net0"], "tags": "production;web"}, Entrypoint: next.Entrypoint,
		New:    []NewVolume{{Key: "mp8", Path: "/srv/new", Value: "local-lvm:20,mp=/srv/new,backup=1", Now: "local-lvm:vm-5001-disk-12"}},
		Mounts: map[string]string{"mp0": "mp=/srv/data-0,backup=1,ro=1"}, Grow: map[string]Bytes{"mp1": 40 * GiB}, Start: true, Hold: true, Back: true,
	}
	return j
}

func TestApplicationRoundTripsThroughNotes(t *testing.T) {
	t.Parallel()
	for name, notes := range map[string]Notes{
		"contract":             {Contract: instanceContract()},
		"contract and journal": {Contract: instanceContract(), Journal: instanceJournal()},
		"an empty application": {Contract: &Contract{Version: 1, Guest: 5001, App: &Application{}}},
		"with the user's text": {User: "the vault\n\nkeep", Contract: instanceContract()},
	} {
		got := NotesOf(5001, notes.String()+"\n") // Proxmox adds a line end
		if got.User != notes.User || !reflect.DeepEqual(got.Contract, notes.Contract) || !reflect.DeepEqual(got.Journal, notes.Journal) || len(got.Problems) > 0 || got.Foreign != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Every field is written: one that is not would be lost at the next write without a word.
func TestEveryFieldOfAnApplicationIsWritten(t *testing.T) {
	t.Parallel()
	for _, value := range []any{*instanceContract().App, *instanceJournal().App, *instanceContract().App.Before, instanceJournal().App.New[0]} {
		v := reflect.ValueOf(value)
		for n := range v.NumField() {
			field := v.Type().Field(n)
			filled := !v.Field(n).IsZero() || slices.Contains([]string{"Keys", "Raw"}, field.Name) && v.Type().Name() == "Deployment"
			if !filled {
				t.Errorf("%s.%s is not filled in this test", v.Type().Name(), field.Name)
			}
			if tag := field.Tag.Get("json"); tag == "" || tag == "-" {
				t.Errorf("%s.%s is not written", v.Type().Name(), field.Name)
			}
		}
	}
}

// The notes must hold what cannot be read anywhere else, beside a text of the user's own.
func TestLargeApplicationFitsIntoNotes(t *testing.T) {
	t.Parallel()
	contract := Length(Notes{}.WithContract(instanceContract()).String())
	both := Length(Notes{}.WithContract(instanceContract()).WithJournal(instanceJournal()).String())
	t.Logf("contract %d, contract and journal %d of %d characters", contract, both, NotesLimit)
	const mostContract, mostBoth = 2500, 5500
	if contract > mostContract || both > mostBoth {
		t.Errorf("the contract takes %d characters, want at most %d; with the journal %d, want at most %d", contract, mostContract, both, mostBoth)
	}
}

// A contract that was written for another VMID says what it came from, and nothing else: it is a problem, it is not the
// contract, and it is not written again.
func TestC6ForeignContractOfAnInstanceStaysReadable(t *testing.T) {
	t.Parallel()
	text := Notes{User: "the vault"}.WithContract(instanceContract()).WithJournal(instanceJournal()).String()
	got := NotesOf(6002, text)
	if got.Contract != nil || got.Journal != nil || !reflect.DeepEqual(got.Foreign, instanceContract()) {
		t.Errorf("%+v", got)
	}
	if p, found := got.Problem(BlockContract, true); !found || p.Kind != ProblemForeign || p.Holder != 5001 {
		t.Errorf("it is no problem: %+v", got.Problems)
	}
	if again := got.String(); again != "the vault" {
		t.Errorf("it is written again: %q", again)
	}
	own := *instanceContract()
	own.Guest = 6002
	if got := NotesOf(6002, got.WithContract(&own).String()); got.Foreign != nil || got.Contract.Guest != 6002 {
		t.Errorf("%+v", got)
	}
	if got := NotesOf(6002, text+"\n\n"+Notes{}.WithContract(instanceContract()).String()); got.Foreign != nil {
		t.Error("of two foreign contracts one is believed")
	}
	if got := NotesOf(5002, Notes{}.WithContract(smallContract()).String()); got.Foreign != nil {
		t.Error("the contract of a reinstall is handed out")
	}
	if got := ReadNotes(text); got.Foreign != nil || got.Contract == nil {
		t.Error("without a guest nothing is foreign")
	}
}

// Blocks of another version, with unknown fields, damaged or cut are reported and never obeyed, foreign ones included.
func TestApplicationBlocksThatAreNotOurs(t *testing.T) {
	t.Parallel()
	plain := encodeAs(BlockContract, `{"v":1,"guest":5001,"id":"x","installed":{"template":""},"at":1,"app":{"image":"a","digest":"b","manifest":"c","arch":"d"}}`)
	if got := NotesOf(5001, plain); got.Contract == nil || got.Contract.App.Image != "a" {
		t.Fatalf("what this version writes is not read: %+v", got)
	}
	for name, c := range map[string]struct {
		text string
		kind ProblemKind
	}{
		"a newer field":    {encodeAs(BlockContract, `{"v":1,"guest":5001,"id":"x","installed":{"template":""},"at":1,"app":{"image":"a","digest":"b","manifest":"c","arch":"d","sidecars":[]}}`), ProblemNewer},
		"a newer version":  {strings.Replace(plain, "v1 json", "v2 json", 1), ProblemNewer},
		"an older version": {strings.Replace(plain, "v1 json", "v0 json", 1), ProblemOlder},
		"forged":           {strings.Replace(plain, `"image":"a"`, `"image":"z"`, 1), ProblemDamaged},
		"another type":     {encodeAs(BlockContract, `{"v":1,"guest":5001,"id":"x","installed":{"template":""},"at":1,"app":"nginx"}`), ProblemDamaged},
		"no guest":         {encodeAs(BlockContract, `{"v":1,"id":"x","installed":{"template":""},"at":1,"app":{"image":"a","digest":"b","manifest":"c","arch":"d"}}`), ProblemDamaged},
		"cut":              {plain[:len(plain)-20], ProblemTruncated},
		"twice":            {plain + "\n\n" + plain, ProblemDuplicated},
	} {
		for _, id := range []VMID{5001, 6002} {
			got := NotesOf(id, c.text)
			kind := c.kind
			if c.kind == ProblemDuplicated && id != 5001 {
				kind = ProblemForeign
			}
			if got.Contract != nil || got.Foreign != nil || len(got.Problems) == 0 || got.Problems[0].Kind != kind {
				t.Errorf("%s, as guest %d: %+v", name, id, got)
			}
		}
	}
}

// encodeAs makes a block of any content, with the checksum that goes with it.
func encodeAs(kind BlockKind, payload string) string {
	return contractLine + "\n" + fmt.Sprintf("%spvrx-%s v%d %s %s", fence, kind, blockVersion, encodingJSON, checksum(kind, encodingJSON, payload)) + "\n" + payload + "\n" + fence
}

func TestEnvironmentRoundTrip(t *testing.T) {
	t.Parallel()
	for env, want := range map[string]map[string]string{
		"": {}, "A=1": {"A": "1"}, "A=1\x00B=x=y\x00C=": {"A": "1", "B": "x=y", "C": ""}, "A=1\x00A=2": {"A": "2"}, "bare\x00=x\x00A=1": {"A": "1"},
	} {
		if got := ReadEnvironment(env); !maps.Equal(got, want) {
			t.Errorf("%q is %v, want %v", env, got, want)
		}
	}
	if got := WriteEnvironment(map[string]string{"B": "2", "A": "1"}); got != "A=1\x00B=2" {
		t.Errorf("%q", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		variables := rapid.MapOf(rapid.StringMatching(`[A-Za-z_][A-Za-z0-9_]*`), rapid.StringMatching(`[ -~äöü]*`)).Draw(t, "variables")
		if got := ReadEnvironment(WriteEnvironment(variables)); !maps.Equal(got, variables) {
			t.Fatalf("%v became %v", variables, got)
		}
	})
}
