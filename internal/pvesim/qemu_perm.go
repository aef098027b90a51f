package pvesim

import (
	"regexp"
	"slices"
	"strings"
)

// vmKeyGroups says which privilege changing a key of a VM needs. What is on no list is root's own.
var vmKeyGroups = []struct {
	privs []string
	keys  []string
}{
	{[]string{"VM.Config.CPU"}, []string{"cores", "cpu", "runningcpu", "cpulimit", "cpuunits", "numa", "smp", "sockets", "vcpus"}},
	{[]string{"VM.Config.Memory"}, []string{"memory", "balloon", "shares", "allow-ksm"}},
	{[]string{"VM.Config.HWType"}, []string{"acpi", "hotplug", "kvm", "machine", "runningmachine", "scsihw", "smbios1", "tablet", "vga", "watchdog", "audio0", "rng0"}},
	{[]string{"VM.Config.Options"}, []string{"agent", "autostart", "bios", "description", "keyboard", "localtime", "migrate_downtime", "migrate_speed", "name", "onboot", "ostype", "protection", "reboot", "startdate", "startup", "tdf", "template"}},
	{[]string{"VM.PowerMgmt"}, []string{"freeze"}},
	{[]string{"VM.Config.Disk"}, []string{"boot", "bootdisk", "vmstatestorage"}},
	{[]string{"VM.Config.Cloudinit", "VM.Config.Network"}, []string{"cicustom", "cipassword", "citype", "ciuser", "ciupgrade", "nameserver", "searchdomain", "sshkeys"}},
}

var (
	ownCheckRE = regexp.MustCompile(`^(?:unused|serial|usb|hostpci|virtiofs)\d+$`)
	numaRE     = regexp.MustCompile(`^numa\d+$`)
	netRE      = regexp.MustCompile(`^net\d+$`)
	ipconfigRE = regexp.MustCompile(`^ipconfig\d+$`)
)

// mayChangeVM checks that the caller may set or delete the keys. Drives are checked where they are
// used, because it depends on what they are.
func (k *call) mayChangeVM(vmid int, pool string, keys []string) error {
	if k.who.isRoot() {
		return nil
	}
	for _, key := range keys {
		if isDriveKey(key) || key == "cdrom" || key == "tags" || ownCheckRE.MatchString(key) {
			continue
		}
		lookup := key
		switch {
		case numaRE.MatchString(key):
			lookup = "numa"
		case ipconfigRE.MatchString(key):
			lookup = "ciuser"
		case netRE.MatchString(key):
			if err := k.needGuest(vmid, pool, false, "VM.Config.Network"); err != nil {
				return err
			}
			continue
		}
		found := false
		for _, g := range vmKeyGroups {
			if !slices.Contains(g.keys, lookup) {
				continue
			}
			found = true
			if err := k.needGuest(vmid, pool, len(g.privs) > 1, g.privs...); err != nil {
				return err
			}
			if key == "startup" {
				if err := k.need("/", "Sys.Modify"); err != nil {
					return err
				}
			}
			break
		}
		if !found {
			return die("only root can set '%s' config", key)
		}
	}
	return nil
}

// mayUseHostDevices checks the keys that hand the node's own devices to a VM.
func (k *call) mayUseHostDevices(vmid int, pool string, conf map[string]string) error {
	if k.who.isRoot() {
		return nil
	}
	for _, key := range sortedKeys(conf) {
		value := conf[key]
		switch {
		case strings.HasPrefix(key, "hostpci"):
			if !strings.Contains(value, "mapping=") {
				return die("only root can set '%s' config for non-mapped devices", key)
			}
		case strings.HasPrefix(key, "usb") && isDigits(key[3:]):
			if strings.Contains(value, "host=") && !strings.Contains(value, "spice") || !strings.Contains(value, "spice") && !strings.Contains(value, "mapping=") {
				return die("only root can set '%s' config for real devices", key)
			}
		case strings.HasPrefix(key, "serial") && isDigits(key[6:]):
			if value != "socket" {
				return die("only root can set '%s' config for real devices", key)
			}
		default:
			continue
		}
		if err := k.needGuest(vmid, pool, false, "VM.Config.HWType"); err != nil {
			return err
		}
	}
	return nil
}

// mayUseBridges checks the bridges that a VM's network cards plug into.
func (k *call) mayUseBridges(conf map[string]string) error {
	if k.who.isRoot() {
		return nil
	}
	for _, key := range sortedKeys(conf) {
		if !netRE.MatchString(key) {
			continue
		}
		if err := k.mayUseBridge(conf[key]); err != nil {
			return err
		}
	}
	return nil
}

// mayUseDrive checks the privilege that a drive of this kind needs on the VM.
func (k *call) mayUseDrive(vmid int, d drive) error {
	switch {
	case d.isCloudInit():
		return k.needGuest(vmid, "", false, "VM.Config.Cloudinit", "VM.Config.CDROM")
	case d.isCDROM():
		return k.needGuest(vmid, "", false, "VM.Config.CDROM")
	}
	return k.needGuest(vmid, "", false, "VM.Config.Disk")
}

// mayUseStorages checks every volume that settings name, and every storage they make one on.
func (k *call) mayUseStorages(vmid int, settings map[string]string, defaultStorage string) error {
	for _, key := range driveKeys(settings, false) {
		d, ok := parseDrive(key, settings[key])
		if !ok {
			continue
		}
		if err := k.mayUseVolume(vmid, d, defaultStorage); err != nil {
			return err
		}
		if src := d.opts["import-from"]; src != "" {
			if err := k.mayImport(vmid, d.key, src); err != nil {
				return err
			}
		}
	}
	for _, key := range sortedKeys(settings) {
		if !unusedKeyRE.MatchString(key) {
			continue
		}
		d, ok := parseDrive(key, settings[key])
		if !ok {
			return paramError(key, "failed to parse value '"+settings[key]+"'")
		}
		if _, _, ok := splitVolID(d.file()); !ok {
			return paramError(key, "not a valid volid: "+d.file())
		}
		if err := k.volumeAccess(vmid, d.file(), "images"); err != nil {
			return err
		}
	}
	return nil
}

func (k *call) mayUseVolume(vmid int, d drive, defaultStorage string) error {
	file := d.file()
	switch {
	case file == "" || file == "none" || cloudInitNew.MatchString(file):
		return nil
	case d.isCDROM() && file == "cdrom":
		return k.need("/", "Sys.Console")
	case !d.isCDROM() && vmDiskRE.MatchString(file):
		sid := vmDiskRE.FindStringSubmatch(file)[1]
		if sid == "" {
			sid = defaultStorage
		}
		if sid == "" {
			return die("no storage ID specified (and no default storage)")
		}
		if err := k.need("/storage/"+sid, "Datastore.AllocateSpace"); err != nil {
			return err
		}
		s, err := k.c.storage(sid)
		if err != nil {
			return err
		}
		if !s.has("images") {
			return paramError("storage", "storage '"+sid+"' does not support vm images")
		}
		return nil
	}
	if err := k.volumeAccess(vmid, file, ""); err != nil {
		return err
	}
	if _, n, err := k.c.parseVolID(file); err == nil && n.vtype != "images" && n.vtype != "iso" {
		return paramError(d.key, "content type needs to be 'images' or 'iso'")
	}
	return nil
}

// mayImport checks the source of an import: the disk of a guest is a clone of that guest.
func (k *call) mayImport(vmid int, key, src string) error {
	if _, _, ok := splitVolID(src); !ok {
		return k.volumeAccess(vmid, src, "")
	}
	_, n, err := k.c.parseVolID(src)
	if err != nil {
		return err
	}
	if n.vtype != "images" && n.vtype != "import" {
		return paramError(key, src+" has wrong type '"+n.vtype+"' - needs to be 'images' or 'import'")
	}
	if n.owned && n.owner != 0 {
		return k.need(vmPath(n.owner), "VM.Clone")
	}
	return k.volumeAccess(vmid, src, "")
}

// checkDrives refuses drive settings that make no sense by themselves, and writes the others back in
// Proxmox's own spelling.
func (k *call) checkDrives(settings map[string]string) error {
	for _, key := range sortedKeys(settings) {
		if !isDriveKey(key) {
			continue
		}
		d, ok := parseDrive(key, settings[key])
		if !ok {
			return paramError(key, "unable to parse drive options")
		}
		if d.opts["import-from"] != "" {
			m := vmDiskRE.FindStringSubmatch(d.file())
			if m == nil || strings.Trim(m[2], "0.") != "" {
				return paramError(key, "'import-from' requires special syntax - use <storage ID>:0,import-from=<source>")
			}
			required := []string{}
			switch key {
			case "efidisk0":
				required = []string{"efitype", "pre-enrolled-keys"}
			case "tpmstate0":
				required = []string{"version"}
			}
			for _, r := range required {
				if d.opts[r] == "" {
					return paramError(key, "need to specify '"+r+"' when using 'import-from'")
				}
			}
		}
		if err := k.checkMedium(d); err != nil {
			return err
		}
		settings[key] = d.print()
	}
	return nil
}

func (k *call) checkMedium(d drive) error {
	file := d.file()
	if vmDiskRE.MatchString(file) || cloudInitNew.MatchString(file) {
		return nil
	}
	if _, _, ok := splitVolID(file); !ok {
		return nil
	}
	_, n, err := k.c.parseVolID(file)
	if err != nil {
		return err
	}
	if n.vtype == "iso" && !d.isCDROM() {
		return paramError(d.key, "explicit 'media=cdrom' is required for iso images")
	}
	return nil
}
