# fleet.csv has the columns name and vmid. web1 goes first; the others wait until it is healthy.
locals {
  fleet  = { for row in csvdecode(file("fleet.csv")) : row.name => tonumber(row.vmid) }
  canary = { for name, vmid in local.fleet : name => vmid if name == "web1" }
  others = { for name, vmid in local.fleet : name => vmid if name != "web1" }
}

variable "template" {
  type = string
}

# Given on the command line when an operation has to be closed, so that no commit is needed for it.
variable "reconcile" {
  type    = map(object({ operation = string, action = string }))
  default = {}
}

provider "pvrx" {
  max_concurrent_operations = 2
  blocked_guests            = "skip"
}

import {
  for_each = local.canary
  to       = pvrx_container_reinstall.canary[each.key]
  id       = each.value
}

import {
  for_each = local.others
  to       = pvrx_container_reinstall.others[each.key]
  id       = each.value
}

resource "pvrx_container_reinstall" "canary" {
  for_each     = local.canary
  vmid         = each.value
  name         = each.key
  template     = var.template
  health_check = { http = { port = 8080, path = "/healthz" }, timeout = "3m" }
  reconcile    = lookup(var.reconcile, each.key, null)
}

resource "pvrx_container_reinstall" "others" {
  for_each   = local.others
  vmid       = each.value
  name       = each.key
  template   = var.template
  reconcile  = lookup(var.reconcile, each.key, null)
  depends_on = [pvrx_container_reinstall.canary]
}
