package preview

import (
	"slices"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// VMWant is what a configuration asks for that only virtual machines have.
type VMWant struct {
	SystemDisks map[string]SystemDisk
	// Replaces is the VM that Want.VMID replaces; 0 rebuilds in place.
	Replaces     guest.VMID
	NewIdentity  bool // of a replacement: MAC addresses and smbios uuid of its own
	Snapshot     bool
	Cloud        CloudInit
	StateBackend guest.VMID // the VM that holds this run's state, 0 for none
}

// SystemDisk is what a disk is to be made from. Exactly one of Image, Template and Blank is given.
type SystemDisk struct {
	Image    string // volume id of content import
	Template TemplateDisk
	Blank    bool
	Size     guest.Bytes // 0: as large as its source
	SizeText string      // as written, for messages
	Storage  string      // "" : where the old disk is
	// Options are Proxmox drive options; nil keeps the old disk's.
	Options map[string]string
}

// TemplateDisk names a disk of a template or of another VM.
type TemplateDisk struct {
	VMID guest.VMID
	Disk string
}

// Text names the source as the install records it.
func (d SystemDisk) Text() string {
	switch {
	case d.Image != "":
		return d.Image
	case d.Template.VMID != 0:
		return d.Template.VMID.String() + "/" + d.Template.Disk
	}
	return "blank"
}

// CloudInit is what the new system's cloud-init is given; what is empty stays as the VM has it.
type CloudInit struct {
	Keep          bool // do not regenerate the drive
	User          string
	PasswordGiven bool
	Keys          []string
}

// Install is what the configuration makes of the guest, to be compared with what is installed: from a template, from an
// image by digest, or from what the system disks are made from.
func (w Want) Install() guest.Install {
	i := guest.Install{Template: w.Template, Triggers: w.Triggers, RootfsStorage: w.Rootfs.Storage}
	if w.Instance != nil {
		i.Template = w.Instance.Image.Pinned()
	}
	if w.VM == nil {
		return i
	}
	i.Disks = map[string]string{}
	for key, d := range w.VM.SystemDisks {
		i.Disks[key] = d.Text()
	}
	return i
}

// systemKeys are the keys whose disks are replaced, in natural order.
func (j *judge) systemKeys() []string { return sortedKeys(j.w.VM.SystemDisks) }

// replacing reports whether a new VM takes the old one's place.
func (j *judge) replacing() bool { return j.w.VM.Replaces != 0 }

// diskStorage is where a new disk goes.
func (j *judge) diskStorage(key string) string {
	if s := j.w.VM.SystemDisks[key].Storage; s != "" {
		return s
	}
	i := slices.IndexFunc(j.volumes, func(v volume) bool { return v.Key == key })
	if i < 0 {
		return ""
	}
	return j.volumes[i].id.Storage
}

// diskSize is how large a new disk becomes in whole MiB; 0 when that is not known.
func (j *judge) diskSize(key string) guest.Bytes {
	d := j.w.VM.SystemDisks[key]
	return max(d.Size.CeilMiB(), j.f.Sources[key].Volume.Size)
}
