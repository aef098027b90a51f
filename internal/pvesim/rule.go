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
		Check []json.RawMessage
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
	p := ruleParser{op.key}
	return rule{test: p.check(decl.Check)}
}

// ruleParser reads the checks of one method.
type ruleParser struct{ key string }

func (p ruleParser) read(raw json.RawMessage, into any) {
	if err := json.Unmarshal(raw, into); err != nil {
		panic(fmt.Sprintf("pvesim: permissions of %s: %s: %v", p.key, raw, err))
	}
}

func (p ruleParser) text(raw json.RawMessage) string {
	var s string
	p.read(raw, &s)
	return s
}

func (p ruleParser) list(raw json.RawMessage) []string {
	var l []string
	p.read(raw, &l)
	return l
}

func (p ruleParser) check(c []json.RawMessage) func(*call) error {
	switch name := p.text(c[0]); name {
	case "perm":
		return p.perm(c)
	case "perm-modify":
		path := p.text(c[1])
		return func(k *call) error { return k.needModify(expand(path, k.params)) }
	case "and", "or":
		var tests []func(*call) error
		for _, raw := range c[1:] {
			var sub []json.RawMessage
			p.read(raw, &sub)
			tests = append(tests, p.check(sub))
		}
		if name == "and" {
			return every(tests)
		}
		return some(tests)
	case "userid-param":
		priv := p.text(c[1])
		if priv == "self" {
			return func(k *call) error {
				if k.who.user == k.str("userid") {
					return nil
				}
				return forbidden("")
			}
		}
		return func(k *call) error { return k.need("/access/realm/"+realmOf(k.str("userid")), priv) }
	case "userid-group":
		privs := p.list(c[1])
		return func(k *call) error { return k.needAny("/access/groups", privs...) }
	default:
		panic(fmt.Sprintf("pvesim: permissions of %s: unknown check %q", p.key, name))
	}
}

// perm reads a check of privileges on a path: all of them, or with "any" one of them; with
// "require_param" it fails when a parameter is not there.
func (p ruleParser) perm(c []json.RawMessage) func(*call) error {
	path, privs := p.text(c[1]), p.list(c[2])
	var anyOf bool
	var required string
	for pair := range slices.Chunk(c[3:], 2) {
		switch p.text(pair[0]) {
		case "any":
			anyOf = true
		case "require_param":
			required = p.text(pair[1])
		}
	}
	return func(k *call) error {
		if required != "" && !k.has(required) {
			return forbidden("")
		}
		at := expand(path, k.params)
		if anyOf {
			return k.needAny(at, privs...)
		}
		return k.need(at, privs...)
	}
}

func every(tests []func(*call) error) func(*call) error {
	return func(k *call) error {
		for _, t := range tests {
			if err := t(k); err != nil {
				return err
			}
		}
		return nil
	}
}

func some(tests []func(*call) error) func(*call) error {
	return func(k *call) error {
		for _, t := range tests {
			if t(k) == nil {
				return nil
			}
		}
		return forbidden("")
	}
}
