package oci

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
)

// Digest names content by its hash: "sha256:" and 64 hexadecimal digits. The zero value names nothing.
type Digest string

var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// ParseDigest reads a digest. Only sha256 is accepted: it is what an archive for Proxmox keeps its members under.
func ParseDigest(text string) (Digest, error) {
	if !digestPattern.MatchString(text) {
		return "", fmt.Errorf("%q is not a digest of the form sha256: and 64 hexadecimal digits", clip(text))
	}
	return Digest(text), nil
}

// String returns the digest as registries write it.
func (d Digest) String() string { return string(d) }

// Hex returns the hexadecimal digits alone, "" for the zero value.
func (d Digest) Hex() string {
	if len(d) <= len("sha256:") {
		return ""
	}
	return string(d[len("sha256:"):])
}

// Short returns the first 12 hexadecimal digits: enough for people and file names.
func (d Digest) Short() string {
	hex := d.Hex()
	return hex[:min(12, len(hex))]
}

func digestOf(content []byte) Digest {
	sum := sha256.Sum256(content)
	return Digest("sha256:" + hex.EncodeToString(sum[:]))
}
