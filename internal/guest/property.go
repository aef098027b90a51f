package guest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

var optionName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

// parseProperties reads a comma-separated property string. A part without a name belongs to defaultKey, which may also be
// written out. The same option twice, an empty value or an unusable name is an error: what Proxmox would not write is not guessed at.
func parseProperties(value, defaultKey string) (map[string]string, error) {
	if !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl) {
		return nil, fmt.Errorf("cannot read %q: it holds control characters", clip(value))
	}
	options := map[string]string{}
	for part := range strings.SplitSeq(value, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, text, named := strings.Cut(part, "=")
		if !named {
			name, text = defaultKey, part
		}
		if name == "" || text == "" || !optionName.MatchString(name) {
			return nil, fmt.Errorf("cannot read %q: part %q is not name=value", clip(value), clip(part))
		}
		if _, twice := options[name]; twice {
			return nil, fmt.Errorf("cannot read %q: %s is given twice", clip(value), name)
		}
		options[name] = text
	}
	return options, nil
}

// printProperties joins options as Proxmox prints them: first the given names, then the others in alphabetical order.
func printProperties(parts []string, options map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(options)) {
		parts = append(parts, name+"="+options[name])
	}
	return strings.Join(parts, ",")
}

// truth returns "1" or "0" for every spelling of a boolean that Proxmox accepts, and other text unchanged.
func truth(text string) string {
	switch strings.ToLower(text) {
	case "1", "on", "yes", "true":
		return "1"
	case "0", "off", "no", "false":
		return "0"
	}
	return text
}
