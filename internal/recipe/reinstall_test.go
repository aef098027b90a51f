package recipe_test

import (
	"context"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

func TestReinstallKeepsWhatShouldStay(t *testing.T) {
	w := newWorld()
	data, _ := w.cluster.Volume(w.cluster.VolumeOf(5001, "mp0"))
	result, err := w.apply(t, recipe.Request{Want: wants()})
	if err != nil {
		for _, r := range w.server.Requests() {
			t.Log(r)
		}
		t.Fatalf("%+v\n%v", result, err)
	}
	now, _ := w.cluster.Volume(w.cluster.VolumeOf(5001, "mp0"))
	if now.Identity != data.Identity {
		t.Errorf("mp0 is %+v and was %+v", now, data)
	}
	t.Log(w.cluster.Config(5001))
	t.Log(len(w.server.Requests()), w.server.Mutations(), result.Warnings)
	_ = context.Background()
}
