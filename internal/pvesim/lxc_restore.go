package pvesim

import (
	"strings"
)

// notRestored are keys that never come out of a backup.
func notRestored(key string) bool {
	switch key {
	case "template", "parent", "snaptime", "unprivileged", "digest", "lock":
		return true
	}
	return isMountKey(key) || unusedKeyRE.MatchString(key)
}

// planRestore decides which volumes the restored container gets. Without any in the request, all
// of the backup's are made anew, on the default storage and with their recorded size; those that
// the backup did not include come back empty.
func (cr *create) planRestore(a *archive) error {
	if cr.unprivileged == "" {
		if v, ok := a.conf.kv["unprivileged"]; ok {
			cr.g.conf.kv["unprivileged"] = v
		}
	}
	if len(cr.mounts) > 0 {
		return nil
	}
	if a.conf.kv["rootfs"] == "" {
		return die("rootfs configuration could not be recovered, please check and specify manually!")
	}
	for _, m := range a.conf.mounts() {
		if m.typ() != mountVolume {
			if cr.restricted {
				return die("restoring '%s' to %s mount is only possible for root", m.key, m.typ())
			}
			cr.mounts[m.key] = m.String()
			continue
		}
		size, ok := parseSize(m.value("size"))
		if !ok {
			return die("unable to detect disk size - please specify %s (size)", m.key)
		}
		m.propString = m.without("size")
		m.bare = cr.storage + ":" + gib(size)
		cr.mounts[m.key] = m.String()
	}
	return nil
}

// destroyOld frees every volume that the container being restored over owns, whether or not the
// backup holds it.
func (cr *create) destroyOld(t *task) error {
	c, old := cr.k.c, cr.old
	seen := map[string]bool{}
	for _, conf := range []config{old.conf, old.pending} {
		for _, v := range conf.volumeIDs(true) {
			if seen[v] {
				continue
			}
			seen[v] = true
			if err := c.deleteOwned(old, v, t); err != nil {
				return err
			}
		}
	}
	for _, k := range old.conf.keys() {
		if netKeyRE.MatchString(k) {
			c.sdn.release(parseProps(old.conf.kv[k], "").value("hwaddr"))
		}
	}
	return nil
}

// unpackArchive puts the saved files back through the mounts that the container has now: a mount
// that is no longer there has its files in the volume below it.
func (cr *create) unpackArchive(a *archive, t *task) error {
	c, g := cr.k.c, cr.g
	t.logf("restoring '%s' now..", cr.source)
	t.logf("extracting archive '%s'", c.volumePath(cr.source))
	for _, key := range sortedKeys(a.disks) {
		d := a.disks[key]
		at := parseMount(key, d.value).path()
		for p, data := range d.content {
			c.writeInside(g, strings.TrimSuffix(at, "/")+p, data)
		}
	}
	t.logf("merging backed-up and given configuration..")
	for key, v := range a.conf.kv {
		if _, given := g.conf.kv[key]; given || notRestored(key) {
			continue
		}
		if cr.unique && netKeyRE.MatchString(key) {
			p := parseProps(v, "")
			p = p.without("hwaddr")
			v = printNet(c.parseNet(printNet(p)))
		}
		g.conf.kv[key] = v
	}
	if len(a.conf.lxc) > 0 {
		if cr.restricted {
			t.warnf("skipping custom lxc options, restore manually as root:")
			for _, p := range a.conf.lxc {
				t.logf("%s: %s", p[0], p[1])
			}
		} else {
			g.conf.lxc = append(g.conf.lxc, a.conf.lxc...)
		}
	}
	g.fw = newFirewall()
	if cr.old != nil {
		g.fw = cr.old.fw.clone()
	}
	if a.fw != nil && !cr.skipFirewall {
		g.fw = a.fw.clone()
	}
	if g.conf.kv["arch"] == "" {
		g.conf.kv["arch"] = "amd64"
	}
	c.allocateLeases(g)
	return nil
}
