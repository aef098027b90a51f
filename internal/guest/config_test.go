package guest

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// recorded reads a config as a real server answered it.
func recorded(t testing.TB, name string) (Config, map[string]any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "configs", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var raw map[string]json.RawMessage
	var loose map[string]any
	if err := json.Unmarshal(text, &raw); err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	if err := decoder.Decode(&loose); err != nil {
		t.Fatal(err)
	}
	c, err := FromJSON(raw)
	if err != nil {
		t.Fatal(err)
	}
	return c, loose
}

func recordedNames(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "configs", "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no recorded configs (%v)", err)
	}
	for i, p := range paths {
		paths[i] = strings.TrimSuffix(filepath.Base(p), ".json")
	}
	return paths
}

// Every value of every recorded config is there, and everything that is taken apart is put together again as it was.
func TestRecordedConfigsWithoutLoss(t *testing.T) {
	for _, name := range recordedNames(t) {
		t.Run(name, func(t *testing.T) {
			c, loose := recorded(t, name)
			for key, value := range loose {
				switch v := value.(type) {
				case []any:
					if len(c.Raw) != len(v) {
						t.Errorf("%d raw pairs, want %d", len(c.Raw), len(v))
					}
				case string:
					if got, _ := c.Get(key); got != v && key != "digest" {
						t.Errorf("%s = %q, want %q", key, got, v)
					}
				case json.Number:
					if got, _ := c.Get(key); got != v.String() {
						t.Errorf("%s = %q, want %s", key, got, v)
					}
				}
			}
			want := len(loose)
			for _, apart := range []string{"digest", "lxc"} {
				if _, there := loose[apart]; there {
					want--
				}
			}
			if len(c.Values) != want {
				t.Errorf("%d values, want %d", len(c.Values), want)
			}
			networks, bad := c.Networks()
			for _, n := range networks {
				if got := n.String(); got != c.Values[n.Key] {
					t.Errorf("%s = %q, want %q", n.Key, got, c.Values[n.Key])
				}
			}
			if strings.HasPrefix(name, "container") {
				mounts, unread := c.Mounts()
				bad = append(bad, unread...)
				if len(mounts) == 0 || mounts[0].Key != "rootfs" {
					t.Errorf("mounts %+v", mounts)
				}
				for _, m := range mounts {
					if got := m.String(); got != c.Values[m.Key] {
						t.Errorf("%s = %q, want %q", m.Key, got, c.Values[m.Key])
					}
				}
			} else {
				disks, unread := Disks(c)
				bad = append(bad, unread...)
				for _, d := range disks {
					if got := d.String(); got != c.Values[d.Key] {
						t.Errorf("%s = %q, want %q", d.Key, got, c.Values[d.Key])
					}
				}
			}
			if len(bad) > 0 {
				t.Errorf("not read: %+v", bad)
			}
		})
	}
}

func TestRecordedOCIPairs(t *testing.T) {
	c, _ := recorded(t, "container-oci")
	if len(c.Raw) != 4 || c.Raw[0] != [2]string{"lxc.init.uid", "1000"} || c.Raw[3][0] != "lxc.signal.halt" {
		t.Errorf("raw pairs %v", c.Raw)
	}
	if env, set := c.Get("env"); !set || strings.Count(env, "\x00") != 2 {
		t.Errorf("env %q", env)
	}
	if _, set := c.Get("lxc"); set || c.Digest == "" {
		t.Errorf("lxc is a value (%v), digest %q", set, c.Digest)
	}
}

func TestFromJSONValues(t *testing.T) {
	read := func(text string) (Config, error) {
		t.Helper()
		var raw map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &raw); err != nil {
			t.Fatal(err)
		}
		return FromJSON(raw)
	}
	for text, want := range map[string]string{
		`{"k":"a\u0000b ä"}`:        "a\x00b ä",
		`{"k":1}`:                   "1",
		`{"k":0}`:                   "0",
		`{"k":1234567890123456789}`: "1234567890123456789",
		`{"k":0.5}`:                 "0.5",
		`{"k":1e6}`:                 "1000000",
		`{"k":1.5E-3}`:              "0.0015",
		`{"k":true}`:                "1",
		`{"k":false}`:               "0",
		`{"k":""}`:                  "",
		`{"k":" "}`:                 " ",
	} {
		c, err := read(text)
		if got, set := c.Get("k"); err != nil || !set || got != want {
			t.Errorf("%s: got %q, %v, want %q", text, got, err, want)
		}
	}
	for text, reason := range map[string]string{
		`{"mp0":null}`:                     "config key mp0: null",
		`{"mp0":{}}`:                       "config key mp0: neither",
		`{"mp0":["a"]}`:                    "config key mp0: neither",
		`{"k":1e999}`:                      "config key k: number",
		`{"k":1e99}`:                       "config key k: number",
		`{"lxc":"a"}`:                      "config key lxc",
		`{"lxc":[["a"]]}`:                  "config key lxc",
		`{"lxc":[["a","b","c"]]}`:          "config key lxc",
		`{"lxc":[["a",1]]}`:                "config key lxc",
		"{\"a\\u001b[2J\":[]}":             "config key a:",
		`{"lxc":{"lxc.init.uid":"a"}}`:     "config key lxc",
		`{"digest":["a"],"hostname":"w"}`:  "config key digest",
		`{"snapshots":{"s1":{"cores":1}}}`: "config key snapshots",
	} {
		if c, err := read(text); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: got %+v, %v, want an error that says %q", text, c, err, reason)
		}
	}
	c, err := read(`{"digest":"abc","hostname":"w","lxc":[]}`)
	if err != nil || c.Digest != "abc" || len(c.Values) != 1 || len(c.Raw) != 0 {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestConfigKeysAndMountsInNaturalOrder(t *testing.T) {
	c := Config{Values: map[string]string{
		"mp10": "tank:c,mp=/c", "mp2": "tank:b,mp=/b", "rootfs": "tank:a", "unused0": "tank:u", "net1": "name=eth1", "net0": "name=eth0",
		"mp3": "tank:x", "mp300": "tank:x,mp=/x", "net9": "", "hostname": "web1", "mptest": "1", "cores": "2",
	}}
	want := []string{"cores", "hostname", "mp2", "mp3", "mp10", "mp300", "mptest", "net0", "net1", "net9", "rootfs", "unused0"}
	if got := c.Keys(); !slices.Equal(got, want) {
		t.Errorf("keys %v, want %v", got, want)
	}
	var keys []string
	mounts, bad := c.Mounts()
	for _, m := range mounts {
		keys = append(keys, m.Key)
	}
	for _, b := range bad {
		keys = append(keys, "!"+b.Key)
		if b.Why == "" || b.Value != c.Values[b.Key] {
			t.Errorf("bad key without a reason: %+v", b)
		}
	}
	networks, unread := c.Networks()
	for _, n := range networks {
		keys = append(keys, n.Key)
	}
	for _, b := range unread {
		keys = append(keys, "!"+b.Key)
	}
	if want := []string{"rootfs", "mp2", "mp10", "unused0", "!mp3", "!mp300", "net0", "net1", "!net9"}; !slices.Equal(keys, want) {
		t.Errorf("got %v, want %v", keys, want)
	}
}

func TestConfigCloneAndEqual(t *testing.T) {
	a := Config{Digest: "1", Values: map[string]string{"cores": "2", "description": "x"}, Raw: [][2]string{{"lxc.a", "b"}}}
	b := a.Clone()
	b.Digest, b.Values["description"] = "2", "y"
	if !a.Equal(b) {
		t.Error("notes or digest count")
	}
	if delete(b.Values, "description"); !a.Equal(b) || !b.Equal(a) {
		t.Error("notes count")
	}
	b.Raw[0][1] = "c"
	if a.Raw[0][1] != "b" || a.Equal(b) {
		t.Error("raw pairs are shared, or do not count")
	}
	b = a.Clone()
	b.Values["cores"] = "3"
	if a.Values["cores"] != "2" || a.Equal(b) {
		t.Error("values are shared, or do not count")
	}
	if a.Description() != "x" {
		t.Error("comparing changes a config")
	}
	if !(Config{}).Equal(Config{Values: map[string]string{}}) {
		t.Error("no values differ from none")
	}
}

func TestHostname(t *testing.T) {
	if got := (Config{Values: map[string]string{"hostname": "web1"}}).Hostname(5001); got != "web1" {
		t.Errorf("got %q", got)
	}
	if got := (Config{}).Hostname(5001); got != "CT5001" {
		t.Errorf("got %q", got)
	}
}

func TestSplitKey(t *testing.T) {
	type split struct {
		name  string
		index int
		ok    bool
	}
	for key, want := range map[string]split{
		"mp10": {"mp", 10, true}, "mp0": {"mp", 0, true}, "rootfs": {"rootfs", 0, false}, "efidisk0": {"efidisk", 0, true},
		"mp01": {"mp01", 0, false}, "123": {"123", 0, false}, "": {"", 0, false}, "mp99999": {"mp99999", 0, false},
		"smbios1": {"smbios", 1, true}, "mp-1": {"mp-", 1, true},
	} {
		name, index, ok := SplitKey(key)
		if got := (split{name, index, ok}); got != want {
			t.Errorf("%q: got %v, want %v", key, got, want)
		}
	}
}

// An order that is not one would make texts unstable.
func TestCompareKeysIsAnOrder(t *testing.T) {
	key := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"mp", "net", "rootfs", "", "1"}).Draw(t, "name") + rapid.StringMatching(`[0-9]{0,5}`).Draw(t, "index")
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := key.Draw(t, "a"), key.Draw(t, "b"), key.Draw(t, "c")
		if (CompareKeys(a, b) == 0) != (a == b) || CompareKeys(a, b) != -CompareKeys(b, a) {
			t.Fatalf("%q and %q", a, b)
		}
		if CompareKeys(a, b) < 0 && CompareKeys(b, c) < 0 && CompareKeys(a, c) >= 0 {
			t.Fatalf("%q < %q < %q", a, b, c)
		}
		keys := map[string]string{a: "", b: "", c: ""}
		sorted := slices.Collect(maps.Keys(keys))
		SortKeys(sorted)
		if got := (Config{Values: keys}).Keys(); !slices.Equal(got, sorted) {
			t.Fatalf("%v and %v", got, sorted)
		}
	})
}
