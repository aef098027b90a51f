package pvesim

import (
	"slices"
	"strings"
)

// mayModifyCT checks every key of a container's change, in Proxmox's words. old is the present
// configuration, nil for a new container; pool is the pool a create names, whose rights count.
func (k *call) mayModifyCT(vmid int, pool string, old, set map[string]string, remove []string, unprivileged bool) error {
	if k.who.isRoot() {
		return nil
	}
	for _, opt := range sortedKeys(set) {
		v := set[opt]
		if err := k.mayModifyKey(vmid, pool, opt, &v, old, unprivileged); err != nil {
			return err
		}
	}
	for _, opt := range remove {
		if err := k.mayModifyKey(vmid, pool, opt, nil, old, unprivileged); err != nil {
			return err
		}
	}
	return nil
}

// mayModifyKey checks one key; value is nil when it is deleted.
func (k *call) mayModifyKey(vmid int, pool, opt string, value *string, old map[string]string, unprivileged bool) error {
	vm := func(priv string) error { return k.needGuest(vmid, pool, false, priv) }
	switch {
	case opt == "cores", opt == "cpuunits", opt == "cpulimit":
		return vm("VM.Config.CPU")
	case isMountKey(opt):
		if err := vm("VM.Config.Disk"); err != nil || value == nil {
			return err
		}
		m := parseMount(opt, *value)
		if m.typ() != mountVolume {
			return forbiddenf("mount point type %s is only allowed for root@pam", m.typ())
		}
		if d := newDiskRE.FindStringSubmatch(m.volume()); d != nil {
			return k.need("/storage/"+d[1], "Datastore.AllocateSpace")
		}
		if bareSizeRE.MatchString(m.volume()) {
			return nil
		}
		return k.volumeAccess(vmid, m.volume(), "rootdir")
	case unusedKeyRE.MatchString(opt):
		return vm("VM.Config.Disk")
	case opt == "memory", opt == "swap":
		return vm("VM.Config.Memory")
	case netKeyRE.MatchString(opt):
		if err := vm("VM.Config.Network"); err != nil || value == nil {
			return err
		}
		return k.mayUseBridge(*value)
	case opt == "nameserver", opt == "searchdomain", opt == "hostname":
		return vm("VM.Config.Network")
	case opt == "features":
		return k.mayChangeFeatures(vmid, pool, value, old[opt], unprivileged)
	case opt == "hookscript":
		return forbidden("changing the hookscript is only allowed for root@pam")
	case devKeyRE.MatchString(opt):
		return forbidden("configuring device passthrough is only allowed for root@pam")
	default:
		return vm("VM.Config.Options")
	}
}

func (k *call) mayChangeFeatures(vmid int, pool string, value *string, old string, unprivileged bool) error {
	if !unprivileged {
		return forbidden("changing feature flags for privileged container is only allowed for root@pam")
	}
	nesting, other := false, value == nil
	if value != nil {
		was, is := featureMap(old), featureMap(*value)
		for _, f := range slices.Concat(sortedKeys(was), sortedKeys(is)) {
			if was[f] != is[f] {
				nesting = nesting || f == "nesting"
				other = other || f != "nesting"
			}
		}
	}
	if other {
		return forbidden("changing feature flags (except nesting) is only allowed for root@pam")
	}
	if nesting {
		return k.needGuest(vmid, pool, false, "VM.Allocate")
	}
	return nil
}

func featureMap(s string) map[string]string {
	m := map[string]string{}
	for _, o := range parseProps(s, "").opts {
		m[o.key] = normalBool(o.value)
	}
	return m
}

// mayUseBridge checks SDN.Use on the bridge or vnet a network plugs into, or on its VLAN there.
func (k *call) mayUseBridge(net string) error {
	p := parseProps(net, "")
	bridge := p.value("bridge")
	if bridge == "" {
		return nil
	}
	zone := "localnetwork"
	if v := k.c.sdn.vnets[bridge]; v != nil {
		zone = v["zone"]
	}
	path := "/sdn/zones/" + zone + "/" + bridge
	if k.may(path, "SDN.Use") {
		return nil
	}
	if tag := p.value("tag"); tag != "" {
		path += "/" + tag
	}
	return k.need(path, "SDN.Use")
}

// mayCreateCT asks for the right to make a container under a VMID: on it, or on the pool it is to
// be put into. Who may only back up a guest may restore over it, without its firewall.
func (k *call) mayCreateCT(vmid int, pool string, overwrite bool) (skipFirewall bool, err error) {
	switch {
	case k.may(vmPath(vmid), "VM.Allocate"):
		return false, nil
	case pool != "" && k.may("/pool/"+pool, "VM.Allocate"):
		return false, nil
	case overwrite && k.may(vmPath(vmid), "VM.Backup"):
		return true, nil
	default:
		return false, forbidden("")
	}
}

// checkPool refuses a pool that does not exist, as a missing right.
func (k *call) checkPool(id string) error {
	if id != "" && k.c.access.pools[id] == nil {
		return forbiddenf("pool '%s' does not exist", id)
	}
	return nil
}

// quoteShell joins words into one line as a shell would read them.
func quoteShell(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w
		if w == "" || strings.ContainsFunc(w, func(r rune) bool {
			return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-", r)
		}) {
			out[i] = "'" + strings.ReplaceAll(w, "'", `'"'"'`) + "'"
		}
	}
	return strings.Join(out, " ")
}
