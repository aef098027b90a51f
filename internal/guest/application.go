package guest

// ContractVariable is the environment variable in which an application container carries its contract's id: a rollback to a
// snapshot returns it, while it leaves the notes (hazard C7).
const ContractVariable = "PVRX_CONTRACT"

// Application is what a contract records of a container that was made from an OCI image, beyond what its configuration
// says. It holds names of environment variables, never their values.
type Application struct {
	Image    string `json:"image"`              // reference as it was asked for, complete: "docker.io/library/nginx:1.27"
	Digest   string `json:"digest"`             // what the reference named then: an index, or a manifest
	Manifest string `json:"manifest"`           // of the platform
	Arch     string `json:"arch"`               // Proxmox's word: "amd64"
	Archive  string `json:"archive,omitempty"`  // volume id of the archive that it was made from
	Previous string `json:"previous,omitempty"` // archive of the generation before, kept until the next update

	Before *Generation `json:"before,omitempty"` // what a rollback to a snapshot may bring back

	Own        []string          `json:"own,omitempty"`        // environment variables that the configuration set
	Theirs     []string          `json:"theirs,omitempty"`     // those that came with the image
	EnvVersion int64             `json:"env,omitempty"`        // version of the write-only environment
	Entrypoint string            `json:"entrypoint,omitempty"` // the image's own, as Proxmox wrote it
	Declared   []string          `json:"declared,omitempty"`   // VOLUME paths of the image
	Volumes    map[string]string `json:"volumes,omitempty"`    // path -> key of volumes that the configuration asked for
	Set        []string          `json:"set,omitempty"`        // keys that the configuration set: a network it sets no longer goes
	Keys       map[string]string `json:"keys,omitempty"`       // the configuration as the operation left it: no notes, no environment
	Raw        [][2]string       `json:"raw,omitempty"`        // lxc.* pairs that the create made from the image
}

// Generation is what an application container was before its last change of image, environment or entrypoint.
type Generation struct {
	ID    string `json:"id"`    // of its contract, as the environment carries it
	Image string `json:"image"` // what it was made from, as Install.Template
}

// Deployment is what the record of an operation on an application container holds beside the rest: enough to go on without
// a configuration. Secret values are not in it: they wait in the parking guest's own environment.
type Deployment struct {
	Next Application  `json:"next"`          // what is being made
	Was  *Application `json:"was,omitempty"` // what is there; nil for an install

	Set        map[string]string `json:"set,omitempty"`        // keys that the configuration sets
	Entrypoint string            `json:"entrypoint,omitempty"` // the configuration's, "" for the image's
	New        []NewVolume       `json:"new,omitempty"`        // volumes that are made
	Mounts     map[string]string `json:"mounts,omitempty"`     // by key: how a volume that is there shall be mounted from now on
	Grow       map[string]Bytes  `json:"grow,omitempty"`       // by key: the size that a volume that is there shall have
	Start      bool              `json:"start,omitempty"`      // it shall run in the end
	Hold       bool              `json:"hold,omitempty"`       // an unhealthy update waits for a person instead of going back
	Back       bool              `json:"back,omitempty"`       // the update was unhealthy and is being taken back
}

// NewVolume is a volume that an operation makes on an application container.
type NewVolume struct {
	Key   string `json:"k"`
	Path  string `json:"p"`
	Value string `json:"o"` // what is sent: "local-lvm:8,mp=/data,backup=1"
	Now   string `json:"n,omitempty"`
}
