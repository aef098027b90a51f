package proxmox

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// upid is a task's name, taken apart. It says on which node the task runs: that is where to ask for it.
type upid struct {
	text    string
	node    string
	started int64 // seconds since 1970, by the node's clock
	kind    string
	id      string // "5001", "5001-mp0>900000-mp0", or "" for a job of several guests
	user    string // "ci@pve!pvrx"
}

var upidPattern = regexp.MustCompile(`^UPID:([A-Za-z0-9][A-Za-z0-9.-]*):([0-9A-Fa-f]{8}):([0-9A-Fa-f]{8,9}):([0-9A-Fa-f]{8}):([^:\s/]+):([^:\s/]*):([^:\s/]+):$`)

func parseUPID(text string) (upid, error) {
	m := upidPattern.FindStringSubmatch(text)
	if m == nil {
		return upid{}, fmt.Errorf("cannot read task name %q", shorten(guest.Printable(text), 100))
	}
	started, err := strconv.ParseInt(m[4], 16, 64)
	if err != nil {
		return upid{}, fmt.Errorf("cannot read task name %q: %w", text, err)
	}
	return upid{text: text, node: m[1], started: started, kind: m[5], id: m[6], user: m[7]}, nil
}

func (u upid) path(below string) string { return path("nodes", u.node, "tasks", u.text, below) }
