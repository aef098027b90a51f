package preview

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// corner is one combination of everything that decides over one extra key of the guest.
type corner struct {
	key      string // "mp3" or "unused3"
	kind     string // "volume", "bind", "device", "garbage"
	owner    guest.VMID
	storage  guest.StorageType
	listed   bool
	snapshot bool // a snapshot holds it
	pending  bool // a change of the key is pending
	shared   bool // another guest names it
	backup   bool // its option backup=1
	consent  string
	drop     bool
	allow    bool // allow every code that may be waived
	root     bool // root@pam by password
	may      bool // may name other guests' volumes
}

// name gives a volume of the storage type that belongs to owner; "" when that type has none.
func name(t guest.StorageType, owner guest.VMID) string {
	switch t {
	case guest.StorageDir, guest.StorageNFS, guest.StorageCIFS:
		return fmt.Sprintf("extra:%d/vm-%d-disk-3.raw", owner, owner)
	case guest.StorageBtrfs:
		return fmt.Sprintf("extra:%d/vm-%d-disk-3.subvol", owner, owner)
	case guest.StorageLVM, guest.StorageLVMThin, guest.StorageRBD:
		return fmt.Sprintf("extra:vm-%d-disk-3", owner)
	case guest.StorageZFSPool, guest.StorageZFS:
		return fmt.Sprintf("extra:subvol-%d-disk-3", owner)
	case guest.StorageISCSI:
		return "extra:0.0.1.scsi-3600"
	case guest.StorageISCSIDirect:
		return "extra:lun1"
	case guest.StorageESXi:
		return "extra:dc/store/x.vmdk"
	case guest.StorageCephFS, guest.StoragePBS:
		return "extra:vm-5001-disk-3"
	}
	return "extra:vm-5001-disk-3"
}

func (c corner) facts() (Facts, Want) {
	f, w := web1()
	volume := name(c.storage, c.owner)
	f.Storages["extra"] = guest.Storage{Name: "extra", Type: c.storage, Content: []string{"rootdir"}, Enabled: true, Active: true}
	f.Listed["extra"] = true
	f.grant("/storage/extra", "Datastore.Audit", "Datastore.AllocateSpace")
	if c.listed {
		f.stored(volume, c.owner, 3*guest.GiB)
	}
	source := map[string]string{"volume": volume, "bind": "/mnt/x", "device": "/dev/sdx", "garbage": "what is this"}[c.kind]
	value := source
	if strings.HasPrefix(c.key, "mp") {
		value += ",mp=/x"
		if c.backup {
			value += ",backup=1"
		}
	}
	f.set(c.key, value)
	if c.snapshot {
		f.snapshot("daily")
	}
	if c.pending {
		f.Guest.Pending = []guest.Change{{Key: c.key, Value: value + ",size=9G"}}
	}
	if id, err := guest.ParseVolumeID(source); err == nil && c.shared {
		f.Users[id] = []User{{VMID: 5009, Kind: guest.KindVM, Key: "scsi1"}}
	}
	switch c.consent {
	case "":
	case "it":
		erase(&w, c.key, source)
	default:
		erase(&w, c.key, c.consent)
	}
	if c.drop {
		w.Drop = append(w.Drop, c.key)
	}
	if c.allow {
		for _, code := range Codes() {
			w.Allow = append(w.Allow, code.String())
		}
	}
	f.Login.RootTicket = c.root
	if !c.may {
		f.revoke("/vms/5002", "VM.Config.Disk")
	}
	return f, w
}

// corners visits every combination that can matter: what only concerns volumes is left at its first value for host paths,
// and rights to other guests' volumes are for those volumes.
func corners(visit func(c corner)) {
	n, all := 0, visit
	visit = func(c corner) {
		if n++; n%stride == 0 {
			all(c)
		}
	}
	types := []guest.StorageType{
		guest.StorageDir, guest.StorageBtrfs, guest.StorageLVM, guest.StorageLVMThin, guest.StorageZFSPool, guest.StorageRBD,
		guest.StorageZFS, guest.StorageISCSI, guest.StorageCephFS, "plugin-of-tomorrow",
	}
	both, no := []bool{false, true}, []bool{false}
	for _, key := range []string{"mp3", "unused3"} {
		for _, kind := range []string{"volume", "bind", "device", "garbage"} {
			owners, storages, aboutVolumes := []guest.VMID{5001, 5002}, types, both
			if kind != "volume" {
				owners, storages, aboutVolumes = owners[:1], types[:1], no
			}
			for _, owner := range owners {
				aboutOthers, few := no, storages
				if owner != 5001 {
					aboutOthers = both
				}
				if owner != 5001 || key != "mp3" { // the type decides over moving only, and over own volumes only
					few = storages[:min(len(storages), 2)]
				}
				for i, storage := range few {
					corner{key: key, kind: kind, owner: owner, storage: storage, backup: i%2 == 0}.each(visit, both, aboutVolumes, aboutOthers)
				}
			}
		}
	}
}

func (c corner) each(visit func(c corner), both, aboutVolumes, aboutOthers []bool) {
	for _, c.consent = range []string{"", "it", "*", "extra:vm-1-disk-9"} {
		for _, c.snapshot = range both {
			for _, c.pending = range both {
				for _, c.drop = range both {
					for _, c.allow = range both {
						for _, c.root = range both {
							for _, c.listed = range aboutVolumes {
								for _, c.shared = range aboutVolumes {
									for _, c.may = range aboutOthers {
										visit(c)
									}
								}
							}
						}
					}
				}
			}
		}
	}
}

// sane asserts what holds for every preview, whatever the facts.
func sane(p Preview, f Facts, w Want) error {
	for _, v := range p.Volumes {
		switch {
		case v.Data.String() == "invalid" || v.Mount.String() == "invalid":
			return fmt.Errorf("%s has the fates %s %s", v.Key, v.Data, v.Mount)
		case v.Reason == "" || v.Path == "":
			return fmt.Errorf("%s has reason %q and path %q", v.Key, v.Reason, v.Path)
		case v.Data == DataUnknown && len(p.Blockers) == 0:
			return fmt.Errorf("%s is unknown and nothing blocks", v.Key)
		case v.Mount == MountReattached && v.Data != DataPreserved && v.Data != DataExcluded && v.Data != DataHostManaged:
			return fmt.Errorf("%s is %s and yet put back", v.Key, v.Data)
		}
	}
	if len(p.Blockers) > 0 {
		return nil
	}
	// Nothing blocks: then nothing goes that nobody consented to.
	for _, v := range p.Volumes {
		switch v.Data {
		case DataErased:
			if named, ok := w.Erase[v.Key]; v.Key != "rootfs" && (!ok || named != "*" && named != v.Volume) {
				return fmt.Errorf("%s (%s) is erased without consent", v.Key, v.Volume)
			}
			if v.Owner != f.Guest.VMID {
				return fmt.Errorf("%s (%s) is erased and belongs to %d", v.Key, v.Volume, v.Owner)
			}
			if len(f.Users[volumeID(v.Volume)]) > 0 {
				return fmt.Errorf("%s (%s) is erased under another guest", v.Key, v.Volume)
			}
		case DataPreserved:
			if v.Mount != MountReattached || v.Owner != f.Guest.VMID {
				return fmt.Errorf("%s is preserved and %s, owner %d", v.Key, v.Mount, v.Owner)
			}
		case DataExcluded, DataHostManaged:
			if v.Mount == MountDropped && !slices.Contains(w.Drop, v.Key) {
				return fmt.Errorf("the mount of %s vanishes without consent", v.Key)
			}
		case DataUnknown:
			return fmt.Errorf("%s is unknown", v.Key)
		case DataKept:
			return fmt.Errorf("%s is kept by a reinstall", v.Key)
		}
	}
	return nil
}

// Every combination has a verdict with a reason, and no combination erases, renames or drops without consent.
func TestEveryCombinationHasAVerdict(t *testing.T) {
	t.Parallel()
	seen, free := 0, 0
	corners(func(c corner) {
		f, w := c.facts()
		p := Container(f, w)
		seen++
		if len(p.Blockers) == 0 {
			free++
		}
		if err := sane(p, f, w); err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		if len(p.Volumes) < 6 { // the five of web1, this one, and what another section says of it
			t.Fatalf("%+v: %d fates", c, len(p.Volumes))
		}
		if c.shared && c.kind == "volume" && c.owner == 5001 && fateOf(t, p, c.key).Data != DataUnknown && !has(p.Blockers, CodeVolumeShared) {
			t.Fatalf("%+v: shared and not blocked", c)
		}
		if c.pending && len(p.Blockers) == 0 {
			t.Fatalf("%+v: pending and not blocked", c)
		}
	})
	t.Logf("%d combinations, %d may go on", seen, free)
	if free == 0 || free == seen {
		t.Error("the combinations decide nothing")
	}
}

// Consent only ever takes blockers away: without it, nothing that was refused becomes a plan.
func TestDroppingConsentNeverUnblocks(t *testing.T) {
	t.Parallel()
	n := 0
	corners(func(c corner) {
		with := c
		if with.consent == "extra:vm-1-disk-9" {
			return // a mismatch is no consent
		}
		if c.consent != "" && (c.kind != "volume" || c.owner != 5001) {
			return // what erase may not name is a mismatch as well
		}
		if n++; n%9 != 0 {
			return // a sample: each takes four judgements
		}
		f, w := with.facts()
		refused := len(Container(f, w).Blockers) > 0
		for _, without := range []Want{
			{Erase: nil, Drop: w.Drop, Allow: w.Allow}, {Erase: w.Erase, Drop: nil, Allow: w.Allow}, {Erase: w.Erase, Drop: w.Drop, Allow: nil},
		} {
			less := w
			less.Erase, less.Drop, less.Allow = without.Erase, without.Drop, without.Allow
			if refused && len(Container(f, less).Blockers) == 0 {
				t.Fatalf("%+v: less consent unblocks", c)
			}
		}
	})
}

// A reason more never makes a plan out of a refusal.
func TestAddingAReasonNeverUnblocks(t *testing.T) {
	t.Parallel()
	all := reasons()
	n := 0
	for _, a := range all {
		for i, b := range all {
			if i > 0 && all[i-1].code == b.code {
				continue // one of each code is enough to be added
			}
			if n++; n%stride != 0 {
				continue
			}
			f, w := web1()
			a.make(&f, &w)
			if len(Container(f, w).Blockers) == 0 {
				t.Fatalf("%s (%s) alone does not block", a.code, a.name)
			}
			b.make(&f, &w)
			p := Container(f, w)
			if len(p.Blockers) == 0 {
				t.Errorf("%s (%s) and %s (%s) together do not block", a.code, a.name, b.code, b.name)
			}
			if err := sane(p, f, w); err != nil {
				t.Errorf("%s (%s) and %s (%s): %v", a.code, a.name, b.code, b.name, err)
			}
		}
	}
}

// The larger the present disk, the more there is to lose: it never turns a refusal into a plan.
func TestALargerDiskNeverUnblocks(t *testing.T) {
	t.Parallel()
	for _, asked := range []guest.Bytes{0, guest.GiB, 8 * guest.GiB, 8704 * guest.MiB, 9 * guest.GiB, 64 * guest.GiB} {
		blocked := false
		for size := 512 * guest.MiB; size <= 600*guest.GiB; size += size/3 + 1 {
			f, w := web1()
			f.set("rootfs", "local-lvm:vm-5001-disk-0,size="+size.ConfigText())
			f.stored("local-lvm:vm-5001-disk-0", 5001, size)
			w.Rootfs.Size = asked
			p := Container(f, w)
			if size%guest.KiB != 0 {
				// A bare number: both readings are accepted, the storage decides.
				if has(p.Blockers, CodeSizeUnreadable) {
					t.Fatalf("%d bytes: the readings do not agree", size)
				}
			}
			now := len(p.Blockers) > 0
			if blocked && !now {
				t.Errorf("asked %d: blocked below %d bytes, not at it", asked, size)
			}
			blocked = now
			if asked > 0 && has(p.Blockers, CodeRootfsShrink) != (asked < size) {
				t.Errorf("asked %d of %d: shrink %t", asked, size, has(p.Blockers, CodeRootfsShrink))
			}
		}
	}
}

// Maps have no order; lists of facts have one that means nothing. Neither shows.
func TestTheOrderOfFactsDoesNotShow(t *testing.T) {
	t.Parallel()
	build := func(turn int) (Facts, Want) {
		f, w := web1()
		for i := range 12 {
			at := (i*5 + turn) % 12
			key := fmt.Sprintf("mp%d", at+3)
			volume := fmt.Sprintf("local-lvm:vm-5001-disk-%d", at+20)
			f.set(key, volume+",mp=/m"+key)
			f.stored(volume, 5001, guest.Bytes(at+1)*guest.GiB)
			f.Users[volumeID(volume)] = rotate([]User{{VMID: 5002, Key: "mp0"}, {VMID: 5003, Key: "mp1"}, {VMID: 5003, Key: "mp0"}}, turn)
		}
		f.Guest.Snapshots = rotate([]guest.Snapshot{{Name: "b", Config: f.Guest.Config.Clone()}, {Name: "a", Config: f.Guest.Config.Clone()}, {Name: "c"}}, turn)
		f.Guest.Pending = rotate([]guest.Change{{Key: "memory"}, {Key: "mp10", Delete: true}, {Key: "mp2", Delete: true}}, turn)
		f.Tasks.Value = rotate([]Task{{Type: "vzdump"}, {Type: "vzstart", ID: "5001"}, {Type: "resize", ID: "5001"}}, turn)
		f.Jobs.Value = rotate([]BackupJob{{ID: "a", NextRun: 1, All: true}, {ID: "b", NextRun: 2, All: true}}, turn)
		f.Backups.Value = rotate([]guest.StoredVolume{{ID: volumeID("pbs:backup/a"), Protected: true}, {ID: volumeID("pbs:backup/b"), Protected: true}}, turn)
		f.ACL.Value = rotate([]ACLEntry{{Path: "/vms/5001", Who: "a", Role: "x"}, {Path: "/vms/5001", Who: "b", Role: "y"}}, turn)
		f.Leases.Value = rotate([]Lease{{IP: "10.0.0.2"}, {IP: "10.0.0.1"}}, turn)
		f.Unseen = rotate([]guest.VMID{5008, 5007, 5009}, turn)
		f.RegisteredTags = rotate([]string{"web", "prod"}, turn)
		f.Privileges.Held = map[string]map[string]bool{}
		f.Guest.Config.Raw = [][2]string{{"lxc.a", "1"}, {"lxc.b", "2"}}
		w.Drop = rotate([]string{"mp2", "lxc.b", "cores"}, turn)
		return f, w
	}
	var first string
	for turn := range 6 {
		f, w := build(turn)
		p := Container(f, w)
		text := show(p) + fmt.Sprint(p.Precondition, p.Warnings, p.Volumes)
		if turn == 0 {
			first = text
		}
		if text != first {
			t.Fatalf("turn %d differs:\n%s\n---\n%s", turn, first, text)
		}
	}
}

func rotate[T any](all []T, by int) []T {
	by %= len(all)
	return slices.Concat(all[by:], all[:by])
}

// show is everything a person reads of a preview.
func show(p Preview) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", p.Summary)
	fmt.Fprintf(&b, "%s\n", p.Table())
	for _, key := range slices.Sorted(maps.Keys(p.Erased())) {
		fmt.Fprintf(&b, "erased: %s = %s\n", key, p.Erased()[key])
	}
	for _, blocker := range p.Blockers {
		fmt.Fprintf(&b, "blocked: %s [%s]\n    %s\n", blocker.Title, blocker.Attribute, blocker.Text())
	}
	for _, blocker := range p.Waived {
		fmt.Fprintf(&b, "waived: %s\n    %s\n", blocker.Title, blocker.Found)
	}
	for _, warning := range p.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", warning)
	}
	return b.String()
}
