package proxmox

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// request is one call of the API.
type request struct {
	op     string    // what a person reads after "cannot": "destroy CT 5001"
	ref    guest.Ref // the guest it is about; may be zero
	method string    // POST, PUT or DELETE; reads go through ask
	path   string    // below /api2/json, segments escaped
	params map[string]any
	// announced names every deletion the caller knows of: keys of delete=, or for a DELETE the path itself. What is not
	// announced is not sent.
	announced []string
}

// path joins segments into an API path, escaping each.
func path(segments ...string) string {
	var p string
	for _, s := range segments {
		p += "/" + url.PathEscape(s)
	}
	return p
}

// guestPath is the path of a guest, or of something below it.
func guestPath(ref guest.Ref, below ...string) string {
	return path(append([]string{"nodes", ref.Node, ref.Kind.Path(), ref.VMID.String()}, below...)...)
}

// readAgain says how often a read is asked again when no node answered it.
const readAgain = 2

// ask sends a read and decodes its data into out. A read may be sent again: after a lost answer, and once after a new login.
func (h *Host) ask(ctx context.Context, op string, ref guest.Ref, path string, query url.Values, out any) error {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	loggedIn := false
	for try := 0; ; try++ {
		err := h.exchange(ctx, request{op: op, ref: ref, method: http.MethodGet, path: path}, out)
		switch {
		case err == nil:
			return nil
		case err.Status == http.StatusUnauthorized && !loggedIn && h.login.refused():
			loggedIn = true
		case !err.lost || err.slow || ctx.Err() != nil || try >= readAgain:
			return err
		case !sleep(ctx, time.Duration(try+1)*h.pace.PollFirst*4):
			return err
		}
	}
}

// change sends a request that changes something, exactly once, but for locks: a lock's answer proves that nothing was done.
func (h *Host) change(ctx context.Context, r request) error {
	return h.patiently(ctx, r, func() *Error { return h.exchange(ctx, r, nil) })
}

// patiently repeats what ended at a lock until it gets through or patience ends.
func (h *Host) patiently(ctx context.Context, r request, attempt func() *Error) error {
	patience, ok := guest.Patience(ctx)
	if !ok {
		patience = h.pace.Locked
	}
	until := time.Now().Add(patience)
	pause := h.pace.LockFirst
	for first := true; ; first = false {
		err := attempt()
		if err == nil {
			return nil
		}
		if err.Kind != guest.OutcomeLocked || time.Now().Add(pause).After(until) {
			return err
		}
		if first && h.waiting != nil {
			h.waiting(Wait{Op: r.op, Guest: r.ref, Words: err.Words})
		}
		if !sleep(ctx, pause) {
			err.cause = ctx.Err()
			return err
		}
		pause = min(pause*3/2, h.pace.LockMost)
	}
}

// exchange is the lowest of all: it sends one request once, on behalf of everything above it.
func (h *Host) exchange(ctx context.Context, r request, out any) *Error {
	reads := r.method == http.MethodGet
	q := question{op: r.op, ref: r.ref, reads: reads}
	if err := guard(r); err != nil {
		return &Error{Op: r.op, Guest: r.ref, Kind: guest.OutcomeRefused, Words: err.Error()}
	}
	if ctx.Err() != nil {
		return &Error{Op: r.op, Guest: r.ref, Kind: guest.OutcomeUnreachable, Words: "it was cancelled before it was sent", cause: ctx.Err()}
	}
	sendCtx := ctx
	if !reads {
		// A change that is under way is not torn down by a cancellation: its answer is worth more than a second.
		sendCtx = context.WithoutCancel(ctx)
	}
	sendCtx, cancel := context.WithTimeout(sendCtx, h.pace.Request)
	defer cancel()
	var wrote atomic.Bool
	traced := httptrace.WithClientTrace(sendCtx, &httptrace.ClientTrace{WroteHeaders: func() { wrote.Store(true) }})

	var data json.RawMessage
	err := h.send(traced, r, &data)
	if err != nil {
		q.wrote, q.slow = wrote.Load(), sendCtx.Err() != nil
		e := translate(err, q)
		e.Words = hide(e.Words, append(h.login.secrets(), r.secrets()...))
		if e.lost && ctx.Err() != nil {
			e.cause = ctx.Err()
		}
		if e.Status == http.StatusUnauthorized {
			h.login.refused()
		}
		return e
	}
	if out == nil {
		return nil
	}
	if raw, ok := out.(*json.RawMessage); ok {
		*raw = data
		return nil
	}
	if len(data) == 0 || string(data) == "null" {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return unreadable(r, err)
	}
	return nil
}

func (h *Host) send(ctx context.Context, r request, data *json.RawMessage) error {
	var body any // an untyped nil sends no body, where a nil map would send "null"
	if len(r.params) > 0 {
		body = r.params
	}
	switch r.method {
	case http.MethodGet:
		return h.client.Get(ctx, r.path, data)
	case http.MethodPost:
		return h.client.Post(ctx, r.path, body, data)
	case http.MethodPut:
		return h.client.Put(ctx, r.path, body, data)
	case http.MethodDelete:
		query := url.Values{}
		for key, value := range r.params {
			query.Set(key, fmt.Sprint(value))
		}
		path := r.path
		if len(query) > 0 {
			path += "?" + query.Encode()
		}
		return h.client.Delete(ctx, path, data)
	}
	return fmt.Errorf("method %s is not one the port sends", r.method)
}

// unreadable is an answer that arrived and is not what the API promises.
func unreadable(r request, err error) *Error {
	kind := guest.OutcomeUnknown
	if r.method == http.MethodGet {
		kind = guest.OutcomeUnreachable
	}
	return &Error{Op: r.op, Guest: r.ref, Kind: kind, Words: "the answer cannot be read: " + guest.Printable(err.Error())}
}

// secrets returns the values of a request that no message may repeat.
func (r request) secrets() []string {
	var hidden []string
	for _, key := range []string{"password", "cipassword", "env"} {
		if value, ok := r.params[key].(string); ok {
			hidden = append(hidden, secretParts(key, value)...)
		}
	}
	return hidden
}

// text turns parameters into what is sent: everything as text, which Proxmox takes for numbers and booleans too.
func text(params map[string]string) (map[string]any, error) {
	sent := make(map[string]any, len(params)+2)
	for key, value := range params {
		if !utf8.ValidString(value) {
			return nil, fmt.Errorf("the value of %s is not valid UTF-8, so Proxmox would store something else", key)
		}
		sent[key] = value
	}
	return sent, nil
}
