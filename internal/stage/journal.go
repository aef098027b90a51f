package stage

import "context"

// Position says where an operation stands. It is what the journal records.
type Position struct {
	Stage string
	Index int // 1-based
	Of    int
	// Back is true while stages are taken back.
	Back bool
	// Stuck is true when nobody works on the operation any more and a person must say how to go on.
	Stuck bool
	// Problem is the error that stopped or turned the operation, "" while all is well.
	Problem string
}

// Journal keeps the position of an operation where it survives this process.
type Journal interface {
	// Write records the position. The engine does nothing further when it fails: what is not recorded is not done.
	Write(ctx context.Context, at Position) error
}
