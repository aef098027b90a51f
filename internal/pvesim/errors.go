package pvesim

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// apiError is an answer that is not a success: the status line's code and text, and the parameter
// errors that Proxmox puts beside them.
type apiError struct {
	status int
	// text is the whole message. Proxmox cuts the status line at its first line end.
	text string
	// fields maps a parameter to what is wrong with it.
	fields map[string]string
	// bare answers have no body at all, as failed authentication has.
	bare bool
	// exact texts are put into the body as they are; all others end in a line end there.
	exact bool
}

func (e *apiError) Error() string { return strings.TrimRight(e.text, "\n") }

// die is Perl's: a plain error of a handler, which Proxmox answers with 500.
func die(format string, args ...any) error {
	return &apiError{status: http.StatusInternalServerError, text: fmt.Sprintf(format, args...)}
}

// paramError is 400 with one refused parameter.
func paramError(param, text string) error {
	return paramErrors(map[string]string{param: text})
}

// paramErrors is 400 with every refused parameter.
func paramErrors(fields map[string]string) error {
	return &apiError{status: http.StatusBadRequest, text: "Parameter verification failed.", fields: fields}
}

// forbidden is 403 with what was missing in parentheses, or without them when why is empty.
func forbidden(why string) error {
	text := "Permission check failed"
	if why != "" {
		text += " (" + why + ")"
	}
	return &apiError{status: http.StatusForbidden, text: text}
}

func forbiddenf(format string, args ...any) error { return forbidden(fmt.Sprintf(format, args...)) }

// unauthorized is 401; Proxmox sends no body with it.
func unauthorized(text string) error {
	return &apiError{status: http.StatusUnauthorized, text: text, bare: true}
}

func notImplemented(method, path string) error {
	return &apiError{status: http.StatusNotImplemented, text: fmt.Sprintf("Method '%s %s' not implemented", method, path), exact: true}
}

// asAPIError gives any error the shape of an answer: what a handler did not type is a plain die.
func asAPIError(err error) *apiError {
	var e *apiError
	if errors.As(err, &e) {
		return e
	}
	return &apiError{status: http.StatusInternalServerError, text: err.Error()}
}
