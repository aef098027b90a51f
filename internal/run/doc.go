// Package run holds what one provider process shares between its guests: lists of the cluster that are read once, the
// gate that paces operations, and the knowledge of which VMIDs this run has already planned.
package run
