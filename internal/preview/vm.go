package preview

import (
	"fmt"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// VM judges the rebuild of a virtual machine, in place or, with Replaces, on a new VM. Facts are about the VM that has the
// data. Nothing is lost before an accept: old system disks are set aside, and what the preview shows as erased goes then.
func VM(f Facts, w Want) Preview {
	j, op := vmJudge(f, w)
	j.judgeIdentity()
	j.judgeRecords()
	if j.readable() {
		j.collectVM()
		j.decideVM()
		j.judgeBusy()
		j.judgeSuspended()
		j.judgeStateBackend()
		j.judgeUUID()
		j.judgeShared()
		j.judgeVMStorages()
		j.judgeSystemDisks()
		j.judgeBoot()
		j.judgeVMSnapshots()
		j.judgeHA()
		j.judgeReplication()
		j.judgeBackups()
		j.judgeJobs()
		j.judgeBackupRoom()
		j.judgeVMSpace()
		j.judgeNotes()
		if j.replacing() {
			j.judgeTarget()
			j.judgeVMKeys()
		} else {
			j.judgeParking()
		}
		j.judgeVMRights()
		j.judgeVMLost()
	}
	p := j.preview(op)
	p.Summary = j.summary(j.vmWhat(), p)
	return p
}

// vmJudge judges the VM that has the data. A replacement's VMID is that of the VM to be made: the spare that stays.
func vmJudge(f Facts, w Want) (*judge, Operation) {
	if w.VM == nil {
		w.VM = &VMWant{}
	}
	op := OpRebuild
	if w.VM.Replaces != 0 {
		f.Parking = Parking{VMID: w.VMID, Pool: f.Parking.Pool}
		w.VMID, op = w.VM.Replaces, OpReplace
	}
	return newJudge(f, w), op
}

func (j *judge) vmWhat() string {
	what := "rebuild in place"
	if j.replacing() {
		what = fmt.Sprintf("replace by VM %d", j.f.Parking.VMID)
	}
	for i, key := range j.systemKeys() {
		sep := ", "
		if i == 0 {
			sep = " with "
		}
		what += sep + key + " from " + j.sourceName(key)
	}
	return what
}

// sourceName is the short name of what a disk is made from.
func (j *judge) sourceName(key string) string {
	d := j.w.VM.SystemDisks[key]
	switch {
	case d.Image != "":
		return templateName(d.Image)
	case d.Template.VMID != 0:
		return fmt.Sprintf("%s of VM %d", d.Template.Disk, d.Template.VMID)
	case d.Blank:
		return "nothing (blank)"
	}
	return "an image that is not known yet"
}

// judgeSuspended: saved memory belongs to the old system and would be resumed on the new one.
func (j *judge) judgeSuspended() {
	_, saved := j.f.Guest.Config.Get("vmstate")
	if saved || j.f.Guest.Config.Values["lock"] == "suspended" {
		j.block(Blocker{
			Code: CodeSuspended, Subject: j.id().String(), Found: fmt.Sprintf("VM %d is suspended to disk.", j.id()),
			Remedy: "Resume it and shut it down first: its saved memory fits the old disks only.",
		})
	}
}

func (j *judge) judgeStateBackend() {
	if b := j.w.VM.StateBackend; b != 0 && b == j.id() {
		j.block(Blocker{
			Code: CodeHoldsState, Subject: b.String(), Attribute: "guards.state_backend_vmid", Found: fmt.Sprintf("VM %d holds the state of this run, which would be cut off half-way.", b),
			Remedy: "Run this one VM with the state somewhere else.",
		})
	}
}

// judgeUUID asks whether the provider runs inside the VM, whose smbios uuid its machine would then have.
func (j *judge) judgeUUID() {
	for part := range strings.SplitSeq(j.f.Guest.Config.Values["smbios1"], ",") {
		uuid, named := strings.CutPrefix(part, "uuid=")
		if named && j.f.Self.UUID != "" && strings.EqualFold(uuid, j.f.Self.UUID) {
			j.block(Blocker{
				Code: CodeRunningInsideTarget, Subject: "smbios1", Found: fmt.Sprintf("This machine has the uuid %s: it is VM %d.", uuid, j.id()),
				Remedy: "Run this from another machine.",
			})
		}
	}
}

// judgeVMLost says what else goes, and when.
func (j *judge) judgeVMLost() {
	f := j.f
	var files []string
	for _, key := range j.systemKeys() {
		switch key {
		case "efidisk0":
			j.lost["EFI variables"] = "kept until accept, then lost: boot entries and Secure Boot keys of efidisk0"
		case "tpmstate0":
			j.lost["TPM"] = "kept until accept, then lost: what only tpmstate0 unlocks stays locked"
		default:
			files = append(files, key)
		}
	}
	if len(files) > 0 {
		j.lost["old system"] = "kept until accept, then lost: users, passwords, SSH host keys and all other files on " + list(files)
	}
	if j.w.VM.Snapshot {
		j.lost["snapshot"] = "of the kept disks, clean after the shutdown; lost at accept and at rollback"
		if j.w.ForceStop {
			j.lost["snapshot"] = "of the kept disks, crash-consistent if the stop had to be forced; lost at accept and at rollback"
		}
		if _, set := f.Guest.Config.Get("vmgenid"); set {
			j.lost["vmgenid"] = "rollback_data only: Proxmox makes a new one when it returns to a snapshot"
		}
	}
	if _, set := f.Guest.Config.Get("cipassword"); set && j.w.PasswordGiven {
		j.lost["cloud-init password"] = "lost: Proxmox does not hand the old one out, so rollback cannot give it back"
	}
	if !j.replacing() {
		return
	}
	if names := j.snapshotNames(); len(names) > 0 {
		j.lost["snapshots"] = "stay with the old VM and are lost at accept"
	}
	if _, set := f.Guest.Config.Get("vmgenid"); set {
		j.lost["vmgenid"] = "lost: a token cannot set it, the new VM gets its own"
	}
	follows := "follows to VM " + f.Parking.VMID.String()
	j.loses("firewall", true, "", !f.Firewall.OK || f.Firewall.Value != (Firewall{}), follows)
	j.loses("ACL", f.ACL.OK, f.ACL.Why, len(f.ACL.Value) > 0, follows)
	j.loses("pool", f.Pool.OK, f.Pool.Why, f.Pool.Value != "", follows)
	j.loses("HA", f.HA.OK, f.HA.Why, f.HA.Value.Managed, follows)
	named := false
	for _, job := range f.Jobs.Value {
		for _, id := range job.Covers {
			named = named || id == j.id()
		}
	}
	if !j.may("Sys.Modify", "/") {
		follows = "lost unless added by hand: changing a job takes Sys.Modify on /"
	}
	j.loses("backup jobs", f.Jobs.OK, f.Jobs.Why, named, follows)
	for _, key := range f.Guest.Config.Keys() {
		if j.dropped(key) && !guest.IsDiskKey(key) {
			j.lost[key] = "lost: drop gives it up"
		}
	}
}
