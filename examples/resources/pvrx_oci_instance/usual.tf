variable "admin_token" {
  type      = string
  ephemeral = true # in no plan and no state
}

resource "pvrx_oci_instance" "vault" {
  node     = "pve1"
  vmid     = 6001
  hostname = "vaultwarden"
  image    = "ghcr.io/dani-garcia/vaultwarden:1.34.3" # another tag or digest here is an update

  rootfs   = { storage = "local-lvm", size = "4GiB" } # gone after every update
  volumes  = { "/data" = { storage = "local-lvm", size = "8GiB" } }
  networks = { net0 = { bridge = "vmbr0", address = "10.0.0.11/24", gateway = "10.0.0.1" } }
  memory   = "512MiB"
  onboot   = true

  environment            = { DOMAIN = "https://vault.example.org" }
  environment_wo         = { ADMIN_TOKEN = var.admin_token }
  environment_wo_version = 1 # another number writes the token anew

  health_check = { http = { port = 80, path = "/alive" }, timeout = "2m" }
  on_failure   = "rollback"
  backup       = { storage = "pbs", keep = 3 } # before every update
}

output "vault_update_available" {
  value = pvrx_oci_instance.vault.update_available
}
