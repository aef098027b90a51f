// Package pvesim simulates a Proxmox VE 9.2 cluster, for tests and for the demo.
//
// A [Cluster] is the world: nodes, storages with volumes that hold content, guests, users and
// their rights. A [Server] answers Proxmox's HTTP API over it with Proxmox's own status lines,
// error texts and tasks, and can be told to misbehave ([Fault]). Tests read and change the world
// directly, without permissions, through the exported methods of Cluster.
//
// The package imports no other package of this module, so that nothing the provider believes
// about Proxmox can leak into what it is tested against.
package pvesim
