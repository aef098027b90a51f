# Container 6001 "guestbook" is made from an OCI image of a registry on this machine, and is kept at what this file says:
#
#   rootfs   what the image brings; every update makes it anew
#   /data    its data; every update keeps it, without asking for it
#
# Version 1 and 2 of the image are well. Version 3 starts, and ends soon after.

terraform {
  required_providers {
    pvrx = {
      source = "registry.opentofu.org/pvrx/pvrx"
    }
  }
}

variable "endpoint" {
  type = string
}

variable "api_token" {
  type      = string
  sensitive = true
}

variable "ca_file" {
  type = string
}

variable "registry" {
  type = string # host and port
}

variable "tag" {
  type = string
}

provider "pvrx" {
  endpoint   = var.endpoint
  api_token  = var.api_token
  tls        = { ca_file = var.ca_file }
  registries = { (var.registry) = { plain_http = true } }
}

resource "pvrx_oci_instance" "guestbook" {
  vmid        = 6001
  hostname    = "guestbook"
  node        = "pve1"
  image       = "${var.registry}/guestbook:${var.tag}"
  rootfs      = { storage = "local-lvm" }
  memory      = "256MiB"
  environment = { TITLE = "Guests of the house" }
  networks = {
    net0 = { bridge = "vmbr0", address = "192.0.2.91/24", gateway = "192.0.2.1" }
  }
  volumes = {
    "/data" = { storage = "tank", size = "1GiB" }
  }
  health_check = { running_for = "1s" }
}
