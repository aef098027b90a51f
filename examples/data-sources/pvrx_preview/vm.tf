# What a rebuild in place would do. With `replaces_vmid` the question is about a new VM in its place.
data "pvrx_preview" "id01" {
  vmid = 7131
  system_disks = {
    scsi0 = { image = "local:import/debian-13-genericcloud-amd64.qcow2", size = "32GiB" }
    scsi1 = { blank = true, size = "64GiB" }
  }
  snapshot = true
}

output "fates" {
  value = data.pvrx_preview.id01.preview.fates
}
