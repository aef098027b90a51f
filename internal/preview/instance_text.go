package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// shortDigest is how many hexadecimal characters of a digest people are shown.
const shortDigest = 12

// imageName is a pinned image for people: "docker.io/library/nginx sha256:0123456789ab…".
func imageName(pinned string) string {
	repository, digest, found := strings.Cut(pinned, "@")
	if !found {
		return orUnknown(pinned)
	}
	return repository + " " + digestName(digest)
}

func digestName(digest string) string {
	algorithm, hex, found := strings.Cut(digest, ":")
	if !found || len(hex) <= shortDigest {
		return digest
	}
	return algorithm + ":" + hex[:shortDigest] + "…"
}

func digestOf(pinned string) string {
	_, digest, _ := strings.Cut(pinned, "@")
	return digest
}

// installedImage names what the container was made from.
func (i *instance) installedImage() string {
	if i.contract == nil || i.contract.Installed.Template == "" {
		return "an image that is not known"
	}
	return imageName(i.contract.Installed.Template)
}

// wantedImage names what it shall be made from.
func (i *instance) wantedImage() string {
	if pinned := i.want.Image.Pinned(); pinned != "" {
		return imageName(pinned)
	}
	return "an image that is not known yet"
}

// line is the one line about an application container; it starts with the guest, because the CLIs merge warnings whose
// summaries are equal.
func (i *instance) line(p Preview) string {
	text := i.label() + ": "
	switch {
	case i.unsure:
		text += "what is due cannot be told"
	case p.Operation == OpInstall:
		text += "install " + i.wantedImage() + ": " + i.madeWords()
	case p.Operation == OpUpdate:
		text += "update " + i.imageStep() + ": " + fateWords(p) + i.besides()
	case p.Operation == OpModify:
		text += "modify " + changeWords(p.Changes) + erasedWords(p)
	case p.Operation == OpAdopt && i.restored:
		text += fmt.Sprintf("adopt this copy of CT %d as it is", i.contract.Guest)
	case p.Operation == OpAdopt:
		text += "adopt it as it is"
	case p.Operation == OpRemove:
		text += "remove: " + fateWords(p)
	default:
		text += "nothing is due"
	}
	if codes := refusals(p.Blockers); len(codes) > 0 {
		text += " (refused: " + strings.Join(codes, ", ") + ")"
	}
	return guest.Printable(text)
}

// imageStep says from which image to which: the repository once when it is the same.
func (i *instance) imageStep() string {
	was, wanted := i.contract.Installed.Template, i.want.Image.Pinned()
	switch {
	case was == wanted && was != "":
		return imageName(was) + " again (" + strings.Join(i.causes(), ", ") + ")"
	case was != "" && wanted != "" && strings.HasPrefix(wanted, repositoryOf(i.contract)+"@"):
		return imageName(was) + " → " + digestName(digestOf(wanted))
	}
	return i.installedImage() + " → " + i.wantedImage()
}

// causes are the changes that need a new root file system.
func (i *instance) causes() []string {
	var words []string
	for _, c := range i.changes {
		if c.Takes == TakesRootfs {
			words = append(words, c.What)
		}
	}
	return words
}

// besides are the changes that an update makes on its way.
func (i *instance) besides() string {
	var words []string
	for _, c := range i.changes {
		if c.Takes != TakesRootfs && !slices.Contains(words, c.What) {
			words = append(words, c.What)
		}
	}
	if len(words) == 0 {
		return ""
	}
	return "; with " + list(words)
}

// madeWords says what an install makes.
func (i *instance) madeWords() string {
	text := "rootfs " + i.wantedSize().GiB()
	if storage := i.newRootfsStorage(); storage != "" {
		text += " on " + storage
	}
	var bytes guest.Bytes
	for _, v := range i.want.Volumes {
		bytes = add(bytes, v.Size.CeilMiB())
	}
	if n := len(i.want.Volumes); n > 0 {
		text += fmt.Sprintf(", %s (%s)", plural(n, "volume"), bytes.GiB())
	}
	return text
}

// fateWords counts what happens to volumes: "1 volume preserved (8 GiB), rootfs erased (4 GiB)".
func fateWords(p Preview) string {
	kept, dropped := 0, 0
	var bytes guest.Bytes
	for _, v := range p.Volumes {
		if v.Data == DataPreserved || v.Data == DataKept {
			kept++
			bytes = add(bytes, v.Size)
		}
		if v.Mount == MountDropped && v.Data != DataErased {
			dropped++
		}
	}
	var parts []string
	if kept > 0 {
		parts = append(parts, fmt.Sprintf("%s preserved (%s)", plural(kept, "volume"), bytes.GiB()))
	}
	if words := strings.TrimPrefix(erasedWords(p), ": "); words != "" {
		parts = append(parts, words)
	}
	if dropped > 0 {
		parts = append(parts, plural(dropped, "mount")+" dropped")
	}
	if len(parts) == 0 {
		return "no volume is touched"
	}
	return strings.Join(parts, ", ")
}

// erasedWords names what is erased, after a colon: ": rootfs and mp0 erased (12 GiB)"; "" when nothing is.
func erasedWords(p Preview) string {
	var keys []string
	for _, v := range p.Volumes {
		if v.Data == DataErased {
			keys = append(keys, v.Key)
		}
	}
	if len(keys) == 0 {
		return ""
	}
	return fmt.Sprintf(": %s erased (%s)", list(keys), p.ErasedBytes.GiB())
}

// changeWords names changes by what they take: "memory, net0 (live), environment (restart)".
func changeWords(changes []Change) string {
	var parts []string
	for takes := TakesNothing; takes <= TakesRootfs; takes++ {
		var words []string
		for _, c := range changes {
			if c.Takes == takes && !slices.Contains(words, c.What) {
				words = append(words, c.What)
			}
		}
		if len(words) > 0 {
			parts = append(parts, fmt.Sprintf("%s (%s)", strings.Join(words, ", "), takes))
		}
	}
	return strings.Join(parts, ", ")
}
