data "pvrx_oci_image" "vault" {
  image = "ghcr.io/dani-garcia/vaultwarden:1.34.3"
}

# The reference with its digest, for a configuration that never moves by itself.
output "pinned" {
  value = data.pvrx_oci_image.vault.pinned
}

# What it writes to these paths is gone after an update, unless the instance has volumes there.
output "declared_volumes" {
  value = data.pvrx_oci_image.vault.volumes
}
