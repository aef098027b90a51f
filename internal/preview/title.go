package preview

// title says in a few words what a code means, to follow the guest's name in a heading.
func (c Code) title(subject string) string {
	switch c {
	case CodeGuestMissing:
		return "there is no such guest"
	case CodeGuestWrongType:
		return "it is a guest of the other kind"
	case CodeNameMismatch:
		return "it has another name"
	case CodeDuplicate:
		return "two blocks name it"
	case CodeNodeOffline:
		return "its node does not answer"
	case CodeNoQuorum:
		return "the cluster has no quorum"
	case CodeUnsupportedVersion:
		return "this Proxmox VE is not supported"
	case CodeRunningInsideTarget:
		return "this is the machine that would be reinstalled"
	case CodeOperationInFlight:
		return "an operation is in progress"
	case CodeNeedsReconcile:
		return "an operation stopped half-way"
	case CodeParkingHoldsData:
		return "the parking guest still holds data"
	case CodeProtected:
		return "it is protected"
	case CodeLocked:
		return "it is locked"
	case CodeTaskRunning:
		return "a task works on it"
	case CodeIsTemplate:
		return "it is a template"
	case CodePendingChanges:
		return "it has pending changes"
	case CodeMountUnclassified:
		return subject + " cannot be classified"
	case CodeVolumeShared:
		return subject + " is used by another guest"
	case CodeGuestsUnseen:
		return "guests that may use its volumes cannot be seen"
	case CodeLinkedBaseInUse:
		return subject + " has linked clones"
	case CodeStorageUnavailable:
		return "storage " + subject + " is not available"
	case CodeNotPreservable:
		return subject + " cannot be preserved"
	case CodeIDMapDiffers:
		return "kept volumes would belong to other users"
	case CodeEraseMismatch:
		return subject + " is not what erase names"
	case CodeEraseSpent:
		return "the consent for " + subject + " is used up"
	case CodeNotRecreatable:
		return subject + " cannot be set again"
	case CodeSnapshotsPresent:
		return "it has snapshots"
	case CodeHAManaged:
		return "it is managed by HA"
	case CodeReplicated:
		return "it is replicated"
	case CodeProtectedBackup:
		return "it has a protected backup"
	case CodeBackupWindow:
		return "a backup job may start meanwhile"
	case CodeBackupLimit:
		return "there is no room for another protected backup"
	case CodeRootfsShrink:
		return "rootfs would shrink"
	case CodeSizeUnreadable:
		return "the size of " + subject + " is not certain"
	case CodeTemplateMissing:
		return "the template is not there"
	case CodeSpace:
		return "storage " + subject + " has too little space"
	case CodeNotesTooLong:
		return "its notes leave no room for the record"
	case CodeParkingUnavailable:
		return "there is no spare VMID"
	case CodeSystemKeyMissing:
		return "it has no disk " + subject
	case CodeNotADisk:
		return subject + " is never data"
	case CodeImageMissing:
		return "what " + subject + " is made from is not there"
	case CodeDiskSize:
		return "the size of " + subject + " does not do"
	case CodeNothingToBoot:
		return "it would have nothing to boot from"
	case CodeKeptInSnapshot:
		return "a snapshot holds " + subject
	case CodeSnapshotUnsupported:
		return "no snapshot of " + subject + " can be taken"
	case CodeTargetInUse:
		return subject + " is in use"
	case CodeSuspended:
		return "it is suspended to disk"
	case CodeAwaitingTrust:
		return "an earlier rebuild is not accepted yet"
	case CodeHoldsState:
		return "it holds the state of this run"
	case CodeNotAnInstance:
		return "it is no application container of ours"
	case CodeDuplicateIdentity:
		return "another guest is the same instance"
	case CodeContractDiffers:
		return "it is not what its contract says"
	case CodeDeletionProtected:
		return "it is protected against deletion"
	case CodeNodeRequired:
		return "nothing says where to make it"
	case CodeStorageAmbiguous:
		return "the storage for " + subject + " is not certain"
	case CodeImageUnresolvable:
		return "the image cannot be resolved"
	case CodeImageVolumeUnbacked:
		return "the image keeps data where no volume is"
	case CodeVolumeShrink:
		return subject + " would shrink"
	case CodeVolumeStorage:
		return subject + " cannot change its storage"
	case CodeVolumeUnconfigured:
		return subject + " is no longer configured"
	case CodePrivileges:
		return "rights are missing: " + subject
	}
	return "invalid"
}
