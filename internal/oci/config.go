package oci

import (
	"bytes"
	"context"
	"maps"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Config is what an image says about how to run it, as plain values. They are the image's author's: whoever shows them makes
// them printable first.
type Config struct {
	Platform   Platform
	Entrypoint []string
	Cmd        []string
	Env        []string // "NAME=value", in the image's order
	Volumes    []string // paths, sorted
	Ports      []string // "80/tcp", sorted
	User       string
	WorkDir    string
	StopSignal string
	Labels     map[string]string
}

// configBlob is an image's configuration and its bytes.
type configBlob struct {
	raw    []byte
	config Config
}

// Inspect reads an image's configuration: its manifest and one small blob, each once.
func (r *Resolver) Inspect(ctx context.Context, image Image) (Config, error) {
	blob, err := r.config(ctx, "inspect "+image.String(), image)
	return blob.config, err
}

// String returns registry, repository and the digest of the platform's manifest: what is fetched.
func (i Image) String() string { return i.Reference.At(i.Manifest).String() }

func (r *Resolver) config(ctx context.Context, op string, image Image) (configBlob, error) {
	c, err := r.content(ctx, op, image)
	if err != nil {
		return configBlob{}, err
	}
	ref := image.Reference.At(image.Manifest)
	blob, err := r.configs.get(ctx, ref, func() (configBlob, error) {
		repo, err := r.repository(ctx, ref)
		if err != nil {
			return configBlob{}, err
		}
		var raw bytes.Buffer
		err = twice(ctx, func() error {
			raw.Reset()
			return repo.blob(ctx, c.config, &raw, make([]byte, 32<<10))
		})
		if err != nil {
			return configBlob{}, err
		}
		return readConfig(raw.Bytes())
	})
	if err != nil {
		return configBlob{}, r.translate(ctx, op, ref, err)
	}
	if !image.Platform.runs(blob.config.Platform) {
		return configBlob{}, wrongPlatform(op, image.Platform, []Platform{blob.config.Platform})
	}
	return blob, nil
}

func readConfig(raw []byte) (configBlob, error) {
	file, err := v1.ParseConfigFile(bytes.NewReader(raw))
	if err != nil {
		return configBlob{}, &Error{Problem: ProblemUnsupported, Words: "its configuration cannot be read: " + clip(err.Error())}
	}
	platform, ok := platformOf(file.Platform())
	if !ok {
		return configBlob{}, &Error{Problem: ProblemUnsupported, Words: "its configuration does not say for which platform it is made"}
	}
	c := file.Config
	return configBlob{raw: raw, config: Config{
		Platform: platform, Entrypoint: c.Entrypoint, Cmd: c.Cmd, Env: c.Env,
		Volumes: slices.Sorted(maps.Keys(c.Volumes)), Ports: slices.Sorted(maps.Keys(c.ExposedPorts)),
		User: c.User, WorkDir: c.WorkingDir, StopSignal: c.StopSignal, Labels: c.Labels,
	}}, nil
}
