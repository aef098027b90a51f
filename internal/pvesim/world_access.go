package pvesim

import (
	"slices"
	"strings"
)

// AddUser adds a user with a password; totp is the one code of its second factor, "" for none.
func (c *Cluster) AddUser(name, password, totp string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.access.users[name] = &user{enabled: true, password: password, totp: totp}
}

// SetPassword sets a user's password.
func (c *Cluster) SetPassword(name, password string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.access.users[name].password = password
}

// AddToken adds a token of a user, which is made when it does not exist, and gives the text that
// goes after "PVEAPIToken=". privs are the token's own rights by path; every privilege of a path
// propagates to what is below it unless the path ends in "!". Nil privs: a token without privilege
// separation, which has what its user has.
func (c *Cluster) AddToken(userName, id string, privs map[string][]string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.access
	if a.users[userName] == nil {
		a.users[userName] = &user{enabled: true}
	}
	full := userName + "!" + id
	secret := c.newUUID()
	a.tokens[full] = &token{secret: secret, privsep: privs != nil}
	for path, list := range privs {
		c.grant(full, path, list)
	}
	return full + "=" + secret
}

// grant gives a token rights through a role made for them. A token has no more than its user, so
// the user gets the same.
func (c *Cluster) grant(full, path string, privs []string) {
	a := c.access
	at, exact := strings.CutSuffix(path, "!")
	role := "sim-" + strings.NewReplacer("/", "-", "@", "-", "!", "-").Replace(full+at)
	for _, p := range privs {
		if !slices.Contains(allPrivileges, p) {
			panic("pvesim: no such privilege: " + p)
		}
	}
	a.roles[role] = setOf(privs...)
	userName, _, _ := strings.Cut(full, "!")
	for _, e := range []aclEntry{
		{at, "token", full, role, !exact}, {at, "user", userName, role, !exact},
	} {
		if e.kind == "user" && userName == rootUser {
			continue
		}
		a.revoke(e)
		a.acl = append(a.acl, e)
	}
}

// SetRights replaces a token's own rights on one path; no privilege at all takes them away.
func (c *Cluster) SetRights(full, path string, privs ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := strings.TrimSuffix(path, "!")
	user, _, _ := strings.Cut(full, "!")
	c.access.acl = slices.DeleteFunc(c.access.acl, func(e aclEntry) bool { return e.path == at && (e.who == full || e.who == user) })
	if len(privs) > 0 {
		c.grant(full, path, privs)
	}
}

// AddACL grants a role to a user, group or token ("user", "group", "token") on a path.
func (c *Cluster) AddACL(path, kind, who, role string, propagate bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.access.roles[role] == nil {
		panic("pvesim: no such role: " + role)
	}
	if kind == "user" && c.access.users[who] == nil {
		c.access.users[who] = &user{enabled: true}
	}
	if kind == "group" && c.access.groups[who] == nil {
		c.access.groups[who] = map[string]bool{}
	}
	c.access.acl = append(c.access.acl, aclEntry{path, kind, who, role, propagate})
}

// AddRole defines a role.
func (c *Cluster) AddRole(name string, privs ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.access.roles[name] = setOf(privs...)
}

// AddPool makes a pool and puts guests into it.
func (c *Cluster) AddPool(id string, vmids ...int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.access.pools[id] == nil {
		c.access.pools[id] = newPool()
	}
	for _, vmid := range vmids {
		c.access.pools[id].vms[vmid] = true
	}
}

// PoolOf is the pool a guest is in, "" for none.
func (c *Cluster) PoolOf(vmid int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.access.poolOf(vmid)
}
