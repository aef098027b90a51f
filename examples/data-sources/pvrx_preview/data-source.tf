# What a reinstall would do, asked without planning one. Works with a token that may only audit.
data "pvrx_preview" "web1" {
  vmid     = 5001
  template = "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst"
}

output "blockers" {
  value = data.pvrx_preview.web1.preview.blockers
}
