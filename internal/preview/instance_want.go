package preview

import "github.com/pvrx/terraform-provider-pvrx/internal/guest"

// InstanceWant is what a configuration asks for that only application containers have. Want.Name is the hostname.
type InstanceWant struct {
	Node           string // where to make it; "" once it exists
	ArchiveStorage string // "": the node's only one with content vztmpl
	Image          Image
	// Settings are the Proxmox keys that the configuration sets, as values of the config: cores, memory, netN (without
	// hwaddr unless a MAC is asked for), tags, ... What it leaves out is not here.
	Settings    map[string]string
	Environment map[string]string // plain and write-only variables together; secret
	WriteOnly   []string          // names in Environment that are write-only: EnvVersion alone says that they changed
	EnvVersion  int64             // version of the write-only ones
	Entrypoint  string            // "": the image's
	Volumes     map[string]VolumeWant
	HostPaths   map[string]HostPath // path -> host directory; root@pam with a password only
	Devices     map[string]string   // devN -> value; root@pam with a password only
	Started     bool
	Hold        bool // on_failure = "hold"
	Protected   bool // deletion_protection
	// Known is what state remembers of the contract, "" for nothing: an older one in the notes was restored over it.
	Known string
	// KnownAt is when that contract was written (seconds since 1970).
	KnownAt int64
	// Create is set when no state knows the instance yet.
	Create bool
}

// Image is the image that is wanted, as far as the registry or the contract told.
type Image struct {
	Reference  string // complete: "docker.io/library/nginx:1.27"
	Repository string // registry and repository
	Digest     string // what the reference names: an index, or a manifest; "" when that is not known
	Manifest   string // of the platform
	Arch       string // Proxmox's word
	Why        string // why Digest is not known
	Archive    string // file name of its archive, "pvrx-nginx-0123456789ab.tar"
	// Size is the archive's, 0 while unknown.
	Size guest.Bytes
	// Read says that the image's configuration was read: what follows is from it.
	Read     bool
	Declared []string // VOLUME paths
	User     string   // "" for root
}

// Pinned is the image as an install records it, "docker.io/library/nginx@sha256:…"; "" while the digest is not known.
func (i Image) Pinned() string {
	if i.Digest == "" {
		return ""
	}
	return i.Repository + "@" + i.Digest
}

// VolumeWant is a volume of an application container.
type VolumeWant struct {
	Storage  string
	Size     guest.Bytes
	SizeText string // as written
	NoBackup bool
	ReadOnly bool
	Options  string // further mount options: "noatime"
}

// HostPath is a directory of the node that is mounted into the container.
type HostPath struct {
	Source   string
	ReadOnly bool
}
