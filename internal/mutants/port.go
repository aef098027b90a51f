package main

// ofPort breaks the port to Proxmox.
func ofPort() []mutant {
	const dir, pkg = "internal/proxmox/", "./internal/proxmox"
	const guards, refused, moves, foreign = "^TestGuardRefusesWhatWasNotAnnounced$", "^TestRefusedRequestsAreNotSent$",
		"^TestB4MovesThatWouldEndInNobodysConfigurationAreNotSent$", "^TestC1ForeignAndDoubleVolumesAreNotMoved$"
	return []mutant{
		{
			breaks: "port: a DELETE that was not announced is not sent", file: dir + "guard.go", pkg: pkg, test: guards,
			find: "if !slices.Contains(r.announced, r.path) {", put: "if false {",
		},
		{
			breaks: "port: delete= of a key that was not announced is not sent", file: dir + "guard.go", pkg: pkg, test: guards,
			find: "if !slices.Contains(r.announced, key) {", put: "if false {",
		},
		{
			breaks: "port: unreferenced disks are never destroyed", file: dir + "guard.go", pkg: pkg, test: guards,
			find: `"destroy-unreferenced-disks", "force",`, put: `"force",`,
		},
		{
			breaks: "port: nothing is forced", file: dir + "guard.go", pkg: pkg, test: refused,
			find: `"destroy-unreferenced-disks", "force",`, put: `"destroy-unreferenced-disks",`,
		},
		{
			breaks: "port: a lock is never skipped", file: dir + "guard.go", pkg: pkg, test: guards,
			find: `"skiplock", `, put: "",
		},
		{
			breaks: "port: an HA resource is removed with purge=0 only", file: dir + "guard.go", pkg: pkg, test: guards,
			find: `case resource && value != "0":`, put: `case resource && value != "0" && false:`,
		},
		{
			breaks: "port: no guest is purged", file: dir + "guard.go", pkg: pkg, test: guards,
			find: "case !resource && set:", put: "case !resource && set && false:",
		},
		{
			breaks: "port: a create never names an existing volume", file: dir + "create.go", pkg: pkg, test: refused,
			find: "!newVolume.MatchString(value):", put: "!newVolume.MatchString(value) && false:",
		},
		{
			breaks: "port: a restore makes no mount points", file: dir + "create.go", pkg: pkg, test: refused,
			find: "		if mountKey.MatchString(key) {", put: "		if false {",
		},
		{
			breaks: "port: a restore without rootfs is not sent", file: dir + "create.go", pkg: pkg, test: refused,
			find: `if archive == "" || params["rootfs"] == "" {`, put: `if archive == "" {`,
		},
		{
			breaks: "port: rootfs of an existing container is never set", file: dir + "configwrite.go", pkg: pkg, test: refused,
			find: `root && ref.Kind == guest.KindContainer {`, put: `root && false {`,
		},
		{
			breaks: "port: an unused volume is destroyed by its id only", file: dir + "configwrite.go", pkg: pkg, test: refused,
			find: "		if strings.HasPrefix(key, \"unused\") {", put: "		if false {",
		},
		{
			breaks: "port: a change of a configuration carries its digest", file: dir + "configwrite.go", pkg: pkg, test: "^TestClaimIsCompareAndSwap$",
			find: `params["digest"] = digest`, put: `_ = digest`,
		},
		{
			breaks: "port: an unused key that holds another volume is not dropped", file: dir + "configwrite.go", pkg: pkg, test: "^TestDropUnusedDestroysOnlyThatVolume$",
			find: "		if e := holds(op, ref, config, key, volume); e != nil {", put: "		if e := holds(op, ref, config, key, volume); e != nil && false {",
		},
		{
			breaks: "port: a move carries both digests", file: dir + "move.go", pkg: "./internal/recipe", test: "^TestEveryChangeCarriesADigest$",
			find: `"digest": m.FromDigest, "target-digest": m.ToDigest,`, put: "",
		},
		{
			breaks: "port: a key that holds another volume is not moved", file: dir + "move.go", pkg: pkg, test: foreign,
			find: "if e := holds(op, m.From, from, m.FromKey, m.Volume); e != nil {", put: "if e := holds(op, m.From, from, m.FromKey, m.Volume); e != nil && false {",
		},
		{
			breaks: "port: a volume of another guest is not moved", file: dir + "move.go", pkg: pkg, test: foreign,
			find: "return h.checkOwner(ctx, op, m)", put: "return nil",
		},
		{
			breaks: "port: nothing is moved into a protected container", file: dir + "move.go", pkg: pkg, test: moves,
			find: "on == \"1\" && m.To.Kind == guest.KindContainer {", put: "on == \"1\" && false {",
		},
		{
			breaks: "port: nothing is moved onto a taken key", file: dir + "move.go", pkg: pkg, test: "^TestMoveOntoATakenKeyIsNotSent$",
			find: "if value, taken := to.Get(m.ToKey); taken {", put: "if value, taken := to.Get(m.ToKey); taken && false {",
		},
		{
			breaks: "port: nothing is moved between configurations that changed", file: dir + "move.go", pkg: pkg, test: foreign,
			find: "if from.Digest != m.FromDigest || to.Digest != m.ToDigest {", put: "if false {",
		},
		{
			breaks: "port: a move that warns has failed", file: dir + "move.go", pkg: pkg, test: "^TestMoveWithWarningsFailed$",
			find: "if len(done.warnings) > 0 {", put: "if false {",
		},
		{
			breaks: "port: a destroy that would take more than was announced is not sent", file: dir + "destroy.go", pkg: pkg, test: "^TestDestroyTakesOnlyWhatWasAnnounced$",
			find: "if !slices.Contains(announced, n.ID) && mayOwn(n.ID, r.ref.VMID) {", put: "if false {",
		},
		{
			breaks: "port: a destroy is done when the configuration is gone", file: dir + "destroy.go", pkg: pkg, test: "^TestDestroyIsDoneWhenTheConfigurationIsGone$",
			find: "return done.warnings, h.seenGone(ctx, r, done.task)", put: "return done.warnings, nil",
		},
		{
			breaks: "port: a change whose answer was lost is not sent again", file: dir + "request.go", pkg: pkg, test: "^TestMoveWhoseAnswerIsLostIsFoundAndNotRepeated$",
			find: "if err.Kind != guest.OutcomeLocked || time", put: "if err.Kind != guest.OutcomeLocked && err.Kind != guest.OutcomeUnknown || time",
		},
		{
			breaks: "port: a change is not sent again after a login", file: dir + "request.go", pkg: pkg, test: "^TestNoChangeIsRepeatedAfterALogin$",
			find: "return h.patiently(ctx, r, func() *Error { return h.exchange(ctx, r, nil) })",
			put:  "return h.patiently(ctx, r, func() *Error {\n		e := h.exchange(ctx, r, nil)\n		if e != nil && e.Status == http.StatusUnauthorized {\n			e = h.exchange(ctx, r, nil)\n		}\n		return e\n	})",
		},
		{
			breaks: "port: a cancellation does not tear down a change", file: dir + "request.go", pkg: pkg, test: "^TestCancellationDoesNotTearDownAChange$",
			find: "sendCtx = context.WithoutCancel(ctx)", put: "sendCtx = ctx",
		},
		{
			breaks: "port: only known sentences say that nothing was done", file: dir + "judge.go", pkg: pkg, test: "^TestOnlyKnownWordsAreHarmless$",
			find: "	return guest.OutcomeUnknown\n}\n\n// verdicts is", put: "	return guest.OutcomeRefused\n}\n\n// verdicts is",
		},
		{
			breaks: "port: a task that ends without a word is unknown", file: dir + "task.go", pkg: pkg, test: "^TestB6KilledCreateIsUnknown$",
			find: "failed.Kind = guest.OutcomeUnknown\n		failed.Words = \"the task ended without", put: "failed.Kind = guest.OutcomeRefused\n		failed.Words = \"the task ended without",
		},
		{
			breaks: "port: a backup prunes nothing", file: dir + "backup.go", pkg: pkg, test: "^TestA5BackupPrunesNothing$",
			find: `"remove": "0", `, put: "",
		},
		{
			breaks: "port: a backup is protected", file: dir + "backup.go", pkg: pkg, test: "^TestA5BackupPrunesNothing$",
			find: `"protected": "1",`, put: "",
		},
	}
}
