package run

import (
	"context"
	"sync"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// counted is a reader that counts what it is asked. Methods that it does not have panic: they must not be called.
type counted struct {
	recipe.Reader
	mu    sync.Mutex
	calls map[string]int
}

func (c *counted) note(call string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == nil {
		c.calls = map[string]int{}
	}
	c.calls[call]++
}

func (c *counted) Login(context.Context) (guest.Login, error) {
	c.note("login")
	return guest.Login{}, nil
}

func (c *counted) Guests(context.Context) ([]guest.Listed, error) { c.note("guests"); return nil, nil }

func (c *counted) Nodes(context.Context) (map[string]bool, bool, error) {
	c.note("nodes")
	return map[string]bool{"pve1": true}, true, nil
}

func (c *counted) HA(context.Context) (map[guest.VMID]guest.HA, error) { c.note("ha"); return nil, nil }

func (c *counted) Replicated(context.Context) (map[guest.VMID]bool, error) {
	c.note("replicated")
	return nil, nil
}

func (c *counted) BackupJobs(context.Context) ([]guest.BackupJob, error) {
	c.note("jobs")
	return nil, nil
}

func (c *counted) ACL(context.Context) ([]guest.ACLEntry, error) { c.note("acl"); return nil, nil }

func (c *counted) Pools(context.Context) (map[guest.VMID]string, error) {
	c.note("pools")
	return nil, nil
}

func (c *counted) AllPermissions(context.Context) (map[string]map[string]bool, error) {
	c.note("permissions")
	return nil, nil
}

func (c *counted) Leases(context.Context) ([]guest.Lease, error) { c.note("leases"); return nil, nil }

func (c *counted) ClusterOptions(context.Context) (map[string]string, error) {
	c.note("options")
	return nil, nil
}

func (c *counted) Zones(context.Context) (map[string]string, error) { c.note("zones"); return nil, nil }

func (c *counted) StorageConfig(_ context.Context, storage string) (map[string]string, error) {
	c.note("config " + storage)
	return nil, nil
}

func (c *counted) Storages(_ context.Context, node string) ([]guest.Storage, error) {
	c.note("storages " + node)
	return nil, nil
}

func (c *counted) Tasks(_ context.Context, node string) ([]guest.Task, error) {
	c.note("tasks " + node)
	return nil, nil
}

func (c *counted) Content(_ context.Context, node, storage string, owner guest.VMID) ([]guest.StoredVolume, error) {
	c.note("content " + node + " " + storage + " " + owner.String())
	return []guest.StoredVolume{{Owner: 5001}, {Owner: 5002}, {Owner: 5001}}, nil
}

func (c *counted) Named(_ context.Context, ref guest.Ref) (map[string][]string, string, error) {
	c.note("named " + ref.VMID.String())
	return nil, "", nil
}

func (c *counted) Config(_ context.Context, ref guest.Ref) (guest.Config, error) {
	c.note("config of " + ref.VMID.String())
	return guest.Config{}, nil
}

func TestSharedAsksForEachListOnceAndOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	below := &counted{}
	s := NewShared(below)
	if len(below.calls) != 0 {
		t.Fatalf("asked before anybody wanted to know: %v", below.calls)
	}
	lists := map[string]func(ctx context.Context) error{
		"login":                func(ctx context.Context) error { _, err := s.Login(ctx); return err },
		"guests":               func(ctx context.Context) error { _, err := s.Guests(ctx); return err },
		"nodes":                func(ctx context.Context) error { _, _, err := s.Nodes(ctx); return err },
		"ha":                   func(ctx context.Context) error { _, err := s.HA(ctx); return err },
		"replicated":           func(ctx context.Context) error { _, err := s.Replicated(ctx); return err },
		"jobs":                 func(ctx context.Context) error { _, err := s.BackupJobs(ctx); return err },
		"acl":                  func(ctx context.Context) error { _, err := s.ACL(ctx); return err },
		"pools":                func(ctx context.Context) error { _, err := s.Pools(ctx); return err },
		"permissions":          func(ctx context.Context) error { _, err := s.AllPermissions(ctx); return err },
		"leases":               func(ctx context.Context) error { _, err := s.Leases(ctx); return err },
		"options":              func(ctx context.Context) error { _, err := s.ClusterOptions(ctx); return err },
		"zones":                func(ctx context.Context) error { _, err := s.Zones(ctx); return err },
		"config pbs":           func(ctx context.Context) error { _, err := s.StorageConfig(ctx, "pbs"); return err },
		"storages pve1":        func(ctx context.Context) error { _, err := s.Storages(ctx, "pve1"); return err },
		"storages pve2":        func(ctx context.Context) error { _, err := s.Storages(ctx, "pve2"); return err },
		"tasks pve1":           func(ctx context.Context) error { _, err := s.Tasks(ctx, "pve1"); return err },
		"named 5002":           func(ctx context.Context) error { _, _, err := s.Named(ctx, guest.Ref{VMID: 5002}); return err },
		"content pve1 local 0": func(ctx context.Context) error { _, err := s.Content(ctx, "pve1", "local", 5001); return err },
	}
	var wg sync.WaitGroup
	for range 8 {
		for _, ask := range lists {
			wg.Go(func() {
				if err := ask(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	for call := range lists {
		if below.calls[call] != 1 {
			t.Errorf("%s was asked %d times, want once", call, below.calls[call])
		}
	}
	if len(below.calls) != len(lists) {
		t.Errorf("asked: %v", below.calls)
	}
}

func TestSharedPassesAGuestsOwnReadsThrough(t *testing.T) {
	t.Parallel()
	below := &counted{}
	s := NewShared(below)
	for range 3 {
		if _, err := s.Config(t.Context(), guest.Ref{VMID: 5001}); err != nil {
			t.Fatal(err)
		}
	}
	if below.calls["config of 5001"] != 3 {
		t.Errorf("config was read %d times, want afresh each time", below.calls["config of 5001"])
	}
}

func TestSharedFiltersContentByOwner(t *testing.T) {
	t.Parallel()
	s := NewShared(&counted{})
	for owner, want := range map[guest.VMID]int{0: 3, 5001: 2, 5002: 1, 5003: 0} {
		rows, err := s.Content(t.Context(), "pve1", "local", owner)
		if err != nil || len(rows) != want {
			t.Errorf("owner %d: %d rows, %v; want %d", owner, len(rows), err, want)
		}
	}
}
