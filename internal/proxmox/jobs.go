package proxmox

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// BackupJobs lists the enabled backup jobs, with the guests they cover now and their next run. The members of a pool that a
// job covers are read from the pool.
func (h *Host) BackupJobs(ctx context.Context) ([]guest.BackupJob, error) {
	var rows []struct {
		ID      words  `json:"id"`
		Enabled *flag  `json:"enabled"`
		Next    whole  `json:"next-run"`
		VMIDs   words  `json:"vmid"`
		Exclude words  `json:"exclude"`
		All     flag   `json:"all"`
		Pool    words  `json:"pool"`
		Node    words  `json:"node"`
		Type    *words `json:"type"`
	}
	if err := h.ask(ctx, "list the backup jobs", guest.Ref{}, "/cluster/backup", nil, &rows); err != nil {
		return nil, err
	}
	var jobs []guest.BackupJob
	for _, row := range rows {
		if row.Enabled != nil && !bool(*row.Enabled) {
			continue
		}
		job := guest.BackupJob{
			ID: string(row.ID), NextRun: int64(row.Next), All: bool(row.All), Pool: string(row.Pool), Node: string(row.Node),
			Covers: vmids(string(row.VMIDs)), Excluded: vmids(string(row.Exclude)),
		}
		if job.Pool != "" {
			members, err := h.poolMembers(ctx, job.Pool)
			if err != nil {
				return nil, err
			}
			job.Covers = append(job.Covers, members...)
		}
		jobs = append(jobs, job)
	}
	return jobs, nil
}

// RenameInBackupJob lets a backup job that names a guest by its VMID name another one instead. A job that does not name it is
// left as it is.
func (h *Host) RenameInBackupJob(ctx context.Context, id string, from, to guest.VMID) error {
	op := fmt.Sprintf("let backup job %s name guest %d instead of %d", id, to, from)
	var job struct {
		VMIDs words `json:"vmid"`
	}
	if err := h.ask(ctx, "read backup job "+id, guest.Ref{}, path("cluster", "backup", id), nil, &job); err != nil {
		return err
	}
	var list []string
	named := false
	for _, have := range vmids(string(job.VMIDs)) {
		switch have {
		case from:
			named = true
		case to:
		default:
			list = append(list, have.String())
		}
	}
	if !named {
		return nil
	}
	return h.change(ctx, request{
		op: op, method: http.MethodPut, path: path("cluster", "backup", id),
		params: map[string]any{"vmid": strings.Join(append(list, to.String()), ",")},
	})
}

func (h *Host) poolMembers(ctx context.Context, pool string) ([]guest.VMID, error) {
	var rows []struct {
		Members []struct {
			VMID whole `json:"vmid"`
		} `json:"members"`
	}
	if err := h.ask(ctx, "read the members of pool "+pool, guest.Ref{}, "/pools", url.Values{"poolid": {pool}}, &rows); err != nil {
		return nil, err
	}
	var ids []guest.VMID
	for _, row := range rows {
		for _, member := range row.Members {
			if member.VMID != 0 {
				ids = append(ids, guest.VMID(member.VMID))
			}
		}
	}
	return ids, nil
}

// vmids reads a list of VMIDs as Proxmox writes them.
func vmids(text string) []guest.VMID {
	var ids []guest.VMID
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ';' || r == ' ' }) {
		if id, err := strconv.Atoi(word); err == nil {
			ids = append(ids, guest.VMID(id))
		}
	}
	return ids
}
