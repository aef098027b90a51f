package oci

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/crane"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/proxmox"
	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
)

// From the registry to a container: Proxmox recognises the archive, and what it makes of the image is what Inspect says. That
// includes B8's half of the matter: entrypoint and environment are the image's, whatever was there before.
func TestB8ArchiveBecomesAContainer(t *testing.T) {
	for name, oci := range map[string]bool{"OCI": true, "Docker": false} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			layer, err := crane.Layer(map[string][]byte{"entry.sh": []byte("#!/bin/sh\n"), "srv/index.html": []byte("hello")})
			noError(t, err)
			if oci {
				layer = asOCI{layer}
			}
			l.push("web:1", imageOf(t, amd64, oci, layer))
			a, _ := fetched(t, l.resolver(nil), l.ref("web:1"), amd64)

			c := pvesim.NewCluster(pvesim.Options{Nodes: []string{"pve1"}})
			c.AddStorage(pvesim.StorageSpec{ID: "local", Type: "dir", Content: []string{"rootdir", "vztmpl"}, Options: map[string]string{"path": "/var/lib/vz"}})
			h, err := proxmox.Connect(context.Background(), proxmox.Settings{
				Endpoints: []string{"https://pve1:8006"}, APIToken: c.AddToken("root@pam", "lab", nil), Transport: pvesim.NewServer(c),
			})
			noError(t, err)
			id, err := h.UploadTemplate(context.Background(), "pve1", "local", a.Name, a.SHA256, a.Reader(), a.Size)
			noError(t, err)
			stored, there := c.Volume(id.String())
			if !there || stored.Size != a.Size {
				t.Fatalf("%s is there: %v, %d bytes of %d", id, there, stored.Size, a.Size)
			}
			_, err = h.CreateContainer(context.Background(), guest.Ref{VMID: 6001, Kind: guest.KindContainer, Node: "pve1"}, map[string]string{
				"ostemplate": id.String(), "rootfs": "local:1", "ostype": "unmanaged", "arch": a.Config.Platform.Arch(), "unprivileged": "1", "hostname": "web",
			})
			noError(t, err)
			config := c.Config(6001)
			if got := config["env"]; got != strings.Join(a.Config.Env, "\x00") {
				t.Errorf("env %q, the image says %q", got, a.Config.Env)
			}
			if got := config["entrypoint"]; got != "/entry.sh 'arg one' --flag" {
				t.Errorf("entrypoint %q", got)
			}
		})
	}
}
