package run

import (
	"context"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// Shared answers the cluster-wide lists of a recipe.Reader from one read each, made when first asked for and kept for the
// life of the process: a plan for many guests asks as little as a plan for one. What is about one guest passes through to
// the reader below. The maps and slices it returns are shared by all callers, who must not change them.
//
// Only plans may use it; an apply looks at the world itself.
type Shared struct {
	recipe.Reader

	login       once[struct{}, guest.Login]
	guests      once[struct{}, []guest.Listed]
	nodes       once[struct{}, nodes]
	ha          once[struct{}, map[guest.VMID]guest.HA]
	replicated  once[struct{}, map[guest.VMID]bool]
	jobs        once[struct{}, []guest.BackupJob]
	acl         once[struct{}, []guest.ACLEntry]
	pools       once[struct{}, map[guest.VMID]string]
	permissions once[struct{}, map[string]map[string]bool]
	leases      once[struct{}, []guest.Lease]
	options     once[struct{}, map[string]string]
	zones       once[struct{}, map[string]string]
	storage     once[string, map[string]string]
	storages    once[string, []guest.Storage]
	tasks       once[string, []guest.Task]
	content     once[place, []guest.StoredVolume]
	named       once[guest.Ref, named]
}

// named is what a guest names, in any section of its configuration.
type named struct {
	values map[string][]string
	parent string
}

type nodes struct {
	online  map[string]bool
	quorate bool
}

// place is a storage as one node sees it.
type place struct{ node, storage string }

// NewShared returns a Shared over a reader.
func NewShared(below recipe.Reader) *Shared { return &Shared{Reader: below} }

var _ recipe.Reader = (*Shared)(nil)

// Login says who we are and which version answers.
func (s *Shared) Login(ctx context.Context) (guest.Login, error) {
	return s.login.get(ctx, struct{}{}, s.Reader.Login)
}

// Guests lists all guests that the login may see.
func (s *Shared) Guests(ctx context.Context) ([]guest.Listed, error) {
	return s.guests.get(ctx, struct{}{}, s.Reader.Guests)
}

// Nodes lists the nodes and says whether the cluster has quorum.
func (s *Shared) Nodes(ctx context.Context) (online map[string]bool, quorate bool, err error) {
	n, err := s.nodes.get(ctx, struct{}{}, func(ctx context.Context) (n nodes, err error) {
		n.online, n.quorate, err = s.Reader.Nodes(ctx)
		return n, err
	})
	return n.online, n.quorate, err
}

// HA returns the HA resource of every guest that has one.
func (s *Shared) HA(ctx context.Context) (map[guest.VMID]guest.HA, error) {
	return s.ha.get(ctx, struct{}{}, s.Reader.HA)
}

// Replicated returns the guests that have replication jobs.
func (s *Shared) Replicated(ctx context.Context) (map[guest.VMID]bool, error) {
	return s.replicated.get(ctx, struct{}{}, s.Reader.Replicated)
}

// BackupJobs lists the enabled backup jobs.
func (s *Shared) BackupJobs(ctx context.Context) ([]guest.BackupJob, error) {
	return s.jobs.get(ctx, struct{}{}, s.Reader.BackupJobs)
}

// ACL lists access control entries.
func (s *Shared) ACL(ctx context.Context) ([]guest.ACLEntry, error) {
	return s.acl.get(ctx, struct{}{}, s.Reader.ACL)
}

// Pools returns the pool of each guest that is in one.
func (s *Shared) Pools(ctx context.Context) (map[guest.VMID]string, error) {
	return s.pools.get(ctx, struct{}{}, s.Reader.Pools)
}

// AllPermissions returns the login's privileges for every path that carries an entry for it.
func (s *Shared) AllPermissions(ctx context.Context) (map[string]map[string]bool, error) {
	return s.permissions.get(ctx, struct{}{}, s.Reader.AllPermissions)
}

// Leases lists what the cluster's IPAM holds.
func (s *Shared) Leases(ctx context.Context) ([]guest.Lease, error) {
	return s.leases.get(ctx, struct{}{}, s.Reader.Leases)
}

// ClusterOptions returns the datacenter's options.
func (s *Shared) ClusterOptions(ctx context.Context) (map[string]string, error) {
	return s.options.get(ctx, struct{}{}, s.Reader.ClusterOptions)
}

// Zones returns the SDN zone of each bridge or vnet that is known.
func (s *Shared) Zones(ctx context.Context) (map[string]string, error) {
	return s.zones.get(ctx, struct{}{}, s.Reader.Zones)
}

// StorageConfig returns the datacenter's definition of a storage.
func (s *Shared) StorageConfig(ctx context.Context, storage string) (map[string]string, error) {
	return s.storage.get(ctx, storage, func(ctx context.Context) (map[string]string, error) {
		return s.Reader.StorageConfig(ctx, storage)
	})
}

// Storages lists the storages of a node.
func (s *Shared) Storages(ctx context.Context, node string) ([]guest.Storage, error) {
	return s.storages.get(ctx, node, func(ctx context.Context) ([]guest.Storage, error) {
		return s.Reader.Storages(ctx, node)
	})
}

// Tasks lists the running tasks of a node.
func (s *Shared) Tasks(ctx context.Context, node string) ([]guest.Task, error) {
	return s.tasks.get(ctx, node, func(ctx context.Context) ([]guest.Task, error) {
		return s.Reader.Tasks(ctx, node)
	})
}

// Content lists what a storage holds, of one owner or (0) of all: one whole list serves every owner.
func (s *Shared) Content(ctx context.Context, node, storage string, owner guest.VMID) ([]guest.StoredVolume, error) {
	all, err := s.content.get(ctx, place{node, storage}, func(ctx context.Context) ([]guest.StoredVolume, error) {
		return s.Reader.Content(ctx, node, storage, 0)
	})
	if err != nil || owner == 0 {
		return all, err
	}
	var owned []guest.StoredVolume
	for _, volume := range all {
		if volume.Owner == owner {
			owned = append(owned, volume)
		}
	}
	return owned, nil
}

// Named returns every value of every key of a guest: a plan looks through all neighbours for volumes of its own guest.
func (s *Shared) Named(ctx context.Context, ref guest.Ref) (values map[string][]string, parent string, err error) {
	n, err := s.named.get(ctx, ref, func(ctx context.Context) (n named, err error) {
		n.values, n.parent, err = s.Reader.Named(ctx, ref)
		return n, err
	})
	return n.values, n.parent, err
}
