// Package stage runs an operation: an ordered list of stages with exactly one point of no return. It writes a journal
// before and after every effect, undoes what was done when a stage fails before the point, never undoes past it, and
// resumes by looking at the world first and at the journal second. It knows no Proxmox and imports the standard library only.
package stage

import "context"

// Stage is one step of an operation. All three functions look at the world before they act: run again, they do what is
// missing and nothing else.
type Stage struct {
	// Name is a short word or two, unique in the operation: "rehearse", "park mp0".
	Name string
	// Do brings the world to the state after this stage.
	Do func(ctx context.Context) error
	// Undo brings it back to the state before it; nil when there is nothing to take back.
	Undo func(ctx context.Context) error
	// Seen says how much of the stage's effect the world shows.
	Seen func(ctx context.Context) (Effect, error)
	// Final marks the stage that crosses the point of no return. Exactly one stage of an operation has it.
	Final bool
}

// Effect says how much of a stage's effect the world shows. The zero value is invalid.
type Effect uint8

// The effects.
const (
	// None: the world is as it was before the stage.
	None Effect = iota + 1
	// Partly: something happened, not all.
	Partly
	// Whole: the stage is done.
	Whole
	// Unclear: could not be determined.
	Unclear
)

// String returns one word for logs and errors.
func (e Effect) String() string {
	switch e {
	case None:
		return "none"
	case Partly:
		return "partly"
	case Whole:
		return "whole"
	case Unclear:
		return "unclear"
	}
	return "invalid"
}
