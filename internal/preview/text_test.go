package preview

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

var rewrite = flag.Bool("rewrite", false, "write the texts of testdata anew")

// What people read, scene by scene. go test -run TestTexts -rewrite writes the files anew; read the difference before
// keeping it.
func TestTexts(t *testing.T) {
	t.Parallel()
	byCode := map[string]*strings.Builder{}
	add := func(file, scene, text string) {
		if byCode[file] == nil {
			byCode[file] = &strings.Builder{}
		}
		byCode[file].WriteString("== " + scene + "\n" + text + "\n")
	}
	for _, r := range reasons() {
		f, w := web1()
		r.make(&f, &w)
		var text strings.Builder
		p := Container(f, w)
		for _, b := range p.Blockers {
			text.WriteString(b.Title + " [" + b.Attribute + "]\n    " + b.Text() + "\n")
		}
		add("blockers", r.code.String()+": "+r.name, text.String())
	}
	f, w := web1()
	add("scenes", "a sound guest", show(Container(f, w)))
	f.snapshot("daily")
	f.Firewall.Value = Firewall{Rules: 3}
	f.ACL.Value = []ACLEntry{{Path: "/vms/5001", Who: "ops@pve", Role: "PVEVMUser", CanRestore: true}}
	f.Pool.Value, f.HA.Value = "web", HA{Managed: true, State: "started"}
	f.grant("/pool/web", "VM.Allocate")
	f.grant("/", "Sys.Console")
	f.Leases.Value = []Lease{{IP: "10.0.0.50"}}
	erase(&w, "mp0", "local-lvm:vm-5001-disk-1")
	w.Allow = []string{"snapshots_present", "ha_managed"}
	add("scenes", "everything waived", show(Container(f, w)))
	f, w = web1()
	f.set("lock", "backup")
	f.set("foo", "bar\x1b[31m\u202e")
	f.set("mp4", "tank:subvol-5001-a-very-long-name-that-somebody-chose-for-a-reason-of-their-own,mp=/srv/applications/production/uploads/original")
	f.stored("tank:subvol-5001-a-very-long-name-that-somebody-chose-for-a-reason-of-their-own", 5001, 12*guest.TiB)
	f.set("mp5", "local:5001/vm-5001-disk-5.subvol,mp=/x")
	f.stored("local:5001/vm-5001-disk-5.subvol", 5001, guest.MiB)
	add("scenes", "refused, with long and untrusted text", show(Container(f, w)))
	f, w = web1()
	w.Template, f.TemplateKnown = "", guest.PresenceUnknown
	add("scenes", "the template is not known yet", show(Container(f, w)))
	f, w = web1()
	w.Rootfs = Rootfs{Size: 16 * guest.GiB, SizeText: "16GiB"}
	add("scenes", "growing", show(GrowOnly(f, w)))
	f, j := stuck()
	for _, op := range []Operation{OpResume, OpRollback, OpClose} {
		add("reconcile", op.String()+" past the point of no return", show(Reconcile(op, j, f)))
	}
	f, j = whole()
	for _, op := range []Operation{OpResume, OpRollback, OpClose} {
		add("reconcile", op.String()+" before it", show(Reconcile(op, j, f)))
	}
	instanceScenes(add)
	for name, text := range byCode {
		path := filepath.Join("testdata", name+".txt")
		if *rewrite {
			if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := text.String(); got != string(want) {
			t.Errorf("%s differs; run go test -run TestTexts -rewrite and read the difference:\n%s", path, firstDifference(got, string(want)))
		}
	}
}

func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return "got:  " + a[i] + "\nwant: " + strings.Join(b[min(i, len(b)):min(i+1, len(b))], "")
		}
	}
	return "the end is missing"
}

// Whatever a configuration holds, what is printed is one harmless line of bounded width that keeps the fates.
func TestTextIsPrintableAndNarrow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f, w := web1()
		nasty := rapid.String()
		f.set("hostname", nasty.Draw(t, "hostname"))
		f.set(nasty.Draw(t, "key"), nasty.Draw(t, "value"))
		f.set("mp4", nasty.Draw(t, "mount"))
		f.set("mp5", "/mnt/"+strings.ReplaceAll(nasty.Draw(t, "bind"), ",", "")+",mp=/"+strings.ReplaceAll(nasty.Draw(t, "path"), ",", ""))
		f.set("dev0", nasty.Draw(t, "device"))
		f.Guest.Snapshots = []guest.Snapshot{{Name: nasty.Draw(t, "snapshot"), Config: guest.Config{Values: map[string]string{"mp1": nasty.Draw(t, "old")}}}}
		f.Journal.Journal = journal(guest.JournalStuck, 0)
		f.Journal.Journal.Error = nasty.Draw(t, "error")
		w.Name, w.Template = nasty.Draw(t, "name"), nasty.Draw(t, "template")
		p := Container(f, w)
		var lines []string
		for key, line := range p.Fates() {
			if n := utf8.RuneCountInString(line); n > Width {
				t.Fatalf("%d columns: %q", n, line)
			}
			lines = append(lines, key, line)
		}
		for _, row := range strings.Split(p.Table(), "\n") {
			if !strings.HasPrefix(row, " ") {
				t.Fatalf("the row %q does not begin with a space", row)
			}
			lines = append(lines, row)
		}
		for _, b := range p.Blockers {
			lines = append(lines, b.Title, b.Text(), b.Subject)
		}
		for _, line := range append(append(lines, p.Summary), p.Warnings...) {
			for _, r := range line {
				if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
					t.Fatalf("%q holds %U", line, r)
				}
			}
		}
		if !strings.HasPrefix(p.Summary, "CT 5001") {
			t.Fatalf("summary %q", p.Summary)
		}
	})
}

func TestTemplateNamesAreShort(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		template: "debian-13-standard_13.1-1",
		"local:vztmpl/alpine-3.22-default_20250617_amd64.tar.xz": "alpine-3.22-default_20250617",
		"local:vztmpl/own.tar.gz":                                "own",
		"local:vztmpl/my_image.tar":                              "my_image",
		"":                                                       "a template that is not known yet",
		"x":                                                      "x",
		"local:vztmpl/":                                          "",
	} {
		if got := templateName(id); got != want {
			t.Errorf("%q is called %q, want %q", id, got, want)
		}
	}
}

func TestShortenKeepsBothEnds(t *testing.T) {
	t.Parallel()
	for width, want := range map[int]string{20: "abcdefghij", 10: "abcdefghij", 9: "abcd…ghij", 5: "ab…ij", 2: "a…", 1: "…", 0: "…"} {
		if got := shorten("abcdefghij", width); got != want {
			t.Errorf("%d: %q, want %q", width, got, want)
		}
	}
}
