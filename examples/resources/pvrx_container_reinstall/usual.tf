variable "root_password" {
  type      = string
  ephemeral = true # no default, so that a saved plan asks for it again when it is applied
}

resource "pvrx_container_reinstall" "web1" {
  vmid     = 5001
  name     = "web1"
  template = "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst"
  rootfs   = { size = "16GiB" }
  triggers = { again = "2026-12-01" } # another value here reinstalls

  erase = { mp1 = "local-lvm:vm-5001-disk-2" } # consent for this volume, used up once
  drop  = ["mp2"]                              # a bind mount, which a token cannot set again
  allow = ["snapshots_present"]                # existing snapshots are deleted

  root_password_wo = var.root_password
  backup           = { storage = "pbs", keep = 3 }
  stop             = { timeout = "3m" }
  health_check     = { tcp = { port = 443 }, timeout = "2m" }
}
