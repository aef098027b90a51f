package pvesim

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// firewall is one guest's firewall file.
type firewall struct {
	options map[string]string
	aliases map[string]fwAlias
	ipsets  map[string]*fwSet
	rules   []map[string]string
}

type fwAlias struct{ cidr, comment string }

type fwSet struct {
	comment string
	entries []fwEntry
}

type fwEntry struct {
	cidr, comment string
	nomatch       bool
}

func newFirewall() *firewall {
	return &firewall{options: map[string]string{}, aliases: map[string]fwAlias{}, ipsets: map[string]*fwSet{}}
}

func (f *firewall) clone() *firewall {
	n := &firewall{options: maps.Clone(f.options), aliases: maps.Clone(f.aliases), ipsets: map[string]*fwSet{}}
	for k, v := range f.ipsets {
		n.ipsets[k] = &fwSet{v.comment, slices.Clone(v.entries)}
	}
	for _, r := range f.rules {
		n.rules = append(n.rules, maps.Clone(r))
	}
	return n
}

func (f *firewall) empty() bool {
	return len(f.options)+len(f.aliases)+len(f.ipsets)+len(f.rules) == 0
}

// text is the firewall as canonical lines, for digests and dumps.
func (f *firewall) text() string {
	var b strings.Builder
	for _, k := range sortedKeys(f.options) {
		fmt.Fprintf(&b, "option %s=%s\n", k, f.options[k])
	}
	for _, k := range sortedKeys(f.aliases) {
		fmt.Fprintf(&b, "alias %s %s %s\n", k, f.aliases[k].cidr, f.aliases[k].comment)
	}
	for _, k := range sortedKeys(f.ipsets) {
		fmt.Fprintf(&b, "ipset %s %s\n", k, f.ipsets[k].comment)
		entries := slices.Clone(f.ipsets[k].entries)
		slices.SortFunc(entries, func(a, b fwEntry) int { return strings.Compare(a.cidr, b.cidr) })
		for _, e := range entries {
			fmt.Fprintf(&b, "  %s nomatch=%t %s\n", e.cidr, e.nomatch, e.comment)
		}
	}
	for i, r := range f.rules {
		fmt.Fprintf(&b, "rule %d", i)
		for _, k := range sortedKeys(r) {
			fmt.Fprintf(&b, " %s=%s", k, r[k])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func textDigestOf(s string) string {
	sum := sha1.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

func (s *Server) registerFirewall() {
	for _, kind := range []guestKind{kindLXC, kindQEMU} {
		at := "/nodes/{node}/" + kind.String() + "/{vmid}/firewall"
		add := func(method, path string, h func(*call, *firewall) (any, error)) {
			s.route(method, at+path, func(k *call) (any, error) {
				f, err := k.firewall(kind)
				if err != nil {
					return nil, err
				}
				return h(k, f)
			})
		}
		add("GET", "/options", fwOptions)
		add("PUT", "/options", setFWOptions)
		add("GET", "/rules", fwRules)
		add("POST", "/rules", addFWRule)
		add("GET", "/rules/{pos}", fwRule)
		add("PUT", "/rules/{pos}", changeFWRule)
		add("DELETE", "/rules/{pos}", deleteFWRule)
		add("GET", "/aliases", fwAliases)
		add("POST", "/aliases", addFWAlias)
		add("GET", "/aliases/{name}", fwAliasRead)
		add("DELETE", "/aliases/{name}", deleteFWAlias)
		add("GET", "/ipset", fwSets)
		add("POST", "/ipset", addFWSet)
		add("GET", "/ipset/{name}", fwSetEntries)
		add("POST", "/ipset/{name}", addFWEntry)
		add("DELETE", "/ipset/{name}", deleteFWSet)
		add("DELETE", "/ipset/{name}/{cidr}", deleteFWEntry)
		add("GET", "/refs", fwRefs)
	}
}

// firewall finds a guest's firewall. Proxmox reads the file without looking for the guest; one that
// does not exist has an empty one, which is lost again.
func (k *call) firewall(kind guestKind) (*firewall, error) {
	g := k.c.guests[k.vmid()]
	if k.method != "GET" {
		if err := k.c.checkWritable(); err != nil {
			return nil, err
		}
	}
	if g == nil || g.kind != kind {
		return newFirewall(), nil
	}
	return g.fw, nil
}

var fwIntegers = setOf("enable", "dhcp", "macfilter", "ipfilter", "ndp", "radv", "pos", "ipversion")

func fwValue(k, v string) any {
	if fwIntegers[k] {
		return atoi(v)
	}
	return v
}

func fwOptions(k *call, f *firewall) (any, error) {
	out := map[string]any{}
	var text strings.Builder
	for _, n := range sortedKeys(f.options) {
		out[n] = fwValue(n, f.options[n])
		fmt.Fprintf(&text, "%s: %s\n", n, f.options[n])
	}
	out["digest"] = textDigestOf(text.String())
	return out, nil
}

func setFWOptions(k *call, f *firewall) (any, error) {
	set := k.configParams("delete", "digest")
	for _, n := range splitList(k.str("delete")) {
		delete(f.options, n)
	}
	maps.Copy(f.options, set)
	return nil, nil
}

func (f *firewall) rulesDigest() string {
	var b strings.Builder
	for _, r := range f.rules {
		fmt.Fprintln(&b, r)
	}
	return textDigestOf(b.String())
}

// ruleRow carries what a rule cannot be written with again: its position, the digest of all rules,
// and the IP version when an address tells it.
func (f *firewall) ruleRow(i int) map[string]any {
	row := map[string]any{"pos": i, "digest": f.rulesDigest()}
	for k, v := range f.rules[i] {
		row[k] = fwValue(k, v)
	}
	for _, end := range []string{"source", "dest"} {
		if v := f.ipVersion(f.rules[i][end]); v != 0 {
			row["ipversion"] = v
		}
	}
	return row
}

func (f *firewall) ipVersion(addr string) int {
	name := strings.TrimPrefix(addr, "guest/")
	if a, ok := f.aliases[strings.ToLower(name)]; ok {
		addr = a.cidr
	}
	first, _, _ := strings.Cut(addr, ",")
	if p, err := netip.ParsePrefix(first); err == nil {
		first = p.Addr().String()
	}
	a, err := netip.ParseAddr(first)
	switch {
	case err != nil:
		return 0
	case a.Is4():
		return 4
	default:
		return 6
	}
}

func fwRules(k *call, f *firewall) (any, error) {
	rows := []map[string]any{}
	for i := range f.rules {
		rows = append(rows, f.ruleRow(i))
	}
	return rows, nil
}

// checkRule refuses addresses that name an alias or set which is not there.
func (f *firewall) checkRule(r map[string]string) error {
	for _, end := range []string{"source", "dest"} {
		v := r[end]
		switch {
		case v == "":
		case strings.HasPrefix(v, "+"):
			name := strings.TrimPrefix(v[1:], "guest/")
			if f.ipsets[name] == nil && !strings.HasPrefix(name, "dc/") {
				return paramError(end, "no such ipset '"+name+"'")
			}
		case v[0] >= 'a' && v[0] <= 'z' || v[0] >= 'A' && v[0] <= 'Z':
			name := strings.TrimPrefix(strings.ToLower(v), "guest/")
			if _, err := netip.ParseAddr(name); err == nil || strings.HasPrefix(name, "dc/") {
				continue
			}
			if _, ok := f.aliases[name]; !ok {
				return paramError(end, "no such alias '"+name+"'")
			}
		}
	}
	if (r["dport"] != "" || r["sport"] != "") && r["proto"] == "" && r["macro"] == "" {
		return paramErrors(map[string]string{"proto": "missing property - 'dport' or 'sport' requires this property"})
	}
	return nil
}

// addFWRule puts a rule on top, or at the position asked for. It is off unless enable says so.
func addFWRule(k *call, f *firewall) (any, error) {
	r := k.configParams("pos", "digest")
	if _, ok := r["enable"]; !ok {
		r["enable"] = "0"
	}
	if err := f.checkRule(r); err != nil {
		return nil, err
	}
	at := 0
	if v, ok := k.param("pos"); ok {
		at = min(atoi(v), len(f.rules))
	}
	f.rules = slices.Insert(f.rules, at, r)
	return nil, nil
}

func (k *call) rulePos(f *firewall) (int, error) {
	i := atoi(k.vars["pos"])
	if i >= len(f.rules) {
		return 0, die("no rule at position %d", i)
	}
	if d, ok := k.param("digest"); ok && d != "" && d != f.rulesDigest() {
		return 0, die(textDigest)
	}
	return i, nil
}

func fwRule(k *call, f *firewall) (any, error) {
	i, err := k.rulePos(f)
	if err != nil {
		return nil, err
	}
	return f.ruleRow(i), nil
}

func changeFWRule(k *call, f *firewall) (any, error) {
	i, err := k.rulePos(f)
	if err != nil {
		return nil, err
	}
	r := maps.Clone(f.rules[i])
	for _, n := range splitList(k.str("delete")) {
		delete(r, n)
	}
	maps.Copy(r, k.configParams("pos", "digest", "delete", "moveto"))
	if err := f.checkRule(r); err != nil {
		return nil, err
	}
	if to, ok := k.param("moveto"); ok {
		f.rules = slices.Delete(f.rules, i, i+1)
		f.rules = slices.Insert(f.rules, min(atoi(to), len(f.rules)), r)
		return nil, nil
	}
	f.rules[i] = r
	return nil, nil
}

func deleteFWRule(k *call, f *firewall) (any, error) {
	i, err := k.rulePos(f)
	if err != nil {
		return nil, err
	}
	f.rules = slices.Delete(f.rules, i, i+1)
	return nil, nil
}

func (f *firewall) aliasRow(name string) map[string]any {
	a := f.aliases[name]
	row := map[string]any{"name": name, "cidr": a.cidr, "digest": textDigestOf(f.text())}
	if v := f.ipVersion(a.cidr); v != 0 {
		row["ipversion"] = v
	}
	if a.comment != "" {
		row["comment"] = a.comment
	}
	return row
}

func fwAliases(k *call, f *firewall) (any, error) {
	rows := []map[string]any{}
	for _, n := range sortedKeys(f.aliases) {
		rows = append(rows, f.aliasRow(n))
	}
	return rows, nil
}

func addFWAlias(k *call, f *firewall) (any, error) {
	name := strings.ToLower(k.str("name"))
	if _, ok := f.aliases[name]; ok {
		return nil, paramError("name", "alias '"+name+"' already exists")
	}
	f.aliases[name] = fwAlias{k.str("cidr"), k.str("comment")}
	return nil, nil
}

func fwAliasRead(k *call, f *firewall) (any, error) {
	name := strings.ToLower(k.str("name"))
	if _, ok := f.aliases[name]; !ok {
		return nil, paramError("name", "no such alias")
	}
	return f.aliasRow(name), nil
}

func deleteFWAlias(k *call, f *firewall) (any, error) {
	delete(f.aliases, strings.ToLower(k.str("name")))
	return nil, nil
}

func fwSets(k *call, f *firewall) (any, error) {
	rows := []map[string]any{}
	for _, n := range sortedKeys(f.ipsets) {
		row := map[string]any{"name": n, "digest": textDigestOf(f.text())}
		if c := f.ipsets[n].comment; c != "" {
			row["comment"] = c
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func addFWSet(k *call, f *firewall) (any, error) {
	name := k.str("name")
	if f.ipsets[name] != nil {
		return nil, paramError("name", "IPSet '"+name+"' already exists")
	}
	f.ipsets[name] = &fwSet{comment: k.str("comment")}
	return nil, nil
}

func (k *call) fwSet(f *firewall) (*fwSet, error) {
	s := f.ipsets[k.str("name")]
	if s == nil {
		return nil, die("no such IPSet '%s'", k.str("name"))
	}
	return s, nil
}

func fwSetEntries(k *call, f *firewall) (any, error) {
	s, err := k.fwSet(f)
	if err != nil {
		return nil, err
	}
	rows := []map[string]any{}
	for _, e := range s.entries {
		row := map[string]any{"cidr": e.cidr, "digest": textDigestOf(f.text())}
		if e.nomatch {
			row["nomatch"] = 1
		}
		if e.comment != "" {
			row["comment"] = e.comment
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// addFWEntry puts an entry on top of the set.
func addFWEntry(k *call, f *firewall) (any, error) {
	s, err := k.fwSet(f)
	if err != nil {
		return nil, err
	}
	e := fwEntry{k.str("cidr"), k.str("comment"), k.flag("nomatch")}
	if slices.ContainsFunc(s.entries, func(o fwEntry) bool { return o.cidr == e.cidr }) {
		return nil, paramError("cidr", "address '"+e.cidr+"' already exists")
	}
	s.entries = slices.Insert(s.entries, 0, e)
	return nil, nil
}

func deleteFWSet(k *call, f *firewall) (any, error) {
	s, err := k.fwSet(f)
	if err != nil {
		return nil, err
	}
	if len(s.entries) > 0 && !k.flag("force") {
		return nil, die("IPSet '%s' is not empty", k.str("name"))
	}
	delete(f.ipsets, k.str("name"))
	return nil, nil
}

func deleteFWEntry(k *call, f *firewall) (any, error) {
	s, err := k.fwSet(f)
	if err != nil {
		return nil, err
	}
	s.entries = slices.DeleteFunc(s.entries, func(e fwEntry) bool { return e.cidr == k.str("cidr") })
	return nil, nil
}

func fwRefs(k *call, f *firewall) (any, error) {
	rows := []map[string]any{}
	for _, n := range sortedKeys(f.aliases) {
		rows = append(rows, map[string]any{"type": "alias", "name": n, "ref": "guest/" + n, "scope": "guest"})
	}
	for _, n := range sortedKeys(f.ipsets) {
		rows = append(rows, map[string]any{"type": "ipset", "name": n, "ref": "+guest/" + n, "scope": "guest"})
	}
	return rows, nil
}
