package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// memoKey is where the memo lies in private data.
const memoKey = "seen"

// memoVersion is the version of the memo's form: another one is as good as none.
const memoVersion = 1

// memo is what Read saw of a guest. It lies in private data, so it is in the plan file and reaches the apply, which
// compares it with what is there then. It holds nothing volatile: the same guest gives the same bytes. It decides nothing
// about an open operation, since private data is emptied when a provider is killed: Proxmox holds that record.
type memo struct {
	Version      int                      `json:"v"`
	Presence     guest.Presence           `json:"presence"`
	Name         string                   `json:"name,omitempty"`
	Acknowledged preview.Acknowledgements `json:"acknowledged"`
	Contract     *guest.Contract          `json:"contract,omitempty"`
	RootfsSize   guest.Bytes              `json:"rootfs_size,omitempty"`
	Open         *openOperation           `json:"open,omitempty"`
	// Spent are erase consents that operations of this resource used: the contract says them too, until another tool
	// writes the notes.
	Spent map[string]string `json:"spent,omitempty"`
	// Instance is what is kept of an application container.
	Instance *instanceMemo `json:"instance,omitempty"`
}

// openOperation is an operation in progress as far as a plan needs it to look closer.
type openOperation struct {
	ID     string `json:"id"`
	Stage  string `json:"stage,omitempty"`
	Exists *bool  `json:"exists,omitempty"`
	// Waiting says that all is done and a person must accept it or have it taken back: until then nothing is due. Since is when
	// that began (seconds since 1970), Held what is kept for the way back.
	Waiting bool     `json:"waiting,omitempty"`
	Since   int64    `json:"since,omitempty"`
	Held    []string `json:"held,omitempty"`
}

// remember keeps of an observation what a plan and its apply need. Consents that were spent before stay spent.
func remember(seen recipe.Observation, spent map[string]string) memo {
	m := memo{
		Version: memoVersion, Presence: seen.Presence, Name: seen.Name,
		Acknowledged: seen.Acknowledged, Contract: seen.Contract, RootfsSize: rootfsSize(seen.Config),
		Spent: maps.Clone(spent),
	}
	if seen.Contract != nil {
		m = m.spend(seen.Contract.Spent)
	}
	if seen.Journal != nil {
		m.Open = &openOperation{ID: seen.Journal.Operation, Stage: seen.Journal.Stage, Waiting: seen.Journal.State == guest.JournalWaiting}
		if m.Open.Waiting {
			m.Open.Since, m.Open.Held = seen.Journal.Updated, heldBack(*seen.Journal)
		}
		switch seen.Presence {
		case guest.Present:
			m.Open.Exists = new(true)
		case guest.Absent:
			m.Open.Exists = new(false)
		case guest.PresenceUnknown:
		}
	}
	return m
}

// spend returns the memo with more consents used.
func (m memo) spend(used map[string]string) memo {
	if len(used) == 0 {
		return m
	}
	all := map[string]string{}
	maps.Copy(all, m.Spent)
	maps.Copy(all, used)
	m.Spent = all
	return m
}

// observation is the memo in the form that judging whether something is due takes.
func (m memo) observation() recipe.Observation {
	return recipe.Observation{Presence: m.Presence, Name: m.Name, Acknowledged: m.Acknowledged, Contract: m.Contract}
}

// rootfsSize is the size that the configuration states for the root file system, 0 when it states none that can be read.
// It only says whether a larger request is worth a closer look.
func rootfsSize(config guest.Config) guest.Bytes {
	value, set := config.Get("rootfs")
	if !set {
		return 0
	}
	mount, err := guest.ParseMount("rootfs", value)
	if err != nil {
		return 0
	}
	size, _, err := guest.ReadSize(mount.SizeText)
	if err != nil {
		return 0
	}
	return size
}

// private is the part of the framework's private data that memos need.
type private interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

// recall reads the memo; found is false when there is none of this version.
func recall(ctx context.Context, from private) (m memo, found bool, diags diag.Diagnostics) {
	data, diags := from.GetKey(ctx, memoKey)
	if diags.HasError() || data == nil {
		return memo{}, false, diags
	}
	if err := json.Unmarshal(data, &m); err != nil || m.Version != memoVersion {
		return memo{}, false, diags
	}
	return m, true, diags
}

// keep writes the memo. encoding/json sorts the keys of maps, so equal memos are equal bytes.
func (m memo) keep(ctx context.Context, to private) (diags diag.Diagnostics) {
	data, err := json.Marshal(m)
	if err != nil {
		diags.AddError("cannot keep what was seen of the guest", fmt.Sprintf("It holds only text and numbers, yet: %v.", err))
		return diags
	}
	return to.SetKey(ctx, memoKey, data)
}
