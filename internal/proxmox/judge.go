package proxmox

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"

	pve "github.com/luthermonson/go-proxmox"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// judge says what an answer other than success tells about its request. lost: the answer is not Proxmox's own, so it tells
// nothing at all. For a change, harmlessness is claimed only where it is known.
func judge(answer *pve.APIError, q question) (kind guest.Outcome, lost bool) {
	unclear := guest.OutcomeUnknown
	if q.reads {
		unclear = guest.OutcomeUnreachable
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return guest.OutcomeDenied, false
	case http.StatusBadRequest:
		return judgeParameters(answer), false
	case http.StatusNotImplemented:
		return guest.OutcomeRefused, false
	case http.StatusInternalServerError:
		return judgeWords(reasonOf(answer)), false
	}
	return unclear, true
}

func reasonOf(answer *pve.APIError) string {
	if words := strings.TrimSpace(answer.Message); words != "" {
		return words
	}
	_, reason, _ := strings.Cut(answer.Status, " ")
	return strings.TrimSpace(reason)
}

// judgeParameters reads the errors of a 400. They are found before anything is done, except for keys that were being applied.
func judgeParameters(answer *pve.APIError) guest.Outcome {
	kind := guest.OutcomeRefused
	for _, text := range answer.Errors {
		switch {
		case applying.MatchString(text):
			return guest.OutcomeFailed
		case strings.Contains(text, "already exists"):
			kind = guest.OutcomeTaken
		case missingParameter.MatchString(text):
			kind = guest.OutcomeMissing
		}
	}
	if len(answer.Errors) == 0 && !strings.HasPrefix(reasonOf(answer), "Parameter verification failed") {
		// A bare 400 can stand for any message that did not fit into a status line.
		return guest.OutcomeUnknown
	}
	return kind
}

var (
	applying         = regexp.MustCompile(`unable to (?:apply|hotplug|hot-plug|hotunplug|unplug)|hotplug problem`)
	missingParameter = regexp.MustCompile(`(?i)^(?:no such (?:job|task|storage)\b|snapshot .* does not exist)`)
)

// verdict says what a sentence of Proxmox means for the request that it answers.
type verdict struct {
	words *regexp.Regexp
	kind  guest.Outcome
}

// judgeWords finds the verdict on the message of a 500: whatever died on the server. Unknown is the answer for every sentence
// that is not known to be said before any effect.
func judgeWords(words string) guest.Outcome {
	for _, v := range verdicts {
		if v.words.MatchString(words) {
			return v.kind
		}
	}
	return guest.OutcomeUnknown
}

// verdicts is read from the top. Every line is a sentence that Proxmox says before it has done anything.
var verdicts = compile([]struct {
	kind  guest.Outcome
	words []string
}{
	{guest.OutcomeUnknown, []string{
		`got no worker upid`,
	}},
	{guest.OutcomeLocked, []string{
		`\b(?:CT|VM) is locked \(`,
		`can't lock file '[^']*' - got timeout`,
		`cfs-lock '[^']*' error: got lock request timeout`,
	}},
	{guest.OutcomeConflict, []string{
		`detected modified configuration`,
		`checksum mismatch \(file change`,
	}},
	{guest.OutcomeTaken, []string{
		`\b(?:CT|VM) \d+ already exists`,
		`^Target (?:volume|disk) key '[^']*' is already in use for `,
		`^(?:create|update) \w+ failed: .* already (?:exists|defined|a pool member)`,
		`^resource ID '[^']*' already defined`,
		`^refusing to override existing file`,
		`^(?:alias|ipset|IPSet|security group|IP set) .* already exists`,
	}},
	{guest.OutcomeMissing, []string{
		`^Configuration file '[^']*' does not exist`,
		`^unable to find configuration file for (?:CT|VM) `,
		`^could not find (?:CT|VM|target VM) \d+`,
		`^(?:delete|update|create) \w+ failed: .* does not exist$`,
		`^(?:delete|update) \w+ failed: (?:VM|CT) \d+ is not a pool member`,
		`^no such (?:resource|user|group|role|pool|job|task|cluster node)\b`,
		`^storage '[^']*' does not exist`,
		`^volume '[^']*' for container '\d+' does not exist`,
		`^Disk '[^']*' for VM '\d+' does not exist`,
		`^resource '[^']*' does not exist in cluster`,
		`^snapshot '[^']*' does not exist`,
		`^(?:pool|user|group|role) '[^']*' does not exist`,
	}},
	{guest.OutcomeUnreachable, []string{
		`^hostname lookup '[^']*' failed`,
	}},
	{guest.OutcomeRefused, []string{
		`protection mode enabled$`,
		`^unable to destroy CT \d+ - container is running`,
		`^VM \d+ is running - destroy failed`,
		`used in HA resources and purge parameter not set`,
		`^There is a replication job '`,
		`^Cannot move `,
		`^Moving an unused volume to a used one`,
		`^either set storage or target-vmid`,
		`^Both (?:containers|VMs) need to be on the same node`,
		`^Can't move (?:disk|disks|volumes) `,
		`^CD drive contents can't be moved`,
		`^Storage does not support moving of this disk`,
		`^failed to parse source disk for target disk format`,
		`^you can't (?:move|resize) `,
		`^can't resize mount point owned by another container`,
		`^Could not determine current size of volume`,
		`^can't overwrite running container`,
		`^cannot move volumes of a running container`,
		`^unable to shrink disk size`,
		`^disk is already at specified size`,
		`^(?:CT|VM) \d+ (?:is )?(?:not|already) running`,
		`^Only root can `,
		`^only root can `,
		`^unable to delete required option`,
		`^unable to modify read-only option`,
		`^unable to use snapshot name`,
		`^bridge '[^']*' does not exist`,
		`^storage '[^']*' is disabled`,
		`^storage '[^']*' is not configured for content-type`,
		`^storage '[^']*' does not (?:allow|support) content`,
		`^unable to use volume .* - content type needs to be`,
		`^missing privileges to access`,
		`^no options specified`,
		`^format error`,
		`^no such alias`,
		`^cluster not ready - no quorum`,
		`^group is not supported|^invalid group`,
		`^There is a max backup limit`,
		`^mount points configured, but 'rootfs' not set`,
	}},
})

func compile(groups []struct {
	kind  guest.Outcome
	words []string
},
) []verdict {
	var all []verdict
	for _, g := range groups {
		for _, w := range g.words {
			all = append(all, verdict{words: regexp.MustCompile(w), kind: g.kind})
		}
	}
	return all
}

func statusText(code int) string {
	text := strconv.Itoa(code)
	if known := http.StatusText(code); known != "" {
		text += " " + known
	}
	return text
}
