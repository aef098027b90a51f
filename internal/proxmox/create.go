package proxmox

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// CreateContainer creates a container from a template and leaves it stopped. Volumes in params must be new ones
// ("STORAGE:SIZE"): an existing one would be mounted while the template is unpacked into it.
func (h *Host) CreateContainer(ctx context.Context, ref guest.Ref, params map[string]string) (warnings []string, err error) {
	op := "create " + describe(ref)
	if e := checkCreate(op, ref, params); e != nil {
		return nil, e
	}
	if params["ostemplate"] == "" {
		return nil, refuse(op, ref, guest.OutcomeRefused, "no template is given")
	}
	return h.create(ctx, op, ref, params, nil, "vzcreate")
}

// RestoreContainer creates a container from an archive, on a VMID that must be free: Proxmox itself refuses a taken one. Only
// rootfs is made; without it every mount of the archive would be made again, empty.
func (h *Host) RestoreContainer(ctx context.Context, ref guest.Ref, archive string, params map[string]string) (warnings []string, err error) {
	op := fmt.Sprintf("restore %s from %s", describe(ref), archive)
	if e := checkCreate(op, ref, params); e != nil {
		return nil, e
	}
	if archive == "" || params["rootfs"] == "" {
		return nil, refuse(op, ref, guest.OutcomeRefused, "a restore takes an archive and a rootfs")
	}
	for key := range params {
		if mountKey.MatchString(key) {
			return nil, refuse(op, ref, guest.OutcomeRefused, "a restore takes no %s", key)
		}
	}
	return h.create(ctx, op, ref, params, map[string]string{"restore": "1", "ostemplate": archive}, "vzrestore")
}

func (h *Host) create(ctx context.Context, op string, ref guest.Ref, params, more map[string]string, task string) ([]string, error) {
	sent, err := text(params)
	if err != nil {
		return nil, refuse(op, ref, guest.OutcomeRefused, "%v", err)
	}
	for key, value := range more {
		sent[key] = value
	}
	sent["vmid"] = ref.VMID.String()
	done, err := h.run(ctx, job{
		request: request{op: op, ref: ref, method: http.MethodPost, path: path("nodes", ref.Node, ref.Kind.Path()), params: sent},
		types:   []string{task},
		id:      ref.VMID.String(),
	})
	return done.warnings, err
}

var (
	mountKey  = regexp.MustCompile(`^mp\d+$`)
	newVolume = regexp.MustCompile(`^(?:volume=)?(?:[A-Za-z][A-Za-z0-9\-_.]*:)?\d+(?:\.\d+)?(?:,|$)`)
)

// checkCreate refuses what a create must never carry.
func checkCreate(op string, ref guest.Ref, params map[string]string) *Error {
	if ref.Kind != guest.KindContainer || ref.Node == "" || ref.VMID == 0 {
		return refuse(op, ref, guest.OutcomeRefused, "it takes a container's VMID and a node")
	}
	for key, value := range params {
		switch {
		case key == "lock", key == "template", key == "restore", key == "vmid", key == "digest", key == "parent",
			strings.HasPrefix(key, "unused"):
			return refuse(op, ref, guest.OutcomeRefused, "the port never creates a guest with %s", key)
		case key == "start" && value != "0", key == "ha-managed" && value != "0":
			return refuse(op, ref, guest.OutcomeRefused, "the port never starts a guest while creating it (%s)", key)
		case (key == "rootfs" || mountKey.MatchString(key)) && !newVolume.MatchString(value):
			return refuse(op, ref, guest.OutcomeRefused, "%s names an existing volume, into which the template would be unpacked", key)
		}
	}
	return nil
}
