package proxmox

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// Destroy deletes a guest, without purge and without unreferenced disks, and waits until its configuration is gone. announced
// names the volumes that the caller knows would be destroyed. Right before, the guest is read again: a volume of its own that
// is not announced stops it.
func (h *Host) Destroy(ctx context.Context, ref guest.Ref, announced []guest.VolumeID) (warnings []string, err error) {
	r := request{op: "destroy " + describe(ref), ref: ref, method: http.MethodDelete, path: guestPath(ref)}
	r.announced = []string{r.path}
	kinds := map[guest.Kind]string{guest.KindContainer: "vzdestroy", guest.KindVM: "qmdestroy"}
	j := job{request: r, types: []string{kinds[ref.Kind]}, id: ref.VMID.String()}

	var done ended
	err = h.patiently(ctx, r, func() *Error {
		if e := h.checkDestroy(ctx, r, announced); e != nil {
			return e
		}
		var e *Error
		done, e = h.runOnce(ctx, j)
		return e
	})
	if err != nil {
		return nil, err
	}
	for _, line := range done.log {
		if strings.HasPrefix(line, "ignore deletion of ") && !slices.Contains(done.warnings, line) {
			done.warnings = append(done.warnings, line)
		}
	}
	return done.warnings, h.seenGone(ctx, r, done.task)
}

// checkDestroy compares what the destroy would take with what the caller announced.
func (h *Host) checkDestroy(ctx context.Context, r request, announced []guest.VolumeID) *Error {
	config, err := h.Config(ctx, r.ref)
	if err != nil {
		return asError(err, r.op)
	}
	named := guest.Volumes(r.ref.Kind, config)
	rows, err := h.pending(ctx, r.ref)
	if err != nil {
		return asError(err, r.op)
	}
	for _, row := range rows {
		if row.Pending != nil {
			waiting := guest.Config{Values: map[string]string{string(row.Key): string(*row.Pending)}}
			named = append(named, guest.Volumes(r.ref.Kind, waiting)...)
		}
	}
	for _, n := range named {
		if !slices.Contains(announced, n.ID) && mayOwn(n.ID, r.ref.VMID) {
			return refuse(r.op, r.ref, guest.OutcomeConflict, "%s holds %s, whose loss was not announced", n.Key, n.ID)
		}
	}
	return nil
}

var ownerNumber = regexp.MustCompile(`(?:^|/)(?:([0-9]+)/|(?:vm|base|basevol|subvol)-([0-9]+)-)`)

// mayOwn reports whether a volume could be the guest's own, by any storage's way to write an owner. A name without a visible
// owner could be anybody's.
func mayOwn(id guest.VolumeID, owner guest.VMID) bool {
	numbers := 0
	for name := id.Name; ; {
		at := ownerNumber.FindStringSubmatchIndex(name)
		if at == nil {
			return numbers == 0
		}
		for _, group := range [][2]int{{at[2], at[3]}, {at[4], at[5]}} {
			if group[0] < 0 {
				continue
			}
			numbers++
			if name[group[0]:group[1]] == owner.String() {
				return true
			}
		}
		// The slash that ends one number may begin the next.
		name = "/" + strings.TrimPrefix(name[at[1]:], "/")
	}
}

// seenGone waits until the configuration of a destroyed guest cannot be read any more.
func (h *Host) seenGone(ctx context.Context, r request, task upid) error {
	longer, cancel := h.graceful(ctx)
	defer cancel()
	until := time.Now().Add(h.pace.Settle)
	for pause := h.pace.PollFirst; ; pause = min(pause*3/2, h.pace.PollMost) {
		_, err := h.Config(longer, r.ref)
		if err != nil && guest.OutcomeOf(err) == guest.OutcomeMissing {
			return nil
		}
		why := "the task ended well, but the guest is still there"
		if err != nil {
			why = fmt.Sprintf("the task ended well, but that the guest is gone could not be seen: %v", err)
		}
		if time.Now().After(until) || !sleep(longer, pause) {
			return &Error{Op: r.op, Guest: r.ref, UPID: task.text, Kind: guest.OutcomeUnknown, Words: why}
		}
	}
}

// DeleteSnapshot removes one snapshot.
func (h *Host) DeleteSnapshot(ctx context.Context, ref guest.Ref, name string) error {
	r := request{op: fmt.Sprintf("delete snapshot %s of %s", name, describe(ref)), ref: ref, method: http.MethodDelete}
	if name == "" || name == "current" {
		return refuse(r.op, ref, guest.OutcomeRefused, "it is not the name of a snapshot")
	}
	r.path = guestPath(ref, "snapshot", name)
	r.announced = []string{r.path}
	_, err := h.run(ctx, job{request: r, types: []string{"vzdelsnapshot", "qmdelsnapshot"}, id: ref.VMID.String()})
	return err
}
