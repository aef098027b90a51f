package oci

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// translate turns any failure into an Error about op.
func (r *Resolver) translate(ctx context.Context, op string, ref Reference, err error) error {
	if err == nil {
		return nil
	}
	if own := (*Error)(nil); errors.As(err, &own) {
		copied := *own
		if copied.Op == "" {
			copied.Op = op
		}
		return &copied
	}
	if ctx.Err() != nil {
		return cancelled(ctx, op)
	}
	e := &Error{Op: op}
	limited, damaged, disk, unsafe, refused := (*limitedError)(nil), (*damagedError)(nil), (*diskError)(nil), (*tlsError)(nil), (*transport.Error)(nil)
	cert := (*tls.CertificateVerificationError)(nil)
	switch {
	case errors.As(err, &disk):
		e.Problem, e.Words, e.Remedy = ProblemDisk, disk.Error(), "set TMPDIR to a folder with room for the whole image"
	case errors.As(err, &damaged):
		e.Problem, e.Words, e.Remedy = ProblemDamaged, damaged.Error(), "the registry, or a proxy before it, delivers something else than it promises"
	case errors.As(err, &limited):
		e.Problem, e.Status, e.Words = ProblemLimited, http.StatusTooManyRequests, clip(limited.Error())
		e.Remedy = "wait a while, or log in: registries allow more to those they know"
		if limited.wait > 0 {
			e.Words += fmt.Sprintf(" and wants to be left alone for %s", limited.wait.Round(1e9))
		}
	case errors.As(err, &refused):
		r.translateRefusal(e, ref, refused)
	case errors.As(err, &cert):
		e.Problem, e.Words, e.Remedy = ProblemUnreachable, r.said(cert), "give the CA certificate of registry "+ref.Registry
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		e.Problem, e.Words = ProblemUnreachable, "registry "+ref.Registry+" speaks no TLS"
		e.Remedy = "if that is right, name it among the registries of plain HTTP"
	case errors.As(err, &unsafe) && !unsafe.plain:
		e.Problem, e.Words = ProblemUnreachable, r.said(err)
		e.Remedy = "if " + clip(unsafe.host) + " really speaks no TLS, name it among the registries of plain HTTP"
	case errors.Is(err, errStalled):
		e.Problem, e.Words, e.Remedy = ProblemUnreachable, "registry "+ref.Registry+" stopped answering", "try again later"
	default:
		e.Problem, e.Words = ProblemUnreachable, "registry "+ref.Registry+" cannot be used: "+r.said(err)
	}
	return e
}

// translateRefusal says what a registry's answer other than success means.
func (r *Resolver) translateRefusal(e *Error, ref Reference, refused *transport.Error) {
	e.Status = refused.StatusCode
	words := "registry " + ref.Registry + " answered " + strings.TrimSpace(fmt.Sprintf("%d %s", refused.StatusCode, http.StatusText(refused.StatusCode)))
	var said []string
	for _, d := range refused.Errors {
		said = append(said, strings.TrimSuffix(string(d.Code)+": "+d.Message, ": "))
	}
	if len(said) > 0 {
		words += " (" + r.keys.hide(shorten(strings.Join(said, "; "), 300)) + ")"
	}
	e.Words = words
	switch refused.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		e.Problem = ProblemDenied
		e.Remedy = "check the name, and give credentials for " + ref.Registry + " that may pull from it"
	case http.StatusNotFound:
		e.Problem = ProblemMissing
		e.Remedy = "check repository, tag and digest"
	case http.StatusTooManyRequests:
		e.Problem = ProblemLimited
		e.Remedy = "wait a while, or log in: registries allow more to those they know"
	default:
		e.Problem = ProblemUnreachable
		e.Remedy = "try again later"
	}
}

// said returns an error's words without the address that was asked for: redirects carry signatures in theirs.
func (r *Resolver) said(err error) string {
	var failed *url.Error
	text := err.Error()
	if errors.As(err, &failed) {
		text = strings.ReplaceAll(text, failed.URL, hostOf(failed))
	}
	return r.keys.hide(shorten(text, 300))
}

func cancelled(ctx context.Context, op string) *Error {
	return &Error{Op: op, Problem: ProblemCancelled, Words: "it was given up", cause: context.Cause(ctx)}
}
