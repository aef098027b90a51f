package pvesim

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"testing"
)

// layout builds an OCI archive: the blobs, and an index of one descriptor for the last of them.
type layout struct {
	files map[string][]byte
}

func (l *layout) blob(data []byte) string {
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	l.files["blobs/sha256/"+digest] = data
	return "sha256:" + digest
}

func (l *layout) json(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return l.blob(b)
}

func tarOf(files map[string][]byte) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range sortedKeys(files) {
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(files[name])), Mode: 0o644, Typeflag: tar.TypeReg}); err != nil {
			panic(err)
		}
		if _, err := w.Write(files[name]); err != nil {
			panic(err)
		}
	}
	w.Close()
	return b.Bytes()
}

func ociArchive(manifestType, configType string) []byte {
	l := &layout{files: map[string][]byte{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`)}}
	layer := l.blob(tarOf(map[string][]byte{"etc/os-release": []byte("ID=alpine\n"), "app/run": []byte("program")}))
	config := l.json(map[string]any{"architecture": "amd64", "config": map[string]any{
		"User": "1000:100", "WorkingDir": "/app", "Env": []string{"A=1"}, "Entrypoint": []string{"/app/run"}, "Volumes": map[string]any{"/data": map[string]any{}},
	}})
	manifest := l.json(map[string]any{
		"config": map[string]any{"mediaType": configType, "digest": config},
		"layers": []map[string]any{{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": layer}},
	})
	index, err := json.Marshal(map[string]any{"manifests": []map[string]any{{"mediaType": manifestType, "digest": manifest}}})
	if err != nil {
		panic(err)
	}
	l.files["index.json"] = index
	return tarOf(l.files)
}

func TestUploadedOCIArchives(t *testing.T) {
	const manifest, config = "application/vnd.oci.image.manifest.v1+json", "application/vnd.oci.image.config.v1+json"
	good := templateFrom("app.tar", ociArchive(manifest, config))
	if good.OCI == nil || good.OCI.Broken != "" {
		t.Fatalf("read as %+v", good)
	}
	if o := good.OCI; o.UID != 1000 || o.GID != 100 || o.WorkingDir != "/app" || !slices.Equal(o.Env, []string{"A=1"}) || !slices.Equal(o.Volumes, []string{"/data"}) {
		t.Errorf("the image's configuration is %+v", o)
	}
	if good.OSType != "alpine" || good.Files["/app/run"] != "program" {
		t.Errorf("the image's files are %v, its system %q", good.Files, good.OSType)
	}
	for name, tc := range map[string]struct{ manifest, config, broken string }{
		"nested index":   {"application/vnd.oci.image.index.v1+json", config, "Unsupported CPU architecture"},
		"docker media":   {"application/vnd.docker.distribution.manifest.v2+json", config, "Unsupported CPU architecture"},
		"foreign config": {manifest, "application/vnd.docker.container.image.v1+json", "Wrong media type"},
	} {
		if got := templateFrom("app.tar", ociArchive(tc.manifest, tc.config)); got.OCI == nil || got.OCI.Broken != tc.broken {
			t.Errorf("%s: %+v", name, got.OCI)
		}
	}
	plain := templateFrom("root.tar", tarOf(map[string][]byte{"./etc/os-release": []byte("ID=debian\n")}))
	if plain.OCI != nil || plain.OSType != "debian" {
		t.Errorf("a root file system is taken for %+v", plain)
	}
	dotted := templateFrom("app.tar", tarOf(map[string][]byte{"./oci-layout": nil, "./index.json": nil}))
	if dotted.OCI != nil {
		t.Error("members with ./ in front are recognised")
	}
}
