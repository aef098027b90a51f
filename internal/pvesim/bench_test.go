package pvesim

import "testing"

// One request in process, as most tests make them: they make very many.
func BenchmarkRequest(b *testing.B) {
	r := newReplay(b)
	r.call("POST", "/nodes/pve/lxc", "root@pam!lab", map[string]string{
		"vmid": "101", "ostemplate": "local:vztmpl/debian-13-standard_13.1-1_amd64.tar.zst", "rootfs": "local:1", "mp0": "local:1,mp=/data",
		"net0": "name=eth0,bridge=vmbr0,ip=dhcp", "description": "some notes",
	})
	for _, bench := range []struct{ name, method, path string }{
		{"read", "GET", "/nodes/pve/lxc/101/config"},
		{"write", "PUT", "/nodes/pve/lxc/101/config"},
		{"content", "GET", "/nodes/pve/storage/local/content"},
		{"resources", "GET", "/cluster/resources"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			params := map[string]string{}
			if bench.method == "PUT" {
				params["memory"] = "300"
			}
			for b.Loop() {
				r.call(bench.method, bench.path, "root@pam!lab", params)
			}
		})
	}
}
