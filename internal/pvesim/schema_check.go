package pvesim

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	textMissing    = "property is missing and it is not optional"
	textUnknownKey = "property is not defined in schema and the schema does not allow additional properties"
)

var numberRE = regexp.MustCompile(`^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$`)

// check validates the arguments of a call, those of the path included, and normalises booleans to
// 1 and 0 in place. The map is nil when all is well, else it holds a text for each bad argument.
func (op *operation) check(args map[string]string) map[string]string {
	var bad map[string]string
	add := func(name, text string) {
		if bad == nil {
			bad = map[string]string{}
		}
		if old, ok := bad[name]; ok {
			text = old + `\n` + text
		}
		bad[name] = text
	}
	for name, p := range op.Args {
		if _, given := args[name]; !given && !bool(p.Optional) && p.Alias == "" {
			add(name, textMissing)
		}
	}
	for name, value := range args {
		p := op.arg(name)
		if p == nil {
			if !op.AnyArgs {
				add(name, textUnknownKey)
			}
			continue
		}
		if p.Type == "boolean" {
			value = normalBool(value)
			args[name] = value
		}
		if text := p.check(value, name); text != "" {
			add(name, text)
		}
		if p.Requires != "" {
			if _, ok := args[p.Requires]; !ok {
				add(p.Requires, fmt.Sprintf("missing property required by '%s'", name))
			}
		}
	}
	return bad
}

// normalBool gives 1 or 0 for every spelling that Proxmox knows, and anything else back unchanged.
func normalBool(v string) string {
	switch strings.ToLower(v) {
	case "1", "on", "yes", "true":
		return "1"
	case "0", "off", "no", "false":
		return "0"
	}
	return v
}

// check says what is wrong with one value; empty if nothing is. path names it in nested messages.
func (p *property) check(value, path string) string {
	if text := p.checkType(value); text != "" {
		return text
	}
	if p.Type == "array" {
		if p.Items != nil {
			for v := range strings.SplitSeq(value, "\x00") {
				if text := p.Items.check(v, path); text != "" {
					return text
				}
			}
		}
		return ""
	}
	if err := p.checkFormat(value, path); err != nil {
		return "invalid format - " + err.Error() + "\n"
	}
	if p.match != nil && !p.match().MatchString(value) {
		return "value does not match the regex pattern"
	}
	length := utf8.RuneCountInString(value)
	if p.MaxLength != nil && length > *p.MaxLength {
		return fmt.Sprintf("value may only be %d characters long", *p.MaxLength)
	}
	if p.MinLength != nil && length < *p.MinLength {
		return fmt.Sprintf("value must be at least %d characters long", *p.MinLength)
	}
	if (p.Max != nil || p.Min != nil) && numberRE.MatchString(value) {
		n, _ := strconv.ParseFloat(value, 64)
		if p.Max != nil && n > *p.Max {
			return "value must have a maximum value of " + plainNumber(*p.Max)
		}
		if p.Min != nil && n < *p.Min {
			return "value must have a minimum value of " + plainNumber(*p.Min)
		}
	}
	if p.Enum != nil && !slices.Contains(p.Enum, value) {
		return fmt.Sprintf("value '%s' does not have a value in the enumeration '%s'", value, strings.Join(p.Enum, ", "))
	}
	return ""
}

func isInteger(v string) bool {
	if v != "" && (v[0] == '-' || v[0] == '+') {
		v = v[1:]
	}
	return isDigits(v)
}

func plainNumber(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func (p *property) checkType(value string) string {
	ok := true
	switch p.Type {
	case "boolean":
		ok = value == "0" || value == "1"
	case "integer":
		ok = isInteger(value)
	case "number":
		ok = numberRE.MatchString(value)
	}
	if ok {
		return ""
	}
	return fmt.Sprintf("type check ('%s') failed - got '%s'", p.Type, value)
}

func (p *property) checkFormat(value, path string) error {
	if p.parts != nil {
		_, err := p.parts.parse(value, path)
		return err
	}
	if p.Format == "" {
		return nil
	}
	return checkNamedFormat(p.Format, value)
}

// parse reads a property string. Aliases are resolved and booleans normalised in the result.
// path goes in front of option names in the error's text; the error has no line end behind it.
func (f *partFormat) parse(s, path string) (map[string]string, error) {
	res := map[string]string{}
	sawDefault := false
	for part := range strings.SplitSeq(s, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		k, v, hasKey := strings.Cut(part, "=")
		switch {
		case hasKey && k != "" && v != "":
			if _, dup := res[k]; dup {
				return nil, fmt.Errorf("duplicate key in comma-separated list property: %s", k)
			}
			p := f.props[k]
			if p != nil && p.Alias != "" {
				if p.KeyAlias != "" {
					if _, dup := res[p.KeyAlias]; dup {
						return nil, fmt.Errorf("key alias '%s' is already defined", p.KeyAlias)
					}
					res[p.KeyAlias] = k
				}
				k = p.Alias
				p = f.props[k]
				if _, dup := res[k]; dup {
					return nil, fmt.Errorf("key '%s' is already defined (via alias)", k)
				}
			}
			if p == nil {
				return nil, fmt.Errorf("invalid key in comma-separated list property: %s", k)
			}
			if p.Type == "boolean" {
				v = normalBool(v)
			}
			res[k] = v
		case !hasKey:
			if f.defaultKey == "" {
				return nil, errors.New("value without key, but schema does not define a default key")
			}
			if _, dup := res[f.defaultKey]; dup || sawDefault {
				return nil, fmt.Errorf("duplicate key in comma-separated list property: %s", f.defaultKey)
			}
			sawDefault = true
			if f.props[f.defaultKey].Type == "boolean" {
				part = normalBool(part)
			}
			res[f.defaultKey] = part
		default:
			return nil, errors.New("missing key in comma-separated list property")
		}
	}
	if bad := f.checkParts(res, path); bad != nil {
		return nil, errors.New("format error\n" + strings.TrimSuffix(formatErrors(bad), "\n"))
	}
	return res, nil
}

// checkParts validates parsed options against the grammar, as Proxmox does when it reads a property
// string and again when it writes one. Nil if all is well.
func (f *partFormat) checkParts(parts map[string]string, path string) map[string]string {
	bad := map[string]string{}
	name := func(k string) string {
		if path == "" {
			return k
		}
		return path + "." + k
	}
	for k, p := range f.props {
		if _, given := parts[k]; !given && !bool(p.Optional) && p.Alias == "" {
			bad[name(k)] = textMissing
		}
	}
	for k, v := range parts {
		p := f.props[k]
		if p == nil {
			bad[name(k)] = textUnknownKey
			continue
		}
		if text := p.check(v, name(k)); text != "" {
			bad[name(k)] = text
		}
		if p.Requires != "" {
			if _, ok := parts[p.Requires]; !ok {
				bad[name(p.Requires)] = fmt.Sprintf("missing property required by '%s'", name(k))
			}
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return bad
}

// formatErrors writes one line for each error, sorted: Perl's own order is not stable.
func formatErrors(bad map[string]string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(bad)) {
		fmt.Fprintf(&b, "%s: %s\n", k, bad[k])
	}
	return b.String()
}

// print writes options as Proxmox does: the default key bare, required keys, then the rest by
// name. Key aliases are written as the alias ("virtio=MAC").
func (f *partFormat) print(parts map[string]string) string {
	var out []string
	done := map[string]bool{}
	put := func(k string) {
		v, ok := parts[k]
		if !ok || done[k] {
			return
		}
		done[k] = true
		if p := f.props[v]; p != nil && p.KeyAlias == k {
			if av, ok := parts[p.Alias]; ok {
				done[p.Alias] = true
				out = append(out, v+"="+av)
				return
			}
		}
		if k == f.defaultKey {
			out = append(out, v)
			return
		}
		out = append(out, k+"="+v)
	}
	keys := slices.Sorted(maps.Keys(parts))
	put(f.defaultKey)
	for _, k := range keys {
		if p := f.props[k]; p != nil && !bool(p.Optional) {
			put(k)
		}
	}
	for _, k := range keys {
		put(k)
	}
	return strings.Join(out, ",")
}
