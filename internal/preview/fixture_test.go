package preview

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// The guest of most tests: CT 5001 web1 with a volume of its own, one of CT 5002, a bind mount and an unused volume. As it
// stands, with the bind mount dropped by consent, nothing blocks its reinstall.
const template = "local:vztmpl/debian-13-standard_13.1-1_amd64.tar.zst"

func volumeID(text string) guest.VolumeID {
	id, err := guest.ParseVolumeID(text)
	if err != nil {
		panic(err)
	}
	return id
}

// stored adds a row to the content lists.
func (f *Facts) stored(id string, owner guest.VMID, size guest.Bytes) {
	f.Volumes[volumeID(id)] = guest.StoredVolume{ID: volumeID(id), Owner: owner, Content: "rootdir", Format: "raw", Size: size}
}

func web1() (Facts, Want) {
	storage := func(name string, t guest.StorageType, content ...string) guest.Storage {
		return guest.Storage{
			Name: name, Type: t, Content: content, Enabled: true, Active: true,
			Available: 500 * guest.GiB, Total: 1000 * guest.GiB,
		}
	}
	f := Facts{
		Presence: guest.Present, NodeOnline: true, Quorate: true, AllSeen: true,
		Guest: guest.Guest{
			Ref: guest.Ref{VMID: 5001, Kind: guest.KindContainer, Node: "pve1"}, Running: true,
			Config: guest.Config{Digest: "d1", Values: map[string]string{
				"rootfs": "local-lvm:vm-5001-disk-0,size=8704M", "mp0": "local-lvm:vm-5001-disk-1,mp=/srv/data,backup=1,size=100G",
				"mp1": "local-lvm:vm-5002-disk-1,mp=/shared,size=50G", "mp2": "/mnt/media,mp=/media,ro=1",
				"unused0": "local-lvm:vm-5001-disk-7", "hostname": "web1", "cores": "2", "memory": "2048", "swap": "512",
				"net0": "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:50:01,ip=dhcp,firewall=1", "unprivileged": "1",
				"features": "nesting=1", "tags": "prod;web", "ostype": "debian", "arch": "amd64", "description": "the web server\n",
				"onboot": "1", "startup": "order=3", "nameserver": "10.0.0.1",
			}},
		},
		Login: Login{User: "ci@pve!pvrx", Version: "9.2.1"},
		Storages: map[string]guest.Storage{
			"local-lvm": storage("local-lvm", guest.StorageLVMThin, "rootdir", "images"),
			"local":     storage("local", guest.StorageDir, "vztmpl", "iso", "backup", "rootdir", "images"),
			"tank":      storage("tank", guest.StorageZFSPool, "rootdir", "images"),
			"pbs":       storage("pbs", guest.StoragePBS, "backup"),
		},
		Listed:        map[string]bool{"local-lvm": true, "local": true, "tank": true},
		Volumes:       map[guest.VolumeID]guest.StoredVolume{},
		Users:         map[guest.VolumeID][]User{volumeID("local-lvm:vm-5002-disk-1"): {{VMID: 5002, Kind: guest.KindContainer, Key: "mp0"}}},
		Tasks:         Known[[]Task]{OK: true},
		HA:            Known[HA]{OK: true},
		Jobs:          Known[[]BackupJob]{OK: true},
		Backups:       Known[[]guest.StoredVolume]{OK: true},
		Pool:          Known[string]{OK: true},
		ACL:           Known[[]ACLEntry]{OK: true},
		Firewall:      Known[Firewall]{OK: true},
		Leases:        Known[[]Lease]{OK: true},
		Replicated:    Known[bool]{OK: true},
		Template:      guest.StoredVolume{ID: volumeID(template), Content: "vztmpl", Size: 120 * guest.MiB},
		TemplateKnown: guest.Present,
		BackupStorage: Known[BackupRoom]{OK: true, Value: BackupRoom{Exists: true, Available: 500 * guest.GiB, ProtectedLimit: 5}},
		Parking:       Parking{VMID: 900000},
		Journal:       guest.Notes{User: "the web server"},
		Now:           1796100000,
	}
	f.stored("local-lvm:vm-5001-disk-0", 5001, 8704*guest.MiB)
	f.stored("local-lvm:vm-5001-disk-1", 5001, 100*guest.GiB)
	f.stored("local-lvm:vm-5002-disk-1", 5002, 50*guest.GiB)
	f.stored("local-lvm:vm-5001-disk-7", 5001, 4*guest.GiB)
	f.grant("/vms/5001", "VM.Allocate", "VM.Audit", "VM.Backup", "VM.Config.CPU", "VM.Config.Disk", "VM.Config.Memory", "VM.Config.Network", "VM.Config.Options", "VM.PowerMgmt", "VM.Snapshot")
	f.grant("/vms/900000", "VM.Allocate", "VM.Audit", "VM.Config.CPU", "VM.Config.Disk", "VM.Config.Memory", "VM.Config.Network", "VM.Config.Options", "VM.PowerMgmt")
	f.grant("/vms/5002", "VM.Config.Disk")
	for _, s := range []string{"local-lvm", "local", "tank", "pbs"} {
		f.grant("/storage/"+s, "Datastore.Audit", "Datastore.AllocateSpace")
	}
	f.grant("/sdn/zones/localnetwork/vmbr0", "SDN.Use")
	w := Want{VMID: 5001, Name: "web1", Template: template, Drop: []string{"mp2"}, Timeout: time.Hour}
	return f, w
}

// grant gives the login privileges that outlive the guest.
func (f *Facts) grant(path string, privileges ...string) {
	f.Privileges.OK = true
	for _, held := range []*map[string]map[string]bool{&f.Privileges.Held, &f.Privileges.Lasting} {
		if *held == nil {
			*held = map[string]map[string]bool{}
		}
		if (*held)[path] == nil {
			(*held)[path] = map[string]bool{}
		}
		for _, p := range privileges {
			(*held)[path][p] = true
		}
	}
}

func (f *Facts) revoke(path, privilege string) {
	delete(f.Privileges.Held[path], privilege)
	delete(f.Privileges.Lasting[path], privilege)
}

func (f *Facts) set(key, value string) { f.Guest.Config.Values[key] = value }

func (f *Facts) unset(key string) { delete(f.Guest.Config.Values, key) }

// snapshot adds a snapshot of the guest as it is.
func (f *Facts) snapshot(name string) {
	f.Guest.Snapshots = append(f.Guest.Snapshots, guest.Snapshot{Name: name, Config: f.Guest.Config.Clone()})
	f.set("parent", name)
}

func codesOf(blockers []Blocker) []string { return refusals(blockers) }

func has(blockers []Blocker, c Code) bool {
	return slices.ContainsFunc(blockers, func(b Blocker) bool { return b.Code == c })
}

func find(t *testing.T, blockers []Blocker, c Code) Blocker {
	t.Helper()
	for _, b := range blockers {
		if b.Code == c {
			return b
		}
	}
	t.Fatalf("no blocker %s among %v", c, codesOf(blockers))
	return Blocker{}
}

func fateOf(t *testing.T, p Preview, key string) Fate {
	t.Helper()
	for _, v := range p.Volumes {
		if v.Key == key {
			return v
		}
	}
	t.Fatalf("no fate for %s", key)
	return Fate{}
}

// wantFate asserts the two fates of a key.
func wantFate(t *testing.T, p Preview, key string, d DataFate, m MountFate) {
	t.Helper()
	if v := fateOf(t, p, key); v.Data != d || v.Mount != m {
		t.Errorf("%s is %s %s (%s), want %s %s", key, v.Data, v.Mount, v.Reason, d, m)
	}
}

// wantOnly asserts exactly which codes block.
func wantOnly(t *testing.T, p Preview, codes ...Code) {
	t.Helper()
	var want []string
	for _, c := range codes {
		want = append(want, c.String())
	}
	if got := codesOf(p.Blockers); !slices.Equal(got, want) {
		t.Errorf("blocked by %v, want %v", got, want)
		for _, b := range p.Blockers {
			t.Logf("  %s | %s", b.Title, b.Text())
		}
	}
}

func erase(w *Want, key, volume string) {
	w.Erase = maps.Clone(w.Erase)
	if w.Erase == nil {
		w.Erase = map[string]string{}
	}
	w.Erase[key] = volume
}

func journal(state guest.JournalState, until int64) *guest.Journal {
	return &guest.Journal{
		Version: 1, Operation: "op-5001-20261201-3f2a", Kind: "reinstall", Guest: 5001, Parking: 900012, Holder: 5001, Node: "pve1",
		Stage: "create", Index: 8, Of: 12, State: state, Until: until, Sequence: 9,
	}
}
