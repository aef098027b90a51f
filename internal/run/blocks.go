package run

import (
	"sync"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// Blocks knows which VMIDs this run has met, and how: two resource blocks for one guest would each work on it. Terraform
// does not tell a provider the address of a resource, so blocks are counted, not named.
type Blocks struct {
	mu      sync.Mutex
	read    map[guest.VMID]bool
	planned map[guest.VMID]int
}

// Read notes that a resource in state names the VMID.
func (b *Blocks) Read(id guest.VMID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.read == nil {
		b.read = map[guest.VMID]bool{}
	}
	b.read[id] = true
}

// InState reports whether this run has read a resource that names the VMID.
func (b *Blocks) InState(id guest.VMID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.read[id]
}

// Plan notes that a block plans the VMID, and reports whether another one has before: a duplicate.
func (b *Blocks) Plan(id guest.VMID) (duplicate bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.planned == nil {
		b.planned = map[guest.VMID]int{}
	}
	b.planned[id]++
	return b.planned[id] > 1
}
