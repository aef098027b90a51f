package proxmox

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// guard stands below every recipe: it refuses what must never be sent, and every deletion that the caller did not announce.
func guard(r request) error {
	switch r.method {
	case http.MethodGet:
		return nil
	case http.MethodPost, http.MethodPut:
		if err := guardBody(r); err != nil {
			return err
		}
	case http.MethodDelete:
		if !slices.Contains(r.announced, r.path) {
			return fmt.Errorf("the port refuses a deletion that was not announced: %s", r.path)
		}
	default:
		return fmt.Errorf("the port sends no %s", r.method)
	}
	for _, key := range never() {
		if value, set := r.params[key]; set {
			return fmt.Errorf("the port never sends %s=%v with %s %s", key, value, r.method, r.path)
		}
	}
	return guardPurge(r)
}

// never lists the parameters that make a request destroy more than its subject, whatever their value.
func never() []string {
	return []string{"destroy-unreferenced-disks", "force", "skiplock", "forceStop"}
}

// guardPurge lets no request purge. Of an HA resource "do not" must be said: by default its removal takes its rules along.
func guardPurge(r request) error {
	value, set := r.params["purge"]
	resource := r.method == http.MethodDelete && strings.HasPrefix(r.path, haResources+"/")
	switch {
	case resource && value != "0":
		return fmt.Errorf("the port never removes an HA resource without purge=0")
	case !resource && set:
		return fmt.Errorf("the port never sends purge with %s %s", r.method, r.path)
	}
	return nil
}

func guardBody(r request) error {
	named, set := r.params["delete"]
	if set {
		for key := range strings.SplitSeq(fmt.Sprint(named), ",") {
			if !slices.Contains(r.announced, key) {
				return fmt.Errorf("the port refuses to delete %s, which was not announced", key)
			}
		}
	}
	creates := strings.HasSuffix(r.path, "/lxc") || strings.HasSuffix(r.path, "/qemu")
	if archive, given := r.params["archive"]; creates && given && archive == "" {
		return fmt.Errorf("the port never sends an empty archive: Proxmox would replace a guest by an empty one")
	}
	return nil
}
