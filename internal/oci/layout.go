package oci

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// layout says where in an archive everything stands. Sizes are known before anything is fetched, so blobs can be written to
// their places in any order, and the same image makes the same bytes always.
type layout struct {
	members []member
	size    int64
}

// member is one file of the archive.
type member struct {
	header []byte // the tar header, whole blocks
	at     int64  // where the header stands
	size   int64  // of the content
	inline []byte // the content of a small member; nil for a blob
	blob   v1.Descriptor
	layer  bool // it is a layer, which is never in memory
}

const block = 512

func (m member) content() int64 { return m.at + int64(len(m.header)) }
func (m member) end() int64     { return m.content() + (m.size+block-1)/block*block }

// indexSize bounds index.json to one block, so that an archive's size does not depend on the words for its platform.
const indexSize = block

// layoutOf arranges an image. config is its configuration's content; without it only sizes are right.
func layoutOf(c content, config configBlob) (layout, error) {
	p := config.config.Platform
	index, err := json.Marshal(v1.IndexManifest{
		SchemaVersion: 2, MediaType: types.OCIImageIndex,
		Manifests: []v1.Descriptor{{
			MediaType: types.OCIManifestSchema1, Size: int64(len(c.manifest)), Digest: hashOf(c.digest),
			Platform: &v1.Platform{Architecture: p.Architecture, OS: p.OS, Variant: p.Variant},
		}},
	})
	if err != nil {
		return layout{}, fmt.Errorf("cannot write the index of an archive: %w", err)
	}
	if len(index) > indexSize {
		return layout{}, fmt.Errorf("cannot write the index of an archive: it takes %d bytes", len(index))
	}

	var l layout
	known := map[string]bool{}
	type entry struct {
		name   string
		size   int64
		inline []byte
		blob   v1.Descriptor
		layer  bool
	}
	entries := []entry{
		{name: "oci-layout", inline: []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		{name: "index.json", inline: index},
		{name: memberName(hashOf(c.digest)), inline: c.manifest},
		{name: memberName(c.config.Digest), size: c.config.Size, inline: config.raw, blob: c.config},
	}
	for _, layer := range c.layers {
		entries = append(entries, entry{name: memberName(layer.Digest), size: layer.Size, blob: layer, layer: true})
	}
	for _, e := range entries {
		if e.inline != nil {
			e.size = int64(len(e.inline))
		}
		if known[e.name] {
			continue // an image may name a layer twice
		}
		known[e.name] = true
		var header bytes.Buffer
		err := tar.NewWriter(&header).WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: e.name, Size: e.size, Mode: 0o644, ModTime: time.Unix(0, 0),
		})
		if err != nil {
			return layout{}, fmt.Errorf("cannot write %s into an archive: %w", e.name, err)
		}
		m := member{header: header.Bytes(), at: l.size, size: e.size, inline: e.inline, blob: e.blob, layer: e.layer}
		l.members = append(l.members, m)
		l.size = m.end()
	}
	l.size += 2 * block // the mark of the end
	return l, nil
}

func memberName(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }

func hashOf(d Digest) v1.Hash { return v1.Hash{Algorithm: "sha256", Hex: d.Hex()} }

// layers returns how many bytes the layers have.
func (l layout) layers() int64 {
	var total int64
	for _, m := range l.members {
		if m.layer {
			total += m.size
		}
	}
	return total
}
