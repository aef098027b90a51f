package pvesim

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// storageKind is what a storage plugin can do.
type storageKind struct {
	// files: a directory tree that also holds templates, images and backups.
	files bool
	// dirOwner: a volume belongs to the directory it is in, whatever its own name says.
	dirOwner bool
	// noOwner: a volume belongs to nobody, its name has no VMID.
	noOwner bool
	// thick: space is taken when a volume is made, not when it is written.
	thick bool
	// network storages are those that can be offline.
	network      bool
	alwaysShared bool
	content      []string
	formats      []string
}

var (
	fileContent = []string{"images", "rootdir", "vztmpl", "iso", "backup", "snippets", "none", "import"}
	diskContent = []string{"images", "rootdir"}
)

// kind tells what the storage's plugin can do.
func (s *storage) kind() storageKind {
	switch s.typ {
	case "dir":
		return storageKind{files: true, dirOwner: true, content: fileContent, formats: []string{"qcow2", "raw", "subvol", "vmdk"}}
	case "nfs", "cifs":
		return storageKind{files: true, dirOwner: true, network: true, alwaysShared: true, content: fileContent, formats: []string{"qcow2", "raw", "vmdk"}}
	case "cephfs":
		return storageKind{files: true, dirOwner: true, network: true, alwaysShared: true, content: []string{"vztmpl", "iso", "backup", "snippets", "none", "import"}}
	case "btrfs":
		return storageKind{files: true, dirOwner: true, content: fileContent, formats: []string{"raw", "subvol"}}
	case "lvm":
		return storageKind{thick: true, content: diskContent, formats: []string{"qcow2", "raw"}}
	case "lvmthin":
		return storageKind{content: diskContent, formats: []string{"raw"}}
	case "zfspool":
		return storageKind{content: diskContent, formats: []string{"raw", "subvol"}}
	case "rbd":
		return storageKind{network: true, alwaysShared: true, content: diskContent, formats: []string{"raw"}}
	case "zfs":
		return storageKind{network: true, alwaysShared: true, content: []string{"images"}, formats: []string{"raw"}}
	case "iscsi":
		return storageKind{noOwner: true, network: true, alwaysShared: true, content: []string{"images", "none"}, formats: []string{"raw"}}
	case "iscsidirect":
		return storageKind{noOwner: true, network: true, alwaysShared: true, content: []string{"images"}, formats: []string{"raw"}}
	case "esxi":
		return storageKind{noOwner: true, network: true, alwaysShared: true, content: []string{"import"}, formats: []string{"raw", "vmdk"}}
	case "pbs":
		return storageKind{network: true, alwaysShared: true, content: []string{"backup"}, formats: []string{"raw"}}
	}
	return storageKind{content: diskContent, formats: []string{"raw"}}
}

// defaultFormat is the format of an image when nobody asks for one.
func (s *storage) defaultFormat() string {
	if f := s.conf["format"]; f != "" {
		return f
	}
	return "raw"
}

func (s *storage) formatAllowed(f string) bool { return slices.Contains(s.kind().formats, f) }

// volName is a volume's name taken apart.
type volName struct {
	// vtype is images, iso, vztmpl, backup, snippets or import.
	vtype string
	// name is the last part.
	name string
	// owner is the VMID the volume belongs to, when owned is set.
	owner int
	owned bool
	// base is what a linked clone is based on, in the directory baseDir on file storages.
	base    string
	baseDir int
	isBase  bool
	format  string
	dir     bool
}

// own is the name without the base of a linked clone: what there can be only one of.
func (n volName) own() string {
	switch {
	case n.vtype != "images":
		return n.vtype + "/" + n.name
	case n.dir:
		return fmt.Sprintf("%d/%s", n.owner, n.name)
	}
	return n.name
}

// full is the name as it stands in a volume id.
func (n volName) full() string {
	switch {
	case n.base == "":
		return n.own()
	case n.dir:
		return fmt.Sprintf("%d/%s/%s", n.baseDir, n.base, n.own())
	}
	return n.base + "/" + n.own()
}

var (
	dirLinkedRE = regexp.MustCompile(`^(\d+)/(\S+)/(\d+)/(\S+)$`)
	dirOwnRE    = regexp.MustCompile(`^(\d+)/(\S+)$`)
	dirStdRE    = regexp.MustCompile(`^(vm-|base-|subvol-)(\d+)-[^/\s]+\.(raw|qcow2|vmdk|subvol)$`)
	dirSnapRE   = regexp.MustCompile(`^snap-.*\.qcow2$`)
	dirFreeRE   = regexp.MustCompile(`^(base-)?[^/\s]+\.(raw|qcow2|vmdk|subvol)$`)
	isoNameRE   = regexp.MustCompile(`^iso/([^/]+\.(?i:iso|img))$`)
	tmplNameRE  = regexp.MustCompile(`^vztmpl/([^/]+\.tar(?:\.(?:gz|xz|zst|bz2))?)$`)
	backupRE    = regexp.MustCompile(`^backup/([^/]+\.(?:tgz|tar|vma|tar\.(?:gz|lzo|zst)|vma\.(?:gz|lzo|zst)))$`)
	backupOwner = regexp.MustCompile(`^vzdump-(?:openvz|lxc|qemu)-(\d+)-.+`)
	snippetRE   = regexp.MustCompile(`^snippets/([^/]+)$`)
	importRE    = regexp.MustCompile(`^import/([^/]+\.(ova|ovf|qcow2|raw|vmdk))$`)
	lvmNameRE   = regexp.MustCompile(`^vm-(\d+)-\S+$`)
	thinNameRE  = regexp.MustCompile(`^(vm|base)-(\d+)-\S+$`)
	zfsNameRE   = regexp.MustCompile(`^(?:((?:base|basevol)-\d+-[^\s/]+)/)?((base|basevol|vm|subvol)-(\d+)-[^\s/]+)$`)
	rbdNameRE   = regexp.MustCompile(`^(?:(base-\d+-[^\s/]+)/)?((base|vm)-(\d+)-[^\s/]+)$`)
	iscsiNameRE = regexp.MustCompile(`^\d+\.\d+\.\d+\.\S+$`)
	lunNameRE   = regexp.MustCompile(`^lun\d+$`)
	pbsNameRE   = regexp.MustCompile(`^backup/((?:ct|vm|host)/([^/]+)/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)$`)
)

// parse reads a volume's name by the rules of the storage's plugin.
func (s *storage) parse(name string) (volName, error) {
	switch s.typ {
	case "lvm":
		if m := lvmNameRE.FindStringSubmatch(name); m != nil {
			n := volName{vtype: "images", name: name, owner: atoi(m[1]), owned: true, format: "raw"}
			if strings.HasSuffix(name, ".qcow2") {
				n.format = "qcow2"
			}
			return n, nil
		}
		return volName{}, die("unable to parse lvm volume name '%s'", name)
	case "lvmthin":
		if m := thinNameRE.FindStringSubmatch(name); m != nil {
			return volName{vtype: "images", name: name, owner: atoi(m[2]), owned: true, isBase: m[1] == "base", format: "raw"}, nil
		}
		return volName{}, die("unable to parse lvm volume name '%s'", name)
	case "zfspool", "zfs":
		if m := zfsNameRE.FindStringSubmatch(name); m != nil {
			n := volName{vtype: "images", name: m[2], base: m[1], owner: atoi(m[4]), owned: true, format: "raw"}
			n.isBase = m[3] == "base" || m[3] == "basevol"
			if m[3] == "subvol" || m[3] == "basevol" {
				n.format = "subvol"
			}
			return n, nil
		}
		return volName{}, die("unable to parse zfs volume name '%s'", name)
	case "rbd":
		if m := rbdNameRE.FindStringSubmatch(name); m != nil {
			return volName{vtype: "images", name: m[2], base: m[1], owner: atoi(m[4]), owned: true, isBase: m[3] == "base", format: "raw"}, nil
		}
		return volName{}, die("unable to parse rbd volume name '%s'", name)
	case "iscsi":
		if iscsiNameRE.MatchString(name) {
			return volName{vtype: "images", name: name, format: "raw"}, nil
		}
		return volName{}, die("unable to parse iscsi volume name '%s'", name)
	case "iscsidirect":
		if lunNameRE.MatchString(name) {
			return volName{vtype: "images", name: name, format: "raw"}, nil
		}
		return volName{}, die("unable to parse iscsi volume name '%s'", name)
	case "esxi":
		n := volName{vtype: "images", name: name, owned: true, format: "raw"}
		if strings.HasSuffix(name, ".vmdk") {
			n.format = "vmdk"
		}
		if strings.HasSuffix(name, ".vmx") {
			n.vtype, n.format = "import", "vmx"
		}
		return n, nil
	case "pbs":
		if m := pbsNameRE.FindStringSubmatch(name); m != nil {
			n := volName{vtype: "backup", name: m[1], format: "pbs-" + m[1][:2]}
			if vmidRE.MatchString(m[2]) {
				n.owner, n.owned = atoi(m[2]), true
			}
			return n, nil
		}
		return volName{}, die("unable to parse PBS volume name '%s'", name)
	}
	return parseDirName(name)
}

func parseDirName(name string) (volName, error) {
	if m := dirLinkedRE.FindStringSubmatch(name); m != nil {
		if _, _, err := parseFileName(m[2]); err != nil {
			return volName{}, err
		}
		format, isBase, err := parseFileName(m[4])
		return volName{vtype: "images", name: m[4], owner: atoi(m[3]), owned: true, base: m[2], baseDir: atoi(m[1]), isBase: isBase, format: format, dir: true}, err
	}
	if m := dirOwnRE.FindStringSubmatch(name); m != nil {
		format, isBase, err := parseFileName(m[2])
		return volName{vtype: "images", name: m[2], owner: atoi(m[1]), owned: true, isBase: isBase, format: format, dir: true}, err
	}
	for _, f := range []struct {
		vtype string
		re    *regexp.Regexp
	}{{"iso", isoNameRE}, {"vztmpl", tmplNameRE}, {"snippets", snippetRE}} {
		if m := f.re.FindStringSubmatch(name); m != nil {
			return volName{vtype: f.vtype, name: m[1], format: "raw"}, nil
		}
	}
	if m := importRE.FindStringSubmatch(name); m != nil {
		return volName{vtype: "import", name: m[1], format: m[2]}, nil
	}
	if m := backupRE.FindStringSubmatch(name); m != nil {
		n := volName{vtype: "backup", name: m[1], format: "raw"}
		if o := backupOwner.FindStringSubmatch(m[1]); o != nil {
			n.owner, n.owned = atoi(o[1]), true
		}
		return n, nil
	}
	return volName{}, die("unable to parse directory volume name '%s'", name)
}

// parseFileName reads the name of an image file.
func parseFileName(name string) (format string, isBase bool, err error) {
	if m := dirStdRE.FindStringSubmatch(name); m != nil {
		return m[3], m[1] == "base-", nil
	}
	if dirSnapRE.MatchString(name) {
		return "", false, die("'%s' is a snapshot filename, not a volume!", name)
	}
	if m := dirFreeRE.FindStringSubmatch(name); m != nil {
		return m[2], m[1] != "", nil
	}
	return "", false, die("unable to parse volume filename '%s'", name)
}

// validContent tells whether a content type exists at all.
func validContent(ct string) bool { return slices.Contains(fileContent, ct) }
