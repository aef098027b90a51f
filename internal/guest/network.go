package guest

import (
	"fmt"
	"maps"
	"strings"
)

// Network is one netN key of a guest.
type Network struct {
	Key     string
	Options map[string]string // as written; a model without a MAC ("virtio") is under "model"
}

// ParseNetwork reads the value of netN of a container or a VM. Options may stand in any order; unknown ones are kept.
func ParseNetwork(key, value string) (Network, error) {
	if name, index, ok := SplitKey(key); !ok || name != "net" || index > 31 {
		return Network{}, fmt.Errorf("cannot read network %s: not a network key", clip(key))
	}
	options, err := parseProperties(value, "model")
	if err != nil {
		return Network{}, fmt.Errorf("cannot read network %s: %w", key, err)
	}
	if len(options) == 0 {
		return Network{}, fmt.Errorf("cannot read network %s: it is empty", key)
	}
	return Network{Key: key, Options: options}, nil
}

// String returns the network as config text: the interface's name (containers) or its model (VMs) first, the rest in
// alphabetical order.
func (n Network) String() string {
	rest := maps.Clone(n.Options)
	var parts []string
	for _, first := range append([]string{"name", "model"}, networkModels()...) {
		if text, ok := rest[first]; ok {
			parts = append(parts, first+"="+text)
			delete(rest, first)
		}
	}
	return printProperties(parts, rest)
}

// MAC returns the interface's hardware address in upper case, or "" when the config names none.
func (n Network) MAC() string {
	for _, name := range append([]string{"hwaddr", "macaddr"}, networkModels()...) {
		if mac, ok := n.Options[name]; ok {
			return strings.ToUpper(mac)
		}
	}
	return ""
}

// SameNetwork reports whether two networks mean the same, whatever the order of options and the case of the MAC.
func SameNetwork(a, b Network) bool {
	return a.Key == b.Key && maps.Equal(a.normal(), b.normal())
}

func (n Network) normal() map[string]string {
	normal := maps.Clone(n.Options)
	for _, name := range append([]string{"hwaddr", "macaddr"}, networkModels()...) {
		if mac, ok := normal[name]; ok {
			normal[name] = strings.ToUpper(mac)
		}
	}
	return normal
}

// networkModels are the card models of a VM: written as model=MAC, they are option names too.
func networkModels() []string {
	return []string{
		"virtio", "e1000", "e1000-82540em", "e1000-82544gc", "e1000-82545em", "e1000e", "i82551", "i82557b", "i82559er",
		"ne2k_isa", "ne2k_pci", "pcnet", "rtl8139", "vmxnet3",
	}
}
