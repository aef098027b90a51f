# The import id is the VMID.
tofu import pvrx_container_reinstall.web1 5001
