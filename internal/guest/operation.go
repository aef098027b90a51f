package guest

import "regexp"

var operationPattern = regexp.MustCompile(`^op-[1-9][0-9]{0,8}-[0-9]{8}-[0-9a-z]{4,16}$`)

// NewOperationID returns the id of a new operation on a guest: day as "20261201", random as at least four characters of
// 0-9 and a-z, so that two operations of one day differ.
func NewOperationID(id VMID, day, random string) string {
	return "op-" + id.String() + "-" + day + "-" + random
}

// ValidOperationID reports whether text has the form of an operation id.
func ValidOperationID(text string) bool { return operationPattern.MatchString(text) }
