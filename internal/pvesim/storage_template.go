package pvesim

// Template is what a container template or an OCI archive brings along.
type Template struct {
	// OSType is what Proxmox detects in it; empty stands for no os-release file at all.
	OSType string
	// Unknown: there is an os-release file and Proxmox has no plugin for it.
	Unknown bool
	// Arch is the architecture of its programs, default amd64.
	Arch string
	// Files are written when the template is unpacked: absolute path to content. Files below a mount
	// point land in the volume that is mounted there.
	Files map[string]string
	// Links are symbolic links in the template, path to target.
	Links map[string]string
	// OCI is set for images of application containers.
	OCI *OCIImage
}

// OCIImage is the configuration of an OCI image, as far as Proxmox reads it.
type OCIImage struct {
	Entrypoint, Cmd, Env []string
	UID, GID             int
	// User is true when the image names a user at all, NoGroup when it names no group with it.
	User, NoGroup bool

	WorkingDir string
	StopSignal string
	Volumes    []string
	// Broken is what unpacking the image fails with; empty for a good one.
	Broken string
	// Whiteouts are paths that a layer removes from whatever lies below it.
	Whiteouts []string
}
