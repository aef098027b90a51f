package preview

import (
	"maps"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// hiddenEnvironment is what some servers show of an environment to those who may not read it; others leave the key out.
const hiddenEnvironment = "<hidden>"

// environment is the live one; seen is false when this login may not read it, which never counts as empty.
func (i *instance) environment() (variables map[string]string, seen bool) {
	text, set := i.f.Guest.Config.Get("env")
	if text == hiddenEnvironment || !set && !i.f.EnvSeen {
		return nil, false
	}
	return guest.ReadEnvironment(text), true
}

// mirror is the id of the contract that the environment carries, "" for none.
func (i *instance) mirror() (id string, seen bool) {
	variables, seen := i.environment()
	return variables[guest.ContractVariable], seen
}

// awaitedEnvironment reports whether the environment that goes with the contract waits for a restart.
func (i *instance) awaitedEnvironment() bool {
	return slices.ContainsFunc(i.f.Guest.Pending, func(c guest.Change) bool {
		return c.Key == "env" && !c.Delete && i.contract.Instance != "" && guest.ReadEnvironment(c.Value)[guest.ContractVariable] == i.contract.Instance
	})
}

// wantedEnvironment are the variables that the configuration sets. The contract's own is never among them.
func (i *instance) wantedEnvironment() map[string]string {
	wanted := maps.Clone(i.want.Environment)
	delete(wanted, guest.ContractVariable)
	return wanted
}

// strayVariables says which variables somebody added or took away; what the configuration sets is a change to make.
func (i *instance) strayVariables() string {
	live, seen := i.environment()
	if !seen || i.awaitedEnvironment() || live[guest.ContractVariable] != i.contract.Instance {
		return "" // not to be seen, or of another contract altogether, which judgeMirror says
	}
	ours := i.wantedEnvironment()
	recorded := map[string]bool{guest.ContractVariable: true}
	for _, name := range slices.Concat(i.app().Own, i.app().Theirs) {
		recorded[name] = true
	}
	var words []string
	for _, name := range sortedKeys(live) {
		if _, wanted := ours[name]; !wanted && !recorded[name] {
			words = append(words, name+" was added")
		}
	}
	for _, name := range sortedKeys(recorded) {
		_, there := live[name]
		_, wanted := ours[name]
		if !there && !wanted && name != guest.ContractVariable && !slices.Contains(i.app().Own, name) {
			words = append(words, name+" is gone")
		}
	}
	if len(words) == 0 {
		return ""
	}
	return "env (" + strings.Join(words, ", ") + ")"
}

// changeEnvironment finds variables to set or to take away. Values are compared where they can be seen, those of write-only
// ones by their version alone; only names are told. A variable of ours that covered one of the image's returns to the
// image's value, which only a new root file system knows.
func (i *instance) changeEnvironment() {
	live, seen := i.environment()
	app, wanted := i.app(), i.wantedEnvironment()
	var set, removed, back []string
	for _, name := range sortedKeys(wanted) {
		has, there := live[name]
		switch {
		case slices.Contains(i.want.WriteOnly, name):
			if !slices.Contains(app.Own, name) || i.want.EnvVersion != app.EnvVersion {
				set = append(set, name)
			}
		case seen && (!there || has != wanted[name]), !seen && !slices.Contains(app.Own, name):
			set = append(set, name)
		}
	}
	for _, name := range slices.Sorted(slices.Values(app.Own)) {
		_, still := wanted[name]
		switch {
		case still:
		case slices.Contains(app.Theirs, name):
			back = append(back, name)
		default:
			removed = append(removed, name)
		}
	}
	if renewed := i.want.EnvVersion != app.EnvVersion; len(set)+len(removed) > 0 || renewed || i.awaitedEnvironment() {
		i.change("environment", "", environmentWords(set, removed, renewed), TakesRestart)
		if seen { // else the right to write it is missing as well
			i.work.Environment = i.mergedEnvironment(live, wanted)
		}
	}
	if len(back) > 0 {
		i.change("environment", strings.Join(back, ", "), "the image's own "+strings.Join(back, ", "), TakesRootfs)
	}
}

// mergedEnvironment is the live environment with what the configuration sets and without what it set before.
func (i *instance) mergedEnvironment(live, wanted map[string]string) map[string]string {
	merged := maps.Clone(live)
	if merged == nil {
		merged = map[string]string{}
	}
	for _, name := range i.app().Own {
		delete(merged, name)
	}
	delete(merged, guest.ContractVariable)
	maps.Copy(merged, wanted)
	return merged
}

func environmentWords(set, removed []string, renewed bool) string {
	var words []string
	if len(set) > 0 {
		words = append(words, list(set)+" set")
	}
	if len(removed) > 0 {
		words = append(words, list(removed)+" removed")
	}
	switch {
	case len(words) > 0:
		return strings.Join(words, ", ")
	case renewed:
		return "another version of the write-only variables"
	}
	return "waits for a restart"
}
