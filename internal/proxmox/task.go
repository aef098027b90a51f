package proxmox

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// job is a request that starts a task.
type job struct {
	request
	types []string // task types it may start: "vzstart", or "hastart" under HA
	id    string   // the worker's id: "5001", or "5001-mp0>900000-mp0"
}

// ended is a task that ended well.
type ended struct {
	task     upid
	warnings []string
	log      []string
}

// run starts a task and follows it to its end. What ends at a lock is asked for again.
func (h *Host) run(ctx context.Context, j job) (ended, error) {
	var done ended
	err := h.patiently(ctx, j.request, func() (failed *Error) {
		done, failed = h.runOnce(ctx, j)
		return failed
	})
	return done, err
}

func (h *Host) runOnce(ctx context.Context, j job) (ended, *Error) {
	since := time.Now().Unix()
	var raw json.RawMessage
	err := h.exchange(ctx, j.request, &raw)
	return h.started(ctx, j, since, raw, err)
}

// started follows the task that an answer names, or finds the one whose answer is lost; since is when it was asked for.
func (h *Host) started(ctx context.Context, j job, since int64, raw json.RawMessage, err *Error) (ended, *Error) {
	if err != nil {
		if err.Kind != guest.OutcomeUnknown || !err.lost {
			return ended{}, err
		}
		// The answer is lost, and with it the task's name. Look for the task; never ask twice.
		task, found := h.findStarted(ctx, j, since)
		if !found {
			return ended{}, err
		}
		return h.follow(ctx, j.request, task)
	}
	var name words
	if err := json.Unmarshal(raw, &name); err != nil {
		return ended{}, unreadable(j.request, err)
	}
	if name == "OK" && slices.Contains(j.types, "vzdump") {
		return ended{}, refuse(j.op, j.ref, guest.OutcomeMissing, "node %s has no such guest", j.ref.Node)
	}
	task, unread := parseUPID(string(name))
	if unread != nil {
		return ended{}, &Error{Op: j.op, Guest: j.ref, Kind: guest.OutcomeUnknown, Words: "the answer names no task: " + unread.Error()}
	}
	return h.follow(ctx, j.request, task)
}

// follow waits for a task's end, on the node in its name. A cancellation still leaves it the grace period.
func (h *Host) follow(ctx context.Context, r request, task upid) (ended, *Error) {
	h.note(task.text)
	longer, cancel := h.graceful(ctx)
	defer cancel()
	pause := h.pace.PollFirst
	blindSince := time.Time{}
	unknown := func(why string, cause error) *Error {
		return &Error{Op: r.op, Guest: r.ref, UPID: task.text, Kind: guest.OutcomeUnknown, Words: why, cause: cause}
	}
	for {
		var state struct {
			Status words `json:"status"`
			Exit   words `json:"exitstatus"`
		}
		err := h.ask(longer, "read the state of task "+task.text, r.ref, task.path("status"), nil, &state)
		switch {
		case err == nil && state.Status == "stopped":
			h.ending(task.text)
			return h.judgeTask(longer, r, task, string(state.Exit))
		case err == nil:
			blindSince = time.Time{}
		case longer.Err() != nil:
			return ended{}, unknown("it was cancelled while the task went on", ctx.Err())
		case blindSince.IsZero():
			blindSince = time.Now()
		case time.Since(blindSince) > h.pace.Blind:
			return ended{}, unknown("the task's state could not be read: "+err.Error(), nil)
		}
		if !sleep(longer, pause) {
			return ended{}, unknown("it was cancelled while the task went on", ctx.Err())
		}
		pause = min(pause*3/2, h.pace.PollMost)
	}
}

// judgeTask turns a task's exit status into one of the four outcomes.
func (h *Host) judgeTask(ctx context.Context, r request, task upid, exit string) (ended, *Error) {
	failed := &Error{Op: r.op, Guest: r.ref, UPID: task.text, Words: shorten(strings.TrimSpace(guest.Printable(exit)), maxWords)}
	failed.Words = hide(failed.Words, append(h.login.secrets(), r.secrets()...))
	switch {
	case exit == "OK":
		return ended{task: task}, nil
	case strings.HasPrefix(exit, "WARNINGS"):
		log := h.taskLog(ctx, r, task)
		warnings := warningLines(log)
		if len(warnings) == 0 {
			warnings = []string{failed.Words}
		}
		return ended{task: task, warnings: warnings, log: log}, nil
	case exit == "", exit == "unexpected status":
		failed.Kind = guest.OutcomeUnknown
		failed.Words = "the task ended without saying how (" + exit + ")"
	default:
		failed.Kind = judgeExit(task, exit)
	}
	log := h.taskLog(ctx, r, task)
	failed.Log = log[max(0, len(log)-tail):]
	return ended{}, failed
}

// tail is how many lines of a failed task's log an error keeps.
const tail = 6

// judgeExit reads a failure text. A task that failed may have done part of its work, except where the text is one that is said
// before the work begins.
func judgeExit(task upid, exit string) guest.Outcome {
	if guestLocked.MatchString(exit) {
		return guest.OutcomeLocked
	}
	for _, early := range earlyExits {
		if slices.Contains(early.types, task.kind) && early.words.MatchString(exit) {
			return early.kind
		}
	}
	return guest.OutcomeFailed
}

// guestLocked are the ways in which a worker says that it never got hold of the guest. The lock of a storage is another
// matter: it is taken in the middle of the work.
var guestLocked = regexp.MustCompile(`^(?:(?:CT|VM) is locked \([a-z-]+\)|can't lock file '[^']*/(?:pve-config-\d+\.lock|lock-\d+\.conf)' - got timeout)\s*$`)

// earlyExits are checks that a worker repeats before it touches anything.
var earlyExits = []struct {
	types []string
	words *regexp.Regexp
	kind  guest.Outcome
}{
	{[]string{"vzcreate", "vzrestore", "qmcreate", "qmrestore"}, regexp.MustCompile(`^unable to (?:create|restore) (?:CT|VM) \d+ - (?:CT|VM) \d+ already exists`), guest.OutcomeTaken},
	{[]string{"move_volume", "qmmove"}, regexp.MustCompile(`^(?:Container|VM) \d+: detected modified configuration`), guest.OutcomeConflict},
	{[]string{"move_volume", "qmmove"}, regexp.MustCompile(`^Target (?:volume|disk) key '[^']*' is already in use`), guest.OutcomeTaken},
	{[]string{"move_volume", "qmmove"}, regexp.MustCompile(`^Cannot move `), guest.OutcomeRefused},
	{[]string{"vzstart", "qmstart", "vzstop", "qmstop", "vzshutdown", "qmshutdown", "vzdestroy", "qmdestroy"}, regexp.MustCompile(`^Configuration file '[^']*' does not exist`), guest.OutcomeMissing},
	{[]string{"vzdelsnapshot", "qmdelsnapshot"}, regexp.MustCompile(`^snapshot '[^']*' does not exist`), guest.OutcomeMissing},
	{[]string{"vzstart", "qmstart", "vzstop", "vzshutdown"}, regexp.MustCompile(`^(?:CT|VM) \d+ (?:already|is already|not|is not) running`), guest.OutcomeRefused},
	{[]string{"vzdestroy", "qmdestroy"}, regexp.MustCompile(`protection mode enabled\s*$|used in HA resources and purge parameter not set|^There is a replication job|is running - destroy failed|^unable to destroy CT \d+ - container is running`), guest.OutcomeRefused},
	{[]string{"resize"}, regexp.MustCompile(`^(?:shrinking disks is not supported|disk '[^']*' does not exist|unable to shrink disk size)`), guest.OutcomeRefused},
}

// taskLog reads a whole log. A log that cannot be read costs only the explanation, so it is nil then.
func (h *Host) taskLog(ctx context.Context, r request, task upid) []string {
	var rows []struct {
		N    whole `json:"n"`
		Text words `json:"t"`
	}
	all := url.Values{"start": {"0"}, "limit": {"0"}}
	if err := h.ask(ctx, "read the log of task "+task.text, r.ref, task.path("log"), all, &rows); err != nil {
		return nil
	}
	secrets := append(h.login.secrets(), r.secrets()...)
	lines := make([]string, 0, len(rows))
	for _, row := range rows {
		lines = append(lines, shorten(hide(guest.Printable(string(row.Text)), secrets), 400))
	}
	return lines
}

// warningLines returns the lines that Proxmox counts as warnings.
func warningLines(log []string) []string {
	var found []string
	for _, line := range log {
		if strings.HasPrefix(line, "WARN: ") || strings.HasPrefix(line, "WARNING: ") {
			found = append(found, line)
		}
	}
	return found
}

// describe returns how people name a guest in an error: "CT 5001 on node pve1".
func describe(ref guest.Ref) string {
	return fmt.Sprintf("%s %d on node %s", ref.Kind, ref.VMID, ref.Node)
}
