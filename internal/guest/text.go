package guest

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable returns untrusted text as one harmless line: control characters, terminal escape sequences, direction overrides,
// other invisible characters and invalid UTF-8 are removed; line ends and tabs become a space.
func Printable(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			i++
		case r == '\x1b' || r == '\u009b' || r == '\u009d':
			i += escapeLength(s[i:], r, size)
		case r == '\n' || r == '\t' || r == '\u2028' || r == '\u2029':
			out.WriteByte(' ')
			i += size
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r):
			i += size
		default:
			out.WriteRune(r)
			i += size
		}
	}
	return out.String()
}

// escapeLength returns how many bytes the escape sequence at the start of s takes. An unfinished sequence takes only its
// introducer, so that a lone escape cannot hide the text after it.
func escapeLength(s string, first rune, size int) int {
	introducer, n := first, size
	if first == '\x1b' {
		if len(s) < 2 {
			return size
		}
		switch s[1] {
		case '[':
			introducer, n = '\u009b', 2
		case ']', 'P', 'X', '^', '_':
			introducer, n = '\u009d', 2
		default:
			if s[1] >= 0x20 && s[1] < 0x7f {
				return 2
			}
			return size
		}
	}
	if introducer == '\u009b' {
		for i := n; i < len(s); i++ {
			switch c := s[i]; {
			case c >= 0x40 && c <= 0x7e:
				return i + 1
			case c < 0x20 || c > 0x3f:
				return n
			}
		}
		return n
	}
	for i := n; i < len(s); i++ {
		switch {
		case s[i] == '\a':
			return i + 1
		case s[i] == '\x1b' && i+1 < len(s) && s[i+1] == '\\':
			return i + 2
		case s[i] == '\n':
			return n
		}
	}
	return n
}

// clip shortens untrusted text for use inside an error.
func clip(text string) string {
	const most = 60
	if runes := []rune(Printable(text)); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return Printable(text)
}
