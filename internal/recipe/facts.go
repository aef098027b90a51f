package recipe

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
)

// facts reads everything the judgement looks at. lists answers what concerns the whole cluster: at plan from one read made
// for the run, at apply afresh. own is our record when the operation is under way already: it is not somebody else's.
// Reads of one guest: pending, snapshots, permissions. The rest is shared.
func (c *Container) facts(ctx context.Context, lists Reader, seen Observation, want preview.Want, own *guest.Journal) (preview.Facts, error) {
	return c.factsFor(ctx, lists, seen, want, own, own != nil && own.Kind == kindRemove)
}

func (c *Container) factsFor(ctx context.Context, lists Reader, seen Observation, want preview.Want, own *guest.Journal, removing bool) (preview.Facts, error) {
	if seen.Presence == guest.Absent && want.Instance != nil && seen.Ref.Node == "" {
		seen.Ref.Node = want.Instance.Node
	}
	f, err := c.basics(ctx, lists, seen)
	if err != nil {
		return f, err
	}
	if own != nil && f.Journal.Journal != nil && f.Journal.Journal.Operation == own.Operation {
		f.Journal.Journal, f.Elsewhere = nil, nil
	}
	if seen.WrongType || !f.NodeOnline {
		return f, nil
	}
	g := &gathering{c: c, lists: lists, seen: seen, want: want, own: own, removing: removing, f: &f}
	steps := []func(context.Context) error{g.guest, g.storages, g.sources, g.cluster, g.parking, g.neighbours, g.instances, g.privileges}
	switch {
	case seen.Presence == guest.Present:
	case seen.Presence == guest.Absent && want.Instance != nil: // what is there is judged for a guest to come
		steps = []func(context.Context) error{g.storages, g.cluster, g.instances, g.privileges}
	default:
		return f, nil
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return f, err
		}
	}
	return f, nil
}

// basics are the facts that every judgement begins with.
func (c *Container) basics(ctx context.Context, lists Reader, seen Observation) (preview.Facts, error) {
	f := preview.Facts{
		Presence: seen.Presence, WrongType: seen.WrongType, Self: c.Self, Now: c.now().Unix(),
		Guest:    guest.Guest{Ref: seen.Ref, Running: seen.Running, Config: seen.Config},
		Storages: map[string]guest.Storage{}, Volumes: map[guest.VolumeID]guest.StoredVolume{}, Listed: map[string]bool{},
		Users: map[guest.VolumeID][]preview.User{}, Linked: map[guest.VolumeID][]guest.VMID{},
	}
	var err error
	if f.Login, err = lists.Login(ctx); err != nil {
		return f, fmt.Errorf("cannot ask who we are: %w", err)
	}
	online, quorate, err := lists.Nodes(ctx)
	if err != nil {
		return f, fmt.Errorf("cannot ask which nodes are online: %w", err)
	}
	f.Quorate, f.NodeOnline = quorate, online[seen.Ref.Node]
	f.Journal = guest.NotesOf(seen.Ref.VMID, seen.Config.Description())
	if seen.Journal != nil {
		f.Elsewhere = seen.Journal
		if f.Journal.Journal != nil {
			f.Journal.Journal, f.Elsewhere = seen.Journal, nil // the head, wherever it was written
		}
	}
	return f, nil
}

// gathering is the reading of one guest's facts.
type gathering struct {
	c     *Container
	lists Reader
	seen  Observation
	want  preview.Want
	own   *guest.Journal
	f     *preview.Facts
	perms map[string]map[string]bool
	heard map[guest.Ref]heard // what neighbours name, each read once
	mutex sync.Mutex
	// removing says that the guest is to be removed, and so which rights are asked for.
	removing bool
}

func (g *gathering) guest(ctx context.Context) (err error) {
	ref := g.seen.Ref
	if g.f.Guest.Pending, err = g.c.Host.Pending(ctx, ref); err != nil {
		return fmt.Errorf("cannot read the pending changes of %s %d: %w", ref.Kind, ref.VMID, err)
	}
	if g.f.Guest.Snapshots, err = g.c.Host.Snapshots(ctx, ref); err != nil {
		return fmt.Errorf("cannot read the snapshots of %s %d: %w", ref.Kind, ref.VMID, err)
	}
	return nil
}

// storages reads the node's storages and the content of all that answer: sizes, owners, backups, templates, leftovers.
func (g *gathering) storages(ctx context.Context) error {
	list, err := g.lists.Storages(ctx, g.seen.Ref.Node)
	if err != nil {
		return fmt.Errorf("cannot list the storages of %s: %w", g.seen.Ref.Node, err)
	}
	var wait sync.WaitGroup
	var mutex sync.Mutex
	limit := make(chan struct{}, 8)
	for _, s := range list {
		g.f.Storages[s.Name] = s
		if !s.Enabled || !s.Active {
			continue
		}
		wait.Add(1)
		go func() {
			defer wait.Done()
			limit <- struct{}{}
			defer func() { <-limit }()
			rows, err := g.lists.Content(ctx, g.seen.Ref.Node, s.Name, 0)
			if err != nil {
				return // not in Listed: the judgement says which volumes that leaves unknown
			}
			mutex.Lock()
			defer mutex.Unlock()
			g.f.Listed[s.Name] = true
			for _, row := range rows {
				g.f.Volumes[row.ID] = row
			}
		}()
	}
	wait.Wait()
	for _, row := range g.f.Volumes {
		if v, err := guest.ReadVolume(g.f.Storages[row.ID.Storage].Type, row.ID); err == nil && v.Linked {
			g.f.Linked[v.Base] = append(g.f.Linked[v.Base], row.Owner)
		}
	}
	g.f.TemplateKnown = guest.PresenceUnknown
	if g.want.Template != "" {
		g.f.TemplateKnown = guest.Absent
		if id, err := guest.ParseVolumeID(g.want.Template); err == nil {
			if row, ok := g.f.Volumes[id]; ok {
				g.f.Template, g.f.TemplateKnown = row, guest.Present
			}
		}
	}
	return nil
}

// cluster reads what the cluster keeps beside the configuration.
func (g *gathering) cluster(ctx context.Context) error {
	id, node := g.seen.Ref.VMID, g.seen.Ref.Node
	f := g.f
	var err error
	if g.perms, err = g.lists.AllPermissions(ctx); err != nil {
		return fmt.Errorf("cannot read our permissions: %w", err)
	}
	f.AllSeen = g.held("/vms", "VM.Audit")
	f.Tasks = known(ctx, g, "Sys.Audit", "/nodes/"+node, func(ctx context.Context) ([]guest.Task, error) { return g.lists.Tasks(ctx, node) })
	f.HA = known(ctx, g, "Sys.Audit", "/", func(ctx context.Context) (guest.HA, error) {
		all, err := g.lists.HA(ctx)
		return all[id], err
	})
	f.Replicated = known(ctx, g, "VM.Audit", vmPath(id), func(ctx context.Context) (bool, error) {
		all, err := g.lists.Replicated(ctx)
		return all[id], err
	})
	f.Jobs = known(ctx, g, "Sys.Audit", "/", func(ctx context.Context) ([]guest.BackupJob, error) { return g.lists.BackupJobs(ctx) })
	f.Pool = g.pool(ctx)
	f.ACL = g.acl(ctx)
	f.Leases = g.leases(ctx)
	f.Firewall = preview.Known[preview.Firewall]{Why: "read when the operation begins"}
	f.Backups = g.backups()
	if g.want.Backup != nil {
		f.BackupStorage = g.room(ctx)
	}
	options, err := g.lists.ClusterOptions(ctx)
	if err != nil {
		return fmt.Errorf("cannot read the datacenter options: %w", err)
	}
	f.RegisteredTags = g.forbiddenTags(options)
	if f.Zones, err = g.lists.Zones(ctx); err != nil {
		return fmt.Errorf("cannot read the SDN zones: %w", err)
	}
	return nil
}

// held reports whether we hold a privilege on a path by an entry there or above, without asking for the path.
func (g *gathering) held(path, privilege string) bool {
	_, ok := lasting(g.perms, path, "")[privilege]
	return ok
}

// lasting are the privileges on a path that hang on entries there or above, but on none at or below without. An entry
// further down wins over those above it, as in Proxmox.
func lasting(all map[string]map[string]bool, path, without string) map[string]bool {
	for at, exact := path, true; ; exact = false {
		if privileges, ok := all[at]; ok && (without == "" || at != without) {
			out := map[string]bool{}
			for p, propagates := range privileges {
				if exact || propagates {
					out[p] = propagates
				}
			}
			return out
		}
		if at == "/" {
			return map[string]bool{}
		}
		if at = at[:strings.LastIndex(at, "/")]; at == "" {
			at = "/"
		}
	}
}

// known reads a list that the login must hold a privilege to see: without it an empty answer means nothing (hazard B11).
func known[T any](ctx context.Context, g *gathering, privilege, path string, read func(context.Context) (T, error)) preview.Known[T] {
	if !g.held(path, privilege) {
		return preview.Known[T]{Why: privilege + " on " + path}
	}
	value, err := read(ctx)
	if err != nil {
		return preview.Known[T]{Why: err.Error()}
	}
	return preview.Known[T]{OK: true, Value: value}
}

func (g *gathering) pool(ctx context.Context) preview.Known[string] {
	pools, err := g.lists.Pools(ctx)
	if err != nil {
		return preview.Known[string]{Why: err.Error()}
	}
	pool := pools[g.seen.Ref.VMID]
	if pool == "" && !g.held("/pool", "Pool.Audit") {
		return preview.Known[string]{Why: "Pool.Audit on /pool"}
	}
	return preview.Known[string]{OK: true, Value: pool}
}

func (g *gathering) acl(ctx context.Context) preview.Known[[]guest.ACLEntry] {
	id := g.seen.Ref.VMID
	if !g.held("/access/acl", "Sys.Audit") && !g.held("/access", "Sys.Audit") && !g.held("/vms", "Permissions.Modify") && !g.held(vmPath(id), "Permissions.Modify") {
		return preview.Known[[]guest.ACLEntry]{Why: "Sys.Audit on /access (or Permissions.Modify on /vms)"}
	}
	all, err := g.lists.ACL(ctx)
	if err != nil {
		return preview.Known[[]guest.ACLEntry]{Why: err.Error()}
	}
	var mine []guest.ACLEntry
	for _, e := range all {
		if e.Path == vmPath(id) {
			mine = append(mine, e)
		}
	}
	return preview.Known[[]guest.ACLEntry]{OK: true, Value: mine}
}

func (g *gathering) leases(ctx context.Context) preview.Known[[]guest.Lease] {
	all, err := g.lists.Leases(ctx)
	if err != nil {
		return preview.Known[[]guest.Lease]{Why: err.Error()}
	}
	macs := map[string]bool{}
	networks, _ := g.seen.Config.Networks()
	for _, n := range networks {
		macs[strings.ToUpper(n.MAC())] = true
	}
	var mine []guest.Lease
	for _, l := range all {
		if macs[strings.ToUpper(l.MAC)] {
			mine = append(mine, l)
		}
	}
	return preview.Known[[]guest.Lease]{OK: true, Value: mine}
}

// backups are the guest's archives on every storage that keeps archives.
func (g *gathering) backups() preview.Known[[]guest.StoredVolume] {
	id := g.seen.Ref.VMID
	if !g.held(vmPath(id), "VM.Backup") {
		return preview.Known[[]guest.StoredVolume]{Why: "VM.Backup on " + vmPath(id)}
	}
	for name, s := range g.f.Storages {
		if !s.Has("backup") || !s.Enabled || !s.Active {
			continue
		}
		if !g.f.Listed[name] {
			return preview.Known[[]guest.StoredVolume]{Why: "storage " + name + " could not be listed"}
		}
		if !g.held("/storage/"+name, "Datastore.Audit") && !g.held("/storage/"+name, "Datastore.AllocateSpace") {
			return preview.Known[[]guest.StoredVolume]{Why: "Datastore.Audit on /storage/" + name}
		}
	}
	var mine []guest.StoredVolume
	for _, row := range g.f.Volumes {
		if row.Content == "backup" && row.Owner == id {
			mine = append(mine, row)
		}
	}
	slices.SortFunc(mine, func(a, b guest.StoredVolume) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	return preview.Known[[]guest.StoredVolume]{OK: true, Value: mine}
}

func (g *gathering) room(ctx context.Context) preview.Known[preview.BackupRoom] {
	name := g.want.Backup.Storage
	s, exists := g.f.Storages[name]
	room := preview.BackupRoom{Exists: exists && s.Has("backup"), Available: s.Available, ProtectedLimit: -1}
	if !exists {
		return preview.Known[preview.BackupRoom]{OK: true, Value: room}
	}
	definition, err := g.lists.StorageConfig(ctx, name)
	if err != nil {
		return preview.Known[preview.BackupRoom]{Why: err.Error()}
	}
	// Proxmox's default: five for logins without Datastore.Allocate, none for the others.
	if !g.held("/storage/"+name, "Datastore.Allocate") {
		room.ProtectedLimit = 5
	}
	if text, ok := definition["max-protected-backups"]; ok {
		if n, err := strconv.Atoi(text); err == nil {
			room.ProtectedLimit = n
		}
	}
	for _, row := range g.f.Volumes {
		if row.ID.Storage == name && row.Content == "backup" && row.Owner == g.seen.Ref.VMID && row.Protected {
			room.ProtectedNow++
		}
	}
	return preview.Known[preview.BackupRoom]{OK: true, Value: room}
}

// forbiddenTags are the guest's tags that the datacenter's policy would not let us set again (hazard B13).
func (g *gathering) forbiddenTags(options map[string]string) []string {
	if g.held("/", "Sys.Modify") {
		return nil
	}
	tags := strings.FieldsFunc(g.seen.Config.Values["tags"], func(r rune) bool { return r == ';' || r == ',' || r == ' ' })
	registered := strings.FieldsFunc(options["registered-tags"], func(r rune) bool { return r == ';' || r == ',' || r == ' ' })
	allow, listed := "free", ""
	for _, part := range strings.Split(options["user-tag-access"], ",") {
		switch key, value, _ := strings.Cut(part, "="); key {
		case "user-allow":
			allow = value
		case "user-allow-list":
			listed = value
		}
	}
	var forbidden []string
	for _, tag := range tags {
		reserved := slices.Contains(registered, tag)
		switch {
		case reserved, allow == "none":
			forbidden = append(forbidden, tag)
		case allow == "list" && !slices.Contains(strings.Split(listed, ";"), tag):
			forbidden = append(forbidden, tag)
		}
	}
	return forbidden
}
