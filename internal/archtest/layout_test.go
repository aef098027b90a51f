package archtest_test

import (
	"os"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/archtest"
)

// TestLayout holds the module itself to its layout.
func TestLayout(t *testing.T) {
	t.Parallel()
	graph, err := archtest.Read(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range []string{"internal/guest", "internal/preview", "internal/stage", "internal/recipe", "internal/archtest"} {
		if _, ok := graph[pkg]; !ok {
			t.Errorf("%s was not seen: the check would be empty", pkg)
		}
	}
	for _, violation := range archtest.Check(graph, archtest.Layout()) {
		t.Error(violation)
	}
}
