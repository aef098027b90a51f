package pvesim

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// sdnState are zones, vnets and the leases that Proxmox's own IPAM keeps.
type sdnState struct {
	zones, vnets map[string]map[string]string
	leases       []lease
}

// lease is one address given to a network card. An address has one lease; a MAC may have several.
type lease struct {
	zone, vnet, mac, ip string
	vmid                int
	hostname            string
	gateway             bool
}

func newSDNState() *sdnState {
	return &sdnState{zones: map[string]map[string]string{}, vnets: map[string]map[string]string{}}
}

func (s *sdnState) clone() *sdnState {
	n := newSDNState()
	for k, v := range s.zones {
		n.zones[k] = maps.Clone(v)
	}
	for k, v := range s.vnets {
		n.vnets[k] = maps.Clone(v)
	}
	n.leases = slices.Clone(s.leases)
	return n
}

// leaseOf looks an address up by MAC, as Proxmox does: of several leases it finds the last.
func (s *sdnState) leaseOf(mac string) *lease {
	for i := len(s.leases) - 1; i >= 0; i-- {
		if mac != "" && strings.EqualFold(s.leases[i].mac, mac) {
			return &s.leases[i]
		}
	}
	return nil
}

// release gives the address of a MAC back: the one that a look-up finds, whoever it was given to.
func (s *sdnState) release(mac string) {
	if l := s.leaseOf(mac); l != nil {
		ip := l.ip
		s.leases = slices.DeleteFunc(s.leases, func(o lease) bool { return o.ip == ip })
	}
}

// allocateLeases gives each network card of a guest an address where its vnet has DHCP.
func (c *Cluster) allocateLeases(g *guest) {
	for _, key := range g.conf.keys() {
		if !netKeyRE.MatchString(key) {
			continue
		}
		p := parseProps(g.conf.kv[key], "")
		v := c.sdn.vnets[p.value("bridge")]
		if v == nil || c.sdn.zones[v["zone"]]["dhcp"] == "" {
			continue
		}
		if ip := c.sdn.freeIP(v); ip != "" {
			c.sdn.leases = append(c.sdn.leases, lease{zone: v["zone"], vnet: p.value("bridge"), mac: p.value("hwaddr"), ip: ip, vmid: g.vmid, hostname: g.name()})
		}
	}
}

// freeIP is the lowest free address of a vnet's range ("dhcp-range": first-last).
func (s *sdnState) freeIP(vnet map[string]string) string {
	from, to, ok := strings.Cut(vnet["dhcp-range"], "-")
	first, err1 := netip.ParseAddr(from)
	last, err2 := netip.ParseAddr(to)
	if !ok || err1 != nil || err2 != nil {
		return ""
	}
	for a := first; a.Compare(last) <= 0; a = a.Next() {
		if !slices.ContainsFunc(s.leases, func(l lease) bool { return l.ip == a.String() }) {
			return a.String()
		}
	}
	return ""
}

func (s *Server) registerSDN() {
	s.route("GET", "/cluster/sdn/zones", listZones)
	s.route("GET", "/cluster/sdn/zones/{zone}", readZone)
	s.route("GET", "/cluster/sdn/vnets", listVnets)
	s.route("GET", "/cluster/sdn/vnets/{vnet}", readVnet)
	s.route("GET", "/cluster/sdn/ipams", listIPAMs)
	s.route("GET", "/cluster/sdn/ipams/{ipam}/status", ipamStatus)
	s.route("POST", "/cluster/sdn/vnets/{vnet}/ips", addIP)
	s.route("PUT", "/cluster/sdn/vnets/{vnet}/ips", setIP)
	s.route("DELETE", "/cluster/sdn/vnets/{vnet}/ips", deleteIP)
}

func sdnRow(kind, id string, conf map[string]string) map[string]any {
	row := map[string]any{kind: id}
	for n, v := range conf {
		if n != "dhcp-range" {
			row[n] = v
		}
	}
	return row
}

func listZones(k *call) (any, error) {
	rows := []map[string]any{}
	for _, z := range sortedKeys(k.c.sdn.zones) {
		if k.mayAny("/sdn/zones/"+z, "SDN.Audit", "SDN.Allocate") {
			rows = append(rows, sdnRow("zone", z, k.c.sdn.zones[z]))
		}
	}
	return rows, nil
}

func readZone(k *call) (any, error) {
	z := k.str("zone")
	if k.c.sdn.zones[z] == nil {
		return nil, die("sdn '%s' does not exist", z)
	}
	return sdnRow("zone", z, k.c.sdn.zones[z]), nil
}

func listVnets(k *call) (any, error) {
	rows := []map[string]any{}
	for _, v := range sortedKeys(k.c.sdn.vnets) {
		conf := k.c.sdn.vnets[v]
		if k.mayAny("/sdn/zones/"+conf["zone"]+"/"+v, "SDN.Audit", "SDN.Allocate") {
			rows = append(rows, sdnRow("vnet", v, conf))
		}
	}
	return rows, nil
}

func readVnet(k *call) (any, error) {
	v := k.str("vnet")
	conf := k.c.sdn.vnets[v]
	if conf == nil {
		return nil, die("sdn '%s' does not exist", v)
	}
	if err := k.needAny("/sdn/zones/"+conf["zone"]+"/"+v, "SDN.Audit", "SDN.Allocate"); err != nil {
		return nil, err
	}
	return sdnRow("vnet", v, conf), nil
}

func listIPAMs(*call) (any, error) { return []map[string]any{{"ipam": "pve", "type": "pve"}}, nil }

func ipamStatus(k *call) (any, error) {
	if k.str("ipam") != "pve" {
		return nil, die("Currently only pve ipam is supported!")
	}
	rows := []map[string]any{}
	for _, l := range k.c.sdn.leases {
		if !k.mayAny("/sdn/zones/"+l.zone+"/"+l.vnet, "SDN.Audit", "SDN.Use", "SDN.Allocate") {
			continue
		}
		row := map[string]any{"zone": l.zone, "vnet": l.vnet, "ip": l.ip, "subnet": k.c.sdn.vnets[l.vnet]["subnet"]}
		if l.mac != "" {
			row["mac"] = l.mac
		}
		if l.vmid != 0 {
			row["vmid"], row["hostname"] = l.vmid, l.hostname
		}
		if l.gateway {
			row["gateway"] = 1
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func addIP(k *call) (any, error) {
	if slices.ContainsFunc(k.c.sdn.leases, func(l lease) bool { return l.ip == k.str("ip") }) {
		return nil, die("IP '%s' already exist", k.str("ip"))
	}
	k.c.sdn.leases = append(k.c.sdn.leases, lease{zone: k.str("zone"), vnet: k.str("vnet"), mac: k.str("mac"), ip: k.str("ip")})
	return nil, nil
}

// setIP changes the address of a MAC.
func setIP(k *call) (any, error) {
	ip := k.str("ip")
	for _, l := range k.c.sdn.leases {
		if l.ip == ip && !strings.EqualFold(l.mac, k.str("mac")) {
			return nil, die("IP '%s' already exist", ip)
		}
	}
	n := lease{zone: k.str("zone"), vnet: k.str("vnet"), mac: k.str("mac"), ip: ip, vmid: atoi(k.str("vmid"))}
	if old := k.c.sdn.leaseOf(n.mac); old != nil {
		n.hostname = old.hostname
		if n.vmid == 0 {
			n.vmid = old.vmid
		}
	}
	if g := k.c.guests[n.vmid]; g != nil {
		n.hostname = g.name()
	}
	k.c.sdn.release(n.mac)
	k.c.sdn.leases = append(k.c.sdn.leases, n)
	return nil, nil
}

func deleteIP(k *call) (any, error) {
	before := len(k.c.sdn.leases)
	k.c.sdn.leases = slices.DeleteFunc(k.c.sdn.leases, func(l lease) bool { return l.ip == k.str("ip") })
	if len(k.c.sdn.leases) == before {
		return nil, die("IP '%s' does not exist in IPAM DB", k.str("ip"))
	}
	return nil, nil
}
