package provider

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/oci"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// instanceResource is the resource pvrx_oci_instance. Unlike the others it makes and removes its guest: create installs, delete
// removes, and an update makes what is there into what is wanted. Nothing forces a replacement.
type instanceResource struct{ session *session }

var (
	_ resource.ResourceWithConfigure      = (*instanceResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*instanceResource)(nil)
	_ resource.ResourceWithImportState    = (*instanceResource)(nil)
	_ resource.ResourceWithValidateConfig = (*instanceResource)(nil)
)

// newInstance is the resource pvrx_oci_instance.
func newInstance() resource.Resource { return &instanceResource{} }

// instancesOf is the recipe for application containers at the same place as that for containers.
func instancesOf(containers operator, archives recipe.Archives) instanceOperator {
	if c, ok := containers.(*recipe.Container); ok {
		return &recipe.Instance{Container: *c, Archives: archives}
	}
	i, ok := containers.(instanceOperator)
	if !ok {
		return nil // a world without application containers
	}
	return i
}

func (r *instanceResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_oci_instance"
}

func (r *instanceResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = instanceSchema()
}

func (r *instanceResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	if req.ProviderData == nil {
		return // asked before the provider is configured
	}
	s, ok := req.ProviderData.(*session)
	if !ok {
		resp.Diagnostics.AddError("internal error", fmt.Sprintf("The provider handed over a %T.", req.ProviderData))
		return
	}
	r.session = s
}

func (r *instanceResource) operator() instanceOperator { return r.session.instances }

// ImportState takes the VMID. What the container is made from, Read finds out.
func (r *instanceResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	importVMID(ctx, req, resp)
}

// Read looks at the container with one config read, and asks the registry which digest the reference names now. It drops the
// resource only when nothing has the VMID and no operation has it free: what cannot be seen is an error.
func (r *instanceResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m instanceModel
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	id := m.id()
	seen, err := r.operator().Observe(ctx, id)
	name := r.called(&m, seen)
	if err != nil {
		resp.Diagnostics.AddError(name+": it cannot be looked at", sentence(err.Error()))
		return
	}
	imported := m.Status.IsNull()
	switch {
	case imported:
		resp.Diagnostics.Append(importable("container", name, id, seen)...)
	case seen.Journal != nil:
		// An operation is open, and the container may be missing for a while.
	case seen.Presence == guest.Absent:
		tflog.Warn(ctx, name+" does not exist any more and is taken out of the state")
		resp.State.RemoveResource(ctx)
		// The CLIs keep private data of what is gone, and a create that has some is taken for a replacement.
		resp.Diagnostics.Append(resp.Private.SetKey(ctx, memoKey, []byte("{}"))...)
		return
	case seen.Presence == guest.PresenceUnknown:
		resp.Diagnostics.AddError(name+": whether it exists cannot be determined", "A node does not answer, or the login may not see the "+
			"container. It stays in the state; try again when it can be seen.")
	}
	if resp.Diagnostics.HasError() {
		return
	}
	r.session.blocks.Read(id)
	r.session.looks.keep(id, seen)
	for _, problem := range seen.Problems {
		if seen.Foreign != nil {
			break // that the record is another VMID's is what the plan is about
		}
		resp.Diagnostics.AddWarning(name+": its notes hold a block that is not used", sentence(problem))
	}
	if imported {
		m.fill(seen)
	}
	before, _, diags := recall(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	m.instanceComputed = r.show(ctx, m.instanceComputed, seen)
	available, err := seenImage{}, error(nil)
	if reference := m.Image.ValueString(); reference != "" { // nothing is known of an imported stranger's
		available, err = r.available(ctx, reference)
	}
	if err != nil {
		resp.Diagnostics.AddWarning(name+": whether there is an update is not known", sentence(err.Error()))
		available.Digest = ""
	}
	m.showAvailable(available.Digest)
	m.Preview = types.ObjectNull(previewType)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	resp.Diagnostics.Append(rememberInstance(seen, before, available).keep(ctx, resp.Private)...)
}

// fill completes an imported model with what the container and its record say, so that a plan shows only what differs.
func (m *instanceModel) fill(seen recipe.Observation) {
	if m.Hostname.IsNull() {
		m.Hostname = text(seen.Name)
	}
	m.Node = text(seen.Ref.Node)
	if app := applicationOf(seen.Contract, seen.Foreign); app != nil {
		m.Image = text(app.Image)
	}
}

// show is everything computed as it was seen; what was not seen stays as it was, and what nobody knows is null.
func (r *instanceResource) show(ctx context.Context, before instanceComputed, seen recipe.Observation) instanceComputed {
	c := before
	if seen.Ref.Node != "" {
		c.CurrentNode = types.StringValue(seen.Ref.Node)
	}
	if app := applicationOf(seen.Contract, seen.Foreign); app != nil {
		c.Digest, c.PlatformDigest = text(app.Digest), text(app.Manifest)
	}
	if contract := seen.Contract; contract != nil {
		c.Installed = showInstalled(&contract.Installed, contract.At)
	} else if seen.Foreign != nil {
		c.Installed = showInstalled(&seen.Foreign.Installed, seen.Foreign.At)
	}
	c.Status = types.StringValue(string(statusOf(seen, recipe.Status(before.Status.ValueString()))))
	c.Addresses = r.addresses(ctx, before.Addresses, seen)
	return completed(c)
}

// completed makes null of what is still unknown.
func completed(c instanceComputed) instanceComputed {
	for _, s := range []*types.String{&c.Status, &c.CurrentNode, &c.Digest, &c.PlatformDigest, &c.AvailableDigest} {
		if s.IsUnknown() {
			*s = types.StringNull()
		}
	}
	if c.UpdateAvailable.IsUnknown() {
		c.UpdateAvailable = types.BoolNull()
	}
	if c.Addresses.IsUnknown() {
		c.Addresses = types.MapNull(addressesType)
	}
	for _, o := range []struct {
		object *types.Object
		of     map[string]attr.Type
	}{{&c.Installed, installedType}, {&c.Preview, previewType}, {&c.LastOperation, lastOperationType}} {
		if o.object.IsUnknown() || o.object.IsNull() {
			*o.object = types.ObjectNull(o.of)
		}
	}
	return c
}

// showAvailable records what the reference names in the registry; "" when that is not known.
func (c *instanceComputed) showAvailable(digest string) {
	c.AvailableDigest, c.UpdateAvailable = text(digest), types.BoolNull()
	if digest != "" && c.Digest.ValueString() != "" {
		c.UpdateAvailable = types.BoolValue(digest != c.Digest.ValueString())
	}
}

var addressesType = types.ListType{ElemType: types.StringType}

// addresses are those of the container's interfaces by network key, without those that mean something on the link only. A
// container that does not run has none, and nothing is asked.
func (r *instanceResource) addresses(ctx context.Context, before types.Map, seen recipe.Observation) types.Map {
	found := map[string]attr.Value{}
	if seen.Presence != guest.Present || !seen.Running || seen.WrongType {
		return types.MapValueMust(addressesType, found)
	}
	host, ok := r.session.host.(addressBook)
	if !ok {
		return before
	}
	byMAC, err := host.Addresses(ctx, seen.Ref)
	if err != nil {
		tflog.Warn(ctx, "addresses stay as they were: "+err.Error())
		return before
	}
	for _, key := range seen.Config.Keys() {
		network, err := guest.ParseNetwork(key, seen.Config.Values[key])
		if err != nil || network.MAC() == "" {
			continue
		}
		var list []attr.Value
		for mac, addresses := range byMAC {
			if !strings.EqualFold(mac, network.MAC()) {
				continue
			}
			for _, a := range slices.Sorted(slices.Values(addresses)) {
				if ip, err := netip.ParseAddr(a); err == nil && !ip.IsLinkLocalUnicast() {
					list = append(list, types.StringValue(a))
				}
			}
		}
		if len(list) > 0 {
			found[key] = types.ListValueMust(types.StringType, list)
		}
	}
	return types.MapValueMust(addressesType, found)
}

// addressBook tells the addresses of a running container's interfaces, by hardware address; *proxmox.Host is one.
type addressBook interface {
	Addresses(ctx context.Context, ref guest.Ref) (map[string][]string, error)
}

// called names the container for a summary.
func (r *instanceResource) called(m *instanceModel, seen recipe.Observation) string {
	name := seen.Name
	if name == "" {
		name = m.Hostname.ValueString()
	}
	return called(guest.KindContainer, m.id(), name)
}

// ours reports whether a container is the one that a configuration means, though no state knows it: its record is valid for
// this VMID, and hostname and repository are the configured ones.
func (m *instanceModel) ours(seen recipe.Observation) bool {
	if seen.Presence != guest.Present || seen.WrongType || seen.Contract == nil || seen.Contract.App == nil {
		return false
	}
	ref, err := oci.ParseReference(m.Image.ValueString())
	made, errMade := oci.ParseReference(seen.Contract.App.Image)
	return err == nil && errMade == nil && ref.Name() == made.Name() && seen.Name == m.Hostname.ValueString()
}

// unsureAbout reports whether only the apply knows what changes: the image, triggers, or values of variables.
func (m *instanceModel) unsureAbout() bool {
	return m.Image.IsUnknown() || holdsUnknown(m.Environment) || holdsUnknown(m.EnvironmentWO) || holdsUnknown(m.Triggers)
}
