package guest

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
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
	// payloadLimit bounds what a payload may unpack to: far above what notes of NotesLimit hold in practice.
	payloadLimit = 1 << 20
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

// ascii writes JSON without a character that an editor, a browser or a terminal could change or hide.
func ascii(plain []byte) string {
	var out strings.Builder
	for _, r := range string(plain) {
		switch {
		case r >= 0x20 && r < 0x7f:
			out.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}

func pack(payload string) string {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		panic("guest: the compression level is a constant: " + err.Error())
	}
	// A bytes.Buffer takes every write, so neither call can fail.
	_, _ = w.Write([]byte(payload))
	_ = w.Close()
	return base64.StdEncoding.EncodeToString(packed.Bytes())
}

func unpack(payload string) ([]byte, error) {
	packed, err := base64.StdEncoding.Strict().DecodeString(payload)
	if err != nil {
		return nil, errors.New("its payload is not base64")
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, errors.New("its payload is not compressed as it says")
	}
	plain, err := io.ReadAll(io.LimitReader(r, payloadLimit+1))
	if err != nil || len(plain) > payloadLimit {
		return nil, errors.New("its payload cannot be unpacked")
	}
	return plain, nil
}

// errNewer marks content that only a newer pvrx can have written.
var errNewer = errors.New("it holds fields that this pvrx does not know, so a newer one wrote it; use that one")

// decodePayload reads a payload into a *Journal or a *Contract. A field that this version does not know makes it unusable:
// to drop it at the next write would lose what a newer pvrx relies on.
func decodePayload(kind BlockKind, encoding, sum, payload string, into any) error {
	if checksum(kind, encoding, payload) != sum {
		return errors.New("its checksum does not match its content")
	}
	plain := []byte(payload)
	switch encoding {
	case encodingJSON:
	case encodingGzip:
		var err error
		if plain, err = unpack(payload); err != nil {
			return err
		}
	default:
		return fmt.Errorf("its encoding %q is not known", clip(encoding))
	}
	decoder := json.NewDecoder(bytes.NewReader(plain))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		if strings.Contains(err.Error(), "unknown field") {
			return errNewer
		}
		return errors.New("its content is not what a " + kind.String() + " holds")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("its content goes on after its end")
	}
	return nil
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
	}
	switch j.State {
	case JournalDoing, JournalUndoing, JournalStuck:
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
