package guest

// BlockKind says what a block in the notes holds. The zero value is invalid.
type BlockKind uint8

// The kinds of blocks.
const (
	BlockJournal BlockKind = iota + 1
	BlockContract
)

// String returns "journal" or "contract".
func (k BlockKind) String() string {
	switch k {
	case BlockJournal:
		return "journal"
	case BlockContract:
		return "contract"
	}
	return "invalid"
}

// ProblemKind says why a block is not usable. The zero value is invalid.
type ProblemKind uint8

// The kinds of problems.
const (
	ProblemDamaged    ProblemKind = iota + 1 // the checksum or the content is wrong
	ProblemTruncated                         // it ends early
	ProblemDuplicated                        // there is more than one, so none is believed
	ProblemForeign                           // written for another guest: a stale copy made by a clone, a backup or a restore
	ProblemNewer                             // written by a newer pvrx
	ProblemOlder                             // of a format version that pvrx does not know and that is not newer
)

// String returns one word for logs.
func (k ProblemKind) String() string {
	switch k {
	case ProblemDamaged:
		return "damaged"
	case ProblemTruncated:
		return "truncated"
	case ProblemDuplicated:
		return "duplicated"
	case ProblemForeign:
		return "foreign"
	case ProblemNewer:
		return "newer"
	case ProblemOlder:
		return "older"
	}
	return "invalid"
}

// Problem is a block that was found in the notes and is not usable. Problems of every kind but foreign stay in the notes
// until a person, or WithoutProblems, takes them out; a foreign block is left out of the next write.
type Problem struct {
	Kind      ProblemKind
	Block     BlockKind
	Sentence  string // what was found, for people; free of control characters
	Operation string // the operation that the block names, when that can be read
	Holder    VMID   // foreign only: the guest that it was written for
}
