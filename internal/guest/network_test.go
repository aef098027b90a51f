package guest

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseNetwork(t *testing.T) {
	for _, test := range []struct{ value, printed, mac string }{
		{"name=eth0,bridge=vmbr0,hwaddr=BC:24:11:84:89:78,ip=dhcp,type=veth", "", "BC:24:11:84:89:78"},
		{"bridge=vmbr0,ip=10.0.0.2/24,name=eth0,hwaddr=bc:24:11:84:89:78", "name=eth0,bridge=vmbr0,hwaddr=bc:24:11:84:89:78,ip=10.0.0.2/24", "BC:24:11:84:89:78"},
		{"name=eth0,bridge=vmbr0,host-managed=1,link_down=1,trunks=10;20,zz=1", "", ""},
		{"virtio=BC:24:11:7E:CD:4D,bridge=vmbr0", "", "BC:24:11:7E:CD:4D"},
		{"e1000-82540em=bc:24:11:7e:cd:4d,bridge=vmbr0,firewall=1", "", "BC:24:11:7E:CD:4D"},
		{"virtio,bridge=vmbr0,macaddr=bc:24:11:7e:cd:4d", "model=virtio,bridge=vmbr0,macaddr=bc:24:11:7e:cd:4d", "BC:24:11:7E:CD:4D"},
	} {
		n, err := ParseNetwork("net0", test.value)
		if err != nil {
			t.Errorf("%q: %v", test.value, err)
			continue
		}
		if test.printed == "" {
			test.printed = test.value
		}
		if n.String() != test.printed || n.MAC() != test.mac {
			t.Errorf("%q: printed %q, MAC %q", test.value, n.String(), n.MAC())
		}
	}
	for key, value := range map[string]string{
		"net32": "name=eth0", "net": "name=eth0", "mp0": "name=eth0", "net0": "", "net1": "name=eth0,name=eth1", "net2": "name=", "net3": "name=a\nb",
	} {
		if n, err := ParseNetwork(key, value); err == nil {
			t.Errorf("%s %q: got %+v, want an error", key, value, n)
		}
	}
}

func TestSameNetwork(t *testing.T) {
	read := func(key, value string) Network {
		t.Helper()
		n, err := ParseNetwork(key, value)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	base := read("net0", "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:84:89:78")
	for value, want := range map[string]bool{
		"hwaddr=bc:24:11:84:89:78,bridge=vmbr0,name=eth0":            true,
		"name=eth0,bridge=vmbr1,hwaddr=BC:24:11:84:89:78":            false,
		"name=eth0,bridge=vmbr0,hwaddr=BC:24:11:84:89:79":            false,
		"name=ETH0,bridge=vmbr0,hwaddr=BC:24:11:84:89:78":            false,
		"name=eth0,bridge=vmbr0,hwaddr=BC:24:11:84:89:78,firewall=1": false,
	} {
		if got := SameNetwork(base, read("net0", value)); got != want {
			t.Errorf("%q: same %v, want %v", value, got, want)
		}
	}
	if SameNetwork(base, read("net1", base.String())) {
		t.Error("two keys are the same network")
	}
	if base.Options["hwaddr"] != "BC:24:11:84:89:78" {
		t.Error("comparing changes a network")
	}
}

func TestNetworkRoundTrip(t *testing.T) {
	names := []string{"name", "bridge", "hwaddr", "ip", "ip6", "gw", "tag", "virtio", "model", "macaddr", "host-managed", "new_one"}
	rapid.Check(t, func(t *rapid.T) {
		n := Network{Key: "net3", Options: map[string]string{}}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, len(names), rapid.ID).Draw(t, "names") {
			n.Options[name] = rapid.StringMatching(`[a-zA-Z0-9:/.;= -]{1,10}`).Draw(t, name)
		}
		got, err := ParseNetwork(n.Key, n.String())
		if err != nil || !reflect.DeepEqual(got, n) || !SameNetwork(got, n) {
			t.Fatalf("%q is read as %+v, want %+v (%v)", n.String(), got, n, err)
		}
		parts := rapid.Permutation(strings.Split(n.String(), ",")).Draw(t, "order")
		if got, err := ParseNetwork(n.Key, strings.Join(parts, ",")); err != nil || !SameNetwork(got, n) {
			t.Fatalf("the order matters: %+v, %v", got, err)
		}
	})
}
