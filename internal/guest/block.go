package guest

// BlockKind says what a block in the notes holds. The zero value is invalid.
type BlockKind uint8

// The kinds of blocks.
const (
	BlockJournal BlockKind = iota + 1
	BlockContract
)

// ProblemKind says why a block is not usable. The zero value is invalid.
type ProblemKind uint8

// The kinds of problems.
const (
	ProblemDamaged    ProblemKind = iota + 1 // checksum or content is wrong
	ProblemTruncated                         // it ends early
	ProblemDuplicated                        // there is more than one, so none is believed
	ProblemForeign                           // written for another guest: a stale copy from a clone, backup or restore
	ProblemNewer                             // written by a newer pvrx
	ProblemOlder                             // of a version that never was
)

// Problem is a block that was found and is not usable.
type Problem struct {
	Kind      ProblemKind
	Block     BlockKind
	Sentence  string // for people
	Holder    VMID   // foreign: the guest it was written for
	Operation string // the operation it names, when that can be read
}
