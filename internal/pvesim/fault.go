package pvesim

import (
	"fmt"
	"regexp"
	"time"
)

// FaultKind says how a request goes wrong.
type FaultKind int

// The kinds of faults. "After" means that the request's effect took place.
const (
	// FaultStatus answers Status and Text instead of doing anything.
	FaultStatus FaultKind = iota + 1
	// FaultStatusAfter does the work, then answers Status and Text.
	FaultStatusAfter
	// FaultReset closes the connection before anything is done.
	FaultReset
	// FaultLoseAnswer does the work, then closes the connection without an answer.
	FaultLoseAnswer
	// FaultDelay waits for Delay, then goes on.
	FaultDelay
	// FaultHang does nothing and keeps the connection open until the client gives up.
	FaultHang
	// FaultHangAfter does the work and keeps the connection open until the client gives up.
	FaultHangAfter
	// FaultTaskFail makes the request's task end with Text, without an effect.
	FaultTaskFail
	// FaultTaskFailAfter makes the task end with Text although its effect took place.
	FaultTaskFailAfter
	// FaultTaskWarn makes the task end with one more warning, Text in its log.
	FaultTaskWarn
	// FaultTaskLost makes the task end with "unexpected status", without an effect.
	FaultTaskLost
	// FaultTaskLostAfter makes the task end with "unexpected status" after its effect.
	FaultTaskLostAfter
	// FaultTaskKill kills the worker at the checkpoint named by At; see [Checkpoints].
	FaultTaskKill
	// FaultTaskNode makes the task run on Node, which its UPID then names.
	FaultTaskNode
	// FaultWorld changes the world with World before the request is handled: a full storage, a node
	// that goes offline, a lost quorum, another administrator.
	FaultWorld
	// FaultWorldAfter changes the world with World after the request was handled.
	FaultWorldAfter
)

// String is the kind's name.
func (k FaultKind) String() string {
	names := [...]string{
		FaultStatus: "status", FaultStatusAfter: "status-after", FaultReset: "reset",
		FaultLoseAnswer: "lose-answer", FaultDelay: "delay", FaultHang: "hang", FaultHangAfter: "hang-after",
		FaultTaskFail: "task-fail", FaultTaskFailAfter: "task-fail-after", FaultTaskWarn: "task-warn",
		FaultTaskLost: "task-lost", FaultTaskLostAfter: "task-lost-after", FaultTaskKill: "task-kill",
		FaultTaskNode: "task-node", FaultWorld: "world", FaultWorldAfter: "world-after",
	}
	if k > 0 && int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("FaultKind(%d)", int(k))
}

// onTask tells whether the fault befalls the task and not the request.
func (k FaultKind) onTask() bool { return k >= FaultTaskFail && k <= FaultTaskNode }

// Checkpoints are the places at which [FaultTaskKill] can kill a worker, by task type.
//
//	vzcreate, vzrestore  stub (only the lock is in the file), allocated, extracted (a whole
//	                     configuration without a lock, set-up not run)
//	vzdestroy            rootfs-freed, volumes-freed, access-removed
//	move_volume          renamed (neither configuration written), source-written
//	resize               resized
//	vzdump               locked
const Checkpoints = "stub allocated extracted rootfs-freed volumes-freed access-removed renamed source-written resized locked"

// Fault is one thing that goes wrong, and when. All conditions that are set must hold.
type Fault struct {
	Kind FaultKind

	// Method is the HTTP method, "" for any.
	Method string
	// Path is a regular expression that the path (without /api2/json) matches, "" for any.
	Path string
	// Params are parameters the request must carry with these very values.
	Params map[string]string
	// Request is the number of the request since the server started, 1 being the first; 0: any.
	Request int
	// Mutation is the number of the request among those that are not GET; 0: any.
	Mutation int
	// Skip lets that many matching requests pass first.
	Skip int
	// Times is how often the fault strikes; 0 means once, negative without end.
	Times int

	// Status and Text are what FaultStatus answers; Text also is the task's error or warning.
	Status int
	Text   string
	Delay  time.Duration
	At     string
	Node   string
	World  func(*Cluster)
}

// armed is a fault with its counters.
type armed struct {
	Fault
	path   *regexp.Regexp
	passed int
	struck int
}

// Inject arms a fault. Faults are tried in the order they were injected, and one request suffers
// at most one. It panics when Path is no regular expression or Kind is not a kind.
func (s *Server) Inject(f Fault) {
	if f.Kind <= 0 || f.Kind > FaultWorldAfter {
		panic("pvesim: fault without a kind")
	}
	a := &armed{Fault: f}
	if f.Path != "" {
		a.path = regexp.MustCompile(f.Path)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, a)
}

// ClearFaults disarms every fault.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// FaultsStruck is how many requests have suffered a fault so far.
func (s *Server) FaultsStruck() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.struck
}

// strike picks the fault that befalls a request, if any. The server's lock is held.
func (s *Server) strike(r *Request) *Fault {
	for _, a := range s.faults {
		if !a.matches(r) {
			continue
		}
		if a.passed < a.Skip {
			a.passed++
			continue
		}
		if a.Times >= 0 && a.struck >= max(a.Times, 1) {
			continue
		}
		a.struck++
		s.struck++
		f := a.Fault
		return &f
	}
	return nil
}

func (a *armed) matches(r *Request) bool {
	switch {
	case a.Method != "" && a.Method != r.Method:
		return false
	case a.path != nil && !a.path.MatchString(r.Path):
		return false
	case a.Request != 0 && a.Request != r.N:
		return false
	case a.Mutation != 0 && (a.Mutation != r.Mutation):
		return false
	}
	for k, v := range a.Params {
		if got, ok := r.Params[k]; !ok || got != v {
			return false
		}
	}
	return true
}
