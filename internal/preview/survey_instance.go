package preview

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// ourArchive is the name that archives of images are uploaded under.
var ourArchive = regexp.MustCompile(`^vztmpl/pvrx-[A-Za-z0-9_.-]+\.tar$`)

// imageArchives are the archives of images that no guest's contract or record names.
func (s *surveyor) imageArchives() []LeftArchive {
	named := map[string]bool{}
	certain := s.f.AllSeen
	for _, g := range s.f.Guests {
		certain = certain && (g.Read || g.Kind == guest.KindVM)
		for _, archive := range g.Notes.Archives() {
			named[archive] = true // on whichever node: a container follows its migration
		}
	}
	var all []LeftArchive
	for _, row := range s.f.Volumes {
		if row.Content != "vztmpl" || !ourArchive.MatchString(row.ID.Name) || named[row.ID.String()] || s.f.Guest != 0 || !s.wanted(row.Node) {
			continue
		}
		a := LeftArchive{Archive: guest.Printable(row.ID.String()), Node: guest.Printable(row.Node), Size: row.Size, Created: row.Created, Age: s.age(row.Created)}
		if a.Remedy = "Not every container that may be made from it could be read (see what was not seen): look from a login that sees all before doing anything."; certain {
			a.Remedy = fmt.Sprintf("No container is made from it: an operation that was cut short, or a container that is gone, left it. An install that is under way this very moment may be about to use it. When none is, as root on %s: pvesm free %s.", cmp.Or(a.Node, "any node"), a.Archive)
		}
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b LeftArchive) int { return strings.Compare(a.Archive+a.Node, b.Archive+b.Node) })
	return all
}

// instanceWay says where "rollback" leads from an operation on an application container.
func instanceWay(h headRecord) string {
	destroyed := h.Digest != "" || h.New
	switch {
	case h.Kind == OpInstall.String():
		return "\"rollback\" removes what it made"
	case h.Kind == OpRemove.String() && destroyed:
		return "there is no way back once the destroy was sent"
	case h.Kind == OpRemove.String(), !destroyed:
		return "\"rollback\" takes it back"
	case h.App.Was != nil && h.App.Was.Digest != "":
		return "\"rollback\" makes it again from the image before"
	}
	return "there is no way back, since what it was made from before is not known"
}
