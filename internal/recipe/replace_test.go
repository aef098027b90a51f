package recipe_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// The whole way on a new VM: the data disk is handed over under the same key with all its options and is not copied; the old
// VM stays, renamed and off; accept removes it.
func TestReplace(t *testing.T) {
	w := newVMWorld()
	before := w.cluster.Config(7131)
	r, err := w.applyVM(t, recipe.Request{Want: wantsVMReplaced()})
	mustVM(t, r, err, recipe.StatusAwaitingTrust)
	after, old := w.cluster.Config(9131), w.cluster.Config(7131)
	for _, key := range []string{"net0", "smbios1", "boot", "onboot", "tags", "memory", "cores", "name", "scsihw", "agent", "ide2", "ipconfig0"} {
		if before[key] != after[key] {
			t.Errorf("%s was %q and is %q", key, before[key], after[key])
		}
	}
	withoutVolume := func(value string) string { _, options, _ := strings.Cut(value, ","); return options }
	if withoutVolume(before["scsi2"]) != withoutVolume(after["scsi2"]) {
		t.Errorf("scsi2 was %q and is %q", before["scsi2"], after["scsi2"])
	}
	if got := w.content(9131, "scsi2", "/var/lib/id"); got != "the only copy" || len(w.lost()) > 0 {
		t.Errorf("the kept disk holds %q, lost %v", got, w.lost())
	}
	if got := w.content(9131, "scsi0", "/etc/os-release"); got != "VERSION_ID=13" {
		t.Errorf("the new system disk holds %q", got)
	}
	if old["name"] != "id01-old" || old["onboot"] != "0" || w.cluster.Running(7131) || !w.cluster.Running(9131) {
		t.Errorf("the old VM is %q, onboot %q, running %v; the new one runs: %v", old["name"], old["onboot"], w.cluster.Running(7131), w.cluster.Running(9131))
	}
	if !strings.Contains(after["ide0"], "vm-9131-cloudinit") || !strings.Contains(old["ide0"], "vm-7131-cloudinit") {
		t.Errorf("C10: the cloud-init drives are %q and %q", old["ide0"], after["ide0"])
	}
	if w.cluster.PoolOf(9131) != "ident" || w.cluster.Firewall(9131) != w.cluster.Firewall(7131) || w.cluster.Firewall(9131) == "" {
		t.Errorf("pool %q, firewall %q", w.cluster.PoolOf(9131), w.cluster.Firewall(9131))
	}
	again, err := w.applyVM(t, recipe.Request{Want: wantsVMReplaced()})
	if mustVM(t, again, err, recipe.StatusAwaitingTrust); again.Changed {
		t.Error("a second apply changed something")
	}
	r, err = w.reconcileVM(t, wantsVMReplaced(), r.Operation, "accept")
	mustVM(t, r, err, recipe.StatusReady)
	if slices.Contains(w.cluster.Guests(), 7131) || len(w.lost()) > 0 || w.recordVM(t, 9131) != nil {
		t.Errorf("after accept: guests %v, lost %v", w.cluster.Guests(), w.lost())
	}
	for _, v := range w.cluster.Volumes() {
		if v.Owner == 7131 {
			t.Errorf("%s of the old VM is left", v.ID)
		}
	}
}

// A volume that somebody slipped onto the old VM makes accept refuse, wherever it is: attached, unused, or known to the
// storage alone.
func TestReplaceAcceptRefusesWhatWasNotAnnounced(t *testing.T) {
	for name, slip := range map[string]func(*pvesim.Cluster) error{
		"attached": func(c *pvesim.Cluster) error {
			err := c.AddVolume("pve1", "local-lvm:vm-7131-disk-8", 1<<30)
			c.SetConfig(7131, "scsi7", "local-lvm:vm-7131-disk-8")
			return err
		},
		"unused": func(c *pvesim.Cluster) error {
			err := c.AddVolume("pve1", "local-lvm:vm-7131-disk-8", 1<<30)
			c.SetConfig(7131, "unused3", "local-lvm:vm-7131-disk-8")
			return err
		},
		"on the storage only": func(c *pvesim.Cluster) error { return c.AddVolume("pve1", "local-lvm:vm-7131-disk-9", 1<<30) },
	} {
		w := newVMWorld()
		r, err := w.applyVM(t, recipe.Request{Want: wantsVMReplaced()})
		mustVM(t, r, err, recipe.StatusAwaitingTrust)
		if err := slip(w.cluster); err != nil {
			t.Fatal(err)
		}
		mutations := w.server.Mutations()
		if _, err := w.reconcileVM(t, wantsVMReplaced(), r.Operation, "accept"); err == nil || !strings.Contains(err.Error(), "vm-7131-disk-") {
			t.Errorf("%s: %v", name, err)
		}
		if n := w.server.Mutations() - mutations; n > 0 || !slices.Contains(w.cluster.Guests(), 7131) {
			t.Errorf("%s: %d changes, guests %v", name, n, w.cluster.Guests())
		}
	}
}

// Giving up is vmid back to the old VM: disks, name, boot order and run state return, and the new VM goes.
func TestReplaceGivenUp(t *testing.T) {
	w := newVMWorld()
	before := w.dumpVM()
	r, err := w.applyVM(t, recipe.Request{Want: wantsVMReplaced()})
	mustVM(t, r, err, recipe.StatusAwaitingTrust)
	r, err = w.applyVM(t, recipe.Request{Want: wantsVM()})
	mustVM(t, r, err, recipe.StatusRolledBack)
	if now := w.dumpVM(); now != before {
		t.Errorf("not as before:\n%s", difference(before, now))
	}
}

// The same for both modes from every stage at which something may fail: taken back at once, the world is as it was.
func TestFaultsVMRollbackFromEveryStage(t *testing.T) {
	for _, s := range vmScenes() {
		b := s.baseVM(t)
		for i := range b.sent {
			w := b.freshVM()
			w.server.Inject(pvesim.Fault{Kind: pvesim.FaultStatus, Status: 500, Text: "something unheard of", Mutation: i + 1})
			_, err := w.applyVM(t, b.req())
			w.server.ClearFaults()
			if err == nil {
				continue // it was observed to have happened, or did not matter
			}
			if now := w.dumpVM(); now != b.before {
				t.Errorf("%s, change %d (%s %s): %v\n%s", s.name, i+1, b.sent[i].Method, b.sent[i].Path, err, difference(b.before, now))
			}
			if j := w.recordVM(t, 7131); j != nil {
				t.Errorf("%s, change %d (%s %s): a record is left at %s: %v", s.name, i+1, b.sent[i].Method, b.sent[i].Path, j.Stage, err)
			}
		}
	}
}

// A backup job that names the old VM names the new one afterwards, and the old one again when the replacement is given up
// (hazard A4: a backup of the VM without its data would push a good one out).
func TestA4ReplaceBackupJobFollows(t *testing.T) {
	w := newVMWorld()
	w.cluster.SetRights("ci@pve!pvrx", "/", "Sys.Audit", "Sys.Modify")
	far := w.clock.Add(1000 * time.Hour)
	w.cluster.AddBackupJob("nightly", map[string]string{"vmid": "5002,7131", "storage": "local"}, far)
	w.cluster.AddBackupJob("others", map[string]string{"vmid": "5002", "storage": "local"}, far)
	before := w.dumpVM()
	covers := func() string {
		jobs, err := w.host(t, w.server).BackupJobs(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(jobs[0].Covers, jobs[1].Covers)
	}
	r, err := w.applyVM(t, recipe.Request{Want: wantsVMReplaced()})
	mustVM(t, r, err, recipe.StatusAwaitingTrust)
	if got := covers(); got != "[5002 9131] [5002]" {
		t.Errorf("the jobs cover %s", got)
	}
	r, err = w.applyVM(t, recipe.Request{Want: wantsVM()})
	mustVM(t, r, err, recipe.StatusRolledBack)
	if got := covers(); got != "[5002 7131] [5002]" {
		t.Errorf("given up, the jobs cover %s", got)
	}
	if now := w.dumpVM(); now != before {
		t.Errorf("not as before:\n%s", difference(before, now))
	}
}

// A run that planned a rebuild in place, and finds that another run has replaced the VM meanwhile, does not take that for
// giving the replacement up: its plan showed no such thing.
func TestReplaceIsNotTakenBackByAPlanThatDidNotSeeIt(t *testing.T) {
	w := newVMWorld()
	seen, err := w.vm(t).Observe(t.Context(), 7131)
	if err != nil {
		t.Fatal(err)
	}
	r, err := w.applyVM(t, recipe.Request{Want: wantsVMReplaced()})
	mustVM(t, r, err, recipe.StatusAwaitingTrust)
	mutations := w.server.Mutations()
	_, err = w.vm(t).Apply(t.Context(), recipe.Request{Want: wantsVM(), Planned: seen.Acknowledged})
	if err == nil || !strings.Contains(err.Error(), "another run has rebuilt it") || !strings.Contains(err.Error(), r.Operation) {
		t.Errorf("it says %v", err)
	}
	if n := w.server.Mutations() - mutations; n > 0 || !w.cluster.Running(9131) {
		t.Errorf("%d changes were sent, VM 9131 runs: %v", n, w.cluster.Running(9131))
	}
}

// With one identity two machines never run at once: somebody starts the old VM while the new one is made ready, and the new one
// is not started; all is taken back.
func TestReplaceNeverRunsTwoMachinesWithOneIdentity(t *testing.T) {
	b := vmScenes()[1].baseVM(t)
	for i, q := range b.sent {
		if !strings.HasSuffix(q.Path, "/9131/status/start") {
			continue
		}
		w := b.freshVM()
		w.server.Inject(pvesim.Fault{Kind: pvesim.FaultWorld, Mutation: i, World: func(c *pvesim.Cluster) { c.SetRunning(7131, true) }})
		if _, err := w.applyVM(t, b.req()); err == nil || !strings.Contains(err.Error(), "one identity") {
			t.Errorf("it says %v", err)
		}
		for _, r := range w.server.Requests() {
			if strings.HasSuffix(r.Path, "/9131/status/start") {
				t.Error("the new VM was started")
			}
		}
		if now := w.dumpVM(); now != b.before {
			t.Errorf("not as before:\n%s", difference(b.before, now))
		}
		return
	}
	t.Error("the new VM is never started")
}

// An old VM gets a name that Proxmox takes, also one whose name is as long as names may be, and one without a name; given up, it
// is called as before.
func TestReplaceRenamesWhateverTheOldNameWas(t *testing.T) {
	long := strings.Repeat("a", 58) + "-bcde"
	for name, want := range map[string]string{
		"": "vm-7131-old", "id01.example.com": "id01.example.com-old", long: strings.Repeat("a", 58) + "-old",
	} {
		w := newVMWorld()
		w.cluster.SetConfig(7131, "name", name)
		before := w.dumpVM()
		back, forth := wantsVM(), wantsVMReplaced()
		back.Name, forth.Name = name, name
		if name == "" {
			back.Name, forth.Name = "VM 7131", "VM 7131"
		}
		r, err := w.applyVM(t, recipe.Request{Want: forth})
		mustVM(t, r, err, recipe.StatusAwaitingTrust)
		if now := w.cluster.Config(7131)["name"]; now != want {
			t.Errorf("%q is called %q, want %q", name, now, want)
		}
		r, err = w.applyVM(t, recipe.Request{Want: back})
		mustVM(t, r, err, recipe.StatusRolledBack)
		if now := w.dumpVM(); now != before {
			t.Errorf("%q: not as before:\n%s", name, difference(before, now))
		}
	}
}
