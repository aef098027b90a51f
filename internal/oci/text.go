package oci

import "github.com/pvrx/terraform-provider-pvrx/internal/guest"

// clip makes text that others wrote fit to stand inside a sentence.
func clip(text string) string { return shorten(text, 100) }

func shorten(text string, most int) string {
	if long := 16 * most; len(text) > long {
		text = text[:long] // what is far too long is not worth reading to its end
	}
	runes := []rune(guest.Printable(text))
	if len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return string(runes)
}
