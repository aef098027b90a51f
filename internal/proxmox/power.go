package proxmox

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// Start starts a guest. One that runs already is left running.
func (h *Host) Start(ctx context.Context, ref guest.Ref) error {
	return h.power(ctx, ref, "start", nil, true, h.pace.Settle)
}

// Shutdown asks a guest to stop by itself within seconds, and fails when it does not. One that is stopped stays so.
func (h *Host) Shutdown(ctx context.Context, ref guest.Ref, seconds int) error {
	params := map[string]any{"timeout": fmt.Sprint(seconds)}
	return h.power(ctx, ref, "shutdown", params, false, h.pace.Settle+time.Duration(seconds)*time.Second)
}

// Stop ends a guest at once. One that is stopped stays so.
func (h *Host) Stop(ctx context.Context, ref guest.Ref) error {
	return h.power(ctx, ref, "stop", nil, false, h.pace.Settle)
}

func (h *Host) power(ctx context.Context, ref guest.Ref, verb string, params map[string]any, up bool, settle time.Duration) error {
	op := verb + " " + describe(ref)
	if verb == "shutdown" {
		op = "shut down " + describe(ref)
	}
	prefix := map[guest.Kind]string{guest.KindContainer: "vz", guest.KindVM: "qm"}[ref.Kind]
	types := []string{prefix + verb, "hastop"}
	if up {
		types[1] = "hastart"
	}
	r := request{op: op, ref: ref, method: http.MethodPost, path: guestPath(ref, "status", verb), params: params}
	done, err := h.run(ctx, job{request: r, types: types, id: ref.VMID.String()})
	switch {
	case said(err, " not running") && !up, said(err, " already running") && up:
		return nil
	case err != nil:
		return err
	case strings.HasPrefix(done.task.kind, "ha"):
		return h.settled(ctx, r, done.task, up, settle)
	}
	return nil
}

// settled waits until a guest runs, or does not. Under HA a task's good end means only that the command is queued.
func (h *Host) settled(ctx context.Context, r request, task upid, up bool, settle time.Duration) error {
	longer, cancel := h.graceful(ctx)
	defer cancel()
	until := time.Now().Add(settle)
	for pause := h.pace.PollFirst; ; pause = min(pause*3/2, h.pace.PollMost) {
		running, _, err := h.Running(longer, r.ref)
		if err == nil && running == up {
			return nil
		}
		if time.Now().After(until) || !sleep(longer, pause) {
			return &Error{Op: r.op, Guest: r.ref, UPID: task.text, Kind: guest.OutcomeUnknown, Words: "the HA manager has taken the command, but the guest did not follow in time", cause: ctx.Err()}
		}
	}
}
