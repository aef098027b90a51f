package recipe

import (
	"context"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
)

// Container reinstalls containers: back up → claim → rehearse → stop → park → guard → destroy → create → return →
// restore → start → settle.
type Container struct {
	// Host is read afresh at every look and does all writing.
	Host Host
	// Shared may answer cluster-wide lists from one read made for the whole run; only plans use it.
	Shared Reader
	// Self identifies the machine this runs on.
	Self preview.Self
	// Clock returns the time; nil means time.Now.
	Clock func() time.Time
	// Random returns a short random hexadecimal word for operation ids; nil uses the system's randomness.
	Random func() string
	// Sleep waits or returns early with the context's error; nil uses a timer.
	Sleep func(ctx context.Context, d time.Duration) error
	// PatienceBefore and PatienceAfter bound how long locks are waited for before and past the point of no return; zero
	// means two minutes and one hour.
	PatienceBefore, PatienceAfter time.Duration
	// Log receives one line per step, for tflog; nil logs nothing.
	Log func(ctx context.Context, message string, fields map[string]any)
	// ParkingFrom and ParkingTo bound the spare VMIDs that may be used for parking guests; ParkingPool names their pool.
	ParkingFrom, ParkingTo guest.VMID
	ParkingPool            string

	archives Archives // set by Instance: of application containers
}

// Observation is what one look at a guest found: one config read, the rest from shared lists.
type Observation struct {
	Presence     guest.Presence
	WrongType    bool
	Ref          guest.Ref
	Name         string
	Running      bool
	Config       guest.Config
	Acknowledged preview.Acknowledgements
	Contract     *guest.Contract // nil when there is none or it is not this guest's
	Foreign      *guest.Contract // of an application container that was made under another VMID: restored or cloned
	Journal      *guest.Journal  // of an operation in progress, wherever it was found
	Problems     []string        // damaged, foreign or newer blocks in the notes, in words
}

// Observe looks at a guest with one config read. A guest that cannot be located because a node is away is unknown.
func (c *Container) Observe(ctx context.Context, id guest.VMID) (Observation, error) {
	return c.observe(ctx, id)
}

// Pending reports whether an operation is due: wanted differs from what the guest records (the contract, else state's
// installed) and was not declined.
func Pending(seen Observation, wanted guest.Install, stateInstalled *guest.Install) (due bool, installed *guest.Install) {
	return pending(seen, wanted, stateInstalled)
}

// Plan judges a reinstall: every fact is read as far as it is needed, nothing is changed.
func (c *Container) Plan(ctx context.Context, seen Observation, want preview.Want) (preview.Preview, error) {
	return c.plan(ctx, seen, want)
}

// PlanReconcile judges what a reconcile action would do to the operation in seen.Journal.
func (c *Container) PlanReconcile(ctx context.Context, seen Observation, want preview.Want, r Reconcile) (preview.Preview, error) {
	return c.planReconcile(ctx, seen, want, r)
}

// Reconcile names an operation and what to do with it.
type Reconcile struct {
	Operation string
	Action    string // "resume", "rollback", "rollback_data", "accept", "close"
}

// Request is everything an apply hands to the recipe.
type Request struct {
	Want      preview.Want
	Planned   preview.Acknowledgements // what the plan saw
	Installed *guest.Install           // what state says, when the guest has no contract
	Password  string                   // of root; secret, "" for none
	Keys      []string                 // ssh public keys
	Stop      Stop
	Health    *Health
	Reconcile *Reconcile // nil: the operation itself
}

// Stop says how a running guest is stopped.
type Stop struct {
	Timeout time.Duration
	Force   bool // end it when it does not stop in time
}

// Health is a probe that must succeed before an operation counts as done.
type Health struct {
	TCP   int // port, 0 for none
	HTTP  *HTTPProbe
	SSH   int    // port of an SSH server that must greet, 0 for none
	Agent bool   // of a VM: its guest agent must answer
	Host  string // address to probe; "" takes the guest's own
	// RunningFor is how long the guest must be seen running without a stop.
	RunningFor time.Duration
	Timeout    time.Duration
}

// HTTPProbe asks for a page and expects a status.
type HTTPProbe struct {
	Port   int
	Path   string
	Status int  // 0: any 2xx or 3xx
	TLS    bool // https, certificate not verified
}

// Status is what a resource reports about its guest.
type Status string

// The states of a guest as pvrx sees it.
const (
	StatusReady          Status = "ready"
	StatusInProgress     Status = "in_progress"
	StatusNeedsReconcile Status = "needs_reconcile"
	StatusAwaitingTrust  Status = "awaiting_trust"
	StatusRolledBack     Status = "rolled_back"
)

// Result is what an operation reached, also when it failed: it goes into state together with the error.
type Result struct {
	Status    Status
	Operation string
	Stage     string // where it stands or stopped, "" when done
	Index, Of int
	Exists    *bool // does the guest exist? nil: could not be determined, never read as free
	Parking   guest.VMID
	Backup    string
	Installed *guest.Install // what the guest is made from now
	Preview   preview.Preview
	Warnings  []string
	// Acknowledged is the guest as it is now, for the next plan; zero when it could not be read.
	Acknowledged preview.Acknowledgements
	Changed      bool // anything was changed at all
}

// Apply does the operation, or what Reconcile asks. The error, when there is one, says where the guest is and what to do.
func (c *Container) Apply(ctx context.Context, req Request) (Result, error) {
	return c.apply(ctx, req)
}

// Adopt records the guest as it is: a contract into its notes, nothing else.
func (c *Container) Adopt(ctx context.Context, seen Observation, installed guest.Install) (Result, error) {
	return c.adopt(ctx, seen, installed)
}
