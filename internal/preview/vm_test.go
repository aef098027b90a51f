package preview

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

const (
	image   = "local:import/debian-13-genericcloud-amd64.qcow2"
	sysDisk = "local-lvm:vm-7131-disk-0"
	scratch = "local-lvm:vm-7131-disk-1"
	data    = "tank:vm-7131-disk-0"
)

// id01 is the VM of most tests: a system disk and a scratch disk that are replaced, a data disk that is kept.
func id01() (Facts, Want) {
	f, _ := web1()
	f.Guest = guest.Guest{
		Ref: guest.Ref{VMID: 7131, Kind: guest.KindVM, Node: "pve1"}, Running: true,
		Config: guest.Config{Digest: "d1", Values: map[string]string{
			"name": "id01", "cores": "2", "memory": "2048", "scsihw": "virtio-scsi-single", "agent": "1", "onboot": "1", "tags": "db",
			"scsi0": sysDisk + ",discard=on,size=8G", "scsi1": scratch + ",size=4G",
			"scsi2": data + ",discard=on,iothread=1,serial=DATA,size=40G,ssd=1", "ide2": "local:iso/tools.iso,media=cdrom,size=9M",
			"net0": "virtio=BC:24:11:00:71:31,bridge=vmbr0", "boot": "order=scsi0;net0", "smbios1": "uuid=7f2c", "vmgenid": "9a",
		}},
	}
	f.Volumes, f.Users = map[guest.VolumeID]guest.StoredVolume{}, nil
	for id, size := range map[string]guest.Bytes{sysDisk: 8 * guest.GiB, scratch: 4 * guest.GiB, data: 40 * guest.GiB} {
		f.Volumes[volumeID(id)] = guest.StoredVolume{ID: volumeID(id), Owner: 7131, Content: "images", Format: "raw", Size: size}
	}
	f.Sources = map[string]Source{"scsi0": {Volume: guest.StoredVolume{ID: volumeID(image), Content: "import", Size: 3 * guest.GiB}}}
	f.Target, f.Parking = guest.Absent, Parking{VMID: 907131}
	for _, path := range []string{"/vms/7131", "/vms/907131", "/vms/9131", "/vms/8000"} {
		f.grant(path, "VM.Allocate", "VM.Audit", "VM.Backup", "VM.Clone", "VM.Config.CDROM", "VM.Config.CPU", "VM.Config.Cloudinit", "VM.Config.Disk", "VM.Config.HWType",
			"VM.Config.Memory", "VM.Config.Network", "VM.Config.Options", "VM.PowerMgmt", "VM.Snapshot")
	}
	return f, Want{VMID: 7131, Name: "id01", Timeout: time.Hour, VM: &VMWant{SystemDisks: map[string]SystemDisk{
		"scsi0": {Image: image, Size: 32 * guest.GiB, SizeText: "32GiB"},
		"scsi1": {Blank: true, Size: 64 * guest.GiB, SizeText: "64GiB"},
	}}}
}

// replacedBy9131 asks for a new VM instead.
func replacedBy9131(w *Want) { w.VMID, w.VM.Replaces = 9131, 7131 }

func vmReasons() []reason {
	disk := func(w *Want, key string, d SystemDisk) { w.VM.SystemDisks[key] = d }
	return []reason{
		{code: CodeSystemKeyMissing, name: "no such disk", make: func(_ *Facts, w *Want) {
			disk(w, "scsi9", SystemDisk{Blank: true, Size: guest.GiB, Storage: "local-lvm"})
		}},
		{code: CodeNotADisk, name: "a CD-ROM", make: func(_ *Facts, w *Want) {
			disk(w, "ide2", SystemDisk{Blank: true, Size: guest.GiB, Storage: "local-lvm"})
		}},
		{code: CodeNotADisk, name: "cloud-init (C10)", make: func(f *Facts, w *Want) {
			f.set("ide0", "local-lvm:vm-7131-cloudinit,media=cdrom,size=4M")
			disk(w, "ide0", SystemDisk{Blank: true, Size: guest.GiB, Storage: "local-lvm"})
		}},
		{code: CodeNotADisk, name: "an unused entry", make: func(f *Facts, w *Want) {
			f.stored("local-lvm:vm-7131-disk-7", 7131, guest.GiB)
			f.set("unused0", "local-lvm:vm-7131-disk-7")
			disk(w, "unused0", SystemDisk{Blank: true, Size: guest.GiB})
		}},
		{code: CodeNotRecreatable, name: "a passed through system disk", make: func(f *Facts, w *Want) {
			f.set("sata0", "/dev/disk/by-id/x")
			disk(w, "sata0", SystemDisk{Blank: true, Size: guest.GiB, Storage: "local-lvm"})
		}},
		{code: CodeNotRecreatable, name: "replace: a passed through disk", make: func(f *Facts, w *Want) { replacedBy9131(w); f.set("sata0", "/dev/disk/by-id/x") }},
		{code: CodeNotRecreatable, name: "replace: hostpci", make: func(f *Facts, w *Want) { replacedBy9131(w); f.set("hostpci0", "0000:01:00.0") }},
		{code: CodeNotRecreatable, name: "replace: usb", make: func(f *Facts, w *Want) { replacedBy9131(w); f.set("usb0", "host=1234:5678") }},
		{code: CodeNotRecreatable, name: "replace: args", make: func(f *Facts, w *Want) { replacedBy9131(w); f.set("args", "-x") }},
		{code: CodeNotRecreatable, name: "replace: unheard of", make: func(f *Facts, w *Want) { replacedBy9131(w); f.set("frob", "1") }},
		{code: CodeNotRecreatable, name: "replace: cipassword", make: func(f *Facts, w *Want) { replacedBy9131(w); f.set("cipassword", "**********") }},
		{code: CodeImageMissing, name: "not listed", make: func(f *Facts, _ *Want) { f.Sources = nil }},
		{code: CodeImageMissing, name: "on another node", make: func(f *Facts, w *Want) {
			f.Sources["scsi1"] = Source{Why: "VM 8000 is on node pve2, not on pve1"}
			disk(w, "scsi1", SystemDisk{Template: TemplateDisk{VMID: 8000, Disk: "scsi0"}})
		}},
		{code: CodeDiskSize, name: "blank without size", make: func(_ *Facts, w *Want) { disk(w, "scsi1", SystemDisk{Blank: true}) }},
		{code: CodeDiskSize, name: "smaller than the image", make: func(_ *Facts, w *Want) { disk(w, "scsi0", SystemDisk{Image: image, Size: guest.GiB, SizeText: "1GiB"}) }},
		{code: CodeNothingToBoot, name: "blank and no other way", make: func(f *Facts, w *Want) {
			f.set("boot", "order=scsi0")
			disk(w, "scsi0", SystemDisk{Blank: true, Size: guest.GiB})
		}},
		{code: CodeNothingToBoot, name: "no boot order", make: func(f *Facts, _ *Want) { f.set("boot", " ") }},
		{code: CodeKeptInSnapshot, name: "replace (C14)", make: func(f *Facts, w *Want) { f.snapshot("daily"); replacedBy9131(w) }},
		{code: CodeSnapshotUnsupported, name: "raw on a directory", make: func(f *Facts, w *Want) {
			f.Volumes[volumeID("local:7131/vm-7131-disk-3.raw")] = guest.StoredVolume{ID: volumeID("local:7131/vm-7131-disk-3.raw"), Owner: 7131, Content: "images", Size: guest.GiB}
			f.set("virtio3", "local:7131/vm-7131-disk-3.raw,size=1G")
			w.VM.Snapshot = true
		}},
		{code: CodeSnapshotUnsupported, name: "replace", make: func(_ *Facts, w *Want) { replacedBy9131(w); w.VM.Snapshot = true }},
		{code: CodeTargetInUse, name: "taken", make: func(f *Facts, w *Want) { replacedBy9131(w); f.Target = guest.Present }},
		{code: CodeTargetInUse, name: "unknown", make: func(f *Facts, w *Want) { replacedBy9131(w); f.Target = guest.PresenceUnknown }},
		{code: CodeTargetInUse, name: "it owns an archive", make: func(f *Facts, w *Want) {
			replacedBy9131(w)
			f.Volumes[volumeID("local:backup/x")] = guest.StoredVolume{ID: volumeID("local:backup/x"), Owner: 9131, Content: "backup"}
		}},
		{code: CodeSuspended, name: "saved memory", make: func(f *Facts, _ *Want) {
			f.stored("local-lvm:vm-7131-state-suspend-2026-12-01", 7131, guest.GiB)
			f.set("vmstate", "local-lvm:vm-7131-state-suspend-2026-12-01")
		}},
		{code: CodeSuspended, name: "lock", make: func(f *Facts, _ *Want) { f.set("lock", "suspended") }, also: []Code{CodeLocked}},
		{code: CodeAwaitingTrust, name: "not accepted yet", make: func(f *Facts, _ *Want) {
			j := journal(guest.JournalWaiting, f.Now+60)
			j.Guest, j.Operation = 7131, "op-7131-20261130-aaaa"
			f.Journal.Journal = j
		}},
		{code: CodeHoldsState, name: "state backend", make: func(_ *Facts, w *Want) { w.VM.StateBackend = 7131 }},
		{code: CodeVolumeShared, name: "another VM (A1)", make: func(f *Facts, _ *Want) {
			f.Users = map[guest.VolumeID][]User{volumeID(sysDisk): {{VMID: 7180, Kind: guest.KindVM, Key: "scsi5"}}}
		}},
		{code: CodeLinkedBaseInUse, name: "linked clones", make: func(f *Facts, _ *Want) {
			f.Linked = map[guest.VolumeID][]guest.VMID{volumeID(sysDisk): {7200}}
		}},
		{code: CodeMountUnclassified, name: "one volume under two keys (C14)", make: func(f *Facts, _ *Want) { f.set("sata1", data+",size=40G") }},
		{code: CodeStorageUnavailable, name: "a kept disk's storage (A6)", make: func(f *Facts, _ *Want) { s := f.Storages["tank"]; s.Active = false; f.Storages["tank"] = s }},
		{code: CodeBackupWindow, name: "a job starts (A4)", make: func(f *Facts, _ *Want) { f.Jobs.Value = []BackupJob{{ID: "nightly", NextRun: f.Now + 60, All: true}} }},
		{code: CodeTaskRunning, name: "a job over many (B2)", make: func(f *Facts, _ *Want) { f.Tasks.Value = []Task{{UPID: "UPID:x", Type: "vzdump", User: "root@pam"}} }},
		{code: CodeRunningInsideTarget, name: "our uuid", make: func(f *Facts, _ *Want) { f.Self.UUID = "7F2C" }},
		{code: CodeRunningInsideTarget, name: "our MAC", make: func(f *Facts, _ *Want) { f.Self.MACs = []string{"bc:24:11:00:71:31"} }},
		{code: CodeGuestWrongType, name: "a container", make: func(f *Facts, _ *Want) { f.WrongType = true }},
		{code: CodeNameMismatch, name: "another name", make: func(_ *Facts, w *Want) { w.Name = "id02" }},
		{code: CodeProtected, name: "protection", make: func(f *Facts, _ *Want) { f.set("protection", "1") }},
		{code: CodeSpace, name: "too large", make: func(_ *Facts, w *Want) { disk(w, "scsi1", SystemDisk{Blank: true, Size: 600 * guest.GiB}) }},
		{code: CodePrivileges, name: "no VM.Clone", make: func(f *Facts, w *Want) {
			f.Sources["scsi1"] = Source{Volume: guest.StoredVolume{ID: volumeID("local-lvm:base-8000-disk-0"), Size: guest.GiB}}
			disk(w, "scsi1", SystemDisk{Template: TemplateDisk{VMID: 8000, Disk: "scsi0"}})
			f.revoke("/vms/8000", "VM.Clone")
		}},
	}
}

// The same of virtual machines: every code in both directions.
func TestEveryVMCodeInBothDirections(t *testing.T) {
	t.Parallel()
	for _, r := range vmReasons() {
		t.Run(r.code.String()+"/"+r.name, func(t *testing.T) {
			t.Parallel()
			f, w := id01()
			wantOnly(t, VM(f, w))
			f, w = id01()
			replacedBy9131(&w)
			wantOnly(t, VM(f, w))
			f, w = id01()
			r.make(&f, &w)
			want := append([]Code{r.code}, r.also...)
			slices.Sort(want)
			p := VM(f, w)
			wantOnly(t, p, want...)
			if b := find(t, p.Blockers, r.code); b.Title == "" || b.Found == "" || b.Remedy == "" || b.Subject == "" || !strings.HasPrefix(b.Title, "VM 7131") {
				t.Errorf("incomplete: %+v", b)
			}
			w.Allow = append(w.Allow, r.code.String())
			if p = VM(f, w); has(p.Blockers, r.code) == r.code.Waivable() {
				t.Errorf("waivable %t and blocked %t", r.code.Waivable(), has(p.Blockers, r.code))
			}
		})
	}
}

func TestVMFates(t *testing.T) {
	t.Parallel()
	f, w := id01()
	p := VM(f, w)
	wantFate(t, p, "scsi0", DataErased, MountRecreated)
	wantFate(t, p, "scsi1", DataErased, MountRecreated)
	wantFate(t, p, "scsi2", DataKept, MountKept)
	wantFate(t, p, "ide2", DataKept, MountKept)
	if v := fateOf(t, p, "scsi0"); !strings.Contains(v.Reason, "way back") || !strings.Contains(p.AlsoLost["old system"], "until accept") {
		t.Errorf("the way back is not said: %q, %q", v.Reason, p.AlsoLost["old system"])
	}
	erase(&w, "scsi2", data)
	wantFate(t, VM(f, w), "scsi2", DataErased, MountDropped)

	f, w = id01()
	replacedBy9131(&w)
	p = VM(f, w)
	wantFate(t, p, "scsi2", DataPreserved, MountReattached)
	wantFate(t, p, "scsi0", DataErased, MountRecreated)
	if p.Operation != OpReplace {
		t.Errorf("operation %s", p.Operation)
	}
}

// TestC12OlderSnapshotsHoldTheOldDisk: an older snapshot of the user's keeps the old system disk, and the plan says so.
func TestC12OlderSnapshotsHoldTheOldDisk(t *testing.T) {
	t.Parallel()
	f, w := id01()
	f.snapshot("before-upgrade")
	p := VM(f, w)
	wantOnly(t, p)
	if !slices.ContainsFunc(p.Warnings, func(s string) bool { return strings.Contains(s, "before-upgrade") && strings.Contains(s, "scsi0") }) {
		t.Errorf("not said: %v", p.Warnings)
	}
}

// TestC10CloudInitIsNeverData: a cloud-init drive is neither kept data nor handed to another VM.
func TestC10CloudInitIsNeverData(t *testing.T) {
	t.Parallel()
	for _, replace := range []bool{false, true} {
		f, w := id01()
		f.set("ide0", "local-lvm:vm-7131-cloudinit,media=cdrom,size=4M")
		f.Volumes[volumeID("local-lvm:vm-7131-cloudinit")] = guest.StoredVolume{ID: volumeID("local-lvm:vm-7131-cloudinit"), Owner: 7131, Content: "images", Size: 4 * guest.MiB}
		if replace {
			replacedBy9131(&w)
		}
		p := VM(f, w)
		wantOnly(t, p)
		if v := fateOf(t, p, "ide0"); v.Data == DataPreserved || v.Mount != MountRecreated {
			t.Errorf("ide0 is %s %s", v.Data, v.Mount)
		}
	}
}

// TestForcedStopSaysCrashConsistent: what a snapshot after a forced stop is worth is said before.
func TestForcedStopSaysCrashConsistent(t *testing.T) {
	t.Parallel()
	f, w := id01()
	w.VM.Snapshot = true
	if p := VM(f, w); !strings.Contains(p.AlsoLost["snapshot"], "clean after the shutdown") {
		t.Errorf("%q", p.AlsoLost["snapshot"])
	}
	w.ForceStop = true
	if p := VM(f, w); !strings.Contains(p.AlsoLost["snapshot"], "crash-consistent") {
		t.Errorf("%q", p.AlsoLost["snapshot"])
	}
}
