package main

// ofRecords breaks what the recipe believes, and what it removes.
func ofRecords() []mutant {
	const dir, pkg = "internal/recipe/", "./internal/recipe"
	return []mutant{
		{
			breaks: "record: notes are written by compare and swap", file: dir + "record.go", pkg: pkg, test: "^TestEveryChangeCarriesADigest$",
			find: "err = o.host.SetConfig(ctx, ref, set, remove, config.Digest)", put: "err = o.host.SetConfig(ctx, ref, set, remove, \"\")",
		},
		{
			breaks: "record: keys are changed by compare and swap", file: dir + "edit.go", pkg: pkg, test: "^TestEveryChangeCarriesADigest$",
			find: "last = o.host.SetConfig(ctx, ref, set, remove, config.Digest)", put: "last = o.host.SetConfig(ctx, ref, set, remove, \"\")",
		},
		{
			breaks: "record: of two runs that resume one operation only one goes on", file: dir + "record.go", pkg: pkg, test: "^TestFaultsRacesTwoResumes$",
			find: "if fenced && there.Runner != o.runner && there.Runner != o.takeover {", put: "if false {",
		},
		{
			breaks: "record: another operation's record is never written over", file: dir + "record.go", pkg: pkg, test: "^TestRecordOfAnotherOperationStops$",
			find: "if there == nil || there.Operation != next.Operation {", put: "if there == nil {",
		},
		{
			breaks: "record: one that was wiped stops the run", file: dir + "record.go", pkg: pkg, test: "^TestRecordOfAnotherOperationStops$",
			find: "if there == nil && !fenced {", put: "if there == nil {",
		},
		{
			breaks: "removable: the parking guest names nothing but its root file system", file: dir + "removable.go", pkg: pkg, test: "^TestA3RemovableSaysNo$",
			find: "			return no(\"it holds %s (%s)\", m.Key, m.Source)\n", put: "",
		},
		{
			breaks: "removable: no pending changes", file: dir + "removable.go", pkg: pkg, test: "^TestA3RemovableSaysNo$",
			find: "if len(changes) > 0 {", put: "if len(changes) > 0 && false {",
		},
		{
			breaks: "removable: no snapshots", file: dir + "removable.go", pkg: pkg, test: "^TestA3RemovableSaysNo$",
			find: "if len(snapshots) > 0 {", put: "if len(snapshots) > 0 && false {",
		},
		{
			breaks: "removable: the storages show nothing else of it", file: dir + "removable.go", pkg: pkg, test: "^TestA3RemovableSaysNo$",
			find: "if row.ID != rootfs {", put: "if row.ID != rootfs && false {",
		},
		{
			breaks: "removable: its root file system is seen, as proof that we can see", file: dir + "removable.go", pkg: pkg, test: "^TestA3RemovableSaysNo$",
			find: "if !seen && !o.j.Leaving {", put: "if !seen && !o.j.Leaving && false {",
		},
		{
			breaks: "removable: a storage that does not answer is unknown", file: dir + "removable.go", pkg: pkg, test: "^TestA3RemovableSaysNo$",
			find: "			if touched[s.Name] {\n				return nil, fmt.Errorf(\"storage %s is not active", put: "			if false {\n				return nil, fmt.Errorf(\"storage %s is not active",
		},
		{
			breaks: "undo: a parking guest that is not ours is left alone", file: dir + "removable.go", pkg: pkg, test: "^TestParkingVMIDTakenBySomebody$",
			find: "	if !o.ours(config, o.parking.VMID) {\n		return o.forgetParking", put: "	if false {\n		return o.forgetParking",
		},
	}
}
