// Package proxmox is the port: a thin adapter between what recipes need of Proxmox VE and the go-proxmox client. It reads
// configurations without loss, follows tasks to their end, turns every answer into a typed outcome, and refuses below every
// recipe what must never be sent. It decides nothing.
package proxmox

import (
	"context"
	"sync"
	"time"

	pve "github.com/luthermonson/go-proxmox"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// Host is one Proxmox VE cluster, seen through one login. It is safe for concurrent use.
type Host struct {
	client  *pve.Client
	direct  direct
	login   login
	pace    Pace
	clock   *clock
	waiting func(Wait)

	mu   sync.Mutex
	seen map[string]bool // UPIDs whose tasks are accounted for: a search after a lost answer passes them over
	over map[string]bool // UPIDs of tasks that were seen to have ended: a node's list of running ones names them a moment longer
}

// Pace says how patient the port is. A zero field stands for its default.
type Pace struct {
	Request   time.Duration // one request and its answer; default 60 s
	PollFirst time.Duration // first pause between looks at a task; default 50 ms, growing
	PollMost  time.Duration // longest pause between looks; default 2 s
	LockFirst time.Duration // first pause before asking again for what is locked; default 500 ms, growing
	LockMost  time.Duration // longest such pause; default 10 s
	Locked    time.Duration // how long a lock is waited for, unless guest.WithPatience says otherwise; default 2 min
	Blind     time.Duration // how long a task's state may be unreadable before its end counts as unknown; default 2 min
	Find      time.Duration // how long to look for a task whose UPID was lost; default 10 s
	Grace     time.Duration // how long a started task is still followed after cancellation; default 20 s
	Settle    time.Duration // how long a finished destroy, or a queued HA command, may take to show; default 2 min
}

func (p Pace) withDefaults() Pace {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&p.Request, time.Minute},
		{&p.PollFirst, 50 * time.Millisecond},
		{&p.PollMost, 2 * time.Second},
		{&p.LockFirst, 500 * time.Millisecond},
		{&p.LockMost, 10 * time.Second},
		{&p.Locked, 2 * time.Minute},
		{&p.Blind, 2 * time.Minute},
		{&p.Find, 10 * time.Second},
		{&p.Grace, 20 * time.Second},
		{&p.Settle, 2 * time.Minute},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	return p
}

// Wait is something the port waits for, told once when the waiting begins.
type Wait struct {
	Op    string    // what is held up: "move mp0 of CT 5001 to CT 900000"
	Guest guest.Ref // the guest it is about
	Words string    // what Proxmox said: "CT is locked (backup)"
}

func (h *Host) note(upid string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen[upid] = true
}

// ending notes that a task was seen to have ended.
func (h *Host) ending(upid string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over[upid] = true
}

func (h *Host) hasEnded(upid string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over[upid]
}

func (h *Host) noted(upid string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen[upid]
}

// graceful returns a context that outlives ctx by the grace period: what was started is given that long to end.
func (h *Host) graceful(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(h.pace.Grace):
			cancel()
		case <-longer.Done():
		}
	})
	return longer, func() { stop(); cancel() }
}

// sleep waits for d and reports false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
