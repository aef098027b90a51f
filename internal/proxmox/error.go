package proxmox

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"

	pve "github.com/luthermonson/go-proxmox"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// Error is what became of a request that did not simply succeed. It keeps Proxmox's own words and never holds a secret.
type Error struct {
	Op     string        // what was asked for, as a phrase after "cannot": "destroy CT 5001"
	Guest  guest.Ref     // the guest it was about; zero for none
	UPID   string        // the task, once one had started
	Kind   guest.Outcome // what is known
	Words  string        // Proxmox's own words, or the network's, on one line
	Status int           // HTTP status; 0 when no answer came
	Log    []string      // the last lines of a failed task's log

	lost  bool // no answer that says anything came; the request may be sent again only if it reads
	slow  bool // the port's own time for one request ran out
	cause error
}

// Error returns the whole sentence.
func (e *Error) Error() string {
	text := "cannot " + e.Op
	if e.Words != "" {
		text += ": " + e.Words
	}
	if e.Kind == guest.OutcomeUnknown {
		text += "; whether it was done is not known"
	}
	if e.UPID != "" {
		text += " (task " + e.UPID + ")"
	}
	return text
}

// Outcome returns what is known about the request; guest.OutcomeOf finds it.
func (e *Error) Outcome() guest.Outcome { return e.Kind }

// Unwrap returns the cancellation or certificate problem behind the error, if that is what it was.
func (e *Error) Unwrap() error { return e.cause }

// question is what the judgement of an answer needs to know of the request.
type question struct {
	op    string
	ref   guest.Ref
	reads bool // nothing can have been changed
	wrote bool // bytes of the request may have reached a server
	slow  bool // our own time for the request ran out
}

// translate turns an error of the client into ours.
func translate(err error, q question) *Error {
	if own := (*Error)(nil); errors.As(err, &own) {
		// The login failed; the request itself was never sent.
		return &Error{Op: q.op, Guest: q.ref, Kind: own.Kind, Words: own.Error(), Status: 0, cause: own.cause}
	}
	e := &Error{Op: q.op, Guest: q.ref}
	if answer, ok := pve.AsAPIError(err); ok {
		e.Status = answer.StatusCode
		e.Words = wordsOf(answer)
		e.Kind, e.lost = judge(answer, q)
		if e.lost {
			e.Words = cmp.Or(e.Words, "no usable answer") + " (HTTP status " + statusText(answer.StatusCode) + ")"
		}
		return e
	}
	e.cause = causeOf(err)
	e.lost, e.slow = true, q.slow
	e.Words = connectionWords(err, q)
	switch {
	case !q.wrote, q.reads:
		e.Kind = guest.OutcomeUnreachable
	default:
		e.Kind = guest.OutcomeUnknown
	}
	return e
}

// wordsOf returns Proxmox's sentence with what it says of single parameters.
func wordsOf(answer *pve.APIError) string {
	words := strings.TrimSpace(guest.Printable(answer.Message))
	var details []string
	for _, key := range slices.Sorted(maps.Keys(answer.Errors)) {
		details = append(details, guest.Printable(key)+": "+strings.TrimSpace(guest.Printable(answer.Errors[key])))
	}
	if len(details) > 0 {
		words = strings.TrimSpace(words + " (" + strings.Join(details, "; ") + ")")
	}
	return shorten(words, maxWords)
}

// maxWords bounds what one error repeats of an answer.
const maxWords = 1000

func shorten(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}

func connectionWords(err error, q question) string {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	words := shorten(guest.Printable(err.Error()), maxWords)
	if cert := (*tls.CertificateVerificationError)(nil); errors.As(err, &cert) {
		words += "; give the certificate of its authority, or the fingerprint of its own"
	}
	switch {
	case q.slow:
		words = "no answer came in time"
	case q.wrote:
		words = "no answer came (" + words + ")"
	}
	return words
}

// causeOf returns the part of an error that callers may ask for with errors.Is and errors.As and that holds no request.
func causeOf(err error) error {
	if cert := (*tls.CertificateVerificationError)(nil); errors.As(err, &cert) {
		return cert
	}
	for _, known := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return known
		}
	}
	return nil
}

// hide replaces secrets in words. What is too short to be told from ordinary words is left to the caller not to send.
func hide(words string, secrets []string) string {
	for _, secret := range secrets {
		for _, form := range []string{secret, guest.Printable(secret), url.QueryEscape(secret)} {
			if len(form) >= 4 {
				words = strings.ReplaceAll(words, form, "***")
			}
		}
	}
	return words
}

// secretParts returns what of a value must stay hidden: of environment variables each value by itself.
func secretParts(key, value string) []string {
	parts := []string{value}
	if key != "env" {
		return parts
	}
	for item := range strings.SplitSeq(value, "\x00") {
		if _, secret, ok := strings.Cut(item, "="); ok {
			parts = append(parts, secret)
		}
	}
	return parts
}
