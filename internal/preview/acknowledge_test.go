package preview

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

func texts(all []Difference) []string {
	var out []string
	for _, d := range all {
		out = append(out, d.Text())
	}
	return out
}

func TestCompareSaysWhatChanged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(f *Facts)
		want   []string
	}{
		"nothing":          {func(*Facts) {}, nil},
		"memory":           {func(f *Facts) { f.set("memory", "4096") }, nil},
		"order of options": {func(f *Facts) { f.set("mp0", "local-lvm:vm-5001-disk-1,size=100G,backup=1,mp=/srv/data") }, nil},
		"added":            {func(f *Facts) { f.set("mp3", "local-lvm:vm-5001-disk-9,mp=/new,size=4G") }, []string{"mp3 (local-lvm:vm-5001-disk-9, 4 GiB) was added."}},
		"added bind":       {func(f *Facts) { f.set("mp3", "/mnt/x,mp=/x") }, []string{"mp3 (/mnt/x) was added."}},
		"added device":     {func(f *Facts) { f.set("dev0", "/dev/fuse") }, []string{"dev0 (/dev/fuse) was added."}},
		"gone":             {func(f *Facts) { f.unset("unused0") }, []string{"unused0 (local-lvm:vm-5001-disk-7) is gone."}},
		"swapped": {
			func(f *Facts) { f.set("mp0", "tank:subvol-5001-disk-1,backup=1,mp=/srv/data,size=100G") },
			[]string{"mp0 was local-lvm:vm-5001-disk-1,backup=1,mp=/srv/data,size=100G and is tank:subvol-5001-disk-1,backup=1,mp=/srv/data,size=100G."},
		},
		"resized": {
			func(f *Facts) { f.set("rootfs", "local-lvm:vm-5001-disk-0,size=9G") },
			[]string{"rootfs was local-lvm:vm-5001-disk-0,size=8704M and is local-lvm:vm-5001-disk-0,size=9G."},
		},
		"snapshot":       {func(f *Facts) { f.snapshot("daily") }, []string{"Snapshot daily was taken."}},
		"moved":          {func(f *Facts) { f.Guest.Node = "pve2" }, []string{"The guest moved from node pve1 to node pve2."}},
		"another guest":  {func(f *Facts) { f.Guest.VMID = 5002 }, []string{"It is guest 5002, not guest 5001."}},
		"untrusted text": {func(f *Facts) { f.set("mp3", "/mnt/\x1b[31mx,mp=/x") }, []string{"mp3 (/mnt/x,mp=/x) was added."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _ := web1()
			was := Acknowledge(f.Guest)
			c.change(&f)
			now := Acknowledge(f.Guest)
			if got := texts(was.Compare(now)); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
			if same := was.Precondition() == now.Precondition(); same != (c.want == nil) {
				t.Errorf("the precondition is the same: %t", same)
			}
		})
	}
	t.Run("snapshots the other way", func(t *testing.T) {
		t.Parallel()
		a, b := Acknowledgements{Parent: "a"}, Acknowledgements{Parent: "b"}
		if got := texts(a.Compare(b)); !slices.Equal(got, []string{"The newest snapshot is b, not a."}) {
			t.Errorf("%q", got)
		}
		if got := texts(a.Compare(Acknowledgements{})); !slices.Equal(got, []string{"Snapshot a was the newest one; there is none now."}) {
			t.Errorf("%q", got)
		}
	})
}

// A volume that is deleted and made again under the same id, with another size or option, is another volume.
func TestCompareSeesAVolumeMadeAgain(t *testing.T) {
	t.Parallel()
	for _, again := range []string{"local-lvm:vm-5001-disk-1,backup=1,mp=/srv/data,size=101G", "local-lvm:vm-5001-disk-1,mp=/srv/data,size=100G"} {
		f, _ := web1()
		was := Acknowledge(f.Guest)
		f.set("mp0", again)
		if len(was.Compare(Acknowledge(f.Guest))) != 1 {
			t.Errorf("%s passes for the old one", again)
		}
	}
}

func TestCompareDuringForgivesWhatWeDidOurselves(t *testing.T) {
	t.Parallel()
	f, _ := web1()
	f.snapshot("daily")
	was := Acknowledge(f.Guest)
	record := guest.Journal{Snaps: []string{"daily"}, Parked: []guest.ParkedVolume{{Key: "mp0"}, {Key: "unused0"}}}
	f.unset("mp0")
	f.unset("parent")
	f.set("onboot", "0")
	if got := texts(was.CompareDuring(Acknowledge(f.Guest), record)); len(got) != 0 {
		t.Errorf("our own changes count: %q", got)
	}
	if got := was.CompareDuring(Acknowledge(f.Guest), guest.Journal{}); len(got) != 2 {
		t.Errorf("without a record %q", texts(got))
	}
	for name, change := range map[string]func(f *Facts){
		"another volume under a key that was set aside": func(f *Facts) { f.set("mp0", "tank:subvol-5001-disk-1,mp=/srv/data") },
		"a new key":         func(f *Facts) { f.set("mp3", "tank:subvol-5001-disk-1,mp=/x") },
		"a key not ours":    func(f *Facts) { f.unset("mp1") },
		"a new snapshot":    func(f *Facts) { f.set("parent", "oops") },
		"another root disk": func(f *Facts) { f.set("rootfs", "tank:subvol-5001-disk-0") },
	} {
		g, _ := web1()
		g.unset("mp0")
		change(&g)
		if got := was.CompareDuring(Acknowledge(g.Guest), record); len(got) != 1 {
			t.Errorf("%s: %q", name, texts(got))
		}
	}
}

func TestDecodeRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for _, data := range []string{"", "{}", "null", "[]", `{"v":2,"vmid":5001}`, "{", `{"v":1,"vmid":"x"}`} {
		if a, err := Decode([]byte(data)); err == nil || !a.Zero() {
			t.Errorf("%q is read as %+v", data, a)
		}
	}
	if !(Acknowledgements{}).Zero() || Acknowledge(guest.Guest{Ref: guest.Ref{VMID: 1}}).Zero() {
		t.Error("zero is not told apart")
	}
}

func TestAcknowledgementsSurviveAndAreStable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ -~äöü]{0,20}`)
		a := Acknowledgements{
			VMID: guest.VMID(rapid.IntRange(100, 999999999).Draw(t, "vmid")), Node: text.Draw(t, "node"), Parent: text.Draw(t, "parent"),
			Values: rapid.MapOf(rapid.SampledFrom([]string{"rootfs", "mp0", "mp10", "unused0", "dev3"}), text).Draw(t, "values"),
		}
		back, err := Decode(a.Encode())
		if err != nil || len(a.Compare(back)) != 0 || back.Precondition() != a.Precondition() {
			t.Fatalf("%+v came back as %+v (%v)", a, back, err)
		}
		shuffled := a
		shuffled.Values = map[string]string{}
		for _, key := range slices.Backward(slices.Sorted(maps.Keys(a.Values))) {
			shuffled.Values[key] = a.Values[key]
		}
		if !bytes.Equal(a.Encode(), shuffled.Encode()) {
			t.Fatal("the bytes depend on the order of keys")
		}
		if !strings.HasPrefix(a.Precondition(), "sha256:") {
			t.Fatal(a.Precondition())
		}
		b := a
		b.Values = maps.Clone(a.Values)
		b.Values["mp7"] = "x"
		if b.Precondition() == a.Precondition() || len(a.Compare(b)) != 1 || len(b.Compare(a)) != 1 {
			t.Fatal("an added key is not seen")
		}
	})
}

// Fates follow from what is; they are never compared.
func TestAcknowledgementsHoldNoFate(t *testing.T) {
	t.Parallel()
	f, w := web1()
	before := Container(f, w)
	erase(&w, "mp0", "local-lvm:vm-5001-disk-1")
	f.revoke("/vms/5002", "VM.Config.Disk")
	after := Container(f, w)
	if before.Precondition != after.Precondition || fateOf(t, before, "mp0").Data == fateOf(t, after, "mp0").Data {
		t.Error("the precondition depends on fates")
	}
}
