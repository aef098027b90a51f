package proxmox_test

import (
	"github.com/pvrx/terraform-provider-pvrx/internal/proxmox"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// The port is what recipes ask for.
var _ recipe.Host = (*proxmox.Host)(nil)
