package provider

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const labVMAddress = "pvrx_vm_rebuild.vm"

// vmDisk is a kept disk of the lab's VM as it was when the VM was made.
type vmDisk struct {
	key, value string
	stored     stored
	inode      string // of its file, "" where nobody can look
	identity   string // on the simulated cluster
	digest     string
}

// vm makes a VM that runs: scsi0 from the lab's image, scsi1 blank, and from scsi2 on one disk on each storage of the lab that
// takes disks of VMs, with all the options that must stay. Without an image to import it skips the scenario.
func (l *lab) vm(name string) (id int, kept []vmDisk) {
	l.t.Helper()
	if l.image == "" {
		l.t.Skip("PVRX_TEST_IMPORT_IMAGE is not set: it names the image of content type import that a VM gets its system from")
	}
	id = l.reserve()
	l.isVM(id)
	var storages []string
	for _, storage := range l.storages {
		if l.takesDisks(storage) {
			storages = append(storages, storage)
		}
	}
	if len(storages) == 0 {
		l.t.Skipf("none of the storages %v takes content of type images", l.storages)
	}
	system := storages[0]
	params := map[string]string{
		"vmid": strconv.Itoa(id), "name": name, "memory": "128", "scsihw": "virtio-scsi-single", "ostype": "l26", "boot": "order=scsi0", "onboot": "1",
		"net0": "virtio", "serial0": "socket", "vga": "serial0", "description": "made by a test\n",
		"scsi0": system + ":0,import-from=" + l.image + ",discard=on,ssd=1" + l.format(system), "scsi1": system + ":1" + l.format(system),
	}
	for i, storage := range storages {
		key := fmt.Sprintf("scsi%d", i+2)
		params[key] = fmt.Sprintf("%s:1,discard=on,iothread=1,serial=KEPT%d,ssd=1%s", storage, i, l.format(storage))
		kept = append(kept, vmDisk{key: key})
	}
	l.must(http.MethodPost, "/nodes/"+l.node+"/qemu", params)
	l.must(http.MethodPost, l.path(id)+"/status/start", nil)
	config := l.config(id)
	for i := range kept {
		if l.world != nil {
			if err := l.world.WriteVolume(l.world.VolumeOf(id, kept[i].key), "/data", "the only copy on "+kept[i].key); err != nil {
				l.t.Fatal(err)
			}
		}
		kept[i].value = config[kept[i].key]
		kept[i].stored = l.stored(id, kept[i].key)
		kept[i].inode, kept[i].identity, kept[i].digest = l.inode(kept[i].stored.VolID), l.identity(kept[i].stored.VolID), l.digest(kept[i].stored.VolID)
	}
	return id, kept
}

func (l *lab) isVM(id int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.vms == nil {
		l.vms = map[int]bool{}
	}
	l.vms[id] = true
}

func (l *lab) takesDisks(storage string) bool {
	return slices.Contains(strings.Split(l.storage(storage)["content"], ","), "images")
}

// format asks for qcow2 on a storage of plain files, where a raw disk could not be in a snapshot.
func (l *lab) format(storage string) string {
	if slices.Contains([]string{"dir", "nfs", "cifs"}, l.storage(storage)["type"]) {
		return ",format=qcow2"
	}
	return ""
}

func (l *lab) storage(name string) map[string]string {
	l.t.Helper()
	var status struct{ Type, Content string }
	if err := json.Unmarshal(l.must(http.MethodGet, "/nodes/"+l.node+"/storage/"+name+"/status", nil), &status); err != nil {
		l.t.Fatal(err)
	}
	return map[string]string{"type": status.Type, "content": status.Content}
}

// snapshots reports whether the server can take a snapshot of a VM.
func (l *lab) snapshots(id int) bool {
	l.t.Helper()
	var answer struct{ HasFeature json.Number }
	if err := json.Unmarshal(l.must(http.MethodGet, l.path(id)+"/feature", map[string]string{"feature": "snapshot"}), &answer); err != nil {
		l.t.Fatal(err)
	}
	return answer.HasFeature.String() == "1"
}

// inode tells a renamed file from a copy, where PVRX_TEST_EXEC gives a way in; "" elsewhere, and for what is no file.
func (l *lab) inode(volume string) string {
	l.t.Helper()
	reach := os.Getenv("PVRX_TEST_EXEC")
	if !l.real || reach == "" {
		return ""
	}
	run := func(args ...string) string {
		args = append(strings.Fields(reach), args...)
		out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		if err != nil {
			l.t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	file := run("pvesm", "path", volume)
	if strings.HasPrefix(file, "/dev/") || !strings.HasPrefix(file, "/") {
		return ""
	}
	return run("stat", "-c", "%i", file)
}

func (l *lab) identity(volume string) string {
	if l.world == nil {
		return ""
	}
	v, _ := l.world.Volume(volume)
	return v.Identity
}

func (l *lab) digest(volume string) string {
	if l.world == nil {
		return ""
	}
	v, _ := l.world.Volume(volume)
	return v.Digest()
}

// stillThere demands of every kept disk that it is the one that was there, on a VM and under its key: options, size, format,
// the same file, and what it holds as far as anybody can look. sameName says that it was never renamed.
func (l *lab) stillThere(id int, kept []vmDisk, sameName bool) {
	l.t.Helper()
	config := l.config(id)
	for _, d := range kept {
		_, was, _ := strings.Cut(d.value, ",")
		volume, now, _ := strings.Cut(config[d.key], ",")
		if was != now || sameName && volume != d.stored.VolID {
			l.t.Errorf("%s of VM %d is %q and was %q", d.key, id, config[d.key], d.value)
			continue
		}
		found := l.stored(id, d.key)
		if found.Size != d.stored.Size || found.Format != d.stored.Format {
			l.t.Errorf("%s is %+v and was %+v", d.key, found, d.stored)
		}
		if inode := l.inode(volume); inode != d.inode {
			l.t.Errorf("%s (%s) is inode %s and was %s: it was copied", d.key, volume, inode, d.inode)
		}
		if l.identity(volume) != d.identity || l.digest(volume) != d.digest {
			l.t.Errorf("%s (%s) is not the disk that was there, or holds something else", d.key, volume)
		}
	}
}

// copied are the lines of task logs that say that data was copied for a guest, or for another one from it.
func (l *lab) copied(id int) (lines []string) {
	l.t.Helper()
	var tasks []struct{ UPID, Type string }
	if err := json.Unmarshal(l.must(http.MethodGet, "/nodes/"+l.node+"/tasks", map[string]string{"vmid": strconv.Itoa(id), "limit": "500"}), &tasks); err != nil {
		l.t.Fatal(err)
	}
	for _, task := range tasks {
		if task.Type != "qmmove" {
			continue
		}
		var log []struct{ T string }
		if err := json.Unmarshal(l.must(http.MethodGet, "/nodes/"+l.node+"/tasks/"+url.PathEscape(task.UPID)+"/log", map[string]string{"limit": "500"}), &log); err != nil {
			l.t.Fatal(err)
		}
		for _, line := range log {
			if strings.Contains(line.T, "transferred") || strings.Contains(line.T, "clone of drive") {
				lines = append(lines, line.T)
			}
		}
	}
	return lines
}

func (l *lab) running(id int) bool {
	l.t.Helper()
	var status struct{ Status string }
	if err := json.Unmarshal(l.must(http.MethodGet, l.path(id)+"/status/current", nil), &status); err != nil {
		l.t.Fatal(err)
	}
	return status.Status == "running"
}

// vmBlock is a block for a VM of the lab: a new system from the image, a new blank disk; the rest is kept. An image without
// a system in it does not hear a shutdown, so the stop is forced after a moment.
func (l *lab) vmBlock(id int, name string, arguments ...string) string {
	return fmt.Sprintf(`resource "pvrx_vm_rebuild" "vm" {
  vmid = %d
  name = %q
  system_disks = {
    scsi0 = { image = %q }
    scsi1 = { blank = true, size = "2GiB" }
  }
  stop = { timeout = "5s", force = true }
  %s
}
`, id, name, l.image, strings.Join(arguments, "\n  "))
}

func (l *lab) vmImport(id int) string {
	return fmt.Sprintf("import {\n  to = %s\n  id = %q\n}\n", labVMAddress, strconv.Itoa(id))
}

// vmOperation is the id of the last operation, as the state names it.
func vmOperation(t *testing.T, ws *workspace) string {
	t.Helper()
	last, _ := ws.state(labVMAddress)["last_operation"].(map[string]any)
	id, _ := last["id"].(string)
	if id == "" {
		t.Fatalf("no last operation: %v", ws.state(labVMAddress))
	}
	return id
}

// sameVM demands that a VM's configuration is as it was, disks with their names, but for notes and for what was excepted.
func (l *lab) sameVM(id int, before map[string]string, except ...string) {
	l.t.Helper()
	after := l.config(id)
	for _, m := range []map[string]string{before, after} {
		for key := range maps.Keys(m) {
			if key != "description" && !slices.Contains(except, key) && before[key] != after[key] {
				l.t.Errorf("%s of VM %d is %q and was %q", key, id, after[key], before[key])
			}
		}
	}
}

// listed reports whether a storage still has a volume.
func (l *lab) listed(volume string) bool {
	l.t.Helper()
	storage, _, _ := strings.Cut(volume, ":")
	var rows []stored
	if err := json.Unmarshal(l.must(http.MethodGet, "/nodes/"+l.node+"/storage/"+storage+"/content", nil), &rows); err != nil {
		l.t.Fatal(err)
	}
	return slices.ContainsFunc(rows, func(r stored) bool { return r.VolID == volume })
}

// A VM in place: a new system and a new scratch disk, then back to the old ones, with and without the kept disks returning to
// the snapshot, then once more and trusted.
func TestScenarioVMRebuild(t *testing.T) {
	t.Parallel()
	scenario(t, func(l *lab, ws *workspace) {
		const name = "pvrx-test-v"
		id, kept := l.vm(name)
		before := l.config(id)
		arguments := []string{fmt.Sprintf("snapshot = %v", l.snapshots(id))}

		ws.write("main.tf", l.vmImport(id)+l.vmBlock(id, name, append(arguments, "rehearse_only = true")...))
		ws.plan(2)
		ws.apply(0)
		l.sameVM(id, before)
		if !l.running(id) {
			l.t.Error("a rehearsal stopped the VM")
		}

		rebuilt := func() string {
			l.t.Helper()
			ws.plan(2).says(l.t, "rebuild in place", "until accept")
			l.sameVM(id, before)
			ws.apply(0)
			l.sameVM(id, before, "scsi0", "scsi1", "unused0", "unused1", "parent")
			l.stillThere(id, kept, true)
			after := l.config(id)
			for key, way := range map[string]string{"scsi0": "unused0", "scsi1": "unused1"} {
				old, _, _ := strings.Cut(before[key], ",")
				now, _, _ := strings.Cut(after[key], ",")
				if now == old || after[way] != old {
					l.t.Errorf("%s is %q and was %q; the way back is %q", key, after[key], before[key], after[way])
				}
			}
			if !strings.Contains(after["scsi0"], "discard=on") || !strings.Contains(after["scsi0"], "ssd=1") || !strings.Contains(after["scsi1"], "size=2G") {
				l.t.Errorf("the new disks are %q and %q", after["scsi0"], after["scsi1"])
			}
			if status := ws.state(labVMAddress)["status"]; status != "awaiting_trust" || !l.running(id) {
				l.t.Errorf("status %v, running %v", status, l.running(id))
			}
			if lines := l.copied(id); len(lines) > 0 {
				l.t.Errorf("data was copied: %v", lines)
			}
			return vmOperation(l.t, ws)
		}
		ws.write("main.tf", l.vmBlock(id, name, arguments...))
		operation := rebuilt()
		ws.plan(0)

		ws.write("main.tf", l.vmBlock(id, name, append(arguments, reconcileWith(operation, "rollback"))...))
		ws.plan(2).says(l.t, "rollback")
		ws.apply(0)
		l.sameVM(id, before)
		l.stillThere(id, kept, true)
		if !l.running(id) {
			l.t.Error("the old system does not run")
		}
		ws.plan(0)

		if l.snapshots(id) {
			again := append(slices.Clone(arguments), `triggers = { again = "0" }`)
			ws.write("main.tf", l.vmBlock(id, name, again...))
			operation = rebuilt()
			ws.write("main.tf", l.vmBlock(id, name, append(again, reconcileWith(operation, "rollback_data"))...))
			ws.plan(2).says(l.t, "rollback_data", "written after")
			ws.apply(0)
			l.sameVM(id, before, "vmgenid") // Proxmox makes a new one when it returns to a snapshot
			l.stillThere(id, kept, true)
			before = l.config(id)
		}

		arguments = append(arguments, `triggers = { again = "1" }`)
		ws.write("main.tf", l.vmBlock(id, name, arguments...))
		operation = rebuilt()
		after := l.config(id)
		ws.write("main.tf", l.vmBlock(id, name, append(arguments, reconcileWith(operation, "accept"))...))
		ws.plan(2).says(l.t, "accept")
		ws.apply(0)
		l.sameVM(id, after, "unused0", "unused1", "parent")
		for _, key := range []string{"unused0", "unused1", "parent"} {
			if value := l.config(id)[key]; value != "" {
				l.t.Errorf("%s = %q after accept", key, value)
			}
		}
		for _, key := range []string{"scsi0", "scsi1"} {
			if old, _, _ := strings.Cut(before[key], ","); l.listed(old) {
				l.t.Errorf("%s, the old %s, is there after accept", old, key)
			}
		}
		l.stillThere(id, kept, true)
		ws.plan(0)
	})
}

// A VM is replaced by another: given up once, then done again and trusted. State names the right VM throughout.
func TestScenarioVMReplace(t *testing.T) {
	t.Parallel()
	scenario(t, func(l *lab, ws *workspace) {
		const name = "pvrx-test-w"
		id, kept := l.vm(name)
		before := l.config(id)
		next := l.reserve()
		l.isVM(next)
		ws.write("main.tf", l.vmImport(id)+l.vmBlock(id, name, "adopt = true"))
		ws.plan(2)
		ws.apply(0)
		l.sameVM(id, before)

		replaced := func() string {
			l.t.Helper()
			ws.plan(2).says(l.t, fmt.Sprintf("replace by VM %d", next))
			l.sameVM(id, before)
			ws.apply(0)
			old, now := l.config(id), l.config(next)
			for _, key := range []string{"net0", "smbios1", "boot", "onboot", "memory", "name", "scsihw", "serial0", "vga", "ostype"} {
				if before[key] != now[key] {
					l.t.Errorf("%s is %q and was %q", key, now[key], before[key])
				}
			}
			if old["name"] != name+"-old" || old["onboot"] != "0" || old["scsi0"] != before["scsi0"] || old["scsi1"] != before["scsi1"] {
				l.t.Errorf("the old VM is %v", old)
			}
			if l.running(id) || !l.running(next) {
				l.t.Errorf("the old VM runs: %v; the new one: %v", l.running(id), l.running(next))
			}
			l.stillThere(next, kept, false)
			for _, d := range kept {
				if l.listed(d.stored.VolID) || old[d.key] != "" {
					l.t.Errorf("%s is still there, %s of VM %d is %q", d.stored.VolID, d.key, id, old[d.key])
				}
			}
			if lines := append(l.copied(id), l.copied(next)...); len(lines) > 0 {
				l.t.Errorf("data was copied: %v", lines)
			}
			if state := ws.state(labVMAddress); state["status"] != "awaiting_trust" || fmt.Sprint(state["vmid"]) != strconv.Itoa(next) {
				l.t.Errorf("status %v, vmid %v", state["status"], state["vmid"])
			}
			ws.plan(0)
			return vmOperation(l.t, ws)
		}
		ws.write("main.tf", l.vmBlock(next, name, "adopt = true", fmt.Sprintf("replaces_vmid = %d", id)))
		replaced()

		ws.write("main.tf", l.vmBlock(id, name, "adopt = true"))
		ws.plan(2).says(l.t, "rollback")
		ws.apply(0)
		l.sameVM(id, before)
		l.stillThere(id, kept, false)
		if !l.missing(next) || !l.running(id) {
			l.t.Errorf("the new VM is gone: %v; the old one runs: %v", l.missing(next), l.running(id))
		}
		ws.plan(0)

		before = l.config(id)
		for i, d := range kept {
			kept[i].stored, kept[i].value = l.stored(id, d.key), before[d.key]
		}
		again := []string{"adopt = true", fmt.Sprintf("replaces_vmid = %d", id), `triggers = { again = "1" }`}
		ws.write("main.tf", l.vmBlock(next, name, again...))
		operation := replaced()
		ws.write("main.tf", l.vmBlock(next, name, append(again, reconcileWith(operation, "accept"))...))
		ws.plan(2).says(l.t, "accept")
		ws.apply(0)
		if !l.missing(id) {
			l.t.Errorf("VM %d is there after accept", id)
		}
		l.stillThere(next, kept, false)
		ws.plan(0)
	})
}
