package guest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode"
)

// seed adds the columns of a table of testdata to the corpus.
func seed(f *testing.F, name string, add func(columns []string)) {
	f.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if columns := strings.Split(line, "|"); len(columns) > 1 && !strings.HasPrefix(line, "#") {
			for i := range columns {
				columns[i] = strings.TrimSpace(columns[i])
			}
			add(columns)
		}
	}
}

func FuzzReadNotes(f *testing.F) {
	paths, err := filepath.Glob(filepath.Join("testdata", "v1", "*.txt"))
	if err != nil || len(paths) == 0 {
		f.Fatal("no fixtures", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
		f.Add(string(text[:len(text)/2]))
		f.Add(string(text) + string(text))
		f.Add(strings.Replace(string(text), " v1 ", " v2 ", 1))
	}
	f.Add("```pvrx-journal")
	f.Add("pvrx: reinstall op-1-20261201-aaaa")
	f.Fuzz(func(t *testing.T, text string) {
		checkNotes(t, text)
		for _, p := range NotesOf(5001, text).Problems {
			if p.Kind.String() == "invalid" || p.Block.String() == "invalid" || p.Sentence == "" || strings.ContainsFunc(p.Sentence, unicode.IsControl) {
				t.Errorf("%q: problem %+v", text, p)
			}
		}
	})
}

func FuzzParseMount(f *testing.F) {
	seed(f, "mounts.txt", func(columns []string) { f.Add(columns[0], columns[1]) })
	f.Fuzz(func(t *testing.T, key, value string) {
		m, err := ParseMount(key, value)
		if err != nil {
			if strings.ContainsFunc(err.Error(), unicode.IsControl) {
				t.Errorf("control characters in %q", err)
			}
			return
		}
		again, err := ParseMount(key, m.String())
		if err != nil || !reflect.DeepEqual(again, m) || !m.SameOptions(again) {
			t.Errorf("%q is read as %+v, printed %q and read as %+v (%v)", value, m, m.String(), again, err)
		}
		if bare, err := ParseMount(key, m.WithoutSize()); err != nil || bare.SizeText != "" || !m.SameOptions(bare) {
			t.Errorf("%q without size is %+v (%v)", value, bare, err)
		}
	})
}

func FuzzReadSize(f *testing.F) {
	seed(f, "sizes.txt", func(columns []string) { f.Add(columns[0]) })
	f.Fuzz(func(t *testing.T, text string) {
		b, sure, err := ReadSize(text)
		if b < 0 || (err != nil && (b != 0 || sure)) {
			t.Errorf("%q: %d, %v, %v", text, b, sure, err)
		}
		if err == nil && b == 0 && strings.ContainsAny(strings.SplitN(text, ".", 2)[0], "123456789") {
			t.Errorf("%q: read as nothing", text)
		}
		request, err := ParseRequest(text)
		switch {
		case err != nil && (request != 0 || strings.ContainsFunc(err.Error(), unicode.IsControl)):
			t.Errorf("%q: %d, %q", text, request, err)
		case err == nil && (request <= 0 || request < b || request-b > 1 || request.CeilMiB() < request):
			t.Errorf("%q: request %d, in a config %d", text, request, b)
		}
	})
}

func FuzzParseVolumeID(f *testing.F) {
	seed(f, "volumes.txt", func(columns []string) { f.Add(columns[0], "store:"+columns[1]) })
	f.Fuzz(func(t *testing.T, typ, text string) {
		id, err := ParseVolumeID(text)
		if err != nil {
			if id != (VolumeID{}) || strings.ContainsFunc(err.Error(), unicode.IsControl) {
				t.Errorf("%q: %v, %q", text, id, err)
			}
			return
		}
		if id.String() != text {
			t.Errorf("%q is printed %q", text, id)
		}
		v, err := ReadVolume(StorageType(typ), id)
		if err != nil {
			return
		}
		if v.ID != id || v.Format == "" || v.Linked != (v.Base != VolumeID{}) || (v.Owner != 0 && !strings.Contains(id.Name, v.Owner.String())) {
			t.Errorf("%s %q: %+v", typ, text, v)
		}
		if ok, why := v.Renamable(StorageType(typ), true, false); ok == (why != "") {
			t.Errorf("%s %q: renamable %v, %q", typ, text, ok, why)
		}
	})
}

func FuzzFromJSON(f *testing.F) {
	for _, name := range recordedNames(f) {
		text, err := os.ReadFile(filepath.Join("testdata", "configs", name+".json"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"mp0":null,"lxc":[["a","b"]],"cores":1e3,"x":true}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var raw map[string]json.RawMessage
		if json.Unmarshal(text, &raw) != nil {
			return
		}
		c, err := FromJSON(raw)
		if err != nil {
			if strings.ContainsFunc(err.Error(), unicode.IsControl) {
				t.Errorf("control characters in %q", err)
			}
			return
		}
		for key := range raw {
			if _, set := c.Get(key); !set && key != "digest" && key != "lxc" {
				t.Errorf("key %q is lost", key)
			}
		}
		mounts, bad := c.Mounts()
		networks, unread := c.Networks()
		disks, unreadable := Disks(c)
		for _, b := range append(append(bad, unread...), unreadable...) {
			if b.Why == "" || c.Values[b.Key] != b.Value {
				t.Errorf("bad key %+v", b)
			}
		}
		users := map[Named]bool{}
		for _, kind := range []Kind{KindContainer, KindVM} {
			for _, named := range Volumes(kind, c) {
				users[named] = true
			}
		}
		for _, m := range mounts {
			if id, ok := m.Volume(); ok && !users[Named{m.Key, id}] {
				t.Errorf("%s names %s, which Volumes overlooks", m.Key, id)
			}
		}
		for _, d := range disks {
			if id, ok := d.Volume(); ok && !users[Named{d.Key, id}] {
				t.Errorf("%s names %s, which Volumes overlooks", d.Key, id)
			}
		}
		for _, n := range networks {
			if again, err := ParseNetwork(n.Key, n.String()); err != nil || !SameNetwork(n, again) {
				t.Errorf("%q is read as %+v (%v)", n, again, err)
			}
		}
		if !c.Equal(c.Clone()) {
			t.Error("a clone differs")
		}
	})
}
