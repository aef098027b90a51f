package guest

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// Bytes is a size in bytes. Sizes are compared as Bytes and never as text.
type Bytes int64

// The units of Proxmox: every step is 1024.
const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
	TiB Bytes = 1 << 40
)

// GiB returns the size for people: whole GiB rounded up ("9 GiB"), below 1 GiB whole MiB rounded up ("512 MiB").
func (b Bytes) GiB() string {
	if b <= 0 {
		return "0 MiB"
	}
	if mib := ceil(b, MiB); mib < 1024 {
		return strconv.FormatInt(mib, 10) + " MiB"
	}
	return strconv.FormatInt(ceil(b, GiB), 10) + " GiB"
}

// CeilMiB returns the smallest whole number of MiB that holds the size: Proxmox rounds requests down.
// A size above the largest such number is returned as that number.
func (b Bytes) CeilMiB() Bytes {
	const largest = math.MaxInt64 / MiB * MiB
	if b > largest {
		return largest
	}
	if b <= 0 {
		return 0
	}
	return Bytes(ceil(b, MiB)) * MiB
}

// AllocationGiB returns the N of an allocation "storage:N": the size rounded up to whole MiB, as an exact decimal number of
// GiB ("8.5", "0.5009765625").
func (b Bytes) AllocationGiB() string {
	text := big.NewRat(int64(b.CeilMiB()/MiB), 1024).FloatString(10)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// ConfigText returns the size as Proxmox prints it in a config: the largest unit that divides it, else bare bytes.
func (b Bytes) ConfigText() string {
	units := []struct {
		unit Bytes
		mark string
	}{{TiB, "T"}, {GiB, "G"}, {MiB, "M"}, {KiB, "K"}}
	for _, u := range units {
		if b%u.unit == 0 {
			return strconv.FormatInt(int64(b/u.unit), 10) + u.mark
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

func ceil(b, unit Bytes) int64 {
	n := b / unit
	if b%unit != 0 {
		n++
	}
	return int64(n)
}

var sizePattern = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)(?:([KMGT])(?:iB)?)?$`)

// ReadSize reads the size= option of a config. A bare number is bytes to Proxmox, but some writers mean KiB: the larger
// reading is returned with sure false, because guessing low would allow a shrink. Zero is sure. An error means unreadable.
func ReadSize(text string) (b Bytes, sure bool, err error) {
	number, unit, ok := splitSize(text)
	if !ok {
		return 0, false, fmt.Errorf("cannot read size %q: not a number with an optional unit K, M, G or T", clip(text))
	}
	sure = unit != 0 || number.Sign() == 0
	if unit == 0 {
		unit = KiB
	}
	exact := number.Mul(number, new(big.Rat).SetInt64(int64(unit)))
	whole := new(big.Int).Quo(exact.Num(), exact.Denom())
	if !whole.IsInt64() {
		return 0, false, fmt.Errorf("cannot read size %q: larger than Proxmox can hold", clip(text))
	}
	return Bytes(whole.Int64()), sure, nil
}

func splitSize(text string) (number *big.Rat, unit Bytes, ok bool) {
	const longest = 40 // longer than any size that fits, short enough to be cheap
	m := sizePattern.FindStringSubmatch(text)
	if m == nil || len(text) > longest {
		return nil, 0, false
	}
	number, ok = new(big.Rat).SetString(m[1])
	switch m[2] {
	case "K":
		unit = KiB
	case "M":
		unit = MiB
	case "G":
		unit = GiB
	case "T":
		unit = TiB
	}
	return number, unit, ok
}
