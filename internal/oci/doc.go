// Package oci is the door to container registries: it reads references, resolves them to digests, and fetches an image by
// digest into the one form that Proxmox VE unpacks, an uncompressed OCI archive with a single manifest. Every byte is checked
// against a digest before anybody uses it, memory stays bounded whatever the image, and what a plan asks costs no blob.
package oci
