package guest

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
)

// ParseRequest reads a size that a user asks for: a positive number with a unit, as Proxmox writes it ("8G", "8.5G", "512M")
// or in full ("8GiB"). A fraction of a byte is rounded up. The error says what to write instead.
func ParseRequest(text string) (Bytes, error) {
	number, unit, ok := splitSize(text)
	switch {
	case !ok:
		return 0, fmt.Errorf("cannot read size %q: %w", clip(text), requestHint(text))
	case number.Sign() == 0:
		return 0, fmt.Errorf("cannot use size %q: it must be larger than zero", clip(text))
	case unit == 0:
		return 0, fmt.Errorf("cannot use size %q: a unit is missing; write %q if you mean GiB", clip(text), clip(text)+"G")
	}
	exact := number.Mul(number, new(big.Rat).SetInt64(int64(unit)))
	whole, rest := new(big.Int).QuoRem(exact.Num(), exact.Denom(), new(big.Int))
	if rest.Sign() != 0 {
		whole.Add(whole, big.NewInt(1))
	}
	if !whole.IsInt64() || whole.Int64() > math.MaxInt64-int64(MiB) {
		return 0, fmt.Errorf("cannot use size %q: larger than Proxmox can hold", clip(text))
	}
	return Bytes(whole.Int64()), nil
}

func requestHint(text string) error {
	trimmed := strings.ReplaceAll(strings.TrimSpace(text), " ", "")
	upper := strings.ToUpper(trimmed)
	switch {
	case trimmed == "":
		return errors.New("it is empty; write a number with a unit, such as \"8G\"")
	case strings.HasPrefix(trimmed, "-"):
		return errors.New("it is negative; write the whole size that is wanted, such as \"8G\"")
	case strings.HasPrefix(trimmed, "+"):
		return errors.New("it is relative; write the whole size that is wanted, such as \"8G\"")
	case sizePattern.MatchString(text):
		return errors.New("larger than Proxmox can hold")
	case sizePattern.MatchString(trimmed):
		return fmt.Errorf("no spaces are allowed; write %q", clip(trimmed))
	case sizePattern.MatchString(upper):
		return fmt.Errorf("units are upper case; write %q", clip(upper))
	case strings.HasSuffix(upper, "IB") && sizePattern.MatchString(strings.TrimSuffix(upper, "IB")):
		return fmt.Errorf("write %q", clip(strings.TrimSuffix(upper, "IB")+"iB"))
	case strings.HasSuffix(upper, "B") && sizePattern.MatchString(strings.TrimSuffix(upper, "B")):
		return fmt.Errorf("units count in steps of 1024; write %q", clip(strings.TrimSuffix(upper, "B")+"iB"))
	}
	return errors.New("write a number with a unit K, M, G or T, such as \"8G\", \"8.5G\" or \"8GiB\"")
}
