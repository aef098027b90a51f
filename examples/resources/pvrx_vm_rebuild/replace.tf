# Imported as 7131 first. Giving up: vmid = 7131, and the line replaces_vmid gone.
resource "pvrx_vm_rebuild" "id02" {
  vmid          = 9132
  replaces_vmid = 7132
  name          = "id02"
  identity      = "copy" # MAC addresses and smbios uuid

  system_disks = { scsi0 = { image = "local:import/debian-13-genericcloud-amd64.qcow2", size = "32GiB" } }
  health_check = { guest_agent = true, ssh = { port = 22 }, timeout = "5m" }
}
