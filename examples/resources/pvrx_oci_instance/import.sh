# The import id is the VMID.
tofu import pvrx_oci_instance.vault 6001
