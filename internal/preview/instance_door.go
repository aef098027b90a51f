package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// judgeDoor asks whose container this is: one of ours by its contract, a restored or cloned one, or somebody's. ok is false
// when there is nothing to compare the configuration with.
func (i *instance) judgeDoor() (ok bool) {
	if i.contract == nil {
		i.judgeStranger()
		return false
	}
	if i.restored && i.want.Create && !i.w.Adopt {
		i.block(Blocker{
			Code: CodeTargetInUse, Subject: i.id().String(), Attribute: "vmid",
			Found:  fmt.Sprintf("%s is a copy of an instance that was made as CT %d: a restore or a clone.", i.label(), i.contract.Guest),
			Remedy: fmt.Sprintf("Import it (id = \"%d\"), or set adopt = true, to take it over as it is; else choose another vmid.", i.id()),
		})
		return false
	}
	if i.want.Create || i.restored {
		i.judgeName("hostname")
		i.judgeRepository()
	}
	i.judgeTwins()
	return true
}

// judgeStranger says why a container that is there is not one of ours.
func (i *instance) judgeStranger() {
	if len(i.records()) > 0 {
		return // it is being made, which is said already
	}
	found := fmt.Sprintf("%s carries no contract of an application container: it was made by hand, by the node's own pull, or by another tool.", i.label())
	remedy := "Choose another vmid. To keep its data, make the instance beside it and hand the volumes over."
	if p, damaged := i.f.Journal.Problem(guest.BlockContract, false); damaged {
		found = fmt.Sprintf("%s has notes that cannot be used: %s.", i.label(), strings.TrimSuffix(p.Sentence, "."))
		remedy = "Restore the block from a backup of the notes, or choose another vmid. What cannot be read is not guessed at."
	} else if c := i.f.Journal.Contract; c != nil && c.App == nil {
		found = fmt.Sprintf("%s is recorded as installed from %s, which is no image.", i.label(), orUnknown(c.Installed.Template))
		remedy = "Manage it with the resource that installed it, or choose another vmid."
	}
	i.block(Blocker{Code: CodeNotAnInstance, Subject: i.id().String(), Attribute: "vmid", Found: found, Remedy: remedy})
}

// judgeRepository: an instance that no state knows is ours only when it is of the same repository; another tag or digest of
// it is an update.
func (i *instance) judgeRepository() {
	is, wanted := repositoryOf(i.contract), i.want.Image.Repository
	if wanted == "" || is == "" || is == wanted {
		return
	}
	i.block(Blocker{
		Code: CodeNotAnInstance, Subject: i.id().String(), Attribute: "image", Found: fmt.Sprintf("%s is an instance of %s, not of %s.", i.label(), is, wanted),
		Remedy: "Correct vmid or image. To change the repository of an instance, bring it in with its own image first.",
	})
}

// repositoryOf is the registry and repository that a contract names, "" for none.
func repositoryOf(c *guest.Contract) string {
	if repository, _, pinned := strings.Cut(c.Installed.Template, "@"); pinned {
		return repository
	}
	reference, _, _ := strings.Cut(c.App.Image, "@")
	if colon := strings.LastIndex(reference, ":"); colon > strings.LastIndex(reference, "/") {
		reference = reference[:colon]
	}
	return reference
}

// judgeTwins refuses an identity that two guests carry: a clone, or a second restore (hazard C6).
func (i *instance) judgeTwins() {
	if i.contract.Instance == "" {
		return
	}
	if !i.f.Instances.OK {
		if i.restored {
			i.block(Blocker{
				Code: CodeGuestsUnseen, Subject: i.id().String(), Attribute: "allow",
				Found:  fmt.Sprintf("Whether another guest is instance %s as well is unknown: %s.", i.contract.Instance, orUnknown(strings.TrimSuffix(i.f.Instances.Why, "."))),
				Remedy: "Grant VM.Audit on /vms with propagation, or add \"guests_unseen\" to allow if you know that the original is gone.",
			})
		}
		return
	}
	var twins []string
	for _, other := range i.f.Instances.Value {
		if other.ID == i.contract.Instance && other.VMID != i.id() {
			twins = append(twins, "CT "+other.VMID.String())
		}
	}
	if len(twins) == 0 {
		return
	}
	guest.SortKeys(twins)
	remedy := "Remove one of them first: two containers with one identity would answer for each other."
	if i.restored {
		remedy = "Remove one of them first. A copy that shall run beside the original is an instance of its own: install it anew and restore its data."
	}
	i.block(Blocker{
		Code: CodeDuplicateIdentity, Subject: i.id().String(), Attribute: "vmid",
		Found:  fmt.Sprintf("%s and %s are the same instance (%s).", i.label(), list(slices.Compact(twins)), i.contract.Instance),
		Remedy: remedy,
	})
}

// judgeImport: what is in progress on a container that no state knows can be settled only by a resource that has it.
func (i *instance) judgeImport() {
	if !i.want.Create {
		return
	}
	for n, b := range i.blockers {
		if b.Code == CodeNeedsReconcile || b.Code == CodeOperationInFlight {
			i.blockers[n].Remedy = fmt.Sprintf("Import it first (id = \"%d\"). %s", i.id(), b.Remedy)
		}
	}
}
