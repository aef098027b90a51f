package guest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

func smallJournal() *Journal {
	return &Journal{
		Version: 1, Operation: "op-5001-20261201-3f2a", Kind: "reinstall", Guest: 5001, Parking: 900000, Holder: 5001, Node: "pve1", Runner: "r1",
		Sequence: 7, Stage: "guard", Index: 6, Of: 12, State: JournalDoing, Started: 1796102299, Updated: 1796102300, Until: 1796109499,
		Wanted: Install{Template: "local:vztmpl/debian-13.tar.zst"}, Config: map[string]string{"hostname": "web1", "memory": "512"},
	}
}

func smallContract() *Contract {
	return &Contract{
		Version: 1, Guest: 5001, Instance: "0b5c", Operation: "op-5001-20261201-3f2a", At: 1796102299,
		Installed: Install{Template: "local:vztmpl/debian-13.tar.zst", Triggers: map[string]string{"kernel": "6.14"}},
	}
}

// realisticJournal is what a large container needs: 30 config keys and eight parked volumes.
func realisticJournal() *Journal {
	j := smallJournal()
	j.Config = map[string]string{
		"arch": "amd64", "console": "1", "cores": "4", "cpulimit": "2", "cpuunits": "100", "features": "nesting=1,keyctl=1",
		"hookscript": "local:snippets/hook.pl", "hostname": "web1.example.org", "memory": "8192", "nameserver": "10.0.0.53 10.0.1.53", "onboot": "1",
		"net0":   "name=eth0,bridge=vmbr0,firewall=1,gw=10.0.0.1,hwaddr=BC:24:11:84:89:78,ip=10.0.0.21/24,ip6=auto,tag=30,type=veth",
		"net1":   "name=eth1,bridge=vmbr1,hwaddr=BC:24:11:0A:19:2C,ip=10.9.0.21/24,mtu=9000,type=veth",
		"ostype": "debian", "protection": "0", "rootfs": "local-lvm:vm-5001-disk-0,size=8704M", "searchdomain": "example.org", "startup": "order=3,up=30",
		"swap": "512", "tags": "web;production;team-a", "timezone": "Europe/Vienna", "tty": "2", "unprivileged": "1",
	}
	for n := range 7 {
		j.Config[fmt.Sprintf("mp%d", n)] = fmt.Sprintf("local-lvm:vm-5001-disk-%d,mp=/srv/data-%d,backup=1,mountoptions=noatime;nodev,size=%dG", n+1, n, 20+n)
	}
	j.Config["unused0"] = "tank:subvol-5001-disk-3"
	for n := range 8 {
		key := fmt.Sprintf("mp%d", n)
		var before []string
		for k := range n {
			before = append(before, fmt.Sprintf("local-lvm:vm-900000-disk-%d", k))
		}
		if n == 7 {
			key = "unused0"
		}
		j.Parked = append(j.Parked, ParkedVolume{Key: key, Value: j.Config[key], Parked: fmt.Sprintf("local-lvm:vm-900000-disk-%d", n), Before: before})
	}
	j.Installed = &Install{Template: "local:vztmpl/debian-12-standard_12.7-1_amd64.tar.zst", Triggers: map[string]string{"kernel": "6.8"}}
	j.Wanted = Install{Template: "local:vztmpl/debian-13-standard_13.1-1_amd64.tar.zst", Triggers: map[string]string{"kernel": "6.14"}, RootfsStorage: "local-lvm"}
	j.Erase, j.Drop, j.Allow = map[string]string{"mp9": "*"}, []string{"mp3", "dev0"}, []string{"ha_managed"}
	j.Backup = "backup:backup/vzdump-lxc-5001-2026_12_01-10_00_00.tar.zst"
	j.Pool, j.HA = "production", map[string]string{"state": "started", "group": "all", "max_restart": "1"}
	j.ACL, j.Leases = []string{"user ci@pve PVEVMUser 1", "group ops PVEVMAdmin 1"}, []string{"vnet0 BC:24:11:84:89:78 10.0.0.21"}
	j.Digest, j.Size, j.Storage = "93b457ab908410c4bebab13b9ac2fa9852d0c2fe", 9*GiB, "local-lvm"
	return j
}

func TestRealisticJournalFitsIntoNotes(t *testing.T) {
	j := realisticJournal()
	if len(j.Config) < 30 || len(j.Parked) != 8 {
		t.Fatalf("%d config keys, %d volumes", len(j.Config), len(j.Parked))
	}
	text := Notes{}.WithJournal(j).WithContract(smallContract()).String()
	t.Logf("%d characters with the contract", Length(text))
	const most = 2500
	if n := Length(text); n > most {
		t.Errorf("journal and contract take %d of %d characters, want at most %d", n, NotesLimit, most)
	}
	got := NotesOf(5001, text)
	if !reflect.DeepEqual(got.Journal, j) || !reflect.DeepEqual(got.Contract, smallContract()) || len(got.Problems) != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestNotesForPeople(t *testing.T) {
	for state, line := range map[JournalState]string{
		JournalDoing:   "pvrx: reinstall op-5001-20261201-3f2a, stage 6 of 12 (guard): do not start or destroy this guest",
		JournalUndoing: "pvrx: reinstall op-5001-20261201-3f2a, undoing stage 6 of 12 (guard): do not start or destroy this guest",
		JournalStuck:   "pvrx: reinstall op-5001-20261201-3f2a, stuck at stage 6 of 12 (guard): do not start or destroy this guest",
	} {
		j := smallJournal()
		j.State = state
		text := Notes{User: "# web1\n\nring Ärger\n\n\n"}.WithJournal(j).String()
		if want := "# web1\n\nring Ärger\n\n" + line + "\n```pvrx-journal v1 "; !strings.HasPrefix(text, want) {
			t.Errorf("%s: got %q, want it to begin with %q", state, text, want)
		}
		if !strings.HasSuffix(text, "\n```") {
			t.Errorf("%s: the fence is not closed: %q", state, text)
		}
	}
	if got := (Notes{User: "x\n"}).String(); got != "x" {
		t.Errorf("without blocks: %q", got)
	}
	if got := ReadNotes("").String(); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

// Blocks have no character that an editor, a browser, Markdown or Proxmox could change.
func TestBlocksArePlainText(t *testing.T) {
	j := smallJournal()
	j.Error = "käputt \x00\x1b[2J\x7f\u0085\u202e \U0001f600 %41 # ``` <script>\r\n```"
	j.Stage = "gua\x1b[31mrd\n```"
	for range 2 {
		text := Notes{}.WithJournal(j).WithContract(smallContract()).String()
		if strings.ContainsFunc(text, func(r rune) bool { return r > 0x7e || (r < 0x20 && r != '\n') }) {
			t.Errorf("not plain: %q", text)
		}
		if got := ReadNotes(text); !reflect.DeepEqual(got.Journal, j) || got.Contract == nil || len(got.Problems) != 0 {
			t.Errorf("got %+v", got)
		}
		j.Config["long"] = strings.Repeat("compressible ", 100)
	}
}

func TestNotesKeepTheUsersText(t *testing.T) {
	journal, contract := smallJournal(), smallContract()
	for _, user := range []string{
		"", "web server", "# Title\n\n- a\n- b", "ring Ärger 日本 😀", "# comment\n#%41\n%0A", "```\ncode\n```", "```go\nopen fence", "~~~\n```\n~~~",
		"\n\nleading", "  spaces  ", "trailing spaces  \n\tand tabs\t", "a\r\nb\r", "> ```pvrx-journal v1", "    ```pvrx-journal v1 indented code",
		"```pvrx-journalism v1", "text ```pvrx-journal v1", "pvrx: is great", "pvrx: the block below", "a\n\n\n\nb", "<b>&amp;</b>",
	} {
		n := ReadNotes(user)
		if len(n.Problems) != 0 || n.User != user {
			t.Errorf("%q: read as %+v", user, n)
		}
		text := n.WithJournal(journal).WithContract(contract).String()
		for _, folded := range []string{text, text + "\n", text + "\n\n\n"} {
			got := NotesOf(5001, folded)
			if got.User != user || !reflect.DeepEqual(got.Journal, journal) || !reflect.DeepEqual(got.Contract, contract) || len(got.Problems) != 0 {
				t.Errorf("%q: comes back as %+v", user, got)
			}
			if gone := got.WithJournal(nil).WithContract(nil).String(); gone != user {
				t.Errorf("%q: after removal %q", user, gone)
			}
			if got.String() != text {
				t.Errorf("%q: written again %q", user, got.String())
			}
		}
	}
}

// A person may write below or between blocks, and an editor may change line ends.
func TestNotesEditedByPeople(t *testing.T) {
	full := Notes{User: "before"}.WithJournal(smallJournal()).WithContract(smallContract()).String()
	for name, test := range map[string]struct{ text, user string }{
		"below":         {full + "\nafter", "before\n\nafter"},
		"below, apart":  {full + "\n\nafter\n", "before\n\nafter"},
		"between":       {strings.Replace(full, "```\n\npvrx: the", "```\nmiddle\npvrx: the", 1), "before\n\nmiddle"},
		"carriage":      {strings.ReplaceAll(full, "\n", "\r\n"), "before\r\n\r"},
		"spaces at end": {strings.ReplaceAll(full, "\n", "  \n"), "before  \n  "},
		"only blocks":   {strings.TrimPrefix(full, "before\n\n") + "\n\nafter", "after"},
		"no first line": {strings.Replace(full, journalLine(*smallJournal())+"\n", "", 1), "before"},
	} {
		got := ReadNotes(test.text)
		if got.Journal == nil || got.Contract == nil || len(got.Problems) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
		if strings.TrimRight(got.User, "\r\n ") != strings.TrimRight(test.user, "\r\n ") {
			t.Errorf("%s: user's text %q, want %q", name, got.User, test.user)
		}
		if again := ReadNotes(got.String()); again.User != got.User || again.Journal == nil || again.Contract == nil {
			t.Errorf("%s: then %+v", name, again)
		}
	}
}

// Whatever is cut off: a journal is either whole or seen to be missing something.
func TestTruncatedNotesAreNoticed(t *testing.T) {
	for _, j := range []*Journal{smallJournal(), realisticJournal()} {
		text := Notes{User: "user"}.WithJournal(j).String()
		start := strings.Index(text, " op-") + len(" op-")
		for end := start; end < len(text); end++ {
			got := NotesOf(5001, text[:end])
			if got.Journal != nil {
				t.Fatalf("cut at %d of %d: a usable journal", end, len(text))
			}
			if len(got.Problems) != 1 || got.Problems[0].Block != BlockJournal || got.Problems[0].Kind != ProblemTruncated {
				t.Fatalf("cut at %d of %d: %q gives %+v", end, len(text), text[:end], got.Problems)
			}
			if got.String() != strings.TrimRight(text[:end], "\n") {
				t.Fatalf("cut at %d: written as %q", end, got.String())
			}
			if clean := got.WithoutProblems(); clean.User != "user" || len(clean.Problems) != 0 {
				t.Fatalf("cut at %d: after cleaning %+v", end, clean)
			}
		}
	}
	text := Notes{User: "user"}.WithContract(smallContract()).String()
	for end := strings.Index(text, "```"); end < len(text); end++ {
		if got := ReadNotes(text[:end]); got.Contract != nil || len(got.Problems) != 1 || got.Problems[0].Kind != ProblemTruncated || got.Problems[0].Block != BlockContract {
			t.Fatalf("cut at %d: %q gives %+v", end, text[:end], got)
		}
	}
}

// Whatever single character changes, no block says something else than what was written.
func TestDamagedBlocksAreNotBelieved(t *testing.T) {
	for _, whole := range []Notes{Notes{}.WithJournal(smallJournal()), Notes{}.WithJournal(realisticJournal()), Notes{}.WithContract(smallContract())} {
		text := whole.String()
		start := strings.Index(text, "```pvrx-")
		for at := start; at < len(text); at++ {
			for _, c := range []string{"0", "x", "\n", "", "}", "\x00"} {
				damaged := text[:at] + c + text[at+1:]
				if damaged == text {
					continue
				}
				got := ReadNotes(damaged)
				if (got.Journal != nil && !reflect.DeepEqual(got.Journal, whole.Journal)) || (got.Contract != nil && !reflect.DeepEqual(got.Contract, whole.Contract)) {
					t.Fatalf("character %d as %q: believed %+v", at, c, got)
				}
				if got.Journal == nil && got.Contract == nil && len(got.Problems) == 0 && !strings.Contains(damaged[:at+1], "```pvrx-") && whole.Journal != nil {
					t.Fatalf("character %d as %q: not noticed", at, c)
				}
			}
		}
	}
}

func TestProblemsOfBlocks(t *testing.T) {
	block := func(version, encoding, payload string) string {
		sum := checksum(BlockJournal, encoding, payload)
		return "```pvrx-journal " + version + " " + encoding + " " + sum + "\n" + payload + "\n```"
	}
	plain := func(change func(j *Journal)) string {
		j := smallJournal()
		change(j)
		text, err := json.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		return block("v1", "json", string(text))
	}
	good := encodeBlock(BlockJournal, journalLine(*smallJournal()), smallJournal())
	other := smallJournal()
	other.Operation = "op-5001-20261202-77aa"
	for name, test := range map[string]struct {
		text     string
		kind     ProblemKind
		sentence string
	}{
		"newer":                  {block("v2", "json", "{}"), ProblemNewer, "version 2 and this pvrx reads version 1"},
		"newer, another form":    {"```pvrx-journal v12 whatever it takes\nmore than one\nline\n```", ProblemNewer, "version 12"},
		"newer, unknown field":   {block("v1", "json", `{"v":1,"brand_new":true}`), ProblemNewer, "newer one wrote it"},
		"older":                  {block("v0", "json", "{}"), ProblemOlder, "version 0"},
		"wrong checksum":         {"```pvrx-journal v1 json 0123456789abcdef\n{}\n```", ProblemDamaged, "checksum"},
		"unknown encoding":       {block("v1", "xz", "{}"), ProblemDamaged, "encoding"},
		"not base64":             {block("v1", "gzip", "{notbase64notbase64}"), ProblemDamaged, "base64"},
		"not compressed":         {block("v1", "gzip", "bm90IGNvbXByZXNzZWQgYXQgYWxs"), ProblemDamaged, "compressed"},
		"unpacks without end":    {block("v1", "gzip", pack("{"+strings.Repeat(" ", payloadLimit)+"}")), ProblemDamaged, "unpacked"},
		"not an object":          {block("v1", "gzip", pack("[1,2,3,4,5,6,7,8]")), ProblemDamaged, "content"},
		"two objects":            {block("v1", "json", `{"v":1}{"v":1}`), ProblemDamaged, "goes on"},
		"empty":                  {block("v1", "json", "{}"), ProblemDamaged, "version 0"},
		"payload of another day": {plain(func(j *Journal) { j.Version = 2 }), ProblemDamaged, "version 2"},
		"no operation":           {plain(func(j *Journal) { j.Operation = "op-1;rm" }), ProblemDamaged, "operation id"},
		"no kind":                {plain(func(j *Journal) { j.Kind = "" }), ProblemDamaged, "kind"},
		"no guest":               {plain(func(j *Journal) { j.Guest = 0 }), ProblemDamaged, "which guest"},
		"no holder":              {plain(func(j *Journal) { j.Holder = -1 }), ProblemDamaged, "which guest"},
		"impossible parking":     {plain(func(j *Journal) { j.Parking = 1e9 }), ProblemDamaged, "which guest"},
		"unknown state":          {plain(func(j *Journal) { j.State = "done\x1b[2J" }), ProblemDamaged, "state \"done\""},
		"contract as a journal":  {strings.Replace(encodeBlock(BlockContract, contractLine, smallContract()), "pvrx-contract", "pvrx-journal", 1), ProblemDamaged, "checksum"},
		"first line unreadable":  {"```pvrx-journal v1 json\n{}\n```", ProblemDamaged, "first line"},
		"no first line":          {"```pvrx-journal\n{}\n```", ProblemDamaged, "first line"},
		"two lines":              {"```pvrx-journal v1 json 0123456789abcdef\n{}\n{}\n```", ProblemDamaged, "form"},
		"text in it":             {good[:len(good)-4] + "\nmy text\n```", ProblemDamaged, "form"},
		"not closed":             {good[:len(good)-4] + "\n\nmy text", ProblemDamaged, "form"},
		"line for people only":   {journalLine(*smallJournal()) + "\n\nmy text", ProblemTruncated, "first line"},
		"twice":                  {good + "\n\n" + good, ProblemDuplicated, "2 journal blocks"},
		"two operations":         {good + "\n\n" + encodeBlock(BlockJournal, journalLine(*other), other), ProblemDuplicated, "2 journal blocks"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, text := range []string{test.text, "user\n\n" + test.text, test.text + "\n\nuser"} {
				got := NotesOf(5001, text)
				if got.Journal != nil || got.Contract != nil {
					t.Fatalf("%q is believed: %+v", text, got)
				}
				if len(got.Problems) == 0 {
					t.Fatalf("%q: no problem", text)
				}
				for _, p := range got.Problems {
					if p.Kind != test.kind || p.Block != BlockJournal || !strings.Contains(p.Sentence, test.sentence) {
						t.Errorf("%q: got %+v, want %s that says %q", text, p, test.kind, test.sentence)
					}
					if strings.ContainsFunc(p.Sentence, unicode.IsControl) {
						t.Errorf("control characters in %q", p.Sentence)
					}
				}
				if p, ok := got.Problem(BlockJournal, false); !ok || p.Kind != test.kind {
					t.Errorf("Problem gives %+v, %v", p, ok)
				}
				if _, ok := got.Problem(BlockContract, true); ok {
					t.Error("a problem of the contract")
				}
				if got.String() != text {
					t.Errorf("%q is written back as %q", text, got.String())
				}
				// What is not ours to judge stays, also when a good block comes next to it.
				if with := ReadNotes(got.WithContract(smallContract()).String()); with.Contract == nil || with.User != text {
					t.Errorf("beside a contract: %+v", with)
				}
			}
		})
	}
}

func TestProblemNamesItsOperation(t *testing.T) {
	text := strings.Replace(Notes{}.WithJournal(smallJournal()).String(), " v1 ", " v9 ", 1)
	got := ReadNotes(text)
	if len(got.Problems) != 1 || got.Problems[0].Operation != "op-5001-20261201-3f2a" {
		t.Errorf("got %+v", got.Problems)
	}
}

// A clone, a restore under another VMID, the archive of a parking guest: blocks that name another holder are stale copies.
func TestC6CopiesOfBlocksAreForeign(t *testing.T) {
	copied := Notes{User: "user"}.WithJournal(smallJournal()).WithContract(smallContract()).String()
	got := NotesOf(5002, copied)
	if got.Journal != nil || got.Contract != nil || got.User != "user" || len(got.Problems) != 2 {
		t.Fatalf("got %+v", got)
	}
	for i, block := range []BlockKind{BlockJournal, BlockContract} {
		want := Problem{
			Kind: ProblemForeign, Block: block, Operation: "op-5001-20261201-3f2a", Holder: 5001,
			Sentence: fmt.Sprintf("the %s block in the notes of guest 5002 was written for guest 5001: a stale copy", block),
		}
		if got.Problems[i] != want {
			t.Errorf("got %+v, want %+v", got.Problems[i], want)
		}
	}
	if _, ok := got.Problem(BlockJournal, false); ok {
		t.Error("a stale copy counts as a problem of this guest's journal")
	}
	if p, ok := got.Problem(BlockJournal, true); !ok || p.Kind != ProblemForeign {
		t.Error("a stale copy is not reported")
	}
	if got.String() != "user" {
		t.Errorf("the next write keeps stale copies: %q", got.String())
	}

	// The parking guest holds a journal about another guest: that one is its own.
	parking := smallJournal()
	parking.Holder = 900000
	if got := NotesOf(900000, Notes{}.WithJournal(parking).String()); got.Journal == nil || len(got.Problems) != 0 {
		t.Errorf("on the parking guest: %+v", got)
	}
	if got := NotesOf(5001, Notes{}.WithJournal(parking).String()); got.Journal != nil || len(got.Problems) != 1 {
		t.Errorf("the parking guest's journal elsewhere: %+v", got)
	}

	// A stale copy beside a good block does not make the good one a duplicate.
	mine := smallContract()
	mine.Guest = 5002
	both := copied + "\n\n" + Notes{}.WithContract(mine).String()
	if got := ReadNotes(both); got.Contract != nil || got.Journal == nil {
		t.Errorf("whose they are is not asked: %+v", got)
	}
	if got := NotesOf(5002, both); got.Contract == nil || got.Contract.Guest != 5002 || got.Journal != nil || len(got.Problems) != 2 || got.User != "user" {
		t.Errorf("for 5002: %+v", got)
	}
	if got := NotesOf(5001, both); got.Contract == nil || got.Contract.Guest != 5001 || got.Journal == nil || len(got.Problems) != 1 {
		t.Errorf("for 5001: %+v", got)
	}
}

func TestLengthCountsCharacters(t *testing.T) {
	if got := Length(strings.Repeat("ä", NotesLimit)); got != NotesLimit {
		t.Errorf("got %d", got)
	}
}

func TestWritingDoesNotChangeTheBlocks(t *testing.T) {
	j, c := smallJournal(), smallContract()
	j.Version, c.Version = 0, 0
	n := Notes{}.WithJournal(j).WithContract(c)
	got := ReadNotes(n.String())
	if j.Version != 0 || c.Version != 0 || got.Journal.Version != 1 || got.Contract.Version != 1 {
		t.Errorf("versions: given %d, %d, read %d, %d", j.Version, c.Version, got.Journal.Version, got.Contract.Version)
	}
}

// Version 1 is readable for ever: these files are never written again.
func TestVersion1Fixtures(t *testing.T) {
	for _, name := range []string{"journal-json", "journal-gzip", "contract-json"} {
		text, err := os.ReadFile(filepath.Join("testdata", "v1", name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		wanted, err := os.ReadFile(filepath.Join("testdata", "v1", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		n := NotesOf(5001, string(text))
		if len(n.Problems) != 0 || n.User != "# web1\n\nthe user's text" {
			t.Errorf("%s: %+v", name, n)
		}
		if strings.HasPrefix(name, "contract") {
			var want Contract
			if err := json.Unmarshal(wanted, &want); err != nil || !reflect.DeepEqual(n.Contract, &want) {
				t.Errorf("%s: got %+v, want %+v (%v)", name, n.Contract, want, err)
			}
			continue
		}
		var want Journal
		if err := json.Unmarshal(wanted, &want); err != nil || !reflect.DeepEqual(n.Journal, &want) {
			t.Errorf("%s: got %+v, want %+v (%v)", name, n.Journal, want, err)
		}
	}
}

// drawText makes user's texts that do their best to look like ours.
func drawText(t *rapid.T) string {
	good := encodeBlock(BlockJournal, journalLine(*smallJournal()), smallJournal())
	foreign := smallContract()
	foreign.Guest = 7
	line := rapid.OneOf(rapid.StringMatching(`[a-zä#%41 \x60>{-]{0,12}`), rapid.String(), rapid.SampledFrom([]string{
		"", "", "```", "``", "```go", "~~~", journalLine(*smallJournal()), "pvrx: reinstall op-", "pvrx: x", contractLine, "```pvrx-journal",
		"```pvrx-journal v1 json 0123456789abcdef", "```pvrx-contract v2 x", "```pvrx-journal v0", `{"v":1}`, strings.Split(good, "\n")[1],
		strings.Split(good, "\n")[2], good, good[:len(good)-4], encodeBlock(BlockContract, contractLine, smallContract()), encodeBlock(BlockContract, contractLine, foreign),
		"\r", " ",
	}))
	return strings.Join(rapid.SliceOfN(line, 0, 8).Draw(t, "lines"), "\n")
}

func problemSummary(n Notes) []string {
	var summary []string
	for _, p := range n.Problems {
		kind := p.Kind
		if kind == ProblemTruncated { // what comes after it decides between these two
			kind = ProblemDamaged
		}
		summary = append(summary, kind.String()+" "+p.Block.String())
	}
	slices.Sort(summary)
	return summary
}

// checkNotes holds for every text there is.
func checkNotes(t interface{ Fatalf(string, ...any) }, text string) {
	n := ReadNotes(text)
	if n.Journal == nil && n.Contract == nil && n.User != strings.TrimRight(text, "\n") {
		t.Fatalf("no block was taken out of %q, but the user's text is %q", text, n.User)
	}
	again := ReadNotes(n.String())
	if again.User != n.User || !reflect.DeepEqual(again.Journal, n.Journal) || !reflect.DeepEqual(again.Contract, n.Contract) {
		t.Fatalf("%q is read as %+v, written as %q and read as %+v", text, n, n.String(), again)
	}
	if a, b := problemSummary(n), problemSummary(again); !slices.Equal(a, b) {
		t.Fatalf("%q: problems %v become %v", text, a, b)
	}
	own := NotesOf(5001, text)
	if (own.Journal != nil && own.Journal.Holder != 5001) || (own.Contract != nil && own.Contract.Guest != 5001) {
		t.Fatalf("%q: guest 5001 believes %+v", text, own)
	}
	if clean := own.WithoutProblems(); len(clean.Problems) != 0 {
		t.Fatalf("%q: cleaned, but %+v", text, clean)
	}
	if n.Journal == nil && !slices.ContainsFunc(n.Problems, func(p Problem) bool { return p.Block == BlockJournal }) {
		with := ReadNotes(n.WithJournal(smallJournal()).String())
		if with.User != n.User || !reflect.DeepEqual(with.Journal, smallJournal()) {
			t.Fatalf("%q with a journal is read as %+v", text, with)
		}
		if back := with.WithJournal(nil); back.String() != n.String() {
			t.Fatalf("%q: with a journal and without is %q", n.String(), back.String())
		}
	}
}

func TestNotesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkNotes(t, drawText(t)) })
}

func TestJournalRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.MapOfN(rapid.String(), rapid.String(), 1, 5)
		j := smallJournal()
		j.Config, j.Erase = words.Draw(t, "config"), words.Draw(t, "erase")
		j.Error, j.Stage, j.Node = rapid.String().Draw(t, "err"), rapid.String().Draw(t, "stage"), rapid.String().Draw(t, "node")
		j.Size = Bytes(rapid.Int64().Draw(t, "size"))
		j.Parked = []ParkedVolume{{Key: "mp0", Value: rapid.String().Draw(t, "value"), Before: []string{rapid.String().Draw(t, "before")}}}
		user := strings.TrimRight(rapid.StringMatching(`[a-z\nä#\x60]{0,20}`).Draw(t, "user"), "\n")
		got := NotesOf(5001, Notes{User: user, Journal: j}.String())
		if got.User != user || !reflect.DeepEqual(got.Journal, j) || len(got.Problems) != 0 {
			t.Fatalf("got %+v, want %+v", got.Journal, j)
		}
	})
}
