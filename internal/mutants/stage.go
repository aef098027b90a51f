package main

// ofStage breaks the engine.
func ofStage() []mutant {
	const file, pkg = "internal/stage/run.go", "./internal/stage"
	return []mutant{
		{
			breaks: "engine: a failed undo stops the chain", file: file, pkg: pkg, test: "^TestA3FailedUndoStopsTheChain$",
			find: "if err := o.Stages[k].Undo(ctx); err != nil {", put: "if err := o.Stages[k].Undo(ctx); err != nil && false {",
		},
		{
			breaks: "engine: what cannot be recorded is not done", file: file, pkg: pkg, test: "^TestRunTurnsBeforeThePointAndStopsPastIt$",
			find: "if err := o.write(ctx, o.position(k)); err != nil {", put: "if err := o.write(ctx, o.position(k)); err != nil && false {",
		},
		{
			breaks: "engine: what cannot be recorded is not done past the point either", file: file, pkg: pkg, test: "^TestRunTurnsBeforeThePointAndStopsPastIt$",
			find: "			err := o.write(ctx, o.position(k))\n			if err != nil {", put: "			err := o.write(ctx, o.position(k))\n			if err != nil && false {",
		},
		{
			breaks: "engine: an undo is recorded before it is done", file: file, pkg: pkg, test: "^TestUndoIsRecordedFirst$",
			find: "if err := o.write(ctx, at); err != nil {\n			return o.stuck(ctx, at, errors.Join(cause, fmt.Errorf(\"cannot record the undo",
			put:  "if err := error(nil); err != nil {\n			return o.stuck(ctx, at, errors.Join(cause, fmt.Errorf(\"cannot record the undo",
		},
		{
			breaks: "engine: a cancelled operation begins no further stage", file: file, pkg: pkg, test: "^TestCancelledBetweenStagesGoesBack$",
			find: "if err := ctx.Err(); err != nil {\n			return o.back(", put: "if err := ctx.Err(); err != nil && false {\n			return o.back(",
		},
		{
			breaks: "engine: the final stage does not hear a cancellation", file: file, pkg: pkg, test: "^TestPastThePointNoCancellationIsHeard$",
			find: "	ctx, cancel := o.detached(caller, o.FinishTime)", put: "	ctx, cancel := context.WithTimeout(caller, o.FinishTime)",
		},
		{
			breaks: "engine: what runs past the point does not hear a cancellation", file: file, pkg: pkg, test: "^TestPastThePointNoCancellationIsHeard$",
			find: "detached, cancel := o.detached(caller, o.FinishTime)", put: "detached, cancel := context.WithTimeout(caller, o.FinishTime)",
		},
		{
			breaks: "engine: an undo does not hear a cancellation", file: file, pkg: pkg, test: "^TestPastThePointNoCancellationIsHeard$",
			find: "ctx, cancel := o.detached(caller, o.UndoTime)\n	defer cancel()\n	for ; k >= 0; k-- {", put: "ctx, cancel := context.WithTimeout(caller, o.UndoTime)\n	defer cancel()\n	for ; k >= 0; k-- {",
		},
		{
			breaks: "engine: a final stage that did half has crossed the point", file: file, pkg: pkg, test: "^TestRunTurnsBeforeThePointAndStopsPastIt$",
			find: "	case None:\n		return o.back(caller, k, err), false\n	case Partly, Unclear:\n", put: "	case None, Partly, Unclear:\n		return o.back(caller, k, err), false\n",
		},
		{
			breaks: "engine: nothing past the point is taken back", file: file, pkg: pkg, test: "^TestTakeBackRefusesPastThePoint$",
			find: "	if k > final {\n		return Report{", put: "	if k > final && false {\n		return Report{",
		},
		{
			breaks: "engine: a final stage whose effect is seen is not taken back", file: file, pkg: pkg, test: "^TestTakeBackRefusesPastThePoint$",
			find: "if effect != None {", put: "if effect != None && false {",
		},
		{
			breaks: "engine: an operation that begins past the point is never taken back", file: file, pkg: pkg, test: "^TestPastOperationNeverUndoes$",
			find: "	if o.Past {\n", put: "	if o.Past && false {\n",
		},
		{
			breaks: "engine: a look that fails is no look", file: file, pkg: pkg, test: "^TestALookThatFailsIsUnclear$",
			find: "		return Unclear, err\n", put: "		return effect, nil\n",
		},
	}
}
