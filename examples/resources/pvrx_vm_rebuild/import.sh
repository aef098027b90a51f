# The import id is the VMID.
tofu import pvrx_vm_rebuild.id01 7131
