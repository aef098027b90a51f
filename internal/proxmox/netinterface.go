package proxmox

import (
	"cmp"
	"slices"
	"strings"
)

// netInterface is an interface as a container's host or a VM's agent reports it; both spellings of the MAC occur.
type netInterface struct {
	Name      words `json:"name"`
	HWAddr    words `json:"hwaddr"`
	MAC       words `json:"hardware-address"`
	Inet      words `json:"inet"`
	Inet6     words `json:"inet6"`
	Addresses []struct {
		Address words `json:"ip-address"`
	} `json:"ip-addresses"`
}

// addressesByMAC returns MAC (lower case) -> addresses without their prefix lengths, in the order reported.
func addressesByMAC(list []netInterface) map[string][]string {
	found := map[string][]string{}
	for _, i := range list {
		mac := strings.ToLower(string(cmp.Or(i.HWAddr, i.MAC)))
		if i.Name == "lo" || mac == "" || mac == "00:00:00:00:00:00" {
			continue
		}
		all := strings.Fields(string(i.Inet) + " " + string(i.Inet6))
		for _, a := range i.Addresses {
			all = append(all, string(a.Address))
		}
		found[mac] = []string{}
		for _, text := range all {
			address, _, _ := strings.Cut(text, "/")
			if address != "" && !slices.Contains(found[mac], address) {
				found[mac] = append(found[mac], address)
			}
		}
	}
	return found
}
