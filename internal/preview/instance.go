package preview

import (
	"slices"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// Instance judges what is due for an application container: an install, an update, changes to the container that is there,
// the adoption of one that was restored, or nothing (Operation 0). It is total: whatever the facts are, every volume has its
// fates and every reason not to go on is named. Values of the environment are in nothing that it returns.
func Instance(f Facts, w Want) Preview {
	i := newInstance(f, w)
	op := i.judgeAll()
	p := i.preview(op)
	p.Changes = i.changes
	p.Summary = i.line(p)
	return p
}

// instance is the judge of an application container.
type instance struct {
	*judge
	want     InstanceWant
	contract *guest.Contract // what it is compared with: its own, or the one that it was restored with; its App is never nil
	restored bool            // that one was written for another VMID
	differs  []string        // why the container is not what its contract says, in words
	keys     []string        // and which keys that is about
	unsure   bool            // what is due cannot be told
	about    [2]int          // how many blockers and warnings there were before the configuration was compared, which an adoption does not look at
	changes  []Change
	work     Work
}

func newInstance(f Facts, w Want) *instance {
	i := &instance{}
	if w.Instance != nil {
		i.want = *w.Instance
	}
	if w.Rootfs.Size == 0 && f.Presence == guest.Absent {
		w.Rootfs.Size = defaultRootfs
	}
	i.judge = newJudge(f, w)
	own, foreign := f.Journal.Contract, f.Journal.Foreign
	switch {
	case own != nil && own.App != nil && own.Guest == i.id():
		i.contract = own
	case own == nil && foreign != nil && foreign.App != nil:
		i.contract, i.restored = foreign, true
	}
	return i
}

// defaultRootfs is the size of a root file system that nothing was said about.
const defaultRootfs = 4 * guest.GiB

// app is what the contract says; the zero value when there is none.
func (i *instance) app() guest.Application {
	if i.contract == nil {
		return guest.Application{}
	}
	return *i.contract.App
}

// judgeAll asks every question in its order and answers what is due.
func (i *instance) judgeAll() Operation {
	there := i.judgeReach()
	i.judgeRecords()
	i.judgeImport()
	switch {
	case i.f.Presence == guest.Absent && i.operating():
		i.unsure = true
		return i.recorded()
	case i.f.Presence == guest.Absent:
		i.judgeInstall()
		return OpInstall
	case !there || !i.compare():
		i.unsure = true
		return i.recorded()
	}
	op := OpUpdate
	if i.w.Operation == "" { // else it is under way, and what was due has been judged
		op = i.due()
	}
	switch op {
	case OpInstall, OpUpdate:
		i.judgeUpdate()
	case OpModify:
		i.judgeModification()
	case OpAdopt:
		i.judgeAdoption()
	case OpReinstall, OpGrow, OpRebuild, OpReplace, OpRemove, OpResume, OpRollback, OpRollbackData, OpAccept, OpClose:
	}
	return op
}

// compare looks at the container that is there: whose it is, how it differs from its contract, and what is to be changed. It
// reports whether there is anything that can be compared at all.
func (i *instance) compare() bool {
	i.collect()
	for n := range i.volumes {
		i.volumes[n].keep()
	}
	if !i.judgeDoor() {
		return false
	}
	if i.w.Operation != "" {
		return true
	}
	i.protectConfigured()
	i.findDifferences()
	i.about = [2]int{len(i.blockers), len(i.warnings)}
	i.findChanges()
	return true
}

// recorded is the operation that the record of one in progress names; without one, what would be asked for.
func (i *instance) recorded() Operation {
	for _, r := range i.records() {
		if op, known := ParseOperation(r.Kind); known {
			return op
		}
	}
	if i.want.Create {
		return OpInstall
	}
	return OpUpdate
}

// due decides between the operations on a container that is there. A difference from the contract is reported and never
// acted upon: adopt = true records it.
func (i *instance) due() Operation {
	switch {
	case i.restored, i.w.Adopt && len(i.differs) > 0:
		i.changes, i.work, i.blockers, i.warnings = nil, Work{}, i.blockers[:i.about[0]], i.warnings[:i.about[1]]
		return OpAdopt
	case slices.ContainsFunc(i.changes, func(c Change) bool { return c.Takes == TakesRootfs }):
		i.judgeContract()
		return OpUpdate
	case len(i.changes) > 0:
		i.judgeContract()
		return OpModify
	}
	for _, d := range i.differs {
		i.warn("%s", d)
	}
	return 0
}

// installDue reports whether another install is wanted than the one that is there. One that was rolled back is not tried
// again until image, triggers or storage change.
func (i *instance) installDue() bool {
	wanted := i.w.Install()
	if i.contract.Installed.Same(wanted) {
		return false
	}
	if slices.Contains(i.contract.Declined, wanted.Hash()) {
		i.warn("%s: the update to %s was rolled back and is not tried again until image or triggers change; it runs %s", i.label(), i.wantedImage(), i.installedImage())
		return false
	}
	return true
}
