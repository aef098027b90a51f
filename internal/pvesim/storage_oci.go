package pvesim

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"strings"
)

func (s *Server) registerOCIPull() {
	s.route("POST", "/nodes/{node}/storage/{storage}/oci-registry-pull", pullOCI)
	s.route("GET", "/nodes/{node}/query-oci-repo-tags", listOCITags)
}

// Publish puts an image under a reference ("registry/name:tag") into the registry that the
// cluster's nodes pull from.
func (c *Cluster) Publish(reference string, t Template, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.registry == nil {
		c.registry = map[string]published{}
	}
	c.registry[reference] = published{t, size}
}

type published struct {
	template Template
	size     int64
}

func pullOCI(k *call) (any, error) {
	s, err := k.c.storageEnabled(k.vars["storage"], k.node())
	if err != nil {
		return nil, err
	}
	if !s.kind().files {
		return nil, die("can't upload to storage type '%s', not a file based storage!", s.typ)
	}
	if !s.has("vztmpl") {
		return nil, die("storage '%s' is not configured for content-type 'vztmpl'", s.id)
	}
	ref := k.str("reference")
	name := ref
	if f := k.str("filename"); f != "" {
		name = f
	}
	name = normalFileName(name) + ".tar"
	if _, err := k.c.storageActive(s.id, k.node()); err != nil {
		return nil, err
	}
	n, err := s.parse("vztmpl/" + name)
	if err != nil {
		return nil, err
	}
	if s.on(k.node())[n.own()] != nil {
		return nil, die("refusing to override existing file '%s'", name)
	}
	node := k.node()
	return k.startTask("ociregistrypull", name, nil, func(t *task) error {
		img, ok := k.c.registry[ref]
		if !ok {
			return die("command 'skopeo copy docker://%s oci-archive:%s.tmp.%d' failed: exit code 2", ref, s.path(n), k.c.id())
		}
		t.logf("Getting image source signatures")
		v := k.c.newVolume(s, n, img.size)
		tmpl := img.template
		v.template, v.written = &tmpl, img.size
		s.on(node)[n.own()] = v
		t.logf("Writing manifest to image destination")
		return nil
	}), nil
}

func listOCITags(k *call) (any, error) {
	repo := k.str("reference")
	tags := []string{}
	for _, ref := range sortedKeys(k.c.registry) {
		if tag, ok := strings.CutPrefix(ref, repo+":"); ok {
			tags = append(tags, tag)
		}
	}
	if len(tags) == 0 {
		return nil, die("command 'skopeo list-tags docker://%s' failed: exit code 1", repo)
	}
	return tags, nil
}

// templateFrom reads an uploaded container template. An uncompressed archive with an OCI layout
// becomes an image; anything else is taken for a root file system of an unknown kind.
func templateFrom(name string, data []byte) *Template {
	if !strings.HasSuffix(name, ".tar") {
		return &Template{Files: map[string]string{}}
	}
	files := untar(bytes.NewReader(data))
	if _, ok := files["oci-layout"]; !ok || files["index.json"] == "" {
		root := prefixed(files)
		return &Template{Files: root, OSType: osTypeOf(root)}
	}
	return ociTemplate(files)
}

func untar(r io.Reader) map[string]string {
	files := map[string]string{}
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if err != nil {
			return files
		}
		switch h.Typeflag {
		case tar.TypeReg:
			b, _ := io.ReadAll(tr)
			files[h.Name] = string(b)
		case tar.TypeSymlink:
			files[h.Name] = linkPrefix + h.Linkname
		}
	}
}

func prefixed(files map[string]string) map[string]string {
	out := make(map[string]string, len(files))
	for p, d := range files {
		out["/"+strings.TrimPrefix(strings.TrimPrefix(p, "./"), "/")] = d
	}
	return out
}

// osTypeOf reads the distribution's name out of a root file system.
func osTypeOf(files map[string]string) string {
	for line := range strings.SplitSeq(files["/etc/os-release"], "\n") {
		if id, ok := strings.CutPrefix(line, "ID="); ok {
			return strings.Trim(id, `"`)
		}
	}
	return ""
}

// ociTemplate follows the layout's index to its first image manifest, as Proxmox does: nested
// indexes and foreign media types are not understood.
func ociTemplate(files map[string]string) *Template {
	blob := func(digest string) string { return files["blobs/"+strings.Replace(digest, ":", "/", 1)] }
	var index struct {
		Manifests []struct{ MediaType, Digest string }
	}
	if err := json.Unmarshal([]byte(files["index.json"]), &index); err != nil {
		return brokenImage("invalid index: " + err.Error())
	}
	for _, m := range index.Manifests {
		if m.MediaType != "application/vnd.oci.image.manifest.v1+json" {
			continue
		}
		var manifest struct {
			Config struct{ MediaType, Digest string }
			Layers []struct{ MediaType, Digest string }
		}
		if err := json.Unmarshal([]byte(blob(m.Digest)), &manifest); err != nil {
			return brokenImage("invalid manifest: " + err.Error())
		}
		var conf struct {
			Architecture string
			Config       struct {
				User, WorkingDir, StopSignal string
				Env, Entrypoint, Cmd         []string
				Volumes                      map[string]struct{}
			}
		}
		if manifest.Config.MediaType != "application/vnd.oci.image.config.v1+json" {
			return brokenImage("Wrong media type")
		}
		if err := json.Unmarshal([]byte(blob(manifest.Config.Digest)), &conf); err != nil {
			return brokenImage("invalid image configuration: " + err.Error())
		}
		t := &Template{Arch: conf.Architecture, Files: map[string]string{}, OCI: &OCIImage{
			Entrypoint: conf.Config.Entrypoint, Cmd: conf.Config.Cmd, Env: conf.Config.Env,
			User: conf.Config.User != "", WorkingDir: conf.Config.WorkingDir, StopSignal: conf.Config.StopSignal,
			Volumes: sortedKeys(conf.Config.Volumes),
		}}
		for _, l := range manifest.Layers {
			maps.Copy(t.Files, layerFiles(blob(l.Digest)))
		}
		t.OCI.resolveUser(conf.Config.User, t.Files)
		t.OSType = osTypeOf(t.Files)
		return t
	}
	return brokenImage("Unsupported CPU architecture")
}

// resolveUser finds a user's and a group's number in the image's own lists. A group that is not named is
// the user's.
func (o *OCIImage) resolveUser(text string, files map[string]string) {
	user, group, named := strings.Cut(text, ":")
	entry := accountOf(files["/etc/passwd"], user)
	o.UID, o.NoGroup = atoi(user), !named
	if len(entry) > 3 {
		o.UID, o.GID = atoi(entry[2]), atoi(entry[3])
	}
	if named {
		o.GID = atoi(group)
		if entry := accountOf(files["/etc/group"], group); len(entry) > 2 {
			o.GID = atoi(entry[2])
		}
	}
}

// accountOf is the line of a passwd or group file for a name or a number; nil when it has none.
func accountOf(list, who string) []string {
	for line := range strings.SplitSeq(list, "\n") {
		fields := strings.Split(line, ":")
		if len(fields) > 2 && who != "" && (fields[0] == who || fields[2] == who) {
			return fields
		}
	}
	return nil
}

func brokenImage(why string) *Template { return &Template{OCI: &OCIImage{Broken: why}} }

func layerFiles(data string) map[string]string {
	var r io.Reader = strings.NewReader(data)
	if strings.HasPrefix(data, "\x1f\x8b") {
		zr, err := gzip.NewReader(r)
		if err != nil {
			return nil
		}
		r = zr
	}
	return prefixed(untar(r))
}
