package provider

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// showPreview is a preview as the plan shows it. The summary of an install that is not known yet is unknown too: it would
// name it.
func showPreview(p preview.Preview, installUnknown bool) types.Object {
	summary := types.StringValue(p.Summary)
	if installUnknown {
		summary = types.StringUnknown()
	}
	return types.ObjectValueMust(previewType, map[string]attr.Value{
		"schema":        types.Int64Value(previewSchema),
		"operation":     types.StringValue(p.Operation.String()),
		"summary":       summary,
		"fates":         textMap(p.Fates()),
		"erased":        textMap(p.Erased()),
		"erased_bytes":  types.Int64Value(int64(p.ErasedBytes)),
		"also_lost":     textMap(together(p.AlsoLost)),
		"blockers":      showBlockers(p.Blockers),
		"changes":       showChanges(p.Changes),
		"root_password": text(p.RootPassword),
		"precondition":  text(p.Precondition),
	})
}

// showChanges is one line for people for each thing that changes.
func showChanges(changes []preview.Change) types.Map {
	if len(changes) == 0 {
		return types.MapNull(types.StringType)
	}
	rows := make(map[string]string, len(changes))
	for _, c := range changes {
		rows[guest.Printable(c.What)] = changeText(c)
	}
	return textMap(rows)
}

// changeText is one change for people: "512 → 1024 (live)".
func changeText(c preview.Change) string {
	switch {
	case c.From != "" && c.To != "":
		return guest.Printable(fmt.Sprintf("%s → %s (%s)", c.From, c.To, c.Takes))
	case c.To != "":
		return guest.Printable(fmt.Sprintf("%s (%s)", c.To, c.Takes))
	}
	return c.Takes.String()
}

// together puts what has the same end into one row, "ACL, firewall, pool" = "returns": a plan should fit a screen. What is
// lost for different reasons shares a row too, the reasons side by side.
func together(lost map[string]string) map[string]string {
	names, reasons := map[string][]string{}, map[string][]string{}
	for _, thing := range slices.Sorted(maps.Keys(lost)) {
		end, reason, _ := strings.Cut(lost[thing], ": ")
		names[end] = append(names[end], thing)
		if reason != "" && !slices.Contains(reasons[end], reason) {
			reasons[end] = append(reasons[end], reason)
		}
	}
	rows := make(map[string]string, len(names))
	for end, things := range names {
		row := end
		if len(reasons[end]) > 0 {
			row += ": " + strings.Join(reasons[end], "; ")
		}
		rows[strings.Join(things, ", ")] = row
	}
	return rows
}

func showBlockers(blockers []preview.Blocker) types.List {
	if len(blockers) == 0 {
		return types.ListNull(blockerType)
	}
	rows := make([]attr.Value, 0, len(blockers))
	for _, b := range blockers {
		rows = append(rows, types.ObjectValueMust(blockerType.AttrTypes, map[string]attr.Value{
			"code": types.StringValue(b.Code.String()), "subject": types.StringValue(b.Subject),
			"found": types.StringValue(b.Found), "remedy": types.StringValue(b.Remedy),
		}))
	}
	return types.ListValueMust(blockerType, rows)
}

// showVolumes is the whole table of a preview.
func showVolumes(volumes []preview.Fate) types.Map {
	rows := make(map[string]attr.Value, len(volumes))
	for _, v := range volumes {
		rows[v.Key] = types.ObjectValueMust(volumeType.AttrTypes, map[string]attr.Value{
			"volume": types.StringValue(v.Volume), "owner": number(int64(v.Owner)),
			"data": types.StringValue(v.Data.String()), "mount": types.StringValue(v.Mount.String()),
			"size_bytes": number(int64(v.Size)), "path": text(v.Path), "reason": text(v.Reason),
		})
	}
	return types.MapValueMust(volumeType, rows)
}

// showInstalled is an install as state records it; at is the time of it in seconds since 1970, 0 when that is not recorded.
func showInstalled(install *guest.Install, at int64) types.Object {
	if install == nil {
		return types.ObjectNull(installedType)
	}
	when := types.StringNull()
	if at > 0 {
		when = types.StringValue(time.Unix(at, 0).UTC().Format(time.RFC3339))
	}
	made := install.Template
	if len(install.Disks) > 0 {
		made = disksText(install.Disks)
	}
	triggers := types.MapNull(types.StringType)
	if len(install.Triggers) > 0 {
		triggers = textMap(install.Triggers)
	}
	return types.ObjectValueMust(installedType, map[string]attr.Value{
		"template": text(made), "triggers": triggers,
		"rootfs_storage": text(install.RootfsStorage), "when": when,
	})
}

// installedFrom reads an install back from state.
func installedFrom(object types.Object) *guest.Install {
	if object.IsNull() || object.IsUnknown() {
		return nil
	}
	parts := object.Attributes()
	install := guest.Install{Template: textOf(parts["template"]), RootfsStorage: textOf(parts["rootfs_storage"])}
	if disks := disksFrom(install.Template); disks != nil {
		install.Template, install.Disks = "", disks
	}
	if triggers, ok := parts["triggers"].(types.Map); ok && len(triggers.Elements()) > 0 {
		install.Triggers = map[string]string{}
		for name, value := range triggers.Elements() {
			install.Triggers[name] = textOf(value)
		}
	}
	return &install
}

// showLastOperation is an operation as state keeps it, with the table that its plan showed.
func showLastOperation(kind preview.Operation, shown preview.Preview, r recipe.Result) types.Object {
	exists := types.BoolNull()
	if r.Exists != nil {
		exists = types.BoolValue(*r.Exists)
	}
	return types.ObjectValueMust(lastOperationType, map[string]attr.Value{
		"id": text(r.Operation), "kind": types.StringValue(kind.String()), "summary": text(shown.Summary),
		"status": text(string(r.Status)), "stage": text(r.Stage), "guest_exists": exists,
		"parking_vmid": number(int64(r.Parking)), "backup": text(r.Backup), "volumes": showVolumes(shown.Volumes),
	})
}

// storageOf is the storage of the root file system in a preview, "" when it is not among the volumes.
func storageOf(volumes []preview.Fate) string {
	at := slices.IndexFunc(volumes, func(f preview.Fate) bool { return f.Key == "rootfs" })
	if at < 0 {
		return ""
	}
	storage, _, found := strings.Cut(volumes[at].Volume, ":")
	if !found {
		return ""
	}
	return storage
}

func text(s string) types.String {
	if s == "" {
		return types.StringNull()
	}
	return types.StringValue(s)
}

func number(n int64) types.Int64 {
	if n == 0 {
		return types.Int64Null()
	}
	return types.Int64Value(n)
}

func textMap(values map[string]string) types.Map {
	rows := make(map[string]attr.Value, len(values))
	for key, value := range values {
		rows[key] = types.StringValue(value)
	}
	return types.MapValueMust(types.StringType, rows)
}

func textOf(value attr.Value) string {
	if s, ok := value.(types.String); ok {
		return s.ValueString()
	}
	return ""
}
