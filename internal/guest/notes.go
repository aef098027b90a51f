package guest

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// NotesLimit is how many characters (not bytes) Proxmox accepts in a guest's notes.
const NotesLimit = 8192

// Length returns how many characters text takes of NotesLimit.
func Length(text string) int { return utf8.RuneCountInString(text) }

// Notes is a guest's notes taken apart. A value is not changed by its methods.
type Notes struct {
	// User is everything that is not a usable block of ours, exactly as it was but for line ends at its end, which Proxmox
	// folds. Blocks with a problem other than foreign are still in it.
	User     string
	Journal  *Journal
	Contract *Contract
	Problems []Problem // reported, never obeyed
	// Foreign is the contract of an application container that was made under another VMID: what a restored or cloned
	// container says of itself. It is a Problem as well, is not written again, and answers nothing but what it came from.
	Foreign *Contract
}

// ReadNotes takes notes apart. It never fails: what looks like a block and is not usable becomes a Problem.
func ReadNotes(text string) Notes { return readNotes(text, 0, false) }

// NotesOf takes the notes of the guest id apart as that guest must understand them: blocks that were written for another
// guest become Problems and are left out of the next write. ReadNotes does not judge whose blocks they are.
func NotesOf(id VMID, text string) Notes { return readNotes(text, id, false) }

// WithJournal returns the notes with another journal; nil removes it.
func (n Notes) WithJournal(j *Journal) Notes {
	n.Journal = j
	return n
}

// WithContract returns the notes with another contract; nil removes it.
func (n Notes) WithContract(c *Contract) Notes {
	n.Contract = c
	return n
}

// WithoutProblems returns the notes without the blocks that Problems reports: for a person who closes an operation.
func (n Notes) WithoutProblems() Notes { return readNotes(n.String(), 0, true) }

// Problem returns the first problem with a block of that kind; ok is false when there is none. Foreign blocks count only
// when foreign is set: they are stale copies and say nothing about this guest.
func (n Notes) Problem(kind BlockKind, foreign bool) (p Problem, ok bool) {
	for _, p := range n.Problems {
		if p.Block == kind && (foreign || p.Kind != ProblemForeign) {
			return p, true
		}
	}
	return Problem{}, false
}

// String returns the text to write into Proxmox: the user's text, then the journal and the contract, each with its line for
// people. Compare Length of it with NotesLimit first.
func (n Notes) String() string {
	var parts []string
	if user := strings.TrimRight(n.User, "\n"); user != "" {
		parts = append(parts, user)
	}
	if n.Journal != nil {
		j := *n.Journal
		j.Version = blockVersion
		parts = append(parts, encodeBlock(BlockJournal, journalLine(j), j))
	}
	if n.Contract != nil {
		c := *n.Contract
		c.Version = blockVersion
		parts = append(parts, encodeBlock(BlockContract, contractLine, c))
	}
	return strings.Join(parts, "\n\n")
}

func readNotes(text string, id VMID, drop bool) Notes {
	var n Notes
	lines := strings.Split(text, "\n")
	blocks := scan(lines)
	count := map[BlockKind]int{}
	for _, f := range blocks {
		if f.problem == nil && !isForeign(f, id) {
			count[f.kind()]++
		}
	}
	var user []string
	next := 0
	var copies []*Contract
	for _, f := range blocks {
		takeOut := drop
		switch {
		case f.problem != nil:
			n.Problems = append(n.Problems, *f.problem)
		case isForeign(f, id):
			takeOut = true
			if f.contract != nil && f.contract.App != nil {
				copies = append(copies, f.contract)
			}
			n.Problems = append(n.Problems, Problem{
				Kind: ProblemForeign, Block: f.kind(), Operation: f.operation(), Holder: f.holder(),
				Sentence: fmt.Sprintf("the %s block in the notes of guest %s was written for guest %s: a stale copy", f.kind(), id, f.holder()),
			})
		case count[f.kind()] > 1:
			n.Problems = append(n.Problems, Problem{
				Kind: ProblemDuplicated, Block: f.kind(), Operation: f.operation(),
				Sentence: fmt.Sprintf("the notes hold %d %s blocks, so none is believed", count[f.kind()], f.kind()),
			})
		default:
			takeOut = true
			if f.journal != nil {
				n.Journal = f.journal
			} else {
				n.Contract = f.contract
			}
		}
		if takeOut {
			user = join(user, lines[next:f.from], next > 0)
			next = f.to
		}
	}
	user = join(user, lines[next:], next > 0)
	n.User = strings.TrimRight(strings.Join(user, "\n"), "\n")
	if len(copies) == 1 { // of two, none is believed
		n.Foreign = copies[0]
	}
	if drop {
		n.Problems = nil
	}
	return n
}

// join appends the lines after a block that was taken out to those before it: the blank line that String writes between them
// goes with the block, but lines that the block kept apart stay apart.
func join(user, more []string, afterBlock bool) []string {
	if !afterBlock || len(more) == 0 {
		return append(user, more...)
	}
	blankBefore := len(user) == 0 || user[len(user)-1] == ""
	switch {
	case blankBefore && more[0] == "":
		more = more[1:]
	case !blankBefore && more[0] != "":
		user = append(user, "")
	}
	return append(user, more...)
}

func isForeign(f found, id VMID) bool { return id != 0 && f.holder() != id }
