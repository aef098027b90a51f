package pvesim

import (
	"slices"
	"sort"
	"strings"
)

func (s *Server) registerAccess() {
	s.route("GET", "/access/users", listUsers)
	s.route("POST", "/access/users", createUser)
	s.route("GET", "/access/users/{userid}", readUser)
	s.route("DELETE", "/access/users/{userid}", deleteUser)
	s.route("GET", "/access/users/{userid}/token", listTokens)
	s.route("POST", "/access/users/{userid}/token/{tokenid}", createToken)
	s.route("GET", "/access/users/{userid}/token/{tokenid}", readToken)
	s.route("DELETE", "/access/users/{userid}/token/{tokenid}", deleteToken)
	s.route("GET", "/access/roles", listRoles)
	s.route("POST", "/access/roles", createRole)
	s.route("GET", "/access/roles/{roleid}", readRole)
	s.route("DELETE", "/access/roles/{roleid}", deleteRole)
	s.route("GET", "/access/permissions", readPermissions)
	s.route("GET", "/access/domains", listDomains)
}

func listDomains(*call) (any, error) {
	return []map[string]any{
		{"realm": "pam", "type": "pam", "comment": "Linux PAM standard authentication"},
		{"realm": "pve", "type": "pve", "comment": "Proxmox VE authentication server"},
	}, nil
}

// mayReadUser follows Proxmox: oneself, or Sys.Audit or User.Modify on the user's group path.
func (k *call) mayReadUser(name string) bool {
	return k.who.user == name || k.mayAny("/access/groups", "User.Modify", "Sys.Audit")
}

func userRow(name string, u *user) map[string]any {
	row := map[string]any{"userid": name, "enable": 0, "expire": 0, "realm-type": realmOf(name)}
	if u.enabled {
		row["enable"] = 1
	}
	if u.comment != "" {
		row["comment"] = u.comment
	}
	return row
}

func listUsers(k *call) (any, error) {
	rows := []map[string]any{}
	for _, name := range sortedKeys(k.c.access.users) {
		// a user without any right does not even see itself in the list
		if k.mayReadUser(name) && (k.who.user != name || k.who.token == "" || k.mayAny("/access/groups", "User.Modify", "Sys.Audit")) {
			rows = append(rows, userRow(name, k.c.access.users[name]))
		}
	}
	return rows, nil
}

func createUser(k *call) (any, error) {
	name := k.str("userid")
	if k.c.access.users[name] != nil {
		return nil, die("create user failed: user '%s' already exists", name)
	}
	u := &user{enabled: true, password: k.str("password"), comment: k.str("comment")}
	if v, ok := k.param("enable"); ok {
		u.enabled = isTrue(v)
	}
	k.c.access.users[name] = u
	for _, g := range splitList(k.str("groups")) {
		if k.c.access.groups[g] == nil {
			return nil, die("create user failed: no such group '%s'", g)
		}
		k.c.access.groups[g][name] = true
	}
	return nil, nil
}

func (k *call) user() (*user, error) {
	name := k.str("userid")
	u := k.c.access.users[name]
	if u == nil {
		return nil, die("no such user ('%s')", name)
	}
	return u, nil
}

func readUser(k *call) (any, error) {
	u, err := k.user()
	if err != nil {
		return nil, err
	}
	row := userRow(k.str("userid"), u)
	delete(row, "userid")
	return row, nil
}

func deleteUser(k *call) (any, error) {
	name := k.str("userid")
	if _, err := k.user(); err != nil {
		return nil, err
	}
	if name == rootUser {
		return nil, die("delete user failed: not allowed to delete '%s'", name)
	}
	a := k.c.access
	delete(a.users, name)
	for _, g := range a.groups {
		delete(g, name)
	}
	for t := range a.tokens {
		if strings.HasPrefix(t, name+"!") {
			delete(a.tokens, t)
		}
	}
	a.acl = slices.DeleteFunc(a.acl, func(e aclEntry) bool {
		return e.who == name || strings.HasPrefix(e.who, name+"!")
	})
	return nil, nil
}

func tokenInfo(t *token) map[string]any {
	info := map[string]any{"privsep": 0, "expire": t.expire}
	if t.privsep {
		info["privsep"] = 1
	}
	if t.comment != "" {
		info["comment"] = t.comment
	}
	return info
}

func listTokens(k *call) (any, error) {
	rows := []map[string]any{}
	for _, full := range sortedKeys(k.c.access.tokens) {
		if id, ok := strings.CutPrefix(full, k.str("userid")+"!"); ok {
			row := tokenInfo(k.c.access.tokens[full])
			row["tokenid"] = id
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func createToken(k *call) (any, error) {
	full := k.str("userid") + "!" + k.str("tokenid")
	if _, err := k.user(); err != nil {
		return nil, err
	}
	if k.c.access.tokens[full] != nil {
		return nil, paramError("tokenid", "Token already exists.")
	}
	t := &token{secret: k.c.newUUID(), privsep: true, comment: k.str("comment"), expire: int64(atoi(k.str("expire")))}
	info := map[string]any{"privsep": "1"}
	if v, ok := k.param("privsep"); ok {
		t.privsep = isTrue(v)
		info["privsep"] = v
	}
	k.c.access.tokens[full] = t
	return map[string]any{"full-tokenid": full, "info": info, "value": t.secret}, nil
}

func readToken(k *call) (any, error) {
	t := k.c.access.tokens[k.str("userid")+"!"+k.str("tokenid")]
	if t == nil {
		return nil, die("no such token '%s' for user '%s'", k.str("tokenid"), k.str("userid"))
	}
	return tokenInfo(t), nil
}

func deleteToken(k *call) (any, error) {
	full := k.str("userid") + "!" + k.str("tokenid")
	if _, err := readToken(k); err != nil {
		return nil, err
	}
	delete(k.c.access.tokens, full)
	k.c.access.acl = slices.DeleteFunc(k.c.access.acl, func(e aclEntry) bool { return e.kind == "token" && e.who == full })
	return nil, nil
}

func listRoles(k *call) (any, error) {
	builtin := builtinRoles()
	rows := []map[string]any{}
	for _, id := range sortedKeys(k.c.access.roles) {
		special := 0
		if builtin[id] != nil {
			special = 1
		}
		rows = append(rows, map[string]any{"roleid": id, "special": special, "privs": strings.Join(sortedKeys(k.c.access.roles[id]), ",")})
	}
	return rows, nil
}

func createRole(k *call) (any, error) {
	id := k.str("roleid")
	if k.c.access.roles[id] != nil {
		return nil, die("create role failed: role '%s' already exists", id)
	}
	privs := splitList(k.str("privs"))
	for _, p := range privs {
		if !slices.Contains(allPrivileges, p) {
			return nil, die("create role failed: invalid privilege '%s'", p)
		}
	}
	k.c.access.roles[id] = setOf(privs...)
	return nil, nil
}

func (k *call) role() (map[string]bool, error) {
	r := k.c.access.roles[k.str("roleid")]
	if r == nil {
		return nil, die("role '%s' does not exist", k.str("roleid"))
	}
	return r, nil
}

func readRole(k *call) (any, error) {
	r, err := k.role()
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	for p := range r {
		out[p] = 1
	}
	return out, nil
}

func deleteRole(k *call) (any, error) {
	if _, err := k.role(); err != nil {
		return nil, die("delete role failed: %s", err.Error())
	}
	delete(k.c.access.roles, k.str("roleid"))
	return nil, nil
}

// readPermissions tells the caller's own rights; those of others need Sys.Audit on /access.
func readPermissions(k *call) (any, error) {
	who := k.who
	if name, ok := k.param("userid"); ok && name != k.who.full {
		user, id, _ := strings.Cut(name, "!")
		if user != k.who.user {
			if err := k.need("/access", "Sys.Audit"); err != nil {
				return nil, err
			}
		}
		who = identity{full: name, user: user, token: id}
	}
	return k.c.access.effective(who, k.str("path")), nil
}

func (s *Server) registerACL() {
	s.route("GET", "/access/acl", readACL)
	s.route("PUT", "/access/acl", updateACL)
}

// readACL lists the entries the caller may change; all of them with Sys.Audit on /access.
func readACL(k *call) (any, error) {
	audit := k.may("/access", "Sys.Audit")
	rows := []map[string]any{}
	entries := slices.Clone(k.c.access.acl)
	sort.SliceStable(entries, func(i, j int) bool { return entries[i].path < entries[j].path })
	for _, e := range entries {
		if !audit && k.needModify(e.path) != nil {
			continue
		}
		propagate := 0
		if e.propagate {
			propagate = 1
		}
		rows = append(rows, map[string]any{"path": e.path, "type": e.kind, "ugid": e.who, "roleid": e.role, "propagate": propagate})
	}
	return rows, nil
}

// updateACL grants or takes roles. Who has no Permissions.Modify may only hand on what they have.
func updateACL(k *call) (any, error) {
	if !k.has("users") && !k.has("groups") && !k.has("tokens") {
		return nil, paramErrors(map[string]string{"groups": "either 'users', 'groups' or 'tokens' is required."})
	}
	if err := k.c.checkQuorum(); err != nil {
		return nil, err
	}
	a, path, remove := k.c.access, k.str("path"), k.flag("delete")
	path = "/" + strings.Trim(path, "/")
	propagate := true
	if v, ok := k.param("propagate"); ok {
		propagate = isTrue(v)
	}
	have := a.permissions(k.who, path)
	_, unlimited := have["Permissions.Modify"]
	var changes []aclEntry
	for _, role := range splitList(k.str("roles")) {
		privs := a.roles[role]
		if privs == nil {
			return nil, die("role '%s' does not exist", role)
		}
		if !unlimited {
			verb := "add"
			if remove {
				verb = "remove"
			}
			for p := range privs {
				propagates, ok := have[p]
				if !ok {
					return nil, paramError("role", "Cannot "+verb+" role '"+role+"' - requires 'Permissions.Modify' or superset of privileges.")
				}
				if propagate && !propagates {
					return nil, paramError("role", "Cannot "+verb+" role '"+role+"' with propagation - requires 'Permissions.Modify' or propagated superset of privileges.")
				}
			}
		}
		for _, g := range splitList(k.str("groups")) {
			if a.groups[g] == nil {
				return nil, die("group '%s' does not exist", g)
			}
			changes = append(changes, aclEntry{path, "group", g, role, propagate})
		}
		for _, u := range splitList(k.str("users")) {
			if a.users[u] == nil {
				return nil, die("user '%s' does not exist", u)
			}
			changes = append(changes, aclEntry{path, "user", u, role, propagate})
		}
		for _, t := range splitList(k.str("tokens")) {
			if a.tokens[t] == nil {
				return nil, die("no such token '%s'", t)
			}
			changes = append(changes, aclEntry{path, "token", t, role, propagate})
		}
	}
	for _, e := range changes {
		a.revoke(e)
		if !remove {
			a.acl = append(a.acl, e)
		}
	}
	return nil, nil
}

func (a *access) revoke(e aclEntry) {
	a.acl = slices.DeleteFunc(a.acl, func(o aclEntry) bool {
		return o.path == e.path && o.kind == e.kind && o.who == e.who && o.role == e.role
	})
}
