package guest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Same reports whether the wanted install is the one that is there. A storage that is not wanted by name does not matter.
func (i Install) Same(wanted Install) bool {
	return i.Template == wanted.Template && maps.Equal(i.Triggers, wanted.Triggers) && maps.Equal(i.Disks, wanted.Disks) &&
		(wanted.RootfsStorage == "" || i.RootfsStorage == wanted.RootfsStorage)
}

// Hash returns a short stable name for the install: equal for equal content, whatever the order of triggers.
func (i Install) Hash() string {
	text, err := json.Marshal(i) // sorts the keys of maps
	if err != nil {
		panic("guest: an install holds only text: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Changes says in words what differs in the wanted install, one line each; none when Same.
func (i Install) Changes(wanted Install) []string {
	var changes []string
	if i.Template != wanted.Template {
		changes = append(changes, fmt.Sprintf("template: %s → %s", word(i.Template), word(wanted.Template)))
	}
	keys := map[string]bool{}
	for key := range i.Disks {
		keys[key] = true
	}
	for key := range wanted.Disks {
		keys[key] = true
	}
	for _, key := range slices.SortedFunc(maps.Keys(keys), CompareKeys) {
		if i.Disks[key] != wanted.Disks[key] {
			changes = append(changes, fmt.Sprintf("%s: %s → %s", Printable(key), word(i.Disks[key]), word(wanted.Disks[key])))
		}
	}
	names := map[string]bool{}
	for name := range i.Triggers {
		names[name] = true
	}
	for name := range wanted.Triggers {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		before, had := i.Triggers[name]
		after, has := wanted.Triggers[name]
		label := "trigger " + Printable(name) + ": "
		switch {
		case !had:
			changes = append(changes, label+"added "+strconv.Quote(Printable(after)))
		case !has:
			changes = append(changes, label+"removed "+strconv.Quote(Printable(before)))
		case before != after:
			changes = append(changes, label+strconv.Quote(Printable(before))+" → "+strconv.Quote(Printable(after)))
		}
	}
	if wanted.RootfsStorage != "" && i.RootfsStorage != wanted.RootfsStorage {
		changes = append(changes, fmt.Sprintf("rootfs storage: %s → %s", word(i.RootfsStorage), word(wanted.RootfsStorage)))
	}
	return changes
}

func word(text string) string {
	if text == "" {
		return "not recorded"
	}
	return Printable(text)
}
