# An existing container is brought in by import; the same plan shows its reinstall.
import {
  to = pvrx_container_reinstall.web1
  id = "5001"
}

resource "pvrx_container_reinstall" "web1" {
  vmid     = 5001
  name     = "web1" # the container's hostname as it is now
  template = "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst"
}
