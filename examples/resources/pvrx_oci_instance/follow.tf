# Every plan resolves the tag; another digest makes an update due.
resource "pvrx_oci_instance" "site" {
  node     = "pve1"
  vmid     = 6003
  hostname = "site"
  image    = "registry.lan:5000/web/site:stable"
  update   = "follow"
  networks = { net0 = { bridge = "vmbr0", address = "dhcp" } }
}

variable "registry_password" {
  type      = string
  sensitive = true
}

provider "pvrx" {
  registries = {
    "registry.lan:5000" = { username = "deploy", password = var.registry_password, plain_http = true }
  }
}
