package guest

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseMount(t *testing.T) {
	table(t, "mounts.txt", func(t *testing.T, row []string) {
		m, err := ParseMount(row[0], row[1])
		if reason, fails := strings.CutPrefix(row[2], "error: "); fails {
			if err == nil || !strings.Contains(err.Error(), reason) {
				t.Errorf("got %+v, error %v, want one that says %q", m, err, reason)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		volume := "-"
		if id, ok := m.Volume(); ok {
			volume = id.String()
		}
		printed := row[5]
		if printed == "=" {
			printed = row[1]
		}
		got := []string{m.Kind.String(), m.Path, volume, m.String()}
		if want := []string{row[2], row[3], row[4], printed}; !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		if text := m.WithoutSize(); strings.Contains(text, "size=") {
			t.Errorf("WithoutSize = %q", text)
		}
	})
}

func TestSameOptions(t *testing.T) {
	table(t, "same_options.txt", func(t *testing.T, row []string) {
		a, errA := ParseMount("mp0", row[0])
		b, errB := ParseMount("mp7", row[1])
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if want := row[2] == "same"; a.SameOptions(b) != want || b.SameOptions(a) != want {
			t.Errorf("%q and %q: want %s", row[0], row[1], row[2])
		}
		if !a.SameOptions(a) || !b.SameOptions(b) {
			t.Error("a mount differs from itself")
		}
	})
}

func TestParseMountRefusesControlCharacters(t *testing.T) {
	for _, value := range []string{"tank:a\n,mp=/x", "tank:a,mp=/x\x00", "tank:a,mp=/\x1b[2J", "tank:a,mp=/\xff"} {
		if m, err := ParseMount("mp0", value); err == nil || strings.ContainsAny(err.Error(), "\x1b\x00\n") {
			t.Errorf("%q: %+v, %v", value, m, err)
		}
	}
}

// drawMount makes any mount that a config can hold.
func drawMount(t *rapid.T) Mount {
	m := Mount{Options: map[string]string{}}
	m.Key = rapid.SampledFrom([]string{"rootfs", "mp0", "mp10", "mp255", "unused0", "unused12"}).Draw(t, "key")
	text := rapid.StringMatching(`[a-zA-Z0-9/_.;: é-]{1,12}`)
	source := rapid.SampledFrom([]string{"tank:", "/", "/dev/", "local:100/"}).Draw(t, "start")
	m.Source = source + rapid.StringMatching(`[a-z0-9_./-]{1,10}`).Draw(t, "source")
	switch {
	case strings.HasPrefix(m.Source, "/dev/"):
		m.Kind = SourceDevice
	case strings.HasPrefix(m.Source, "/"):
		m.Kind = SourceBind
	default:
		m.Kind = SourceVolume
	}
	switch name, _, _ := SplitKey(m.Key); name {
	case "rootfs":
		m.Path = "/"
	case "unused":
		m.Path = "-"
	default:
		m.Path = "/" + text.Draw(t, "path")
	}
	for _, name := range []string{"acl", "backup", "idmap", "keepattrs", "mountoptions", "quota", "replicate", "ro", "shared", "zz-new"} {
		if rapid.Bool().Draw(t, name) {
			m.Options[name] = text.Draw(t, name+" value")
		}
	}
	if rapid.Bool().Draw(t, "sized") {
		m.SizeText = "8G"
	}
	return m
}

func TestMountRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMount(t)
		got, err := ParseMount(m.Key, m.String())
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Fatalf("%q is read as %+v, want %+v (%v)", m.String(), got, m, err)
		}
		if !got.SameOptions(m) {
			t.Fatalf("%q: options differ after a round trip", m.String())
		}
		parts := strings.Split(m.String(), ",")
		parts[0] = "volume=" + parts[0]
		shuffled := strings.Join(rapid.Permutation(parts).Draw(t, "order"), ",")
		if got, err := ParseMount(m.Key, shuffled); err != nil || !reflect.DeepEqual(got, m) {
			t.Fatalf("%q is read as %+v, want %+v (%v)", shuffled, got, m, err)
		}
		before := maps.Clone(m.Options)
		if m.WithoutSize(); !maps.Equal(before, m.Options) {
			t.Fatal("printing changes the mount")
		}
	})
}
