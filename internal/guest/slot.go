package guest

import (
	"fmt"
	"maps"
)

// Slot is what a storage key of a guest of either kind says: a mount point of a container or a drive of a VM.
type Slot struct {
	Source string
	mount  Mount
	disk   Disk
	vm     bool
}

// ParseSlot reads the value of a storage key.
func ParseSlot(kind Kind, key, value string) (Slot, error) {
	switch kind {
	case KindContainer:
		m, err := ParseMount(key, value)
		return Slot{Source: m.Source, mount: m}, err
	case KindVM:
		d, err := ParseDisk(key, value)
		return Slot{Source: d.Source, disk: d, vm: true}, err
	}
	return Slot{}, fmt.Errorf("cannot read %s of a guest of no kind", clip(key))
}

// Volume returns the id of the volume; ok is false for host paths and empty drives.
func (s Slot) Volume() (id VolumeID, ok bool) {
	if s.vm {
		return s.disk.Volume()
	}
	return s.mount.Volume()
}

// With returns config text that attaches another volume in the same way. It says no size: Proxmox fills that in itself.
func (s Slot) With(source string) string {
	if s.vm {
		d := s.disk
		d.Source = source
		return d.WithoutSize()
	}
	m := s.mount
	m.Source = source
	return m.WithoutSize()
}

// SameOptions reports whether both attach their volume in the same way, whatever the volume and its size.
func (s Slot) SameOptions(other Slot) bool {
	if s.vm != other.vm {
		return false
	}
	if s.vm {
		return s.disk.SameOptions(other.disk)
	}
	return s.mount.SameOptions(other.mount)
}

// WithoutSize returns the drive as config text without size=, for requests: Proxmox fills it in itself.
func (d Disk) WithoutSize() string {
	options := maps.Clone(d.Options)
	delete(options, "size")
	return printProperties([]string{d.Source}, options)
}

// SameOptions reports whether two drives are attached in the same way. Volume and size are not compared; a boolean may be
// spelled in any way that Proxmox accepts.
func (d Disk) SameOptions(other Disk) bool {
	normal := func(options map[string]string) map[string]string {
		out := map[string]string{}
		for name, text := range options {
			if name != "size" {
				out[name] = truth(text)
			}
		}
		return out
	}
	return maps.Equal(normal(d.Options), normal(other.Options))
}
