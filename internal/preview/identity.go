package preview

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// judgeIdentity asks whether this is the guest that is meant, and whether it can be judged and reached at all.
func (j *judge) judgeIdentity() {
	f, id := j.f, j.id()
	if f.Presence == guest.Absent && !j.operating() {
		j.block(Blocker{
			Code: CodeGuestMissing, Subject: id.String(), Attribute: "vmid", Found: fmt.Sprintf("There is no guest %d in this cluster, or this login may not see it.", id),
			Remedy: "Correct vmid. This resource never makes a guest.",
		})
	}
	if j.judgeReach() {
		j.judgeName("name")
	}
}

// judgeReach asks whether the guest can be seen and reached, and is of the right kind; ok is false when there is none to be
// judged further.
func (j *judge) judgeReach() (ok bool) {
	f, id := j.f, j.id()
	if f.Duplicate {
		j.block(Blocker{
			Code: CodeDuplicate, Subject: id.String(), Attribute: "vmid", Found: fmt.Sprintf("Another block of this configuration names VMID %d too.", id),
			Remedy: "Keep one of them.",
		})
	}
	j.judgeCluster()
	switch {
	case f.Presence != guest.Present && f.Presence != guest.Absent:
		j.block(Blocker{
			Code: CodeNodeOffline, Subject: id.String(), Found: fmt.Sprintf("Whether guest %d exists could not be determined: its node does not answer, or this login may not see it (VM.Audit on /vms/%d).", id, id),
			Remedy: "Unknown is not missing: plan again when all nodes answer.",
		})
		return false
	case f.Presence == guest.Absent:
		return false
	case f.WrongType:
		is, other := "a virtual machine, not a container", "virtual machines"
		if j.w.VM != nil {
			is, other = "a container, not a virtual machine", "containers"
		}
		j.block(Blocker{
			Code: CodeGuestWrongType, Subject: id.String(), Attribute: "vmid", Found: fmt.Sprintf("Guest %d is %s.", id, is),
			Remedy: "Correct vmid, or use the resource for " + other + ".",
		})
		return false
	}
	if f.Guest.Config.Values["template"] == "1" {
		j.block(Blocker{
			Code: CodeIsTemplate, Subject: id.String(), Attribute: "vmid", Found: fmt.Sprintf(j.kind()+" %d is a template.", id),
			Remedy: "Templates are not reinstalled: make a new one.",
		})
	}
	j.judgeSelf()
	return true
}

// judgeName asks whether the guest calls itself what the configuration calls it, by the argument of that name.
func (j *judge) judgeName(argument string) {
	id := j.id()
	if name := j.f.Guest.Config.Name(j.f.Guest.Kind, id); name != j.w.Name {
		j.block(Blocker{
			Code: CodeNameMismatch, Subject: id.String(), Attribute: argument, Found: fmt.Sprintf(j.kind()+" %d calls itself %s, not %s.", id, guest.Printable(name), guest.Printable(j.w.Name)),
			Remedy: "Correct vmid or " + argument + ".",
		})
	}
}

// judgeCluster asks whether the cluster can carry an operation.
func (j *judge) judgeCluster() {
	f := j.f
	known := f.Presence == guest.Present || f.Presence == guest.Absent && f.Guest.Node != ""
	if known && !f.NodeOnline {
		j.block(Blocker{
			Code: CodeNodeOffline, Subject: f.Guest.Node, Found: fmt.Sprintf("Node %s does not answer, so nothing is known about guest %d.", orUnknown(f.Guest.Node), j.id()),
			Remedy: "Plan again when the node is back.",
		})
	}
	if !f.Quorate {
		j.block(Blocker{
			Code: CodeNoQuorum, Subject: f.Guest.Node, Found: "The cluster has no quorum, so no configuration can be written.",
			Remedy: "Plan again when the cluster has quorum.",
		})
	}
	if !supported(f.Login.Version) {
		j.block(Blocker{
			Code: CodeUnsupportedVersion, Subject: f.Login.Version, Found: fmt.Sprintf("The server is Proxmox VE %s.", orUnknown(f.Login.Version)),
			Remedy: "pvrx needs Proxmox VE 9.1 or newer: older ones cannot keep a parking guest from being started.",
		})
	}
}

// judgeSelf asks whether the provider runs inside the guest: it would end itself half-way. A container shares its host's
// DMI UUID, so that hardware addresses alone can tell.
func (j *judge) judgeSelf() {
	networks, _ := j.f.Guest.Config.Networks()
	for _, n := range networks {
		mac := n.MAC()
		if mac != "" && slices.ContainsFunc(j.f.Self.MACs, func(own string) bool { return strings.EqualFold(own, mac) }) {
			j.block(Blocker{
				Code: CodeRunningInsideTarget, Subject: n.Key, Found: fmt.Sprintf("This machine has the hardware address %s of %s: it is "+j.kind()+" %d.", mac, n.Key, j.id()),
				Remedy: "Run this from another machine.",
			})
		}
	}
}

// supported reports whether a version is 9.1 or newer. One that cannot be read is not.
func supported(version string) bool {
	const major, minor = 9, 1
	parts := strings.FieldsFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	if len(parts) < 2 || !strings.HasPrefix(version, parts[0]+"."+parts[1]) {
		return false
	}
	a, errA := strconv.Atoi(parts[0])
	b, errB := strconv.Atoi(parts[1])
	return errA == nil && errB == nil && (a > major || a == major && b >= minor)
}

func orUnknown(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}
