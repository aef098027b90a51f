terraform {
  required_providers {
    pvrx = {
      source = "pvrx/pvrx"
    }
  }
}

variable "proxmox_token" {
  type      = string
  sensitive = true
}

provider "pvrx" {
  endpoint             = "https://pve1.example.org:8006"
  additional_endpoints = ["https://pve2.example.org:8006"] # other nodes of the same cluster
  api_token            = var.proxmox_token                 # or PVRX_API_TOKEN in the environment

  max_concurrent_operations = 1      # how many guests are worked on at once
  blocked_guests            = "fail" # "skip" leaves blocked guests alone and goes on with the others
}
