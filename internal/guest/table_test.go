package guest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// table reads a file of testdata: a row a line, columns separated by "|", lines that begin with "#" left out.
func table(t *testing.T, name string, each func(t *testing.T, columns []string)) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.SplitSeq(string(text), "\n") {
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.Split(line, "|")
		for i := range columns {
			columns[i] = strings.TrimSpace(columns[i])
		}
		rows++
		t.Run(strings.Join(columns[:2], " "), func(t *testing.T) { each(t, columns) })
	}
	if rows == 0 {
		t.Fatalf("%s has no rows", name)
	}
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
