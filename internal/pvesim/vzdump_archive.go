package pvesim

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// collect takes the guest's files, minus what the request excludes. Snapshots are never in a
// backup, nor pending changes.
func (b *backupRun) collect(g *guest, t *task) *archive {
	a := &archive{kind: g.kind, vmid: g.vmid, name: g.name(), conf: g.conf.clone(), disks: map[string]archivedDisk{}}
	for _, k := range []string{"lock", "parent", "snaptime"} {
		delete(a.conf.kv, k)
	}
	if !g.fw.empty() {
		a.fw = g.fw.clone()
	}
	for _, d := range b.k.c.backupDisks(g) {
		v := b.k.c.volume(g.node, d.volid)
		if !d.included || v == nil {
			if !d.included {
				t.logf("INFO: %s", d.excludedText(g.kind))
			}
			continue
		}
		if g.kind == kindLXC {
			t.logf("INFO: including mount point %s ('%s') in backup", d.key, d.path)
		} else {
			t.logf("INFO: include disk '%s' '%s' %s", d.key, d.volid, formatSize(v.size))
		}
		content := maps.Clone(v.content)
		maps.DeleteFunc(content, func(p, _ string) bool {
			return excluded(b.excludes, strings.TrimSuffix(d.path, "/")+p)
		})
		a.disks[d.key] = archivedDisk{value: d.value, size: v.size, format: v.format, content: content}
	}
	return a
}

// excluded matches a file against shell patterns: those that start with a slash against the whole
// path, others against any end of it. A pattern that names a directory covers what is in it.
func excluded(patterns []string, file string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		re := shellPattern(p)
		for at := file; at != "/" && at != "."; at = path.Dir(at) {
			if re.MatchString(at) {
				return true
			}
		}
		return false
	})
}

func shellPattern(p string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString("^")
	if !strings.HasPrefix(p, "/") {
		b.WriteString("(.*/)?")
	}
	for _, r := range p {
		switch r {
		case '*':
			b.WriteString(".*")
		case '?':
			b.WriteString(".")
		default:
			b.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	b.WriteString("$")
	return regexp.MustCompile(b.String())
}

func (b *backupRun) format(g *guest, a *archive) (ext string, size int64) {
	ext = "tar"
	if g.kind == kindQEMU {
		ext = "vma"
	}
	if suffix := map[string]string{"zstd": ".zst", "gzip": ".gz", "1": ".lzo", "lzo": ".lzo"}[b.compress]; suffix != "" {
		ext += suffix
	}
	size = 10 << 10
	for _, d := range a.disks {
		for p, data := range d.content {
			size += int64(len(p) + len(data) + 512)
		}
	}
	return ext, size
}

func extractConfig(k *call) (any, error) {
	if err := k.volumeAccess(0, k.str("volume"), "backup"); err != nil {
		return nil, err
	}
	v := k.c.volume(k.node(), k.str("volume"))
	if v == nil || v.archive == nil {
		return nil, die("volume '%s' does not exist", k.str("volume"))
	}
	var b strings.Builder
	v.archive.conf.render(&b)
	for _, key := range sortedKeys(v.archive.disks) {
		if v.archive.kind == kindQEMU {
			b.WriteString(driveMapLine(key, v.archive.disks[key]))
		}
	}
	return b.String(), nil
}
