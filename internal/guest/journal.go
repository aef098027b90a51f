package guest

// Journal is the record of an operation in progress. It lives in the notes of the guest and of the parking guest, never in
// Terraform's state, and is written before and after every effect. It holds no secret.
type Journal struct {
	Version   int    `json:"v"`
	Operation string `json:"op"`   // "op-5001-20261201-3f2a"
	Kind      string `json:"kind"` // "reinstall"
	Guest     VMID   `json:"guest"`
	Parking   VMID   `json:"parking,omitempty"`
	Holder    VMID   `json:"holder"` // the guest whose notes this copy was written into: void anywhere else
	Node      string `json:"node"`
	Runner    string `json:"runner"` // which process works on it: a takeover changes it, the old one then loses its swap
	Sequence  int    `json:"seq"`    // grows with every write

	Stage   string       `json:"stage"`
	Index   int          `json:"i"` // 1-based position of Stage
	Of      int          `json:"of"`
	State   JournalState `json:"state"`
	Back    bool         `json:"back,omitempty"` // stages are being, or were being, taken back
	Made    bool         `json:"made,omitempty"` // written by a request of its own after the parking guest's create task ended well
	New     bool         `json:"new,omitempty"`  // the same for the guest: a half-made guest can look complete
	Error   string       `json:"err,omitempty"`  // first error, shortened
	Started int64        `json:"t0"`             // seconds since 1970
	Updated int64        `json:"t"`
	Until   int64        `json:"until"` // when the operation's time ends

	Wanted    Install           `json:"wanted"`
	Installed *Install          `json:"was,omitempty"` // what the guest was made from before, as far as known
	Erase     map[string]string `json:"erase,omitempty"`
	Drop      []string          `json:"drop,omitempty"`
	Allow     []string          `json:"allow,omitempty"`
	Spent     map[string]string `json:"spent,omitempty"`    // consents spent before this operation
	Declined  []string          `json:"declined,omitempty"` // hashes of installs that were declined before it

	Dry     bool              `json:"dry,omitempty"`     // a rehearsal: however it goes on, it is only ever taken back
	Running bool              `json:"ran"`               // it ran when the operation began
	Refused bool              `json:"refused,omitempty"` // a person takes it back: the install is declined with the record's end
	Leaving bool              `json:"leaving,omitempty"` // the parking guest was seen to hold nothing, and its destroy was sent
	Secret  bool              `json:"pw,omitempty"`      // a root password was given: a resume needs it again
	Doomed  []string          `json:"doomed,omitempty"`  // volume ids that the preview showed as erased
	Refs    []string          `json:"refs,omitempty"`    // keys put back by reference: other guests' volumes, host paths
	Snaps   []string          `json:"snaps,omitempty"`   // snapshots that are deleted, with consent
	Keep    int               `json:"keep,omitempty"`    // how many archives of ours stay; 0 means all
	Archive string            `json:"to,omitempty"`      // storage of the operation's own backup, when one is asked for
	Config  map[string]string `json:"config"`            // the guest's whole configuration, but for notes and digest
	Parked  []ParkedVolume    `json:"parked,omitempty"`  // in the order they are moved
	Backup  string            `json:"backup,omitempty"`  // archive made by stage 1
	Pool    string            `json:"pool,omitempty"`
	HA      map[string]string `json:"ha,omitempty"`
	ACL     []string          `json:"acl,omitempty"`    // "user ci@pve PVEVMUser 1", entries on exactly /vms/<guest>
	Leases  []string          `json:"leases,omitempty"` // "vnet mac ip"
	Digest  string            `json:"digest,omitempty"` // the guest's digest right before the destroy was sent
	Task    int64             `json:"since,omitempty"`  // when the current stage's task was asked for (seconds since 1970)
	Size    Bytes             `json:"size,omitempty"`   // of the new root file system
	Storage string            `json:"storage,omitempty"`
	Health  string            `json:"health,omitempty"` // the probe, compact, so that a resume without configuration can ask it

	Disks    []SystemDisk `json:"disks,omitempty"` // of a VM: its new system disks; Parked then lists what moves between the two VMs
	Replace  bool         `json:"repl,omitempty"`  // of a VM: the parking guest is the new VM and stays
	Snapshot string       `json:"snap,omitempty"`  // of a VM: name of the snapshot of the kept disks, when one is asked for

	App *Deployment `json:"app,omitempty"` // of a container made from an OCI image

	Return bool     `json:"data,omitempty"` // of a VM: taking back returns the kept disks to the snapshot, too
	Jobs   []string `json:"jobs,omitempty"` // of a VM: backup jobs that name the new VM instead of the old one
	Boot   string   `json:"boot,omitempty"` // of a VM: the boot setting of the new system
	Cloud  string   `json:"ci,omitempty"`   // of a VM: what cloud-init is given, compact and without secrets
}

// SystemDisk is a disk of a VM that is replaced, and what replaces it.
type SystemDisk struct {
	Key     string `json:"k"`
	Source  string `json:"s,omitempty"` // volume id it is made from, "" for a blank one
	Storage string `json:"t"`
	Options string `json:"o,omitempty"` // "discard=on,ssd=1"
	Format  string `json:"f,omitempty"` // "qcow2", "" where Proxmox chooses
	Size    Bytes  `json:"z,omitempty"` // 0: its source's
	Late    bool   `json:"l,omitempty"` // made after the stop, because its storage cannot rename
	Was     string `json:"w"`           // volume id of the old disk: the way back
	Now     string `json:"n,omitempty"` // volume id of the new disk on the guest
}

// JournalState is where the operation stands in its stage.
type JournalState string

// The states.
const (
	JournalDoing   JournalState = "doing"   // the stage's effect may or may not be there
	JournalUndoing JournalState = "undoing" // it is being taken back
	JournalStuck   JournalState = "stuck"   // nobody works on it; a person must say how to go on
	JournalWaiting JournalState = "waiting" // all is done, and a person must accept it or have it taken back
)

// ParkedVolume is a volume that is set aside and brought back.
type ParkedVolume struct {
	Key    string   `json:"k"`           // on the guest, before and after
	Value  string   `json:"o"`           // its whole config value before the operation
	Parked string   `json:"p,omitempty"` // volume id while it waits on the parking guest
	Now    string   `json:"n,omitempty"` // volume id after it came back
	To     VMID     `json:"t,omitempty"` // the guest that the last move handed it to
	Before []string `json:"b,omitempty"` // volumes that guest owned on that storage right before the move
}

// Install is what a guest's system is, or shall be, made from.
type Install struct {
	Template      string            `json:"template"`
	Triggers      map[string]string `json:"triggers,omitempty"`
	RootfsStorage string            `json:"storage,omitempty"`
	Disks         map[string]string `json:"disks,omitempty"` // of a VM: what each system disk is made from, by key
}

// Contract is the record of what a guest was made from, kept in its notes: only what its configuration cannot say.
type Contract struct {
	Version   int               `json:"v"`
	Guest     VMID              `json:"guest"`
	Instance  string            `json:"id"` // new with every install: tells a restored or cloned copy apart
	Operation string            `json:"op,omitempty"`
	Installed Install           `json:"installed"`
	Spent     map[string]string `json:"spent,omitempty"`    // erase consents that were used: key -> volume id
	Declined  []string          `json:"declined,omitempty"` // hashes of installs that were rolled back
	At        int64             `json:"at"`                 // seconds since 1970
	App       *Application      `json:"app,omitempty"`      // of a container made from an OCI image
}
