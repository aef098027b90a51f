package oci

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Platform is what an image is made for, in the words that images use. The zero value is invalid.
type Platform struct {
	OS           string // "linux"
	Architecture string // "amd64", "arm64", "arm", "386", "riscv64"
	Variant      string // "v8", "" for the architecture's usual one
}

var platformWord = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,15}$`)

// spellings are the names that Proxmox and kernels give to architectures, where images use another.
func spellings() map[string]Platform {
	return map[string]Platform{
		"i386": {Architecture: "386"}, "i686": {Architecture: "386"}, "x86_64": {Architecture: "amd64"},
		"aarch64": {Architecture: "arm64"}, "armhf": {Architecture: "arm", Variant: "v7"}, "armv7l": {Architecture: "arm", Variant: "v7"},
	}
}

// ParsePlatform reads a platform: "amd64", "linux/amd64" or "linux/arm64/v8". Proxmox's own names for architectures ("i386",
// "armhf") are understood. Containers run Linux, so nothing else is accepted.
func ParsePlatform(text string) (Platform, error) {
	parts := strings.Split(text, "/")
	if len(parts) == 1 {
		parts = []string{"linux", parts[0]}
	}
	for _, part := range parts {
		if len(parts) > 3 || !platformWord.MatchString(part) {
			return Platform{}, fmt.Errorf("cannot read platform \"%s\": want an architecture such as amd64, or linux/arm64/v8", clip(text))
		}
	}
	p := Platform{OS: parts[0], Architecture: parts[1]}
	if known, ok := spellings()[p.Architecture]; ok {
		p.Architecture, p.Variant = known.Architecture, known.Variant
	}
	if len(parts) == 3 {
		p.Variant = parts[2]
	}
	if p.OS != "linux" {
		return Platform{}, fmt.Errorf("cannot use platform \"%s\": a container runs linux", clip(text))
	}
	return p, nil
}

// String returns the platform as ParsePlatform reads it.
func (p Platform) String() string {
	text := p.OS + "/" + p.Architecture
	if p.Variant != "" {
		text += "/" + p.Variant
	}
	return text
}

// Arch returns what Proxmox calls the architecture in a container's configuration.
func (p Platform) Arch() string {
	switch p.Architecture {
	case "386":
		return "i386"
	case "arm":
		return "armhf"
	}
	return p.Architecture
}

// platformOf reads what an image says of itself; what cannot be a platform is left out.
func platformOf(p *v1.Platform) (Platform, bool) {
	if p == nil || !platformWord.MatchString(p.OS) || !platformWord.MatchString(p.Architecture) {
		return Platform{}, false
	}
	if p.Variant != "" && !platformWord.MatchString(p.Variant) {
		return Platform{}, false
	}
	return Platform{OS: p.OS, Architecture: p.Architecture, Variant: p.Variant}, true
}

// level is how much an image asks of its processor within the architecture. An unnamed variant is the usual one.
func (p Platform) level() int {
	if n, err := strconv.Atoi(strings.TrimPrefix(p.Variant, "v")); err == nil {
		return n
	}
	switch p.Architecture {
	case "arm64":
		return 8
	case "arm":
		return 7
	}
	return 1
}

// runs reports whether an image made for image runs where p is wanted.
func (p Platform) runs(image Platform) bool {
	return p.OS == image.OS && p.Architecture == image.Architecture && image.level() <= p.level()
}

// choose returns the position of the image that fits p best, -1 for none: the most that its processor can do, the first of equals.
func (p Platform) choose(offered []Platform) int {
	best := -1
	for i, image := range offered {
		if p.runs(image) && (best < 0 || image.level() > offered[best].level()) {
			best = i
		}
	}
	return best
}
