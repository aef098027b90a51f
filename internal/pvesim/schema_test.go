package pvesim

import (
	"maps"
	"strings"
	"testing"
)

func TestSchemaCheck(t *testing.T) {
	const (
		put    = "PUT /nodes/{node}/lxc/{vmid}/config"
		create = "POST /nodes/{node}/qemu"
		pull   = "POST /nodes/{node}/storage/{storage}/oci-registry-pull"
	)
	base := map[string]string{"node": "pve1", "vmid": "101", "storage": "local"}
	for _, tc := range []struct{ op, args, bad, text string }{
		{put, "memory=512", "", ""},
		{put, "onboot=yes", "", ""},
		{put, "onboot=maybe", "onboot", "type check ('boolean') failed - got 'maybe'"},
		{put, "memory=abc", "memory", "type check ('integer') failed - got 'abc'"},
		{put, "memory=8", "memory", "value must have a minimum value of 16"},
		{put, "cores=8193", "cores", "value must have a maximum value of 8192"},
		{put, "cpulimit=1.5", "", ""},
		{put, "cpulimit=x", "cpulimit", "type check ('number') failed - got 'x'"},
		{put, "bogus=1", "bogus", textUnknownKey},
		{put, "mp255=local:1,mp=/a", "", ""},
		{put, "mp256=local:1,mp=/a", "mp256", textUnknownKey},
		{put, "mp01=local:1,mp=/a", "mp01", textUnknownKey},
		{put, "net32=name=eth0", "net32", textUnknownKey},
		{put, "mp0=local:1", "mp0", "invalid format - format error\nmp0.mp: property is missing and it is not optional\n"},
		{put, "mp0=local:1,mp=/a,mp=/b", "mp0", "invalid format - duplicate key in comma-separated list property: mp\n"},
		{put, "mp0=local:1,mp=/a,color=red", "mp0", "invalid format - invalid key in comma-separated list property: color\n"},
		{put, "mp0=local:1,mp=/a,ro=on,backup=yes", "", ""},
		{put, "mp0=local:1,mp=/a,size=8g", "mp0", "invalid format - format error\nmp0.size: invalid format - value does not look like a valid disk size: 8g\n\n"},
		{put, "mp0=local:1,mp=/a/../b", "mp0", "invalid format - format error\nmp0.mp: invalid format - /a/../b contains illegal character sequences\n\n"},
		{put, "net0=name=eth0,hwaddr=01:00:00:00:00:00", "net0", "invalid format - format error\nnet0.hwaddr: invalid format - value does not look like a valid unicast MAC address\n\n"},
		{put, "net0=name=eth0,ip=10.0.0.1/24", "", ""},
		{put, "net0=name=eth0,ip=10.0.0.1", "net0", "invalid format - format error\nnet0.ip: invalid format - value does not look like a valid ipv4 network configuration\n\n"},
		{put, "digest=" + strings.Repeat("a", 41), "digest", "value may only be 40 characters long"},
		{put, "description=" + strings.Repeat("ä", 8192), "", ""},
		{put, "description=" + strings.Repeat("ä", 8193), "description", "value may only be 8192 characters long"},
		{put, "ostype=plan9", "ostype", "value 'plan9' does not have a value in the enumeration 'debian, devuan, ubuntu, centos, fedora, opensuse, archlinux, alpine, gentoo, nixos, unmanaged'"},
		{put, "tags=a;B;c-1", "", ""},
		{put, "tags=a;!", "tags", "invalid format - invalid characters in tag\n"},
		{put, "startup=order=1,up=5", "", ""},
		{put, "startup=first", "startup", "invalid format - unable to parse startup options\n"},
		{put, "hostname=a.b-c", "", ""},
		{put, "hostname=-a", "hostname", "invalid format - value does not look like a valid DNS name\n"},
		{put, "env=A=1\x00B=2", "", ""},
		{put, "env=A=1\nB=2", "env", "value does not match the regex pattern"},
		{create, "scsi0=local:1,iothread=1", "", ""},
		{create, "scsi30=local:1", "", ""},
		{create, "scsi31=local:1", "scsi31", textUnknownKey},
		{create, "virtio0=local:1,ssd=1", "virtio0", "invalid format - invalid key in comma-separated list property: ssd\n"},
		{create, "net0=virtio=BC:24:11:00:00:01,bridge=vmbr0", "", ""},
		{create, "net0=virtio=BC:24:11:00:00:01,e1000=BC:24:11:00:00:02", "net0", "invalid format - key alias 'model' is already defined\n"},
		{create, "memory=abc", "memory", "invalid format - format error\nmemory.current: type check ('integer') failed - got 'abc'\n"},
		{create, "force=1", "archive", "missing property required by 'force'"},
		{create, "ipconfig0=gw=10.0.0.1", "ipconfig0", "invalid format - format error\nipconfig0.ip: missing property required by 'ipconfig0.gw'\n"},
		{pull, "reference=docker.io/library/nginx:1.27", "", ""},
		{pull, "reference=docker.io/library/nginx", "reference", "value does not match the regex pattern"},
		{pull, "", "reference", textMissing},
	} {
		t.Run(tc.op+" "+tc.args, func(t *testing.T) {
			op := apiSchema().operation(tc.op)
			args := map[string]string{}
			for k, v := range base {
				if op.arg(k) != nil {
					args[k] = v
				}
			}
			for pair := range strings.SplitSeq(tc.args, "&") {
				if k, v, ok := strings.Cut(pair, "="); ok {
					args[k] = v
				}
			}
			bad := op.check(args)
			if tc.bad == "" {
				if bad != nil {
					t.Errorf("refused: %v", bad)
				}
				return
			}
			if len(bad) != 1 || bad[tc.bad] != tc.text {
				t.Errorf("got %q, want %s: %q", bad, tc.bad, tc.text)
			}
		})
	}
}

func TestSchemaPathArguments(t *testing.T) {
	for _, tc := range []struct{ vmid, node, bad string }{
		{"100", "pve1", ""},
		{"99", "pve1", "vmid"},
		{"1000000000", "pve1", "vmid"},
		{"0100", "pve1", "vmid"},
		{"100", "-pve", "node"},
		{"100", "p_v", "node"},
	} {
		bad := apiSchema().operation("GET /nodes/{node}/lxc/{vmid}/config").check(map[string]string{"vmid": tc.vmid, "node": tc.node})
		if got := strings.Join(sortedKeys(bad), ","); got != tc.bad {
			t.Errorf("vmid %s on %s: refused %q, want %q", tc.vmid, tc.node, got, tc.bad)
		}
	}
}

// Every pattern of the embedded schema must be one that Go understands as well.
func TestSchemaPatterns(t *testing.T) {
	for _, op := range apiSchema().Methods {
		for _, args := range []map[string]*property{op.Args, op.indexed} {
			for name, p := range args {
				props := map[string]*property{name: p}
				if p.parts != nil {
					maps.Copy(props, p.parts.props)
				}
				for _, q := range props {
					if q.match != nil {
						q.match()
					}
				}
			}
		}
	}
}

func TestPrintPropertyString(t *testing.T) {
	for _, tc := range []struct{ key, in, want string }{
		{"scsi0", "ssd=1,file=local:1,discard=on", "local:1,discard=on,ssd=1"},
		{"scsi0", "local:1/vm-1-disk-0.raw,iothread=yes", "local:1/vm-1-disk-0.raw,iothread=1"},
		{"net0", "bridge=vmbr0,virtio=BC:24:11:00:00:01", "virtio=BC:24:11:00:00:01,bridge=vmbr0"},
		{"net0", "model=virtio,macaddr=BC:24:11:00:00:01,firewall=1", "virtio=BC:24:11:00:00:01,firewall=1"},
		{"scsi0", "volume=local:1", "local:1"},
	} {
		f := vmMethod().arg(tc.key).parts
		parts, err := f.parse(tc.in, "")
		if err != nil {
			t.Errorf("%s: %v", tc.in, err)
			continue
		}
		if got := f.print(parts); got != tc.want {
			t.Errorf("%s: printed %s, want %s", tc.in, got, tc.want)
		}
	}
}
