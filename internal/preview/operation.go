package preview

// Operation names what would be done to a guest. The zero value is invalid.
type Operation uint8

// The operations.
const (
	OpReinstall Operation = iota + 1
	OpGrow
	OpRebuild
	OpReplace
	OpInstall
	OpModify
	OpUpdate
	OpRemove
	OpAdopt
	OpResume
	OpRollback
	OpRollbackData
	OpAccept
	OpClose
)

// String returns the word that plans, journals and configurations use.
func (o Operation) String() string {
	switch o {
	case OpReinstall:
		return "reinstall"
	case OpGrow:
		return "grow"
	case OpRebuild:
		return "rebuild"
	case OpReplace:
		return "replace"
	case OpInstall:
		return "install"
	case OpModify:
		return "modify"
	case OpUpdate:
		return "update"
	case OpRemove:
		return "remove"
	case OpAdopt:
		return "adopt"
	case OpResume:
		return "resume"
	case OpRollback:
		return "rollback"
	case OpRollbackData:
		return "rollback_data"
	case OpAccept:
		return "accept"
	case OpClose:
		return "close"
	}
	return "invalid"
}

// ParseOperation finds the operation that a word names.
func ParseOperation(word string) (Operation, bool) {
	for o := OpReinstall; o <= OpClose; o++ {
		if o.String() == word {
			return o, true
		}
	}
	return 0, false
}
