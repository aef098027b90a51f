package guest

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// SplitKey splits a config key into its name and its index: "mp10" is "mp", 10. ok is false for a key without an index
// ("rootfs") and for one that Proxmox would not write ("mp01"); name is then the whole key.
func SplitKey(key string) (name string, index int, ok bool) {
	name = strings.TrimRight(key, "0123456789")
	digits := key[len(name):]
	if name == "" || digits == "" || len(digits) > 4 || (len(digits) > 1 && digits[0] == '0') {
		return key, 0, false
	}
	index, err := strconv.Atoi(digits)
	return name, index, err == nil
}

// CompareKeys orders config keys as people count: mp2 before mp10. The result is negative, zero or positive.
func CompareKeys(a, b string) int {
	nameA, indexA, _ := SplitKey(a)
	nameB, indexB, _ := SplitKey(b)
	return cmp.Or(cmp.Compare(nameA, nameB), cmp.Compare(indexA, indexB), cmp.Compare(a, b))
}

// SortKeys sorts config keys in place, in the order of CompareKeys.
func SortKeys(keys []string) { slices.SortFunc(keys, CompareKeys) }
