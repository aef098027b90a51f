package guest

import "slices"

// Login says who the provider is to Proxmox.
type Login struct {
	User       string // "ci@pve!pvrx" or "root@pam"
	RootTicket bool   // exactly root@pam by password: may set what tokens may not
	Version    string // "9.2.1"
}

// Task is a running task on the node.
type Task struct {
	UPID, Type, ID, User string
	Started              int64
}

// FoundTask is a task that FindTask found.
type FoundTask struct {
	Found   bool
	UPID    string
	Running bool
	Exit    string // exit status once it has ended
	Good    bool   // OK or WARNINGS
}

// HA is the HA resource of a guest; the zero value says it has none.
type HA struct {
	Managed bool
	State   string
	Fields  map[string]string // every field, to be put back
}

// BackupJob is an enabled backup job.
type BackupJob struct {
	ID       string
	NextRun  int64  // seconds since 1970; 0 when not scheduled
	Covers   []VMID // guests it names, and the members of its pool
	All      bool   // it covers every guest that Excluded does not name, parking guests too
	Excluded []VMID
	Pool     string // it covers whatever is in this pool, "" for none
	Node     string // it covers only guests on this node, "" for any
}

// Reaches reports whether the job backs up a guest on a node that is, or would be, in a pool ("" for none).
func (j BackupJob) Reaches(id VMID, node, pool string) bool {
	switch {
	case j.Node != "" && j.Node != node, slices.Contains(j.Excluded, id):
		return false
	case j.All, j.Pool != "" && j.Pool == pool:
		return true
	}
	return slices.Contains(j.Covers, id)
}

// ACLEntry is one access control entry.
type ACLEntry struct {
	Path, Type, Who, Role string
	Propagate             bool
	// CanRestore is false when this login may not grant the role again; Missing then says why.
	CanRestore bool
	Missing    string
}

// Lease is an address that the cluster's IPAM holds for one of the guest's MACs.
type Lease struct{ Zone, VNet, MAC, IP string }
