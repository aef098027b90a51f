package registry

import (
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/crane"
)

// What is pushed can be pulled, by tag and by digest, and equal images are one image.
func TestPushedImagesCanBePulled(t *testing.T) {
	r, err := Start(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	digests := map[string]string{}
	for _, version := range []string{"1", "2", "3"} {
		digest, err := r.Push("guestbook:"+version, Guestbook(version))
		if err != nil {
			t.Fatal(err)
		}
		if other := digests[digest]; other != "" {
			t.Errorf("versions %s and %s are the same image", other, version)
		}
		digests[digest] = version
		for _, ref := range []string{":" + version, "@" + digest} {
			if got, err := crane.Digest(r.Host()+"/guestbook"+ref, crane.Insecure); err != nil || got != digest {
				t.Errorf("guestbook%s: %s, %v; want %s", ref, got, err, digest)
			}
		}
		config, err := crane.Config(r.Host()+"/guestbook:"+version, crane.Insecure)
		if err != nil || !strings.Contains(string(config), `"/data":{}`) || !strings.Contains(string(config), "GUESTBOOK_VERSION="+version) {
			t.Errorf("its configuration: %s, %v", config, err)
		}
	}
	again, err := r.Push("guestbook:latest", Guestbook("1"))
	if err != nil || digests[again] != "1" {
		t.Errorf("the same image is now %s, %v", again, err)
	}
}

func TestRegistryThatCannotBe(t *testing.T) {
	if _, err := Start(t.Context(), "203.0.113.1:1"); err == nil {
		t.Error("it listens on an address of somebody else")
	}
	r, err := Start(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Push("No/Such Name:1", Guestbook("1")); err == nil {
		t.Error("a name that is none was taken")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Push("guestbook:1", Guestbook("1")); err == nil {
		t.Error("a closed registry takes images")
	}
}
