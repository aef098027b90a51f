package pvesim

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"path"
	"slices"
	"strings"
)

// unpackTemplate writes the template into whatever is mounted, detects the system, and sets it up.
func (cr *create) unpackTemplate(t *task) error {
	c, g := cr.k.c, cr.g
	v := c.volume(g.node, cr.source)
	if v == nil {
		t.logf("volume '%s' does not exist", cr.source)
		return die("volume '%s' does not exist", cr.source)
	}
	tmpl := v.template
	if tmpl == nil {
		tmpl = &Template{}
	}
	if tmpl.OCI != nil {
		t.logf("Detected OCI archive")
		if g.conf.kv["unprivileged"] != "1" {
			return die("setgid(0): Invalid argument")
		}
		if why := tmpl.OCI.Broken; why != "" {
			return die("%s", why)
		}
		cr.unpackOCI(tmpl, t)
	} else {
		t.logf("extracting archive '%s'", c.volumePath(cr.source))
		c.unpack(g, tmpl, false)
		unpacked := max(v.size*3, 10240)
		if err := c.roomFor(g, unpacked, t); err != nil {
			return err
		}
		t.logf("Total bytes read: %d (%dMiB, 310MiB/s)", unpacked, unpacked>>20)
	}
	if tmpl.OCI != nil {
		cr.configureOCI(tmpl.OCI, t)
	}
	if err := cr.detectOS(tmpl, t); err != nil {
		return err
	}
	// what is written here has no lock: who sees it cannot tell it from a finished guest
	half := g.clone()
	c.guests[g.vmid] = half
	t.checkpoint("extracted")
	if g.conf.kv["ostype"] != "unmanaged" {
		cr.setUp()
	}
	c.allocateLeases(g)
	return nil
}

// roomFor fails as tar does when the storage of the root file system cannot hold so many more bytes.
// Where space is given out as it is written, an allocation alone never fails.
func (c *Cluster) roomFor(g *guest, bytes int64, t *task) error {
	sid, _, _ := splitVolID(parseMount("rootfs", g.conf.kv["rootfs"]).volume())
	s := c.storages[sid]
	if s == nil || s.total-s.usedOn(g.node) >= bytes {
		return nil
	}
	t.logf("tar: ./usr/lib: Cannot write: No space left on device")
	return die("command 'lxc-usernsexec -m u:0:100000:65536 -m g:0:100000:65536 -- tar xpf -' failed: exit code 2")
}

func (cr *create) detectOS(tmpl *Template, t *task) error {
	kv := cr.g.conf.kv
	arch := tmpl.Arch
	if arch == "" {
		arch = "amd64"
	}
	if kv["ostype"] == "unmanaged" {
		if kv["arch"] == "" {
			kv["arch"] = "amd64"
		}
		return nil
	}
	if kv["arch"] == "" {
		t.logf("Detected container architecture: %s", arch)
		kv["arch"] = arch
	}
	switch {
	case tmpl.Unknown:
		return die("unable to detect OS distribution")
	case tmpl.OSType == "":
		t.logf("WARNING: /etc not present in CT, is the rootfs mounted?\ngot unexpected ostype (unmanaged != debian)")
		if kv["ostype"] == "" {
			kv["ostype"] = "unmanaged"
		}
	case kv["ostype"] == "":
		kv["ostype"] = tmpl.OSType
	case kv["ostype"] != tmpl.OSType:
		t.logf("got unexpected ostype (%s != %s)", tmpl.OSType, kv["ostype"])
	}
	return nil
}

// setUp is the distribution's set-up: the files that make the root file system this guest's.
func (cr *create) setUp() {
	c, g := cr.k.c, cr.g
	c.writeInside(g, "/etc/hostname", g.name())
	for _, key := range g.conf.keys() {
		if netKeyRE.MatchString(key) {
			c.writeInside(g, "/etc/network/"+key, g.conf.kv[key])
		}
	}
	hash := "*"
	if cr.password != "" {
		sum := sha256.Sum256([]byte(cr.password))
		hash = "$5$" + hex.EncodeToString(sum[:8])
	}
	c.writeInside(g, "/etc/shadow", "root:"+hash)
	if cr.keys != "" {
		c.writeInside(g, "/root/.ssh/authorized_keys", cr.keys)
	}
}

// unpack writes a template's files through the mounts, read-only ones too. Existing files stay,
// unless overwrite is set.
func (c *Cluster) unpack(g *guest, tmpl *Template, overwrite bool) {
	put := func(p, data string) {
		m, inside := lxcVolumePath(g.conf, p)
		v := c.volume(g.node, m.volume())
		if v == nil {
			return
		}
		if _, there := v.content[inside]; !there || overwrite {
			v.content[inside] = data
		}
	}
	for p, data := range tmpl.Files {
		put(p, data)
	}
	for p, target := range tmpl.Links {
		put(p, linkPrefix+target)
	}
}

// linkPrefix marks the content of a path that is a symbolic link.
const linkPrefix = "-> "

// writeInside writes a file as a program inside the container would: into the volume that is
// mounted there. Bind mounts and devices are the host's and not simulated.
func (c *Cluster) writeInside(g *guest, p, data string) {
	m, inside := lxcVolumePath(g.conf, p)
	if v := c.volume(g.node, m.volume()); v != nil {
		v.content[inside] = data
	}
}

// unpackOCI applies whiteouts to what is there, then overwrites.
func (cr *create) unpackOCI(tmpl *Template, t *task) {
	c, g := cr.k.c, cr.g
	for _, w := range tmpl.OCI.Whiteouts {
		m, inside := lxcVolumePath(g.conf, w)
		if v := c.volume(g.node, m.volume()); v != nil {
			maps.DeleteFunc(v.content, func(p, _ string) bool {
				return p == inside || strings.HasPrefix(p, strings.TrimSuffix(inside, "/")+"/")
			})
		}
	}
	c.unpack(g, tmpl, true)
	// an image that names its program has it, even when a test gave it no files
	if words := slices.Concat(tmpl.OCI.Entrypoint, tmpl.OCI.Cmd); len(words) > 0 && path.IsAbs(words[0]) {
		if _, brought := tmpl.Files[words[0]]; !brought {
			c.writeInside(g, words[0], "program of the image")
		}
	}
	for _, vol := range tmpl.OCI.Volumes {
		t.logf("creating base directory for volume at %s", vol)
	}
}

// configureOCI puts what the image says over what the request said.
func (cr *create) configureOCI(img *OCIImage, t *task) {
	g := cr.g
	kv := g.conf.kv
	if words := slices.Concat(img.Entrypoint, img.Cmd); len(words) > 0 && words[0] != "/sbin/init" {
		kv["entrypoint"] = quoteShell(words)
		kv["cmode"] = "console"
		for _, key := range g.conf.keys() {
			if !netKeyRE.MatchString(key) {
				continue
			}
			p := parseProps(kv[key], "")
			if _, set := p.get("host-managed"); !set {
				t.logf("Auto-Enabling host-managed network for network device %s.", key)
				p = p.with("host-managed", "1")
				kv[key] = printNet(p)
			}
		}
	}
	if len(img.Env) > 0 {
		kv["env"] = storedEnv(strings.Join(img.Env, "\x00"))
	}
	if img.User {
		g.conf.lxc = append(g.conf.lxc, [2]string{"lxc.init.uid", itoa(img.UID)}, [2]string{"lxc.init.gid", itoa(img.GID)})
		if img.NoGroup {
			// those of its further groups, here none
			g.conf.lxc = append(g.conf.lxc, [2]string{"lxc.init.groups", ""})
		}
	}
	if img.WorkingDir != "" {
		g.conf.lxc = append(g.conf.lxc, [2]string{"lxc.init.cwd", img.WorkingDir})
	}
	stop := img.StopSignal
	if stop == "" {
		stop = "SIGTERM"
	}
	g.conf.lxc = append(g.conf.lxc, [2]string{"lxc.signal.halt", stop})
}
