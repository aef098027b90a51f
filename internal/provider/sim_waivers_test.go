package provider

import (
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
)

func TestWaivedBlockersDoWhatTheTableSays(t *testing.T) {
	t.Parallel()
	rows := map[preview.Code]struct {
		world func(s *simulation)
		holds func(s *simulation)
	}{
		preview.CodeSnapshotsPresent: {
			func(s *simulation) { s.world.Snapshot(web, "monday") },
			func(s *simulation) {
				if parent := s.world.Config(web)["parent"]; parent != "" {
					s.t.Errorf("snapshot %s is still there", parent)
				}
			},
		},
		preview.CodeHAManaged: {
			func(s *simulation) {
				s.world.SetRights("pvrx@pve!demo", "/", "Sys.Audit", "Sys.Console")
				s.world.AddHA(web, map[string]string{"state": "started", "max_restart": "3", "comment": "important"})
			},
			func(s *simulation) {
				for _, r := range s.server.Requests() {
					if r.Method == "POST" && r.Path == "/cluster/ha/resources" {
						if r.Params["max_restart"] != "3" || r.Params["comment"] != "important" || r.Params["state"] != "started" {
							s.t.Errorf("the HA resource was added again with %v", r.Params)
						}
						return
					}
				}
				s.t.Error("the HA resource was not added again")
			},
		},
		preview.CodeProtectedBackup: {func(s *simulation) { s.world.Backup(web, "backup", "golden", true) }, func(*simulation) {}},
		preview.CodeBackupWindow: {
			func(s *simulation) {
				s.world.AddBackupJob("soon", map[string]string{"vmid": itoa(web), "storage": "backup", "schedule": "*:0/30"}, time.Now().Add(20*time.Minute))
			}, func(*simulation) {},
		},
		preview.CodeGuestsUnseen: {
			func(s *simulation) {
				// All rights but the one to see the neighbours, on both guests that the operation works with.
				s.rights("/vms", "VM.Audit")
				s.world.SetRights("pvrx@pve!demo", "/vms/5001", "VM.Audit")
				s.world.SetRights("pvrx@pve!demo", "/vms/900000", "VM.Audit")
			}, nil,
		},
	}
	everyCLI(t, func(t *testing.T, c cli) {
		for _, code := range preview.Codes() {
			row, there := rows[code]
			if ofVMs(code) {
				continue
			}
			if there != code.Waivable() {
				t.Errorf("%s: waivable %v, row %v", code, code.Waivable(), there)
			}
			if !there {
				continue
			}
			t.Run(code.String(), func(t *testing.T) {
				t.Parallel()
				s := simulate(t, c)
				row.world(s)
				s.imported()
				s.plan(1).says(t, "("+code.String()+")")
				s.untouched()
				s.imported(`allow = ["` + code.String() + `"]`)
				if row.holds == nil {
					s.run(1, "plan", "-no-color", "-input=false").lacks(t, "("+code.String()+")")
					return
				}
				s.plan(2)
				s.apply(0)
				row.holds(s)
				if text, _ := s.world.ReadFile(web, "/etc/debian_version"); text != "13" {
					t.Errorf("the new system is %q", text)
				}
				s.plan(0)
			})
		}
		s := simulate(t, c)
		s.imported(`allow = ["locked"]`)
		s.plan(1).says(t, `Cannot waive "locked"`, waivable)
	})
}

const waivable = "snapshots_present, ha_managed"
