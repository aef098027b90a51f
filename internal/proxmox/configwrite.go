package proxmox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// refuse is the port saying no by itself: nothing was sent.
func refuse(op string, ref guest.Ref, kind guest.Outcome, format string, args ...any) *Error {
	return &Error{Op: op, Guest: ref, Kind: kind, Words: fmt.Sprintf(format, args...)}
}

// SetConfig sets and removes keys in one request, bound to digest when one is given. It never destroys a volume: to remove
// unusedN is DropUnused's business, and a container's rootfs cannot be set this way at all.
func (h *Host) SetConfig(ctx context.Context, ref guest.Ref, set map[string]string, remove []string, digest string) error {
	op := "change the configuration of " + describe(ref)
	params, err := text(set)
	if err != nil {
		return refuse(op, ref, guest.OutcomeRefused, "%v", err)
	}
	if _, root := set["rootfs"]; root && ref.Kind == guest.KindContainer {
		return refuse(op, ref, guest.OutcomeRefused, "the port never sets rootfs of an existing container: Proxmox would store it unchecked")
	}
	for _, key := range remove {
		if strings.HasPrefix(key, "unused") {
			return refuse(op, ref, guest.OutcomeRefused, "removing %s would destroy its volume, which needs to be said by its id", key)
		}
	}
	if len(params)+len(remove) == 0 {
		return nil
	}
	if len(remove) > 0 {
		params["delete"] = strings.Join(remove, ",")
	}
	if digest != "" {
		params["digest"] = digest
	}
	return h.change(ctx, request{
		op: op, ref: ref, method: http.MethodPut, path: guestPath(ref, "config"), params: params, announced: remove,
	})
}

// DropUnused destroys the volume that unusedN names. It looks first: the key must still hold that volume, and the
// configuration must still be the one with that digest.
func (h *Host) DropUnused(ctx context.Context, ref guest.Ref, key string, volume guest.VolumeID, digest string) error {
	op := fmt.Sprintf("destroy volume %s (%s of %s)", volume, key, describe(ref))
	if !strings.HasPrefix(key, "unused") || digest == "" || volume == (guest.VolumeID{}) {
		return refuse(op, ref, guest.OutcomeRefused, "it takes a key unusedN, a volume and a digest")
	}
	r := request{
		op: op, ref: ref, method: http.MethodPut, path: guestPath(ref, "config"),
		params: map[string]any{"delete": key, "digest": digest}, announced: []string{key},
	}
	return h.patiently(ctx, r, func() *Error {
		config, err := h.Config(ctx, ref)
		if err != nil {
			return asError(err, op)
		}
		if e := holds(op, ref, config, key, volume); e != nil {
			return e
		}
		if config.Digest != digest {
			return refuse(op, ref, guest.OutcomeConflict, "the configuration has changed since it was read")
		}
		return h.exchange(ctx, r, nil)
	})
}

// holds checks that a key names a volume and that no other key of the guest names it too.
func holds(op string, ref guest.Ref, config guest.Config, key string, volume guest.VolumeID) *Error {
	held := false
	for _, named := range guest.Volumes(ref.Kind, config) {
		switch {
		case named.ID != volume:
			continue
		case named.Key == key:
			held = true
		default:
			return refuse(op, ref, guest.OutcomeRefused, "%s of %s names the volume %s too", named.Key, describe(ref), volume)
		}
	}
	if !held {
		return refuse(op, ref, guest.OutcomeConflict, "%s of %s does not hold the volume %s", key, describe(ref), volume)
	}
	return nil
}

// asError makes an error of a read before a change an error of the change: nothing was done yet.
func asError(err error, op string) *Error {
	if e := (*Error)(nil); errors.As(err, &e) {
		copied := *e
		copied.Op, copied.Words = op, "the look before it failed: "+e.Error()
		if !copied.Kind.Harmless() {
			copied.Kind = guest.OutcomeUnreachable
		}
		return &copied
	}
	return &Error{Op: op, Kind: guest.OutcomeUnreachable, Words: guest.Printable(err.Error())}
}
