# An existing VM is brought in by import; the same plan shows its rebuild.
import {
  to = pvrx_vm_rebuild.id01
  id = "7131"
}

resource "pvrx_vm_rebuild" "id01" {
  vmid = 7131
  name = "id01" # the VM's name as it is now

  system_disks = {
    scsi0 = { image = "local:import/debian-13-genericcloud-amd64.qcow2", size = "32GiB" }
    scsi1 = { blank = true, size = "64GiB" } # scratch; scsi2, EFI variables and TPM state are kept
  }

  snapshot     = true # of the kept disks, so that rollback_data can return them
  health_check = { tcp = { port = 22 }, timeout = "5m" }
}
