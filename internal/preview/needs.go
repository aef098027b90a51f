package preview

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// Need is a right that an operation uses.
type Need struct {
	Privileges []string // any of them is enough
	Paths      []string // held on any of them is enough
	Lasting    bool     // must not hang on what the destroy removes
	Optional   bool     // without it another guest's volume is not put back, which is for drop to accept
	For        string   // what it is used for, in a few words
}

// Needs lists the rights that the reinstall of a container uses, and with them every path that must be asked for before
// Container can answer. root@pam with a password has them all.
func Needs(f Facts, w Want) []Need {
	j := newJudge(f, w)
	if !j.readable() {
		return nil
	}
	j.collect()
	j.decide()
	return j.needs()
}

func (j *judge) needs() []Need {
	var needs []Need
	on := func(privilege, why string, lasting bool, paths ...string) {
		needs = append(needs, Need{Privileges: []string{privilege}, Paths: paths, Lasting: lasting, For: why})
	}
	for _, privilege := range j.guestPrivileges() {
		on(privilege, "the guest", true, j.path())
		if j.f.Parking.VMID != 0 {
			on(privilege, "the parking guest", true, j.parkingPaths()...)
		}
	}
	if len(j.snapshotNames()) > 0 {
		on("VM.Snapshot", "deleting snapshots", false, j.path())
	}
	if j.w.Backup != nil {
		on("VM.Backup", "the backup", false, j.path())
		on("Datastore.AllocateSpace", "the backup", false, "/storage/"+j.w.Backup.Storage)
	}
	if j.privileged() {
		on("Sys.Modify", "making a privileged container", false, "/")
	}
	if j.f.HA.OK && j.f.HA.Value.Managed {
		on("Sys.Console", "setting HA aside", false, "/")
	}
	needs = append(needs, j.storageNeeds()...)
	needs = append(needs, j.referenceNeeds()...)
	networks, _ := j.f.Guest.Config.Networks()
	return append(needs, j.bridgeNeeds(networks)...)
}

// referenceNeeds are the rights to name other guests' volumes: together, or Datastore.Allocate on the storage alone.
func (j *judge) referenceNeeds() []Need {
	var needs []Need
	for _, v := range j.volumes {
		if j.foreign(v) && v.section == "" {
			needs = append(needs,
				Need{Privileges: []string{"Datastore.Audit", "Datastore.Allocate"}, Paths: []string{"/storage/" + v.id.Storage}, Optional: true, For: "putting " + v.key + " back"},
				Need{Privileges: []string{"VM.Config.Disk"}, Paths: []string{"/vms/" + v.Owner.String()}, Optional: true, For: "putting " + v.key + " back"})
		}
	}
	return needs
}

func (j *judge) path() string { return "/vms/" + j.id().String() }

// parkingPaths: a create that names a pool is checked on the pool.
func (j *judge) parkingPaths() []string {
	paths := []string{"/vms/" + j.f.Parking.VMID.String()}
	if j.f.Parking.Pool != "" {
		paths = append(paths, "/pool/"+j.f.Parking.Pool)
	}
	return paths
}

// guestPrivileges are the rights on a guest that making, moving, changing and starting it takes.
func (j *judge) guestPrivileges() []string {
	privileges := []string{
		"VM.Allocate", "VM.Audit", "VM.Config.Disk", "VM.Config.Memory", "VM.Config.Network", "VM.Config.Options", "VM.PowerMgmt",
	}
	for _, key := range []string{"cores", "cpulimit", "cpuunits"} {
		if _, set := j.f.Guest.Config.Get(key); set {
			return append(privileges, "VM.Config.CPU")
		}
	}
	return privileges
}

func (j *judge) storageNeeds() []Need {
	audit, allocate := map[string]bool{}, map[string]bool{}
	if target := j.rootfsStorage(); target != "" {
		audit[target], allocate[target] = true, true
	}
	for _, v := range j.volumes {
		if j.owned(v) && isStored(v.section) {
			audit[v.id.Storage] = true
			allocate[v.id.Storage] = allocate[v.id.Storage] || v.Data == DataPreserved
		}
	}
	var needs []Need
	for _, name := range sortedKeys(audit) {
		if _, there := j.f.Storages[name]; !there {
			delete(allocate, name) // storage_unavailable says it
			continue
		}
		needs = append(needs, Need{Privileges: []string{"Datastore.Audit"}, Paths: []string{"/storage/" + name}, For: "seeing the volumes"})
	}
	for _, name := range sortedKeys(allocate) {
		if allocate[name] {
			needs = append(needs, Need{Privileges: []string{"Datastore.AllocateSpace"}, Paths: []string{"/storage/" + name}, For: "making and moving volumes"})
		}
	}
	if id, err := guest.ParseVolumeID(j.w.Template); err == nil {
		needs = append(needs, Need{Privileges: []string{"Datastore.Audit", "Datastore.AllocateSpace"}, Paths: []string{"/storage/" + id.Storage}, For: "reading the template"})
	}
	return needs
}

// bridgeNeeds: a network is set again only by somebody who may use its bridge, with its VLAN when it has one.
func (j *judge) bridgeNeeds(networks []guest.Network) []Need {
	var needs []Need
	for _, n := range networks {
		bridge := n.Options["bridge"]
		if bridge == "" {
			continue
		}
		zone := j.f.Zones[bridge]
		if zone == "" {
			zone = "localnetwork"
		}
		path := "/sdn/zones/" + zone + "/" + bridge
		tags := strings.FieldsFunc(n.Options["tag"]+";"+n.Options["trunks"], func(r rune) bool { return r == ';' })
		if len(tags) == 0 {
			needs = append(needs, Need{Privileges: []string{"SDN.Use"}, Paths: []string{path}, For: n.Key})
		}
		for _, tag := range tags {
			needs = append(needs, Need{Privileges: []string{"SDN.Use"}, Paths: []string{path, path + "/" + tag}, For: n.Key})
		}
	}
	slices.SortFunc(needs, func(a, b Need) int { return cmp.Compare(strings.Join(a.Paths, " "), strings.Join(b.Paths, " ")) })
	return needs
}
