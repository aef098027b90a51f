package preview

import "fmt"

// Blocker is one named reason not to go on, with what was found and what to do about it.
type Blocker struct {
	Code Code
	// Subject is what it is about: a guest, a key, a volume id, a storage.
	Subject string
	// Attribute is the argument that would fix it: "erase", "drop", "allow", "rootfs.size", "name", "vmid", "template",
	// "reconcile", "backup.storage", ...; empty when no argument can.
	Attribute string
	// Found says what was found, with ids and numbers; Remedy says what to do. Both are whole sentences.
	Found  string
	Remedy string
}

// Text returns one paragraph for people: subject and code, what was found, what to do.
func (b Blocker) Text() string {
	return fmt.Sprintf("%s (%s): %s %s", b.Subject, b.Code, b.Found, b.Remedy)
}
