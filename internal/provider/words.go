package provider

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// called is how a guest is named at the start of every summary: "CT 5001 web1". The CLIs merge warnings whose summaries
// are equal, so each must start with its guest.
func called(kind guest.Kind, id guest.VMID, name string) string {
	if name == "" {
		return kind.String() + " " + id.String()
	}
	return kind.String() + " " + id.String() + " " + name
}

// sentence makes a Go error a sentence: upper case first, a full stop last.
func sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(text)
	text = string(unicode.ToUpper(first)) + text[size:]
	if strings.ContainsAny(text[len(text)-1:], ".!?:}\"`") || strings.HasSuffix(text, "…") {
		return text
	}
	return text + "."
}

// list joins words for people: "a", "a and b", "a, b and c".
func list(words []string) string {
	switch len(words) {
	case 0:
		return "none"
	case 1:
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
