package recipe_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// A storage that cannot rename gets its disk after the stop, the preview says so, and the way back is the same.
func TestRebuildOnAStorageThatCannotRename(t *testing.T) {
	w := newVMWorld()
	w.cluster.AddStorage(pvesim.StorageSpec{ID: "san", Type: "zfs", Total: 2 << 40})
	before := w.dumpVM()
	want := wantsVM()
	d := want.VM.SystemDisks["scsi0"]
	d.Storage = "san"
	want.VM.SystemDisks["scsi0"] = d
	r, err := w.applyVM(t, recipe.Request{Want: want})
	mustVM(t, r, err, recipe.StatusAwaitingTrust)
	if !strings.Contains(strings.Join(r.Preview.Warnings, " "), "imported after the stop") {
		t.Errorf("not said: %v", r.Preview.Warnings)
	}
	if got := w.cluster.Config(7131)["scsi0"]; !strings.HasPrefix(got, "san:") || !strings.Contains(got, "size=32G") || w.content(7131, "scsi0", "/etc/os-release") != "VERSION_ID=13" {
		t.Errorf("scsi0 is %q", got)
	}
	r, err = w.reconcileVM(t, want, r.Operation, "rollback")
	mustVM(t, r, err, recipe.StatusRolledBack)
	if now := w.dumpVM(); now != before {
		t.Errorf("not as before:\n%s", difference(before, now))
	}
}

// A disk of a template is the source, named by VM and key.
func TestRebuildFromATemplatesDisk(t *testing.T) {
	w := newVMWorld()
	w.cluster.AddVM(pvesim.VMSpec{VMID: 8000, Config: map[string]string{"name": "golden", "scsi0": "local-lvm:5"}, Files: map[string]map[string]string{"scsi0": {"/etc/os-release": "golden"}}})
	want := wantsVM()
	want.VM.SystemDisks["scsi0"] = preview.SystemDisk{Template: preview.TemplateDisk{VMID: 8000, Disk: "scsi0"}}
	r, err := w.applyVM(t, recipe.Request{Want: want})
	mustVM(t, r, err, recipe.StatusAwaitingTrust)
	if got := w.content(7131, "scsi0", "/etc/os-release"); got != "golden" || w.content(8000, "scsi0", "/etc/os-release") != "golden" {
		t.Errorf("scsi0 holds %q", got)
	}
}

// A VM that was off stays off, and one that onboot does not start is not started by it afterwards.
func TestRebuildLeavesAStoppedVMOff(t *testing.T) {
	for _, s := range vmScenes() {
		w := newVMWorld()
		w.cluster.SetRunning(7131, false)
		w.cluster.SetConfig(7131, "onboot", "0")
		r, err := w.applyVM(t, s.req())
		mustVM(t, r, err, recipe.StatusAwaitingTrust)
		for _, id := range w.cluster.Guests() {
			if w.cluster.Running(id) || w.cluster.Config(id)["onboot"] == "1" {
				t.Errorf("%s: VM %d runs %v, onboot %q", s.name, id, w.cluster.Running(id), w.cluster.Config(id)["onboot"])
			}
		}
	}
}

// A new system that is not healthy in time is taken back by itself.
func TestRebuildTakenBackWhenNotHealthy(t *testing.T) {
	for _, s := range vmScenes() {
		w := newVMWorld()
		before := w.dumpVM()
		req := s.req()
		req.Health = &recipe.Health{TCP: 1, Host: "127.0.0.1", Timeout: time.Second}
		_, err := w.applyVM(t, req)
		if err == nil || !strings.Contains(err.Error(), "not healthy") || !strings.Contains(err.Error(), "as it was, and running") {
			t.Errorf("%s: %v", s.name, err)
		}
		if now := w.dumpVM(); now != before {
			t.Errorf("%s: not as before:\n%s", s.name, difference(before, now))
		}
	}
}

// The guest agent and an SSH server's greeting are probes.
func TestRebuildHealthByAgentAndSSH(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	greeting := make(chan string, 2)
	greeting <- "HTTP/1.1 400 Bad Request\r\n"
	greeting <- "SSH-2.0-OpenSSH_10.0\r\n"
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			out := bufio.NewWriter(conn)
			_, _ = fmt.Fprint(out, <-greeting)
			_ = out.Flush()
			_ = conn.Close()
		}
	}()
	port := listener.Addr().(*net.TCPAddr).Port
	w := newVMWorld()
	r, err := w.applyVM(t, recipe.Request{Want: wantsVM(), Health: &recipe.Health{Agent: true, SSH: port, Host: "127.0.0.1", Timeout: time.Minute}})
	mustVM(t, r, err, recipe.StatusAwaitingTrust)
	if len(greeting) > 0 {
		t.Error("what is no SSH server was taken for one")
	}
}

// EFI variables and TPM state are kept unless they are named; named, they are made anew with the same settings.
func TestRebuildKeepsEFIAndTPM(t *testing.T) {
	for _, erased := range []bool{false, true} {
		w := newVMWorld()
		w.cluster.SetConfig(7131, "bios", "ovmf")
		for key, id := range map[string]string{"efidisk0": "local-lvm:vm-7131-disk-5", "tpmstate0": "local-lvm:vm-7131-disk-6"} {
			if err := w.cluster.AddVolume("pve1", id, 4<<20); err != nil {
				t.Fatal(err)
			}
			options := map[string]string{"efidisk0": ",efitype=4m,pre-enrolled-keys=1,size=4M", "tpmstate0": ",size=4M,version=v2.0"}[key]
			w.cluster.SetConfig(7131, key, id+options)
		}
		before := w.cluster.Config(7131)
		want := wantsVM()
		if erased {
			want.VM.SystemDisks["efidisk0"] = preview.SystemDisk{Blank: true}
		}
		r, err := w.applyVM(t, recipe.Request{Want: want})
		mustVM(t, r, err, recipe.StatusAwaitingTrust)
		after := w.cluster.Config(7131)
		if before["tpmstate0"] != after["tpmstate0"] || (before["efidisk0"] == after["efidisk0"]) == erased {
			t.Errorf("erased %v: %q, %q", erased, after["efidisk0"], after["tpmstate0"])
		}
		if erased && !strings.Contains(after["efidisk0"], "efitype=4m,pre-enrolled-keys=1") {
			t.Errorf("efidisk0 is %q", after["efidisk0"])
		}
	}
}

// A kept disk that erase names is set aside like a system disk, comes back at a rollback, and goes at an accept.
func TestRebuildEraseByConsent(t *testing.T) {
	for _, s := range vmScenes() {
		for _, action := range []string{"rollback", "accept"} {
			w := newVMWorld()
			w.kept = nil
			id := w.cluster.VolumeOf(7131, "scsi2")
			before := w.dumpVM()
			req := s.req()
			req.Want.VM.Snapshot = false
			req.Want.Erase = map[string]string{"scsi2": id}
			r, err := w.applyVM(t, req)
			mustVM(t, r, err, recipe.StatusAwaitingTrust)
			if _, there := w.cluster.Volume(id); !there {
				t.Fatalf("%s: erased before accept", s.name)
			}
			_, err = w.reconcileVM(t, req.Want, r.Operation, action)
			if err != nil {
				t.Fatalf("%s, %s: %v", s.name, action, err)
			}
			_, there := w.cluster.Volume(id)
			if there != (action == "rollback") {
				t.Errorf("%s, %s: it is there: %v", s.name, action, there)
			}
			if action == "rollback" {
				if now := w.dumpVM(); now != before {
					t.Errorf("%s: not as before:\n%s", s.name, difference(before, now))
				}
			}
		}
	}
}

// HA is set aside with consent and given back: in place to the VM itself, of a replacement to the new one.
func TestRebuildUnderHA(t *testing.T) {
	for _, s := range vmScenes() {
		w := newVMWorld()
		w.cluster.SetRights("ci@pve!pvrx", "/", "Sys.Audit", "Sys.Console")
		w.cluster.AddHA(7131, map[string]string{"state": "started", "comment": "directory"})
		before := w.dumpVM()
		req := s.req()
		if _, err := w.applyVM(t, req); err == nil || !strings.Contains(err.Error(), "ha_managed") {
			t.Fatalf("%s: %v", s.name, err)
		}
		req.Want.Allow = []string{"ha_managed"}
		r, err := w.applyVM(t, req)
		mustVM(t, r, err, recipe.StatusAwaitingTrust)
		resources, err := w.host(t, w.server).HA(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []guest.VMID{7131, 9131} {
			if managed := resources[id]; managed.Managed != (id == req.Want.VMID) || managed.Managed && managed.Fields["comment"] != "directory" {
				t.Errorf("%s: HA of VM %d is %+v", s.name, id, managed)
			}
		}
		r, err = w.reconcileVM(t, req.Want, r.Operation, "rollback")
		mustVM(t, r, err, recipe.StatusRolledBack)
		if now := w.dumpVM(); now != before {
			t.Errorf("%s: not as before:\n%s", s.name, difference(before, now))
		}
	}
}

// A new identity gets MAC address and uuid of its own; a copied one keeps them.
func TestReplaceIdentity(t *testing.T) {
	for _, fresh := range []bool{false, true} {
		w := newVMWorld()
		want := wantsVMReplaced()
		want.VM.NewIdentity = fresh
		r, err := w.applyVM(t, recipe.Request{Want: want})
		mustVM(t, r, err, recipe.StatusAwaitingTrust)
		old, now := w.cluster.Config(7131), w.cluster.Config(9131)
		if (old["net0"] == now["net0"]) == fresh || (old["smbios1"] == now["smbios1"]) == fresh {
			t.Errorf("new identity %v: %q %q", fresh, now["net0"], now["smbios1"])
		}
	}
}

// A rollback that dies half-way and is resumed refuses the install all the same: it is not tried again by itself.
func TestRebuildRollbackThatDiesStaysDeclined(t *testing.T) {
	w := newVMWorld()
	r, err := w.applyVM(t, recipe.Request{Want: wantsVM()})
	mustVM(t, r, err, recipe.StatusAwaitingTrust)
	l := &wire{w: w, dieAt: 60, after: true}
	req := recipe.Request{Want: wantsVM(), Reconcile: &recipe.Reconcile{Operation: r.Operation, Action: "rollback"}}
	if _, err := w.applyVMOver(t, l, req); err == nil || !l.dead {
		t.Fatalf("it did not die: %v", err)
	}
	j := w.recordVM(t, 7131)
	if j == nil || !j.Back {
		t.Fatalf("it was not on its way back: %+v", j)
	}
	r, err = w.reconcileVM(t, wantsVM(), r.Operation, "resume")
	if err != nil {
		t.Fatal(err)
	}
	r, err = w.applyVM(t, recipe.Request{Want: wantsVM()})
	if mustVM(t, r, err, recipe.StatusReady); r.Changed {
		t.Error("the declined install was tried again")
	}
}

// A new disk has the format of the old one, also a blank one: a raw disk on a directory could be in no snapshot. What the
// options ask for comes first.
func TestRebuildKeepsTheFormatOfTheDisk(t *testing.T) {
	for asked, want := range map[string]string{"": ".qcow2", "raw": ".raw"} {
		w := newVMWorld()
		w.cluster.AddVM(pvesim.VMSpec{VMID: 7132, Config: map[string]string{
			"name": "id02", "scsi0": "local:8,format=qcow2", "scsi1": "local:4,format=qcow2", "boot": "order=scsi0",
		}})
		blank := preview.SystemDisk{Blank: true, Size: 2 << 30, SizeText: "2GiB"}
		if asked != "" {
			blank.Options = map[string]string{"format": asked}
		}
		r, err := w.applyVM(t, recipe.Request{Want: preview.Want{VMID: 7132, Name: "id02", Timeout: time.Hour, VM: &preview.VMWant{
			SystemDisks: map[string]preview.SystemDisk{"scsi0": {Image: cloudImage}, "scsi1": blank},
		}}})
		mustVM(t, r, err, recipe.StatusAwaitingTrust)
		if system, scratch := w.cluster.VolumeOf(7132, "scsi0"), w.cluster.VolumeOf(7132, "scsi1"); !strings.HasSuffix(system, ".qcow2") || !strings.HasSuffix(scratch, want) {
			t.Errorf("format %q: scsi0 is %s, scsi1 %s", asked, system, scratch)
		}
	}
}
