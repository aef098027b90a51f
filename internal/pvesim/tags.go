package pvesim

import (
	"maps"
	"strings"
)

func (c *Cluster) tagRules() (mode string, listed map[string]bool, registered map[string]bool) {
	p := parseProps(c.datacfg["user-tag-access"], "")
	mode = p.value("user-allow")
	if mode == "" {
		mode = "free"
	}
	return mode, setOf(splitList(p.value("user-allow-list"))...), setOf(splitList(c.datacfg["registered-tags"])...)
}

// allowedTags are the tags the caller is offered: registered ones to administrators, those in use
// by guests it sees, and the listed ones.
func (k *call) allowedTags() []string {
	mode, list, registered := k.c.tagRules()
	tags := map[string]bool{}
	if mode != "none" {
		maps.Copy(tags, list)
	}
	if k.may("/", "Sys.Modify") {
		maps.Copy(tags, registered)
	}
	if mode == "free" || mode == "existing" {
		for _, vmid := range k.c.vmids() {
			if k.may(vmPath(vmid), "VM.Audit") {
				for _, t := range splitList(k.c.guests[vmid].conf.kv["tags"]) {
					tags[t] = true
				}
			}
		}
	}
	return sortedKeys(tags)
}

// checkTags refuses tags the caller may not add or take away under the data centre's tag policy.
func (k *call) checkTags(vmid int, old, now string) error {
	had, has := setOf(splitList(old)...), setOf(splitList(strings.ToLower(now))...)
	mode, list, registered := k.c.tagRules()
	free := mode == "free"
	if mode == "existing" {
		for _, g := range k.c.guests {
			for _, t := range splitList(g.conf.kv["tags"]) {
				list[t] = true
			}
		}
	}
	changed := map[string]bool{}
	for t := range had {
		if !has[t] {
			changed[t] = true
		}
	}
	for t := range has {
		if !had[t] {
			changed[t] = true
		}
	}
	if len(changed) == 0 {
		return nil
	}
	if err := k.need(vmPath(vmid), "VM.Config.Options"); err != nil {
		return err
	}
	for _, t := range sortedKeys(changed) {
		allowed := !registered[t] && (free || (mode != "none" && list[t]))
		if !allowed && !k.may("/", "Sys.Modify") {
			return forbiddenf("/, Sys.Modify for modifying tag '%s'", t)
		}
	}
	return nil
}

// normalTags is how a tag list is stored: lower case, sorted, each once; an emptied list is a space.
func normalTags(s string) string {
	tags := setOf(splitList(strings.ToLower(s))...)
	if len(tags) == 0 {
		return " "
	}
	return strings.Join(sortedKeys(tags), ";")
}
