package provider

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// newVMRebuild is the resource pvrx_vm_rebuild.
func newVMRebuild() resource.Resource {
	return &guestResource[vmRebuildModel, *vmRebuildModel]{kind: kind[vmRebuildModel]{
		name:     "vm_rebuild",
		guest:    guest.KindVM,
		schema:   vmRebuildSchema,
		operator: func(s *session) operator { return vmsOf(s.containers) },
		want: func(ctx context.Context, m *vmRebuildModel, w *wanted) diag.Diagnostics {
			return m.want(ctx, w)
		},
		fill:     func(*vmRebuildModel, recipe.Observation) {},
		decisive: func(m *vmRebuildModel) map[string]attr.Value { return m.decisiveVM() },
		moves:    func(from, to *vmRebuildModel) bool { return from.moves(to) },
	}}
}

// vmsOf is the recipe for VMs at the same place as that for containers.
func vmsOf(containers operator) operator {
	if c, ok := containers.(*recipe.Container); ok {
		return (*recipe.VM)(c)
	}
	return containers
}

// disksText is what the system disks of a VM were made from, as the one text that installed.template shows.
func disksText(disks map[string]string) string {
	var parts []string
	for _, key := range slices.SortedFunc(maps.Keys(disks), guest.CompareKeys) {
		parts = append(parts, key+"="+disks[key])
	}
	return strings.Join(parts, ", ")
}

// disksFrom reads disksText back; nil when the text is that of a container's template.
func disksFrom(text string) map[string]string {
	disks := map[string]string{}
	for part := range strings.SplitSeq(text, ", ") {
		key, source, named := strings.Cut(part, "=")
		if !named || !guest.IsDiskKey(key) {
			return nil
		}
		disks[key] = source
	}
	return disks
}
