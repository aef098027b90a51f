package recipe_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

const cloudImage = "local:import/debian-13-genericcloud-amd64.qcow2"

// newVMWorld is a simulated cluster with VM 7131 id01: a system disk, a scratch disk and a data disk that must stay.
func newVMWorld() *world {
	c := pvesim.NewCluster(pvesim.Options{Nodes: []string{"pve1", "pve2"}})
	c.AddStorage(pvesim.StorageSpec{ID: "local", Type: "dir", Content: []string{"vztmpl", "backup", "iso", "import", "images", "rootdir"}})
	c.AddStorage(pvesim.StorageSpec{ID: "local-lvm", Type: "lvmthin", Total: 2 << 40})
	c.AddStorage(pvesim.StorageSpec{ID: "tank", Type: "zfspool", Total: 2 << 40})
	if err := c.AddImage("pve1", cloudImage, 400<<20, 3<<30, map[string]string{"/etc/os-release": "VERSION_ID=13"}); err != nil {
		panic(err)
	}
	c.AddBridge("pve1", "vmbr0")
	c.AddVM(pvesim.VMSpec{
		VMID: 7131, Running: true, Pool: "ident",
		Config: map[string]string{
			"name": "id01", "cores": "2", "memory": "2048", "ostype": "l26", "scsihw": "virtio-scsi-single", "agent": "1", "onboot": "1",
			"tags": "ident;prod", "description": "Runs the directory.\n\nAsk Jo before touching.",
			"scsi0": "local-lvm:8,discard=on,ssd=1", "scsi1": "local-lvm:4",
			"scsi2": "tank:40,discard=on,iothread=1,serial=IDDATA,ssd=1", "ide2": "none,media=cdrom",
			"net0": "virtio=BC:24:11:00:71:31,bridge=vmbr0", "ipconfig0": "ip=192.0.2.71/24,gw=192.0.2.1", "boot": "order=scsi0;net0",
		},
		Files: map[string]map[string]string{
			"scsi0": {"/etc/os-release": "VERSION_ID=12"}, "scsi1": {"/scratch": "nothing of value"}, "scsi2": {"/var/lib/id": "the only copy"},
		},
	})
	c.SetConfig(7131, "ide0", "local-lvm:vm-7131-cloudinit,media=cdrom,size=4M")
	if err := c.AddVolume("pve1", "local-lvm:vm-7131-cloudinit", 4<<20); err != nil {
		panic(err)
	}
	c.AddACL("/vms/7131", "user", "jo@pve", "PVEVMUser", true)
	c.SetFirewall(7131, pvesim.FirewallSpec{Options: map[string]string{"enable": "1"}, Rules: []map[string]string{
		{"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": "636", "enable": "1"},
	}})
	granted := rights()
	granted["/vms"] = append(granted["/vms"], "VM.Clone", "VM.Config.HWType", "VM.Config.CDROM", "VM.Config.Cloudinit", "VM.GuestAgent.Audit")
	w := &world{cluster: c, token: c.AddToken("ci@pve", "pvrx", granted), clock: time.Now()}
	w.keep(c.VolumeOf(7131, "scsi2"))
	w.server = pvesim.NewServer(c)
	return w
}

func (w *world) vm(t testing.TB) *recipe.VM { return w.vmOver(t, w.server) }

func (w *world) vmOver(t testing.TB, transport http.RoundTripper) *recipe.VM {
	t.Helper()
	return (*recipe.VM)(w.containerOver(t, transport))
}

func wantsVM() preview.Want {
	return preview.Want{VMID: 7131, Name: "id01", Timeout: 2 * time.Hour, VM: &preview.VMWant{SystemDisks: map[string]preview.SystemDisk{
		"scsi0": {Image: cloudImage, Size: 32 << 30, SizeText: "32GiB"},
		"scsi1": {Blank: true, Size: 64 << 30, SizeText: "64GiB"},
	}}}
}

// wantsVMReplaced asks for VM 9131 in its place.
func wantsVMReplaced() preview.Want {
	want := wantsVM()
	want.VMID, want.VM.Replaces = 9131, 7131
	return want
}

// applyVM plans and applies as the provider does.
func (w *world) applyVM(t testing.TB, req recipe.Request) (recipe.Result, error) {
	t.Helper()
	return w.applyVMOver(t, w.server, req)
}

func (w *world) applyVMOver(t testing.TB, transport http.RoundTripper, req recipe.Request) (recipe.Result, error) {
	t.Helper()
	v := w.vmOver(t, transport)
	ctx := context.Background()
	id := req.Want.VMID
	if req.Want.VM.Replaces != 0 && req.Reconcile == nil {
		id = req.Want.VM.Replaces
	}
	seen, err := v.Observe(ctx, id)
	if err != nil {
		return recipe.Result{}, err
	}
	req.Planned = seen.Acknowledged
	return v.Apply(ctx, req)
}

func (w *world) reconcileVM(t testing.TB, want preview.Want, operation, action string) (recipe.Result, error) {
	t.Helper()
	return w.applyVM(t, recipe.Request{Want: want, Reconcile: &recipe.Reconcile{Operation: operation, Action: action}})
}

// recordVM is the record of an operation on a VM, wherever it is; nil when there is none.
func (w *world) recordVM(t testing.TB, ids ...guest.VMID) *guest.Journal {
	t.Helper()
	for _, id := range ids {
		seen, err := w.vm(t).Observe(context.Background(), id)
		if err != nil {
			t.Fatal(err)
		}
		if seen.Journal != nil {
			return seen.Journal
		}
	}
	return nil
}

// content is what the volume under a key holds.
func (w *world) content(id int, key, path string) string {
	v, ok := w.cluster.Volume(w.cluster.VolumeOf(id, key))
	if !ok {
		return fmt.Sprintf("no volume under %s", key)
	}
	return v.Content[path]
}

// dumpVM leaves out what Proxmox generates anew, with a new VM or at every start, and the notes, which carry ids and times.
func (w *world) dumpVM() string {
	return w.cluster.Dump(pvesim.IgnoreKeys("description", "meta"), pvesim.IgnoreIdentity(), pvesim.IgnoreLines("backup/", "-cloudinit@", "qemu 9131 vmgenid:"))
}
