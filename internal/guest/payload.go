package guest

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf16"
)

// payloadLimit bounds what a payload may unpack to: far above what notes of NotesLimit hold in practice.
const payloadLimit = 1 << 20

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

// compressors are used again and again: a new one clears half a megabyte, and a record is written often.
var compressors = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // a few characters longer than the best
	if err != nil {
		panic("guest: the compression level is a constant: " + err.Error())
	}
	return w
}}

func pack(payload string) string {
	var packed bytes.Buffer
	w, ok := compressors.Get().(*gzip.Writer)
	if !ok {
		panic("guest: the pool holds compressors only")
	}
	defer compressors.Put(w)
	w.Reset(&packed)
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
