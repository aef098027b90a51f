package guest

import (
	"errors"
	"fmt"
	"testing"
)

type told struct{ outcome Outcome }

func (e told) Error() string    { return "told" }
func (e told) Outcome() Outcome { return e.outcome }

// An error that does not say what happened is never read as harmless.
func TestOutcomeOf(t *testing.T) {
	if got := OutcomeOf(errors.New("connection reset")); got != OutcomeUnknown || got.Harmless() {
		t.Errorf("got %s", got)
	}
	if got := OutcomeOf(fmt.Errorf("cannot destroy CT 5001: %w", told{OutcomeLocked})); got != OutcomeLocked {
		t.Errorf("got %s", got)
	}
	for outcome, harmless := range map[Outcome]bool{
		OutcomeRefused: true, OutcomeFailed: false, OutcomeUnknown: false, OutcomeLocked: true, OutcomeConflict: true, OutcomeDenied: true,
		OutcomeMissing: true, OutcomeUnreachable: true, OutcomeTaken: true, Outcome(0): false, Outcome(99): false,
	} {
		if outcome.Harmless() != harmless {
			t.Errorf("%s: harmless %v", outcome, !harmless)
		}
	}
}

func TestFirewallEmpty(t *testing.T) {
	if !(Firewall{}).Empty() {
		t.Error("nothing is something")
	}
	for _, fw := range []Firewall{
		{Options: map[string]string{"enable": "1"}}, {Aliases: []map[string]string{{}}}, {IPSets: []IPSet{{}}}, {Rules: []map[string]string{{}}},
	} {
		if fw.Empty() {
			t.Errorf("%+v would not be put back", fw)
		}
	}
}

func TestKindAndStorage(t *testing.T) {
	if KindContainer.Path() != "lxc" || KindVM.Path() != "qemu" || Kind(0).Path() != "" || KindContainer.String() != "CT" || KindVM.String() != "VM" {
		t.Error("kinds have other words")
	}
	s := Storage{Content: []string{"rootdir", "images"}}
	if !s.Has("rootdir") || s.Has("root") || s.Has("") {
		t.Errorf("content of %+v", s)
	}
}
