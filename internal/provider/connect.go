package provider

import (
	"context"
	"net"
	"os"
	"strings"

	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/pvrx/terraform-provider-pvrx/internal/preview"
	"github.com/pvrx/terraform-provider-pvrx/internal/proxmox"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
	"github.com/pvrx/terraform-provider-pvrx/internal/run"
)

// connectProxmox makes the recipe for containers over a real server.
func connectProxmox(ctx context.Context, s setup) (operator, error) {
	s.UserAgent = s.agent
	host, err := proxmox.Connect(ctx, s.Settings)
	if err != nil {
		return nil, err
	}
	return &recipe.Container{
		Host: host, Shared: run.NewShared(host), Self: thisMachine(),
		Log: func(ctx context.Context, message string, fields map[string]any) {
			tflog.Info(ctx, message, fields)
		},
		ParkingFrom: s.parkingFrom, ParkingTo: s.parkingTo, ParkingPool: s.parkingPool,
	}, nil
}

// hostOf is what is behind the recipes; nil where there is no server.
func hostOf(containers operator) any {
	if c, ok := containers.(*recipe.Container); ok {
		return c.Host
	}
	return containers
}

// thisMachine says by what the machine that runs the provider can be told from the guests: it must not reinstall itself.
// What cannot be read is left out.
func thisMachine() (self preview.Self) {
	interfaces, err := net.Interfaces()
	if err == nil {
		for _, i := range interfaces {
			if mac := i.HardwareAddr.String(); mac != "" {
				self.MACs = append(self.MACs, strings.ToLower(mac))
			}
		}
	}
	if uuid, err := os.ReadFile("/sys/class/dmi/id/product_uuid"); err == nil {
		self.UUID = strings.ToLower(strings.TrimSpace(string(uuid)))
	}
	return self
}
