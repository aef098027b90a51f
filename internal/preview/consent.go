package preview

import (
	"fmt"
	"maps"
)

// anyVolume is the consent that renews itself: whatever the key holds may go.
const anyVolume = "*"

// consents finds the keys whose own volume may be erased. A consent names key and volume, and is used up by the operation
// that used it, because Proxmox gives the same disk number to the next volume. An entry for an absent key does nothing.
func (j *judge) consents() map[string]bool {
	spent := j.spent()
	granted := map[string]bool{}
	current := map[string]volume{}
	for _, v := range j.volumes {
		if v.section == "" {
			current[v.key] = v
		}
	}
	for _, key := range sortedKeys(j.w.Erase) {
		named := j.w.Erase[key]
		v, there := current[key]
		switch {
		case !there:
		case named != anyVolume && spent[key] == named && key != "rootfs":
			j.block(Blocker{
				Code: CodeEraseSpent, Subject: key, Attribute: "erase",
				Found:  fmt.Sprintf("erase names %s = %q, which an earlier operation used up; the guest has %s again (%s).", key, named, key, v.Volume),
				Remedy: "Take the entry out to keep the volume; to erase whatever is there each time, write \"*\".",
			})
		case named != anyVolume && named != v.Volume:
			j.block(Blocker{
				Code: CodeEraseMismatch, Subject: key, Attribute: "erase",
				Found:  fmt.Sprintf("erase names %s = %q, but %s holds %s.", key, named, key, v.Volume),
				Remedy: "Look at what it holds now, then correct the entry or take it out.",
			})
		case key == "rootfs":
		case v.trouble != "":
		case !j.owned(v):
			j.block(Blocker{
				Code: CodeEraseMismatch, Subject: key, Attribute: "erase",
				Found:  fmt.Sprintf("erase names %s, but %s (%s) is not this guest's own: a reinstall never erases it.", key, key, v.Volume),
				Remedy: fmt.Sprintf("Take the entry out; to give the mount up, add %q to drop.", key),
			})
		default:
			granted[key] = true
		}
	}
	return granted
}

// spent are the consents that earlier operations used, as the guest's contract and state remember them.
func (j *judge) spent() map[string]string {
	spent := maps.Clone(j.w.Spent)
	if spent == nil {
		spent = map[string]string{}
	}
	if c := j.f.Journal.Contract; c != nil && c.Guest == j.id() {
		maps.Copy(spent, c.Spent)
	}
	return spent
}
