package main

// ofFacts breaks what is read and judged, and the checker of the layout.
func ofFacts() []mutant {
	const notes, preview = "internal/guest/notes.go", "./internal/preview"
	return []mutant{
		{
			breaks: "notes: a block of another guest is a stale copy", file: notes, pkg: "./internal/guest", test: "^TestC6CopiesOfBlocksAreForeign$",
			find: "return id != 0 && f.holder() != id", put: "return false",
		},
		{
			breaks: "notes: of two blocks none is believed", file: notes, pkg: "./internal/guest", test: "^TestProblemsOfBlocks$",
			find: "case count[f.kind()] > 1:", put: "case count[f.kind()] > 1 && false:",
		},
		{
			breaks: "plan: spent consent does not erase again", file: "internal/preview/consent.go", pkg: preview, test: "^TestConsentIsSpentByTheOperationThatUsedIt$",
			find: "spent[key] == named && key != \"rootfs\":", put: "spent[key] == named && key == \"\":",
		},
		{
			breaks: "plan: consent for another volume under the same key erases nothing", file: "internal/preview/consent.go", pkg: preview, test: "^TestEveryCodeInBothDirections$",
			find: "case named != anyVolume && named != v.Volume:", put: "case named != anyVolume && named != v.Volume && false:",
		},
		{
			breaks: "close: refused while the parking guest holds what nobody names", file: "internal/preview/reconcile_actions.go", pkg: preview, test: "^TestCloseRefusesWhileParkingHoldsData$",
			find: "	if len(held) > 0 {", put: "	if len(held) > 0 && false {",
		},
		{
			breaks: "close: what cannot be seen counts as held", file: "internal/preview/reconcile_actions.go", pkg: preview, test: "^TestCloseRefusesWhileParkingHoldsData$",
			find: "	if len(unseen) > 0 {", put: "	if len(unseen) > 0 && false {",
		},
		{
			breaks: "resume: refused while volumes are not where the record says", file: "internal/preview/reconcile_actions.go", pkg: preview, test: "^TestResumeRefusesWhenVolumesAreNotWhereTheRecordSays$",
			find: "v.set(DataUnknown, MountDropped, \"it is not where the record says\")\n		c.block(Blocker{", put: "v.set(DataUnknown, MountDropped, \"it is not where the record says\")\n		_ = (Blocker{",
		},
		{
			breaks: "rollback: refused past the point without a backup", file: "internal/preview/reconcile_actions.go", pkg: "./internal/recipe", test: "^TestRollbackWithoutArchiveIsRefused$",
			find: "	if c.r.Backup == \"\" {\n		c.refuse", put: "	if c.r.Backup == \"\" && false {\n		c.refuse",
			survives: "the recipe refuses it once more, before it changes anything",
		},
		{
			breaks: "program: a closed pipe does not kill the provider", file: "main.go", pkg: "./internal/provider", test: "^TestKilledCLILeavesAProviderThatFinishesAndEnds$",
			find: "	signal.Ignore(syscall.SIGPIPE)\n", put: "	signal.Reset(syscall.SIGPIPE)\n",
		},
		{
			breaks: "program: an orphan ends by itself", file: "main.go", pkg: "./internal/provider", test: "^TestKilledCLILeavesAProviderThatFinishesAndEnds$",
			find: "go pvrx.ExitWithParent(time.Second, os.Exit)", put: "go pvrx.ExitWithParent(time.Hour, os.Exit)",
		},
		{
			breaks: "layout: a rule for a package covers the package itself", file: "internal/archtest/check.go", pkg: "./internal/archtest", test: "^TestCheck$",
			find: "return path == folder || strings.HasPrefix(path, folder+\"/\")", put: "return strings.HasPrefix(path, folder+\"/\")",
		},
		{
			breaks: "layout: nested modules are left out", file: "internal/archtest/read.go", pkg: "./internal/archtest", test: "^TestRead$",
			find: "	case err == nil:\n		return fs.SkipDir", put: "	case err == nil:\n		return nil",
		},
	}
}
