package provider

import (
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// refuseUnknown is an error for every decisive argument that is unknown, wholly or in a part.
func refuseUnknown(decisive map[string]attr.Value) (diags diag.Diagnostics) {
	names := make([]string, 0, len(decisive))
	for name := range decisive {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !holdsUnknown(decisive[name]) {
			continue
		}
		diags.AddAttributeError(path.Root(name), name+" is not known at plan",
			fmt.Sprintf("What happens to the guest depends on %s, so a plan without it would show a guess. Use a value that is "+
				"known when planning, or apply what it depends on first (-target).", name))
	}
	return diags
}

func holdsUnknown(value attr.Value) bool {
	if value.IsUnknown() {
		return true
	}
	switch v := value.(type) {
	case types.Map:
		for _, element := range v.Elements() {
			if holdsUnknown(element) {
				return true
			}
		}
	case types.Set:
		return slices.ContainsFunc(v.Elements(), holdsUnknown)
	case types.List:
		return slices.ContainsFunc(v.Elements(), holdsUnknown)
	case types.Object:
		for _, part := range v.Attributes() {
			if holdsUnknown(part) {
				return true
			}
		}
	}
	return false
}
