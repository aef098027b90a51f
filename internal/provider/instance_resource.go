package provider

// instanceResource is the resource pvrx_oci_instance.
type instanceResource struct{ session *session }
