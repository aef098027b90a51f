package pvesim

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

var (
	// vmDiskRE is a disk to be made: a storage, unless there is a default, and a size in GiB.
	vmDiskRE      = regexp.MustCompile(`^(?:([^/:\s]+):)?(\d+(?:\.\d+)?)$`)
	driveKeyRE    = regexp.MustCompile(`^(?:ide[0-3]|sata[0-5]|scsi(?:[12]?[0-9]|30)|virtio(?:[0-9]|1[0-5])|efidisk0|tpmstate0)$`)
	cloudInitRE   = regexp.MustCompile(`[:/](?:vm-\d+-)?cloudinit(?:\.(?:raw|qcow2|qcow|qed|vmdk|cloop))?$`)
	cloudInitNew  = regexp.MustCompile(`^(?:([^/:\s]+):)?cloudinit$`)
	driveKeyParts = regexp.MustCompile(`^([a-z]+)(\d+)$`)
)

const (
	cloudInitSize = 4 * mib
	tpmStateSize  = 4 * mib
	efiVars4m     = 528 * kib
	efiVars2m     = 128 * kib
)

func isDriveKey(key string) bool { return driveKeyRE.MatchString(key) }

// drive is a disk, CD-ROM or state volume of a VM, by its key.
type drive struct {
	key  string
	opts map[string]string
}

func driveFormat(key string) *partFormat {
	if p := vmMethod().arg(key); p != nil {
		return p.parts
	}
	return nil
}

// parseDrive reads a drive's value; false when it cannot be read as one of that key.
func parseDrive(key, value string) (drive, bool) {
	f := driveFormat(key)
	if f == nil {
		return drive{}, false
	}
	opts, err := f.parse(value, "")
	if err != nil {
		return drive{}, false
	}
	return drive{key, opts}, true
}

func (d drive) file() string { return d.opts["file"] }

func (d drive) isCDROM() bool { return d.opts["media"] == "cdrom" }

func (d drive) isCloudInit() bool { return cloudInitRE.MatchString(d.file()) }

// isMedium tells a CD-ROM from the cloud-init drive, which is one as well.
func (d drive) isMedium() bool { return d.isCDROM() && !d.isCloudInit() }

// print writes the drive as the configuration has it, its size in the largest whole unit.
func (d drive) print() string {
	opts := maps.Clone(d.opts)
	if n, ok := parseSize(opts["size"]); ok {
		opts["size"] = formatSize(n)
	}
	return driveFormat(d.key).print(opts)
}

// driveKeys are the keys of a configuration that hold drives, in the order Proxmox walks them.
func driveKeys(conf map[string]string, unused bool) []string {
	var keys []string
	for key := range conf {
		if isDriveKey(key) || unused && unusedKeyRE.MatchString(key) {
			keys = append(keys, key)
		}
	}
	rank := func(key string) (int, int) {
		m := driveKeyParts.FindStringSubmatch(key)
		return slices.Index([]string{"ide", "scsi", "virtio", "sata", "efidisk", "tpmstate", "unused"}, m[1]), atoi(m[2])
	}
	slices.SortFunc(keys, func(a, b string) int {
		ba, na := rank(a)
		bb, nb := rank(b)
		if ba != bb {
			return ba - bb
		}
		return na - nb
	})
	return keys
}

// bootOrder are the devices a boot setting names; false when it is of the old kind or unset.
func bootOrder(boot string) ([]string, bool) {
	order, ok := strings.CutPrefix(boot, "order=")
	if !ok {
		return nil, false
	}
	return strings.FieldsFunc(order, func(r rune) bool { return r == ';' }), true
}

// printBootOrder is the boot setting for devices; for none it is a space, which the file can hold.
func printBootOrder(devices []string) string {
	if len(devices) == 0 {
		return " "
	}
	return "order=" + strings.Join(devices, ";")
}

// defaultBoot boots the first disk, then the first CD-ROM, then the first network card.
func defaultBoot(conf map[string]string) string {
	var devices []string
	for _, cdrom := range []bool{false, true} {
		for _, key := range driveKeys(conf, false) {
			if strings.HasPrefix(key, "efidisk") || strings.HasPrefix(key, "tpmstate") {
				continue
			}
			if d, ok := parseDrive(key, conf[key]); ok && d.isCDROM() == cdrom {
				devices = append(devices, key)
				break
			}
		}
	}
	for i := range 32 {
		if _, ok := conf[fmt.Sprintf("net%d", i)]; ok {
			devices = append(devices, fmt.Sprintf("net%d", i))
			break
		}
	}
	return printBootOrder(devices)
}

// addUnused records a volume that no key names any more under the first free unused key, and gives
// that key. A volume that is recorded already keeps its own.
func (g *guest) addUnused(volid string) string {
	for i := range 256 {
		key := fmt.Sprintf("unused%d", i)
		if g.conf.kv[key] == volid {
			return key
		}
	}
	for i := range 256 {
		key := fmt.Sprintf("unused%d", i)
		if _, taken := g.conf.kv[key]; !taken {
			g.conf.kv[key] = volid
			return key
		}
	}
	return ""
}

// dropUsedUnused takes unused entries away whose volume is in use again: Proxmox does so whenever it
// writes a VM's configuration.
func (g *guest) dropUsedUnused() {
	used := map[string]bool{}
	for _, conf := range []map[string]string{g.conf.kv, g.pending.kv} {
		for _, key := range driveKeys(conf, false) {
			if d, ok := parseDrive(key, conf[key]); ok {
				used[d.file()] = true
			}
		}
	}
	for key, v := range g.conf.kv {
		if unusedKeyRE.MatchString(key) && used[v] {
			delete(g.conf.kv, key)
		}
	}
}

// inUse tells whether a volume is named by the VM's own keys, but for skip, or by a snapshot.
func (g *guest) inUse(skip, volid string) bool {
	confs := []map[string]string{g.conf.kv}
	for _, s := range g.snapshots {
		confs = append(confs, s.conf.kv)
	}
	for i, conf := range confs {
		for _, key := range driveKeys(conf, false) {
			if i == 0 && key == skip {
				continue
			}
			if d, ok := parseDrive(key, conf[key]); ok && !d.isCDROM() && d.file() == volid {
				return true
			}
		}
	}
	return false
}

// ownsVolume tells whether a volume belongs to the guest by its name.
func (c *Cluster) ownsVolume(g *guest, volid string) bool {
	owner, ok := c.volumeOwner(volid)
	return ok && owner == g.vmid
}
