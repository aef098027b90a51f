package archtest

// module is the product's own module path; imports below it are ours.
const module = "github.com/pvrx/terraform-provider-pvrx"

// A Rule says what the non-test files of one package may import beyond the standard library.
type Rule struct {
	// Ours lists packages of this module, as folders below internal/. A name covers the folders below it too.
	Ours []string
	// Modules lists foreign module paths.
	Modules []string
	// Why is the sentence a person reads who broke the rule.
	Why string
}

// Rules maps a folder, relative to the module's root, to its rule. The longest folder that contains a
// package decides; a package that no folder contains has no place in the layout, which is a violation too.
//
// The arrows: provider → run → recipe → {preview → guest, stage}; provider → {proxmox → guest, oci}.
// A layer may use every layer that its arrows lead to, not only the next one.
type Rules map[string]Rule

// Layout is the layout of this module.
func Layout() Rules {
	return Rules{
		".": {
			Ours:    []string{"provider"},
			Modules: []string{"github.com/hashicorp/terraform-plugin-framework/providerserver"},
			Why:     "main only serves the provider",
		},
		"internal/guest": {
			Why: "facts about guests are pure: values in, values out",
		},
		"internal/preview": {
			Ours: []string{"guest"},
			Why:  "judgement is pure, so that a plan can be tested without a server and without Terraform",
		},
		"internal/stage": {
			Why: "the engine knows no Proxmox and no guests: what it proves holds for every recipe",
		},
		"internal/recipe": {
			Ours: []string{"guest", "preview", "stage"},
			Why:  "a recipe declares the interface it needs from Proxmox and never imports the port",
		},
		"internal/run": {
			Ours: []string{"guest", "preview", "stage", "recipe"},
			Why:  "what a process shares is independent of the port and of Terraform",
		},
		"internal/proxmox": {
			Ours:    []string{"guest"},
			Modules: []string{"github.com/luthermonson/go-proxmox"},
			Why:     "the port adapts go-proxmox and decides nothing",
		},
		"internal/oci": {
			Ours:    []string{"guest"},
			Modules: []string{"github.com/google/go-containerregistry"},
			Why:     "registry access knows no Proxmox; of guests it takes only how untrusted text is made printable",
		},
		"internal/provider": {
			Ours: []string{"guest", "preview", "stage", "recipe", "run", "proxmox", "oci"},
			Modules: []string{
				"github.com/hashicorp/terraform-plugin-framework",
				"github.com/hashicorp/terraform-plugin-framework-timeouts",
				"github.com/hashicorp/terraform-plugin-framework-validators",
				"github.com/hashicorp/terraform-plugin-go",
				"github.com/hashicorp/terraform-plugin-log",
			},
			Why: "everything of Terraform is here, and nothing of go-proxmox",
		},
		"internal/pvesim": {
			Ours: []string{"pvesim"},
			Why:  "the simulator shares no code with what it tests, or both could be wrong together",
		},
		"internal/pvesim/registry": {
			Modules: []string{"github.com/google/go-containerregistry"},
			Why:     "the registry of the demo is a real one, which knows neither Proxmox nor the product",
		},
		"internal/archtest": {
			Why: "the checker judges from outside",
		},
		"internal/mutants": {
			Why: "what breaks the code on purpose stands outside it",
		},
	}
}
