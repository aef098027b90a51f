package pvesim

import "maps"

// VMSpec describes a virtual machine to put into the world, without any request.
type VMSpec struct {
	VMID int
	// Node defaults to the cluster's first.
	Node string
	// Config are configuration keys as they stand in the file. Disks they name as "storage:GiB" with
	// options after it are made.
	Config map[string]string
	// Files are what disks hold, by key of the configuration and path.
	Files map[string]map[string]string
	// Running starts it.
	Running bool
	// Pool is a pool to put it into, which is made when it does not exist.
	Pool string
}

// AddVM puts a virtual machine into the world. It panics on a specification that cannot be.
func (c *Cluster) AddVM(spec VMSpec) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if spec.Node == "" {
		spec.Node = c.local
	}
	g := newGuest(spec.VMID, kindQEMU, spec.Node)
	set := map[string]string{
		"smbios1": "uuid=" + c.newUUID(), "vmgenid": c.newUUID(), "memory": "512",
		"meta": "creation-qemu=10.0.13,ctime=" + itoa(int(c.now().Unix())),
	}
	maps.Copy(set, spec.Config)
	for _, key := range sortedKeys(set) {
		value := set[key]
		if value == "" {
			continue
		}
		if isDriveKey(key) {
			value = c.mustDisk(g, key, value)
		}
		g.conf.set(key, value)
	}
	for key, files := range spec.Files {
		d, ok := parseDrive(key, g.conf.kv[key])
		v := c.volume(g.node, d.file())
		if !ok || v == nil {
			panic("pvesim: no disk " + key + ": " + g.conf.kv[key])
		}
		maps.Copy(v.content, files)
	}
	c.guests[spec.VMID] = g
	if spec.Pool != "" {
		if c.access.pools[spec.Pool] == nil {
			c.access.pools[spec.Pool] = newPool()
		}
		c.access.pools[spec.Pool].vms[spec.VMID] = true
	}
	if spec.Running {
		g.running, g.started = true, c.now()
	}
}

// mustDisk makes the disk a "storage:GiB" value asks for and gives the value that names it.
func (c *Cluster) mustDisk(g *guest, key, value string) string {
	p := parseProps(value, "file")
	m := newDiskRE.FindStringSubmatch(p.bare)
	if m == nil {
		return value
	}
	format := c.targetFormat(m[1], "raw", p.value("format"))
	p = p.without("format")
	volid, err := c.alloc(g.node, m[1], g.vmid, format, "", wantedSize(m[2]+"G", 0))
	if err != nil {
		panic("pvesim: " + err.Error())
	}
	p.bare = volid
	if !unusedKeyRE.MatchString(key) {
		p = p.with("size", formatSize(c.volume(g.node, volid).size))
	}
	return p.render()
}

// DemoIdent is virtual machine id01 of the demo cluster: system, scratch and data disk.
const DemoIdent = 7131

func (d *Demo) addVMs() {
	d.AddVM(VMSpec{
		VMID: DemoIdent, Running: true,
		Config: map[string]string{
			"name": "id01", "cores": "2", "memory": "2048", "ostype": "l26", "scsihw": "virtio-scsi-single", "agent": "1",
			"scsi0": "local-lvm:8,discard=on,ssd=1", "scsi1": "local-lvm:4", "scsi2": "tank:40,discard=on,iothread=1,serial=IDDATA,ssd=1",
			"net0": "virtio=BC:24:11:00:71:31,bridge=vmbr0", "boot": "order=scsi0;net0", "onboot": "1", "tags": "ident;prod",
		},
		Files: map[string]map[string]string{
			"scsi0": {"/etc/os-release": "ID=debian\nVERSION_ID=12"},
			"scsi1": {"/scratch": "nothing of value"},
			"scsi2": {"/var/lib/id": "the data that must stay"},
		},
	})
}
