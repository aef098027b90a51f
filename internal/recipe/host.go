// Package recipe says what an operation does: from what was observed and what is wanted it builds a preview and the
// ordered stages of the operation. What it needs of Proxmox is the Host interface; internal/proxmox satisfies it.
package recipe

import (
	"context"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// Host is Proxmox as a recipe needs it. Reads return values; a read that cannot be answered returns an error, never an
// empty value. Each writing method sends its request once, follows a task to its end on the node in its UPID and says by
// the error's guest.Outcome what is known; nil means done. Warnings of a task are returned, not swallowed.
type Host interface {
	Reader
	Writer
}

// Reader is the reading half.
type Reader interface {
	// Login says who we are and which version answers.
	Login(ctx context.Context) (guest.Login, error)
	// Guests lists all guests of the cluster that the login may see (one call of cluster/resources).
	Guests(ctx context.Context) ([]guest.Listed, error)
	// Nodes lists the nodes: name -> online; quorate says whether the cluster has quorum.
	Nodes(ctx context.Context) (online map[string]bool, quorate bool, err error)
	// Machine returns what a node's kernel calls its processor: "x86_64", "aarch64".
	Machine(ctx context.Context, node string) (string, error)
	// VMIDTaken asks /cluster/nextid?vmid=N whether a VMID is in use by any guest, also one we may not see.
	VMIDTaken(ctx context.Context, id guest.VMID) (bool, error)
	// NextVMID returns the lowest free VMID at or above from.
	NextVMID(ctx context.Context, from guest.VMID) (guest.VMID, error)

	// Config reads the current configuration (current=1) of a guest; OutcomeMissing when there is none on that node.
	Config(ctx context.Context, ref guest.Ref) (guest.Config, error)
	// Pending lists pending changes.
	Pending(ctx context.Context, ref guest.Ref) ([]guest.Change, error)
	// Snapshots lists snapshots, each with its configuration.
	Snapshots(ctx context.Context, ref guest.Ref) ([]guest.Snapshot, error)
	// Named returns every value of every key of a guest, current and pending, in one read (/pending), and whether it has a
	// parent snapshot. A shared reader answers from one read a run: plans look through all guests for volumes of ours.
	Named(ctx context.Context, ref guest.Ref) (values map[string][]string, parent string, err error)
	// DiskTotal is the size that status/current reports for the root file system: of the file system while it runs.
	DiskTotal(ctx context.Context, ref guest.Ref) (guest.Bytes, error)
	// Running asks status/current; lock is the lock word, "" for none.
	Running(ctx context.Context, ref guest.Ref) (running bool, lock string, err error)
	// Firewall reads everything the guest's own firewall holds.
	Firewall(ctx context.Context, ref guest.Ref) (guest.Firewall, error)
	// Addresses returns MAC -> addresses of a running container's interfaces (loopback left out).
	Addresses(ctx context.Context, ref guest.Ref) (map[string][]string, error)

	// Storages lists the storages of a node with their state.
	Storages(ctx context.Context, node string) ([]guest.Storage, error)
	// Content lists a storage's content; owner 0 lists everything the login may see.
	Content(ctx context.Context, node, storage string, owner guest.VMID) ([]guest.StoredVolume, error)
	// Tasks lists running tasks of a node.
	Tasks(ctx context.Context, node string) ([]guest.Task, error)
	// FindTask looks for the newest task of this login with that type and guest that started at or after since.
	// state: Absent (none), Present; ended says whether it has ended, exit its exit status.
	FindTask(ctx context.Context, node, taskType string, id guest.VMID, since int64) (FoundTask, error)

	// HA returns the HA resource of every guest that has one, by VMID.
	HA(ctx context.Context) (map[guest.VMID]guest.HA, error)
	// Replicated returns the guests that have replication jobs.
	Replicated(ctx context.Context) (map[guest.VMID]bool, error)
	// BackupJobs lists the enabled backup jobs with the guests they cover and their next run.
	BackupJobs(ctx context.Context) ([]guest.BackupJob, error)
	// ACL lists access control entries by path. Missing tells which entries this login could not grant again.
	ACL(ctx context.Context) ([]guest.ACLEntry, error)
	// Pools returns the pool of each guest that is in one, as far as the login may see.
	Pools(ctx context.Context) (map[guest.VMID]string, error)
	// Permissions returns the login's effective privileges on a path: a key is held there, its value says whether it
	// reaches the paths below (propagates).
	Permissions(ctx context.Context, path string) (map[string]bool, error)
	// AllPermissions returns the same for every path that carries an entry for this login.
	AllPermissions(ctx context.Context) (map[string]map[string]bool, error)
	// Leases lists what the cluster's IPAM holds, for all guests.
	Leases(ctx context.Context) ([]guest.Lease, error)
	// ClusterOptions returns datacenter options (tag policy, next-id range and the like).
	ClusterOptions(ctx context.Context) (map[string]string, error)
	// StorageConfig returns the datacenter's definition of a storage (max-protected-backups and the like).
	StorageConfig(ctx context.Context, storage string) (map[string]string, error)
	// Zones returns the SDN zone of each bridge or vnet that is known; plain bridges belong to "localnetwork".
	Zones(ctx context.Context) (map[string]string, error)
}

// What travels through the port is plain facts of package guest; recipes name them by these words.
type (
	FoundTask = guest.FoundTask
	Move      = guest.Move
	Backup    = guest.Backup
)

// Writer is the writing half.
type Writer interface {
	// SetConfig changes keys (set) and removes keys (delete) of a container in one request bound to digest.
	SetConfig(ctx context.Context, ref guest.Ref, set map[string]string, remove []string, digest string) error
	// CreateContainer creates a container; params are Proxmox's own (ostemplate, rootfs, hostname, ...). It never starts it.
	CreateContainer(ctx context.Context, ref guest.Ref, params map[string]string) (warnings []string, err error)
	// RestoreContainer creates a container from an archive on a free VMID.
	RestoreContainer(ctx context.Context, ref guest.Ref, archive string, params map[string]string) (warnings []string, err error)
	// Destroy deletes a guest without purge and without destroying unreferenced disks. announced names what the caller
	// knows it would destroy: the volumes the guest still owns. The port refuses when the live config names another.
	Destroy(ctx context.Context, ref guest.Ref, announced []guest.VolumeID) (warnings []string, err error)
	// MoveVolume hands a volume to another guest under a key, by renaming; both digests are required.
	MoveVolume(ctx context.Context, m Move) error
	// DropUnused destroys the volume of an unusedN key that must still hold volume.
	DropUnused(ctx context.Context, ref guest.Ref, key string, volume guest.VolumeID, digest string) error
	// DeleteSnapshot removes a snapshot.
	DeleteSnapshot(ctx context.Context, ref guest.Ref, name string) error
	// Resize grows a volume to an absolute size.
	Resize(ctx context.Context, ref guest.Ref, key string, size guest.Bytes) error
	// Start starts a guest; Shutdown asks it to stop within seconds; Stop ends it at once.
	Start(ctx context.Context, ref guest.Ref) error
	Shutdown(ctx context.Context, ref guest.Ref, seconds int) error
	Stop(ctx context.Context, ref guest.Ref) error
	// Backup makes a protected archive that prunes nothing and returns its volume id.
	Backup(ctx context.Context, b Backup) (guest.VolumeID, error)
	// RemoveArchive deletes an archive that an operation made of the guest, its protection first. The port refuses any other.
	RemoveArchive(ctx context.Context, ref guest.Ref, archive guest.VolumeID) error
	// SetFirewall replaces a guest's firewall by what is given and verifies it by reading it back.
	SetFirewall(ctx context.Context, ref guest.Ref, fw guest.Firewall) error
	// AddToPool puts a guest into a pool; move takes it out of the one that it is in, which else is refused.
	AddToPool(ctx context.Context, pool string, id guest.VMID, move bool) error
	// Grant puts back an access control entry.
	Grant(ctx context.Context, e guest.ACLEntry) error
	// RemoveHA removes a guest's HA resource with purge=0; AddHA adds it again with all its fields.
	RemoveHA(ctx context.Context, ref guest.Ref) error
	AddHA(ctx context.Context, ref guest.Ref, fields map[string]string) error
	VMWriter
}

// VMWriter is what only virtual machines need.
type VMWriter interface {
	// CreateVM creates a VM, left off; its disks are new ones.
	CreateVM(ctx context.Context, ref guest.Ref, params map[string]string) (warnings []string, err error)
	// ChangeVM sets and removes keys as a task. A removed drive becomes unusedN; a good end does not prove the removal.
	ChangeVM(ctx context.Context, ref guest.Ref, set map[string]string, remove []string, digest string) (warnings []string, err error)
	// Revert takes pending changes of keys back.
	Revert(ctx context.Context, ref guest.Ref, keys []string, digest string) error
	// TakeSnapshot takes a snapshot of the disks; RollbackSnapshot returns disks and settings to it.
	TakeSnapshot(ctx context.Context, ref guest.Ref, name, description string) error
	RollbackSnapshot(ctx context.Context, ref guest.Ref, name string) error
	// RenameInBackupJob lets a backup job that names a guest by its VMID name another one instead.
	RenameInBackupJob(ctx context.Context, id string, from, to guest.VMID) error
	// RegenerateCloudInit makes the cloud-init drive anew; PingAgent asks the agent for a sign of life.
	RegenerateCloudInit(ctx context.Context, ref guest.Ref) error
	PingAgent(ctx context.Context, ref guest.Ref) error
}
