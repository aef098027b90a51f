package recipe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
)

// neighbours looks through every other guest that can see the storages of this one's volumes: does it name one of them?
// One read a guest, made once for the run.
func (g *gathering) neighbours(ctx context.Context) error {
	rows, err := g.lists.Guests(ctx)
	if err != nil {
		return err
	}
	local := true
	for _, id := range g.ownVolumes() {
		if s, ok := g.f.Storages[id.Storage]; ok && s.Shared {
			local = false
		}
	}
	online, _, err := g.lists.Nodes(ctx)
	if err != nil {
		return err
	}
	var wait sync.WaitGroup
	var mutex sync.Mutex
	limit := make(chan struct{}, 8)
	for _, row := range rows {
		if row.VMID == g.seen.Ref.VMID || (local && row.Node != g.seen.Ref.Node) {
			continue
		}
		if g.own != nil && row.VMID == g.own.Parking {
			continue // our own parking guest holds them on purpose
		}
		if !online[row.Node] {
			mutex.Lock()
			g.f.Unseen = append(g.f.Unseen, row.VMID)
			mutex.Unlock()
			continue
		}
		wait.Add(1)
		go func() {
			defer wait.Done()
			limit <- struct{}{}
			defer func() { <-limit }()
			users, err := g.named(ctx, row)
			mutex.Lock()
			defer mutex.Unlock()
			if err != nil {
				if guest.OutcomeOf(err) != guest.OutcomeMissing { // destroyed meanwhile
					g.f.Unseen = append(g.f.Unseen, row.VMID)
				}
				return
			}
			for id, user := range users {
				g.f.Users[id] = append(g.f.Users[id], user...)
			}
		}()
	}
	wait.Wait()
	slices.Sort(g.f.Unseen)
	for _, users := range g.f.Users {
		slices.SortFunc(users, func(a, b preview.User) int {
			if a.VMID != b.VMID {
				return int(a.VMID - b.VMID)
			}
			return strings.Compare(a.Key+a.Section, b.Key+b.Section)
		})
	}
	return nil
}

// heard is one read of a neighbour.
type heard struct {
	values map[string][]string
	parent string
	err    error
}

// namedBy reads a neighbour, once for all questions.
func (g *gathering) namedBy(ctx context.Context, ref guest.Ref) (map[string][]string, string, error) {
	g.mutex.Lock()
	h, known := g.heard[ref]
	g.mutex.Unlock()
	if known {
		return h.values, h.parent, h.err
	}
	h.values, h.parent, h.err = g.lists.Named(ctx, ref)
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.heard == nil {
		g.heard = map[guest.Ref]heard{}
	}
	g.heard[ref] = h
	return h.values, h.parent, h.err
}

// named lists the volumes that a neighbour names: in its main section, pending, and in snapshots when it has any.
func (g *gathering) named(ctx context.Context, row guest.Listed) (map[guest.VolumeID][]preview.User, error) {
	values, parent, err := g.namedBy(ctx, row.Ref)
	if err != nil {
		return nil, err
	}
	users := map[guest.VolumeID][]preview.User{}
	add := func(config guest.Config, section string) {
		for _, n := range guest.Volumes(row.Kind, config) {
			users[n.ID] = append(users[n.ID], preview.User{VMID: row.VMID, Kind: row.Kind, Key: n.Key, Section: section})
		}
	}
	for key, all := range values {
		for i, value := range all {
			section := ""
			if i > 0 {
				section = "pending"
			}
			add(guest.Config{Values: map[string]string{key: value}}, section)
		}
	}
	if parent == "" {
		return users, nil
	}
	snapshots, err := g.lists.Snapshots(ctx, row.Ref)
	if err != nil {
		return nil, err
	}
	for _, s := range snapshots {
		add(s.Config, s.Name)
	}
	return users, nil
}

// ownVolumes are the volumes that any section of the guest names.
func (g *gathering) ownVolumes() []guest.VolumeID {
	var ids []guest.VolumeID
	add := func(c guest.Config) {
		for _, n := range guest.Volumes(g.seen.Ref.Kind, c) {
			ids = append(ids, n.ID)
		}
	}
	add(g.seen.Config)
	for _, s := range g.f.Guest.Snapshots {
		add(s.Config)
	}
	for _, p := range g.f.Guest.Pending {
		add(guest.Config{Values: map[string]string{p.Key: p.Value}})
	}
	return ids
}

// parking chooses the spare VMID, or keeps the one that the record names.
func (g *gathering) parking(ctx context.Context) error {
	g.f.Parking.Pool = g.c.ParkingPool
	if g.want.VM != nil && g.want.VM.Replaces != 0 && g.own == nil {
		return g.target(ctx)
	}
	if g.own != nil {
		g.f.Parking.VMID = g.own.Parking
		return nil
	}
	id, err := g.c.chooseParking(ctx, g.lists, g.seen.Ref, 0)
	if err != nil {
		g.f.Parking.Why = err.Error()
		return nil //nolint:nilerr // the judgement says it, as a blocker
	}
	g.f.Parking.VMID = id
	return nil
}

// The default range of spare VMIDs.
const (
	defaultParkingFrom guest.VMID = 900000
	defaultParkingTo   guest.VMID = 900999
)

// chooseParking finds a VMID for a parking guest: in the range, in use by nobody, and free of everything that a guest with
// that VMID would inherit or whose end would take with it: volumes, archives, access control entries, backup jobs (hazards
// B5, B10). Guests start at different places in the range, so that parallel runs rarely meet. after > 0 begins there.
func (c *Container) chooseParking(ctx context.Context, lists Reader, of guest.Ref, after guest.VMID) (guest.VMID, error) {
	from, to := c.ParkingFrom, c.ParkingTo
	if from == 0 {
		from = defaultParkingFrom
	}
	if to == 0 {
		to = max(from, defaultParkingTo)
	}
	burdened, err := burdened(ctx, lists, of.Node)
	if err != nil {
		return 0, err
	}
	span := to - from + 1
	start := of.VMID % span
	if after > from {
		start = (after - from) % span
	}
	for i := range span {
		id := from + (start+i)%span
		if burdened[id] || id == of.VMID {
			continue
		}
		taken, err := c.Host.VMIDTaken(ctx, id)
		if err != nil {
			return 0, fmt.Errorf("cannot ask whether VMID %d is free: %w", id, err)
		}
		if !taken {
			return id, nil
		}
	}
	return 0, fmt.Errorf("no VMID from %d to %d is free of guests, volumes, archives, access control entries and backup jobs", from, to)
}

// burdened are the VMIDs that something belongs to.
func burdened(ctx context.Context, lists Reader, node string) (map[guest.VMID]bool, error) {
	out := map[guest.VMID]bool{}
	guests, err := lists.Guests(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range guests {
		out[g.VMID] = true
	}
	storages, err := lists.Storages(ctx, node)
	if err != nil {
		return nil, err
	}
	for _, s := range storages {
		if !s.Enabled || !s.Active {
			continue
		}
		rows, err := lists.Content(ctx, node, s.Name, 0)
		if err != nil {
			continue // a storage the operation does not touch; those it touches are judged by storage_unavailable
		}
		for _, row := range rows {
			out[row.Owner] = true
		}
	}
	if entries, err := lists.ACL(ctx); err == nil {
		for _, e := range entries {
			var id guest.VMID
			if _, err := fmt.Sscanf(e.Path, "/vms/%d", &id); err == nil {
				out[id] = true
			}
		}
	}
	if jobs, err := lists.BackupJobs(ctx); err == nil {
		for _, j := range jobs {
			for _, id := range j.Covers {
				out[id] = true
			}
		}
	}
	return out, nil
}

// privileges asks what we may do on every path that the operation needs, and what of that lasts through the destroy.
func (g *gathering) privileges(ctx context.Context) error {
	p := preview.Privileges{OK: true, Held: map[string]map[string]bool{}, Lasting: map[string]map[string]bool{}}
	own, parking := vmPath(g.seen.Ref.VMID), vmPath(g.f.Parking.VMID)
	needs := preview.Needs
	switch {
	case g.want.VM != nil:
		needs = preview.NeedsVM
	case g.want.Instance != nil && g.removing:
		needs = preview.NeedsInstanceRemoval
	case g.want.Instance != nil:
		needs = preview.NeedsInstance
	}
	for _, need := range needs(*g.f, g.want) {
		for _, path := range need.Paths {
			if p.Held[path] != nil {
				continue
			}
			p.Held[path] = lasting(g.perms, path, "")
			p.Lasting[path] = p.Held[path]
			switch path {
			case own:
				exact, err := g.c.Host.Permissions(ctx, path)
				if err != nil {
					return fmt.Errorf("cannot ask for our permissions on %s: %w", path, err)
				}
				p.Held[path] = exact
				p.Lasting[path] = lasting(g.perms, path, path)
			case parking:
				p.Lasting[path] = lasting(g.perms, path, path)
			}
		}
	}
	for _, table := range []map[string]map[string]bool{p.Held, p.Lasting} {
		for _, privileges := range table {
			for name := range privileges {
				privileges[name] = true // here the question is only whether it is held
			}
		}
	}
	g.f.Privileges = p
	return nil
}
