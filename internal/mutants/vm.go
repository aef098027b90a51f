package main

// ofVM breaks the precautions of the VM rebuild, in place and on a new VM, in every layer.
func ofVM() []mutant {
	const dir, pkg = "internal/recipe/", "./internal/recipe"
	const judge, judges = "internal/preview/", "./internal/preview"
	const port, ports = "internal/proxmox/", "./internal/proxmox"
	const inPlace, back, replaced = "^TestRebuildInPlace$", "^TestRebuildRollback$", "^TestReplace$"
	return []mutant{
		{
			breaks: "VM claim: whether it runs is asked then, and not taken from a list", file: dir + "stage_claim.go", pkg: pkg, test: "^TestRebuildRunStateIsThatOfTheMoment$",
			find: "	next.Running = running\n", put: "	_ = running\n",
		},
		{
			breaks: "VM rehearsal: one that is resumed is taken back", file: dir + "operation.go", pkg: pkg, test: "^TestFaultsVMRehearsal$",
			find: "Back: o.j.Back || o.j.Dry,", put: "Back: o.j.Back,",
		},
		{
			breaks: "VM rehearsal: one that is rolled back declines nothing", file: dir + "stage_claim.go", pkg: pkg, test: "^TestFaultsVMRehearsal$",
			find: "if o.j.Refused && !o.j.Dry {", put: "if o.j.Refused {",
		},
		{
			breaks: "VM prepare: a blank disk keeps the format of the old one", file: dir + "vm_operation.go", pkg: pkg, test: "^TestRebuildKeepsTheFormatOfTheDisk$",
			find: "ok && id.Storage == d.Storage && (format", put: "ok && false && (format",
		},
		{
			breaks: "VM prepare: the undo removes what it made", file: dir + "vm_prepare.go", pkg: pkg, test: "^TestRebuildRehearseOnly$",
			find: "			if err := o.removeParking(ctx); err != nil {\n				return err\n			}\n			return o.dropNewDisks(ctx)", put: "			return o.dropNewDisks(ctx)",
		},
		{
			breaks: "VM parking: one that holds a disk of somebody else's is not destroyed", file: dir + "vm_prepare.go", pkg: pkg, test: "^TestA3VMParkingThatHoldsSomethingElse$",
			find: "			return no(\"it holds %s (%s)\", d.Key, d.Source)", put: "			own = append(own, id)",
		},
		{
			breaks: "VM parking: one that owns a volume which only the storage knows is not destroyed", file: dir + "vm_prepare.go", pkg: pkg, test: "^TestA3VMParkingThatHoldsSomethingElse$",
			find: "		if !slices.Contains(own, row.ID) {", put: "		if false {",
		},
		{
			breaks: "VM snapshot: it is taken when the old system disks are off their keys", file: dir + "vm_operation.go", pkg: pkg, test: "^TestC11VMSnapshotSaysHowToReturnToIt$",
			find: "	stages = append(stages, o.detach())\n	if o.j.Snapshot != \"\" {\n		stages = append(stages, o.takeSnapshot())\n	}",
			put:  "	if o.j.Snapshot != \"\" {\n		stages = append(stages, o.takeSnapshot())\n	}\n	stages = append(stages, o.detach())",
		},
		{
			breaks: "VM snapshot: rollback_data returns to it", file: dir + "vm_settle.go", pkg: pkg, test: "^TestRebuildRollbackData$",
			find: "			if o.j.Return {", put: "			if false {",
		},
		{
			breaks: "VM detach: a removal that waits for the next stop is reverted", file: dir + "vm_disks.go", pkg: pkg, test: "^TestC13VMStartedBeforeTheDetach$",
			find: "	if err := o.host.Revert(ctx, o.guest, waiting, config.Digest); err != nil {", put: "	if err := error(nil); err != nil || config.Digest == \"never\" {",
		},
		{
			breaks: "VM detach: the undo gives the boot order back", file: dir + "vm_disks.go", pkg: pkg, test: back,
			find: "			set[d.Key] = was.With(d.Was)\n		}\n		return o.withBoot(c, set)", put: "			set[d.Key] = was.With(d.Was)\n		}\n		return set, nil",
		},
		{
			breaks: "VM detach: the undo gives disks back with their options", file: dir + "vm_disks.go", pkg: pkg, test: back,
			find: "set[d.Key] = was.With(d.Was)", put: "_, set[d.Key] = was, d.Was",
		},
		{
			breaks: "VM attach: the undo leaves a disk that somebody else put under the key", file: dir + "vm_disks.go", pkg: pkg, test: "^TestC13VMRollbackLeavesWhatSomebodyElsePutThere$",
			find: "	} else if d.Now != at.String() {", put: "	} else if false {",
		},
		{
			breaks: "VM start: the new machine waits until the old one with its identity is off", file: dir + "vm_settle.go", pkg: pkg, test: "^TestReplaceNeverRunsTwoMachinesWithOneIdentity$",
			find: "				if running, _, err := o.host.Running(ctx, o.guest); err != nil || running {\n					return errors.Join(fmt.Errorf(\"VM %d runs again: two machines",
			put:  "				if running, _, err := o.host.Running(ctx, o.guest); err != nil || running && false {\n					return errors.Join(fmt.Errorf(\"VM %d runs again: two machines",
		},
		{
			breaks: "VM start: the new system's health is asked for", file: dir + "vm_settle.go", pkg: pkg, test: "^TestRebuildTakenBackWhenNotHealthy$",
			find: "			return o.healthy(ctx)\n		},\n		Undo: o.stopNew,", put: "			return nil\n		},\n		Undo: o.stopNew,",
		},
		{
			breaks: "VM await trust: the parking VM goes", file: dir + "vm_settle.go", pkg: pkg, test: inPlace,
			find: "				if err := o.removeSpare(ctx); err != nil {", put: "				if err := error(nil); err != nil {",
		},
		{
			breaks: "VM await trust: onboot is as it was", file: dir + "vm_settle.go", pkg: pkg, test: inPlace,
			find: "				if err := o.restoreOnboot(ctx); err != nil {", put: "				if err := error(nil); err != nil {",
		},
		{
			breaks: "VM await trust: HA has it back", file: dir + "vm_settle.go", pkg: pkg, test: "^TestRebuildUnderHA$",
			find: "				if err := o.returnToHA(ctx); err != nil {", put: "				if err := error(nil); err != nil {",
		},
		{
			breaks: "VM accept: an old disk that a snapshot holds stays", file: dir + "vm_settle.go", pkg: pkg, test: "^TestC12VMOlderSnapshotKeepsTheOldDisk$",
			find: "				if names(s.Config, id) {", put: "				if false {",
		},
		{
			breaks: "VM accept: an old disk is deleted by its id, under whatever key it stands", file: dir + "vm_prepare.go", pkg: pkg, test: "^TestC13VMUnusedKeysThatWereUsedAgain$",
			find: "			if n.ID == id {\n				at = n.Key\n			}", put: "			if n.Key == \"unused0\" {\n				at, id = n.Key, n.ID\n			}",
		},
		{
			breaks: "VM accept: an old disk that is in use again is not deleted", file: dir + "vm_prepare.go", pkg: pkg, test: "^TestC13VMOldDiskThatIsInUseAgain$",
			find: "		if name, _, _ := guest.SplitKey(at); name != \"unused\" {", put: "		if false {",
			survives: "the port drops unused entries only, and says so as well",
		},
		{
			breaks: "VM replace: the old VM gets its name back", file: dir + "vm_replace.go", pkg: pkg, test: "^TestReplaceGivenUp$",
			find: "} else if had && c.Values[\"name\"] != was {", put: "} else if had && false {",
		},
		{
			breaks: "VM replace: the old VM is renamed, so that nobody takes it for the new one", file: dir + "vm_replace.go", pkg: pkg, test: replaced,
			find: "				return map[string]string{\"name\": old}, nil", put: "				return nil, nil",
		},
		{
			breaks: "VM replace: a backup job that followed goes back", file: dir + "vm_replace.go", pkg: pkg, test: "^TestA4ReplaceBackupJobFollows$",
			find: "o.host.RenameInBackupJob(ctx, id, o.parking.VMID, o.guest.VMID)", put: "error(nil)",
		},
		{
			breaks: "VM replace: a backup job follows", file: dir + "vm_replace.go", pkg: pkg, test: "^TestA4ReplaceBackupJobFollows$",
			find: "err := o.host.RenameInBackupJob(ctx, id, o.guest.VMID, o.parking.VMID)", put: "err := error(nil)",
		},
		{
			breaks: "VM replace: it is taken back only for a plan that saw it", file: dir + "vm.go", pkg: pkg, test: "^TestReplaceIsNotTakenBackByAPlanThatDidNotSeeIt$",
			find: "		if err := v.planSawReplacement(ctx, req, seen); err != nil {", put: "		if err := error(nil); err != nil {",
		},
		{
			breaks: "VM accept: the old VM owns nothing that was not announced, by the storages' lists", file: judge + "vm_reconcile.go", pkg: pkg, test: "^TestReplaceAcceptRefusesWhatWasNotAnnounced$",
			find: "&& !made && !c.announced(id) {", put: "&& !made && false {",
		},
		{
			breaks: "VM accept: the old VM owns nothing that was not announced, by its own keys", file: judge + "vm_reconcile.go", pkg: pkg, test: "^TestA6VMAcceptWhileAStorageIsGone$",
			find: "		if !c.announced(n.ID) {", put: "		if false {",
		},
		{
			breaks: "VM plan: one disk under two keys is told", file: judge + "vm_volumes.go", pkg: pkg, test: "^TestC14VMOneDiskUnderTwoKeys$",
			find: "len(doubled[v.id]) > 1", put: "len(doubled[v.id]) > 9",
		},
		{
			breaks: "VM plan: a disk that a snapshot uses is not handed over", file: judge + "vm_volumes.go", pkg: pkg, test: "^TestC14VMReplacedKeptDiskInASnapshot$",
			find: "	if name := j.heldBy(v.id); name != \"\" {\n		j.block(Blocker{\n			Code: CodeKeptInSnapshot", put: "	if name := j.heldBy(v.id); name != \"\" && false {\n		j.block(Blocker{\n			Code: CodeKeptInSnapshot",
		},
		{
			breaks: "VM plan: a cloud-init drive is never data", file: judge + "vm_volumes.go", pkg: judges, test: "^TestC10CloudInitIsNeverData$",
			find: "		case current && d.CloudInit:", put: "		case current && d.CloudInit && false:",
		},
		{
			breaks: "VM plan: a target that is in use is told", file: judge + "vm_disks.go", pkg: judges, test: "^TestEveryVMCodeInBothDirections$",
			find: "	if j.f.Target != guest.Absent {", put: "	if false {",
		},
		{
			breaks: "VM plan: saved memory is told", file: judge + "vm.go", pkg: judges, test: "^TestEveryVMCodeInBothDirections$",
			find: "	if saved || j.f.Guest.Config.Values[\"lock\"] == \"suspended\" {", put: "	if false && saved {",
		},
		{
			breaks: "VM port: a disk is not moved onto a key that is in use", file: port + "move.go", pkg: ports, test: "^TestMovedDiskRefusals$",
			find: "	if value, taken := to.Get(m.ToKey); taken {", put: "	if value, taken := to.Get(m.ToKey); taken && false {",
		},
		{
			breaks: "VM port: a move is bound to both digests", file: port + "move.go", pkg: ports, test: "^TestMovedDiskIsBoundToBothDigests$",
			find: `"digest": m.FromDigest, "target-digest": m.ToDigest,`, put: "",
		},
		{
			breaks: "VM port: a create names no existing disk", file: port + "vm.go", pkg: ports, test: "^TestCreateVMRefusesWhatItNeverMeans$",
			find: "guest.IsDiskKey(key) && !newDisk.MatchString(value)", put: "guest.IsDiskKey(key) && false && !newDisk.MatchString(value)",
		},
		{
			breaks: "VM port: a create starts nothing", file: port + "vm.go", pkg: ports, test: "^TestCreateVMRefusesWhatItNeverMeans$",
			find: `case key == "start" && value != "0", key`, put: `case key`,
		},
		{
			breaks: "VM port: a change is bound to the digest", file: port + "vm.go", pkg: ports, test: "^TestChangeVM$",
			find: `	params["digest"] = digest` + "\n", put: "",
		},
		{
			breaks: "VM port: removing an unused entry, which destroys, is not sent as a change", file: port + "vm.go", pkg: ports, test: "^TestChangeVM$",
			find: "		if strings.HasPrefix(key, \"unused\") {", put: "		if false {",
		},
		{
			breaks: "VM port: a revert is bound to the digest", file: port + "vm.go", pkg: ports, test: "^TestC13VMRemovalThatWaitsIsSeenAndReverted$",
			find: `"revert": strings.Join(keys, ","), "digest": digest`, put: `"revert": strings.Join(keys, ",")`,
		},
		{
			breaks: "VM port: current is no snapshot", file: port + "vm.go", pkg: ports, test: "^TestSnapshotOfAVM$",
			find: `if name == "" || name == "current" {`, put: `if name == "" {`,
		},
		{
			breaks: "VM port: a backup job keeps the guests that it names beside", file: port + "jobs.go", pkg: ports, test: "^TestRenameInBackupJob$",
			find: "			list = append(list, have.String())\n", put: "",
		},
	}
}
