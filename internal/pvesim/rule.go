package pvesim

import (
	"encoding/json"
	"fmt"
	"slices"
)

// rule is who may call a method, as Proxmox's schema declares it.
type rule struct {
	// world methods need no login, rootOnly ones exactly root@pam.
	world, rootOnly bool
	test            func(*call) error
}

func (r rule) check(k *call) error {
	switch {
	case r.world:
		return nil
	case r.rootOnly:
		if k.who.full != rootUser {
			return forbidden("user != root@pam")
		}
		return nil
	case r.test != nil:
		return r.test(k)
	default:
		return nil
	}
}

// parseRule reads the permissions of a method's declaration. It panics on what it does not
// understand: a check that is skipped would let tests pass that should not.
func parseRule(op *operation) rule {
	var decl struct {
		User  string
		Check []any
	}
	if len(op.Permissions) == 0 || string(op.Permissions) == "null" {
		return rule{rootOnly: true}
	}
	if err := json.Unmarshal(op.Permissions, &decl); err != nil {
		panic(fmt.Sprintf("pvesim: permissions of %s: %v", op.key, err))
	}
	if decl.User == "world" {
		return rule{world: true}
	}
	if decl.User == "all" || len(decl.Check) == 0 {
		return rule{}
	}
	return rule{test: parseCheck(op.key, decl.Check)}
}

func parseCheck(key string, c []any) func(*call) error {
	name, _ := c[0].(string)
	switch name {
	case "perm":
		path := c[1].(string)
		privs := stringList(c[2])
		opts := options(c[3:])
		return func(k *call) error {
			if p := opts["require_param"]; p != "" && !k.has(p) {
				return forbidden("")
			}
			at := expand(path, k.params)
			if opts["any"] != "" {
				return k.needAny(at, privs...)
			}
			return k.need(at, privs...)
		}
	case "perm-modify":
		path := c[1].(string)
		return func(k *call) error { return k.needModify(expand(path, k.params)) }
	case "and", "or":
		var tests []func(*call) error
		for _, sub := range c[1:] {
			tests = append(tests, parseCheck(key, sub.([]any)))
		}
		if name == "and" {
			return func(k *call) error {
				for _, t := range tests {
					if err := t(k); err != nil {
						return err
					}
				}
				return nil
			}
		}
		return func(k *call) error {
			for _, t := range tests {
				if t(k) == nil {
					return nil
				}
			}
			return forbidden("")
		}
	case "userid-param":
		if c[1] == "self" {
			return func(k *call) error {
				if k.who.user == k.str("userid") {
					return nil
				}
				return forbidden("")
			}
		}
		priv := c[1].(string)
		return func(k *call) error { return k.need("/access/realm/"+realmOf(k.str("userid")), priv) }
	case "userid-group":
		privs := stringList(c[1])
		return func(k *call) error { return k.needAny("/access/groups", privs...) }
	default:
		panic(fmt.Sprintf("pvesim: permissions of %s: unknown check %q", key, name))
	}
}

func stringList(v any) []string {
	var out []string
	for _, e := range v.([]any) {
		out = append(out, e.(string))
	}
	return out
}

// options are the name and value pairs that may follow a check.
func options(rest []any) map[string]string {
	m := map[string]string{}
	for pair := range slices.Chunk(rest, 2) {
		if len(pair) == 2 {
			m[fmt.Sprint(pair[0])] = fmt.Sprint(pair[1])
		}
	}
	return m
}
