package preview

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// may reports whether the login holds a privilege on a path now, as far as Proxmox told.
func (j *judge) may(privilege, path string) bool {
	return j.f.Login.RootTicket || j.f.Privileges.OK && j.f.Privileges.Held[path][privilege]
}

// lasts reports whether it still holds once the guest is destroyed, which takes the entries on exactly /vms/N and pool
// membership away. Other paths stay.
func (j *judge) lasts(privilege, path string) bool {
	if j.f.Login.RootTicket || !strings.HasPrefix(path, "/vms/") {
		return j.may(privilege, path)
	}
	return j.may(privilege, path) && j.f.Privileges.Lasting[path][privilege]
}

// mayRefer reports whether this login may name another guest's volume in a configuration, and what it lacks.
func (j *judge) mayRefer(v volume) (ok bool, missing string) {
	if v.Path == "-" {
		return false, "an unused entry cannot be written for another guest's volume"
	}
	storage, owner := "/storage/"+v.id.Storage, "/vms/"+v.Owner.String()
	if j.may("Datastore.Allocate", storage) || j.may("Datastore.Audit", storage) && j.may("VM.Config.Disk", owner) {
		return true, ""
	}
	return false, fmt.Sprintf("%s lacks Datastore.Audit on %s and VM.Config.Disk on %s", j.login(), storage, owner)
}

// unseen blocks on a list that could not be read: it would read as empty (hazard B11).
func (j *judge) unseen(what, why, right string) {
	if why == "" {
		why = "not read"
	}
	j.block(Blocker{
		Code: CodePrivileges, Subject: what, Found: fmt.Sprintf("The list of %s could not be read: %s.", what, strings.TrimSuffix(why, ".")),
		Remedy: fmt.Sprintf("Grant %s %s: an empty list and an unseen one look the same.", j.login(), right),
	})
}

// judgeRights names every right that is missing, or that the destroy would take away.
func (j *judge) judgeRights() {
	j.judgeTags(j.f.Guest.Config.Values["tags"])
	j.judgeACL()
	if j.f.Login.RootTicket {
		return
	}
	if !j.f.Privileges.OK {
		j.unseen("privileges", j.f.Privileges.Why, "the rights that the guide lists")
		return
	}
	j.lacking(j.needs())
}

// lacking adds one blocker for each place where rights are missing, and one for each where they would not last.
func (j *judge) lacking(needs []Need) {
	missing, fleeting := map[string][]string{}, map[string][]string{}
	for _, n := range needs {
		where := strings.Join(n.Paths, " or ")
		what := strings.Join(n.Privileges, " or ")
		met := func(holds func(privilege, path string) bool) bool {
			return slices.ContainsFunc(n.Privileges, func(privilege string) bool {
				return slices.ContainsFunc(n.Paths, func(path string) bool { return holds(privilege, path) })
			})
		}
		switch {
		case n.Optional:
		case !met(j.may):
			missing[where] = append(missing[where], what)
		case n.Lasting && !met(j.lasts):
			fleeting[where] = append(fleeting[where], what)
		}
	}
	for _, where := range slices.Sorted(maps.Keys(missing)) {
		words := slices.Compact(slices.Sorted(slices.Values(missing[where])))
		j.block(Blocker{
			Code: CodePrivileges, Subject: where, Found: fmt.Sprintf("%s lacks %s on %s.", j.login(), list(words), where),
			Remedy: "Grant a role that holds them there.",
		})
	}
	for _, where := range slices.Sorted(maps.Keys(fleeting)) {
		words := slices.Compact(slices.Sorted(slices.Values(fleeting[where])))
		j.block(Blocker{
			Code: CodePrivileges, Subject: where, Found: fmt.Sprintf("%s holds %s on %s only there or through a pool, and a destroy removes entries on exactly that path and pool membership.", j.login(), list(words), where),
			Remedy: "Grant the role on /vms with propagation: the rights must outlive the guest.",
		})
	}
}

// judgeTags: tags that the datacenter keeps for itself cannot be set on the new guest (hazard B13).
func (j *judge) judgeTags(tags string) {
	var refused []string
	for _, tag := range splitTags(tags) {
		if slices.Contains(j.f.RegisteredTags, tag) {
			refused = append(refused, tag)
		}
	}
	if len(refused) == 0 || j.f.Login.RootTicket || j.may("Sys.Modify", "/") {
		return
	}
	slices.Sort(refused)
	j.block(Blocker{
		Code: CodePrivileges, Subject: "tags", Found: fmt.Sprintf("The tags %s of "+j.kind()+" %d are reserved by the datacenter's tag policy, so %s may not set them again.", list(refused), j.id(), j.login()),
		Remedy: "Grant Sys.Modify on /, change the policy, or take the tags off the guest.",
	})
}

func splitTags(tags string) []string {
	return strings.FieldsFunc(tags, func(r rune) bool { return r == ';' || r == ',' || r == ' ' })
}

// judgeACL: a destroy removes the entries on exactly the guest's path, whoever made them.
func (j *judge) judgeACL() {
	if !j.f.ACL.OK {
		j.unseen("access control entries", j.f.ACL.Why, "Sys.Audit on /access or Permissions.Modify on "+j.path())
	} else {
		for _, e := range j.f.ACL.Value {
			if !e.CanRestore {
				j.block(Blocker{
					Code: CodePrivileges, Subject: e.Path, Found: fmt.Sprintf("The entry %s %s on %s would be gone and could not be given back: %s.", e.Who, e.Role, e.Path, orUnknown(strings.TrimSuffix(e.Missing, "."))),
					Remedy: "Grant what is missing, or move the entry to /vms or to a pool.",
				})
			}
		}
	}
	if !j.f.Pool.OK {
		j.unseen("pools", j.f.Pool.Why, "Pool.Audit on the pools")
	}
}
