package pvesim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// DumpOption says what a dump leaves out.
type DumpOption func(*dumper)

type dumper struct {
	skipGuests map[int]bool
	skipKeys   map[string]bool
	skipLines  []string
	noIdentity bool
	noPower    bool
}

// IgnoreGuests leaves guests out, with the volumes they own.
func IgnoreGuests(vmids ...int) DumpOption {
	return func(d *dumper) {
		for _, v := range vmids {
			d.skipGuests[v] = true
		}
	}
}

// IgnoreKeys leaves configuration keys out of every guest.
func IgnoreKeys(keys ...string) DumpOption {
	return func(d *dumper) {
		for _, k := range keys {
			d.skipKeys[k] = true
		}
	}
}

// IgnoreLines leaves out every line that contains one of the texts.
func IgnoreLines(texts ...string) DumpOption {
	return func(d *dumper) { d.skipLines = append(d.skipLines, texts...) }
}

// IgnoreIdentity leaves out which data is which, so that a copy equals its original.
func IgnoreIdentity() DumpOption { return func(d *dumper) { d.noIdentity = true } }

// IgnorePower leaves out which guests run.
func IgnorePower() DumpOption { return func(d *dumper) { d.noPower = true } }

// Dump is the whole world as sorted lines of text, in a form in which two worlds can be compared:
// no times, no digests, no tasks. A volume shows its size, its identity, and a digest of what it
// holds.
func (c *Cluster) Dump(opts ...DumpOption) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	d := &dumper{skipGuests: map[int]bool{}, skipKeys: map[string]bool{}}
	for _, o := range opts {
		o(d)
	}
	var lines []string
	add := func(format string, args ...any) {
		line := strings.ReplaceAll(strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", `\n`), "\x00", `\0`)
		if !slices.ContainsFunc(d.skipLines, func(s string) bool { return strings.Contains(line, s) }) {
			lines = append(lines, line)
		}
	}
	for _, n := range sortedKeys(c.nodes) {
		add("node %s online=%t", n, c.nodes[n].online)
	}
	for _, vmid := range c.vmids() {
		if !d.skipGuests[vmid] {
			c.dumpGuest(c.guests[vmid], d, add)
		}
	}
	c.dumpStorages(d, add)
	c.dumpAccess(d, add)
	for _, sid := range sortedKeys(c.ha.resources) {
		add("ha %s %s", sid, props(c.ha.resources[sid]))
	}
	for _, r := range sortedKeys(c.ha.rules) {
		add("ha-rule %s %s", r, props(c.ha.rules[r]))
	}
	for _, id := range sortedKeys(c.jobs) {
		add("backup-job %s %s", id, props(c.jobs[id].conf))
	}
	for _, id := range sortedKeys(c.repl) {
		add("replication %s %s", id, props(c.repl[id]))
	}
	for _, l := range c.sdn.leases {
		if !d.skipGuests[l.vmid] {
			add("lease %s %s %s %d", l.vnet, l.ip, l.mac, l.vmid)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

func props(m map[string]string) string {
	parts := make([]string, 0, len(m))
	for _, k := range sortedKeys(m) {
		parts = append(parts, k+"="+m[k])
	}
	return strings.Join(parts, " ")
}

func (c *Cluster) dumpGuest(g *guest, d *dumper, add func(string, ...any)) {
	at := fmt.Sprintf("%s %d", g.kind, g.vmid)
	if d.noPower {
		add("%s node=%s", at, g.node)
	} else {
		add("%s node=%s %s", at, g.node, g.status())
	}
	section := func(name string, conf config) {
		for _, k := range conf.keys() {
			if !d.skipKeys[k] && k != "snaptime" {
				add("%s%s %s: %s", at, name, k, conf.kv[k])
			}
		}
		for i, p := range conf.lxc {
			add("%s%s lxc[%d] %s: %s", at, name, i, p[0], p[1])
		}
	}
	section("", g.conf)
	section(" pending", g.pending)
	for _, k := range sortedKeys(g.pendingDelete) {
		add("%s pending delete %s", at, k)
	}
	for _, s := range g.snapshots {
		section(" snapshot "+s.name, s.conf)
	}
	for line := range strings.Lines(g.fw.text()) {
		add("%s firewall %s", at, strings.TrimSuffix(line, "\n"))
	}
}

func (c *Cluster) dumpStorages(d *dumper, add func(string, ...any)) {
	for _, id := range sortedKeys(c.storages) {
		s := c.storages[id]
		add("storage %s type=%s %s", id, s.typ, props(s.conf))
		for _, n := range sortedKeys(s.vols) {
			for _, v := range s.sorted(n) {
				if v.owned && d.skipGuests[v.owner] {
					continue
				}
				identity := " " + v.identity
				if d.noIdentity {
					identity = ""
				}
				add("volume %s@%s size=%d%s content=%s protected=%t notes=%q", v.id(), n, v.size, identity, contentDigest(v.content), v.protected, v.notes)
				for _, sn := range v.snaps {
					add("volume %s@%s snapshot %s content=%s", v.id(), n, sn.name, contentDigest(sn.content))
				}
			}
		}
	}
}

func (c *Cluster) dumpAccess(d *dumper, add func(string, ...any)) {
	for _, e := range c.access.acl {
		if vmid, ok := strings.CutPrefix(e.path, "/vms/"); ok && d.skipGuests[atoi(vmid)] {
			continue
		}
		add("acl %s %s %s %s propagate=%t", e.path, e.kind, e.who, e.role, e.propagate)
	}
	for _, id := range sortedKeys(c.access.pools) {
		p := c.access.pools[id]
		var members []string
		for _, vmid := range sortedInts(p.vms) {
			if !d.skipGuests[vmid] {
				members = append(members, itoa(vmid))
			}
		}
		add("pool %s guests=%s storages=%s", id, strings.Join(members, ","), strings.Join(sortedKeys(p.storages), ","))
	}
}

// contentDigest is a short digest of what a volume holds; "empty" when it holds nothing.
func contentDigest(content map[string]string) string {
	if len(content) == 0 {
		return "empty"
	}
	h := sha256.New()
	for _, p := range sortedKeys(content) {
		fmt.Fprintf(h, "%d %s %d %s\n", len(p), p, len(content[p]), content[p])
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Digest tells apart what volumes hold: two with the same digest hold the same.
func (v Volume) Digest() string { return contentDigest(v.Content) }
