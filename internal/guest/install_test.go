package guest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestInstallSame(t *testing.T) {
	base := Install{Template: "local:vztmpl/a.tar.zst", Triggers: map[string]string{"kernel": "1"}, RootfsStorage: "tank"}
	for name, test := range map[string]struct {
		wanted  Install
		same    bool
		changes string
	}{
		"equal":              {base, true, ""},
		"storage not wanted": {Install{Template: base.Template, Triggers: base.Triggers}, true, ""},
		"template":           {Install{Template: "local:vztmpl/b.tar.zst", Triggers: base.Triggers}, false, "template: local:vztmpl/a.tar.zst → local:vztmpl/b.tar.zst"},
		"trigger":            {Install{Template: base.Template, Triggers: map[string]string{"kernel": "2"}}, false, `trigger kernel: "1" → "2"`},
		"trigger gone":       {Install{Template: base.Template}, false, `trigger kernel: removed "1"`},
		"trigger new": {
			Install{Template: base.Template, Triggers: map[string]string{"kernel": "1", "a\x1b[2J": "x\ny"}},
			false,
			`trigger a: added "x y"`,
		},
		"storage": {Install{Template: base.Template, Triggers: base.Triggers, RootfsStorage: "local"}, false, "rootfs storage: tank → local"},
		"all":     {Install{RootfsStorage: "local"}, false, `template: local:vztmpl/a.tar.zst → not recorded; trigger kernel: removed "1"; rootfs storage: tank → local`},
	} {
		if got := base.Same(test.wanted); got != test.same {
			t.Errorf("%s: same %v", name, got)
		}
		if got := strings.Join(base.Changes(test.wanted), "; "); got != test.changes {
			t.Errorf("%s: changes %q, want %q", name, got, test.changes)
		}
	}
	if !(Install{Triggers: map[string]string{}}).Same(Install{}) {
		t.Error("no triggers differ from none")
	}
}

// The contract stores hashes of refused installs: they must be the same in every version.
func TestInstallHashIsStable(t *testing.T) {
	i := Install{Template: "local:vztmpl/debian-13-standard_13.1-1_amd64.tar.zst", Triggers: map[string]string{"b": "2", "a": "1"}, RootfsStorage: "tank"}
	if got, want := i.Hash(), "373e97bb03b37786"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if (Install{}).Hash() != (Install{Triggers: map[string]string{}}).Hash() {
		t.Error("no triggers differ from none")
	}
}

func TestInstallHashFollowsContent(t *testing.T) {
	short := rapid.StringMatching(`[a-c]{0,2}`)
	draw := rapid.Custom(func(t *rapid.T) Install {
		return Install{Template: short.Draw(t, "template"), Triggers: rapid.MapOfN(short, short, 0, 3).Draw(t, "triggers"), RootfsStorage: short.Draw(t, "storage")}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw.Draw(t, "a"), draw.Draw(t, "b")
		equal := a.Template == b.Template && maps.Equal(a.Triggers, b.Triggers) && a.RootfsStorage == b.RootfsStorage
		if (a.Hash() == b.Hash()) != equal {
			t.Fatalf("%v and %v: hashes %s %s", a, b, a.Hash(), b.Hash())
		}
		if a.Same(b) != (len(a.Changes(b)) == 0) {
			t.Fatalf("same %v but changes %q", a.Same(b), a.Changes(b))
		}
	})
}

func TestOperationID(t *testing.T) {
	id := NewOperationID(5001, "20261201", "3f2a")
	if id != "op-5001-20261201-3f2a" || !ValidOperationID(id) {
		t.Errorf("got %q", id)
	}
	for _, text := range []string{
		"", "op-", "op-5001", "op-5001-20261201", "op-5001-20261201-", "op-5001-20261201-3f2", "op-0-20261201-3f2a", "op-05-20261201-3f2a",
		"op-5001-2026121-3f2a", "op-5001-20261201-3F2A", "op-5001-20261201-3f2a\n", " op-5001-20261201-3f2a", "op-1234567890-20261201-3f2a",
		"op-5001-20261201-" + strings.Repeat("a", 17),
	} {
		if ValidOperationID(text) {
			t.Errorf("%q is an operation id", text)
		}
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "",
		"plain ä 日本 😀 %41 # `x`":               "plain ä 日本 😀 %41 # `x`",
		"two\nlines\tand\r\nmore":              "two lines and more",
		"\x1b[31mred\x1b[0m":                   "red",
		"\x1b]0;title\abell":                   "bell",
		"\x1b]8;;http://x\x1b\\link":           "link",
		"\x1bPdevice\x1b\\x":                   "x",
		"\u009b2Jx":                            "x",
		"\u009d0;title\ax":                     "x",
		"\x1b[2":                               "2",
		"\x1b":                                 "",
		"\x1b]never ends":                      "never ends",
		"\x1bcreset":                           "reset",
		"\x1b\x1b[2Jx":                         "x",
		"a\x00b\x07c\x7fd\u0085e":              "abcde",
		"\xff\xfebad\xc3":                      "bad",
		"\x9b2Jraw":                            "2Jraw",
		"user\u202egnp.exe\u2066x\u2069\u200f": "usergnp.exex",
		"zero\u200b\u200dwidth\ufeff\u00ad":    "zerowidth",
		"line\u2028para\u2029end":              "line para end",
		"tag\U000e0041\ue000":                  "tag",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestPrintableIsHarmless(t *testing.T) {
	word := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"\x1b", "[", "]", "\x1b[", "31m", "\a", "\x1b\\", "\u009b", "\u202e", "\n", "\xff", "x"}))
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(word).Draw(t, "text"), "")
		got := Printable(text)
		if strings.ContainsFunc(got, func(r rune) bool { return r < 0x20 || (r >= 0x7f && r < 0xa0) || (r >= 0x202a && r <= 0x202e) }) {
			t.Fatalf("%q: got %q", text, got)
		}
		if again := Printable(got); again != got {
			t.Fatalf("%q: first %q, then %q", text, got, again)
		}
	})
}

func TestEveryWordHasAText(t *testing.T) {
	texts := map[string]string{}
	for name, text := range map[string]string{
		"SourceVolume": SourceVolume.String(), "SourceBind": SourceBind.String(), "SourceDevice": SourceDevice.String(),
		"BlockJournal": BlockJournal.String(), "BlockContract": BlockContract.String(), "ProblemDamaged": ProblemDamaged.String(),
		"ProblemTruncated": ProblemTruncated.String(), "ProblemDuplicated": ProblemDuplicated.String(), "ProblemForeign": ProblemForeign.String(),
		"ProblemNewer": ProblemNewer.String(), "ProblemOlder": ProblemOlder.String(),
	} {
		if other, twice := texts[text]; twice || text == "" || text == "invalid" {
			t.Errorf("%s and %s are both %q", name, other, text)
		}
		texts[text] = name
	}
	zero := []string{SourceKind(0).String(), BlockKind(0).String(), ProblemKind(0).String(), Outcome(0).String(), Presence(0).String()}
	if !slices.Equal(zero, []string{"invalid", "invalid", "invalid", "invalid", "invalid"}) {
		t.Errorf("zero values read %q", zero)
	}
}
