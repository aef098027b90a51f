package provider

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
)

const (
	id01       = "pvrx_vm_rebuild.id01"
	id01Import = "import {\n  to = pvrx_vm_rebuild.id01\n  id = \"7131\"\n}\n"
)

// id01Block is the block of the demo VM: a system disk from a cloud image, a blank scratch disk; scsi2 is kept.
func id01Block(id int, arguments ...string) string {
	return fmt.Sprintf(`resource "pvrx_vm_rebuild" "id01" {
  vmid = %d
  name = "id01"
  system_disks = {
    scsi0 = { image = %q, size = "32GiB" }
    scsi1 = { blank = true, size = "64GiB" }
  }
  %s
}
`, id, pvesim.DemoImage, strings.Join(arguments, "\n  "))
}

// lastOperationID is the id of the last operation, as the state names it.
func lastOperationID(t *testing.T, s *simulation) string {
	t.Helper()
	last, _ := s.state(id01)["last_operation"].(map[string]any)
	id, _ := last["id"].(string)
	if id == "" {
		t.Fatalf("no last operation: %v", s.state(id01))
	}
	return id
}

func reconcileWith(id, action string) string {
	return fmt.Sprintf("reconcile = { operation = %q, action = %q }", id, action)
}

// The whole life of a rebuild in place through a real CLI: plan, apply, an empty plan, and accept or a way back.
func TestVMRebuildInPlace(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		for _, action := range []string{"accept", "rollback", "rollback_data"} {
			s := simulate(t, c)
			before := s.world.Config(pvesim.DemoIdent)
			kept := identity(t, s, s.world.VolumeOf(pvesim.DemoIdent, "scsi2"))
			old := s.world.VolumeOf(pvesim.DemoIdent, "scsi0")
			s.write("main.tf", id01Import+id01Block(pvesim.DemoIdent, "snapshot = true"))
			out := s.plan(2)
			s.untouched()
			out.says(t, "VM 7131 id01: rebuild in place", "until accept")
			shown, _ := s.planned(id01)["preview"].(map[string]any)
			if fates := fmt.Sprint(shown["fates"]); !strings.Contains(fates, "scsi2:kept") || !strings.Contains(fates, "scsi0:erased") {
				t.Errorf("fates %v", shown["fates"])
			}
			s.apply(0)
			after := s.world.Config(pvesim.DemoIdent)
			for _, key := range []string{"net0", "smbios1", "vmgenid", "boot", "scsi2", "onboot", "tags"} {
				if before[key] != after[key] {
					t.Errorf("%s was %q and is %q", key, before[key], after[key])
				}
			}
			if now, _ := s.world.Volume(kept.ID); now.Identity != kept.Identity || now.Digest() != kept.Digest() {
				t.Errorf("the kept disk is not the one that was there")
			}
			if status := s.state(id01)["status"]; status != "awaiting_trust" {
				t.Errorf("status %v", status)
			}
			s.write("main.tf", id01Block(pvesim.DemoIdent, "snapshot = true"))
			id := lastOperationID(t, s)
			s.plan(0).says(t, "VM 7131 id01: rebuilt, and waits for a verdict since 20", "scsi0 (old)  "+old+"  8G", "snapshot pvrx-"+id, `action = "accept"`)

			s.write("main.tf", id01Block(pvesim.DemoIdent, "snapshot = true", `triggers = { again = "1" }`))
			s.plan(1).says(t, "awaiting_trust")

			s.write("main.tf", id01Block(pvesim.DemoIdent, "snapshot = true", reconcileWith(id, action)))
			s.plan(2).says(t, "VM 7131 id01: "+action)
			s.apply(0)
			_, there := s.world.Volume(old)
			if there != (action != "accept") {
				t.Errorf("%s: the old disk is there: %v", action, there)
			}
			want := map[string]string{"accept": "ready", "rollback": "rolled_back", "rollback_data": "rolled_back"}[action]
			if status := s.state(id01)["status"]; status != want {
				t.Errorf("%s: status %v", action, status)
			}
			s.plan(0)
		}
	})
}

// A replacement through a real CLI: state describes the new VM without any surgery; accept removes the old one, unless
// somebody slipped a volume onto it; vmid back gives up.
func TestVMReplace(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		for _, giveUp := range []bool{false, true} {
			s := simulate(t, c)
			s.world.SetRights("pvrx@pve!demo", "/pool", "Pool.Audit", "Pool.Allocate")
			before := s.world.Config(pvesim.DemoIdent)
			kept := identity(t, s, s.world.VolumeOf(pvesim.DemoIdent, "scsi2"))
			s.write("main.tf", id01Import+id01Block(pvesim.DemoIdent, "adopt = true"))
			s.plan(2)
			s.apply(0)
			s.write("main.tf", id01Block(9131, "adopt = true", "replaces_vmid = 7131"))
			s.plan(2).says(t, "VM 7131 id01: replace by VM 9131")
			s.apply(0)
			if status := s.state(id01)["status"]; status != "awaiting_trust" || fmt.Sprint(s.state(id01)["vmid"]) != "9131" {
				t.Fatalf("status %v, vmid %v", status, s.state(id01)["vmid"])
			}
			old, now := s.world.Config(pvesim.DemoIdent), s.world.Config(9131)
			if old["name"] != "id01-old" || old["onboot"] != "0" || s.world.Running(pvesim.DemoIdent) || !s.world.Running(9131) {
				t.Errorf("the old VM: %v", old)
			}
			moved, found := s.world.VolumeByIdentity(kept.Identity)
			if !found || moved.ID != s.world.VolumeOf(9131, "scsi2") || moved.Digest() != kept.Digest() {
				t.Errorf("the kept disk is %+v", moved)
			}
			if _, was, _ := strings.Cut(before["scsi2"], ","); !strings.HasSuffix(now["scsi2"], was) {
				t.Errorf("scsi2 is %q and was %q", now["scsi2"], before["scsi2"])
			}
			s.plan(0)
			id := lastOperationID(t, s)
			if giveUp {
				s.write("main.tf", id01Block(pvesim.DemoIdent, "adopt = true"))
				s.plan(2).says(t, "rollback")
				s.apply(0)
				if after := s.world.Config(pvesim.DemoIdent); after["name"] != "id01" || after["boot"] != before["boot"] || after["scsi2"] != before["scsi2"] || after["onboot"] != "1" || !s.world.Running(pvesim.DemoIdent) {
					t.Errorf("given up: %v", after)
				}
				if slices.Contains(s.world.Guests(), 9131) {
					t.Error("the new VM is still there")
				}
				s.plan(0)
				continue
			}
			s.write("main.tf", id01Block(9131, "adopt = true", "replaces_vmid = 7131", reconcileWith(id, "accept")))
			if err := s.world.AddVolume("pve1", "local-lvm:vm-7131-disk-9", 1<<30); err != nil {
				t.Fatal(err)
			}
			s.plan(1).says(t, "vm-7131-disk-9", "parking_holds_data")
			s.world.RemoveVolume("local-lvm:vm-7131-disk-9")
			s.plan(2)
			s.apply(0)
			if slices.Contains(s.world.Guests(), pvesim.DemoIdent) {
				t.Error("the old VM is still there after accept")
			}
			s.plan(0)
		}
	})
}

// Plans of VMs as people read them: by consent, from a template, kept EFI variables, a forced stop.
func TestVMGoldenPlans(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		s := simulate(t, c)
		s.world.AddVM(pvesim.VMSpec{VMID: 8000, Config: map[string]string{"name": "golden", "scsi0": "local-lvm:5"}})
		disk := func(text string) string {
			return "resource \"pvrx_vm_rebuild\" \"id01\" {\n  vmid = 7131\n  name = \"id01\"\n  " + text + "\n}\n"
		}
		data := s.world.VolumeOf(pvesim.DemoIdent, "scsi2")
		image := fmt.Sprintf("scsi0 = { image = %q }", pvesim.DemoImage)
		plans := []struct{ name, block string }{
			{"default", disk("system_disks = { " + image + " }")},
			{"erase of a kept disk by consent", disk("system_disks = { " + image + " }\n  erase = { scsi2 = \"" + data + "\" }")},
			{"blank and ISO", disk("system_disks = { scsi0 = { blank = true, size = \"16GiB\" } }")},
			{"template disk", disk("system_disks = { scsi0 = { template = { vmid = 8000, disk = \"scsi0\" } } }")},
			{"EFI and TPM kept", disk("system_disks = { " + image + " }")},
			{"EFI erased by consent", disk("system_disks = { " + image + ", efidisk0 = { blank = true } }")},
			{"forced stop with snapshot", disk("system_disks = { " + image + " }\n  snapshot = true\n  stop = { force = true }")},
		}
		var text strings.Builder
		for _, p := range plans {
			if p.name == "blank and ISO" {
				if err := s.world.AddVolume("pve1", "local:iso/debian-13.1.0-amd64-netinst.iso", 700<<20); err != nil {
					t.Fatal(err)
				}
				s.world.SetConfig(pvesim.DemoIdent, "ide2", "local:iso/debian-13.1.0-amd64-netinst.iso,media=cdrom,size=700M")
				s.world.SetConfig(pvesim.DemoIdent, "boot", "order=scsi0;ide2")
			}
			if p.name == "EFI and TPM kept" {
				s.world.SetConfig(pvesim.DemoIdent, "bios", "ovmf")
				for key, value := range map[string]string{"efidisk0": "local-lvm:vm-7131-disk-5,efitype=4m,pre-enrolled-keys=1,size=4M", "tpmstate0": "local-lvm:vm-7131-disk-6,size=4M,version=v2.0"} {
					if err := s.world.AddVolume("pve1", strings.Split(value, ",")[0], 4<<20); err != nil {
						t.Fatal(err)
					}
					s.world.SetConfig(pvesim.DemoIdent, key, value)
				}
			}
			s.write("main.tf", id01Import+p.block)
			out := s.plan(2)
			fmt.Fprintf(&text, "# %s\n%s\n", p.name, warnings(out.text))
			fmt.Fprintf(&text, "%v\n\n", sortedLines(s.planned(id01)["preview"]))
		}
		golden(t, "vm_plans.txt", regexp.MustCompile(`sha256:[0-9a-f]+`).ReplaceAllString(text.String(), "sha256:…"))
	})
}

// sortedLines are the rows of a preview, in a fixed order.
func sortedLines(shown any) string {
	preview, _ := shown.(map[string]any)
	var lines []string
	for name, value := range preview {
		rows, isMap := value.(map[string]any)
		if !isMap {
			continue
		}
		for key, row := range rows {
			lines = append(lines, fmt.Sprintf("%s %s = %v", name, key, row))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// What a rebuild would do, asked in place and on a new VM, with enough rights and with a token that may only look: fates and
// blockers, what may not be seen is unknown, and nothing is touched. A VM and a template in one question is refused.
func TestVMPreviewDataSource(t *testing.T) {
	t.Parallel()
	everyCLI(t, func(t *testing.T, c cli) {
		s := simulate(t, c)
		s.world.SetRights("pvrx@pve!demo", "/pool", "Pool.Audit", "Pool.Allocate")
		disks := fmt.Sprintf("system_disks = { scsi0 = { image = %q, size = \"32GiB\" }, scsi1 = { blank = true, size = \"64GiB\" } }", pvesim.DemoImage)
		s.write("main.tf", fmt.Sprintf(`data "pvrx_preview" "in_place" {
  vmid     = 7131
  snapshot = true
  %[1]s
}
data "pvrx_preview" "replace" {
  vmid          = 9131
  replaces_vmid = 7131
  %[1]s
}
output "in_place" { value = data.pvrx_preview.in_place }
output "replace" { value = data.pvrx_preview.replace }
`, disks))
		type answer struct {
			Value struct {
				Name, Node string
				Due        bool
				Preview    struct {
					Operation string
					Blockers  []struct{ Code, Found string }
				}
				Volumes map[string]struct{ Data, Mount, Volume string }
			}
		}
		for _, mayChange := range []bool{true, false} {
			if !mayChange {
				s.write("provider.tf", strings.Replace(s.read("provider.tf"), s.world.Token, s.world.AuditToken, 1))
			}
			s.run(0, "apply", "-no-color", "-input=false", "-auto-approve")
			s.untouched()
			var shown struct {
				InPlace answer `json:"in_place"`
				Replace answer `json:"replace"`
			}
			if out := s.run(0, "output", "-json"); json.Unmarshal([]byte(out.text), &shown) != nil {
				t.Fatal(out.text)
			}
			for name, a := range map[string]answer{"rebuild": shown.InPlace, "replace": shown.Replace} {
				v := a.Value
				if v.Name != "id01" || v.Node != "pve1" || !v.Due || v.Preview.Operation != name {
					t.Errorf("%s: %+v", name, v)
				}
				kept, system := map[string]string{"rebuild": "kept", "replace": "preserved"}[name], "erased"
				if !mayChange {
					kept, system = "unknown", "unknown"
				}
				if v.Volumes["scsi2"].Data != kept || v.Volumes["scsi0"].Data != system || v.Volumes["scsi2"].Volume != s.world.VolumeOf(pvesim.DemoIdent, "scsi2") {
					t.Errorf("%s: %+v", name, v.Volumes)
				}
				lacks := slices.ContainsFunc(v.Preview.Blockers, func(b struct{ Code, Found string }) bool { return b.Code == "privileges" })
				if lacks == mayChange || mayChange && len(v.Preview.Blockers) > 0 {
					t.Errorf("%s: %+v", name, v.Preview.Blockers)
				}
			}
		}
		s.write("main.tf", fmt.Sprintf("data \"pvrx_preview\" \"both\" {\n  vmid = 7131\n  template = %q\n  %s\n}\n", pvesim.DemoTemplate13, disks))
		s.plan(1).says(t, "system_disks", "template")
	})
}
