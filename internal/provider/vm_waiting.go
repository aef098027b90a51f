package provider

import (
	"fmt"
	"strings"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// heldBack names what a rebuild keeps for the way back until it is accepted, with sizes as the configuration stated them.
func heldBack(j guest.Journal) (held []string) {
	if j.Replace {
		held = append(held, fmt.Sprintf("VM %d, the old one, which is off", j.Guest))
	}
	for _, d := range j.Disks {
		text := fmt.Sprintf("%s (old)  %s", d.Key, d.Was)
		if was, err := guest.ParseDisk(d.Key, j.Config[d.Key]); err == nil && was.Options["size"] != "" {
			text += "  " + was.Options["size"]
		}
		held = append(held, text)
	}
	if j.Snapshot != "" {
		held = append(held, "snapshot "+j.Snapshot+" of the kept disks")
	}
	return held
}

// verdictDue is the warning of every plan until a person has said whether the new system is trusted: since when it waits, what
// is kept meanwhile, and what to write.
func (o openOperation) verdictDue(name string) (summary, detail string) {
	since := time.Unix(o.Since, 0).UTC().Format("2006-01-02 15:04 UTC")
	return name + ": rebuilt, and waits for a verdict since " + since,
		"Until then this is kept, and takes its space:\n\n  " + strings.Join(o.Held, "\n  ") + "\n\nWhen the new system is trusted:\n\n" +
			reconcileLine(o.ID, "accept") + "\n\nOr \"rollback\", which brings the old one back."
}
