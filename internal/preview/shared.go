package preview

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// judgeShared asks whether other guests depend on volumes of this one. A destroy would erase them under those guests, and
// setting them aside would rename them under those guests, whatever their fate here (hazard A1).
func (j *judge) judgeShared() {
	owned := map[guest.VolumeID]string{}
	for id, row := range j.f.Volumes {
		if row.Owner == j.id() {
			owned[id] = id.String()
		}
	}
	for _, v := range j.volumes {
		if j.owned(v) {
			owned[v.id] = v.Key
		}
	}
	for id, subject := range owned {
		if users := j.users(id); len(users) > 0 {
			j.block(Blocker{
				Code: CodeVolumeShared, Subject: subject, Found: fmt.Sprintf("%s belongs to "+j.kind()+" %d and is named by %s as well.", id, j.id(), list(users)),
				Remedy: "Take it off the other guest, or hand it to that guest by a reassignment, first: it would be erased or renamed under it.",
			})
		}
		if clones := j.f.Linked[id]; len(clones) > 0 {
			j.block(Blocker{
				Code: CodeLinkedBaseInUse, Subject: subject, Found: fmt.Sprintf("%s is the base of linked clones of %s.", id, guests(clones)),
				Remedy: "Make the clones independent, or remove them, first.",
			})
		}
	}
	j.judgeUnseen()
}

// users are the places where other guests name a volume: "CT 5002 (mp0)", "VM 7001 (scsi1, snapshot daily)".
func (j *judge) users(id guest.VolumeID) []string {
	users := slices.Clone(j.f.Users[id])
	users = slices.DeleteFunc(users, func(u User) bool { return u.VMID == j.id() })
	slices.SortFunc(users, func(a, b User) int {
		return cmp.Or(cmp.Compare(a.VMID, b.VMID), guest.CompareKeys(a.Key, b.Key), cmp.Compare(a.Section, b.Section))
	})
	var words []string
	for _, u := range users {
		where := u.Key
		switch u.Section {
		case "":
		case "pending":
			where += ", pending"
		default:
			where += ", snapshot " + u.Section
		}
		words = append(words, fmt.Sprintf("%s %d (%s)", u.Kind, u.VMID, where))
	}
	return slices.Compact(words)
}

func (j *judge) judgeUnseen() {
	remedy := "Grant VM.Audit on /vms with propagation, or add \"guests_unseen\" to allow if you know that no other guest uses them."
	if len(j.f.Unseen) > 0 {
		j.block(Blocker{
			Code: CodeGuestsUnseen, Subject: j.id().String(), Attribute: "allow", Found: fmt.Sprintf("The configuration of %s could not be read, so whether it names volumes of "+j.kind()+" %d is unknown.", guests(j.f.Unseen), j.id()),
			Remedy: remedy,
		})
	}
	if !j.f.AllSeen {
		j.block(Blocker{
			Code: CodeGuestsUnseen, Subject: j.id().String(), Attribute: "allow", Found: fmt.Sprintf("%s has no VM.Audit on /vms, so guests it cannot see may name volumes of "+j.kind()+" %d.", j.login(), j.id()),
			Remedy: remedy,
		})
	}
}

// guests lists VMIDs: "guests 5002, 5003 and 7001"; long lists are cut, with their length.
func guests(ids []guest.VMID) string {
	const most = 8
	sorted := slices.Compact(slices.Sorted(slices.Values(ids)))
	var words []string
	for _, id := range sorted[:min(len(sorted), most)] {
		words = append(words, id.String())
	}
	if extra := len(sorted) - most; extra > 0 {
		words = append(words, plural(extra, "other"))
	}
	if len(sorted) == 1 {
		return "guest " + words[0]
	}
	return "guests " + list(words)
}
