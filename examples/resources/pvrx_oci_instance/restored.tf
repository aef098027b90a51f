# A backup that was restored as CT 6010 is taken up: the record in its notes says what it is made from.
import {
  to = pvrx_oci_instance.vault
  id = "6010"
}

resource "pvrx_oci_instance" "vault" {
  vmid     = 6010
  hostname = "vaultwarden"
  image    = "ghcr.io/dani-garcia/vaultwarden:1.34.3"
  volumes  = { "/data" = { storage = "local-lvm", size = "8GiB" } }
  networks = { net0 = { bridge = "vmbr0", address = "dhcp" } }
  started  = false
}
