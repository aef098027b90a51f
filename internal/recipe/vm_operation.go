package recipe

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/stage"
)

// begin makes the record of a new rebuild from what was judged.
func (v *VM) begin(req Request, seen Observation, facts preview.Facts, judged preview.Preview) *operation {
	o := v.container().begin(req, seen, facts, judged)
	want := req.Want
	o.parking.Kind = guest.KindVM
	o.j.Wanted, o.j.Size, o.j.Storage, o.j.Snaps, o.j.Secret = want.Install(), 0, "", nil, false
	o.j.Kind = kindRebuild
	if want.VM.Replaces != 0 {
		o.j.Kind, o.j.Replace = kindReplace, true
		o.j.Parking, o.parking.VMID = want.VMID, want.VMID
	}
	if want.VM.Snapshot {
		o.j.Snapshot = "pvrx-" + o.j.Operation
	}
	for _, f := range judged.Volumes {
		old, err := guest.ParseDisk(f.Key, seen.Config.Values[f.Key])
		if err != nil || f.Data != preview.DataErased {
			continue
		}
		d := guest.SystemDisk{Key: f.Key, Was: f.Volume}
		if system, replaced := want.VM.SystemDisks[f.Key]; replaced {
			o.fill(&d, system, old, facts)
		}
		o.j.Disks = append(o.j.Disks, d)
		if d.Storage != "" && !d.Late && !o.j.Replace {
			// Until it is made, the name stands for the volume to come: its storage and its options count.
			o.j.Parked = append(o.j.Parked, guest.ParkedVolume{Key: d.Key, Value: withOptions(d.Storage+":new", d.Options)})
		}
	}
	if _, set := seen.Config.Get("boot"); set {
		o.j.Boot = bootAfter(seen.Config, o.j)
	}
	if cloud, err := json.Marshal(want.VM.Cloud); err == nil {
		o.j.Cloud = string(cloud)
	}
	return o
}

// fill says how a system disk is made.
func (o *operation) fill(d *guest.SystemDisk, system preview.SystemDisk, old guest.Disk, facts preview.Facts) {
	d.Storage, d.Size = system.Storage, system.Size.CeilMiB()
	if id, ok := old.Volume(); ok && d.Storage == "" {
		d.Storage = id.Storage
	}
	if !system.Blank {
		d.Source = facts.Sources[d.Key].Volume.ID.String()
	}
	options := system.Options
	if options == nil {
		options = old.Options
	}
	var parts []string
	for name, value := range options {
		if !slices.Contains([]string{"size", "format", "media", "import-from"}, name) {
			parts = append(parts, name+"="+value)
		}
	}
	slices.Sort(parts)
	d.Options, d.Format = strings.Join(parts, ","), newFormat(*d, system, old, facts)
	d.Late = preview.LateDisk(facts.Storages[d.Storage]) && !o.j.Replace
}

// newFormat is the format to ask for: the one that is wanted, else on the same storage the old disk's, because a blank disk
// would get the storage's default, which on a directory takes no snapshots. "" leaves it to Proxmox.
func newFormat(d guest.SystemDisk, system preview.SystemDisk, old guest.Disk, facts preview.Facts) string {
	if format, wanted := system.Options["format"]; wanted {
		return format
	}
	id, ok := old.Volume()
	if format := facts.Volumes[id].Format; ok && id.Storage == d.Storage && (format == "qcow2" || format == "vmdk") {
		return format
	}
	return ""
}

func withOptions(source, options string) string {
	if options == "" {
		return source
	}
	return source + "," + options
}

// newDisk is the value that makes a system disk.
func newDisk(d guest.SystemDisk) string {
	source := d.Storage + ":"
	switch {
	case d.Source != "":
		source += "0,import-from=" + d.Source
	case d.Size == 0: // efidisk0 and tpmstate0 have a size of their own
		source += "1"
	default:
		source += d.Size.AllocationGiB()
	}
	if d.Format != "" {
		source += ",format=" + d.Format
	}
	return withOptions(source, d.Options)
}

// bootAfter is the boot setting of the new system: the old one without devices that will not be there.
func bootAfter(c guest.Config, j guest.Journal) string {
	boot := c.Values["boot"]
	order, ok := strings.CutPrefix(boot, "order=")
	if !ok {
		return boot // legacy settings are not converted
	}
	gone := func(key string) bool {
		if _, there := c.Get(key); !there {
			return true
		}
		i := slices.IndexFunc(j.Disks, func(d guest.SystemDisk) bool { return d.Key == key })
		return i >= 0 && j.Disks[i].Storage == "" || contains(j.Drop, key) && !contains(j.Refs, key) && j.Replace
	}
	devices := slices.DeleteFunc(strings.Split(order, ";"), gone)
	return "order=" + strings.Join(devices, ";")
}

// rebuild is the rebuild in place as stages.
func (o *operation) rebuild() stage.Operation {
	stages := o.opening()
	stages = append(stages, o.detach())
	if o.j.Snapshot != "" {
		stages = append(stages, o.takeSnapshot())
	}
	for i := range o.j.Parked {
		stages = append(stages, o.attach(i))
	}
	for i, d := range o.j.Disks {
		if d.Late {
			stages = append(stages, o.importLate(i))
		}
	}
	return o.run(append(stages, o.configure(), o.startVM(), o.awaitTrust()))
}

// replace is the rebuild on a new VM as stages.
func (o *operation) replace() stage.Operation {
	stages := append(o.opening(), o.retire())
	for i := len(o.j.Parked) - 1; i >= 0; i-- { // last first, so that an undo brings them back first to last
		hand := o.park(i)
		hand.Name = "hand over " + o.j.Parked[i].Key
		stages = append(stages, hand)
	}
	return o.run(append(stages, o.configure(), o.follow(), o.startVM(), o.awaitTrust()))
}

// opening are the stages with which both ways begin: all that takes long happens while the old system runs.
func (o *operation) opening() []stage.Stage {
	var stages []stage.Stage
	if o.j.Archive != "" {
		stages = append(stages, o.backUp())
	}
	return append(stages, o.claim(), o.prepare(), o.stop())
}

// acceptance is what an accept does: what was the way back goes, then the record.
func (o *operation) acceptance() stage.Operation {
	var stages []stage.Stage
	if o.j.Replace {
		stages = append(stages, o.destroyOld())
	} else {
		if o.j.Snapshot != "" {
			stages = append(stages, o.deleteOurSnapshot())
		}
		for i := range o.j.Disks {
			stages = append(stages, o.deleteOld(i))
		}
	}
	engine := o.run(append(stages, o.forget()))
	engine.Past = true
	return engine
}
