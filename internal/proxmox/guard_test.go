package proxmox

import (
	"context"
	"net/http"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

func TestGuardRefusesWhatWasNotAnnounced(t *testing.T) {
	const config, resource = "/nodes/pve1/lxc/5001/config", "/cluster/ha/resources/ct:5001"
	params := func(pairs ...string) map[string]any {
		m := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	for _, c := range []struct {
		name string
		r    request
		ok   bool
	}{
		{"a read", request{method: "GET", path: config}, true},
		{"an unknown method", request{method: "PATCH", path: config}, false},
		{"DELETE announced", request{method: "DELETE", path: "/nodes/pve1/lxc/5001", announced: []string{"/nodes/pve1/lxc/5001"}}, true},
		{"DELETE of something else", request{method: "DELETE", path: "/nodes/pve1/lxc/5002", announced: []string{"/nodes/pve1/lxc/5001"}}, false},
		{"DELETE unannounced", request{method: "DELETE", path: "/nodes/pve1/storage/local/content/x"}, false},
		{"delete= announced", request{method: "PUT", path: config, params: params("delete", "mp0,unused1"), announced: []string{"unused1", "mp0"}}, true},
		{"delete= of more", request{method: "PUT", path: config, params: params("delete", "mp0,mp1"), announced: []string{"mp0"}}, false},
		{"delete= unannounced", request{method: "POST", path: config, params: params("delete", "scsi0")}, false},
		{"unreferenced disks", request{method: "DELETE", path: config, announced: []string{config}, params: params("destroy-unreferenced-disks", "1")}, false},
		{"unreferenced disks, however said", request{method: "DELETE", path: config, announced: []string{config}, params: params("destroy-unreferenced-disks", "0")}, false},
		{"purge", request{method: "DELETE", path: config, announced: []string{config}, params: params("purge", "1")}, false},
		{"force", request{method: "POST", path: "/nodes/pve1/lxc", params: params("restore", "1", "force", "1")}, false},
		{"skiplock", request{method: "PUT", path: config, params: params("skiplock", "1")}, false},
		{"HA without purge=0", request{method: "DELETE", path: resource, announced: []string{resource}}, false},
		{"HA with purge=1", request{method: "DELETE", path: resource, announced: []string{resource}, params: params("purge", "1")}, false},
		{"HA with purge=0", request{method: "DELETE", path: resource, announced: []string{resource}, params: params("purge", "0")}, true},
		{"an empty archive", request{method: "POST", path: "/nodes/pve1/qemu", params: params("archive", "")}, false},
	} {
		if err := guard(c.r); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// What the port refuses by itself never reaches the server.
func TestRefusedRequestsAreNotSent(t *testing.T) {
	ctx := context.Background()
	vm := guest.Ref{VMID: 7131, Kind: guest.KindVM, Node: "pve1"}
	parking := guest.Ref{VMID: 900000, Kind: guest.KindContainer, Node: "pve1"}
	volume := guest.VolumeID{Storage: "local", Name: "5001/vm-5001-disk-1.raw"}
	move := guest.Move{From: ct, To: parking, FromKey: "mp0", ToKey: "mp0", Volume: volume, FromDigest: "a", ToDigest: "b"}
	spoilt := func(spoil func(*guest.Move)) error {
		h, s := scripted(t, func(sent) answer { return data("null") })
		m := move
		spoil(&m)
		err := h.MoveVolume(ctx, m)
		if len(s.all()) != 0 {
			t.Errorf("something was sent for %+v", m)
		}
		return err
	}
	h, s := scripted(t, func(sent) answer { return data("null") })
	create := func(params map[string]string) error {
		params["ostemplate"] = "local:vztmpl/d.tar.zst"
		_, err := h.CreateContainer(ctx, ct, params)
		return err
	}
	restore := func(archive string, params map[string]string) error {
		_, err := h.RestoreContainer(ctx, ct, archive, params)
		return err
	}
	for name, err := range map[string]error{
		"rootfs of an existing container":  h.SetConfig(ctx, ct, map[string]string{"rootfs": "local:1"}, nil, "d"),
		"unused without its id":            h.SetConfig(ctx, ct, nil, []string{"unused0"}, "d"),
		"invalid UTF-8":                    h.SetConfig(ctx, ct, map[string]string{"description": "\xff"}, nil, "d"),
		"drop of a mount":                  h.DropUnused(ctx, ct, "mp0", volume, "d"),
		"drop without a digest":            h.DropUnused(ctx, ct, "unused0", volume, ""),
		"create onto a kept volume":        create(map[string]string{"rootfs": "local:8", "mp0": "local:5001/vm-5001-disk-1.raw,mp=/data"}),
		"create onto a kept volume, named": create(map[string]string{"mp0": "volume=tank:vm-5001-disk-1,mp=/data"}),
		"create onto the host":             create(map[string]string{"mp0": "/srv/data,mp=/data"}),
		"create locked":                    create(map[string]string{"lock": "create"}),
		"create a template":                create(map[string]string{"template": "1"}),
		"create and start":                 create(map[string]string{"start": "1"}),
		"create with a restore inside":     create(map[string]string{"restore": "1"}),
		"create by force":                  create(map[string]string{"force": "1"}),
		"create with unused":               create(map[string]string{"unused0": "local:1"}),
		"A2 restore by force":              restore("local:backup/a.tar.zst", map[string]string{"rootfs": "local:8", "force": "1"}),
		"A2 restore with mounts":           restore("local:backup/a.tar.zst", map[string]string{"rootfs": "local:8", "mp0": "local:1,mp=/data"}),
		"A2 restore without rootfs":        restore("local:backup/a.tar.zst", map[string]string{}),
		"restore from nothing":             restore("", map[string]string{"rootfs": "local:8"}),
		"resize to nothing":                h.Resize(ctx, ct, "rootfs", 0),
		"snapshot without a name":          h.DeleteSnapshot(ctx, ct, ""),
		"the present as a snapshot":        h.DeleteSnapshot(ctx, ct, "current"),
		"grant to nobody":                  h.Grant(ctx, guest.ACLEntry{Path: "/vms/1", Type: "host", Who: "x", Role: "r"}),
		"move without the source's digest": spoilt(func(m *guest.Move) { m.FromDigest = "" }),
		"move without the target's digest": spoilt(func(m *guest.Move) { m.ToDigest = "" }),
		"move to itself":                   spoilt(func(m *guest.Move) { m.To = m.From }),
		"move across kinds":                spoilt(func(m *guest.Move) { m.To = vm }),
		"move across nodes":                spoilt(func(m *guest.Move) { m.To.Node = "pve2" }),
		"move without a key":               spoilt(func(m *guest.Move) { m.ToKey = "" }),
		"move without a volume":            spoilt(func(m *guest.Move) { m.Volume = guest.VolumeID{} }),
		"create of something without place": func() error {
			_, err := h.CreateContainer(ctx, guest.Ref{}, map[string]string{"ostemplate": "x"})
			return err
		}(),
	} {
		if err == nil || guest.OutcomeOf(err) != guest.OutcomeRefused {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(s.all()) != 0 {
		t.Errorf("something was sent: %v", s.all())
	}
}

func TestCreateSendsTextAndItsVMID(t *testing.T) {
	upid := "UPID:pve1:00001234:00ABCDEF:6B0E58A5:vzcreate:5001:ci@pve!pvrx:"
	h, s := scripted(t, taskServer(upid, func(int) answer { return stopped("OK") }, `[]`))
	_, err := h.CreateContainer(context.Background(), ct, map[string]string{
		"ostemplate": "local:vztmpl/d.tar.zst", "rootfs": "local:8.5,acl=1", "swap": "0", "start": "0", "hostname": "web1",
	})
	wantNoError(t, err)
	first := s.all()[0]
	if first.Method != http.MethodPost || first.Path != "/nodes/pve1/lxc" || first.Params["vmid"] != "5001" {
		t.Fatalf("%+v", first)
	}
	for key, value := range first.Params {
		if _, isText := value.(string); !isText {
			t.Errorf("%s is sent as %T", key, value)
		}
	}
}

func TestMayOwnSeesOwnersOfEveryStorage(t *testing.T) {
	for name, want := range map[string]bool{
		"5001/vm-5001-disk-0.raw":                              true,
		"5001/vm-999-disk-0.raw":                               true,
		"999/vm-5001-disk-0.raw":                               true, // whoever is meant: it could be ours
		"vm-5001-disk-0":                                       true,
		"subvol-5001-data":                                     true,
		"base-100-disk-0/vm-5001-disk-1":                       true,
		"100/base-100-disk-0.qcow2/5001/vm-5001-disk-0.qcow2":  true,
		"basevol-5001-disk-0":                                  true,
		"5002/vm-5002-disk-1.raw":                              false,
		"vm-50011-disk-0":                                      false,
		"vm-500-disk-1":                                        false,
		"subvol-5002-disk-5001":                                false,
		"100/base-100-disk-0.qcow2/5002/vm-5002-disk-0.qcow2":  false,
		"0.0.1.scsi-14f504e46494c450068656b3274732d694c4c2d66": true, // no owner to be seen: it could be ours
		"lun0": true,
	} {
		if got := mayOwn(guest.VolumeID{Storage: "s", Name: name}, 5001); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
