package proxmox

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// Backup makes an archive of one guest and returns its volume id. The archive is protected, and none is pruned for it: by
// default Proxmox would remove older ones. It counts as made when the storage lists it with a size.
func (h *Host) Backup(ctx context.Context, b guest.Backup) (guest.VolumeID, error) {
	op := "back up " + describe(b.Ref) + " to storage " + b.Storage
	params := map[string]any{
		"vmid": b.Ref.VMID.String(), "storage": b.Storage, "mode": b.Mode, "compress": "zstd", "remove": "0", "protected": "1",
	}
	if b.Mode == "" {
		params["mode"] = "snapshot"
	}
	if b.Compress != "" {
		params["compress"] = b.Compress
	}
	if b.Notes != "" {
		params["notes-template"] = notesTemplate(b.Notes)
	}
	if len(b.Exclude) > 0 {
		params["exclude-path"] = b.Exclude
	}
	done, err := h.run(ctx, job{
		request: request{op: op, ref: b.Ref, method: http.MethodPost, path: path("nodes", b.Ref.Node, "vzdump"), params: params},
		types:   []string{"vzdump"},
		id:      b.Ref.VMID.String(),
	})
	if err != nil {
		return guest.VolumeID{}, err
	}
	if done.log == nil {
		done.log = h.taskLog(ctx, request{ref: b.Ref}, done.task)
	}
	return h.findArchive(ctx, op, b, done)
}

var archiveLine = regexp.MustCompile(`creating (?:vzdump|Proxmox Backup Server) archive '([^']+)'`)

// findArchive looks the archive up in the storage's list: by the name in the log, or, without a log, as the only one that was
// made since the task began.
func (h *Host) findArchive(ctx context.Context, op string, b guest.Backup, done ended) (guest.VolumeID, error) {
	rows, err := h.Content(ctx, b.Ref.Node, b.Storage, b.Ref.VMID)
	if err != nil {
		return guest.VolumeID{}, &Error{Op: op, Guest: b.Ref, UPID: done.task.text, Kind: guest.OutcomeUnknown, Words: "the task ended well, but its archive could not be looked up: " + err.Error()}
	}
	name := archiveName(done.log)
	var fitting []guest.StoredVolume
	for _, row := range rows {
		if row.Content != "backup" || row.Size <= 0 {
			continue
		}
		if row.ID.Name == name || name == "" && row.Created >= done.task.started {
			fitting = append(fitting, row)
		}
	}
	if len(fitting) != 1 {
		return guest.VolumeID{}, &Error{Op: op, Guest: b.Ref, UPID: done.task.text, Kind: guest.OutcomeFailed, Words: "the task ended well, but storage " + b.Storage + " does not list its archive with a size"}
	}
	return fitting[0].ID, nil
}

// archiveName returns the volume name of the archive that a log speaks of, "" for none.
func archiveName(log []string) string {
	for _, line := range log {
		m := archiveLine.FindStringSubmatch(line)
		switch {
		case m == nil:
			continue
		case strings.Contains(line, "Proxmox Backup Server"):
			return "backup/" + m[1]
		default:
			return "backup/" + m[1][strings.LastIndexByte(m[1], '/')+1:]
		}
	}
	return ""
}

// notesTemplate turns notes into one line that Proxmox expands to exactly them: no variables, line ends escaped.
func notesTemplate(notes string) string {
	one := strings.NewReplacer(`\`, `\\`, "\r", "", "\n", `\n`, "{{", "{ {").Replace(notes)
	return shorten(one, 1024)
}

// RemoveArchive deletes an archive that an operation of pvrx made of the guest, as its notes say; its protection goes first.
// Any other archive is refused: nobody's last good backup goes by mistake.
func (h *Host) RemoveArchive(ctx context.Context, ref guest.Ref, archive guest.VolumeID) error {
	op := fmt.Sprintf("delete archive %s of %s", archive, describe(ref))
	rows, err := h.Content(ctx, ref.Node, archive.Storage, ref.VMID)
	if err != nil {
		return asError(err, op)
	}
	at := slices.IndexFunc(rows, func(row guest.StoredVolume) bool { return row.ID == archive })
	if at < 0 {
		return nil // gone
	}
	if row := rows[at]; row.Content != "backup" || row.Owner != ref.VMID || !strings.HasPrefix(row.Notes, "pvrx op-") {
		return refuse(op, ref, guest.OutcomeRefused, "it is not an archive that pvrx made of this guest")
	}
	r := request{
		op: op, ref: ref, method: http.MethodPut, params: map[string]any{"protected": "0"},
		path: path(append([]string{"nodes", ref.Node, "storage", archive.Storage, "content"}, strings.Split(archive.String(), "/")...)...),
	}
	if err := h.change(ctx, r); err != nil {
		return err
	}
	r.method, r.params, r.announced = http.MethodDelete, nil, []string{r.path}
	_, err = h.run(ctx, job{request: r, types: []string{"imgdel"}, id: archive.Storage})
	return err
}
