package guest

import "unicode/utf8"

// NotesLimit is how many characters (not bytes) Proxmox accepts in a guest's notes.
const NotesLimit = 8192

// Length returns how many characters text takes of NotesLimit.
func Length(text string) int { return utf8.RuneCountInString(text) }

// Notes is a guest's notes taken apart.
type Notes struct {
	User     string // everything that is not a usable block of ours, without trailing line ends
	Journal  *Journal
	Contract *Contract
	Problems []Problem // blocks that were found and are not usable: reported, never obeyed
}

// ReadNotes takes notes apart. It never fails: what looks like a block and is not usable becomes a Problem.
func ReadNotes(text string) Notes { return readNotes(text, 0) }

// For returns the notes as those of the guest id: blocks that were written for another guest become Problems.
func (n Notes) For(id VMID) Notes { return readNotes(n.String(), id) }

// WithJournal returns the notes with another journal; nil removes it.
func (n Notes) WithJournal(j *Journal) Notes { n.Journal = j; return n }

// WithContract returns the notes with another contract; nil removes it.
func (n Notes) WithContract(c *Contract) Notes { n.Contract = c; return n }

// WithoutProblems returns the notes without the blocks that Problems reports.
func (n Notes) WithoutProblems() Notes { n.Problems = nil; return n }

// String returns the text to write into Proxmox.
func (n Notes) String() string { return n.User }

func readNotes(text string, id VMID) Notes { return Notes{User: text} }
