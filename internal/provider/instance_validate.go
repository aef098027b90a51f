package provider

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	tfpath "github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/oci"
)

// variableName is what Proxmox takes as the name of an environment variable, and a program as well.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// isImage accepts a reference to an image.
func isImage() validator.String {
	return check{about: "a reference to an image, such as docker.io/library/nginx:1.27", test: func(text string) error {
		_, err := oci.ParseReference(text)
		return err
	}}
}

// isPlatform accepts a platform.
func isPlatform() validator.String {
	return check{about: "a platform, such as linux/arm64", test: func(text string) error {
		_, err := oci.ParsePlatform(text)
		return err
	}}
}

// isMemory accepts an amount of memory of at least that many MiB; "0" where none is an amount.
func isMemory(least int) validator.String {
	return check{about: `an amount of memory with a unit, such as "512MiB"`, test: func(text string) error {
		if text == "0" && least == 0 {
			return nil
		}
		size, err := guest.ParseRequest(text)
		if err == nil && size < guest.Bytes(least)*guest.MiB {
			err = fmt.Errorf("cannot use %q: it must be at least %dMiB", text, least)
		}
		return err
	}}
}

// isPrintable accepts what an entrypoint may hold.
func isPrintable() validator.String {
	return check{about: "text of one line", test: func(text string) error {
		control := func(r rune) bool { return r != '\t' && (r < ' ' || r == 0x7f) }
		if strings.ContainsFunc(text, control) {
			return errors.New("it holds a line break or another control character, which Proxmox does not take")
		}
		return nil
	}}
}

// isValue accepts the value of an environment variable.
func isValue() validator.String {
	return check{about: "text that Proxmox keeps as it is", test: func(text string) error {
		if why := guest.UnkeptVariable("NAME", text); why != "" {
			return errors.New(why)
		}
		return nil
	}}
}

// isVariable accepts the name of a variable that is not pvrx's own.
func isVariable() validator.String {
	return check{about: "the name of an environment variable", test: func(text string) error {
		switch {
		case text == guest.ContractVariable:
			return fmt.Errorf("cannot set %s: it tells pvrx which record belongs to the container", text)
		case !variableName.MatchString(text):
			return fmt.Errorf("cannot use %q as the name of a variable: letters, digits and underscores, no digit first", text)
		}
		return nil
	}}
}

// isMountPath accepts a path as Proxmox keeps it.
func isMountPath() validator.String {
	return check{about: "an absolute path", test: func(text string) error {
		switch {
		case !strings.HasPrefix(text, "/"):
			return fmt.Errorf("cannot mount at %q: the path must be absolute", text)
		case text == "/":
			return errors.New("cannot mount at /: that is the root file system")
		case path.Clean(text) != text:
			return fmt.Errorf("cannot mount at %q: write %q", text, path.Clean(text))
		case strings.ContainsAny(text, ",\n\r\x00"):
			return fmt.Errorf("cannot mount at %q: no commas and line breaks", text)
		}
		return nil
	}}
}

// isAddress accepts an address of a version of IP.
func isAddress(version int) validator.String {
	return check{about: fmt.Sprintf("an IPv%d address", version), test: func(text string) error {
		a, err := netip.ParseAddr(text)
		if err != nil || a.Is4() != (version == 4) {
			return fmt.Errorf("cannot read %q: write an IPv%d address", text, version)
		}
		return nil
	}}
}

// isInterfaceAddress accepts an address with its prefix, or a word for where it comes from.
func isInterfaceAddress(version int) validator.String {
	auto := []string{"dhcp", "manual"}
	if version == 6 {
		auto = append(auto, "auto")
	}
	return check{about: fmt.Sprintf("an IPv%d address with its prefix", version), test: func(text string) error {
		if slices.Contains(auto, text) {
			return nil
		}
		p, err := netip.ParsePrefix(text)
		if err != nil || p.Addr().Is4() != (version == 4) {
			return fmt.Errorf("cannot read %q: write %s, or an IPv%d address with its prefix", text, list(auto), version)
		}
		return nil
	}}
}

// isAddressList accepts addresses separated by one space.
func isAddressList() validator.String {
	return check{about: "addresses, separated by spaces", test: func(text string) error {
		for part := range strings.SplitSeq(text, " ") {
			if _, err := netip.ParseAddr(part); err != nil {
				return fmt.Errorf("cannot read %q: write addresses, separated by one space", text)
			}
		}
		return nil
	}}
}

// ValidateConfig checks what one argument alone cannot tell.
func (r *instanceResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m instanceModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(m.check(ctx)...)
}

func (m *instanceModel) check(ctx context.Context) (diags diag.Diagnostics) {
	for name := range m.EnvironmentWO.Elements() {
		if _, twice := m.Environment.Elements()[name]; twice {
			diags.AddAttributeError(tfpath.Root("environment_wo").AtMapKey(name), name+" is set twice",
				"environment sets it too. Take it out of one of them.")
		}
	}
	if m.EnvironmentWO.IsNull() && !m.EnvironmentWOVersion.IsNull() {
		diags.AddAttributeError(tfpath.Root("environment_wo_version"), "environment_wo_version is about nothing", "environment_wo is not set.")
	}
	diags.Append(m.checkMounts()...)
	if m.Follows.ValueString() == "follow" {
		if ref, err := oci.ParseReference(m.Image.ValueString()); err == nil && ref.Tag == "" {
			diags.AddAttributeError(tfpath.Root("update"), "there is nothing to follow", "image names a digest and no tag, and a digest never moves.")
		} else if err == nil && ref.Digest != "" {
			diags.AddAttributeError(tfpath.Root("update"), "there is nothing to follow", "image pins a digest beside its tag. Take one of the two away.")
		}
	}
	for key, object := range objects(m.Networks) {
		var n networkModel
		diags.Append(part(ctx, object, &n)...)
		at := tfpath.Root("networks").AtMapKey(key)
		diags.Append(gatewayFits(at.AtName("gateway"), n.Address, n.Gateway)...)
		diags.Append(gatewayFits(at.AtName("gateway6"), n.Address6, n.Gateway6)...)
	}
	diags.Append(m.checkStartup(ctx)...)
	return diags
}

// checkMounts refuses a path that is used twice, or that lies in another one: Proxmox mounts in the order of its keys, so an
// inner mount could end up below an outer one.
func (m *instanceModel) checkMounts() (diags diag.Diagnostics) {
	at := map[string]tfpath.Path{}
	for mount := range m.Volumes.Elements() {
		at[mount] = tfpath.Root("volumes").AtMapKey(mount)
	}
	for mount := range m.HostDirectories.Elements() {
		if _, twice := at[mount]; twice {
			diags.AddAttributeError(tfpath.Root("host_directories").AtMapKey(mount), mount+" is mounted twice", "volumes has this path too.")
		}
		at[mount] = tfpath.Root("host_directories").AtMapKey(mount)
	}
	for inner, where := range at {
		for outer := path.Dir(inner); outer != "/" && outer != "."; outer = path.Dir(outer) {
			if _, nested := at[outer]; nested {
				diags.AddAttributeError(where, inner+" lies in "+outer, "One mount in another is not supported, since Proxmox mounts in the "+
					"order of its keys. Mount them side by side.")
			}
		}
	}
	return diags
}

// gatewayFits refuses a gateway that nothing leads to.
func gatewayFits(at tfpath.Path, address, gateway types.String) (diags diag.Diagnostics) {
	if address.IsUnknown() || gateway.IsUnknown() || gateway.IsNull() {
		return nil
	}
	if _, err := netip.ParsePrefix(address.ValueString()); err != nil {
		diags.AddAttributeError(at, "a gateway needs an address", "The interface has no address of its own: with dhcp or auto the network tells the gateway.")
	}
	return diags
}

func (m *instanceModel) checkStartup(ctx context.Context) (diags diag.Diagnostics) {
	if m.Startup.IsNull() || m.Startup.IsUnknown() {
		return nil
	}
	var s startupModel
	diags.Append(part(ctx, m.Startup, &s)...)
	if all := []attr.Value{s.Order, s.Up, s.Down}; !slices.ContainsFunc(all, func(v attr.Value) bool { return !v.IsNull() }) {
		diags.AddAttributeError(tfpath.Root("startup"), "startup says nothing", "Set order, up or down, or leave startup out.")
	}
	return diags
}
