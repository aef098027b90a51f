package guest

import (
	"strings"
	"testing"
)

func TestUnkeptVariable(t *testing.T) {
	for item, word := range map[string]string{
		"A=1": "", "1A=": "", "a_B9= x\ty": "",
		"X.Y=1": "underscores", "X-Y=1": "underscores", "=1": "underscores", "Ä=1": "underscores",
		"A=a\nb": "control character", "A=\x7f": "control character", "A=\x1b[31m": "control character",
		"A=ü": "ASCII", "A=€": "ASCII", "A=1 ": "blanks", "A=1\t": "blanks",
	} {
		name, value, _ := strings.Cut(item, "=")
		if why := UnkeptVariable(name, value); (why == "") != (word == "") || !strings.Contains(why, word) {
			t.Errorf("%q: %q, want %q", item, why, word)
		}
	}
}

func TestEnvironmentIsReadAsItWasWritten(t *testing.T) {
	given := map[string]string{"B": "2", "A": "x=y", "EMPTY": ""}
	if text := WriteEnvironment(given); text != "A=x=y\x00B=2\x00EMPTY=" {
		t.Errorf("written as %q", text)
	}
	read := ReadEnvironment("A=1\x00\x00nothing\x00=1\x00A=2")
	if len(read) != 1 || read["A"] != "2" {
		t.Errorf("read as %v", read)
	}
}
