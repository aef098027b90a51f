package recipe

import (
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
)

// rootfsStorage is where the new root file system goes: as wanted, else where the present one is.
func rootfsStorage(c guest.Config, want preview.Want) string {
	if want.Rootfs.Storage != "" {
		return want.Rootfs.Storage
	}
	if m, err := guest.ParseMount("rootfs", c.Values["rootfs"]); err == nil {
		if id, ok := m.Volume(); ok {
			return id.Storage
		}
	}
	return ""
}

// rootfsSize is how large it becomes: as wanted, else as large as the present one is, in whole MiB rounded up.
func rootfsSize(f preview.Facts, want preview.Want) guest.Bytes {
	if want.Rootfs.Size > 0 {
		return want.Rootfs.Size.CeilMiB()
	}
	m, err := guest.ParseMount("rootfs", f.Guest.Config.Values["rootfs"])
	if err != nil {
		return 0
	}
	if id, ok := m.Volume(); ok {
		if row, ok := f.Volumes[id]; ok && row.Size > 0 {
			return row.Size.CeilMiB()
		}
	}
	size, _, err := guest.ReadSize(m.SizeText)
	if err != nil {
		return 0
	}
	return size.CeilMiB()
}

// installed is what the guest is made from: the contract's word, else state's.
func installedNow(seen Observation, state *guest.Install) *guest.Install {
	if seen.Contract != nil && (seen.Contract.Installed.Template != "" || len(seen.Contract.Installed.Disks) > 0) {
		was := seen.Contract.Installed
		return &was
	}
	return state
}

// rootfsParam is the rootfs parameter of a create: a new volume with the old one's options (hazard C3).
func (o *operation) rootfsParam() string {
	param := o.j.Storage + ":" + o.j.Size.AllocationGiB()
	m, err := guest.ParseMount("rootfs", o.j.Config["rootfs"])
	if err != nil {
		return param
	}
	m.Source, m.SizeText = param, ""
	return m.String()
}

// carried is the configuration of the new guest: what the old one's says, by the closed list, with the words that a create
// would read differently when absent (hazard A7), and without what comes after the create: volumes never travel in a create,
// since templates unpack into what is mounted; tags and onboot are put back when everything else is in place.
func (o *operation) carried() map[string]string {
	params := preview.Carry(
		preview.Facts{Guest: guest.Guest{Ref: o.guest, Config: guest.Config{Values: o.aim()}}, Login: o.login},
		preview.Want{Drop: o.j.Drop},
	)
	delete(params, "tags")
	params["ostemplate"], params["rootfs"], params["onboot"] = o.j.Wanted.Template, o.rootfsParam(), "0"
	if o.j.App != nil {
		o.carriedApp(params)
	}
	if o.req.Password != "" {
		params["password"] = o.req.Password
	}
	if len(o.req.Keys) > 0 {
		params["ssh-public-keys"] = strings.Join(o.req.Keys, "\n") + "\n"
	}
	return params
}

// newGuest are the parameters of the create under the guest's own VMID.
func (o *operation) newGuest(notes string) map[string]string {
	params := o.carried()
	params["description"] = notes
	if o.j.Pool != "" {
		params["pool"] = o.j.Pool
	}
	return params
}

// parkingName is the hostname of a parking guest: how people and later runs recognise one.
func parkingName(id guest.VMID) string { return "pvrx-parking-" + id.String() }

// rehearsedGuest are the parameters of the parking guest: the same, but with throw-away MACs and links down (hazard B14),
// under a name of its own, and without what would act on the outside world.
func (o *operation) rehearsedGuest(notes string) map[string]string {
	params := o.carried()
	params["description"] = notes
	params["hostname"] = parkingName(o.guest.VMID)
	if o.c.ParkingPool != "" {
		params["pool"] = o.c.ParkingPool
	}
	for key, value := range params {
		switch prefix, _, _ := guest.SplitKey(key); prefix {
		case "net":
			n, err := guest.ParseNetwork(key, value)
			if err != nil {
				continue
			}
			delete(n.Options, "hwaddr")
			n.Options["link_down"] = "1"
			params[key] = n.String()
		case "dev", "hookscript":
			delete(params, key)
		}
	}
	delete(params, "startup")
	return params
}
