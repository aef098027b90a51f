// Package preview judges: what happens to every volume of a guest, what else would be lost, and why an operation must not
// go on. It is pure: values in, values out. Everything it looks at is in Facts, everything the user asked for is in Want.
package preview

import "github.com/pvrx/terraform-provider-pvrx/internal/guest"

// Facts is all that was read about one guest and its surroundings before judging. What could not be read is said by the
// Known fields: unknown is never taken for absent (hazards B2, B11).
type Facts struct {
	Presence guest.Presence
	Guest    guest.Guest
	// WrongType is set when the VMID belongs to a guest of the other kind.
	WrongType bool
	// NodeOnline is false when the guest's node does not answer; Quorate when the cluster has quorum.
	NodeOnline bool
	Quorate    bool

	Login          Login
	Storages       map[string]guest.Storage              // by name, as seen from the guest's node
	Volumes        map[guest.VolumeID]guest.StoredVolume // content rows of every storage that answered
	Listed         map[string]bool                       // storages whose content list was read, by name
	Users          map[guest.VolumeID][]User             // who else names a volume (main, pending, snapshots), other guests only
	Unseen         []guest.VMID                          // guests whose config could not be read although their node is up
	AllSeen        bool                                  // the login holds VM.Audit on /vms, so no guest can hide
	Linked         map[guest.VolumeID][]guest.VMID       // base volume -> guests with linked clones of it
	Tasks          Known[[]Task]                         // running tasks of the guest's node
	HA             Known[HA]                             // HA resource of this guest
	Jobs           Known[[]BackupJob]                    // backup jobs that cover the guest or the parking guest
	Backups        Known[[]guest.StoredVolume]           // existing backups of the guest
	Pool           Known[string]                         // "" when in none
	ACL            Known[[]ACLEntry]                     // entries on exactly /vms/<vmid>
	Firewall       Known[Firewall]                       // what the guest's firewall holds, counted
	Leases         Known[[]Lease]
	Replicated     Known[bool]
	Template       guest.StoredVolume // the wanted template as the storage lists it; zero when not found
	TemplateKnown  guest.Presence     // Unknown: the template is not known yet at plan
	BackupStorage  Known[BackupRoom]  // only when a backup is asked for
	Privileges     Privileges
	Parking        Parking
	Self           Self              // the machine that runs the provider, for running_inside_target
	Journal        guest.Notes       // the guest's notes, taken apart
	Elsewhere      *guest.Journal    // a journal about this guest found on a parking guest
	Duplicate      bool              // another block of this run names the same VMID
	Now            int64             // seconds since 1970, given by the caller
	RegisteredTags []string          // tags that the datacenter reserves or the policy forbids to this login, as far as seen
	Sources        map[string]Source // of a VM: what each new system disk is made from, by key
	Target         guest.Presence    // of a replacement: whether the new VMID is in use; zero when none is asked for
	Zones          map[string]string // SDN zone of each bridge or vnet; one that is not named here is in "localnetwork"

	// EnvSeen says that this login reads the environment of the container (VM.Config.Options), so that an absent one is empty.
	EnvSeen bool
	// Instances are the application containers of the whole cluster but this one, as their contracts say; needed before a
	// restored one is adopted and before an archive is deleted.
	Instances Known[[]OtherInstance]
}

// OtherInstance is what another guest's contract says, when it is valid for that guest and of an application container.
type OtherInstance struct {
	VMID     guest.VMID
	ID       string   // Contract.Instance
	Archives []string // volume ids of the archives that it names: its own and the one before
}

// Source is what a system disk is made from, as far as it was found.
type Source struct {
	Volume guest.StoredVolume // zero when it was not found; Why then says so
	Why    string
}

// Known is a value that may not have been readable.
type Known[T any] struct {
	OK    bool   // the value was read and is complete
	Why   string // when not OK: the missing privilege or the error, in words for people
	Value T
}

// What was read about a guest's surroundings are plain facts of package guest; judging names them by these words.
type (
	Login     = guest.Login
	Task      = guest.Task
	HA        = guest.HA
	BackupJob = guest.BackupJob
	ACLEntry  = guest.ACLEntry
	Lease     = guest.Lease
)

// User is a guest that names a volume, and where.
type User struct {
	VMID    guest.VMID
	Kind    guest.Kind
	Key     string // "mp0", "unused1", "scsi2"
	Section string // "", "pending" or the snapshot's name
}

// BackupRoom is what a backup would meet on its storage.
type BackupRoom struct {
	Exists         bool
	Available      guest.Bytes
	ProtectedLimit int // -1 unlimited
	ProtectedNow   int
}

// Firewall counts what a guest's firewall holds.
type Firewall struct{ Options, Aliases, IPSets, Rules int }

// Privileges is what the login may do, as far as Proxmox told. Needs lists the paths that must be asked for: a path that
// was not asked counts as not held.
type Privileges struct {
	OK  bool
	Why string
	// Held answers for the paths that were asked: path -> privilege -> source.
	Held map[string]map[string]bool
	// Lasting is the same without what hangs only on /vms/<vmid>, /vms/<parking> or on pool membership.
	Lasting map[string]map[string]bool
}

// Parking says which spare VMID the operation would use.
type Parking struct {
	VMID guest.VMID // 0: none found; Why says so
	Why  string
	Pool string
}

// Self identifies the machine that runs the provider.
type Self struct {
	MACs []string // lower case, colons
	UUID string   // DMI product uuid, lower case
}
