package preview

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// Acknowledgements is what a plan saw of a guest and an apply compares: where it is, its newest snapshot, and the whole
// value of every key that names a volume, a host path or a device. It never holds a fate.
type Acknowledgements struct {
	VMID   guest.VMID        `json:"vmid"`
	Node   string            `json:"node"`
	Parent string            `json:"parent"` // the newest snapshot, "" for none
	Values map[string]string `json:"values"` // rootfs, mpN, unusedN, devN, drives and devices of a VM -> value, options in a fixed order
	// Install is the instance that the contract in the notes names, "" for none: a guest that somebody reinstalled since has
	// the very volume names it had before.
	Install string `json:"install,omitempty"`
}

// acknowledged is the stored form: the version comes first, so that a later form can be told apart.
type acknowledged struct {
	Version int `json:"v"`
	Acknowledgements
}

const acknowledgedVersion = 1

// Acknowledge takes what a plan must remember from one config read.
func Acknowledge(g guest.Guest) Acknowledgements {
	a := Acknowledgements{VMID: g.VMID, Node: g.Node, Values: map[string]string{}}
	for key, value := range g.Config.Values {
		switch {
		case key == "parent":
			a.Parent = value
		case isMount(key), isDevice(key), g.Kind == guest.KindVM && isVMDevice(key):
			a.Values[key] = canonical(value)
		}
	}
	if contract := guest.NotesOf(g.VMID, g.Config.Description()).Contract; contract != nil {
		a.Install = contract.Instance
	}
	return a
}

// Zero reports whether nothing was acknowledged: there is nothing to compare with.
func (a Acknowledgements) Zero() bool { return a.VMID == 0 && len(a.Values) == 0 }

// Encode returns bytes that are the same for the same acknowledgements, fit for private data.
func (a Acknowledgements) Encode() []byte {
	if a.Values == nil {
		a.Values = map[string]string{}
	}
	// Strings and numbers only: this cannot fail. encoding/json sorts map keys, which makes the bytes stable.
	data, err := json.Marshal(acknowledged{Version: acknowledgedVersion, Acknowledgements: a})
	if err != nil {
		return nil
	}
	return data
}

// Decode reads what Encode wrote. Bytes of another form are an error, never an empty acknowledgement.
func Decode(data []byte) (Acknowledgements, error) {
	var stored acknowledged
	if err := json.Unmarshal(data, &stored); err != nil {
		return Acknowledgements{}, fmt.Errorf("cannot read acknowledgements: %w", err)
	}
	if stored.Version != acknowledgedVersion {
		return Acknowledgements{}, fmt.Errorf("cannot read acknowledgements of version %d", stored.Version)
	}
	return stored.Acknowledgements, nil
}

// Precondition is the hash of what was acknowledged: the same guest gives the same text.
func (a Acknowledgements) Precondition() string {
	sum := sha256.Sum256(a.Encode())
	return "sha256:" + hex.EncodeToString(sum[:16])
}

// canonical puts the options of a config value into one order: Proxmox prints them sorted, people who edit files do not.
func canonical(value string) string {
	source, options, found := strings.Cut(value, ",")
	if !found {
		return value
	}
	parts := strings.Split(options, ",")
	slices.Sort(parts)
	return source + "," + strings.Join(parts, ",")
}

// isVMDevice reports whether a key of a VM names a drive or a device of the host.
func isVMDevice(key string) bool {
	name, _, indexed := guest.SplitKey(key)
	return guest.IsDiskKey(key) || indexed && (name == "hostpci" || name == "usb")
}
