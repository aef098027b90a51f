package preview

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// findDifferences compares the container with its contract: restored over itself, rolled back to a snapshot, changed by hand.
func (i *instance) findDifferences() {
	i.judgeAge()
	i.judgeMirror()
	if i.restored {
		i.judgeRestored()
		return
	}
	var words []string
	add := func(key, text string) {
		i.keys = append(i.keys, key)
		words = append(words, text)
	}
	for _, key := range i.comparable() {
		was, had := i.app().Keys[key]
		now, has := i.f.Guest.Config.Get(key)
		switch {
		case had && has && sameKey(key, was, now), i.awaited(key), !has && i.notMissed(key, was):
		case i.tolerated(key, had), i.configured(key, had):
		case key == "entrypoint": // its arguments may be nobody's business
			add(key, "entrypoint was changed")
		case !had:
			add(key, fmt.Sprintf("%s (%s) was added", key, shown(key, now)))
		case !has:
			add(key, fmt.Sprintf("%s (%s) is gone", key, shown(key, was)))
		default:
			before, after := differing(was, now)
			add(key, fmt.Sprintf("%s was changed (%s → %s)", key, before, after))
		}
	}
	for _, path := range sortedKeys(i.app().Volumes) {
		key := i.app().Volumes[path]
		_, had := i.app().Keys[key]
		if _, has := i.f.Guest.Config.Get(key); !had && !has && i.hasPath(path) {
			add(key, fmt.Sprintf("volume %s (%s) is gone", path, key)) // adopted without it
		}
	}
	if text := i.strayVariables(); text != "" {
		add("env", text)
	}
	if len(words) > 0 {
		i.differ("%s is not as it was left: %s.", i.label(), list(words))
	}
	i.judgeLostRaw()
}

func (i *instance) differ(format string, args ...any) {
	i.differs = append(i.differs, guest.Printable(fmt.Sprintf(format, args...)))
}

// judgeContract blocks on what differs from the contract.
func (i *instance) judgeContract() {
	subject := i.id().String()
	if len(i.keys) > 0 {
		subject = strings.Join(i.keys, ", ")
	}
	for _, found := range i.differs {
		i.block(Blocker{
			Code: CodeContractDiffers, Subject: subject, Attribute: "adopt", Found: found,
			Remedy: "Look at the container, set back what should not be, and, to take it over as it is, set adopt = true: that only records it, and the next plan shows what is due.",
		})
	}
}

// judgeAge: state remembers a later contract than the notes hold: the container was restored over itself from a backup.
func (i *instance) judgeAge() {
	if !i.restored && i.want.Known != "" && i.contract.At < i.want.KnownAt {
		i.differ("%s was restored over itself: its contract is %s of %s, the last one known here is %s of %s.", i.label(),
			orUnknown(i.contract.Instance), utc(i.contract.At), i.want.Known, utc(i.want.KnownAt))
	}
}

// judgeMirror: a rollback to a snapshot returns the environment and leaves the notes, so that the contract's id in the
// environment tells (hazard C7). An environment that may not be read says nothing.
func (i *instance) judgeMirror() {
	mirror, seen := i.mirror()
	switch {
	case !seen:
		i.warn("%s: its environment cannot be read (VM.Config.Options on %s), so neither changed variables nor a rollback to a snapshot would be seen", i.label(), i.path())
	case mirror == i.contract.Instance, i.awaitedEnvironment():
	case mirror == "":
		i.differ("%s does not carry the id of its contract in its environment (%s): it was rolled back to a snapshot from before, or somebody wrote the environment.", i.label(), guest.ContractVariable)
	default:
		i.differ("%s was rolled back to a snapshot: its environment is of contract %s, its notes of %s.", i.label(), mirror, i.contract.Instance)
	}
}

// comparable are the keys of contract and container that are compared, in natural order. The environment is compared by
// names, notes never, and what guards or locks the container has questions of its own.
func (i *instance) comparable() []string {
	keys := maps.Clone(i.app().Keys)
	if keys == nil {
		keys = map[string]string{}
	}
	maps.Copy(keys, i.f.Guest.Config.Values)
	return slices.DeleteFunc(sortedKeys(keys), func(key string) bool { return !recordedKey(key) })
}

// tolerated reports whether a key may differ from the contract: it is carried by the next update as it is.
func (i *instance) tolerated(key string, had bool) bool {
	name, _, indexed := guest.SplitKey(key)
	switch key {
	case "memory", "swap", "cores", "cpulimit", "cpuunits", "onboot", "startup":
		return true
	}
	return indexed && name == "net" && !had
}

// notMissed reports whether a mount that is gone is not configured either.
func (i *instance) notMissed(key, was string) bool {
	m, err := guest.ParseMount(key, was)
	if err != nil || key == "rootfs" || m.Path == "-" {
		return false
	}
	return !i.hasHostPath(m.Path) && !i.hasPath(m.Path)
}

// configured reports whether the configuration sets a key: then it is a change to make and not a difference.
func (i *instance) configured(key string, had bool) bool {
	if _, set := i.settings()[key]; set {
		return true
	}
	if _, set := i.want.Devices[key]; set || key == "entrypoint" && i.want.Entrypoint != "" {
		return true
	}
	m, err := guest.ParseMount(key, i.f.Guest.Config.Values[key])
	if err != nil || key == "rootfs" {
		return false
	}
	if m.Kind == guest.SourceBind {
		return i.hasHostPath(m.Path)
	}
	// One that is mounted elsewhere than the contract says is not what is configured there.
	return i.hasPath(m.Path) && (!had || i.app().Volumes[m.Path] == key)
}

// awaited reports whether a key is what it shall be once a change that waits for a restart is made.
func (i *instance) awaited(key string) bool {
	was, had := i.app().Keys[key]
	for _, c := range i.f.Guest.Pending {
		if c.Key == key && (c.Delete && !had || !c.Delete && had && sameKey(key, was, c.Value)) {
			return true
		}
	}
	return false
}

// sameKey reports whether two values of a key mean the same. Of a volume only how it is mounted counts: a restore gives it
// another name.
func sameKey(key, a, b string) bool {
	name, _, indexed := guest.SplitKey(key)
	switch {
	case isMount(key):
		x, errX := guest.ParseMount(key, a)
		y, errY := guest.ParseMount(key, b)
		return errX == nil && errY == nil && x.Kind == y.Kind && x.SameOptions(y) && (x.Kind == guest.SourceVolume || x.Source == y.Source)
	case indexed && name == "net":
		return sameNetwork(key, a, b)
	}
	return sameSetting(key, a, b)
}

// judgeLostRaw: raw settings that the create made from the image are lost by a restore with a token: the application then
// runs as root, in another directory, or does not stop (hazard C7).
func (i *instance) judgeLostRaw() {
	lost := missingPairs(i.app().Raw, i.f.Guest.Config.Raw)
	if len(lost) > 0 {
		i.warn("%s has lost what its image asked for (%s), as a restore without root@pam does: it may run as another user, in another directory, or not stop. An update at the same digest sets it again: change triggers", i.label(), strings.Join(lost, ", "))
	}
}

// missingPairs are the raw settings of a that b does not have, as "key = value".
func missingPairs(a, b [][2]string) []string {
	var missing []string
	for _, pair := range a {
		if !slices.Contains(b, pair) {
			missing = append(missing, guest.Printable(pair[0]+" = "+pair[1]))
		}
	}
	return missing
}
