package proxmox

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
)

// fullFirewall has every part: what refers to what, what is off, and an order that matters.
func fullFirewall(c *pvesim.Cluster, vmid int) {
	var rules []map[string]string
	for i := range 5 {
		rules = append(rules, map[string]string{
			"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": fmt.Sprint(8000 + i), "source": "+trusted", "enable": fmt.Sprint(i % 2), "comment": fmt.Sprintf("rule %d", i),
		})
	}
	rules = append(rules, map[string]string{"type": "in", "action": "DROP", "source": "office", "enable": "1"})
	c.SetFirewall(vmid, pvesim.FirewallSpec{
		Options: map[string]string{"enable": "1", "policy_in": "DROP", "log_level_in": "info"},
		Aliases: map[string]string{"office": "10.1.0.0/24", "home": "10.2.0.1"},
		Sets:    map[string][]string{"trusted": {"10.3.0.0/16", "!10.3.1.1"}, "empty": nil},
		Rules:   rules,
	})
}

// B9: a firewall is read whole and written whole, onto a guest that has none.
func TestB9FirewallComesBackAsItWas(t *testing.T) {
	ctx := context.Background()
	h, s := simulated(t)
	fullFirewall(s.Cluster(), 5001)
	fw, err := h.Firewall(ctx, ct)
	wantNoError(t, err)
	if len(fw.Rules) != 6 || len(fw.Aliases) != 2 || len(fw.IPSets) != 2 || fw.Options["enable"] != "1" {
		t.Fatalf("%+v", fw)
	}
	wantNoError(t, h.SetFirewall(ctx, parking, fw))
	if got, want := s.Cluster().Firewall(900000), s.Cluster().Firewall(5001); got != want || want == "" {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	s.ResetRequests()
	wantNoError(t, h.SetFirewall(ctx, parking, fw))
	if got := changes(s); len(got) != 0 {
		t.Errorf("writing it again sent %v", got)
	}
}

// Whatever stood there before is replaced; an empty firewall empties.
func TestFirewallReplacesWhatIsThere(t *testing.T) {
	ctx := context.Background()
	h, s := simulated(t)
	fullFirewall(s.Cluster(), 5001)
	s.Cluster().SetFirewall(900000, pvesim.FirewallSpec{
		Options: map[string]string{"enable": "1", "policy_out": "REJECT", "dhcp": "1"},
		Aliases: map[string]string{"office": "10.1.0.0/24", "left": "10.9.0.1"},
		Sets:    map[string][]string{"trusted": {"10.4.0.0/16"}, "left": {"10.9.9.9"}},
		Rules:   []map[string]string{{"type": "out", "action": "ACCEPT", "dest": "left", "enable": "1"}},
	})
	fw, err := h.Firewall(ctx, ct)
	wantNoError(t, err)
	wantNoError(t, h.SetFirewall(ctx, parking, fw))
	if got, want := s.Cluster().Firewall(900000), s.Cluster().Firewall(5001); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	wantNoError(t, h.SetFirewall(ctx, parking, guest.Firewall{}))
	empty, err := h.Firewall(ctx, parking)
	wantNoError(t, err)
	if differentPart(empty, guest.Firewall{}) != "" {
		t.Errorf("%+v", empty)
	}
}

// An alias that rules use is changed in place: taken away and made again, it would be missing for a moment.
func TestAliasesAreChangedInPlace(t *testing.T) {
	address := "192.168.0.0/24"
	h, script := scripted(t, func(r sent) answer {
		switch {
		case r.Method == http.MethodPut:
			address = fmt.Sprint(r.Params["cidr"])
			return data("null")
		case strings.HasSuffix(r.Path, "/aliases"):
			return data(`[{"name":"office","cidr":"` + address + `","ipversion":4,"digest":"x"}]`)
		case strings.HasSuffix(r.Path, "/options"):
			return data(`{"digest":"x"}`)
		}
		return data("[]")
	})
	wantNoError(t, h.SetFirewall(context.Background(), ct, guest.Firewall{Aliases: []map[string]string{{"name": "office", "cidr": "10.1.0.0/24"}}}))
	if script.count("") != 1 {
		t.Fatalf("%v", script.all())
	}
	for _, r := range script.all() {
		if r.Method == http.MethodPut && (r.Path != "/nodes/pve1/lxc/5001/firewall/aliases/office" || len(r.Params) != 1) {
			t.Errorf("%+v", r)
		}
	}
}

// What is off is said to be off: the server's defaults are its own business.
func TestWhatIsOffIsSaidToBeOff(t *testing.T) {
	h, script := scripted(t, func(r sent) answer {
		if strings.HasSuffix(r.Path, "/options") {
			return data(`{"enable":1}`)
		}
		return data("[]")
	})
	off := guest.Firewall{Rules: []map[string]string{{"type": "in", "action": "ACCEPT"}}}
	wantOutcome(t, h.SetFirewall(context.Background(), ct, off), guest.OutcomeFailed) // this server changes nothing
	said := 0
	for _, r := range script.all() {
		if r.Method != http.MethodGet {
			said++
			if r.Params["enable"] != "0" {
				t.Errorf("%+v", r)
			}
		}
	}
	if said != 2 {
		t.Errorf("%d changes", said)
	}
}

// Broken off anywhere, before or after the effect, a second run ends with the same firewall.
func TestFirewallCanBeWrittenAgainAfterEveryInterruption(t *testing.T) {
	ctx := context.Background()
	broken := 0
	for _, kind := range []pvesim.FaultKind{pvesim.FaultReset, pvesim.FaultLoseAnswer} {
		for n := 1; ; n++ {
			h, s := simulated(t)
			fullFirewall(s.Cluster(), 5001)
			fw, err := h.Firewall(ctx, ct)
			wantNoError(t, err)
			s.Inject(pvesim.Fault{Kind: kind, Path: "/lxc/900000/firewall", Mutation: n})
			err = h.SetFirewall(ctx, parking, fw)
			if s.FaultsStruck() == 0 {
				wantNoError(t, err)
				break
			}
			broken++
			wantOutcome(t, err, guest.OutcomeUnknown)
			if err := h.SetFirewall(ctx, parking, fw); err != nil {
				t.Fatalf("%s at change %d: %v", kind, n, err)
			}
			if got, want := s.Cluster().Firewall(900000), s.Cluster().Firewall(5001); got != want {
				t.Fatalf("%s at change %d: got\n%s\nwant\n%s", kind, n, got, want)
			}
		}
	}
	if broken < 20 {
		t.Errorf("broken off only %d times", broken)
	}
}

// What is read back must be what was written.
func TestFirewallIsReadBack(t *testing.T) {
	h, s := simulated(t)
	fullFirewall(s.Cluster(), 5001)
	fw, err := h.Firewall(context.Background(), ct)
	wantNoError(t, err)
	s.Inject(pvesim.Fault{Kind: pvesim.FaultWorldAfter, Method: http.MethodPut, Path: "/lxc/900000/firewall/options$", World: func(c *pvesim.Cluster) {
		c.SetFirewall(900000, pvesim.FirewallSpec{})
	}})
	wantOutcome(t, h.SetFirewall(context.Background(), parking, fw), guest.OutcomeFailed)
}
