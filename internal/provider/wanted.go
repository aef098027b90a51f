package provider

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// Defaults of arguments that are left out.
const (
	operationTime = 2 * time.Hour
	stopTime      = 60 * time.Second
	healthTime    = 2 * time.Minute
)

// wanted is a configuration as plain values: what the recipe is asked, and the secrets that only an apply needs.
type wanted struct {
	preview.Want

	// source is the template; triggersUnknown and sourceUnknown say that the install is not known yet, which counts as changed.
	source          string
	sourceUnknown   bool
	triggersUnknown bool

	password  string
	secrets   []string // values that no log may show
	keys      []string
	stop      recipe.Stop
	health    *recipe.Health
	reconcile *recipe.Reconcile
}

// installUnknown reports whether what shall be installed is not known at plan.
func (w *wanted) installUnknown() bool { return w.sourceUnknown || w.triggersUnknown }

// decisive are the arguments whose values decide what a plan shows, so that a plan without them would be a guess.
func (m *guestModel) decisive() map[string]attr.Value {
	return map[string]attr.Value{
		"vmid": m.VMID, "name": m.Name, "erase": m.Erase, "drop": m.Drop, "allow": m.Allow, "adopt": m.Adopt,
		"rehearse_only": m.RehearseOnly, "backup": m.Backup, "reconcile": m.Reconcile,
	}
}

// wantCommon turns the common arguments into values. Everything decisive must be known; the rest may be unknown at plan.
func (m *guestModel) wantCommon(ctx context.Context) (w wanted, diags diag.Diagnostics) {
	w.VMID, w.Name = m.id(), m.Name.ValueString()
	w.Adopt, w.RehearseOnly = m.Adopt.ValueBool(), m.RehearseOnly.ValueBool()
	w.triggersUnknown = holdsUnknown(m.Triggers)
	if !w.triggersUnknown {
		diags.Append(texts(ctx, m.Triggers, &w.Triggers)...)
	}
	diags.Append(texts(ctx, m.Erase, &w.Erase)...)
	diags.Append(words(ctx, m.Drop, &w.Drop)...)
	diags.Append(words(ctx, m.Allow, &w.Allow)...)

	if !m.Backup.IsNull() {
		var b backupModel
		diags.Append(part(ctx, m.Backup, &b)...)
		w.Backup = wantBackup(b)
	}
	var s stopModel
	diags.Append(part(ctx, m.Stop, &s)...)
	w.stop = recipe.Stop{Timeout: duration(s.Timeout, stopTime), Force: s.Force.ValueBool()}
	w.ForceStop = w.stop.Force

	var t timeoutsModel
	diags.Append(part(ctx, m.Timeouts, &t)...)
	w.Timeout = duration(t.Operation, operationTime)

	if !m.HealthCheck.IsNull() {
		health, more := healthOf(ctx, m.HealthCheck)
		diags.Append(more...)
		w.health = health
	}
	if !m.Reconcile.IsNull() {
		var r reconcileModel
		diags.Append(part(ctx, m.Reconcile, &r)...)
		w.reconcile = &recipe.Reconcile{Operation: r.Operation.ValueString(), Action: r.Action.ValueString()}
	}
	return w, diags
}

func wantBackup(b backupModel) *preview.Backup {
	mode := b.Mode.ValueString()
	if mode == "" {
		mode = "snapshot"
	}
	return &preview.Backup{Storage: b.Storage.ValueString(), Mode: mode, Compress: b.Compress.ValueString(), Keep: int(b.Keep.ValueInt64())}
}

func wantHealth(h healthModel) *recipe.Health {
	health := &recipe.Health{Timeout: duration(h.Timeout, healthTime), RunningFor: duration(h.RunningFor, 0)}
	if h.TCP != nil {
		health.TCP, health.Host = int(h.TCP.Port.ValueInt64()), h.TCP.Address.ValueString()
	}
	if h.HTTP != nil {
		health.Host = h.HTTP.Address.ValueString()
		health.HTTP = &recipe.HTTPProbe{
			Port: int(h.HTTP.Port.ValueInt64()), Path: h.HTTP.Path.ValueString(),
			Status: int(h.HTTP.Status.ValueInt64()), TLS: h.HTTP.TLS.ValueBool(),
		}
		if health.HTTP.Path == "" {
			health.HTTP.Path = "/"
		}
	}
	return health
}

// request is what the recipe is handed at apply.
func (w *wanted) request(planned preview.Acknowledgements, installed *guest.Install) recipe.Request {
	return recipe.Request{
		Want: w.Want, Planned: planned, Installed: installed,
		Password: w.password, Keys: w.keys, Stop: w.stop, Health: w.health,
	}
}

// duration reads a duration that validation has seen; null and unknown are the default.
func duration(text types.String, otherwise time.Duration) time.Duration {
	if d, err := time.ParseDuration(text.ValueString()); err == nil && d > 0 {
		return d
	}
	return otherwise
}

func texts(ctx context.Context, from types.Map, to *map[string]string) diag.Diagnostics {
	if from.IsNull() || from.IsUnknown() {
		return nil
	}
	return from.ElementsAs(ctx, to, false)
}

func words(ctx context.Context, from types.Set, to *[]string) diag.Diagnostics {
	if from.IsNull() || from.IsUnknown() {
		return nil
	}
	return from.ElementsAs(ctx, to, false)
}
