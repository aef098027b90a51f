package guest

// Move is a hand-over of one volume between two guests on one node.
type Move struct {
	From, To             Ref
	FromKey, ToKey       string
	Volume               VolumeID // must be what FromKey names
	FromDigest, ToDigest string
}

// Backup is a request for an archive.
type Backup struct {
	Ref     Ref
	Storage string
	Mode    string   // snapshot, suspend, stop
	Exclude []string // paths inside the guest that are left out
	Notes   string
	// Compress is Proxmox's word for the compression; "" means zstd.
	Compress string
}
