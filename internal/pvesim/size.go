package pvesim

import (
	"math"
	"strconv"
)

func unitOf(letter string) float64 {
	switch letter {
	case "K":
		return 1 << 10
	case "M":
		return 1 << 20
	case "G":
		return 1 << 30
	case "T":
		return 1 << 40
	}
	return 1
}

// wantedSize reads the size of a resize request: absolute, or added to now with a plus sign.
func wantedSize(text string, now int64) int64 {
	plus := text != "" && text[0] == '+'
	if plus {
		text = text[1:]
	}
	unit := 1.0
	if n := len(text); n > 0 && text[n-1] >= 'A' {
		unit, text = unitOf(text[n-1:]), text[:n-1]
	}
	f, _ := strconv.ParseFloat(text, 64)
	size := int64(math.Floor(f * unit))
	if plus {
		size += now
	}
	return size
}

// trimFloat writes a number with one decimal.
func trimFloat(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }
