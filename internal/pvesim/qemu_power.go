package pvesim

import "strings"

// bootVM starts a VM: what was pending takes effect, every disk must be there.
func (k *call) bootVM(t *task, g *guest) error {
	if l := g.lock(); l != "" && l != "suspended" && !k.flag("skiplock") {
		return g.checkLock()
	}
	if g.running {
		return die("VM %d already running", g.vmid)
	}
	if g.isTemplate() {
		return die("you can't start a vm if it's a template")
	}
	errs := map[string]string{}
	k.applyVM(t, g, errs)
	for _, key := range driveKeys(g.conf.kv, false) {
		d, ok := parseDrive(key, g.conf.kv[key])
		if !ok || d.file() == "none" || d.file() == "cdrom" {
			continue
		}
		sid, _, managed := splitVolID(d.file())
		if !managed {
			continue
		}
		if _, err := k.c.storageActive(sid, g.node); err != nil {
			return err
		}
		if d.isCloudInit() {
			t.logf("generating cloud-init ISO")
			k.c.writeCloudInit(g)
		}
		if k.c.volume(g.node, d.file()) == nil {
			return die("volume '%s' does not exist", d.file())
		}
		if key == "efidisk0" && g.conf.kv["bios"] == "ovmf" && d.opts["pre-enrolled-keys"] == "1" && d.opts["ms-cert"] == "" {
			t.warnf("EFI disk without 'ms-cert=2023k' option, suggesting that not all UEFI 2023")
			t.logf("certificates from Microsoft are enrolled yet.")
		}
	}
	g.running, g.started, g.vm.paused = true, k.c.now(), false
	delete(g.conf.kv, "lock")
	return nil
}

// vmStopped is what happens to a VM that is no longer running: its pending changes take effect.
func (c *Cluster) vmStopped(g *guest) {
	g.vm.paused = false
	k := &call{c: c, who: identity{full: rootUser, user: rootUser}, vars: map[string]string{"node": g.node}, params: map[string]string{}}
	k.applyVM(nil, g, map[string]string{})
	g.dropUsedUnused()
}

// vmMaxDisk is the size of the first disk that the VM boots from, 0 without one.
func (c *Cluster) vmMaxDisk(g *guest) int64 {
	key := g.bootDisk()
	if key == "" {
		return 0
	}
	d, _ := parseDrive(key, g.conf.kv[key])
	if n, ok := parseSize(d.opts["size"]); ok {
		return n
	}
	return 0
}

// power is the frame of a power request: HA managed VMs are HA's to act on.
func (k *call) power(typ, haType, haState string, do func(*task, *guest) error) (any, error) {
	g, err := k.thisVM()
	if err != nil && haType == "" {
		return nil, err
	}
	vmid := k.vmid()
	if g != nil && haType != "" && k.c.managed(g) {
		return k.startTask(haType, itoa(vmid), nil, func(t *task) error {
			t.logf("Requesting HA %s for VM %d", strings.TrimPrefix(haType, "ha"), vmid)
			k.c.ha.resources[g.haID()]["state"] = haState
			k.c.haAct(g)
			return nil
		}), nil
	}
	return k.startTask(typ, itoa(vmid), []int{vmid}, func(t *task) error {
		g, err := k.thisVM()
		if err != nil {
			return err
		}
		return do(t, g)
	}), nil
}

func startVM(k *call) (any, error) {
	if k.flag("skiplock") && !k.who.isRoot() {
		return nil, paramError("skiplock", "Only root may use this option.")
	}
	if err := k.c.checkQuorum(); err != nil {
		return nil, err
	}
	return k.power("qmstart", "hastart", "started", k.bootVM)
}

func stopVM(k *call) (any, error) {
	for _, name := range []string{"skiplock", "keepActive", "migratedfrom"} {
		if k.has(name) && k.str(name) != "0" && !k.who.isRoot() {
			return nil, paramError(name, "Only root may use this option.")
		}
	}
	if g, err := k.thisVM(); err == nil && k.flag("overrule-shutdown") && k.c.managed(g) {
		return nil, paramError("overrule-shutdown", "Not applicable for HA resources.")
	}
	return k.power("qmstop", "hastop", "stopped", func(_ *task, g *guest) error {
		if g.running {
			if !k.flag("skiplock") {
				if err := g.checkLock(); err != nil {
					return err
				}
			}
			k.c.powerOff(g)
		}
		return nil
	})
}

// obeysACPI tells whether something in the VM reacts to the power button: there must be a system on
// a disk, and nobody must have said that it hangs.
func (k *call) obeysACPI(g *guest) bool {
	if k.c.unwell[g.vmid] != "" {
		return false
	}
	for _, key := range driveKeys(g.conf.kv, false) {
		d, ok := parseDrive(key, g.conf.kv[key])
		if !ok || d.isCDROM() || key == "efidisk0" || key == "tpmstate0" {
			continue
		}
		if v := k.c.volume(g.node, d.file()); v != nil && len(v.content) > 0 {
			return true
		}
	}
	return false
}

func shutdownVM(k *call) (any, error) {
	g, err := k.thisVM()
	if err == nil && g.vm.paused && !k.flag("forceStop") {
		return nil, die("VM is paused - cannot shutdown")
	}
	return k.power("qmshutdown", "hastop", "stopped", func(t *task, g *guest) error {
		if !g.running {
			return nil
		}
		if err := g.checkLock(); err != nil {
			return err
		}
		if !k.obeysACPI(g) {
			if !k.flag("forceStop") {
				return die("VM quit/powerdown failed - got timeout")
			}
			t.logf("VM still running - terminating now with SIGTERM")
		}
		k.c.powerOff(g)
		return nil
	})
}

func rebootVM(k *call) (any, error) {
	g, err := k.thisVM()
	if err != nil {
		return nil, err
	}
	switch {
	case g.vm.paused:
		return nil, die("VM is paused - cannot shutdown")
	case !g.running:
		return nil, die("VM %d not running", g.vmid)
	}
	return k.power("qmreboot", "", "", func(t *task, g *guest) error {
		if !k.obeysACPI(g) {
			return die("VM quit/powerdown failed - got timeout")
		}
		k.c.powerOff(g)
		return k.bootVM(t, g)
	})
}

func resetVM(k *call) (any, error) {
	g, err := k.thisVM()
	if err != nil {
		return nil, err
	}
	if !g.running {
		return nil, die("VM %d not running", g.vmid)
	}
	return k.power("qmreset", "", "", func(_ *task, g *guest) error {
		g.started = k.c.now()
		return g.checkLock()
	})
}

func suspendVM(k *call) (any, error) {
	g, err := k.thisVM()
	if err != nil {
		return nil, err
	}
	if !g.running {
		return nil, die("VM %d not running", g.vmid)
	}
	return k.power("qmpause", "", "", func(_ *task, g *guest) error {
		if err := g.checkLock(); err != nil {
			return err
		}
		g.vm.paused = true
		return nil
	})
}

func resumeVM(k *call) (any, error) {
	g, err := k.thisVM()
	if err != nil {
		return nil, err
	}
	if !g.running {
		return nil, die("VM %d not running", g.vmid)
	}
	return k.power("qmresume", "", "", func(_ *task, g *guest) error {
		g.vm.paused = false
		return nil
	})
}

func (k *call) agentReady() (*guest, error) {
	g, err := k.thisVM()
	switch {
	case err != nil:
		return nil, err
	case !g.agentEnabled():
		return nil, die("No QEMU guest agent configured")
	case !g.running:
		return nil, die("VM %d is not running", g.vmid)
	case !k.obeysACPI(g):
		return nil, die("QEMU guest agent is not running")
	}
	return g, nil
}

func pingAgent(k *call) (any, error) {
	if _, err := k.agentReady(); err != nil {
		return nil, err
	}
	return map[string]any{"result": map[string]any{}}, nil
}

func agentInterfaces(k *call) (any, error) {
	g, err := k.agentReady()
	if err != nil {
		return nil, err
	}
	rows := []map[string]any{{"name": "lo", "hardware-address": "00:00:00:00:00:00", "ip-addresses": []map[string]any{
		{"ip-address": "127.0.0.1", "ip-address-type": "ipv4", "prefix": 8},
	}}}
	for _, key := range g.conf.keys() {
		if !netRE.MatchString(key) {
			continue
		}
		parts, err := vmMethod().arg("net0").parts.parse(g.conf.kv[key], "")
		if err != nil {
			continue
		}
		rows = append(rows, map[string]any{
			"name": "eth" + key[3:], "hardware-address": strings.ToLower(parts["macaddr"]), "ip-addresses": k.c.vmAddresses(g, key),
		})
	}
	return map[string]any{"result": rows}, nil
}

// vmAddresses are the addresses that cloud-init gave a network card.
func (c *Cluster) vmAddresses(g *guest, netKey string) []map[string]any {
	out := []map[string]any{}
	ip, bits, ok := strings.Cut(parseProps(g.conf.kv["ipconfig"+netKey[3:]], "").value("ip"), "/")
	if ok {
		out = append(out, map[string]any{"ip-address": ip, "ip-address-type": "ipv4", "prefix": atoi(bits)})
	}
	return out
}
