package oci

import "errors"

// Problem says what kind of thing is wrong, for callers that act on it. The zero value is invalid.
type Problem uint8

// The problems.
const (
	// ProblemReference: the reference cannot be read.
	ProblemReference Problem = iota + 1
	// ProblemSettings: what the registry is to be reached with cannot be used.
	ProblemSettings
	// ProblemMismatch: tag and digest of one reference name different images.
	ProblemMismatch
	// ProblemMissing: the registry has no such repository, tag or digest.
	ProblemMissing
	// ProblemDenied: the registry wants other credentials.
	ProblemDenied
	// ProblemLimited: the registry answered that there were too many requests.
	ProblemLimited
	// ProblemUnreachable: no usable answer came. It says nothing about the image.
	ProblemUnreachable
	// ProblemPlatform: the image is not made for the wanted platform.
	ProblemPlatform
	// ProblemUnsupported: what is there is no image that Proxmox can unpack.
	ProblemUnsupported
	// ProblemDamaged: content differs from its digest, also when fetched again.
	ProblemDamaged
	// ProblemDisk: the archive cannot be written here.
	ProblemDisk
	// ProblemCancelled: the caller gave up.
	ProblemCancelled
)

// String returns one word for logs.
func (p Problem) String() string {
	switch p {
	case ProblemReference:
		return "reference"
	case ProblemSettings:
		return "settings"
	case ProblemMismatch:
		return "mismatch"
	case ProblemMissing:
		return "missing"
	case ProblemDenied:
		return "denied"
	case ProblemLimited:
		return "limited"
	case ProblemUnreachable:
		return "unreachable"
	case ProblemPlatform:
		return "platform"
	case ProblemUnsupported:
		return "unsupported"
	case ProblemDamaged:
		return "damaged"
	case ProblemDisk:
		return "disk"
	case ProblemCancelled:
		return "cancelled"
	}
	return "invalid"
}

// Error is what went wrong, in words for people. It never holds a secret, and what a registry said in it is printable.
type Error struct {
	Op      string  // what was asked for, as a phrase after "cannot": "resolve docker.io/library/nginx:1.27"
	Problem Problem // what kind of thing is wrong
	Status  int     // the registry's HTTP status; 0 when none decided
	Words   string  // what is wrong
	Remedy  string  // what to do; "" when there is nothing to say

	cause error
}

// Error returns the whole sentence.
func (e *Error) Error() string {
	text := "cannot " + e.Op + ": " + e.Words
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// Unwrap returns the cancellation behind the error, if that is what it was.
func (e *Error) Unwrap() error { return e.cause }

// ProblemOf returns the problem behind an error of this package, 0 for any other error.
func ProblemOf(err error) Problem {
	var e *Error
	if errors.As(err, &e) {
		return e.Problem
	}
	return 0
}
