package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// backupMark begins the notes of every archive that pvrx makes.
const backupMark = "pvrx "

// OurBackup reports whether an archive was made by pvrx, as its notes say.
func OurBackup(row guest.StoredVolume) bool { return strings.HasPrefix(row.Notes, backupMark+"op-") }

// BackupNotes is what an archive made by an operation is marked with.
func BackupNotes(operation string) string { return backupMark + operation }

// judgeSnapshots: a move refuses volumes that snapshots hold, and a destroy takes the snapshots along.
func (j *judge) judgeSnapshots() {
	names := j.snapshotNames()
	if len(names) == 0 {
		return
	}
	j.block(Blocker{
		Code: CodeSnapshotsPresent, Subject: j.id().String(), Attribute: "allow", Found: fmt.Sprintf(j.kind()+" %d has %s (%s).", j.id(), plural(len(names), "snapshot"), strings.Join(names, ", ")),
		Remedy: "They cannot survive: delete them, or add \"snapshots_present\" to allow to have them deleted.",
	})
}

// snapshotNames are the snapshots that are listed, or the newest one when only the configuration was read.
func (j *judge) snapshotNames() []string {
	var names []string
	for _, s := range j.f.Guest.Snapshots {
		names = append(names, s.Name)
	}
	if parent := j.f.Guest.Config.Values["parent"]; len(names) == 0 && parent != "" {
		names = append(names, parent)
	}
	slices.Sort(names)
	return names
}

// judgeHA: a destroy is refused while the guest is an HA resource, in whatever state (hazard B12).
func (j *judge) judgeHA() {
	if !j.f.HA.OK {
		j.unseen("HA resources", j.f.HA.Why, "Sys.Audit on /")
		return
	}
	if j.f.HA.Value.Managed {
		j.block(Blocker{
			Code: CodeHAManaged, Subject: j.id().String(), Attribute: "allow", Found: fmt.Sprintf(j.kind()+" %d is an HA resource (state %s).", j.id(), orUnknown(j.f.HA.Value.State)),
			Remedy: "Take it out of HA, or add \"ha_managed\" to allow: the resource is then removed without its rules and added again with all its fields.",
		})
	}
}

// judgeReplication: removing a replication job removes the copies on the other node, so that nothing waives it (hazard B12).
func (j *judge) judgeReplication() {
	if !j.f.Replicated.OK {
		j.unseen("replication jobs", j.f.Replicated.Why, "VM.Audit on /vms")
		return
	}
	if j.f.Replicated.Value {
		j.block(Blocker{
			Code: CodeReplicated, Subject: j.id().String(), Found: fmt.Sprintf(j.kind()+" %d has a replication job.", j.id()),
			Remedy: "Remove the job, wait until it is gone, and add it again afterwards: it would remove the copies on the other node.",
		})
	}
}

// judgeBackups: a protected backup of somebody else's says that this guest is not to be touched lightly.
func (j *judge) judgeBackups() {
	if !j.f.Backups.OK {
		j.unseen("backups", j.f.Backups.Why, "Datastore.Audit on the backup storages and VM.Backup on /vms")
		return
	}
	ours := 0
	for _, row := range j.f.Backups.Value {
		switch {
		case !row.Protected:
		case OurBackup(row):
			ours++
		default:
			j.block(Blocker{
				Code: CodeProtectedBackup, Subject: row.ID.String(), Attribute: "allow", Found: fmt.Sprintf("%s is a protected backup of "+j.kind()+" %d that pvrx did not make.", row.ID, j.id()),
				Remedy: "Somebody wants this guest as it was: ask them, then take the protection off or add \"protected_backup\" to allow.",
			})
		}
	}
	if ours > 0 {
		j.warn("%s of earlier operations, made by pvrx, stay", plural(ours, "protected backup"))
	}
}

// judgeJobs: a job that runs while the data is set aside replaces the last good backup by an empty one (hazard A4).
func (j *judge) judgeJobs() {
	const remedy = "Wait until it has run, move it, or add \"backup_window\" to allow: a backup of the half-made guest may replace the last good one."
	if !j.f.Jobs.OK {
		j.block(Blocker{
			Code: CodeBackupWindow, Subject: "backup jobs", Attribute: "allow", Found: fmt.Sprintf("Backup jobs cannot be read (%s), so whether one starts meanwhile is unknown.", orUnknown(j.f.Jobs.Why)),
			Remedy: "Grant Sys.Audit on /, or add \"backup_window\" to allow.",
		})
		return
	}
	end := j.f.Now + int64(j.w.Timeout.Seconds())
	for _, job := range j.f.Jobs.Value {
		covers := job.All || slices.Contains(job.Covers, j.id()) || j.f.Parking.VMID != 0 && slices.Contains(job.Covers, j.f.Parking.VMID)
		if covers && job.NextRun != 0 && job.NextRun <= end {
			j.block(Blocker{
				Code: CodeBackupWindow, Subject: job.ID, Attribute: "allow", Found: fmt.Sprintf("Backup job %s covers "+j.kind()+" %d or the parking guest and starts at %s; the operation may last until %s.", job.ID, j.id(), utc(job.NextRun), utc(end)),
				Remedy: remedy,
			})
		}
	}
}

// judgeBackupRoom asks whether the operation's own backup fits: it is protected, so that nothing prunes it, and prunes
// nothing itself (hazard A5).
func (j *judge) judgeBackupRoom() {
	if j.w.Backup == nil || j.claimed() {
		return // at the claim it is made already
	}
	name := j.w.Backup.Storage
	if why := j.unavailable(name, "backup"); why != "" {
		j.block(Blocker{
			Code: CodeStorageUnavailable, Subject: name, Attribute: "backup.storage", Found: fmt.Sprintf("Storage %s, wanted for the backup, %s.", name, why),
			Remedy: "Choose a storage of the guest's node with content type backup.",
		})
		return
	}
	room := j.f.BackupStorage
	if !room.OK || !room.Value.Exists {
		j.unseen("backup storage "+name, room.Why, "Datastore.Audit on /storage/"+name)
		return
	}
	if limit := room.Value.ProtectedLimit; limit >= 0 && room.Value.ProtectedNow >= limit {
		j.block(Blocker{
			Code: CodeBackupLimit, Subject: name, Attribute: "backup.storage", Found: fmt.Sprintf("Storage %s allows %s a guest, and "+j.kind()+" %d has %d there.", name, plural(limit, "protected backup"), j.id(), room.Value.ProtectedNow),
			Remedy: "Take the protection off one of them, or raise max-protected-backups.",
		})
	}
	if need := j.backedUp(); need > room.Value.Available {
		j.block(Blocker{
			Code: CodeSpace, Subject: name, Attribute: "backup.storage", Found: fmt.Sprintf("A backup of the root file system may take %s; storage %s has %s.", exact(need), name, exact(room.Value.Available)),
			Remedy: "Free space there or choose another storage.",
		})
	}
}

// backedUp is how much the operation's own backup may hold: a container's root file system, every disk of a VM that backups
// do not leave out.
func (j *judge) backedUp() guest.Bytes {
	need := j.rootfs().Size
	for _, v := range j.volumes {
		if d, ok := j.drive(v.key); j.w.VM != nil && ok && v.section == "" && d.Options["backup"] != "0" && !strings.HasPrefix(v.key, "unused") {
			need = add(need, v.Size)
		}
	}
	return need
}

// JournalBudget is how many characters of the notes an operation's record and the contract may take.
const JournalBudget = 4096

// judgeNotes asks whether the record fits beside the user's own text (hazard B9).
func (j *judge) judgeNotes() {
	if !j.claimed() {
		j.judgeNotesRoom(j.f.Journal.User, "operation's record", JournalBudget)
	}
}

// judgeNotesRoom asks whether what needs some room fits beside the user's own text.
func (j *judge) judgeNotesRoom(own, what string, need int) {
	if has := guest.Length(own); has+need > guest.NotesLimit {
		j.block(Blocker{
			Code: CodeNotesTooLong, Subject: j.id().String(), Found: fmt.Sprintf("The notes hold %d characters of your own; Proxmox takes %d, and the %s needs up to %d.", has, guest.NotesLimit, what, need),
			Remedy: fmt.Sprintf("Shorten the notes to %d characters.", max(0, guest.NotesLimit-need)),
		})
	}
}

// judgeParking asks whether there is a spare VMID for the parking guest.
func (j *judge) judgeParking() {
	if j.f.Parking.VMID == 0 {
		j.block(Blocker{
			Code: CodeParkingUnavailable, Subject: j.id().String(), Found: fmt.Sprintf("No spare VMID was found: %s.", orUnknown(strings.TrimSuffix(j.f.Parking.Why, "."))),
			Remedy: "Give the provider a range (parking.vmids) with a VMID that owns no volume, has no ACL entry, no backup and no job.",
		})
	}
}
