package preview

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// Width is the most columns that a line of Fates takes.
const Width = 76

// Fates returns one padded line for each volume: data fate, mount fate, size, volume, path. The columns are aligned over the
// whole map, so that a plan reads as a table. Long volume ids and paths are shortened in the middle, fates never.
func (p Preview) Fates() map[string]string {
	sizes := map[string]string{}
	width := len("100 GiB")
	for _, v := range p.Volumes {
		sizes[v.Key] = "-"
		if v.Size > 0 {
			sizes[v.Key] = v.Size.GiB()
		}
		width = max(width, utf8.RuneCountInString(sizes[v.Key]))
	}
	lines := make(map[string]string, len(p.Volumes))
	for _, v := range p.Volumes {
		head := fmt.Sprintf("%-12s %-10s %*s  ", v.Data, v.Mount, width, sizes[v.Key])
		volume, path := guest.Printable(v.Volume), guest.Printable(v.Path)
		room := Width - utf8.RuneCountInString(head) - len("  ")
		volume = shorten(volume, max(room*3/5, room-utf8.RuneCountInString(path)))
		path = shorten(path, room-utf8.RuneCountInString(volume))
		lines[guest.Printable(v.Key)] = head + volume + "  " + path
	}
	return lines
}

// shorten cuts the middle out of text that is longer than width columns.
func shorten(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	if width <= 1 {
		return "…"
	}
	tail := (width - 1) / 2
	return string(runes[:width-1-tail]) + "…" + string(runes[len(runes)-tail:])
}

// DataErased maps the key of each erased volume to its volume id, for policies.
func (p Preview) Erased() map[string]string {
	erased := map[string]string{}
	for _, v := range p.Volumes {
		if v.Data == DataErased {
			erased[guest.Printable(v.Key)] = guest.Printable(v.Volume)
		}
	}
	return erased
}

// Table returns fates and losses as an indented table for a warning. Each row begins with a space, so that the CLIs leave
// its columns alone.
func (p Preview) Table() string {
	fates := p.Fates()
	width := 0
	for key := range fates {
		width = max(width, utf8.RuneCountInString(key))
	}
	for what := range p.AlsoLost {
		width = max(width, utf8.RuneCountInString(what))
	}
	var rows []string
	for _, v := range p.Volumes {
		key := guest.Printable(v.Key)
		rows = append(rows, fmt.Sprintf("  %-*s  %s", width, key, fates[key]))
	}
	for _, what := range sortedKeys(p.AlsoLost) {
		rows = append(rows, fmt.Sprintf("  %-*s  %s", width, guest.Printable(what), guest.Printable(p.AlsoLost[what])))
	}
	return strings.Join(rows, "\n")
}

// summary is one line that starts with the guest, because the CLIs merge warnings whose summaries are equal.
func (j *judge) summary(what string, p Preview) string {
	var erased, kept []string
	var keptBytes, erasedBytes guest.Bytes
	droppedMounts := 0
	for _, v := range p.Volumes {
		if v.Mount == MountDropped && v.Data != DataErased {
			droppedMounts++
		}
		if j.w.VM != nil && v.Data == DataKept && v.Size == 0 {
			continue // a CD-ROM is no data
		}
		switch v.Data {
		case DataErased:
			erased = append(erased, v.Key)
			erasedBytes = add(erasedBytes, v.Size)
		case DataPreserved, DataKept:
			kept = append(kept, v.Key)
			keptBytes = add(keptBytes, v.Size)
		case DataExcluded, DataHostManaged, DataUnknown:
		}
	}
	var parts []string
	if len(erased) > 0 {
		verb := "erases"
		if p.Operation == OpRebuild || p.Operation == OpReplace {
			verb = "sets aside until accept"
		}
		parts = append(parts, fmt.Sprintf("%s %s (%s)", verb, list(erased), erasedBytes.GiB()))
	}
	if len(kept) > 0 {
		parts = append(parts, fmt.Sprintf("keeps %s (%s)", plural(len(kept), "volume"), keptBytes.GiB()))
	}
	if droppedMounts > 0 {
		parts = append(parts, plural(droppedMounts, "mount")+" dropped")
	}
	text := j.label() + ": " + what
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	if codes := refusals(p.Blockers); len(codes) > 0 {
		text += " (refused: " + strings.Join(codes, ", ") + ")"
	}
	return guest.Printable(text)
}

// refusals are the codes of blockers, each once, in order.
func refusals(blockers []Blocker) []string {
	var codes []string
	for i, b := range blockers {
		if i == 0 || blockers[i-1].Code != b.Code {
			codes = append(codes, b.Code.String())
		}
	}
	return codes
}

// templateName is the short name of a template: "debian-13-standard_13.1-1" of
// "local:vztmpl/debian-13-standard_13.1-1_amd64.tar.zst".
func templateName(id string) string {
	if id == "" {
		return "a template that is not known yet"
	}
	name := id[strings.LastIndexAny(id, ":/")+1:]
	if before, _, found := strings.Cut(name, ".tar"); found && before != "" {
		name = before
	}
	if i := strings.LastIndex(name, "_"); i > 0 {
		switch name[i+1:] {
		case "amd64", "arm64", "armhf", "i386", "riscv64", "riscv32":
			name = name[:i]
		}
	}
	return guest.Printable(name)
}
