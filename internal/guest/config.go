package guest

import (
	"maps"
	"slices"
)

// Config is one section of a guest's configuration (current, pending merged, or a snapshot's) as text by key: what Proxmox
// would write into the file. Keys that pvrx does not know are there too.
type Config struct {
	Digest string // for compare and swap; "" when the answer had none
	Values map[string]string
	Raw    [][2]string // lxc.* pairs, in file order
}

// BadKey is a key whose value cannot be read, with the reason.
type BadKey struct{ Key, Value, Why string }

// Get returns the value of a key, and whether the config has it.
func (c Config) Get(key string) (value string, set bool) {
	value, set = c.Values[key]
	return value, set
}

// Keys returns all keys in natural order. Raw pairs are not among them.
func (c Config) Keys() []string {
	return slices.SortedFunc(maps.Keys(c.Values), CompareKeys)
}

// Mounts returns the storage keys of a container in natural order, rootfs first, and apart those that cannot be read.
func (c Config) Mounts() (mounts []Mount, bad []BadKey) {
	for _, wanted := range []string{"rootfs", "mp", "unused"} {
		for _, key := range c.Keys() {
			if name, _, _ := SplitKey(key); name != wanted {
				continue
			}
			m, err := ParseMount(key, c.Values[key])
			if err != nil {
				bad = append(bad, BadKey{Key: key, Value: c.Values[key], Why: err.Error()})
				continue
			}
			mounts = append(mounts, m)
		}
	}
	return mounts, bad
}

// Networks returns the netN keys in natural order, and apart those that cannot be read.
func (c Config) Networks() (networks []Network, bad []BadKey) {
	for _, key := range c.Keys() {
		if name, _, indexed := SplitKey(key); name != "net" || !indexed {
			continue
		}
		n, err := ParseNetwork(key, c.Values[key])
		if err != nil {
			bad = append(bad, BadKey{Key: key, Value: c.Values[key], Why: err.Error()})
			continue
		}
		networks = append(networks, n)
	}
	return networks, bad
}

// Description returns the guest's notes as Proxmox returned them.
func (c Config) Description() string { return c.Values["description"] }

// Hostname returns the container's hostname: what the config says, else the name that Proxmox gives by default.
func (c Config) Hostname(id VMID) string {
	if name := c.Values["hostname"]; name != "" {
		return name
	}
	return "CT" + id.String()
}

// Name returns what a guest calls itself: its hostname or, for a VM, its name.
func (c Config) Name(kind Kind, id VMID) string {
	if kind != KindVM {
		return c.Hostname(id)
	}
	if name := c.Values["name"]; name != "" {
		return name
	}
	return "VM " + id.String() // as Proxmox lists it
}

// Clone returns a copy that shares nothing with c.
func (c Config) Clone() Config {
	return Config{Digest: c.Digest, Values: maps.Clone(c.Values), Raw: slices.Clone(c.Raw)}
}

// Equal reports whether both say the same, notes and digest aside. Values are compared as text.
func (c Config) Equal(other Config) bool {
	a, b := c.Clone(), other.Clone()
	delete(a.Values, "description")
	delete(b.Values, "description")
	return maps.Equal(a.Values, b.Values) && slices.Equal(a.Raw, b.Raw)
}
