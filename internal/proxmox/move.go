package proxmox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// MoveVolume hands a volume to another guest on the same node, by renaming. It looks first: the source key must hold exactly
// that volume and no other key of the source may name it; the storage must say that the source owns it; and the target must be
// ready to take it, since Proxmox finds out only after it has written the source.
func (h *Host) MoveVolume(ctx context.Context, m guest.Move) error {
	j, e := moveJob(m)
	if e != nil {
		return e
	}
	var done ended
	err := h.patiently(ctx, j.request, func() *Error {
		if e := h.checkMove(ctx, j.op, m); e != nil {
			return e
		}
		var e *Error
		done, e = h.runOnce(ctx, j)
		return e
	})
	if err != nil {
		return err
	}
	if len(done.warnings) > 0 {
		// A warning here means that the target did not take it the way it should.
		return &Error{Op: j.op, Guest: m.From, UPID: done.task.text, Kind: guest.OutcomeFailed, Words: strings.Join(done.warnings, "; "), Log: done.log}
	}
	return nil
}

func moveJob(m guest.Move) (job, *Error) {
	op := fmt.Sprintf("move %s (%s of %s) to %s of %s", m.Volume, m.FromKey, describe(m.From), m.ToKey, describe(m.To))
	bad := func(why string) (job, *Error) { return job{}, refuse(op, m.From, guest.OutcomeRefused, "%s", why) }
	switch {
	case m.FromDigest == "" || m.ToDigest == "":
		return bad("both digests are needed")
	case m.From.VMID == m.To.VMID, m.From.Kind != m.To.Kind, m.From.Node != m.To.Node:
		return bad("it takes two guests of one kind on one node")
	case m.FromKey == "" || m.ToKey == "" || m.Volume == (guest.VolumeID{}):
		return bad("it takes both keys and the volume")
	}
	words := map[guest.Kind]struct{ call, source, target, task string }{
		guest.KindContainer: {"move_volume", "volume", "target-volume", "move_volume"},
		guest.KindVM:        {"move_disk", "disk", "target-disk", "qmmove"},
	}[m.From.Kind]
	return job{
		request: request{
			op: op, ref: m.From, method: http.MethodPost, path: guestPath(m.From, words.call),
			params: map[string]any{
				words.source: m.FromKey, words.target: m.ToKey, "target-vmid": m.To.VMID.String(),
				"digest": m.FromDigest, "target-digest": m.ToDigest,
			},
		},
		types: []string{words.task},
		id:    fmt.Sprintf("%d-%s>%d-%s", m.From.VMID, m.FromKey, m.To.VMID, m.ToKey),
	}, nil
}

func (h *Host) checkMove(ctx context.Context, op string, m guest.Move) *Error {
	from, err := h.Config(ctx, m.From)
	if err != nil {
		return asError(err, op)
	}
	to, err := h.Config(ctx, m.To)
	if err != nil {
		return asError(err, op)
	}
	if e := holds(op, m.From, from, m.FromKey, m.Volume); e != nil {
		return e
	}
	if from.Digest != m.FromDigest || to.Digest != m.ToDigest {
		return refuse(op, m.From, guest.OutcomeConflict, "a configuration has changed since it was read")
	}
	if value, taken := to.Get(m.ToKey); taken {
		return refuse(op, m.To, guest.OutcomeTaken, "%s of %s is in use: %s", m.ToKey, describe(m.To), guest.Printable(value))
	}
	if on, _ := to.Get("protection"); on == "1" && m.To.Kind == guest.KindContainer {
		return refuse(op, m.To, guest.OutcomeRefused, "%s is protected: the volume would end up in nobody's configuration", describe(m.To))
	}
	return h.checkOwner(ctx, op, m)
}

// checkOwner asks the storage whose volume it is. A volume of another guest would be renamed away from it.
func (h *Host) checkOwner(ctx context.Context, op string, m guest.Move) *Error {
	rows, err := h.Content(ctx, m.From.Node, m.Volume.Storage, m.From.VMID)
	if err != nil {
		return asError(err, op)
	}
	for _, row := range rows {
		if row.ID == m.Volume {
			return nil
		}
	}
	return refuse(op, m.From, guest.OutcomeRefused, "storage %s does not list it as a volume of %s", m.Volume.Storage, describe(m.From))
}

// Resize grows a volume to an absolute size. A volume that has the size already is left as it is.
func (h *Host) Resize(ctx context.Context, ref guest.Ref, key string, size guest.Bytes) error {
	op := fmt.Sprintf("resize %s of %s to %d bytes", key, describe(ref), int64(size))
	if size <= 0 {
		return refuse(op, ref, guest.OutcomeRefused, "it is not a size")
	}
	_, err := h.run(ctx, job{
		request: request{
			op: op, ref: ref, method: http.MethodPut, path: guestPath(ref, "resize"),
			params: map[string]any{"disk": key, "size": fmt.Sprint(int64(size))},
		},
		types: []string{"resize"},
		id:    ref.VMID.String(),
	})
	if said(err, "disk is already at specified size") {
		return nil
	}
	return err
}

// said reports whether an error repeats a sentence of Proxmox.
func said(err error, sentence string) bool {
	e := (*Error)(nil)
	return errors.As(err, &e) && strings.Contains(e.Words, sentence)
}
