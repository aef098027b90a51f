package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// content is what an archive of one image is made of.
type content struct {
	manifest []byte // as the archive keeps it: of OCI media types alone
	digest   Digest // of manifest
	config   v1.Descriptor
	layers   []v1.Descriptor
}

const (
	// maxLayers is far beyond what any runtime mounts.
	maxLayers = 1000
	// maxConfig bounds the configuration of an image, which is read into memory.
	maxConfig = 4 << 20
	// maxImage bounds a whole image, so that sizes add up without overflow.
	maxImage = int64(1) << 42
)

const (
	dockerZstdLayer = types.MediaType("application/vnd.docker.image.rootfs.diff.tar.zstd")
	dockerTarLayer  = types.DockerUncompressedLayer
)

// ociLayer returns the OCI name of a layer's media type: the bytes behind both names are the same.
func ociLayer(media types.MediaType) (types.MediaType, bool) {
	switch media {
	case types.OCILayer, types.OCIUncompressedLayer, types.OCILayerZStd:
		return media, true
	case types.DockerLayer:
		return types.OCILayer, true
	case dockerTarLayer:
		return types.OCIUncompressedLayer, true
	case dockerZstdLayer:
		return types.OCILayerZStd, true
	}
	return "", false
}

// contentOf reads an image's manifest. One that speaks OCI throughout is kept to the byte; one that speaks Docker is written
// anew, which changes its digest and nothing below it.
func contentOf(m manifest) (content, error) {
	unsupported := func(format string, args ...any) (content, error) {
		return content{}, &Error{Problem: ProblemUnsupported, Words: fmt.Sprintf(format, args...), Remedy: "images of the formats OCI and Docker schema 2 can be used"}
	}
	parsed, err := v1.ParseManifest(bytes.NewReader(m.raw))
	if err != nil {
		return unsupported("its manifest cannot be read: %s", clip(err.Error()))
	}
	media := parsed.MediaType
	if media == "" {
		media = m.media
	}
	if parsed.SchemaVersion != 2 || !isImage(media) {
		return unsupported("it is no image but \"%s\" of schema %d", clip(string(media)), parsed.SchemaVersion)
	}
	converted := *parsed
	converted.MediaType = types.OCIManifestSchema1
	same := media == types.OCIManifestSchema1
	switch parsed.Config.MediaType {
	case types.OCIConfigJSON:
	case types.DockerConfigJSON:
		converted.Config.MediaType, same = types.OCIConfigJSON, false
	default:
		return unsupported("its configuration is no image's but \"%s\"", clip(string(parsed.Config.MediaType)))
	}
	if len(parsed.Layers) > maxLayers {
		return unsupported("it has %d layers", len(parsed.Layers))
	}
	converted.Layers = append([]v1.Descriptor(nil), parsed.Layers...)
	for i, layer := range parsed.Layers {
		media, ok := ociLayer(layer.MediaType)
		if !ok {
			return unsupported("layer %d is of the type \"%s\", which Proxmox does not unpack", i+1, clip(string(layer.MediaType)))
		}
		converted.Layers[i].MediaType = media
		same = same && media == layer.MediaType
	}
	c := content{manifest: m.raw, digest: m.digest, config: converted.Config, layers: converted.Layers}
	if !same {
		if c.manifest, err = json.Marshal(converted); err != nil {
			return unsupported("its manifest cannot be converted: %s", clip(err.Error()))
		}
		c.digest = digestOf(c.manifest)
	}
	return c, c.check()
}

// check refuses what no registry should offer: sizes that cannot be, digests that we cannot verify.
func (c content) check() error {
	total := int64(0)
	for _, blob := range append([]v1.Descriptor{c.config}, c.layers...) {
		if _, err := ParseDigest(blob.Digest.String()); err != nil {
			return &Error{Problem: ProblemUnsupported, Words: err.Error()}
		}
		if blob.Size < 0 || blob.Size > maxImage || total > maxImage {
			return &Error{Problem: ProblemUnsupported, Words: fmt.Sprintf("its manifest speaks of a blob of %d bytes", blob.Size)}
		}
		total += blob.Size
	}
	if c.config.Size > maxConfig {
		return &Error{Problem: ProblemUnsupported, Words: fmt.Sprintf("its configuration is larger than %d MiB", maxConfig>>20)}
	}
	return nil
}

// content reads what an image is made of: one manifest, no blob.
func (r *Resolver) content(ctx context.Context, op string, image Image) (content, error) {
	ref := image.Reference.At(image.Manifest)
	m, err := r.manifest(ctx, op, ref)
	if err != nil {
		return content{}, err
	}
	c, err := contentOf(m)
	return c, r.translate(ctx, op, ref, err)
}

// twice does what fetches content, once again when what came was damaged or broke off.
func twice(ctx context.Context, fetch func() error) error {
	err := fetch()
	if damaged := (*damagedError)(nil); ctx.Err() == nil && (errors.As(err, &damaged) || err != nil && passing(err)) {
		return fetch()
	}
	return err
}
