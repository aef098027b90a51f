package guest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

// A block is a line for people and a fence of three lines:
//
//	pvrx: reinstall op-5001-20261201-3f2a, stage 6 of 12 (guard): do not start or destroy this guest
//	```pvrx-journal v1 json 3b0f9c6a7d21e458
//	{"v":1,"op":"op-5001-20261201-3f2a", …}
//	```
//
// The opening line carries what is needed to judge the payload before it is read: format version, encoding, checksum.
const (
	blockVersion = 1
	fence        = "```"
	encodingJSON = "json" // the payload is JSON in ASCII
	encodingGzip = "gzip" // the payload is such JSON, compressed, in base64
	contractLine = "pvrx: the block below records what this guest was made from, please keep it"
)

var (
	openingPattern = regexp.MustCompile("^ {0,3}```pvrx-(journal|contract)(?: (.*))?$")
	headerPattern  = regexp.MustCompile(`^v([0-9]{1,6})(?: ([a-z0-9]+) ([0-9a-f]{16}))?( .*)?$`)
	journalPattern = regexp.MustCompile(`^pvrx: [a-z_]+ (op-[0-9a-z-]*)`)
	payloadPattern = regexp.MustCompile(`^(?:\{.*|[A-Za-z0-9+/=]{16,})$`)
	stumpPattern   = regexp.MustCompile(`^[A-Za-z0-9+/=]{1,15}$`) // of a payload, when it is all that is left
	contractStart  = regexp.MustCompile(`^pvrx: the block below records`)
	kindPattern    = regexp.MustCompile(`^[a-z_]+$`)
)

// journalLine returns the line that tells whoever opens the notes what is going on.
func journalLine(j Journal) string {
	kind := j.Kind
	if !kindPattern.MatchString(kind) {
		kind = "operation"
	}
	where := fmt.Sprintf("stage %d of %d (%s)", j.Index, j.Of, Printable(j.Stage))
	switch j.State {
	case JournalUndoing:
		where = "undoing " + where
	case JournalStuck:
		where = "stuck at " + where
	case JournalWaiting:
		return fmt.Sprintf("pvrx: %s %s is done and waits for accept or rollback: use reconcile, do not delete unused disks or snapshots", kind, Printable(j.Operation))
	case JournalDoing:
	}
	return fmt.Sprintf("pvrx: %s %s, %s: do not start or destroy this guest", kind, Printable(j.Operation), where)
}

// encodeBlock returns a block without a trailing line end, in the shorter of the two encodings.
func encodeBlock(kind BlockKind, line string, content any) string {
	plain, err := json.Marshal(content)
	if err != nil {
		panic("guest: journals and contracts hold only text and numbers: " + err.Error())
	}
	encoding, payload := encodingJSON, ascii(plain)
	if packed := pack(payload); len(packed) < len(payload) {
		encoding, payload = encodingGzip, packed
	}
	opening := fmt.Sprintf("%spvrx-%s v%d %s %s", fence, kind, blockVersion, encoding, checksum(kind, encoding, payload))
	return line + "\n" + opening + "\n" + payload + "\n" + fence
}

// checksum is over everything in a block that decides what it says. It tells damage, not forgery: who can write notes can
// write a checksum, so a journal is believed only as far as Proxmox itself agrees.
func checksum(kind BlockKind, encoding, payload string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "pvrx-%s v%d %s\n%s", kind, blockVersion, encoding, payload))
	return hex.EncodeToString(sum[:8])
}

// check tells a journal that says nothing usable from one that can be acted on. It is about form, not about truth.
func (j Journal) check() error {
	switch {
	case j.Version != blockVersion:
		return errors.New("its content is of version " + strconv.Itoa(j.Version) + ", not of the version its first line says")
	case !ValidOperationID(j.Operation):
		return fmt.Errorf("its operation %q is not an operation id", clip(j.Operation))
	case !kindPattern.MatchString(j.Kind):
		return fmt.Errorf("its kind %q is not a kind of operation", clip(j.Kind))
	case !validVMID(j.Guest) || !validVMID(j.Holder) || (j.Parking != 0 && !validVMID(j.Parking)):
		return errors.New("it does not say which guest it is about")
	case j.Parking == j.Guest || (j.Holder != j.Guest && j.Holder != j.Parking):
		return errors.New("it mixes up its guest, its parking guest and whose notes it is in")
	}
	switch j.State {
	case JournalDoing, JournalUndoing, JournalStuck, JournalWaiting:
		return nil
	}
	return fmt.Errorf("its state %q is not known", clip(string(j.State)))
}

func (c Contract) check() error {
	switch {
	case c.Version != blockVersion:
		return errors.New("its content is of version " + strconv.Itoa(c.Version) + ", not of the version its first line says")
	case !validVMID(c.Guest):
		return errors.New("it does not say which guest it is about")
	}
	return nil
}

func validVMID(id VMID) bool { return id >= 1 && id <= 999999999 }
