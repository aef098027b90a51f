package guest

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// SourceKind says what a mount is made of. The zero value is invalid.
type SourceKind uint8

// The kinds of sources, told apart as Proxmox does: by the first characters alone.
const (
	SourceVolume SourceKind = iota + 1 // a volume id
	SourceBind                         // a directory of the host
	SourceDevice                       // a block device of the host
)

// String returns "volume", "bind mount" or "device".
func (k SourceKind) String() string {
	switch k {
	case SourceVolume:
		return "volume"
	case SourceBind:
		return "bind mount"
	case SourceDevice:
		return "device"
	}
	return "invalid"
}

// Mount is one storage key of a container: rootfs, mpN or unusedN.
type Mount struct {
	Key      string
	Source   string // volume id or absolute path, as written
	Kind     SourceKind
	Path     string            // inside the container; "/" for rootfs, "-" for unusedN
	Options  map[string]string // everything but source, path and size, as written
	SizeText string            // the size= option as written; "" when absent. Information only: ask the storage
}

// ParseMount reads the value of rootfs, mpN or unusedN. Options may stand in any order; unknown ones are kept.
func ParseMount(key, value string) (Mount, error) {
	name, index, indexed := SplitKey(key)
	isMount := indexed && index < 256 && (name == "mp" || name == "unused")
	if key != "rootfs" && !isMount {
		return Mount{}, fmt.Errorf("cannot read mount %s: not a storage key of a container", clip(key))
	}
	options, err := parseProperties(value, "volume")
	if err != nil {
		return Mount{}, fmt.Errorf("cannot read mount %s: %w", key, err)
	}
	m := Mount{Key: key, Source: options["volume"], Path: "/", SizeText: options["size"], Options: options}
	if m.Source == "" {
		return Mount{}, fmt.Errorf("cannot read mount %s: %q names no volume", key, clip(value))
	}
	mountPath, hasPath := options["mp"]
	switch {
	case name == "mp" && !hasPath:
		return Mount{}, fmt.Errorf("cannot read mount %s: %q names no path", key, clip(value))
	case name != "mp" && hasPath:
		return Mount{}, fmt.Errorf("cannot read mount %s: %q names a path, which this key does not take", key, clip(value))
	case name == "mp":
		m.Path = mountPath
	case name == "unused":
		m.Path = "-"
	}
	switch {
	case strings.HasPrefix(m.Source, "/dev/"):
		m.Kind = SourceDevice
	case strings.HasPrefix(m.Source, "/"):
		m.Kind = SourceBind
	default:
		m.Kind = SourceVolume
	}
	for _, own := range []string{"volume", "mp", "size"} {
		delete(options, own)
	}
	return m, nil
}

// Volume returns the id of the mount's volume; ok is false for bind mounts, devices and sources that are no volume id.
func (m Mount) Volume() (id VolumeID, ok bool) {
	if m.Kind != SourceVolume {
		return VolumeID{}, false
	}
	id, err := ParseVolumeID(m.Source)
	return id, err == nil
}

// String returns the mount as Proxmox writes it: source, path, then the other options, size among them, in alphabetical order.
func (m Mount) String() string { return m.print(m.SizeText) }

// WithoutSize returns the mount as config text without size=, for requests: Proxmox fills it in itself.
func (m Mount) WithoutSize() string { return m.print("") }

func (m Mount) print(size string) string {
	parts := []string{m.Source}
	if name, _, _ := SplitKey(m.Key); name == "mp" {
		parts = append(parts, "mp="+m.Path)
	}
	options := maps.Clone(m.Options)
	if size != "" {
		if options == nil {
			options = map[string]string{}
		}
		options["size"] = size
	}
	return printProperties(parts, options)
}

// SameOptions reports whether both are mounted on the same path in the same way. Source and size are not compared; an option
// that states its default equals an absent one.
func (m Mount) SameOptions(other Mount) bool {
	return cleanPath(m.Path) == cleanPath(other.Path) && maps.Equal(effectiveOptions(m.Options), effectiveOptions(other.Options))
}

func cleanPath(p string) string {
	if p == "-" {
		return p
	}
	return path.Clean("/" + p)
}

// effectiveOptions normalises spellings and leaves out what states a default. acl has none: the file system decides.
func effectiveOptions(options map[string]string) map[string]string {
	effective := map[string]string{}
	for name, text := range options {
		switch name {
		case "ro", "quota", "backup", "shared", "keepattrs":
			if text = truth(text); text == "0" {
				continue
			}
		case "replicate":
			if text = truth(text); text == "1" {
				continue
			}
		case "acl":
			text = truth(text)
		case "mountoptions":
			words := strings.Split(text, ";")
			slices.Sort(words)
			text = strings.Join(slices.Compact(words), ";")
		}
		effective[name] = text
	}
	return effective
}
