package pvesim

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// haState is the configuration of the HA stack. The manager itself is simulated only as far as the
// requests change it: a start or stop of a managed guest sets the wanted state and acts at once.
type haState struct {
	resources map[string]map[string]string
	rules     map[string]map[string]string
	// lag, when set, leaves guests as they are when their wanted state changes, as a manager does
	// that has not got round to it.
	lag bool
}

func newHAState() haState {
	return haState{resources: map[string]map[string]string{}, rules: map[string]map[string]string{}}
}

func (h haState) clone() haState {
	n := newHAState()
	n.lag = h.lag
	for k, v := range h.resources {
		n.resources[k] = maps.Clone(v)
	}
	for k, v := range h.rules {
		n.rules[k] = maps.Clone(v)
	}
	return n
}

func (s *Server) registerHA() {
	s.route("GET", "/cluster/ha/resources", listHA)
	s.route("POST", "/cluster/ha/resources", createHA)
	s.route("GET", "/cluster/ha/resources/{sid}", readHA)
	s.route("PUT", "/cluster/ha/resources/{sid}", updateHA)
	s.route("DELETE", "/cluster/ha/resources/{sid}", deleteHA)
	s.route("GET", "/cluster/ha/rules", listHARules)
	s.route("POST", "/cluster/ha/rules", createHARule)
	s.route("GET", "/cluster/ha/rules/{rule}", readHARule)
	s.route("DELETE", "/cluster/ha/rules/{rule}", deleteHARule)
	s.route("GET", "/cluster/ha/groups", func(*call) (any, error) { return []any{}, nil })
	s.route("GET", "/cluster/ha/status/current", haStatus)
}

// managed tells whether HA decides over a guest's power.
func (c *Cluster) managed(g *guest) bool {
	r := c.ha.resources[g.haID()]
	return r != nil && r["state"] != "ignored"
}

func (h haState) digest() string {
	var b strings.Builder
	for _, sid := range sortedKeys(h.resources) {
		fmt.Fprintln(&b, sid, h.resources[sid])
	}
	sum := sha1.Sum([]byte(b.String()))
	return hex.EncodeToString(sum[:])
}

func haRow(sid string, r map[string]string) map[string]any {
	typ, _, _ := strings.Cut(sid, ":")
	row := map[string]any{"sid": sid, "type": typ}
	for k, v := range r {
		switch k {
		case "max_restart", "max_relocate", "failback":
			row[k] = atoi(v)
		default:
			row[k] = v
		}
	}
	return row
}

func listHA(k *call) (any, error) {
	rows := []map[string]any{}
	for _, sid := range sortedKeys(k.c.ha.resources) {
		row := haRow(sid, k.c.ha.resources[sid])
		if t, ok := k.param("type"); ok && row["type"] != t {
			continue
		}
		row["digest"] = k.c.ha.digest()
		rows = append(rows, row)
	}
	return rows, nil
}

// sid completes a plain VMID with the type of the guest it is.
func (k *call) sid() (string, *guest) {
	sid := k.str("sid")
	_, id, typed := strings.Cut(sid, ":")
	if !typed {
		id = sid
	}
	g := k.c.guests[atoi(id)]
	if !typed && g != nil {
		sid = g.haID()
	}
	if g != nil && g.haID() != sid {
		g = nil
	}
	return sid, g
}

func createHA(k *call) (any, error) {
	sid, g := k.sid()
	if g == nil {
		return nil, die("resource '%s' does not exist in cluster", sid)
	}
	if k.c.ha.resources[sid] != nil {
		return nil, die("resource ID '%s' already defined", sid)
	}
	if k.has("group") {
		return nil, die("invalid parameter 'group': ha groups have been migrated to rules")
	}
	r := map[string]string{"state": "started"}
	k.haFields(r)
	k.c.ha.resources[sid] = r
	k.c.haAct(g)
	return nil, nil
}

func (k *call) haFields(r map[string]string) {
	for _, f := range []string{"state", "comment", "failback", "max_relocate", "max_restart"} {
		if v, ok := k.param(f); ok {
			if f == "state" && v == "enabled" {
				v = "started"
			}
			r[f] = v
		}
	}
}

// haAct brings a guest to the state HA wants it in.
func (c *Cluster) haAct(g *guest) {
	r := c.ha.resources[g.haID()]
	if r == nil || c.ha.lag {
		return
	}
	switch r["state"] {
	case "started":
		if !g.running && g.kind == kindLXC {
			_ = c.startContainer(g, &task{})
		} else if !g.running {
			g.running, g.started = true, c.now()
		}
	case "stopped", "disabled":
		c.powerOff(g)
	}
}

func (k *call) haResource() (string, map[string]string, error) {
	sid, _ := k.sid()
	r := k.c.ha.resources[sid]
	if r == nil {
		return sid, nil, die("no such resource '%s'", sid)
	}
	return sid, r, nil
}

func readHA(k *call) (any, error) {
	sid, r, err := k.haResource()
	if err != nil {
		return nil, err
	}
	row := haRow(sid, r)
	row["digest"] = k.c.ha.digest()
	return row, nil
}

func updateHA(k *call) (any, error) {
	sid, r, err := k.haResource()
	if err != nil {
		return nil, err
	}
	if d, ok := k.param("digest"); ok && d != k.c.ha.digest() {
		return nil, die("detected modified configuration - file changed by other user? Try again.")
	}
	for _, f := range splitList(k.str("delete")) {
		delete(r, f)
	}
	k.haFields(r)
	if _, g := k.sid(); g != nil && g.haID() == sid {
		k.c.haAct(g)
	}
	return nil, nil
}

// deleteHA takes the resource out of rules too, and drops rules that become empty, unless purge=0.
func deleteHA(k *call) (any, error) {
	sid, _, err := k.haResource()
	if err != nil {
		return nil, err
	}
	delete(k.c.ha.resources, sid)
	if v, ok := k.param("purge"); !ok || isTrue(v) {
		k.c.ha.purgeRules(sid)
	}
	return nil, nil
}

func (h haState) purgeRules(sid string) {
	for name, r := range h.rules {
		members := splitList(r["resources"])
		left := slices.DeleteFunc(members, func(m string) bool { return m == sid })
		if len(left) == 0 || (r["type"] == "resource-affinity" && len(left) < 2) {
			delete(h.rules, name)
			continue
		}
		r["resources"] = strings.Join(left, ",")
	}
}

func ruleRow(name string, r map[string]string) map[string]any {
	row := map[string]any{"rule": name, "digest": "0f0b5d3e4f1c7a9e8d6c5b4a39281706f5e4d3c2"}
	for k, v := range r {
		row[k] = v
	}
	return row
}

func listHARules(k *call) (any, error) {
	rows := []map[string]any{}
	for _, name := range sortedKeys(k.c.ha.rules) {
		r := k.c.ha.rules[name]
		if t, ok := k.param("type"); ok && r["type"] != t {
			continue
		}
		if want, ok := k.param("resource"); ok && !slices.Contains(splitList(r["resources"]), want) {
			continue
		}
		rows = append(rows, ruleRow(name, r))
	}
	return rows, nil
}

func createHARule(k *call) (any, error) {
	name := k.str("rule")
	if k.c.ha.rules[name] != nil {
		return nil, die("HA rule '%s' is already defined", name)
	}
	r := map[string]string{}
	for n, v := range k.params {
		if n != "rule" {
			r[n] = v
		}
	}
	k.c.ha.rules[name] = r
	return nil, nil
}

func readHARule(k *call) (any, error) {
	r := k.c.ha.rules[k.str("rule")]
	if r == nil {
		return nil, die("no such ha rule '%s'", k.str("rule"))
	}
	return ruleRow(k.str("rule"), r), nil
}

func deleteHARule(k *call) (any, error) {
	if _, err := readHARule(k); err != nil {
		return nil, err
	}
	delete(k.c.ha.rules, k.str("rule"))
	return nil, nil
}

func haStatus(k *call) (any, error) {
	quorate := 1
	if k.c.noQuorum {
		quorate = 0
	}
	rows := []map[string]any{
		{"id": "quorum", "type": "quorum", "node": k.c.local, "status": "OK", "quorate": quorate},
		{"id": "fencing", "type": "fencing", "node": k.c.local, "status": "standby (CRM watchdog standby)", "armed-state": "standby"},
	}
	for _, sid := range sortedKeys(k.c.ha.resources) {
		r := k.c.ha.resources[sid]
		_, id, _ := strings.Cut(sid, ":")
		row := map[string]any{"id": "service:" + sid, "sid": sid, "type": "service", "state": r["state"], "request_state": r["state"]}
		if g := k.c.guests[atoi(id)]; g != nil {
			row["node"] = g.node
			row["status"] = fmt.Sprintf("%s (%s, %s)", sid, g.node, r["state"])
		}
		rows = append(rows, row)
	}
	return rows, nil
}
