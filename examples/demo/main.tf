# CT 5001 "web1" of the demo cluster gets a new system. Its volumes:
#
#   rootfs   8.5 GiB, its own         the new system goes here
#   mp0      its own data             stays, without asking for it
#   mp1      a volume of CT 5002      stays, mounted again by reference
#   mp2      a directory of the host  the directory stays; a token cannot mount it again, hence drop
#   unused0  its own, not mounted     stays

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

provider "pvrx" {
  endpoint  = var.endpoint
  api_token = var.api_token
  tls       = { ca_file = var.ca_file }
}

import {
  to = pvrx_container_reinstall.web1
  id = "5001"
}

resource "pvrx_container_reinstall" "web1" {
  vmid     = 5001
  name     = "web1"
  template = "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst"
  drop     = ["mp2"]
}

output "what_was_done" {
  value = try(pvrx_container_reinstall.web1.last_operation.summary, "nothing yet")
}
