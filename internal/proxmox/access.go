package proxmox

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// Permissions returns the login's privileges on a path. A key is held; its value says whether it reaches the paths below.
func (h *Host) Permissions(ctx context.Context, path string) (map[string]bool, error) {
	all, err := h.permissions(ctx, url.Values{"path": {path}})
	if err != nil {
		return nil, err
	}
	if all[path] == nil {
		return map[string]bool{}, nil
	}
	return all[path], nil
}

// AllPermissions returns them for every path that carries an entry for this login.
func (h *Host) AllPermissions(ctx context.Context) (map[string]map[string]bool, error) {
	return h.permissions(ctx, nil)
}

func (h *Host) permissions(ctx context.Context, query url.Values) (map[string]map[string]bool, error) {
	var answer map[string]map[string]flag
	if err := h.ask(ctx, "read the login's own permissions", guest.Ref{}, "/access/permissions", query, &answer); err != nil {
		return nil, err
	}
	held := make(map[string]map[string]bool, len(answer))
	for path, privileges := range answer {
		held[path] = make(map[string]bool, len(privileges))
		for privilege, propagates := range privileges {
			held[path][privilege] = bool(propagates)
		}
	}
	return held, nil
}

// ACL lists the access control entries that the login may see, and says of each whether it could grant it again after the
// entry's path has lost it.
func (h *Host) ACL(ctx context.Context) ([]guest.ACLEntry, error) {
	var rows []struct {
		Path      words `json:"path"`
		Type      words `json:"type"`
		Who       words `json:"ugid"`
		Role      words `json:"roleid"`
		Propagate flag  `json:"propagate"`
	}
	if err := h.ask(ctx, "list the access control entries", guest.Ref{}, "/access/acl", nil, &rows); err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, nil
	}
	roles, err := h.roles(ctx)
	if err != nil {
		return nil, err
	}
	held, err := h.AllPermissions(ctx)
	if err != nil {
		return nil, err
	}
	entries := make([]guest.ACLEntry, 0, len(rows))
	for _, row := range rows {
		e := guest.ACLEntry{
			Path: string(row.Path), Type: string(row.Type), Who: string(row.Who), Role: string(row.Role), Propagate: bool(row.Propagate),
		}
		e.CanRestore, e.Missing = canGrant(e, roles, heldWithout(held, e.Path))
		entries = append(entries, e)
	}
	return entries, nil
}

// roles returns each role's privileges.
func (h *Host) roles(ctx context.Context) (map[string][]string, error) {
	var rows []struct {
		ID         words `json:"roleid"`
		Privileges words `json:"privs"`
	}
	if err := h.ask(ctx, "list the roles", guest.Ref{}, "/access/roles", nil, &rows); err != nil {
		return nil, err
	}
	roles := make(map[string][]string, len(rows))
	for _, row := range rows {
		roles[string(row.ID)] = strings.FieldsFunc(string(row.Privileges), func(r rune) bool { return r == ',' || r == ' ' })
	}
	return roles, nil
}

// heldWithout returns what the login holds on a path from the paths above it: what it still holds there after the entries on
// the path itself are gone with the guest.
func heldWithout(all map[string]map[string]bool, path string) map[string]bool {
	for path != "/" && path != "" {
		path = path[:max(strings.LastIndexByte(path, '/'), 0)]
		if path == "" {
			path = "/"
		}
		privileges, listed := all[path]
		if !listed {
			continue
		}
		reaching := map[string]bool{}
		for privilege, propagates := range privileges {
			if propagates {
				reaching[privilege] = true
			}
		}
		return reaching
	}
	return nil
}

// canGrant says whether a login with these privileges on the path may grant a role there, and if not, what it lacks.
func canGrant(e guest.ACLEntry, roles map[string][]string, held map[string]bool) (ok bool, missing string) {
	if held["Permissions.Modify"] {
		return true, ""
	}
	if !strings.HasPrefix(e.Path, "/vms/") || !held["VM.Allocate"] {
		return false, "Permissions.Modify on " + e.Path
	}
	privileges, known := roles[e.Role]
	if !known {
		return false, "Permissions.Modify on " + e.Path + " (what the role " + e.Role + " grants cannot be seen)"
	}
	var lacking []string
	for _, privilege := range privileges {
		if !held[privilege] {
			lacking = append(lacking, privilege)
		}
	}
	if slices.Sort(lacking); len(lacking) > 0 {
		return false, "Permissions.Modify on " + e.Path + ", or the privileges of the role " + e.Role + ": " + strings.Join(lacking, ", ")
	}
	return true, ""
}

// Grant puts an access control entry back. Granting what is granted already changes nothing.
func (h *Host) Grant(ctx context.Context, e guest.ACLEntry) error {
	op := "grant " + e.Role + " on " + e.Path + " to " + e.Type + " " + e.Who
	field := map[string]string{"user": "users", "group": "groups", "token": "tokens"}[e.Type]
	if field == "" {
		return refuse(op, guest.Ref{}, guest.OutcomeRefused, "entries are for a user, a group or a token")
	}
	propagate := "0"
	if e.Propagate {
		propagate = "1"
	}
	return h.change(ctx, request{
		op: op, method: http.MethodPut, path: "/access/acl",
		params: map[string]any{"path": e.Path, "roles": e.Role, field: e.Who, "propagate": propagate},
	})
}
