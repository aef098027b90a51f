package preview

import "github.com/pvrx/terraform-provider-pvrx/internal/guest"

// Work is what the changes of a preview are made of, for whoever makes them: one list decides what is shown and what is done.
// Unlike a Preview it holds secrets and is never printed.
type Work struct {
	Set    map[string]string      // keys of the configuration to set, mounts that change their options and host mounts among them
	Delete []string               // keys to take away
	Make   []guest.NewVolume      // volumes to make, one request each
	Grow   map[string]guest.Bytes // volumes to enlarge, by key: the whole new size in MiB
	Erase  []string               // keys whose volume goes, with consent
	// Environment is what the container's environment becomes, without the contract's variable; nil when it stays. Secret.
	Environment map[string]string
	Notes       *string // the user's own text in the notes, when that changes
	Pool        *string // the pool that it moves to, when that changes
	Start, Stop bool
	Restart     bool // something waits for one
}

// InstanceWork returns what the changes take that Instance shows for the same facts. Of an install it is everything that the
// configuration sets, of an update what changes beside the root file system.
func InstanceWork(f Facts, w Want) Work {
	i := newInstance(f, w)
	i.judgeAll()
	return i.work
}

// change adds a difference between what is and what is wanted; without values, because they say nothing or are secret, when
// both are empty.
func (i *instance) change(what, from, to string, takes Takes) {
	if takes == TakesRestart && i.f.Guest.Running && i.want.Started {
		i.work.Restart = true
	}
	i.changes = append(i.changes, Change{What: guest.Printable(what), From: clipped(from), To: clipped(to), Takes: takes})
}

// clipped bounds a value for people.
func clipped(text string) string {
	const most = 80
	return shorten(guest.Printable(text), most)
}

func (i *instance) set(key, value string) {
	if i.work.Set == nil {
		i.work.Set = map[string]string{}
	}
	i.work.Set[key] = value
}
