# fleet.csv has the columns name and vmid, the cheapest to lose first. That one is rebuilt first; the others wait until it is
# healthy, and then go one at a time.
locals {
  rows   = csvdecode(file("fleet.csv"))
  fleet  = { for row in local.rows : row.name => tonumber(row.vmid) }
  first  = local.rows[0].name
  others = { for name, vmid in local.fleet : name => vmid if name != local.first }

  system_disks = { scsi0 = { image = "local:import/debian-13-genericcloud-amd64.qcow2", size = "32GiB" } }
}

# The verdicts: -var 'verdict={ id01 = { operation = "op-…", action = "accept" } }'. None needs a commit.
variable "verdict" {
  type    = map(object({ operation = string, action = string }))
  default = {}
}

provider "pvrx" {
  max_concurrent_operations = 1    # the default
  stop_after_failure        = true # the default: after one that stopped half-way no further one begins
}

import {
  to = pvrx_vm_rebuild.first
  id = local.fleet[local.first]
}

import {
  for_each = local.others
  to       = pvrx_vm_rebuild.others[each.key]
  id       = each.value
}

resource "pvrx_vm_rebuild" "first" {
  vmid         = local.fleet[local.first]
  name         = local.first
  system_disks = local.system_disks
  snapshot     = true
  health_check = { guest_agent = true, ssh = { port = 22 }, timeout = "5m" }
  reconcile    = lookup(var.verdict, local.first, null)
}

resource "pvrx_vm_rebuild" "others" {
  for_each     = local.others
  vmid         = each.value
  name         = each.key
  system_disks = local.system_disks
  snapshot     = true
  health_check = { guest_agent = true, ssh = { port = 22 }, timeout = "5m" }
  reconcile    = lookup(var.verdict, each.key, null)
  depends_on   = [pvrx_vm_rebuild.first]
}
