package preview

import (
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// TestReinstalledMeanwhileIsAChange: volumes get their names back, so that only the contract tells that a guest is another
// one than the plan saw.
func TestReinstalledMeanwhileIsAChange(t *testing.T) {
	t.Parallel()
	f, _ := web1()
	before := Acknowledge(f.Guest)
	contract := func(instance string) Acknowledgements {
		n := guest.Notes{User: "the web server", Contract: &guest.Contract{Version: 1, Guest: 5001, Instance: instance}}
		f.set("description", n.String())
		return Acknowledge(f.Guest)
	}
	first, second := contract("op-5001-20261201-aaaa"), contract("op-5001-20261201-bbbb")
	for _, c := range []struct {
		was, now Acknowledgements
		says     string
	}{
		{before, first, "It was reinstalled by op-5001-20261201-aaaa."},
		{first, second, "It was reinstalled by op-5001-20261201-bbbb."},
		{first, before, "The record of its install (op-5001-20261201-aaaa) is gone from its notes."},
	} {
		diff := c.was.Compare(c.now)
		if len(diff) != 1 || diff[0].Text() != c.says {
			t.Errorf("%+v, want %q", diff, c.says)
		}
		if c.was.Precondition() == c.now.Precondition() {
			t.Error("the precondition is the same")
		}
		if diff := c.was.CompareDuring(c.now, guest.Journal{}); len(diff) > 0 {
			t.Errorf("an operation stumbles over its own record: %+v", diff)
		}
	}
	if same := first; len(first.Compare(same)) > 0 {
		diff := first.Compare(same)
		t.Errorf("%+v", diff)
	}
	if strings.Contains(string(before.Encode()), "install") {
		t.Errorf("guests without a contract are remembered as before: %s", before.Encode())
	}
	// A copy of another guest's contract says nothing.
	n := guest.Notes{User: "the web server", Contract: &guest.Contract{Version: 1, Guest: 5002, Instance: "op-5002-20261201-cccc"}}
	f.set("description", n.String())
	if diff := before.Compare(Acknowledge(f.Guest)); len(diff) > 0 {
		t.Errorf("%+v", diff)
	}
}
