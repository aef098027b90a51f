package proxmox

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// SetFirewall makes a guest's firewall hold exactly what is given, and reads it back to see that it does. It may be run again
// on what an interrupted run left. Names come before the rules that use them, and the switch that turns it on comes last.
func (h *Host) SetFirewall(ctx context.Context, ref guest.Ref, want guest.Firewall) error {
	have, err := h.Firewall(ctx, ref)
	if err != nil {
		return err
	}
	w := firewallWriter{h: h, ctx: ctx, ref: ref}
	missing := w.clearRules(have.Rules, want.Rules)
	w.writeAliases(have.Aliases, want.Aliases)
	w.writeSets(have.IPSets, want.IPSets)
	w.writeRules(missing)
	w.dropSets(have.IPSets, want.IPSets)
	w.dropAliases(have.Aliases, want.Aliases)
	w.writeOptions(have.Options, want.Options)
	if w.err != nil {
		return w.err
	}
	if have, err = h.Firewall(ctx, ref); err != nil {
		return err
	}
	if part := differentPart(have, want); part != "" {
		return &Error{Op: w.op(), Guest: ref, Kind: guest.OutcomeFailed, Words: "read back, its " + part + " are not what was written"}
	}
	return nil
}

// firewallWriter writes one guest's firewall. After the first error it does nothing more.
type firewallWriter struct {
	h   *Host
	ctx context.Context
	ref guest.Ref
	err error
}

func (w *firewallWriter) op() string { return "write the firewall of " + describe(w.ref) }

func (w *firewallWriter) send(method string, params map[string]string, below ...string) {
	if w.err != nil {
		return
	}
	sent, err := text(params)
	if err != nil {
		w.err = refuse(w.op(), w.ref, guest.OutcomeRefused, "%v", err)
		return
	}
	r := request{
		op: w.op(), ref: w.ref, method: method, params: sent,
		path: guestPath(w.ref, append([]string{"firewall"}, below...)...),
	}
	switch {
	case method == http.MethodDelete:
		r.announced = []string{r.path}
	case params["delete"] != "":
		r.announced = strings.Split(params["delete"], ",")
	}
	w.err = w.h.change(w.ctx, r)
}

// clearRules returns the rules that are still to be written. What is there stays when it is the tail of what is wanted: rules
// are written from the last to the first, so that is what an interrupted run leaves. Anything else is removed.
func (w *firewallWriter) clearRules(have, want []map[string]string) []map[string]string {
	if n := len(want) - len(have); n >= 0 && slices.EqualFunc(have, want[n:], sameRule) {
		return want[:n]
	}
	for pos := len(have) - 1; pos >= 0; pos-- {
		w.send(http.MethodDelete, nil, "rules", fmt.Sprint(pos))
	}
	return want
}

func (w *firewallWriter) writeRules(rules []map[string]string) {
	for _, rule := range slices.Backward(rules) { // each new rule goes on top
		w.send(http.MethodPost, normalRule(rule), "rules")
	}
}

func (w *firewallWriter) writeAliases(have, want []map[string]string) {
	for _, alias := range want {
		old, exists := named(have, alias["name"])
		switch {
		case !exists:
			w.send(http.MethodPost, alias, "aliases")
		case !maps.Equal(old, alias):
			changed := maps.Clone(alias)
			delete(changed, "name")
			w.send(http.MethodPut, changed, "aliases", alias["name"])
		}
	}
}

func (w *firewallWriter) dropAliases(have, want []map[string]string) {
	for _, alias := range have {
		if _, wanted := named(want, alias["name"]); !wanted {
			w.send(http.MethodDelete, nil, "aliases", alias["name"])
		}
	}
}

func (w *firewallWriter) writeSets(have, want []guest.IPSet) {
	for _, set := range want {
		old, exists := namedSet(have, set.Name)
		switch {
		case !exists:
			w.send(http.MethodPost, withComment(map[string]string{"name": set.Name}, set.Comment), "ipset")
		case old.Comment != set.Comment:
			w.send(http.MethodPost, withComment(map[string]string{"name": set.Name, "rename": set.Name}, set.Comment), "ipset")
		}
		for _, entry := range old.Entries {
			if !containsMap(set.Entries, entry) {
				w.send(http.MethodDelete, nil, "ipset", set.Name, entry["cidr"])
			}
		}
		for _, entry := range set.Entries {
			if !containsMap(old.Entries, entry) {
				w.send(http.MethodPost, entry, "ipset", set.Name)
			}
		}
	}
}

func (w *firewallWriter) dropSets(have, want []guest.IPSet) {
	for _, set := range have {
		if _, wanted := namedSet(want, set.Name); wanted {
			continue
		}
		for _, entry := range set.Entries {
			w.send(http.MethodDelete, nil, "ipset", set.Name, entry["cidr"])
		}
		w.send(http.MethodDelete, nil, "ipset", set.Name)
	}
}

// writeOptions says enable explicitly: what is not said is off by default, and says so only by being absent.
func (w *firewallWriter) writeOptions(have, want map[string]string) {
	if maps.Equal(normalOptions(have), normalOptions(want)) {
		return
	}
	params := maps.Clone(normalOptions(want))
	var gone []string
	for key := range have {
		if _, wanted := params[key]; !wanted {
			gone = append(gone, key)
		}
	}
	if slices.Sort(gone); len(gone) > 0 {
		params["delete"] = strings.Join(gone, ",")
	}
	w.send(http.MethodPut, params, "options")
}

func withComment(params map[string]string, comment string) map[string]string {
	if comment != "" {
		params["comment"] = comment
	}
	return params
}

func named(list []map[string]string, name string) (map[string]string, bool) {
	i := slices.IndexFunc(list, func(m map[string]string) bool { return m["name"] == name })
	if i < 0 {
		return nil, false
	}
	return list[i], true
}

func namedSet(list []guest.IPSet, name string) (guest.IPSet, bool) {
	i := slices.IndexFunc(list, func(s guest.IPSet) bool { return s.Name == name })
	if i < 0 {
		return guest.IPSet{}, false
	}
	return list[i], true
}

func containsMap(list []map[string]string, m map[string]string) bool {
	return slices.ContainsFunc(list, func(other map[string]string) bool { return maps.Equal(other, m) })
}

// normalRule says enable explicitly: a rule written without it is off.
func normalRule(rule map[string]string) map[string]string {
	normal := maps.Clone(rule)
	normal["enable"] = cmp.Or(normal["enable"], "0")
	return normal
}

func sameRule(a, b map[string]string) bool { return maps.Equal(normalRule(a), normalRule(b)) }

func normalOptions(options map[string]string) map[string]string {
	normal := map[string]string{"enable": "0"}
	maps.Copy(normal, options)
	return normal
}

// differentPart names the first part in which two firewalls differ, "" for none. Aliases and sets have no order.
func differentPart(a, b guest.Firewall) string {
	switch {
	case !maps.Equal(normalOptions(a.Options), normalOptions(b.Options)):
		return "options"
	case !sameMaps(a.Aliases, b.Aliases):
		return "aliases"
	case !slices.EqualFunc(a.Rules, b.Rules, sameRule):
		return "rules"
	case len(a.IPSets) != len(b.IPSets):
		return "IP sets"
	}
	for _, set := range a.IPSets {
		other, exists := namedSet(b.IPSets, set.Name)
		if !exists || other.Comment != set.Comment || !sameMaps(set.Entries, other.Entries) {
			return "IP sets"
		}
	}
	return ""
}

func sameMaps(a, b []map[string]string) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(m map[string]string) bool { return !containsMap(b, m) })
}
