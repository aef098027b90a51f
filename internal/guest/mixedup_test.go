package guest

import (
	"strings"
	"testing"
)

// TestMixedUpJournalIsDamaged: a record that names one guest in two parts, or stands in the notes of a third, was not
// written by pvrx, however right its checksum is.
func TestMixedUpJournalIsDamaged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                   string
		guest, parking, holder VMID
		usable                 bool
	}{
		{"on its guest", 5001, 900001, 5001, true},
		{"on its parking guest", 5001, 900001, 900001, true},
		{"without a parking guest yet", 5001, 0, 5001, true},
		{"parked on itself", 5001, 5001, 5001, false},
		{"on a third guest", 5001, 900001, 5002, false},
		{"on a third guest, no parking", 5001, 0, 5002, false},
	} {
		j := Journal{Operation: "op-5001-20261201-3f2a", Kind: "reinstall", Guest: c.guest, Parking: c.parking, Holder: c.holder, State: JournalStuck}
		n := NotesOf(c.holder, Notes{User: "mine", Journal: &j}.String())
		if (n.Journal != nil) != c.usable || (len(n.Problems) == 0) != c.usable {
			t.Errorf("%s: %+v %+v", c.name, n.Journal, n.Problems)
		}
		if !c.usable && (n.Problems[0].Kind != ProblemDamaged || !strings.Contains(n.Problems[0].Sentence, "mixes up")) {
			t.Errorf("%s: %+v", c.name, n.Problems)
		}
	}
}
