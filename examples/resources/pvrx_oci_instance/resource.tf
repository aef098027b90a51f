resource "pvrx_oci_instance" "whoami" {
  node     = "pve1" # where to make it; afterwards it is followed
  vmid     = 6002
  hostname = "whoami"
  image    = "docker.io/traefik/whoami:v1.11"
  networks = { net0 = { bridge = "vmbr0", address = "dhcp" } }
}
