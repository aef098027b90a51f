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
	i.judgeDoor()
	op := i.decideOperation()
	p := i.preview(op)
	p.Changes = i.changes
	p.Summary = i.instanceSummary(p)
	return p
}

// InstanceRemoval judges the removal of an application container: what is erased with it, what stays, and why not.
func InstanceRemoval(f Facts, w Want) Preview {
	i := newInstance(f, w)
	i.judgeDoor()
	p := i.preview(OpRemove)
	p.Summary = i.instanceSummary(p)
	return p
}

// NeedsInstance lists the rights that what is due for an application container uses, and with them every path that must be
// asked for before Instance can answer.
func NeedsInstance(f Facts, w Want) []Need {
	_, _ = f, w
	return nil
}

// NeedsInstanceRemoval lists the rights that InstanceRemoval asks for.
func NeedsInstanceRemoval(f Facts, w Want) []Need {
	_, _ = f, w
	return nil
}

// ReconcileInstance judges what resume, rollback or close would do to an operation on an application container.
func ReconcileInstance(action Operation, r guest.Journal, f Facts) Preview {
	return Reconcile(action, r, f)
}

// InstanceStorages returns where the archive of the image and the root file system go: as wanted, else as the container has
// them, else the node's only storage for it; "" when that is not certain, which Instance says as a blocker.
func InstanceStorages(f Facts, w Want) (archive, rootfs string) {
	i := newInstance(f, w)
	i.collectThere()
	return i.archiveStorage(), i.newRootfsStorage()
}

// NewVolumes returns the volumes that are wanted and not there, with the keys that they get and the values that make them.
func NewVolumes(f Facts, w Want) []guest.NewVolume {
	_, _ = f, w
	return nil
}

// AdoptedContract returns the contract that an adoption writes: of this VMID, about the container as it is now. Its time is
// the caller's to set.
func AdoptedContract(f Facts, w Want) guest.Contract {
	i := newInstance(f, w)
	c := guest.Contract{Guest: i.id()}
	if i.contract != nil {
		c = *i.contract
		c.Guest = i.id()
	}
	return c
}

// instance is the judge of an application container.
type instance struct {
	*judge
	want     InstanceWant
	contract *guest.Contract // what it is compared with: its own, or the one that it was restored with
	foreign  bool            // that one was written for another VMID
	changes  []Change
}

func newInstance(f Facts, w Want) *instance {
	i := &instance{judge: newJudge(f, w)}
	if w.Instance != nil {
		i.want = *w.Instance
	}
	if c := f.Journal.Contract; c != nil && c.App != nil && c.Guest == i.id() {
		i.contract = c
	} else if c := f.Journal.Foreign; c != nil && c.App != nil {
		i.contract, i.foreign = c, true
	}
	return i
}

// app is what the contract says; the zero value when there is none.
func (i *instance) app() guest.Application {
	if i.contract == nil {
		return guest.Application{}
	}
	return *i.contract.App
}

func (i *instance) decideOperation() Operation {
	switch {
	case i.f.Presence == guest.Absent:
		return OpInstall
	case i.contract == nil:
		return 0
	case i.foreign:
		return OpAdopt
	case i.updateDue():
		return OpUpdate
	case len(i.changes) > 0:
		return OpModify
	}
	return 0
}

// updateDue reports whether another install is wanted than the one that is there, and was not declined.
func (i *instance) updateDue() bool {
	wanted := i.w.Install()
	return !i.contract.Installed.Same(wanted) && !slices.Contains(i.contract.Declined, wanted.Hash())
}

func (i *instance) judgeDoor() {}

func (i *instance) collectThere() {
	if i.readable() {
		i.collect()
	}
}

func (i *instance) archiveStorage() string { return i.want.ArchiveStorage }

func (i *instance) newRootfsStorage() string { return i.rootfsStorage() }

func (i *instance) instanceSummary(p Preview) string { return i.label() + ": " + p.Operation.String() }
