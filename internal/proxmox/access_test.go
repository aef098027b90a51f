package proxmox

import (
	"context"
	"maps"
	"strings"
	"testing"
)

// What a login holds on a guest after the guest's own entries are gone comes from above, as far as it reaches down.
func TestHeldWithoutTheEntriesOfThePathItself(t *testing.T) {
	all := map[string]map[string]bool{
		"/":         {"Sys.Audit": true, "VM.Audit": true},
		"/vms":      {"VM.Allocate": true, "VM.Audit": false},
		"/vms/5001": {"VM.Console": true},
	}
	for path, want := range map[string]map[string]bool{
		"/vms/5001":      {"VM.Allocate": true},
		"/storage/local": {"Sys.Audit": true, "VM.Audit": true},
		"/vms":           {"Sys.Audit": true, "VM.Audit": true},
	} {
		if got := heldWithout(all, path); !maps.Equal(got, want) {
			t.Errorf("%s: %v", path, got)
		}
	}
	if got := heldWithout(nil, "/vms/5001"); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

// A login that may not read the cluster's state counts the nodes.
func TestQuorumIsEstimatedWhenItMayNotBeRead(t *testing.T) {
	for _, c := range []struct {
		nodes string
		want  bool
	}{
		{`{"node":"a","status":"online"}`, true},
		{`{"node":"a","status":"online"},{"node":"b","status":"offline"},{"node":"c","status":"online"}`, true},
		{`{"node":"a","status":"online"},{"node":"b","status":"offline"}`, true},
		{`{"node":"a","status":"online"},{"node":"b","status":"offline"},{"node":"c","status":"unknown"}`, false},
	} {
		h, _ := scripted(t, func(s sent) answer {
			if strings.HasPrefix(s.Path, "/cluster") {
				return answer{status: "403 Permission check failed (/, Sys.Audit)"}
			}
			return data("[" + c.nodes + "]")
		})
		online, quorate, err := h.Nodes(context.Background())
		wantNoError(t, err)
		if quorate != c.want || !online["a"] || online["b"] {
			t.Errorf("%s: %v %v", c.nodes, online, quorate)
		}
	}
}
