package pvesim

import (
	"fmt"
	"strings"
	"testing"
)

// storageWorld has a storage of every type, named after it.
func storageWorld() *Cluster {
	c := NewCluster(Options{Nodes: []string{"pve1", "pve2"}})
	for _, typ := range []string{"dir", "nfs", "cifs", "btrfs", "lvm", "lvmthin", "zfspool", "rbd", "zfs", "iscsi", "iscsidirect", "esxi", "pbs"} {
		spec := StorageSpec{ID: typ, Type: typ, Options: map[string]string{}}
		s := &storage{typ: typ}
		spec.Content = s.kind().content
		switch typ {
		case "lvm", "lvmthin":
			spec.Options["vgname"] = "vg"
		case "zfspool", "zfs", "rbd":
			spec.Options["pool"] = "tank"
		}
		c.AddStorage(spec)
	}
	return c
}

func TestVolumeNames(t *testing.T) {
	c := storageWorld()
	for _, tc := range []struct {
		volid, vtype string
		owner        int
		format, base string
		isBase       bool
	}{
		{"dir:101/vm-101-disk-0.raw", "images", 101, "raw", "", false},
		{"dir:101/vm-999-disk-0.qcow2", "images", 101, "qcow2", "", false}, // the directory's number counts
		{"dir:101/anything.vmdk", "images", 101, "vmdk", "", false},
		{"dir:101/subvol-101-disk-0.subvol", "images", 101, "subvol", "", false},
		{"dir:9000/base-9000-disk-0.qcow2/101/vm-101-disk-0.qcow2", "images", 101, "qcow2", "base-9000-disk-0.qcow2", false},
		{"dir:9000/base-9000-disk-0.qcow2", "images", 9000, "qcow2", "", true},
		{"dir:iso/a.iso", "iso", 0, "raw", "", false},
		{"dir:vztmpl/d.tar.zst", "vztmpl", 0, "raw", "", false},
		{"dir:vztmpl/image.tar", "vztmpl", 0, "raw", "", false},
		{"dir:backup/vzdump-lxc-101-2026_12_01-05_18_08.tar.zst", "backup", 101, "raw", "", false},
		{"dir:snippets/hook.sh", "snippets", 0, "raw", "", false},
		{"dir:import/cloud.qcow2", "import", 0, "qcow2", "", false},
		{"btrfs:101/vm-101-disk-0.raw", "images", 101, "raw", "", false},
		{"lvm:vm-101-disk-0", "images", 101, "raw", "", false},
		{"lvm:vm-101-disk-0.qcow2", "images", 101, "qcow2", "", false},
		{"lvmthin:base-101-disk-0", "images", 101, "raw", "", true},
		{"lvmthin:vm-101-data", "images", 101, "raw", "", false},
		{"zfspool:subvol-101-disk-0", "images", 101, "subvol", "", false},
		{"zfspool:basevol-101-disk-0/subvol-102-disk-1", "images", 102, "subvol", "basevol-101-disk-0", false},
		{"zfspool:base-101-disk-0", "images", 101, "raw", "", true},
		{"rbd:base-101-disk-0/vm-102-disk-0", "images", 102, "raw", "base-101-disk-0", false},
		{"iscsi:0.0.1.scsi-x", "images", 0, "raw", "", false},
		{"iscsidirect:lun1", "images", 0, "raw", "", false},
		{"pbs:backup/ct/101/2026-12-01T05:18:08Z", "backup", 101, "pbs-ct", "", false},
	} {
		_, n, err := c.parseVolID(tc.volid)
		if err != nil {
			t.Errorf("%s: %v", tc.volid, err)
			continue
		}
		if n.vtype != tc.vtype || n.owner != tc.owner || n.format != tc.format || n.base != tc.base || n.isBase != tc.isBase {
			t.Errorf("%s: got %+v", tc.volid, n)
		}
		if _, name, _ := splitVolID(tc.volid); n.full() != name {
			t.Errorf("%s: written again it is %s", tc.volid, n.full())
		}
	}
	for volid, text := range map[string]string{
		"dir:nonsense":            "unable to parse directory volume name 'nonsense'",
		"dir:101/snap-x-vm.qcow2": "'snap-x-vm.qcow2' is a snapshot filename, not a volume!",
		"dir:101/vm.iso":          "unable to parse volume filename 'vm.iso'",
		"lvm:base-101-disk-0":     "unable to parse lvm volume name 'base-101-disk-0'",
		"zfspool:data":            "unable to parse zfs volume name 'data'",
		"rbd:subvol-1-x":          "unable to parse rbd volume name 'subvol-1-x'",
		"nostore:x":               "storage 'nostore' does not exist",
		"x":                       "unable to parse volume ID 'x'",
	} {
		if _, _, err := c.parseVolID(volid); err == nil || err.Error() != text {
			t.Errorf("%s: got %v, want %s", volid, err, text)
		}
	}
}

func TestStorageFeatures(t *testing.T) {
	c := storageWorld()
	for _, tc := range []struct{ volid, can, cannot string }{
		{"dir:101/vm-101-disk-0.raw", "rename copy template", "snapshot clone replicate"},
		{"dir:101/vm-101-disk-0.qcow2", "rename copy snapshot", "clone"},
		{"dir:101/base-101-disk-0.qcow2", "clone copy", "rename"},
		{"dir:101/subvol-101-disk-0.subvol", "template", "rename copy snapshot clone"},
		{"btrfs:101/vm-101-disk-0.raw", "rename copy snapshot clone", "replicate"},
		{"btrfs:101/subvol-101-disk-0.subvol", "copy snapshot", "rename"},
		{"lvm:vm-101-disk-0", "rename copy", "snapshot clone template"},
		{"lvm:vm-101-disk-0.qcow2", "rename copy snapshot", "clone"},
		{"lvmthin:vm-101-disk-0", "rename copy snapshot template", "clone replicate"},
		{"lvmthin:base-101-disk-0", "clone copy", "rename"},
		{"zfspool:subvol-101-disk-0", "rename copy snapshot replicate", "clone"},
		{"zfspool:base-101-disk-0", "clone", "rename"},
		{"rbd:vm-101-disk-0", "rename copy snapshot", "replicate clone"},
		{"zfs:vm-101-disk-0", "copy snapshot", "rename"},
		{"iscsi:0.0.1.x", "copy", "rename snapshot clone"},
	} {
		for _, f := range strings.Fields(tc.can) {
			if !c.hasFeature("pve1", tc.volid, f, "") {
				t.Errorf("%s cannot %s", tc.volid, f)
			}
		}
		for _, f := range strings.Fields(tc.cannot) {
			if c.hasFeature("pve1", tc.volid, f, "") {
				t.Errorf("%s can %s", tc.volid, f)
			}
		}
	}
}

// A rename takes the data along, snapshots included, under the lowest free name; a copy is new data.
func TestRenameKeepsTheData(t *testing.T) {
	for _, tc := range []struct{ storage, format, want string }{
		{"dir", "qcow2", "dir:102/vm-102-disk-1.qcow2"},
		{"btrfs", "raw", "btrfs:102/vm-102-disk-1.raw"},
		{"lvmthin", "raw", "lvmthin:vm-102-disk-1"},
		{"zfspool", "subvol", "zfspool:subvol-102-disk-1"},
		{"rbd", "raw", "rbd:vm-102-disk-1"},
	} {
		t.Run(tc.storage, func(t *testing.T) {
			c := storageWorld()
			if _, err := c.alloc("pve1", tc.storage, 102, tc.format, "", 0); err != nil {
				t.Fatal(err)
			}
			volid, err := c.alloc("pve1", tc.storage, 101, tc.format, "", 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.WriteVolume(volid, "/a", "old"); err != nil {
				t.Fatal(err)
			}
			if err := c.snapshotVolume("pve1", volid, "s1"); err != nil {
				t.Fatal(err)
			}
			if err := c.WriteVolume(volid, "/a", "new"); err != nil {
				t.Fatal(err)
			}
			before, _ := c.Volume(volid)
			moved, err := c.rename("pve1", volid, 102)
			if err != nil || moved != tc.want {
				t.Fatalf("renamed to %s, %v, want %s", moved, err, tc.want)
			}
			after, ok := c.Volume(moved)
			if !ok || after.Identity != before.Identity || after.Content["/a"] != "new" || after.Owner != 102 {
				t.Errorf("after the rename: %+v", after)
			}
			if _, ok := c.Volume(volid); ok {
				t.Errorf("%s is still there", volid)
			}
			if err := c.rollbackVolume("pve1", moved, "s1"); err != nil {
				t.Fatal(err)
			}
			if v, _ := c.Volume(moved); v.Content["/a"] != "old" {
				t.Errorf("the snapshot did not travel along: %v", v.Content)
			}
			if !c.hasFeature("pve1", moved, "copy", "") {
				return
			}
			copied, err := c.copyVolume("pve1", moved, "", tc.storage, 103, tc.format, "")
			if err != nil {
				t.Fatal(err)
			}
			if v, _ := c.Volume(copied); v.Identity == before.Identity || v.Content["/a"] != "old" {
				t.Errorf("the copy is %+v", v)
			}
		})
	}
}

// On file storages disk numbers are shared by all formats, and leftovers count.
func TestFreeDiskNames(t *testing.T) {
	c := storageWorld()
	for _, want := range []struct{ format, volid string }{
		{"raw", "dir:101/vm-101-disk-0.raw"}, {"subvol", "dir:101/subvol-101-disk-1.subvol"}, {"qcow2", "dir:101/vm-101-disk-2.qcow2"},
	} {
		if got, err := c.alloc("pve1", "dir", 101, want.format, "", 0); err != nil || got != want.volid {
			t.Errorf("got %s, %v, want %s", got, err, want.volid)
		}
	}
	if err := c.AddVolume("pve1", "lvmthin:vm-101-disk-0", mib); err != nil {
		t.Fatal(err)
	}
	if got, err := c.alloc("pve1", "lvmthin", 101, "raw", "", mib); err != nil || got != "lvmthin:vm-101-disk-1" {
		t.Errorf("beside a leftover: %s, %v", got, err)
	}
	if _, err := c.free("pve1", "dir:101/vm-101-disk-0.raw"); err != nil {
		t.Fatal(err)
	}
	if got, err := c.alloc("pve1", "dir", 101, "raw", "", 0); err != nil || got != "dir:101/vm-101-disk-0.raw" {
		t.Errorf("a freed number: %s, %v", got, err)
	}
}

func TestAllocRefusals(t *testing.T) {
	c := storageWorld()
	for _, tc := range []struct {
		storage, format, name string
		size                  int64
		text                  string
	}{
		{"dir", "subvol", "", mib, "storage does not support subvol quotas"},
		{"btrfs", "subvol", "", mib, "btrfs quotas are currently not supported, use an unsized subvolume or a raw file"},
		{"dir", "raw", "vm-101-x.qcow2", mib, "illegal name 'vm-101-x.qcow2' - wrong extension for format ('qcow2 != 'raw')"},
		{"lvmthin", "raw", "vm-102-x", mib, "illegal name 'vm-102-x' - should be 'vm-101-*'"},
		{"zfspool", "subvol", "vm-101-x", mib, "illegal name 'vm-101-x' - should be 'subvol-101-*'"},
		{"rbd", "qcow2", "", mib, "unsupported format 'qcow2' for storage type rbd"},
		{"nostore", "raw", "", mib, "storage 'nostore' does not exist"},
	} {
		if _, err := c.alloc("pve1", tc.storage, 101, tc.format, tc.name, tc.size); err == nil || err.Error() != tc.text {
			t.Errorf("%s %s %s: got %v, want %s", tc.storage, tc.format, tc.name, err, tc.text)
		}
	}
	if _, err := c.alloc("pve1", "dir", 101, "raw", "vm-101-a.raw", mib); err != nil {
		t.Fatal(err)
	}
	if _, err := c.alloc("pve1", "dir", 101, "raw", "vm-101-a.raw", mib); err == nil || err.Error() != "disk image '/srv/dir/images/101/vm-101-a.raw' already exists" {
		t.Errorf("twice the same name: %v", err)
	}
}

func TestAllocRoundsUp(t *testing.T) {
	c := storageWorld()
	for storage, want := range map[string]int64{"dir": 5*mib + kib, "lvm": 8 * mib, "lvmthin": 8 * mib, "zfspool": 6 * mib, "rbd": 6 * mib} {
		id, err := c.alloc("pve1", storage, 101, "raw", "", 5*mib+1)
		if err != nil {
			t.Fatal(err)
		}
		if v, _ := c.Volume(id); v.Size != want {
			t.Errorf("%s: %d bytes, want %d", storage, v.Size, want)
		}
	}
}

// A volume that is not there is freed without complaint by most storages, not by all.
func TestFreeingNothing(t *testing.T) {
	c := storageWorld()
	for volid, want := range map[string]string{
		"dir:101/vm-101-disk-9.raw": "disk image '/srv/dir/images/101/vm-101-disk-9.raw' does not exist",
		"zfspool:vm-101-disk-9":     "",
		"lvmthin:vm-101-disk-9":     "",
	} {
		if warning, err := c.free("pve1", volid); err != nil || warning != want {
			t.Errorf("%s: %q, %v", volid, warning, err)
		}
	}
	for _, volid := range []string{"lvm:vm-101-disk-9", "rbd:vm-101-disk-9"} {
		if _, err := c.free("pve1", volid); err == nil {
			t.Errorf("%s: no error", volid)
		}
	}
}

func TestLinkedClonesHoldTheirBase(t *testing.T) {
	for _, tc := range []struct {
		storage, format, base, clone string
		refused                      bool
	}{
		{"dir", "qcow2", "dir:101/base-101-disk-0.qcow2", "dir:101/base-101-disk-0.qcow2/102/vm-102-disk-0.qcow2", true},
		{"zfspool", "subvol", "zfspool:basevol-101-disk-0", "zfspool:basevol-101-disk-0/subvol-102-disk-0", true},
		{"rbd", "raw", "rbd:base-101-disk-0", "rbd:base-101-disk-0/vm-102-disk-0", true},
		{"lvmthin", "raw", "lvmthin:base-101-disk-0", "lvmthin:vm-102-disk-0", false},
	} {
		c := storageWorld()
		volid, err := c.alloc("pve1", tc.storage, 101, tc.format, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		base, err := c.makeBase("pve1", volid)
		if err != nil || base != tc.base {
			t.Fatalf("base %s, %v", base, err)
		}
		clone, err := c.linkVolume("pve1", base, "", 102)
		if err != nil || clone != tc.clone {
			t.Fatalf("clone %s, %v", clone, err)
		}
		_, err = c.free("pve1", base)
		_, name, _ := splitVolID(base)
		want := fmt.Sprintf("base volume '%s' is still in use by linked clones", name)
		if tc.refused != (err != nil) || err != nil && err.Error() != want {
			t.Errorf("%s: freeing the base: %v", tc.storage, err)
		}
	}
}

// Local storages have their own volumes on every node, shared ones the same everywhere.
func TestVolumesByNode(t *testing.T) {
	c := storageWorld()
	for storage, seen := range map[string]bool{"dir": false, "nfs": true, "rbd": true, "zfspool": false} {
		id, err := c.alloc("pve1", storage, 101, "raw", "", mib)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.volume("pve2", id) != nil; got != seen {
			t.Errorf("%s: seen on the other node: %v", storage, got)
		}
	}
}

func TestCloneOfTheWorldKeepsVolumesApart(t *testing.T) {
	c := storageWorld()
	id, err := c.alloc("pve1", "dir", 101, "raw", "", mib)
	if err != nil {
		t.Fatal(err)
	}
	other := c.Clone()
	if err := c.WriteVolume(id, "/a", "x"); err != nil {
		t.Fatal(err)
	}
	if v, _ := other.Volume(id); len(v.Content) != 0 {
		t.Errorf("the copy of the world sees %v", v.Content)
	}
}

// A full storage refuses new volumes where making them takes space; a thin pool promises more than it
// has.
func TestFullStorages(t *testing.T) {
	c := storageWorld()
	for storage, text := range map[string]string{
		"dir":     "unable to create image: qemu-img: /srv/dir/images/101/vm-101-disk-0.raw: Could not resize file: No space left on device",
		"zfspool": "zfs error: cannot create 'tank/vm-101-disk-0': out of space",
		"lvm":     "lvcreate 'vg/vm-101-disk-0' error:   Volume group \"vg\" has insufficient free space (0 extents): 1 required.",
		"lvmthin": "",
	} {
		c.FillStorage(storage)
		_, err := c.alloc("pve1", storage, 101, "raw", "", mib)
		if got := fmt.Sprint(err); text == "" && err != nil || text != "" && got != text {
			t.Errorf("%s: %v", storage, err)
		}
	}
}
