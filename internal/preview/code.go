package preview

// Code names a reason not to go on. Codes are a closed list and never change their words: policies and pipelines match
// them. The order is the order in which blockers are shown. The zero value is invalid.
type Code uint8

// The codes.
const (
	CodeGuestMissing Code = iota + 1
	CodeGuestWrongType
	CodeNameMismatch
	CodeDuplicate
	CodeNodeOffline
	CodeNoQuorum
	CodeUnsupportedVersion // Proxmox VE below 9.1, or a version that cannot be read
	CodeRunningInsideTarget
	CodeOperationInFlight
	CodeNeedsReconcile
	CodeParkingHoldsData // close: the parking guest holds volumes that nobody else names
	CodeProtected
	CodeLocked
	CodeTaskRunning
	CodeIsTemplate
	CodePendingChanges
	CodeMountUnclassified
	CodeVolumeShared
	CodeGuestsUnseen
	CodeLinkedBaseInUse
	CodeStorageUnavailable
	CodeNotPreservable
	CodeIDMapDiffers
	CodeEraseMismatch
	CodeEraseSpent
	CodeNotRecreatable
	CodeSnapshotsPresent
	CodeHAManaged
	CodeReplicated
	CodeProtectedBackup
	CodeBackupWindow
	CodeBackupLimit
	CodeRootfsShrink
	CodeSizeUnreadable
	CodeTemplateMissing
	CodeSpace
	CodeNotesTooLong
	CodeParkingUnavailable  // no spare VMID that owns nothing could be found
	CodeSystemKeyMissing    // system_disks names a disk that the VM does not have
	CodeNotADisk            // system_disks or erase names a CD-ROM, a cloud-init drive or an unused entry
	CodeImageMissing        // what a system disk is made from is not on the VM's node
	CodeDiskSize            // a new disk would be smaller than its source, or has no size
	CodeNothingToBoot       // the boot order would point at nothing
	CodeKeptInSnapshot      // replace: a snapshot holds a disk that is to be handed over
	CodeSnapshotUnsupported // snapshot asked for, and a kept disk's storage takes none
	CodeTargetInUse         // replace: the new VMID or one of its keys is in use
	CodeSuspended           // the VM is suspended to disk: its memory belongs to the old system
	CodeAwaitingTrust       // an earlier rebuild is neither accepted nor taken back
	CodeHoldsState          // the VM holds the state of this very run
	CodeNotAnInstance       // there is no usable contract of an application container
	CodeDuplicateIdentity   // another guest is the same instance
	CodeContractDiffers     // the container is not what its contract says
	CodeDeletionProtected   // deletion_protection is set
	CodeNodeRequired        // nothing says where to make it
	CodeStorageAmbiguous    // which storage to use is not certain
	CodeImageUnresolvable   // the digest is not known
	CodeImageVolumeUnbacked // (w) a new image declares VOLUME paths that no volume covers
	CodeVolumeShrink        // a volume would become smaller
	CodeVolumeStorage       // a volume would move to another storage
	CodeVolumeUnconfigured  // a volume is no longer configured, and erase does not name it
	CodePrivileges

	lastCode = CodePrivileges
)

// String returns the code as plans, policies and the argument allow write it.
func (c Code) String() string {
	switch c {
	case CodeGuestMissing:
		return "guest_missing"
	case CodeGuestWrongType:
		return "guest_wrong_type"
	case CodeNameMismatch:
		return "name_mismatch"
	case CodeDuplicate:
		return "duplicate"
	case CodeNodeOffline:
		return "node_offline"
	case CodeNoQuorum:
		return "no_quorum"
	case CodeUnsupportedVersion:
		return "unsupported_version"
	case CodeRunningInsideTarget:
		return "running_inside_target"
	case CodeOperationInFlight:
		return "operation_in_flight"
	case CodeNeedsReconcile:
		return "needs_reconcile"
	case CodeParkingHoldsData:
		return "parking_holds_data"
	case CodeProtected:
		return "protected"
	case CodeLocked:
		return "locked"
	case CodeTaskRunning:
		return "task_running"
	case CodeIsTemplate:
		return "is_template"
	case CodePendingChanges:
		return "pending_changes"
	case CodeMountUnclassified:
		return "mount_unclassified"
	case CodeVolumeShared:
		return "volume_shared"
	case CodeGuestsUnseen:
		return "guests_unseen"
	case CodeLinkedBaseInUse:
		return "linked_base_in_use"
	case CodeStorageUnavailable:
		return "storage_unavailable"
	case CodeNotPreservable:
		return "not_preservable"
	case CodeIDMapDiffers:
		return "idmap_differs"
	case CodeEraseMismatch:
		return "erase_mismatch"
	case CodeEraseSpent:
		return "erase_spent"
	case CodeNotRecreatable:
		return "not_recreatable"
	case CodeSnapshotsPresent:
		return "snapshots_present"
	case CodeHAManaged:
		return "ha_managed"
	case CodeReplicated:
		return "replicated"
	case CodeProtectedBackup:
		return "protected_backup"
	case CodeBackupWindow:
		return "backup_window"
	case CodeBackupLimit:
		return "backup_limit"
	case CodeRootfsShrink:
		return "rootfs_shrink"
	case CodeSizeUnreadable:
		return "size_unreadable"
	case CodeTemplateMissing:
		return "template_missing"
	case CodeSpace:
		return "space"
	case CodeNotesTooLong:
		return "notes_too_long"
	case CodeParkingUnavailable:
		return "parking_unavailable"
	case CodeSystemKeyMissing:
		return "system_key_missing"
	case CodeNotADisk:
		return "not_a_disk"
	case CodeImageMissing:
		return "image_missing"
	case CodeDiskSize:
		return "disk_size"
	case CodeNothingToBoot:
		return "nothing_to_boot"
	case CodeKeptInSnapshot:
		return "kept_in_snapshot"
	case CodeSnapshotUnsupported:
		return "snapshot_unsupported"
	case CodeTargetInUse:
		return "target_in_use"
	case CodeSuspended:
		return "suspended"
	case CodeAwaitingTrust:
		return "awaiting_trust"
	case CodeHoldsState:
		return "holds_state"
	case CodeNotAnInstance:
		return "not_an_instance"
	case CodeDuplicateIdentity:
		return "duplicate_identity"
	case CodeContractDiffers:
		return "contract_differs"
	case CodeDeletionProtected:
		return "deletion_protected"
	case CodeNodeRequired:
		return "node_required"
	case CodeStorageAmbiguous:
		return "storage_ambiguous"
	case CodeImageUnresolvable:
		return "image_unresolvable"
	case CodeImageVolumeUnbacked:
		return "image_volume_unbacked"
	case CodeVolumeShrink:
		return "volume_shrink"
	case CodeVolumeStorage:
		return "volume_storage"
	case CodeVolumeUnconfigured:
		return "volume_unconfigured"
	case CodePrivileges:
		return "privileges"
	}
	return "invalid"
}

// Waivable reports whether the argument allow may waive the code. Keys that drop names are waived one by one instead.
func (c Code) Waivable() bool {
	switch c {
	case CodeGuestsUnseen, CodeSnapshotsPresent, CodeHAManaged, CodeProtectedBackup, CodeBackupWindow, CodeImageVolumeUnbacked:
		return true
	case CodeGuestMissing, CodeGuestWrongType, CodeNameMismatch, CodeDuplicate, CodeNodeOffline, CodeNoQuorum, CodeUnsupportedVersion,
		CodeRunningInsideTarget, CodeOperationInFlight, CodeNeedsReconcile, CodeParkingHoldsData, CodeProtected, CodeLocked, CodeTaskRunning,
		CodeIsTemplate, CodePendingChanges, CodeMountUnclassified, CodeVolumeShared, CodeLinkedBaseInUse, CodeStorageUnavailable, CodeNotPreservable,
		CodeIDMapDiffers, CodeEraseMismatch, CodeEraseSpent, CodeNotRecreatable, CodeReplicated, CodeBackupLimit, CodeRootfsShrink, CodeSizeUnreadable,
		CodeTemplateMissing, CodeSpace, CodeNotesTooLong, CodeParkingUnavailable, CodePrivileges,
		CodeSystemKeyMissing, CodeNotADisk, CodeImageMissing, CodeDiskSize, CodeNothingToBoot, CodeKeptInSnapshot,
		CodeSnapshotUnsupported, CodeTargetInUse, CodeSuspended, CodeAwaitingTrust, CodeHoldsState,
		CodeNotAnInstance, CodeDuplicateIdentity, CodeContractDiffers, CodeDeletionProtected, CodeNodeRequired, CodeStorageAmbiguous, CodeImageUnresolvable,
		CodeVolumeShrink, CodeVolumeStorage, CodeVolumeUnconfigured:
		return false
	}
	return false
}

// ParseCode finds the code that a word names.
func ParseCode(word string) (Code, bool) {
	for c := Code(1); c <= lastCode; c++ {
		if c.String() == word {
			return c, true
		}
	}
	return 0, false
}

// Codes lists every code in the order in which blockers are shown.
func Codes() []Code {
	all := make([]Code, 0, int(lastCode))
	for c := Code(1); c <= lastCode; c++ {
		all = append(all, c)
	}
	return all
}
