package provider

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
)

// report is the verdict in diagnostics.
func (r *instanceResource) report(m *instanceModel, v verdict) (diags diag.Diagnostics) {
	name := r.called(m, v.seen)
	switch v.due {
	case dueNothing:
		diags.Append(asWarnings(name, v.preview.Warnings)...)
	case dueBlocked:
		diags.Append(leftAloneWarning(name, v)...)
	case dueOperation, dueReconcile, dueGrow, dueAdoption:
		diags.Append(reportOperation(name, v)...)
	}
	return diags
}

// reportOperation is what would be done, as a warning whose summary starts with the container.
func reportOperation(name string, v verdict) (diags diag.Diagnostics) {
	var paragraphs []string
	if changes := changeTable(v.preview.Changes); changes != "" {
		paragraphs = append(paragraphs, changes)
	}
	if table := v.detail(); table != "" && (v.preview.Operation != preview.OpModify || v.preview.ErasedBytes > 0) {
		paragraphs = append(paragraphs, table)
	}
	diags.AddWarning(v.preview.Summary, strings.Join(paragraphs, "\n\n"))
	diags.Append(asWarnings(name, v.preview.Warnings)...)
	return diags
}

// changeTable is a line for each change. It begins with a space, so that the CLIs leave its columns alone.
func changeTable(changes []preview.Change) string {
	width := 0
	for _, c := range changes {
		width = max(width, utf8.RuneCountInString(guest.Printable(c.What)))
	}
	rows := make([]string, 0, len(changes))
	for _, c := range changes {
		rows = append(rows, fmt.Sprintf("  %-*s  %s", width, guest.Printable(c.What), changeText(c)))
	}
	return strings.Join(rows, "\n")
}

// asWarnings are warnings whose summaries start with the guest and are no longer than the first thing that they say.
func asWarnings(name string, warnings []string) (diags diag.Diagnostics) {
	for _, warning := range warnings {
		said := strings.TrimPrefix(warning, name+": ")
		if said == warning {
			said = strings.TrimPrefix(warning, name+" ")
		}
		end := len(firstLine(said))
		for _, mark := range []string{": ", "; ", ". "} {
			if at := strings.Index(said, mark); at >= 0 {
				end = min(end, at)
			}
		}
		diags.AddWarning(name+": "+said[:end], sentence(warning))
	}
	return diags
}

// showInstancePreview is a preview without what application containers do not have; unsure says that what changes, and so the
// summary, is known at apply only.
func showInstancePreview(p preview.Preview, unsure bool) types.Object {
	p.RootPassword = ""
	shown := showPreview(p, unsure)
	if !unsure {
		return shown
	}
	parts := shown.Attributes()
	parts["changes"] = types.MapUnknown(types.StringType)
	return types.ObjectValueMust(previewType, parts)
}
