package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// Difference is one way in which a guest is no longer what a plan saw. An empty Was or Now means absent.
type Difference struct{ Key, Was, Now string }

// The keys of differences that are not about a config key.
const (
	differsGuest   = "vmid"
	differsNode    = "node"
	differsParent  = "parent"
	differsInstall = "install"
)

// Text is a whole sentence for people, such as "mp3 (local-lvm:vm-5001-disk-9, 4 GiB) was added.", in one printable line.
func (d Difference) Text() string { return guest.Printable(d.sentence()) }

func (d Difference) sentence() string {
	switch d.Key {
	case differsGuest:
		return fmt.Sprintf("It is guest %s, not guest %s.", d.Now, d.Was)
	case differsNode:
		return fmt.Sprintf("The guest moved from node %s to node %s.", orUnknown(d.Was), orUnknown(d.Now))
	case differsParent:
		switch {
		case d.Was == "":
			return fmt.Sprintf("Snapshot %s was taken.", d.Now)
		case d.Now == "":
			return fmt.Sprintf("Snapshot %s was the newest one; there is none now.", d.Was)
		}
		return fmt.Sprintf("The newest snapshot is %s, not %s.", d.Now, d.Was)
	case differsInstall:
		if d.Now == "" {
			return fmt.Sprintf("The record of its install (%s) is gone from its notes.", d.Was)
		}
		return fmt.Sprintf("It was reinstalled by %s.", d.Now)
	}
	switch {
	case d.Was == "":
		return fmt.Sprintf("%s (%s) was added.", d.Key, shown(d.Key, d.Now))
	case d.Now == "":
		return fmt.Sprintf("%s (%s) is gone.", d.Key, shown(d.Key, d.Was))
	}
	return fmt.Sprintf("%s was %s and is %s.", d.Key, d.Was, d.Now)
}

// shown is a config value for people: the volume, and its size when it has one.
func shown(key, value string) string {
	m, err := guest.ParseMount(key, value)
	if err != nil {
		return value
	}
	if size, _, err := guest.ReadSize(m.SizeText); err == nil && size > 0 {
		return m.Source + ", " + size.GiB()
	}
	return m.Source
}

// Compare lists what changed since a was taken, in the order of keys; none means that the guest is what the plan saw.
func (a Acknowledgements) Compare(now Acknowledgements) []Difference {
	var all []Difference
	if a.VMID != now.VMID {
		all = append(all, Difference{Key: differsGuest, Was: a.VMID.String(), Now: now.VMID.String()})
	}
	if a.Node != now.Node {
		all = append(all, Difference{Key: differsNode, Was: a.Node, Now: now.Node})
	}
	if a.Parent != now.Parent {
		all = append(all, Difference{Key: differsParent, Was: a.Parent, Now: now.Parent})
	}
	if a.Install != now.Install {
		all = append(all, Difference{Key: differsInstall, Was: a.Install, Now: now.Install})
	}
	keys := append(sortedKeys(a.Values), sortedKeys(now.Values)...)
	guest.SortKeys(keys)
	for _, key := range slices.Compact(keys) {
		if a.Values[key] != now.Values[key] {
			all = append(all, Difference{Key: key, Was: a.Values[key], Now: now.Values[key]})
		}
	}
	return all
}

// CompareDuring is Compare without what the journal says this operation changed itself: a key whose volume is set aside may
// be gone, and snapshots that it deletes with consent may be gone. Everything else still counts, also another value under a
// key that was set aside, and a snapshot that was taken meanwhile.
func (a Acknowledgements) CompareDuring(now Acknowledgements, j guest.Journal) []Difference {
	return slices.DeleteFunc(a.Compare(now), func(d Difference) bool {
		if len(j.Disks) > 0 && changedByRebuild(d, j) {
			return true
		}
		switch d.Key {
		case differsInstall:
			return true // whoever holds the record is the only one who installs
		case differsParent:
			return len(j.Snaps) > 0 && slices.Contains(j.Snaps, d.Was) && (d.Now == "" || slices.Contains(j.Snaps, d.Now))
		}
		return d.Now == "" && slices.ContainsFunc(j.Parked, func(p guest.ParkedVolume) bool { return p.Key == d.Key })
	})
}

// changedByRebuild reports whether a difference is the work of a VM's rebuild: a system disk that was set aside or replaced,
// its entry among the unused ones, the snapshot that was asked for.
func changedByRebuild(d Difference, j guest.Journal) bool {
	if d.Key == differsParent {
		return j.Snapshot != "" && (d.Now == j.Snapshot || d.Was == j.Snapshot)
	}
	now, _, _ := strings.Cut(d.Now, ",")
	return slices.ContainsFunc(j.Disks, func(s guest.SystemDisk) bool {
		return s.Key == d.Key && (d.Now == "" || now == s.Now || now == s.Was) || now != "" && now == s.Was || now != "" && now == s.Now
	})
}
