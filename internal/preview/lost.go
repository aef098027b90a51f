package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

const returns = "returns"

// judgeLost says what else a reinstall takes, and whether it comes back.
func (j *judge) judgeLost() {
	f := j.f
	j.lost["root file system"] = "lost: users, passwords, SSH host keys, cron jobs and all other files on rootfs"
	j.lost["statistics"] = "lost: the usage graphs begin anew"
	if names := j.snapshotNames(); len(names) > 0 {
		j.lost["snapshots"] = fmt.Sprintf("lost: %s (%s)", plural(len(names), "snapshot"), guest.Printable(strings.Join(names, ", ")))
	}
	// The firewall is read when it is copied to the parking guest, before anything is stopped; a copy that fails is undone.
	j.loses("firewall", true, "", !f.Firewall.OK || f.Firewall.Value != (Firewall{}), returns)
	j.loses("ACL", f.ACL.OK, f.ACL.Why, len(f.ACL.Value) > 0, j.lostACL())
	j.loses("pool", f.Pool.OK, f.Pool.Why, f.Pool.Value != "", returns)
	j.loses("HA", f.HA.OK, f.HA.Why, f.HA.Value.Managed, returns)
	j.loses("replication", f.Replicated.OK, f.Replicated.Why, f.Replicated.Value, "lost: the job and its copies; it blocks the reinstall")
	j.loses("address leases", f.Leases.OK, f.Leases.Why, len(f.Leases.Value) > 0, j.lostLeases())
	for _, key := range j.f.Guest.Config.Keys() {
		if j.dropped(key) && droppable(key) && !isMount(key) && !isDevice(key) && !NeverCarried(key) {
			j.lost[key] = "lost: drop gives it up"
		}
	}
	for _, pair := range f.Guest.Config.Raw {
		if j.dropped(pair[0]) {
			j.lost[pair[0]] = "lost: drop gives it up"
		}
	}
}

// loses adds a row when there is something to lose, or when that cannot be known.
func (j *judge) loses(what string, known bool, why string, there bool, verdict string) {
	switch {
	case !known:
		j.lost[what] = "unknown: " + orUnknown(guest.Printable(why))
	case there:
		j.lost[what] = verdict
	}
}

func (j *judge) lostACL() string {
	var gone []string
	for _, e := range j.f.ACL.Value {
		if !e.CanRestore {
			gone = append(gone, guest.Printable(e.Who+" "+e.Role))
		}
	}
	if len(gone) == 0 {
		return returns
	}
	slices.Sort(gone)
	return fmt.Sprintf("lost: %s, which this login may not grant", list(gone))
}

// lostLeases: between destroy and create the addresses are free for anybody (hazard B14).
func (j *judge) lostLeases() string {
	var addresses []string
	for _, l := range j.f.Leases.Value {
		addresses = append(addresses, guest.Printable(l.IP))
	}
	slices.Sort(addresses)
	return fmt.Sprintf("lost: %s may change; compared and reported afterwards", list(slices.Compact(addresses)))
}

func isDevice(key string) bool {
	name, _, indexed := guest.SplitKey(key)
	return indexed && name == "dev"
}

// devicePath is the host path in the value of devN: its first part, or the option path.
func devicePath(value string) string {
	for part := range strings.SplitSeq(value, ",") {
		if path, named := strings.CutPrefix(part, "path="); named || !strings.Contains(part, "=") {
			return path
		}
	}
	return value
}
