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

// Scope narrows a survey to one guest, one node, or both; the zero value asks for everything.
type Scope struct {
	Guest guest.VMID
	Node  string
}

// Survey looks through the whole cluster for what operations left half done, and changes nothing. It needs no state and no
// configuration. It reads afresh: the world is what counts on such a day. What may not be seen is said in the report.
func (c *Container) Survey(ctx context.Context, scope Scope) (preview.Report, error) {
	from, to := c.parkingRange()
	s := &survey{lists: c.Host, f: preview.SurveyFacts{
		Now: c.now().Unix(), ParkingFrom: from, ParkingTo: to, Guest: scope.Guest, Node: scope.Node, Occupied: map[guest.VMID]guest.Presence{},
	}}
	if err := s.gather(ctx); err != nil {
		return preview.Report{}, err
	}
	return preview.Survey(s.f), nil
}

// parkingRange is the range of spare VMIDs.
func (c *Container) parkingRange() (from, to guest.VMID) {
	from, to = c.ParkingFrom, c.ParkingTo
	if from == 0 {
		from = defaultParkingFrom
	}
	if to == 0 {
		to = max(from, defaultParkingTo)
	}
	return from, to
}

// survey is the reading of a whole cluster.
type survey struct {
	lists Reader
	f     preview.SurveyFacts
	perms map[string]map[string]bool
	login guest.Login

	mu     sync.Mutex // held while several reads add to f
	online map[string]bool
}

func (s *survey) gather(ctx context.Context) error {
	var err error
	if s.login, err = s.lists.Login(ctx); err != nil {
		return fmt.Errorf("cannot ask who we are: %w", err)
	}
	if s.perms, err = s.lists.AllPermissions(ctx); err != nil {
		return fmt.Errorf("cannot read our permissions: %w", err)
	}
	quorate := false
	if s.online, quorate, err = s.lists.Nodes(ctx); err != nil {
		return fmt.Errorf("cannot ask which nodes are online: %w", err)
	}
	if !quorate {
		s.unseen("the cluster has no quorum, so that other nodes may know more")
	}
	for name, up := range s.online {
		if !up {
			s.unseen("node %s does not answer: its guests and its own storages", name)
		}
	}
	if err := s.guests(ctx); err != nil {
		return err
	}
	s.volumes(ctx)
	s.replicated(ctx)
	s.missing(ctx)
	return nil
}

func (s *survey) unseen(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.f.Unseen = append(s.f.Unseen, fmt.Sprintf(format, args...))
}

// may reports whether the login holds a privilege on a path by an entry there or above.
func (s *survey) may(privilege, path string) bool {
	if s.login.RootTicket {
		return true
	}
	_, held := lasting(s.perms, path, "")[privilege]
	return held
}

// guests reads every guest that is listed: one request each, and the snapshots of those that have some.
func (s *survey) guests(ctx context.Context) error {
	rows, err := s.lists.Guests(ctx)
	if err != nil {
		return fmt.Errorf("cannot list the guests of the cluster: %w", err)
	}
	if s.f.AllSeen = s.may("VM.Audit", "/vms"); !s.f.AllSeen {
		s.unseen("guests that this login may not see (VM.Audit on /vms)")
	}
	s.f.Guests = make([]preview.SurveyedGuest, len(rows))
	each(len(rows), func(i int) {
		g := &s.f.Guests[i]
		g.Listed = rows[i]
		if !s.online[rows[i].Node] {
			return
		}
		if err := s.read(ctx, g); err != nil {
			s.unseen("the configuration of %s %d: %s", g.Kind, g.VMID, err)
		}
	})
	slices.SortFunc(s.f.Guests, func(a, b preview.SurveyedGuest) int { return int(a.VMID - b.VMID) })
	return nil
}

// read reads one guest's configuration: notes, storage keys, and every volume that it names anywhere.
func (s *survey) read(ctx context.Context, g *preview.SurveyedGuest) error {
	values, parent, err := s.lists.Named(ctx, g.Ref)
	if err != nil {
		return err
	}
	name := func(config guest.Config, section string) {
		for _, n := range guest.Volumes(g.Kind, config) {
			g.Named = append(g.Named, preview.SectionVolume{Named: n, Section: section})
		}
	}
	g.Values = map[string]string{}
	pending := guest.Config{Values: map[string]string{}}
	for key, all := range values {
		for i, value := range all {
			if i == 0 {
				g.Values[key] = value
			} else {
				pending.Values[key] = value
			}
		}
	}
	g.Lock, g.Guard = g.Values["lock"], g.Values["protection"] == "1"
	g.Bare = g.Lock != "" && len(g.Values) == 1
	g.Notes = guest.NotesOf(g.VMID, g.Values["description"])
	name(guest.Config{Values: g.Values}, "")
	name(pending, "pending")
	if parent != "" {
		snapshots, err := s.lists.Snapshots(ctx, g.Ref)
		if err != nil {
			return fmt.Errorf("its snapshots: %w", err)
		}
		for _, snapshot := range snapshots {
			name(snapshot.Config, snapshot.Name)
		}
	}
	g.Read = true
	return nil
}

// volumes lists what every storage of every node holds; a shared storage once.
func (s *survey) volumes(ctx context.Context) {
	type place struct {
		node    string
		storage guest.Storage
	}
	if !s.may("Datastore.Audit", "/storage") && !s.may("Datastore.Allocate", "/storage") {
		s.unseen("storages that this login may not see (Datastore.Audit on /storage)")
	}
	var places []place
	shared := map[string]bool{}
	for _, node := range sorted(s.online) {
		if !s.online[node] || s.f.Node != "" && s.f.Node != node {
			continue
		}
		storages, err := s.lists.Storages(ctx, node)
		if err != nil {
			s.unseen("the storages of node %s: %s", node, err)
			continue
		}
		for _, storage := range storages {
			switch holds := storage.Has("rootdir") || storage.Has("images") || storage.Has("backup") || storage.Has("vztmpl"); {
			case !holds || !storage.Enabled || storage.Shared && shared[storage.Name]:
			case !storage.Active:
				s.unseen("storage %s on node %s is not active", storage.Name, node)
			default:
				shared[storage.Name] = storage.Shared
				places = append(places, place{node, storage})
			}
		}
	}
	each(len(places), func(i int) {
		p := places[i]
		at := "/storage/" + p.storage.Name
		switch {
		case s.may("Datastore.Allocate", at):
		case !s.may("Datastore.Audit", at):
			s.unseen("the volumes on storage %s (Datastore.Audit on %s)", p.storage.Name, at)
		case p.storage.Has("backup") && !(s.may("Datastore.AllocateSpace", at) && s.may("VM.Backup", "/vms")):
			s.unseen("the archives on storage %s (Datastore.AllocateSpace on %s and VM.Backup on /vms)", p.storage.Name, at)
		}
		rows, err := s.lists.Content(ctx, p.node, p.storage.Name, 0)
		if err != nil {
			s.unseen("the content of storage %s on node %s: %s", p.storage.Name, p.node, err)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, row := range rows {
			v := preview.SurveyedVolume{StoredVolume: row, Node: p.node, Shared: p.storage.Shared, Type: p.storage.Type}
			if v.Shared {
				v.Node = ""
			}
			s.f.Volumes = append(s.f.Volumes, v)
		}
	})
}

func (s *survey) replicated(ctx context.Context) {
	known, err := s.lists.Replicated(ctx)
	if err != nil {
		s.unseen("the replication jobs: %s", err)
		s.f.Replicated = preview.Known[map[guest.VMID]bool]{Why: err.Error()}
		return
	}
	s.f.Replicated = preview.Known[map[guest.VMID]bool]{OK: s.f.AllSeen, Value: known}
}

// missing asks about every VMID that a record or a volume names and no list shows: gone, or hidden from this login.
func (s *survey) missing(ctx context.Context) {
	listed := map[guest.VMID]bool{0: true}
	for _, g := range s.f.Guests {
		listed[g.VMID] = true
	}
	ask := map[guest.VMID]bool{}
	for _, g := range s.f.Guests {
		if j := g.Notes.Journal; j != nil {
			ask[j.Guest], ask[j.Parking] = true, true
		}
		if about, ok := strings.CutPrefix(g.Name, preview.ParkingPrefix); ok {
			if id, err := strconv.Atoi(about); err == nil {
				ask[guest.VMID(id)] = true
			}
		}
	}
	for _, v := range s.f.Volumes {
		if v.Content == "rootdir" || v.Content == "images" {
			ask[v.Owner] = true
		}
	}
	for id := range ask {
		if listed[id] || id < 100 || id > 999999999 {
			continue
		}
		taken, err := s.lists.VMIDTaken(ctx, id)
		switch {
		case err != nil:
			s.f.Occupied[id] = guest.PresenceUnknown
			s.unseen("whether VMID %d is in use: %s", id, err)
		case taken:
			s.f.Occupied[id] = guest.PresenceUnknown
			s.unseen("guest %d, which exists and is hidden from this login (VM.Audit on /vms/%d)", id, id)
		default:
			s.f.Occupied[id] = guest.Absent
		}
	}
}

// each runs a job for every index, eight at a time.
func each(n int, job func(i int)) {
	var wait sync.WaitGroup
	limit := make(chan struct{}, 8)
	for i := range n {
		wait.Add(1)
		limit <- struct{}{}
		go func() {
			defer wait.Done()
			defer func() { <-limit }()
			job(i)
		}()
	}
	wait.Wait()
}

func sorted(names map[string]bool) []string {
	out := make([]string, 0, len(names))
	for name := range names {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
