package pvesim

import "fmt"

// textNoPaths is Proxmox's answer to a path from anybody but root@pam himself.
const textNoPaths = "Only root can pass arbitrary filesystem paths. at /usr/share/perl5/PVE/Storage.pm line 651."

// volumeAccess checks that the caller may use a volume for a guest. vmid is 0 when it is for none,
// vtype is the content type the volume must have, empty for any.
func (k *call) volumeAccess(vmid int, volid, vtype string) error {
	sid, _, ok := splitVolID(volid)
	if !ok {
		if k.who.full == "root@pam" {
			return nil
		}
		return die(textNoPaths)
	}
	_, n, err := k.c.parseVolID(volid)
	if err != nil {
		return err
	}
	if vtype != "" && n.vtype != vtype && (vtype != "rootdir" || n.vtype != "images") {
		return die("unable to use volume %s - content type needs to be '%s'", volid, vtype)
	}
	return k.mayRead(sid, n, vmid, volid)
}

// mayRead is the part of volumeAccess that depends on the caller's rights.
func (k *call) mayRead(sid string, n volName, vmid int, volid string) error {
	path := "/storage/" + sid
	if k.may(path, "Datastore.Allocate") {
		return nil
	}
	guest := fmt.Sprintf("/vms/%d", n.owner)
	switch {
	case n.vtype == "iso" || n.vtype == "vztmpl" || n.vtype == "import":
		return k.needAny(path, "Datastore.AllocateSpace", "Datastore.Audit")
	case n.owned && vmid != 0 && n.owner == vmid:
		return nil
	case n.vtype == "backup" && n.owned && n.owner != 0:
		if err := k.need(path, "Datastore.AllocateSpace"); err != nil {
			return err
		}
		return k.need(guest, "VM.Backup")
	case n.vtype == "images" && n.owned && n.owner != 0:
		if err := k.need(path, "Datastore.Audit"); err != nil {
			return err
		}
		return k.need(guest, "VM.Config.Disk")
	}
	return die("missing privileges to access %s", volid)
}
