package guest

import (
	"errors"
	"strings"
)

// Outcome is what is known about a request after it was sent. The zero value is invalid.
type Outcome uint8

// The outcomes. A nil error is OutcomeDone; warnings travel beside it.
const (
	// OutcomeRefused: Proxmox said no before anything happened.
	OutcomeRefused Outcome = iota + 1
	// OutcomeFailed: a task started and ended with an error; part of its effect may be there.
	OutcomeFailed
	// OutcomeUnknown: the answer never came, or says nothing ("unexpected status", 595, 596, 599). Look at the world.
	OutcomeUnknown
	// OutcomeLocked: a lock or a lock time-out; nothing was done, ask again later.
	OutcomeLocked
	// OutcomeConflict: the digest or the target changed since it was read (compare and swap lost); nothing was done.
	OutcomeConflict
	// OutcomeDenied: the login lacks a right; nothing was done.
	OutcomeDenied
	// OutcomeMissing: the guest, volume or object does not exist there.
	OutcomeMissing
	// OutcomeUnreachable: the request was never sent, or the node does not answer; a read says nothing about the guest.
	OutcomeUnreachable
	// OutcomeTaken: the VMID or key is in use already; nothing was done.
	OutcomeTaken
)

// String returns one word for logs.
func (o Outcome) String() string {
	switch o {
	case OutcomeRefused:
		return "refused"
	case OutcomeFailed:
		return "failed"
	case OutcomeUnknown:
		return "unknown"
	case OutcomeLocked:
		return "locked"
	case OutcomeConflict:
		return "conflict"
	case OutcomeDenied:
		return "denied"
	case OutcomeMissing:
		return "missing"
	case OutcomeUnreachable:
		return "unreachable"
	case OutcomeTaken:
		return "taken"
	}
	return "invalid"
}

// EndedAtOnce reports whether a start failed because the container's first program had ended before the start's task could
// look at it: it was there and was started. Proxmox says so in words only ("unable to get PID for CT 200 (not running?)").
func EndedAtOnce(err error) bool {
	return err != nil && OutcomeOf(err) == OutcomeFailed && strings.Contains(err.Error(), "unable to get PID for CT ")
}

// Harmless reports whether the outcome proves that the request had no effect.
func (o Outcome) Harmless() bool {
	switch o {
	case OutcomeRefused, OutcomeLocked, OutcomeConflict, OutcomeDenied, OutcomeMissing, OutcomeUnreachable, OutcomeTaken:
		return true
	case OutcomeFailed, OutcomeUnknown:
		return false
	}
	return false
}

// outcomer is implemented by the port's errors.
type outcomer interface{ Outcome() Outcome }

// OutcomeOf returns what an error of the port says about its request; an error that does not say is OutcomeUnknown.
func OutcomeOf(err error) Outcome {
	var o outcomer
	if errors.As(err, &o) {
		return o.Outcome()
	}
	return OutcomeUnknown
}
