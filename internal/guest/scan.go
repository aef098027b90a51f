package guest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// found is a block at lines [from, to) of the notes, its line for people included: usable, or with a problem.
type found struct { //nolint:recvcheck // one method fills it, the others read it
	from, to int
	journal  *Journal
	contract *Contract
	problem  *Problem
}

func (f found) kind() BlockKind {
	switch {
	case f.journal != nil:
		return BlockJournal
	case f.contract != nil:
		return BlockContract
	}
	return f.problem.Block
}

func (f found) holder() VMID {
	switch {
	case f.journal != nil:
		return f.journal.Holder
	case f.contract != nil:
		return f.contract.Guest
	}
	return 0
}

func (f found) operation() string {
	switch {
	case f.journal != nil:
		return f.journal.Operation
	case f.contract != nil && ValidOperationID(f.contract.Operation):
		return f.contract.Operation
	}
	return ""
}

// scan finds every block, in order. Blocks do not overlap.
func scan(lines []string) []found {
	var blocks []found
	for i := 0; i < len(lines); i++ {
		line := bare(lines[i])
		if openingPattern.MatchString(line) {
			f := readBlock(lines, i)
			blocks = append(blocks, f)
			i = f.to - 1
			continue
		}
		if kind, operation := lineForPeople(line); kind != 0 && (i+1 == len(lines) || !openingPattern.MatchString(bare(lines[i+1]))) {
			f := found{from: i, to: i + 1, problem: &Problem{
				Kind: ProblemTruncated, Block: kind, Operation: operation,
				Sentence: fmt.Sprintf("the notes hold the first line of a %s block but not the block", kind),
			}}
			if onlyBeginning(lines[f.to:], fence+"pvrx-"+kind.String()) {
				f.to = len(lines)
			}
			blocks = append(blocks, f)
			i = f.to - 1
		}
	}
	return blocks
}

// readBlock reads the block whose opening line is lines[at].
func readBlock(lines []string, at int) found {
	f := found{from: at, to: at + 1}
	operation := ""
	if at > 0 {
		var kind BlockKind
		if kind, operation = lineForPeople(bare(lines[at-1])); kind != 0 {
			f.from--
		}
	}
	var body []string
	for f.to < len(lines) && payloadPattern.MatchString(bare(lines[f.to])) {
		body = append(body, bare(lines[f.to]))
		f.to++
	}
	if len(body) == 0 && f.to < len(lines) && stumpPattern.MatchString(bare(lines[f.to])) && onlyBeginning(lines[f.to+1:], "") {
		f.to = len(lines)
	}
	closed := f.to < len(lines) && bare(lines[f.to]) == fence
	if closed {
		f.to++
	}

	m := openingPattern.FindStringSubmatch(bare(lines[at]))
	kind := BlockJournal
	if m[1] == BlockContract.String() {
		kind = BlockContract
	}
	fail := func(problem ProblemKind, format string, args ...any) found {
		sentence := fmt.Sprintf("the %s block in the notes cannot be used: ", kind) + fmt.Sprintf(format, args...)
		f.problem = &Problem{Kind: problem, Block: kind, Operation: operation, Sentence: sentence}
		return f
	}
	header := headerPattern.FindStringSubmatch(m[2])
	if header != nil && (header[1] != strconv.Itoa(blockVersion)) {
		if n, err := strconv.Atoi(header[1]); err == nil && n > blockVersion {
			return fail(ProblemNewer, "its format is version %d and this pvrx reads version %d; use the pvrx that wrote it, or a newer one", n, blockVersion)
		}
		return fail(ProblemOlder, "its format version %s is not known", header[1])
	}
	switch {
	case !closed && onlyBeginning(lines[f.to:], fence):
		f.to = len(lines)
		return fail(ProblemTruncated, "it ends early")
	case header == nil || header[2] == "" || header[4] != "":
		return fail(ProblemDamaged, "its first line cannot be read")
	case !closed || len(body) != 1:
		return fail(ProblemDamaged, "it is not of the form that pvrx writes")
	}
	err := f.decode(kind, header[2], header[3], body[0])
	if errors.Is(err, errNewer) {
		return fail(ProblemNewer, "%v", err)
	}
	if err != nil {
		return fail(ProblemDamaged, "%v", err)
	}
	return f
}

func (f *found) decode(kind BlockKind, encoding, sum, payload string) error {
	if kind == BlockContract {
		var c Contract
		if err := decodePayload(kind, encoding, sum, payload, &c); err != nil {
			return err
		}
		if err := c.check(); err != nil {
			return err
		}
		f.contract = &c
		return nil
	}
	var j Journal
	if err := decodePayload(kind, encoding, sum, payload, &j); err != nil {
		return err
	}
	if err := j.check(); err != nil {
		return err
	}
	f.journal = &j
	return nil
}

// lineForPeople recognises the line that stands before a block, even when its end is missing.
func lineForPeople(line string) (kind BlockKind, operation string) {
	if contractStart.MatchString(line) {
		return BlockContract, ""
	}
	m := journalPattern.FindStringSubmatch(line)
	if m == nil {
		return 0, ""
	}
	if ValidOperationID(m[1]) {
		operation = m[1]
	}
	return BlockJournal, operation
}

// onlyBeginning reports whether nothing is left but line ends and the beginning of a line that belongs there.
func onlyBeginning(lines []string, of string) bool {
	for _, line := range lines {
		if line = bare(line); line != "" && !strings.HasPrefix(of, line) {
			return false
		}
	}
	return true
}

// bare is a line without what an editor may have added at its end.
func bare(line string) string { return strings.TrimRight(line, " \r") }
