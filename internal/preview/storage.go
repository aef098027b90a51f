package preview

import (
	"fmt"
	"slices"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// judgeStorages asks whether every storage answers that a destroy would look at, those of other guests' volumes too: a
// container's destroy frees the root file system first and then stops at the first storage that does not (hazard A6).
func (j *judge) judgeStorages() {
	named := map[string][]string{}
	for _, v := range j.volumes {
		if v.id != (guest.VolumeID{}) && isStored(v.section) {
			named[v.id.Storage] = append(named[v.id.Storage], v.Key)
		}
	}
	for _, name := range sortedKeys(named) {
		why := j.unavailable(name, "rootdir")
		if why == "" && !j.f.Listed[name] {
			why = "does not answer with a list of its content"
		}
		if why == "" {
			continue
		}
		j.block(Blocker{
			Code: CodeStorageUnavailable, Subject: name, Found: fmt.Sprintf("Storage %s, named by %s, %s.", name, list(named[name]), why),
			Remedy: "Bring the storage back, or take the keys off the guest, first: a destroy would free the root file system and then fail there.",
		})
	}
	if target := j.rootfsStorage(); target != "" && len(named[target]) == 0 {
		if why := j.unavailable(target, "rootdir"); why != "" {
			j.block(Blocker{
				Code: CodeStorageUnavailable, Subject: target, Attribute: "rootfs.storage", Found: fmt.Sprintf("Storage %s, wanted for rootfs, %s.", target, why),
				Remedy: "Choose a storage of the guest's node with content type rootdir, or leave rootfs.storage out to keep the present one.",
			})
		}
	}
}

// unavailable says why a storage cannot be used for a content type on the guest's node; "" when it can.
func (j *judge) unavailable(name, content string) string {
	s, there := j.f.Storages[name]
	switch {
	case !there:
		return "does not exist on node " + orUnknown(j.f.Guest.Node)
	case !s.Enabled:
		return "is disabled"
	case !s.Active:
		return "is not active on node " + orUnknown(j.f.Guest.Node)
	case !s.Has(content):
		return "is not configured for content type " + content
	}
	return ""
}

// rootfsStorage is where the new root file system goes.
func (j *judge) rootfsStorage() string {
	if j.w.Rootfs.Storage != "" {
		return j.w.Rootfs.Storage
	}
	return j.rootfs().id.Storage
}

// rootfs is the present root file system; the zero volume when there is none.
func (j *judge) rootfs() volume {
	i := slices.IndexFunc(j.volumes, func(v volume) bool { return v.Key == "rootfs" })
	if i < 0 {
		return volume{}
	}
	return j.volumes[i]
}

// judgeTemplate asks whether the template is on the guest's node. One that is not known yet is asked for at apply.
func (j *judge) judgeTemplate() {
	if j.f.TemplateKnown == guest.PresenceUnknown && j.w.Template == "" {
		return
	}
	id, err := guest.ParseVolumeID(j.w.Template)
	if err != nil {
		j.block(Blocker{
			Code: CodeTemplateMissing, Subject: j.w.Template, Attribute: "template", Found: fmt.Sprintf("%q is no volume id.", j.w.Template),
			Remedy: "Write the whole volume id, such as \"local:vztmpl/debian-13-standard_13.1-1_amd64.tar.zst\".",
		})
		return
	}
	found := ""
	switch why := j.unavailable(id.Storage, "vztmpl"); {
	case why != "":
		found = fmt.Sprintf("Its storage %s %s.", id.Storage, why)
	case j.f.Template.ID == id && j.f.Template.Content == "vztmpl":
		return
	case j.f.Template.ID == id:
		found = fmt.Sprintf("%s holds %s, not a template.", id, orUnknown(j.f.Template.Content))
	default:
		found = fmt.Sprintf("Storage %s of node %s does not list %s, or this login may not see it.", id.Storage, orUnknown(j.f.Guest.Node), id)
	}
	j.block(Blocker{
		Code: CodeTemplateMissing, Subject: id.String(), Attribute: "template", Found: found,
		Remedy: "Download the template to a storage of the guest's node, or correct template.",
	})
}

// judgeSpace asks whether the new volumes fit. The parking guest is made while the old root file system is still there, and
// at the full size: that is what proves the create before anything is destroyed. Storages that allocate on demand are
// counted the same way, because a half-unpacked system is no better for having been promised room.
func (j *judge) judgeSpace() {
	size, target := j.wantedSize(), j.rootfsStorage()
	s, known := j.f.Storages[target]
	if size == 0 || !known || s.Total <= 0 {
		return
	}
	need := size
	if j.claimed() {
		need = 0 // the parking guest has its room already
	}
	if old := j.rootfs(); old.id.Storage == target {
		need = add(need, max(0, size-old.Size))
	} else {
		need = add(need, size)
	}
	if need > s.Available {
		j.block(Blocker{
			Code: CodeSpace, Subject: target, Attribute: "rootfs.size", Found: fmt.Sprintf("The parking guest and the new root file system need %s on %s; it has %s.", exact(need), target, exact(s.Available)),
			Remedy: "Free space there, choose another rootfs.storage, or ask for less.",
		})
	}
}
