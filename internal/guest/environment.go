package guest

import (
	"maps"
	"slices"
	"strings"
)

// ReadEnvironment reads the value of env as Proxmox keeps it: NAME=VALUE items joined by NUL. Of a name that is given twice
// the last value counts, as for the process. An item without a name or without "=" is left out.
func ReadEnvironment(env string) map[string]string {
	variables := map[string]string{}
	for item := range strings.SplitSeq(env, "\x00") {
		if name, value, named := strings.Cut(item, "="); named && name != "" {
			variables[name] = value
		}
	}
	return variables
}

// WriteEnvironment returns variables in the form that Proxmox takes, in alphabetical order.
func WriteEnvironment(variables map[string]string) string {
	items := make([]string, 0, len(variables))
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		items = append(items, name+"="+variables[name])
	}
	return strings.Join(items, "\x00")
}

// UnkeptVariable says why Proxmox would not give a variable back as it was set, "" when it does: it refuses names of other
// characters than letters, digits and underscores and values with control characters, cuts off blanks at a value's end, and
// does not keep the encoding of what is not ASCII. Measured with pve-container 6.1.
func UnkeptVariable(name, value string) (why string) {
	word := func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}
	switch {
	case name == "" || strings.ContainsFunc(name, word):
		return "Proxmox takes letters, digits and underscores in a name"
	case strings.ContainsFunc(value, func(r rune) bool { return r != '\t' && (r < ' ' || r == 0x7f) }):
		return "it holds a line break or another control character, which Proxmox does not take"
	case strings.ContainsFunc(value, func(r rune) bool { return r > 0x7f }):
		return "it holds characters beyond ASCII, which Proxmox does not keep as they are"
	case strings.TrimRight(value, " \t") != value:
		return "Proxmox cuts off the blanks at its end"
	}
	return ""
}
