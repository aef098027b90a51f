package preview

import (
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// Want is what the configuration asks for, for one guest.
type Want struct {
	VMID          guest.VMID
	Name          string
	Template      string // whole volume id; empty while unknown (TemplateKnown in Facts)
	Triggers      map[string]string
	Rootfs        Rootfs
	Erase         map[string]string // key -> volume id or "*"
	Drop          []string
	Allow         []string
	Adopt         bool
	RehearseOnly  bool
	Backup        *Backup
	PasswordGiven bool
	ForceStop     bool
	Timeout       time.Duration // of the operation
	// Operation is the id under which this guest is already claimed, "" at plan: its own journal does not block.
	Operation string
	// Spent are erase consents that state remembers as used (key -> volume id), beside those of the contract.
	Spent map[string]string
	// VM is what only virtual machines have; nil for containers.
	VM *VMWant
	// Instance is what only application containers have; nil for others.
	Instance *InstanceWant
}

// Rootfs is the wanted root file system: what is empty stays as it is.
type Rootfs struct {
	Storage  string
	Size     guest.Bytes // 0: keep the present size
	SizeText string      // as written, for messages
}

// Backup asks for an archive before anything else happens.
type Backup struct {
	Storage, Mode string
	Compress      string // Proxmox's word; "" means zstd
	Keep          int    // how many archives of ours stay, this one included; 0 means all
}
