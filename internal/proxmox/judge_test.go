package proxmox

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

func parameters(errors map[string]string) answer {
	body, err := json.Marshal(map[string]any{"data": nil, "message": "Parameter verification failed.\n", "errors": errors})
	if err != nil {
		panic(err)
	}
	return answer{status: "400 Parameter verification failed.", body: string(body)}
}

func TestAnswersBecomeOutcomes(t *testing.T) {
	denied := func(words string) answer {
		return answer{status: "403 " + words, body: `{"data":null,"message":"` + words + `\n"}`}
	}
	for _, c := range []struct {
		name   string
		answer answer
		want   guest.Outcome
		reads  guest.Outcome // when a read gets the same; 0: the same
		words  string        // must be in the error
	}{
		// Locks: nothing was done.
		{"locked CT", died("CT is locked (backup)"), guest.OutcomeLocked, 0, "CT is locked (backup)"},
		{"locked VM", died("VM is locked (backup)"), guest.OutcomeLocked, 0, "VM is locked"},
		{"flock", died("can't lock file '/run/lock/lxc/pve-config-100.lock' - got timeout"), guest.OutcomeLocked, 0, "got timeout"},
		{"flock of a VM", died("can't lock file '/var/lock/qemu-server/lock-7131.conf' - got timeout"), guest.OutcomeLocked, 0, ""},
		{"cluster lock", died("cfs-lock 'storage-ceph' error: got lock request timeout"), guest.OutcomeLocked, 0, ""},
		{"user lock", died("update pools failed: cfs-lock 'file-user_cfg' error: got lock request timeout"), guest.OutcomeLocked, 0, ""},

		// Compare and swap.
		{"digest CT", died("detected modified configuration - file changed by other user? Try again."), guest.OutcomeConflict, 0, "file changed by other user"},
		{"digest VM", died("checksum mismatch (file change by other user?)"), guest.OutcomeConflict, 0, ""},
		{"digest move", died("Container 101: detected modified configuration - file changed by other user? Try again."), guest.OutcomeConflict, 0, ""},
		{"digest move VM", died("VM 201: detected modified configuration - file changed by other user? Try again."), guest.OutcomeConflict, 0, ""},

		// Taken.
		{"VMID taken", died("CT 165 already exists on node 'pve'"), guest.OutcomeTaken, 0, ""},
		{"VMID taken, create", died("unable to create CT 165 - CT 165 already exists on node 'pve'"), guest.OutcomeTaken, 0, ""},
		{"VMID taken, parameter", parameters(map[string]string{"vmid": "VM 112 already exists"}), guest.OutcomeTaken, 0, "vmid: VM 112 already exists"},
		{"key taken CT", died("Target volume key 'mp1' is already in use for container '101'"), guest.OutcomeTaken, 0, ""},
		{"key taken VM", died("Target disk key 'scsi0' is already in use for VM '202'"), guest.OutcomeTaken, 0, ""},
		{"pool member", died("update pools failed: VM 112 is already a pool member"), guest.OutcomeTaken, 0, ""},
		{"file taken", died("refusing to override existing file 'x.tar'"), guest.OutcomeTaken, 0, ""},

		// Missing.
		{"no CT", died("Configuration file 'nodes/pve/lxc/999.conf' does not exist"), guest.OutcomeMissing, 0, "999.conf"},
		{"no VM", died("Configuration file 'nodes/pve/qemu-server/999.conf' does not exist"), guest.OutcomeMissing, 0, ""},
		{"no target CT", died("could not find CT 9000"), guest.OutcomeMissing, 0, ""},
		{"no storage", died("storage 'nostore' does not exist"), guest.OutcomeMissing, 0, ""},
		{"no user", died("no such user ('x')"), guest.OutcomeMissing, 0, ""},
		{"no pool", died("delete pool failed: pool 'p2' does not exist"), guest.OutcomeMissing, 0, ""},
		{"no HA resource", died("no such resource 'ct:998'"), guest.OutcomeMissing, 0, ""},
		{"no task", parameters(map[string]string{"upid": "no such task"}), guest.OutcomeMissing, 0, ""},
		{"no job", parameters(map[string]string{"id": "No such job 'job1'"}), guest.OutcomeMissing, 0, ""},
		{"no volume key", died("volume 'mp0' for container '100' does not exist"), guest.OutcomeMissing, 0, ""},
		{"no disk", died("Disk 'scsi9' for VM '201' does not exist"), guest.OutcomeMissing, 0, ""},
		{"HA of a missing guest", died("resource 'ct:998' does not exist in cluster"), guest.OutcomeMissing, 0, ""},

		// Refusals before any effect.
		{"protected", died("can't remove CT 100 - protection mode enabled"), guest.OutcomeRefused, 0, "protection mode enabled"},
		{"protected drive", died("can't remove CT 100 drive 'mp0' - protection mode enabled"), guest.OutcomeRefused, 0, ""},
		{"running, destroy", died("unable to destroy CT 111 - container is running"), guest.OutcomeRefused, 0, ""},
		{"running VM, destroy", died("VM 202 is running - destroy failed"), guest.OutcomeRefused, 0, ""},
		{"under HA", died("unable to remove CT 112 - used in HA resources and purge parameter not set."), guest.OutcomeRefused, 0, ""},
		{"replicated", died("There is a replication job '100-0' for guest '100' - Please remove that first."), guest.OutcomeRefused, 0, ""},
		{"running, move", died("Cannot move in-use volume while the source CT is running - detach or shutdown first"), guest.OutcomeRefused, 0, ""},
		{"unused to used", died("Moving an unused volume to a used one is not possible"), guest.OutcomeRefused, 0, ""},
		{"slot lacks option", died("failed to parse source disk for target disk format - format error\nssd: property is not defined in schema and the schema does not allow additional properties"), guest.OutcomeRefused, 0, "ssd: property is not defined"},
		{"move and storage", died("either set storage or target-vmid, but not both"), guest.OutcomeRefused, 0, ""},
		{"shrink", died("unable to shrink disk size"), guest.OutcomeRefused, 0, ""},
		{"same size", died("disk is already at specified size"), guest.OutcomeRefused, 0, ""},
		{"not running", died("CT 112 not running"), guest.OutcomeRefused, 0, ""},
		{"root only", died("only root can set 'args' config"), guest.OutcomeRefused, 0, ""},
		{"path", died("Only root can pass arbitrary filesystem paths. at /usr/share/perl5/PVE/Storage.pm line 567."), guest.OutcomeRefused, 0, ""},
		{"no quorum", died("cluster not ready - no quorum?"), guest.OutcomeRefused, 0, ""},
		{"unknown option", parameters(map[string]string{"delete": "unknown option 'nosuch'"}), guest.OutcomeRefused, 0, "delete: unknown option 'nosuch'"},
		{"missing parameter", parameters(map[string]string{"archive": "missing property required by 'force'"}), guest.OutcomeRefused, 0, ""},
		{"unknown path", answer{status: "501 Method 'GET /nosuchpath' not implemented", body: `{"data":null}`}, guest.OutcomeRefused, 0, "not implemented"},

		// Rights.
		{"403", denied("Permission check failed (/vms/101, VM.Audit)"), guest.OutcomeDenied, 0, "(/vms/101, VM.Audit)"},
		{"403 bind", denied("Permission check failed (mount point type bind is only allowed for root@pam)"), guest.OutcomeDenied, 0, "only allowed for root@pam"},
		{"401 token", answer{status: "401 Authentication failed!"}, guest.OutcomeDenied, 0, "Authentication failed!"},
		{"401 ticket", answer{status: "401 No ticket"}, guest.OutcomeDenied, 0, "No ticket"},
		{"401 csrf", answer{status: "401 Permission denied - invalid csrf token"}, guest.OutcomeDenied, 0, ""},

		// Part of the effect may be there.
		{"applying", parameters(map[string]string{"scsi1": "unable to apply pending change scsi1 : unable to delete 'local:1/vm-1-disk-0.qcow2' - volume is still in use (snapshot?)\n"}), guest.OutcomeFailed, 0, "still in use"},
		{"hotplug", parameters(map[string]string{"scsi0": "hotplug problem - can't unplug bootdisk 'scsi0'"}), guest.OutcomeFailed, 0, ""},

		// Nothing is known.
		{"no worker", died("got no worker upid - start worker failed"), guest.OutcomeUnknown, 0, "got no worker upid"},
		{"new words", died("something that nobody has seen yet"), guest.OutcomeUnknown, 0, "nobody has seen yet"},
		{"new words about existence", died("unable to activate storage 'nfs1' - directory '/mnt/pve/nfs1' does not exist"), guest.OutcomeUnknown, 0, ""},
		{"bare 400", answer{status: "400 "}, guest.OutcomeUnknown, 0, ""},
		{"595", answer{status: "595 Connection refused"}, guest.OutcomeUnknown, guest.OutcomeUnreachable, "595"},
		{"596", answer{status: "596 Connection timed out"}, guest.OutcomeUnknown, guest.OutcomeUnreachable, "timed out"},
		{"599", answer{status: "599 Too many redirections"}, guest.OutcomeUnknown, guest.OutcomeUnreachable, ""},
		{"502", answer{status: "502 Bad Gateway", body: "<html>proxy</html>"}, guest.OutcomeUnknown, guest.OutcomeUnreachable, "502"},
		{"503", answer{status: "503 Service Unavailable"}, guest.OutcomeUnknown, guest.OutcomeUnreachable, ""},
		{"504", answer{status: "504 Gateway Timeout"}, guest.OutcomeUnknown, guest.OutcomeUnreachable, ""},
		{"404", answer{status: "404 Not Found", body: "<html>"}, guest.OutcomeUnknown, guest.OutcomeUnreachable, ""},
		{"redirect", answer{status: "308 Permanent Redirect", header: http.Header{"Location": {"https://elsewhere.test/"}}}, guest.OutcomeUnknown, guest.OutcomeUnreachable, "308"},
		{"a page", answer{status: "200 OK", body: "<html>not the API</html>"}, guest.OutcomeUnknown, guest.OutcomeUnreachable, ""},
		{"cut", answer{broken: errCut}, guest.OutcomeUnknown, guest.OutcomeUnreachable, "connection reset by peer"},
		{"EOF", answer{broken: io.EOF}, guest.OutcomeUnknown, guest.OutcomeUnreachable, "EOF"},
		{"unknown node", died("hostname lookup 'nonode' failed - failed to get address info for: nonode: Name or service not known"), guest.OutcomeUnreachable, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, s := scripted(t, func(sent) answer { return c.answer })
			err := h.SetConfig(context.Background(), ct, map[string]string{"cores": "2"}, nil, "d")
			wantOutcome(t, err, c.want)
			if !strings.Contains(err.Error(), c.words) {
				t.Errorf("the words %q are not in %q", c.words, err)
			}
			if c.want != guest.OutcomeLocked && s.count("PUT") != 1 {
				t.Errorf("the change was sent %d times", s.count("PUT"))
			}
			if c.reads == 0 {
				c.reads = c.want
			}
			_, err = h.Config(context.Background(), ct)
			wantOutcome(t, err, c.reads)
		})
	}
}

// An error that claims harmlessness must rest on a sentence; whatever else dies on the server is unknown.
func TestOnlyKnownWordsAreHarmless(t *testing.T) {
	for _, words := range []string{
		"", "x", "unable to create CT 100 - disk full", "storage 'x' has no space left", "rbd error: rename failed",
		"lvrename failed: exit code 5", "command 'zfs rename' failed", "start worker failed", "cfs-lock 'file-user_cfg' error: no quorum!",
	} {
		if got := judgeWords(words); got.Harmless() {
			t.Errorf("%q counts as %s, which claims that nothing was done", words, got)
		}
	}
}

func TestControlCharactersAreTakenOut(t *testing.T) {
	h, _ := scripted(t, func(sent) answer {
		return answer{status: "500 x", body: `{"data":null,"message":"bad \u001b[31mred\u001b[0m\u0007 text\u202e\n"}`}
	})
	_, err := h.Config(context.Background(), ct)
	if err == nil || strings.ContainsAny(err.Error(), "\x1b\a\n\u202e") || !strings.Contains(err.Error(), "bad red text") {
		t.Fatalf("%q", err)
	}
}
