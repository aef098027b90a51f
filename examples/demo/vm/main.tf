# VM 7131 "id01" of the demo cluster gets a new operating system. Its disks:
#
#   scsi0   8 GiB, the system    made anew from a cloud image; the old one stays as the way back until accept
#   scsi1   4 GiB, scratch       made anew, blank
#   scsi2   40 GiB, the data     stays, without asking for it, with discard, iothread, serial and ssd

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

variable "accept" {
  type    = string
  default = null # the id of the operation to accept
}

provider "pvrx" {
  endpoint  = var.endpoint
  api_token = var.api_token
  tls       = { ca_file = var.ca_file }
}

import {
  to = pvrx_vm_rebuild.id01
  id = "7131"
}

resource "pvrx_vm_rebuild" "id01" {
  vmid = 7131
  name = "id01"
  system_disks = {
    scsi0 = { image = "local:import/debian-13-genericcloud-amd64.qcow2", size = "32GiB" }
    scsi1 = { blank = true, size = "64GiB" }
  }
  snapshot  = true
  reconcile = var.accept == null ? null : { operation = var.accept, action = "accept" }
}

output "operation" {
  value = try(pvrx_vm_rebuild.id01.last_operation.id, "none yet")
}
