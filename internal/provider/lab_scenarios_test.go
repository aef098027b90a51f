package provider

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// labBlock is a block for a container of the lab, labelled web1.
func (l *lab) labBlock(id int, name string, arguments ...string) string {
	return block("web1", guest.VMID(id), name, append([]string{template(l.template)}, arguments...)...)
}

func (l *lab) labImport(id int) string { return importOf("web1", guest.VMID(id)) }

// sameBut demands that a container's configuration is as it was but for some keys. Volumes may have got other names.
func (l *lab) sameBut(id int, before map[string]string, except ...string) {
	l.t.Helper()
	skip := map[string]bool{"description": true}
	for _, key := range except {
		skip[key] = true
	}
	after := l.config(id)
	for key, value := range before {
		now := after[key]
		if strings.Contains(value, ":") && (strings.HasPrefix(key, "mp") || strings.HasPrefix(key, "unused") || key == "rootfs") {
			_, value, _ = strings.Cut(value, ",")
			_, now, _ = strings.Cut(now, ",")
		}
		if !skip[key] && now != value {
			l.t.Errorf("%s = %q, was %q", key, now, value)
		}
	}
	for key := range after {
		if _, had := before[key]; !had && !skip[key] {
			l.t.Errorf("%s = %q is new", key, after[key])
		}
	}
}

func TestScenarioReinstall(t *testing.T) {
	t.Parallel()
	scenario(t, func(l *lab, ws *workspace) {
		id := l.container("pvrx-test-a", nil)
		before := l.config(id)
		ws.write("main.tf", l.labImport(id)+l.labBlock(id, "pvrx-test-a"))
		ws.plan(2).says(l.t, "preserved", "erased")
		l.sameBut(id, before)
		ws.apply(0)
		l.sameBut(id, before)
		ws.plan(0)
		ws.write("main.tf", l.labBlock(id, "pvrx-test-a", `triggers = { again = "1" }`))
		ws.plan(2)
		ws.apply(0)
		l.sameBut(id, before)
		ws.plan(0)
		ws.plan(1, "-replace="+web1).says(l.t, "is never replaced")
	})
}

func TestScenarioCreateTouchesNothing(t *testing.T) {
	t.Parallel()
	scenario(t, func(l *lab, ws *workspace) {
		id := l.container("pvrx-test-b", nil)
		before := l.config(id)
		ws.write("main.tf", l.labBlock(id, "pvrx-test-b"))
		ws.plan(1).says(l.t, "exists and is not in this state", "import {")
		ws.write("main.tf", l.labBlock(id, "pvrx-test-b", "adopt = true"))
		ws.plan(2)
		ws.apply(0)
		ws.plan(0)
		l.sameBut(id, before)
		if l.config(id)["description"] != before["description"] {
			l.t.Error("the notes changed")
		}
	})
}

func TestScenarioProtectedAndMisnamed(t *testing.T) {
	t.Parallel()
	scenario(t, func(l *lab, ws *workspace) {
		id := l.container("pvrx-test-c", nil)
		l.set(id, map[string]string{"protection": "1"})
		ws.write("main.tf", l.labImport(id)+l.labBlock(id, "pvrx-test-c"))
		ws.plan(1).says(l.t, "(protected)")
		ws.write("main.tf", l.labImport(id)+l.labBlock(id, "pvrx-test-other"))
		ws.plan(1).says(l.t, "(name_mismatch)")
	})
}

func TestScenarioChangedSinceThePlan(t *testing.T) {
	t.Parallel()
	scenario(t, func(l *lab, ws *workspace) {
		id := l.container("pvrx-test-d", nil)
		ws.write("main.tf", l.labImport(id)+l.labBlock(id, "pvrx-test-d"))
		ws.plan(2)
		l.set(id, map[string]string{"mp1": l.storages[0] + ":1,mp=/srv/more"})
		before := l.config(id)
		ws.apply(1).says(l.t, "has changed since the plan", "mp1", "Nothing was touched")
		l.sameBut(id, before)
	})
}

func TestScenarioEraseOneVolume(t *testing.T) {
	t.Parallel()
	scenario(t, func(l *lab, ws *workspace) {
		id := l.container("pvrx-test-e", map[string]string{"mp1": l.storages[0] + ":1,mp=/srv/scratch"})
		before := l.config(id)
		volume, _, _ := strings.Cut(before["mp1"], ",")
		ws.write("main.tf", l.labImport(id)+l.labBlock(id, "pvrx-test-e", `erase = { mp1 = "`+volume+`" }`))
		ws.plan(2)
		ws.apply(0)
		l.sameBut(id, before, "mp1")
		if got := l.config(id)["mp1"]; got != "" {
			l.t.Errorf("mp1 = %q is still there", got)
		}
		ws.plan(0)
	})
}

func TestScenarioGrow(t *testing.T) {
	t.Parallel()
	scenario(t, func(l *lab, ws *workspace) {
		id := l.container("pvrx-test-f", nil)
		before := l.config(id)
		ws.write("main.tf", l.labBlock(id, "pvrx-test-f", "adopt = true"))
		ws.plan(2)
		ws.apply(0)
		ws.write("main.tf", l.labBlock(id, "pvrx-test-f", "adopt = true", `rootfs = { size = "2GiB" }`))
		ws.plan(2)
		ws.apply(0)
		if got := l.config(id)["rootfs"]; !strings.Contains(got, "size=2G") {
			l.t.Errorf("rootfs = %q", got)
		}
		l.sameBut(id, before, "rootfs")
		ws.plan(0)
		ws.write("main.tf", l.labBlock(id, "pvrx-test-f", `rootfs = { size = "1GiB" }`, `triggers = { again = "1" }`))
		ws.plan(1).says(l.t, "(rootfs_shrink)", "2147483648", "1073741824")
	})
}

func TestScenarioRehearseOnly(t *testing.T) {
	t.Parallel()
	scenario(t, func(l *lab, ws *workspace) {
		id := l.container("pvrx-test-g", nil)
		before := l.config(id)
		ws.write("main.tf", l.labImport(id)+l.labBlock(id, "pvrx-test-g", "rehearse_only = true"))
		ws.plan(2)
		ws.apply(0)
		l.sameBut(id, before)
		ws.plan(2)
	})
}

func TestScenarioSnapshots(t *testing.T) {
	t.Parallel()
	scenario(t, func(l *lab, ws *workspace) {
		id := l.container("pvrx-test-h", nil)
		if _, err := l.call(http.MethodPost, l.path(id)+"/snapshot", map[string]string{"snapname": "before"}); err != nil {
			l.t.Skipf("the storages of this server take no snapshots: %v", err)
		}
		ws.write("main.tf", l.labImport(id)+l.labBlock(id, "pvrx-test-h"))
		ws.plan(1).says(l.t, "(snapshots_present)", "before")
		ws.write("main.tf", l.labImport(id)+l.labBlock(id, "pvrx-test-h", `allow = ["snapshots_present"]`))
		ws.plan(2)
		ws.apply(0)
		if parent := l.config(id)["parent"]; parent != "" {
			l.t.Errorf("snapshot %s is still there", parent)
		}
		ws.plan(0)
	})
}
