package proxmox

import (
	"encoding/json"
	"testing"
)

func TestLooseValues(t *testing.T) {
	type row struct {
		W words `json:"w"`
		N whole `json:"n"`
		F flag  `json:"f"`
	}
	for _, c := range []struct {
		text string
		want row
		ok   bool
	}{
		{`{}`, row{}, true},
		{`{"w":null,"n":null,"f":null}`, row{}, true},
		{`{"w":"a","n":"17","f":"1"}`, row{"a", 17, true}, true},
		{`{"w":12,"n":17,"f":1}`, row{"12", 17, true}, true},
		{`{"w":true,"n":1.5e3,"f":true}`, row{"1", 1500, true}, true},
		{`{"w":123456789012345678,"n":9007199254740993,"f":false}`, row{"123456789012345678", 9007199254740993, false}, true},
		{`{"w":1.25,"n":"","f":""}`, row{"1.25", 0, false}, true},
		{`{"w":{"a":1}}`, row{}, false},
		{`{"n":"many"}`, row{}, false},
		{`{"f":"maybe"}`, row{}, false},
	} {
		var got row
		err := json.Unmarshal([]byte(c.text), &got)
		if (err == nil) != c.ok || c.ok && got != c.want {
			t.Errorf("%s: %+v, %v", c.text, got, err)
		}
	}
}

func TestUPIDs(t *testing.T) {
	u, err := parseUPID("UPID:pve-1:000005FB:000503B7:6B0E5890:move_volume:5001-mp0>900000-mp0:ci@pve!pvrx:")
	wantNoError(t, err)
	if u.node != "pve-1" || u.kind != "move_volume" || u.id != "5001-mp0>900000-mp0" || u.user != "ci@pve!pvrx" || u.started != 0x6B0E5890 {
		t.Errorf("%+v", u)
	}
	if got := u.path("status"); got != "/nodes/pve-1/tasks/UPID:pve-1:000005FB:000503B7:6B0E5890:move_volume:5001-mp0%3E900000-mp0:ci@pve%21pvrx:/status" {
		t.Error(got)
	}
	for _, bad := range []string{"", "OK", "UPID:", "UPID:n:1:2:3:t:i:u:", u.text + "x", "UPID:../../x:000005FB:000503B7:6B0E5890:t:i:u:"} {
		if _, err := parseUPID(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

func TestAddresses(t *testing.T) {
	var list []netInterface
	wantNoError(t, json.Unmarshal([]byte(`[
		{"name":"lo","hwaddr":"00:00:00:00:00:00","inet":"127.0.0.1/8"},
		{"name":"eth0","hwaddr":"02:AA:00:00:00:01","hardware-address":"02:aa:00:00:00:01","inet":"10.0.0.5/24","inet6":"fe80::1/64",
		 "ip-addresses":[{"ip-address":"10.0.0.5","ip-address-type":"inet","prefix":24},{"ip-address":"10.0.0.6","prefix":"24"}]},
		{"name":"eth1","hardware-address":"02:aa:00:00:00:02"}]`), &list))
	got := addressesByMAC(list)
	if len(got) != 2 || len(got["02:aa:00:00:00:01"]) != 3 || got["02:aa:00:00:00:02"] == nil {
		t.Errorf("%v", got)
	}
}

func TestArchiveNames(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"INFO: creating vzdump archive '/var/lib/vz/dump/vzdump-lxc-112-2026_12_01-05_18_08.tar.zst'", "backup/vzdump-lxc-112-2026_12_01-05_18_08.tar.zst"},
		{"INFO: creating Proxmox Backup Server archive 'ct/112/2026-12-01T05:18:08Z'", "backup/ct/112/2026-12-01T05:18:08Z"},
		{"INFO: status = stopped", ""},
	} {
		if got := archiveName([]string{"INFO: first", c.line}); got != c.want {
			t.Errorf("%q: %q", c.line, got)
		}
	}
}
