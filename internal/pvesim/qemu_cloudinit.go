package pvesim

import (
	"fmt"
	"strings"
)

// cloudInitKeys are the settings that show in /cloudinit.
var cloudInitKeys = []string{"cicustom", "cipassword", "citype", "ciuser", "ciupgrade", "nameserver", "searchdomain", "sshkeys"}

// writeCloudInit makes the cloud-init drive from the present settings.
func (c *Cluster) writeCloudInit(g *guest) {
	for _, key := range driveKeys(g.conf.kv, false) {
		d, ok := parseDrive(key, g.conf.kv[key])
		if !ok || !d.isCloudInit() {
			continue
		}
		if v := c.volume(g.node, d.file()); v != nil {
			v.content["user-data"] = cloudInitText(g, "user")
			v.content["network-config"] = cloudInitText(g, "network")
		}
	}
	g.vm.cloudInit = map[string]string{}
	for _, key := range cloudInitKeys {
		if v, ok := g.conf.kv[key]; ok {
			g.vm.cloudInit[key] = v
		}
	}
}

func cloudInitText(g *guest, part string) string {
	var b strings.Builder
	switch part {
	case "network":
		b.WriteString("version: 1\nconfig:\n")
		for _, key := range g.conf.keys() {
			if ipconfigRE.MatchString(key) {
				fmt.Fprintf(&b, "    # %s: %s\n", key, g.conf.kv[key])
			}
		}
	case "meta":
		fmt.Fprintf(&b, "instance-id: %s\n", g.digest())
	default:
		fmt.Fprintf(&b, "#cloud-config\nhostname: %s\nmanage_etc_hosts: true\n", g.vmName())
		if u := g.conf.kv["ciuser"]; u != "" {
			fmt.Fprintf(&b, "user: %s\n", u)
		}
		if p := g.conf.kv["cipassword"]; p != "" {
			fmt.Fprintf(&b, "password: %s\n", p)
		}
	}
	return b.String()
}

func readCloudInit(k *call) (any, error) {
	g, err := k.thisVM()
	if err != nil {
		return nil, err
	}
	hide := func(key, v string) string {
		if key == "cipassword" {
			return "**********"
		}
		return v
	}
	rows := []map[string]any{}
	for _, key := range cloudInitKeys {
		now, set := g.conf.kv[key]
		old, had := g.vm.cloudInit[key]
		switch {
		case set && g.vm.cloudInit == nil, set && had && now == old:
			rows = append(rows, map[string]any{"key": key, "value": hide(key, now)})
		case set && had:
			rows = append(rows, map[string]any{"key": key, "value": hide(key, old), "pending": hide(key, now)})
		case set:
			rows = append(rows, map[string]any{"key": key, "pending": hide(key, now)})
		case had:
			rows = append(rows, map[string]any{"key": key, "delete": 1})
		}
	}
	return rows, nil
}

func renewCloudInit(k *call) (any, error) {
	g, err := k.lockedVM()
	if err != nil {
		return nil, err
	}
	k.c.writeCloudInit(g)
	return nil, nil
}

func dumpCloudInit(k *call) (any, error) {
	g, err := k.thisVM()
	if err != nil {
		return nil, err
	}
	return cloudInitText(g, k.str("type")), nil
}
