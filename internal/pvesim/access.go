package pvesim

import (
	"maps"
	"slices"
	"sort"
	"strings"
)

// access is the user database: who there is, what roles mean, and who has which role where.
type access struct {
	users  map[string]*user
	groups map[string]map[string]bool
	tokens map[string]*token
	roles  map[string]map[string]bool
	acl    []aclEntry
	pools  map[string]*pool
}

type user struct {
	enabled  bool
	password string
	// totp is the one code that a user with a second factor has to give.
	totp    string
	comment string
}

type token struct {
	secret  string
	privsep bool
	comment string
	expire  int64
}

type aclEntry struct {
	path string
	// kind is user, group or token; who is its id.
	kind, who string
	role      string
	propagate bool
}

type pool struct {
	comment  string
	vms      map[int]bool
	storages map[string]bool
}

func newPool() *pool { return &pool{vms: map[int]bool{}, storages: map[string]bool{}} }

// allPrivileges are the privileges of Proxmox VE 9.2.
var allPrivileges = strings.Fields(`Datastore.Allocate Datastore.AllocateSpace Datastore.AllocateTemplate Datastore.Audit
Group.Allocate Mapping.Audit Mapping.Modify Mapping.Use Permissions.Modify Pool.Allocate Pool.Audit Realm.Allocate
Realm.AllocateUser SDN.Allocate SDN.Audit SDN.Use Sys.AccessNetwork Sys.Audit Sys.Console Sys.Incoming Sys.Modify
Sys.PowerMgmt Sys.Syslog User.Modify VM.Allocate VM.Audit VM.Backup VM.Clone VM.Config.CDROM VM.Config.CPU
VM.Config.Cloudinit VM.Config.Disk VM.Config.HWType VM.Config.Memory VM.Config.Network VM.Config.Options VM.Console
VM.GuestAgent.Audit VM.GuestAgent.FileRead VM.GuestAgent.FileSystemMgmt VM.GuestAgent.FileWrite
VM.GuestAgent.Unrestricted VM.Migrate VM.PowerMgmt VM.Replicate VM.Snapshot VM.Snapshot.Rollback`)

func builtinRoles() map[string]map[string]bool {
	vmUser := "VM.Audit VM.Backup VM.Config.CDROM VM.Config.Cloudinit VM.Console VM.GuestAgent.Audit VM.PowerMgmt"
	vmAdmin := vmUser + ` VM.Allocate VM.Clone VM.Config.CPU VM.Config.Disk VM.Config.HWType VM.Config.Memory
		VM.Config.Network VM.Config.Options VM.GuestAgent.FileRead VM.GuestAgent.FileSystemMgmt
		VM.GuestAgent.FileWrite VM.GuestAgent.Unrestricted VM.Migrate VM.Replicate VM.Snapshot VM.Snapshot.Rollback`
	def := map[string]string{
		"NoAccess":          "",
		"Administrator":     strings.Join(allPrivileges, " "),
		"PVEVMUser":         vmUser,
		"PVEVMAdmin":        vmAdmin,
		"PVEAuditor":        "Datastore.Audit Mapping.Audit Pool.Audit SDN.Audit Sys.Audit VM.Audit VM.GuestAgent.Audit",
		"PVEDatastoreUser":  "Datastore.AllocateSpace Datastore.Audit",
		"PVEDatastoreAdmin": "Datastore.Allocate Datastore.AllocateSpace Datastore.AllocateTemplate Datastore.Audit",
		"PVEPoolUser":       "Pool.Audit",
		"PVEPoolAdmin":      "Pool.Allocate Pool.Audit",
		"PVESDNUser":        "SDN.Audit SDN.Use",
		"PVESDNAdmin":       "SDN.Allocate SDN.Audit SDN.Use",
		"PVEMappingUser":    "Mapping.Audit Mapping.Use",
		"PVETemplateUser":   "VM.Audit VM.Clone",
		"PVEUserAdmin":      "Group.Allocate Realm.AllocateUser User.Modify",
		"PVESysAdmin":       "Sys.Audit Sys.Console Sys.Syslog",
	}
	roles := map[string]map[string]bool{}
	for name, privs := range def {
		roles[name] = setOf(strings.Fields(privs)...)
	}
	roles["PVEAdmin"] = setOf(slices.DeleteFunc(slices.Clone(allPrivileges), func(p string) bool {
		return p == "Permissions.Modify" || p == "Sys.Modify" || p == "Sys.PowerMgmt" || p == "Sys.Incoming" ||
			p == "Sys.AccessNetwork" || p == "Realm.Allocate"
	})...)
	return roles
}

func setOf(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

func newAccess() *access {
	return &access{
		users:  map[string]*user{rootUser: {enabled: true}},
		groups: map[string]map[string]bool{}, tokens: map[string]*token{},
		roles: builtinRoles(), pools: map[string]*pool{},
	}
}

func (a *access) clone() *access {
	n := &access{
		users: map[string]*user{}, groups: map[string]map[string]bool{}, tokens: map[string]*token{},
		roles: map[string]map[string]bool{}, acl: slices.Clone(a.acl), pools: map[string]*pool{},
	}
	for k, v := range a.users {
		u := *v
		n.users[k] = &u
	}
	for k, v := range a.groups {
		n.groups[k] = maps.Clone(v)
	}
	for k, v := range a.tokens {
		t := *v
		n.tokens[k] = &t
	}
	for k, v := range a.roles {
		n.roles[k] = maps.Clone(v)
	}
	for k, v := range a.pools {
		n.pools[k] = &pool{v.comment, maps.Clone(v.vms), maps.Clone(v.storages)}
	}
	return n
}

func (a *access) enabled(name string) bool {
	u := a.users[name]
	return u != nil && u.enabled
}

// poolOf is the pool a guest is in, "" for none.
func (a *access) poolOf(vmid int) string {
	for id, p := range a.pools {
		if p.vms[vmid] {
			return id
		}
	}
	return ""
}

// forgetGuest removes what Proxmox always removes with a guest: the entries on exactly its path,
// and its pool membership.
func (a *access) forgetGuest(vmid int) {
	path := vmPath(vmid)
	a.acl = slices.DeleteFunc(a.acl, func(e aclEntry) bool { return e.path == path })
	for _, p := range a.pools {
		delete(p.vms, vmid)
	}
}

// rolesAt gives the roles somebody has on a path and whether each propagates. Entries deeper in the
// tree replace those above; entries of the user itself replace those of its groups.
func (a *access) rolesAt(who identity, asToken bool, path string) map[string]bool {
	got := map[string]bool{}
	for _, at := range prefixes(path) {
		final := at == path
		own, group := map[string]bool{}, map[string]bool{}
		for _, e := range a.acl {
			if e.path != at || (!final && !e.propagate) {
				continue
			}
			switch e.kind {
			case "token":
				if asToken && e.who == who.full {
					own[e.role] = e.propagate
				}
			case "user":
				if !asToken && e.who == who.user {
					own[e.role] = e.propagate
				}
			case "group":
				if !asToken && a.groups[e.who][who.user] {
					group[e.role] = e.propagate
				}
			}
		}
		if len(own) > 0 {
			got = own
		} else if len(group) > 0 {
			got = group
		}
		if _, none := got["NoAccess"]; none {
			got = map[string]bool{"NoAccess": got["NoAccess"]}
		}
	}
	return got
}

func prefixes(path string) []string {
	out := []string{"/"}
	for i := 1; i < len(path); i++ {
		if path[i] == '/' {
			out = append(out, path[:i])
		}
	}
	if path != "/" {
		out = append(out, path)
	}
	return out
}

// privsOf are the privileges on a path with their propagate bit, those a pool gives included.
func (a *access) privsOf(who identity, asToken bool, path string) map[string]bool {
	roles := a.rolesAt(who, asToken, path)
	if _, none := roles["NoAccess"]; none {
		return map[string]bool{}
	}
	privs := map[string]bool{}
	add := func(roles map[string]bool) {
		for r, propagate := range roles {
			for p := range a.roles[r] {
				privs[p] = privs[p] || propagate
			}
		}
	}
	add(roles)
	for id, p := range a.pools {
		if vmid, ok := strings.CutPrefix(path, "/vms/"); ok && p.vms[atoi(vmid)] {
			add(a.rolesAt(who, asToken, "/pool/"+id))
		}
		if st, ok := strings.CutPrefix(path, "/storage/"); ok && p.storages[st] {
			add(a.rolesAt(who, asToken, "/pool/"+id))
		}
	}
	return privs
}

// permissions are somebody's effective privileges on a path. A token with privilege separation has
// what both it and its user have.
func (a *access) permissions(who identity, path string) map[string]bool {
	if who.isRoot() {
		return allPrivs()
	}
	if who.token == "" {
		return a.privsOf(who, false, path)
	}
	var byUser map[string]bool
	if who.user == rootUser {
		byUser = allPrivs()
	} else {
		byUser = a.privsOf(who, false, path)
	}
	t := a.tokens[who.full]
	if t == nil {
		return map[string]bool{}
	}
	if !t.privsep {
		return byUser
	}
	both := a.privsOf(who, true, path)
	for p := range both {
		if _, ok := byUser[p]; !ok {
			delete(both, p)
		}
	}
	return both
}

func allPrivs() map[string]bool {
	m := make(map[string]bool, len(allPrivileges))
	for _, p := range allPrivileges {
		m[p] = true
	}
	return m
}

// holds tells whether the caller has a privilege on a path, without building the whole set for the
// callers that have everything.
func (k *call) may(path string, privs ...string) bool {
	if k.who.isRoot() {
		return true
	}
	if t := k.c.access.tokens[k.who.full]; t != nil && !t.privsep && k.who.user == rootUser {
		return true
	}
	have := k.c.access.permissions(k.who, path)
	for _, p := range privs {
		if _, ok := have[p]; !ok {
			return false
		}
	}
	return true
}

func (k *call) mayAny(path string, privs ...string) bool {
	for _, p := range privs {
		if k.may(path, p) {
			return true
		}
	}
	return false
}

// need refuses in Proxmox's words when one of the privileges is missing on the path.
func (k *call) need(path string, privs ...string) error {
	for _, p := range privs {
		if !k.may(path, p) {
			return forbiddenf("%s, %s", path, p)
		}
	}
	return nil
}

// needAny refuses when none of the privileges is held on the path.
func (k *call) needAny(path string, privs ...string) error {
	if k.mayAny(path, privs...) {
		return nil
	}
	return forbiddenf("%s, %s", path, strings.Join(privs, "|"))
}

// needModify asks for the right to change the access list of a path.
func (k *call) needModify(path string) error {
	if path == "" {
		return k.need("/access", "Permissions.Modify")
	}
	return k.needAny(path, modifiers(path)...)
}

func modifiers(path string) []string {
	privs := []string{"Permissions.Modify"}
	for prefix, p := range map[string]string{"/storage/": "Datastore.Allocate", "/vms/": "VM.Allocate", "/pool/": "Pool.Allocate"} {
		if rest, ok := strings.CutPrefix(path, prefix); ok && rest != "" {
			privs = append(privs, p)
		}
	}
	return privs
}

// needGuest is a check on a guest that a pool named in the call may satisfy as well, as Proxmox
// does for what a create or clone puts into a pool.
func (k *call) needGuest(vmid int, poolID string, anyOf bool, privs ...string) error {
	ok := func(path string) bool {
		if anyOf {
			return k.mayAny(path, privs...)
		}
		return k.may(path, privs...)
	}
	if ok(vmPath(vmid)) || (poolID != "" && ok("/pool/"+poolID)) {
		return nil
	}
	if anyOf {
		return forbiddenf("%s, %s", vmPath(vmid), strings.Join(privs, "|"))
	}
	return k.need(vmPath(vmid), privs...)
}

func vmPath(vmid int) string { return "/vms/" + itoa(vmid) }

// effective is what /access/permissions tells: for each path that somebody could have something
// on, each privilege with its propagate bit.
func (a *access) effective(who identity, only string) map[string]map[string]int {
	paths := setOf("/", "/access", "/access/groups", "/nodes", "/pool", "/sdn", "/storage", "/vms")
	for _, e := range a.acl {
		paths[e.path] = true
	}
	for _, p := range a.pools {
		for vmid := range p.vms {
			paths[vmPath(vmid)] = true
		}
		for st := range p.storages {
			paths["/storage/"+st] = true
		}
	}
	if only != "" {
		paths = setOf(only)
	}
	out := map[string]map[string]int{}
	for path := range paths {
		row := map[string]int{}
		for p, propagate := range a.permissions(who, path) {
			row[p] = 0
			if propagate {
				row[p] = 1
			}
		}
		if len(row) > 0 || only != "" {
			out[path] = row
		}
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
