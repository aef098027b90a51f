package provider

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// instanceMemo is what a memo holds of an application container beside the rest.
type instanceMemo struct {
	// Known is the id of the newest contract that was seen, and KnownAt its time: an older one in the notes was restored.
	Known   string `json:"known,omitempty"`
	KnownAt int64  `json:"known_at,omitempty"`
	// Available is what the reference in state named when Read asked; its digest is empty when the registry could not say.
	Available seenImage `json:"available"`
	// Declined is the image of an update that was rolled back.
	Declined seenImage `json:"declined"`
	// Keys are short hashes of the configuration's values, so that an apply notices what was changed after its plan. The
	// environment is not among them, since it is secret.
	Keys map[string]string `json:"keys,omitempty"`
}

// rememberInstance keeps of an observation what a plan and its apply need; before is the memo of last time.
func rememberInstance(seen recipe.Observation, before memo, available seenImage) memo {
	m := remember(seen, before.Spent)
	i := instanceMemo{Available: available, Keys: keyHashes(seen.Config)}
	if before.Instance != nil {
		i.Known, i.KnownAt, i.Declined = before.Instance.Known, before.Instance.KnownAt, before.Instance.Declined
	}
	if c := seen.Contract; c != nil && c.At >= i.KnownAt {
		i.Known, i.KnownAt = c.Instance, c.At
	}
	m.Instance = &i
	return m
}

// instance is the part of an application container; empty when the memo was written by nobody who knew it.
func (m memo) instance() instanceMemo {
	if m.Instance == nil {
		return instanceMemo{}
	}
	return *m.Instance
}

// declining returns the memo with an image whose update was rolled back: what the container refused is known without a registry.
func (m memo) declining(image seenImage) memo {
	i := m.instance()
	i.Declined = image
	m.Instance = &i
	return m
}

// keyHashes are short hashes of the values that nothing else compares.
func keyHashes(config guest.Config) map[string]string {
	hashes := map[string]string{}
	for _, key := range config.Keys() {
		name, _, indexed := guest.SplitKey(key)
		volume := key == "rootfs" || (indexed && (name == "mp" || name == "unused"))
		if volume || slices.Contains([]string{"env", "description", "digest", "lock", "parent"}, key) {
			continue
		}
		sum := sha256.Sum256([]byte(config.Values[key]))
		hashes[key] = hex.EncodeToString(sum[:4])
	}
	return hashes
}

// instanceChanges says in sentences what differs between the memo and what is seen now.
func (m memo) instanceChanges(seen recipe.Observation) []string {
	changed := m.changes(seen)
	before, now := m.instance().Keys, keyHashes(seen.Config)
	if m.Presence != guest.Present || seen.Presence != guest.Present || before == nil {
		return changed
	}
	for _, key := range sortedKeys(before, now) {
		_, was := before[key]
		_, is := now[key]
		switch {
		case !was:
			changed = append(changed, fmt.Sprintf("%s was added.", guest.Printable(key)))
		case !is:
			changed = append(changed, fmt.Sprintf("%s was removed.", guest.Printable(key)))
		case before[key] != now[key]:
			changed = append(changed, fmt.Sprintf("%s was changed.", guest.Printable(key)))
		}
	}
	return changed
}

// sortedKeys are the keys of several maps, in natural order.
func sortedKeys(maps ...map[string]string) (keys []string) {
	for _, m := range maps {
		for key := range m {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, guest.CompareKeys)
	return slices.Compact(keys)
}

// looks are what Read saw in this run, so that the plan that follows need not look again.
type looks struct {
	mu   sync.Mutex
	seen map[guest.VMID]recipe.Observation
}

func (l *looks) keep(id guest.VMID, seen recipe.Observation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = map[guest.VMID]recipe.Observation{}
	}
	l.seen[id] = seen
}

// take hands a look out once: whoever comes later looks for itself.
func (l *looks) take(ctx context.Context, id guest.VMID, look func(context.Context, guest.VMID) (recipe.Observation, error)) (recipe.Observation, error) {
	l.mu.Lock()
	seen, found := l.seen[id]
	delete(l.seen, id)
	l.mu.Unlock()
	if found {
		return seen, nil
	}
	return look(ctx, id)
}
