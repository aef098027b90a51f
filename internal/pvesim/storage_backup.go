package pvesim

import (
	"fmt"
	"slices"
	"sort"
)

// archive is what a backup holds.
type archive struct {
	kind guestKind
	vmid int
	name string
	conf config
	fw   *firewall
	// disks are the saved volumes by configuration key.
	disks map[string]archivedDisk
}

// archivedDisk is one volume in a backup.
type archivedDisk struct {
	// value is the key's configuration value when the backup was made.
	value   string
	size    int64
	format  string
	content map[string]string
}

// maxProtected is how many backups of one guest may be protected; -1 for any number. Who may manage
// the storage has no limit unless one is set.
func (k *call) maxProtected(s *storage) int {
	if v, ok := s.conf["max-protected-backups"]; ok {
		return atoi(v)
	}
	if k.may("/storage/"+s.id, "Datastore.Allocate") {
		return -1
	}
	return 5
}

// protect sets or lifts a backup's protection.
func (k *call) protect(s *storage, node string, v *volume, on bool) error {
	if on && !v.protected && v.vtype == "backup" && v.owned {
		if limit := k.maxProtected(s); limit > -1 {
			n := 0
			for _, o := range s.backups(node, v.owner) {
				if o.protected && o.subtype() == v.subtype() {
					n++
				}
			}
			if limit <= n {
				return die("The number of protected backups per guest is limited to %d on storage '%s'", limit, s.id)
			}
		}
	}
	v.protected = on
	return nil
}

// backups are a guest's backups on a storage, newest first.
func (s *storage) backups(node string, vmid int) []*volume {
	var out []*volume
	for _, v := range s.on(node) {
		if v.vtype == "backup" && v.owned && v.owner == vmid {
			out = append(out, v)
		}
	}
	sort.Slice(out, func(i, j int) bool {
		if !out[i].created.Equal(out[j].created) {
			return out[i].created.After(out[j].created)
		}
		return out[i].name > out[j].name
	})
	return out
}

// subtype is lxc or qemu for a backup.
func (v *volume) subtype() string {
	if v.archive != nil {
		return v.archive.kind.String()
	}
	for _, k := range []guestKind{kindLXC, kindQEMU} {
		if len(v.name) > 8 && v.name[7:7+len(k.String())] == k.String() {
			return k.String()
		}
	}
	return "unknown"
}

// addBackup puts a new archive on a storage under Proxmox's name for it and gives its volume id.
// size is the archive's own size in bytes, ext its suffix ("tar.zst").
func (c *Cluster) addBackup(s *storage, node string, a *archive, ext string, size int64) string {
	stamp := c.now().UTC()
	name := ""
	for {
		name = fmt.Sprintf("vzdump-%s-%d-%s.%s", a.kind, a.vmid, stamp.Format("2006_01_02-15_04_05"), ext)
		if s.on(node)["backup/"+name] == nil {
			break
		}
		stamp = stamp.Add(1e9)
	}
	n, err := s.parse("backup/" + name)
	if err != nil {
		panic("pvesim: " + err.Error())
	}
	v := c.newVolume(s, n, size)
	v.archive, v.written, v.created = a, size, stamp
	s.on(node)[n.own()] = v
	return v.id()
}

// keepLast says how many backups of a guest a retention setting leaves, of those that are not
// protected; false when it keeps all. All kinds of "keep" are taken together.
func keepLast(prune string) (int, bool) {
	p := parseProps(prune, "")
	if isTrue(p.value("keep-all")) {
		return 0, false
	}
	n, limited := 0, false
	for _, key := range []string{"keep-last", "keep-hourly", "keep-daily", "keep-weekly", "keep-monthly", "keep-yearly"} {
		if v := p.value(key); v != "" {
			n, limited = n+atoi(v), true
		}
	}
	return n, limited && n > 0
}

// prune removes a guest's oldest unprotected backups so that at most keep are left, and gives the
// volume ids of those that went.
func (s *storage) prune(node string, vmid int, kind string, keep int) []string {
	var gone []string
	left := 0
	for _, v := range s.backups(node, vmid) {
		if v.protected || v.subtype() != kind {
			continue
		}
		if left++; left > keep {
			gone = append(gone, v.id())
			delete(s.on(node), v.own())
		}
	}
	slices.Reverse(gone)
	return gone
}
