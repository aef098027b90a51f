package main

// ofInstance breaks what is done to application containers.
func ofInstance() []mutant {
	const dir, pkg = "internal/recipe/", "./internal/recipe"
	return []mutant{
		{
			breaks: "record: the environment is in none", file: dir + "operation.go", pkg: pkg, test: "^TestC8InstanceUpdate$",
			find: "k != \"description\" && k != \"env\"", put: "k != \"description\"",
		},
		{
			breaks: "guard: both environments wait on the parking guest", file: dir + "instance_environment.go", pkg: pkg, test: "^TestC8InstanceUpdate$",
			find: "	if _, _, stored := o.split(config.Values[\"env\"]); stored {", put: "	if _, _, stored := o.split(config.Values[\"env\"]); stored || true {",
		},
		{
			breaks: "create: neither environment nor entrypoint is passed to it", file: dir + "instance_record.go", pkg: pkg, test: "^TestC8ImageWithoutEnvironment$",
			find: "params[\"unprivileged\"] = app.Archive, \"unmanaged\", app.Arch, \"1\"", put: "params[\"unprivileged\"], params[\"env\"] = app.Archive, \"unmanaged\", app.Arch, \"1\", \"STALE=1\"",
		},
		{
			breaks: "configure: the environment comes before the first start", file: dir + "instance_volumes.go", pkg: pkg, test: "^TestC8InstanceUpdate$",
			find: "return append(stages, o.configureApp())", put: "return stages",
		},
		{
			breaks: "last look: a setting that was changed meanwhile is not lost", file: dir + "stage_swap.go", pkg: pkg, test: "^TestInstanceChangedMeanwhileIsTakenBack$",
			find: "errors.Join(o.compare(config, \"since the plan\"), o.sameKeys(config))", put: "o.compare(config, \"since the plan\")",
		},
		{
			breaks: "start: an unhealthy update that shall wait does not go back", file: dir + "instance_apply.go", pkg: pkg, test: "^TestInstanceHoldWaitsForADecision$",
			find: "o.j.App.Was != nil && !o.j.App.Hold &&", put: "o.j.App.Was != nil &&",
		},
		{
			breaks: "rehearsal: an application that ends by itself has started", file: dir + "stage_rehearse.go", pkg: pkg, test: "^TestInstanceApplicationThatEnds$",
			find: "!running && o.j.App == nil {", put: "!running {",
		},
		{
			breaks: "way back: a key that a return left behind does not count", file: dir + "rollback.go", pkg: pkg, test: "^TestB4KeyLeftBehindIsNotParked$",
			find: "_, waits, err := o.volumeSeen(ctx, there, o.parking, key); err != nil || waits {", put: "id, _, err := o.volumeSeen(ctx, there, o.parking, key); err != nil || id != (guest.VolumeID{}) {",
		},
		{
			breaks: "archives: one that another container is made from stays", file: dir + "instance_archives.go", pkg: pkg, test: "^TestInstanceArchiveInUseStays$",
			find: "return nil // in use, and nothing to report", put: "continue",
		},
		{
			breaks: "install: what somebody else made under the VMID is not taken back", file: dir + "instance_install.go", pkg: pkg, test: "^TestInstanceInstallTakesBackOnlyItsOwn$",
			find: "state == madeNothing || state == madeByOthers {", put: "state == madeNothing {",
		},
		{
			breaks: "modify: an environment that is not healthy is put back", file: dir + "instance_modify.go", pkg: pkg, test: "^TestInstanceUnhealthySettingsAreTakenBack$",
			find: "		return m.takeBack(ctx, err)", put: "		return err",
		},
		{
			breaks: "resume: an environment that no record holds must be given again", file: dir + "instance_environment.go", pkg: pkg, test: "^TestInstanceResumeWithoutEnvironment$",
			find: "		if _, there := given[name]; !there {", put: "		if _, there := given[name]; !there && false {",
		},
	}
}
