package guest

import (
	"slices"
	"strings"
	"testing"
)

func TestDisksOfRecordedVM(t *testing.T) {
	c, _ := recorded(t, "vm-full")
	disks, bad := Disks(c)
	var got []string
	for _, d := range disks {
		text := d.Key
		if d.CDROM {
			text += " cdrom"
		}
		if d.CloudInit {
			text += " cloudinit"
		}
		got = append(got, text)
	}
	want := []string{"efidisk0", "ide0 cdrom", "ide2 cdrom cloudinit", "scsi0", "scsi1", "tpmstate0"}
	if !slices.Equal(got, want) || len(bad) != 0 {
		t.Errorf("got %v, %v, want %v", got, bad, want)
	}
}

func TestParseDisk(t *testing.T) {
	for _, test := range []struct {
		key, value string
		cdrom, ci  bool
		volume     string
	}{
		{"scsi0", "local:100/vm-100-disk-0.qcow2,discard=on,iothread=1,serial=a b,size=8G,ssd=1", false, false, "local:100/vm-100-disk-0.qcow2"},
		{"ide2", "none,media=cdrom", true, false, ""},
		{"ide2", "cdrom,media=cdrom", true, false, ""},
		{"ide2", "local-lvm:vm-100-cloudinit,media=cdrom,size=4M", true, true, "local-lvm:vm-100-cloudinit"},
		{"virtio15", "/dev/disk/by-id/x,backup=0", false, false, ""},
		{"unused255", "local:100/vm-100-disk-3.raw", false, false, "local:100/vm-100-disk-3.raw"},
		{"vmstate", "local:100/vm-100-state-s1.raw", false, false, "local:100/vm-100-state-s1.raw"},
		{"scsi30", "store:disk,new_option=1", false, false, "store:disk"},
	} {
		d, err := ParseDisk(test.key, test.value)
		if err != nil {
			t.Errorf("%s %q: %v", test.key, test.value, err)
			continue
		}
		id, _ := d.Volume()
		if d.CDROM != test.cdrom || d.CloudInit != test.ci || id.String() != test.volume || d.String() != test.value {
			t.Errorf("%s %q: got %+v, printed %q", test.key, test.value, d, d.String())
		}
	}
	if d, err := ParseDisk("scsi0", "size=8G,file=local:a,ssd=1"); err != nil || d.Source != "local:a" {
		t.Errorf("the order matters: %+v, %v", d, err)
	}
	for key, value := range map[string]string{
		"ide4": "a:b", "sata6": "aa:b", "scsi31": "aa:b", "virtio16": "aa:b", "efidisk1": "aa:b", "tpmstate1": "aa:b", "unused256": "aa:b",
		"scsihw": "virtio-scsi-single", "net0": "aa:b", "scsi0": "size=8G", "scsi1": "aa:b,aa:c", "vmstate0": "aa:b", "rootfs": "aa:b",
	} {
		if d, err := ParseDisk(key, value); err == nil {
			t.Errorf("%s %q: got %+v, want an error", key, value, d)
		}
	}
}

func TestVolumesNamesEveryUser(t *testing.T) {
	container := Config{Values: map[string]string{
		"rootfs": "tank:subvol-1-disk-0,size=8G", "mp2": "volume=tank:subvol-1-disk-1,mp=/a", "mp10": "mp=/b,tank:subvol-2-disk-0", "mp3": "/mnt/x,mp=/x",
		"mp4":     "tank:twice,tank:other,mp=/bad", // cannot be read as a whole, and still uses both
		"unused0": "tank:subvol-1-disk-9", "hostname": "tank:no", "mp5": "tank:no path",
		"scsi0": "tank:of-no-container", "mp300": "tank:hidden,mp=/y",
	}}
	text := func(named []Named) string {
		var parts []string
		for _, n := range named {
			parts = append(parts, n.Key+"="+n.ID.String())
		}
		return strings.Join(parts, " ")
	}
	want := "mp2=tank:subvol-1-disk-1 mp4=tank:other mp4=tank:twice mp5=tank:no path mp10=tank:subvol-2-disk-0 mp300=tank:hidden " +
		"rootfs=tank:subvol-1-disk-0 unused0=tank:subvol-1-disk-9"
	if got := text(Volumes(KindContainer, container)); got != want {
		t.Errorf("container:\ngot  %s\nwant %s", got, want)
	}
	vm := Config{Values: map[string]string{
		"scsi0": "local:1/a.qcow2,size=8G", "ide2": "local:iso/x.iso,media=cdrom", "vmstate": "local:1/vm-1-state-s.raw", "efidisk0": "file=local:1/b.raw",
		"sata0": "none,media=cdrom", "net0": "virtio=BC:24:11:7E:CD:4D", "scsihw": "aa:b", "scsi99": "local:1/far.raw", "mp0": "tank:no,mp=/x",
	}}
	want = "efidisk0=local:1/b.raw ide2=local:iso/x.iso scsi0=local:1/a.qcow2 scsi99=local:1/far.raw vmstate=local:1/vm-1-state-s.raw"
	if got := text(Volumes(KindVM, vm)); got != want {
		t.Errorf("vm:\ngot  %s\nwant %s", got, want)
	}
}
