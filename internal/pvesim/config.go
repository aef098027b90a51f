package pvesim

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
)

// config is one section of a guest's configuration file.
type config struct {
	// kv holds every key but raw lxc ones, values as they stand in the file.
	kv map[string]string
	// lxc holds the raw pairs, in order.
	lxc [][2]string
}

func newConfig() config { return config{kv: map[string]string{}} }

func (c config) clone() config {
	return config{kv: maps.Clone(c.kv), lxc: slices.Clone(c.lxc)}
}

func (c config) keys() []string {
	keys := make([]string, 0, len(c.kv))
	for k := range c.kv {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// set writes a value, on the form the file keeps: a description is stored as comment lines, so its
// trailing line ends do not survive.
func (c config) set(key, value string) {
	if key == "description" {
		value = foldDescription(value)
		if value == "" {
			delete(c.kv, key)
			return
		}
	}
	c.kv[key] = value
}

// foldDescription is what comes back of a description that went through the file: every line ends
// in one line end, trailing empty lines are gone.
func foldDescription(s string) string {
	s = strings.TrimRight(s, "\n")
	if s == "" {
		return ""
	}
	return s + "\n"
}

func (c config) render(b *strings.Builder) {
	if d := c.kv["description"]; d != "" {
		for line := range strings.SplitSeq(strings.TrimRight(d, "\n"), "\n") {
			fmt.Fprintf(b, "#%s\n", line)
		}
	}
	for _, k := range c.keys() {
		if k != "description" && k != "env" {
			fmt.Fprintf(b, "%s: %s\n", k, c.kv[k])
		}
	}
	if env, ok := c.kv["env"]; ok {
		for v := range strings.SplitSeq(env, "\x00") {
			fmt.Fprintf(b, "lxc.environment.runtime: %s\n", v)
		}
	}
	for _, p := range c.lxc {
		fmt.Fprintf(b, "%s: %s\n", p[0], p[1])
	}
}

// snapshot is one snapshot section.
type snapshot struct {
	name string
	// conf carries parent, snaptime and description as keys, as the file does.
	conf config
}

// configText is the whole file of a guest, as Proxmox would write it.
func (g *guest) configText() string {
	var b strings.Builder
	g.conf.render(&b)
	if len(g.pending.kv)+len(g.pendingDelete) > 0 {
		b.WriteString("\n[pve:pending]\n")
		if len(g.pendingDelete) > 0 {
			var names []string
			for k, force := range g.pendingDelete {
				if force {
					k = "!" + k
				}
				names = append(names, k)
			}
			sort.Strings(names)
			fmt.Fprintf(&b, "delete: %s\n", strings.Join(names, ","))
		}
		g.pending.render(&b)
	}
	for _, s := range g.snapshots {
		fmt.Fprintf(&b, "\n[%s]\n", s.name)
		s.conf.render(&b)
	}
	return b.String()
}

// digest is the SHA-1 of the file's text: 40 hex digits.
func (g *guest) digest() string {
	sum := sha1.Sum([]byte(g.configText()))
	return hex.EncodeToString(sum[:])
}

// propString is Proxmox's property string: options in the order written, the first may be bare.
type propString struct {
	// bare is the value of the default key (a volume id, a MAC model).
	bare string
	opts []prop
}

type prop struct{ key, value string }

// parseProps splits "a,k=v,k2=v2". Bare parts after the first are kept as keys with no value.
func parseProps(s, defaultKey string) propString {
	var p propString
	for i, part := range strings.Split(s, ",") {
		if part == "" {
			continue
		}
		k, v, ok := strings.Cut(part, "=")
		switch {
		case !ok && i == 0:
			p.bare = part
		case ok && k == defaultKey:
			p.bare = v
		default:
			p.opts = append(p.opts, prop{k, v})
		}
	}
	return p
}

func (p propString) get(key string) (string, bool) {
	for _, o := range p.opts {
		if o.key == key {
			return o.value, true
		}
	}
	return "", false
}

func (p propString) value(key string) string {
	v, _ := p.get(key)
	return v
}

// with gives the string with one option set; p itself stays as it is.
func (p propString) with(key, value string) propString {
	p = p.without(key)
	p.opts = append(p.opts, prop{key, value})
	return p
}

// without gives the string without one option.
func (p propString) without(key string) propString {
	left := make([]prop, 0, len(p.opts)+1)
	for _, o := range p.opts {
		if o.key != key {
			left = append(left, o)
		}
	}
	p.opts = left
	return p
}

// render prints the bare value, then the keys named in first, then the rest in alphabetical order:
// Proxmox prints required keys before optional ones.
func (p propString) render(first ...string) string {
	parts := make([]string, 0, len(p.opts)+1)
	if p.bare != "" {
		parts = append(parts, p.bare)
	}
	for _, k := range first {
		if v, ok := p.get(k); ok {
			parts = append(parts, k+"="+v)
		}
	}
	rest := slices.Clone(p.opts)
	sort.SliceStable(rest, func(i, j int) bool { return rest[i].key < rest[j].key })
	for _, o := range rest {
		if !slices.Contains(first, o.key) {
			parts = append(parts, o.key+"="+o.value)
		}
	}
	return strings.Join(parts, ",")
}
