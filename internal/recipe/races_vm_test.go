package recipe_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// TestFaultsVMRaces: two pipelines with different states rebuild one VM at once: both in place, both by replacing it with the
// same new VM, or one each way. One wins the claim; the other changes nothing that stays, and reports the winner's operation.
func TestFaultsVMRaces(t *testing.T) {
	again := func(want preview.Want) preview.Want {
		want.Triggers = map[string]string{"again": "2"}
		return want
	}
	inPlace := scene{name: "in place", world: newVMWorld, req: func() recipe.Request { return recipe.Request{Want: wantsVM()} }}
	ends := map[bool]base{false: inPlace.baseVM(t), true: vmScenes()[1].baseVM(t)}
	for name, wants := range map[string]func() []preview.Want{
		"both in place":     func() []preview.Want { return []preview.Want{wantsVM(), again(wantsVM())} },
		"both replace":      func() []preview.Want { return []preview.Want{wantsVMReplaced(), again(wantsVMReplaced())} },
		"one in each way":   func() []preview.Want { return []preview.Want{wantsVM(), wantsVMReplaced()} },
		"the same pipeline": func() []preview.Want { return []preview.Want{wantsVM(), wantsVM()} },
	} {
		f := &family{name: "VM, two pipelines, one VM, " + name, traces: 13}
		if whole() {
			f.traces = 120
		}
		overlapped := 0
		parallel(f.traces, func(seed int) {
			w := ends[false].freshVM()
			racers := race(t, w, uint64(seed), wants(), nil)
			trace := fmt.Sprintf("seed %d", seed)
			for _, r := range racers {
				f.count(r.lane.wire, true)
				for _, v := range r.lane.wire.broken {
					f.violation(trace, "%s", v)
				}
			}
			won := slices.DeleteFunc(slices.Clone(racers), func(r *racer) bool { return r.err != nil })
			if len(won) == 2 && !won[0].result.Changed != !won[1].result.Changed {
				won = slices.DeleteFunc(won, func(r *racer) bool { return !r.result.Changed }) // the same install was there already
			}
			if len(won) != 1 {
				f.violation(trace, "%d won: %v / %v", len(won), racers[0].err, racers[1].err)
				return
			}
			winner, loser := won[0], racers[0]
			if loser == winner {
				loser = racers[1]
			}
			if loser.result.Status == recipe.StatusInProgress {
				f.mu.Lock()
				overlapped++
				f.mu.Unlock()
			}
			if loser.err != nil && !strings.Contains(loser.err.Error(), winner.result.Operation) {
				f.violation(trace, "the loser does not report %s: %v", winner.result.Operation, loser.err)
			}
			if loser.result.Changed {
				f.violation(trace, "the loser says it changed something: %+v", loser.result)
			}
			id := int(winner.want.VMID)
			contract := guest.ReadNotes(w.cluster.Config(id)["description"]).Contract
			if contract == nil || !maps.Equal(contract.Installed.Triggers, winner.want.Triggers) || contract.Operation != winner.result.Operation {
				f.violation(trace, "the contract says %+v", contract)
			}
			ends[winner.want.VM.Replaces != 0].checkEndVM(t, f, trace, w, nil)
		})
		if overlapped == 0 {
			t.Errorf("%s: the runs never overlapped", name)
		}
		f.report(t)
	}
}
