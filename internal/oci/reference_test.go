package oci

import (
	"strings"
	"testing"
)

const someDigest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestParseReference(t *testing.T) {
	for text, want := range map[string]string{
		"nginx:1.27":                                   "docker.io/library/nginx:1.27",
		"nginx@" + someDigest:                          "docker.io/library/nginx@" + someDigest,
		"nginx:1.27@" + someDigest:                     "docker.io/library/nginx:1.27@" + someDigest,
		"docker.io/nginx:1":                            "docker.io/library/nginx:1",
		"index.docker.io/library/nginx:1":              "docker.io/library/nginx:1",
		"Docker.IO/library/nginx:1":                    "docker.io/library/nginx:1",
		"grafana/grafana:11.2.0":                       "docker.io/grafana/grafana:11.2.0",
		"ghcr.io/home-assistant/home-assistant:2026.1": "ghcr.io/home-assistant/home-assistant:2026.1",
		"registry.lan:5000/app:v1":                     "registry.lan:5000/app:v1",
		"localhost/app:v1":                             "localhost/app:v1",
		"localhost:5000/a/b/c__d:v1":                   "localhost:5000/a/b/c__d:v1",
		"[::1]:5000/app:v1":                            "[::1]:5000/app:v1",
		"127.0.0.1:5000/app:V_1.0-x":                   "127.0.0.1:5000/app:V_1.0-x",
	} {
		ref, err := ParseReference(text)
		if err != nil || ref.String() != want {
			t.Errorf("%s: %s, %v; want %s", text, ref, err, want)
		}
		again, err := ParseReference(ref.String())
		if err != nil || again != ref {
			t.Errorf("%s reads back as %#v, %v", ref, again, err)
		}
	}
}

func TestParseReferenceRefuses(t *testing.T) {
	for text, words := range map[string]string{
		"":                                  "is not the name of a repository",
		"nginx":                             "neither a tag nor a digest; write the tag that is meant, for example nginx:latest",
		"registry.lan:5000/nginx":           "neither a tag nor a digest",
		"nginx:":                            "is not a tag",
		"nginx:-x":                          "is not a tag",
		"nginx:" + strings.Repeat("x", 129): "is not a tag",
		"NGINX:1":                           "lower-case",
		"https://docker.io/nginx:1":         "without a scheme",
		"nginx@sha256:123":                  "not a digest",
		"nginx@sha512:" + strings.Repeat("0", 128): "not a digest",
		"nginx@" + someDigest + "@" + someDigest:   "not a digest",
		"a//b:1":                                   "not the name of a repository",
		"../b:1":                                   "not the host of a registry",
		"a/../b:1":                                 "not the name of a repository",
		"bad_host.lan/a:1":                         "not the host of a registry",
		"user@host.lan/a:1":                        "not a digest",
		"a\x1b[31mb:1":                             "not the name of a repository",
		"docker.io/" + strings.Repeat("a", 256) + ":1": "longer than 255",
	} {
		_, err := ParseReference(text)
		wantProblem(t, err, ProblemReference, words)
		if strings.ContainsAny(err.Error(), "\x1b\n") {
			t.Errorf("%q repeats control characters", err)
		}
	}
}

func TestReferenceParts(t *testing.T) {
	ref, err := ParseReference("ghcr.io/a/b:1@" + someDigest)
	noError(t, err)
	if ref.Name() != "ghcr.io/a/b" || ref.Tag != "1" || ref.Digest.Short() != "0123456789ab" {
		t.Errorf("%#v", ref)
	}
	if at := ref.At(ref.Digest); at.Tag != "" || at.String() != "ghcr.io/a/b@"+someDigest {
		t.Errorf("%s", at)
	}
	if Digest("").Short() != "" || Digest("").Hex() != "" {
		t.Error("the zero digest has digits")
	}
}

// Whatever is read is complete, reads back to itself, and makes a file name and a path that mean nothing else.
func FuzzParseReference(f *testing.F) {
	for _, seed := range []string{"nginx:1.27", "ghcr.io/a/b@" + someDigest, "localhost:5000/a:1@" + someDigest, "[::1]:5000/x:y", "a/../b:1", "A:b@c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ref, err := ParseReference(text)
		if err != nil {
			if ProblemOf(err) != ProblemReference {
				t.Fatalf("%v", err)
			}
			return
		}
		again, err := ParseReference(ref.String())
		if err != nil || again != ref {
			t.Fatalf("%q reads as %#v, which reads back as %#v, %v", text, ref, again, err)
		}
		if ref.Registry == "" || ref.Repository == "" || ref.Tag == "" && ref.Digest == "" {
			t.Fatalf("%q leaves something implied: %#v", text, ref)
		}
		if strings.Contains(ref.Repository, "..") || strings.ContainsAny(ref.String(), " %?#\\") {
			t.Fatalf("%q becomes a path of its own: %s", text, ref)
		}
		if name := ArchiveName(ref, someDigest); !archiveName.MatchString(name) {
			t.Fatalf("%q makes the file name %q", text, name)
		}
	})
}
