package proxmox

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// newDisk is a disk to be made ("STORAGE:8", "STORAGE:0,import-from=…"), or a cloud-init drive.
var newDisk = regexp.MustCompile(`^(?:file=)?[A-Za-z][A-Za-z0-9\-_.]*:(?:\d+(?:\.\d+)?|cloudinit)(?:,|$)`)

// CreateVM creates a VM and leaves it off. Disks in params must be new ones: an existing one would belong to two VMs.
func (h *Host) CreateVM(ctx context.Context, ref guest.Ref, params map[string]string) (warnings []string, err error) {
	op := "create " + describe(ref)
	if ref.Kind != guest.KindVM || ref.Node == "" || ref.VMID == 0 {
		return nil, refuse(op, ref, guest.OutcomeRefused, "it takes a VM's VMID and a node")
	}
	for key, value := range params {
		switch {
		case key == "lock", key == "template", key == "archive", key == "vmid", key == "digest", key == "parent", strings.HasPrefix(key, "unused"):
			return nil, refuse(op, ref, guest.OutcomeRefused, "the port never creates a VM with %s", key)
		case key == "start" && value != "0", key == "ha-managed" && value != "0":
			return nil, refuse(op, ref, guest.OutcomeRefused, "the port never starts a VM while creating it (%s)", key)
		case guest.IsDiskKey(key) && !newDisk.MatchString(value) && !removable(value):
			return nil, refuse(op, ref, guest.OutcomeRefused, "%s names an existing volume, which is another VM's", key)
		}
	}
	return h.create(ctx, op, ref, params, nil, "qmcreate")
}

// removable reports whether a drive is a CD-ROM: an image that VMs may share, or nothing.
func removable(value string) bool {
	return strings.Contains(value, "media=cdrom") && !strings.Contains(value, "import-from")
}

// ChangeVM sets and removes keys of a VM in one request bound to digest, as a task: it may make and import disks. A removed
// drive becomes unusedN; nothing is destroyed. That the task ends well does not prove a removal: look at Pending.
func (h *Host) ChangeVM(ctx context.Context, ref guest.Ref, set map[string]string, remove []string, digest string) (warnings []string, err error) {
	op := "change the configuration of " + describe(ref)
	params, err := text(set)
	if err != nil {
		return nil, refuse(op, ref, guest.OutcomeRefused, "%v", err)
	}
	if ref.Kind != guest.KindVM || digest == "" {
		return nil, refuse(op, ref, guest.OutcomeRefused, "it takes a VM and a digest")
	}
	for _, key := range remove {
		if strings.HasPrefix(key, "unused") {
			return nil, refuse(op, ref, guest.OutcomeRefused, "removing %s would destroy its volume, which needs to be said by its id", key)
		}
	}
	if len(params)+len(remove) == 0 {
		return nil, nil
	}
	if len(remove) > 0 {
		params["delete"] = strings.Join(remove, ",")
	}
	params["digest"] = digest
	done, err := h.run(ctx, job{
		request: request{op: op, ref: ref, method: http.MethodPost, path: guestPath(ref, "config"), params: params, announced: remove},
		types:   []string{"qmconfig"},
		id:      ref.VMID.String(),
	})
	return done.warnings, err
}

// Revert takes pending changes of keys back.
func (h *Host) Revert(ctx context.Context, ref guest.Ref, keys []string, digest string) error {
	op := fmt.Sprintf("revert %s of %s", strings.Join(keys, ", "), describe(ref))
	if len(keys) == 0 || digest == "" {
		return refuse(op, ref, guest.OutcomeRefused, "it takes keys and a digest")
	}
	return h.change(ctx, request{
		op: op, ref: ref, method: http.MethodPut, path: guestPath(ref, "config"),
		params: map[string]any{"revert": strings.Join(keys, ","), "digest": digest},
	})
}

// TakeSnapshot takes a snapshot of a VM's disks, without its memory.
func (h *Host) TakeSnapshot(ctx context.Context, ref guest.Ref, name, description string) error {
	_, err := h.run(ctx, job{
		request: request{
			op: fmt.Sprintf("take snapshot %s of %s", name, describe(ref)), ref: ref, method: http.MethodPost, path: guestPath(ref, "snapshot"),
			params: map[string]any{"snapname": name, "description": description},
		},
		types: []string{"qmsnapshot"},
		id:    ref.VMID.String(),
	})
	return err
}

// RollbackSnapshot returns a VM's disks and settings to a snapshot: what was written since is lost. The VM stays off.
func (h *Host) RollbackSnapshot(ctx context.Context, ref guest.Ref, name string) error {
	op := fmt.Sprintf("return %s to snapshot %s", describe(ref), name)
	if name == "" || name == "current" {
		return refuse(op, ref, guest.OutcomeRefused, "it is not the name of a snapshot")
	}
	_, err := h.run(ctx, job{
		request: request{op: op, ref: ref, method: http.MethodPost, path: guestPath(ref, "snapshot", name, "rollback")},
		types:   []string{"qmrollback"},
		id:      ref.VMID.String(),
	})
	return err
}

// RegenerateCloudInit makes the cloud-init drive anew from the VM's settings.
func (h *Host) RegenerateCloudInit(ctx context.Context, ref guest.Ref) error {
	return h.change(ctx, request{
		op: "make the cloud-init drive of " + describe(ref) + " anew", ref: ref, method: http.MethodPut, path: guestPath(ref, "cloudinit"),
	})
}

// PingAgent asks the agent inside a running VM for a sign of life.
func (h *Host) PingAgent(ctx context.Context, ref guest.Ref) error {
	return h.change(ctx, request{
		op: "ask the agent of " + describe(ref), ref: ref, method: http.MethodPost, path: guestPath(ref, "agent", "ping"),
	})
}
