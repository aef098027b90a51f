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
