package guest

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func describe(v Volume) string {
	text := fmt.Sprintf("%d %s", v.Owner, v.Format)
	if v.IsBase {
		text += " base"
	}
	if v.Linked {
		text += " linked=" + v.Base.Name
	}
	if v.CloudInit {
		text += " cloudinit"
	}
	if v.State {
		text += " state"
	}
	return text
}

func TestReadVolume(t *testing.T) {
	table(t, "volumes.txt", func(t *testing.T, row []string) {
		typ, id := StorageType(row[0]), VolumeID{Storage: "store", Name: row[1]}
		v, err := ReadVolume(typ, id)
		if row[2] == "error" {
			if err == nil {
				t.Fatalf("got %s, want an error", describe(v))
			}
			if !strings.HasPrefix(err.Error(), "cannot read volume store:") {
				t.Errorf("error %q does not name the volume", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := describe(v); got != row[2] {
			t.Errorf("got %q, want %q", got, row[2])
		}
		if v.ID != id || (v.Linked && v.Base.Storage != id.Storage) {
			t.Errorf("id %v, base %v", v.ID, v.Base)
		}
		ok, why := v.Renamable(typ, false, true)
		if yes(ok) != row[3] {
			t.Errorf("renamable %s (%s), want %s", yes(ok), why, row[3])
		}
		if ok != (why == "") {
			t.Errorf("renamable %v with reason %q", ok, why)
		}
		if got := yes(CanSnapshot(typ, v.Format)); got != row[4] {
			t.Errorf("snapshot %s, want %s", got, row[4])
		}
		// Snapshots kept as a chain of volumes never make more possible.
		if chained, why := v.Renamable(typ, true, true); chained || why == "" {
			t.Errorf("renamable with chained snapshots: %v, %q", chained, why)
		}
		if chained, _ := v.Renamable(typ, true, false); chained != ok {
			t.Errorf("the option alone changes renamable to %v", chained)
		}
	})
}

func TestRenamableKnowsOnlyKnownTypes(t *testing.T) {
	if ok, why := (Volume{Format: "raw"}).Renamable("tomorrow", false, false); ok || !strings.Contains(why, "tomorrow") {
		t.Errorf("got %v, %q", ok, why)
	}
	if CanSnapshot("tomorrow", "raw") {
		t.Error("an unknown type has snapshots")
	}
}

func TestParseVolumeID(t *testing.T) {
	for text, want := range map[string]VolumeID{
		"local-lvm:vm-5001-disk-0":        {"local-lvm", "vm-5001-disk-0"},
		"local:100/vm-100-disk-0.raw":     {"local", "100/vm-100-disk-0.raw"},
		"tank:base-1-a/vm-2-b":            {"tank", "base-1-a/vm-2-b"},
		"esx:dc/store:1/a b.vmdk":         {"esx", "dc/store:1/a b.vmdk"},
		"A.b_c-9:x":                       {"A.b_c-9", "x"},
		"local:vztmpl/debian-13.tar.zst":  {"local", "vztmpl/debian-13.tar.zst"},
		"pbs:backup/ct/1/2026-01-01T0:0Z": {"pbs", "backup/ct/1/2026-01-01T0:0Z"},
	} {
		if got, err := ParseVolumeID(text); err != nil || got != want || got.String() != text {
			t.Errorf("%q: got %v (%q), %v", text, got, got.String(), err)
		}
	}
	for _, text := range []string{
		"", ":", "x:y", "local:", ":name", "none", "cdrom", "/dev/sdb", "/mnt/a:b", "9local:a", "local-:a", "loc al:a",
		"local:a,b", "local:a\nb", "local:a\x1b[0m", "local:a\u009b", "volume=local:a",
	} {
		if got, err := ParseVolumeID(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		} else if strings.ContainsAny(err.Error(), "\n\x1b\u009b") {
			t.Errorf("%q: the error passes control characters on", text)
		}
	}
	if got := (VolumeID{}).String(); got != "" {
		t.Errorf("zero id prints %q", got)
	}
}

// The owner decides what a destroy erases: a volume read from any text has an owner that its name spells out.
func TestReadVolumeOwnerIsInTheName(t *testing.T) {
	types := []StorageType{
		StorageDir, StorageNFS, StorageCIFS, StorageCephFS, StorageBtrfs, StorageLVM, StorageLVMThin, StorageZFSPool, StorageRBD,
		StorageZFS, StorageISCSI, StorageISCSIDirect, StorageESXi, StoragePBS, "", "other",
	}
	word := rapid.SampledFrom([]string{
		"vm-", "base-", "subvol-", "basevol-", "100", "9000", "0", "/", "-disk-", ".raw", ".qcow2", ".subvol", "lun", ".", "-", "a", "\n", "é", "cloudinit", "state-",
	})
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom(types).Draw(t, "type")
		name := strings.Join(rapid.SliceOfN(word, 0, 12).Draw(t, "name"), "")
		v, err := ReadVolume(typ, VolumeID{"store", name})
		if err != nil {
			return
		}
		if v.Owner != 0 && !strings.Contains(name, v.Owner.String()) {
			t.Fatalf("%s %q: owner %d", typ, name, v.Owner)
		}
		if v.Format == "" {
			t.Fatalf("%s %q: no format", typ, name)
		}
	})
}
