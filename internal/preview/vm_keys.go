package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// CarriedVM reports whether a key of a VM is set again on the VM that replaces it. The list is closed: a key that is neither
// here, nor never carried, nor a drive, blocks. Keys of the host's own are carried for root@pam only.
func CarriedVM(key string) bool {
	name, _, indexed := guest.SplitKey(key)
	if indexed {
		return slices.Contains([]string{"net", "ipconfig", "numa", "serial", "usb", "hostpci", "audio", "rng", "virtiofs", "smbios"}, name)
	}
	switch key {
	case "acpi", "agent", "allow-ksm", "autostart", "balloon", "bios", "bootdisk", "boot", "cicustom", "citype", "ciupgrade", "ciuser",
		"cores", "cpu", "cpulimit", "cpuunits", "description", "hotplug", "keyboard", "kvm", "localtime", "machine", "memory",
		"migrate_downtime", "migrate_speed", "name", "nameserver", "numa", "onboot", "ostype", "reboot", "scsihw", "searchdomain",
		"shares", "smp", "sockets", "sshkeys", "startdate", "startup", "tablet", "tags", "tdf", "vcpus", "vga",
		"vmstatestorage", "watchdog":
		return true
	}
	return rootOnlyVM(key)
}

// rootOnlyVM reports whether Proxmox lets only root@pam with a password set a key, whatever its value.
func rootOnlyVM(key string) bool {
	if name, _, indexed := guest.SplitKey(key); indexed && name == "parallel" {
		return true
	}
	switch key {
	case "affinity", "amd-sev", "arch", "args", "hookscript", "hugepages", "intel-tdx", "ivshmem", "keephugepages", "spice_enhancements":
		return true
	}
	return false
}

// neverCarriedVM reports whether a key must not reach the new VM, or is made for it by Proxmox.
func neverCarriedVM(key string) bool {
	switch key {
	case "lock", "template", "protection", "digest", "parent", "snaptime", "snapstate", "meta", "vmgenid", "vmstate", "runningmachine",
		"runningcpu", "running-nets-host-mtu":
		return true
	}
	return guest.IsDiskKey(key)
}

// passesThrough reports whether the value of a key hands a device of the host to the VM in a way that only root@pam may set.
func passesThrough(key, value string) bool {
	switch name, _, _ := guest.SplitKey(key); name {
	case "hostpci":
		return !strings.Contains(value, "mapping=")
	case "usb":
		return !strings.Contains(value, "mapping=") && !strings.Contains(value, "spice")
	case "serial":
		return value != "socket"
	}
	return false
}

// CarryVM returns the configuration of the VM that replaces another: what may be set again and was not given up, without
// drives, notes and what comes last (onboot, tags, boot order). identity copies MAC addresses and the smbios uuid.
func CarryVM(config map[string]string, drop []string, root, newIdentity bool) map[string]string {
	params := map[string]string{}
	for key, value := range config {
		hard := rootOnlyVM(key) || passesThrough(key, value)
		if !CarriedVM(key) || slices.Contains(drop, key) && hard || hard && !root {
			continue
		}
		params[key] = value
	}
	for _, key := range []string{"description", "onboot", "tags", "boot", "bootdisk"} {
		delete(params, key)
	}
	if !newIdentity {
		return params
	}
	delete(params, "smbios1")
	for key, value := range params {
		if name, _, indexed := guest.SplitKey(key); indexed && name == "net" {
			params[key] = withoutMAC(value)
		}
	}
	return params
}

// withoutMAC takes the hardware address out of "virtio=BC:24:11:…,bridge=vmbr0".
func withoutMAC(value string) string {
	parts := strings.Split(value, ",")
	for i, part := range parts {
		if name, text, named := strings.Cut(part, "="); named && strings.Count(text, ":") == 5 {
			parts[i] = name
		}
	}
	return strings.Join(parts, ",")
}

// judgeVMKeys blocks every key that cannot be set on the new VM with these credentials, or that nothing is known about.
func (j *judge) judgeVMKeys() {
	config := j.f.Guest.Config
	for _, key := range config.Keys() {
		value := config.Values[key]
		switch {
		case neverCarriedVM(key):
		case key == "cipassword":
			if !j.w.PasswordGiven {
				j.cannotSet(key, "Proxmox does not hand cipassword out, so the new VM's cloud-init cannot be given it; cloud_init.password_wo would")
			}
		case !CarriedVM(key):
			j.cannotSet(key, fmt.Sprintf("%s = %q is not a setting that pvrx knows how to carry over", key, value))
		case (rootOnlyVM(key) || passesThrough(key, value)) && !j.f.Login.RootTicket:
			j.cannotSet(key, fmt.Sprintf("%s (%s) may be set by root@pam with a password only; this login is %s", key, value, j.login()))
		}
	}
}

// judgeVMRights names every right that is missing.
func (j *judge) judgeVMRights() {
	if j.replacing() {
		j.judgeTags(j.f.Guest.Config.Values["tags"])
		j.judgeACL()
	}
	if j.f.Login.RootTicket {
		return
	}
	if !j.f.Privileges.OK {
		j.unseen("privileges", j.f.Privileges.Why, "the rights that the guide lists")
		return
	}
	j.lacking(j.vmNeeds())
}

// NeedsVM lists the rights that the rebuild of a VM uses, and with them every path that must be asked for before VM can answer.
func NeedsVM(f Facts, w Want) []Need {
	j, _ := vmJudge(f, w)
	if !j.readable() {
		return nil
	}
	j.collectVM()
	j.decideVM()
	return j.vmNeeds()
}

func (j *judge) vmNeeds() []Need {
	var needs []Need
	on := func(privilege, why string, paths ...string) {
		needs = append(needs, Need{Privileges: []string{privilege}, Paths: paths, For: why})
	}
	for _, privilege := range []string{"VM.Audit", "VM.Config.Disk", "VM.Config.Options", "VM.PowerMgmt"} {
		on(privilege, "the VM", j.path())
	}
	if j.cloudKey() != "" {
		on("VM.Config.Cloudinit", "cloud-init", j.path())
	}
	if j.w.VM.Snapshot {
		on("VM.Snapshot", "the snapshot", j.path())
	}
	if j.w.Backup != nil {
		on("VM.Backup", "the backup", j.path())
		on("Datastore.AllocateSpace", "the backup", "/storage/"+j.w.Backup.Storage)
	}
	if j.f.HA.OK && j.f.HA.Value.Managed {
		on("Sys.Console", "setting HA aside", "/")
	}
	if j.f.Parking.VMID != 0 {
		for _, privilege := range j.spareVMPrivileges() {
			on(privilege, "the new VM", j.parkingPaths()...)
		}
	}
	if j.replacing() {
		needs = append(needs, Need{Privileges: []string{"Sys.Modify"}, Paths: []string{"/"}, Optional: true, For: "backup jobs that name the VM"})
		on("VM.Allocate", "removing the old VM", j.path())
		if _, set := j.f.Guest.Config.Get("startup"); set {
			on("Sys.Modify", "setting startup", "/")
		}
		if j.f.Pool.OK && j.f.Pool.Value != "" {
			on("Pool.Allocate", "the pool", "/pool/"+j.f.Pool.Value)
		}
		networks, _ := j.f.Guest.Config.Networks()
		needs = append(needs, j.bridgeNeeds(networks)...)
	}
	return append(needs, j.vmStorageNeeds()...)
}

// cloudKey is the key of the cloud-init drive, "" for none.
func (j *judge) cloudKey() string {
	disks, _ := guest.Disks(j.f.Guest.Config)
	for _, d := range disks {
		if d.CloudInit {
			return d.Key
		}
	}
	return ""
}

func (j *judge) spareVMPrivileges() []string {
	if !j.replacing() {
		return []string{"VM.Allocate", "VM.Audit", "VM.Config.Disk", "VM.Config.Options"}
	}
	return []string{
		"VM.Allocate", "VM.Audit", "VM.Config.CDROM", "VM.Config.CPU", "VM.Config.Cloudinit", "VM.Config.Disk", "VM.Config.HWType",
		"VM.Config.Memory", "VM.Config.Network", "VM.Config.Options", "VM.PowerMgmt",
	}
}

func (j *judge) vmStorageNeeds() []Need {
	allocate, audit := map[string]bool{}, map[string]bool{}
	var needs []Need
	for _, key := range j.systemKeys() {
		if s := j.diskStorage(key); s != "" {
			allocate[s] = true
		}
		d := j.w.VM.SystemDisks[key]
		if d.Template.VMID != 0 {
			needs = append(needs, Need{Privileges: []string{"VM.Clone"}, Paths: []string{"/vms/" + d.Template.VMID.String()}, For: "copying " + d.Template.Disk})
		}
		if id, err := guest.ParseVolumeID(d.Image); err == nil {
			audit[id.Storage] = true
		}
	}
	for _, v := range j.volumes {
		if j.owned(v) && isStored(v.section) {
			audit[v.id.Storage] = true
			allocate[v.id.Storage] = allocate[v.id.Storage] || v.Data == DataPreserved || v.Data == DataErased
		}
	}
	for _, name := range sortedKeys(audit) {
		if _, there := j.f.Storages[name]; there {
			needs = append(needs, Need{Privileges: []string{"Datastore.Audit"}, Paths: []string{"/storage/" + name}, For: "seeing the volumes"})
		}
	}
	for _, name := range sortedKeys(allocate) {
		if _, there := j.f.Storages[name]; there && allocate[name] {
			needs = append(needs, Need{Privileges: []string{"Datastore.AllocateSpace"}, Paths: []string{"/storage/" + name}, For: "making and moving disks"})
		}
	}
	return needs
}
