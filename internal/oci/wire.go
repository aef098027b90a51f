package oci

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// wire carries requests to one registry and to where it sends us. It lies below the login, so that what is repeated here was
// signed once.
type wire struct {
	base     http.RoundTripper
	plain    map[string]bool
	patience Patience
	limits   *limits
}

// transport returns the wire for a registry. The registry's own authority is trusted beside the system's, also where the
// registry redirects to.
func (r *Resolver) transport(registry string) (*wire, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.transports[registry]; w != nil {
		return w, nil
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	for named, pem := range r.settings.CACert {
		if canonicalRegistry(named) != registry {
			continue
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM([]byte(pem)) {
			return nil, &Error{Op: "use the CA certificate of registry " + clip(registry), Problem: ProblemSettings, Words: "no PEM certificate in it"}
		}
		trust.RootCAs = pool
	}
	plain := map[string]bool{}
	for _, host := range r.settings.PlainHTTP {
		plain[canonicalRegistry(host)] = true
	}
	w := &wire{
		base: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSClientConfig:     trust,
			TLSHandshakeTimeout: 15 * time.Second,
			ForceAttemptHTTP2:   true,
			MaxIdleConnsPerHost: jobs,
			IdleConnTimeout:     30 * time.Second,
			// A layer must arrive as it is kept: unpacking it on the way would change its digest.
			DisableCompression: true,
			ReadBufferSize:     64 << 10,
		},
		plain: plain, patience: r.settings.Patience, limits: r.limits,
	}
	r.transports[registry] = w
	return w, nil
}

// tries is how often one request is sent before its failure counts.
const tries = 3

// RoundTrip sends a request, again when it failed on the way or the registry asked for patience that we have.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	host := r.URL.Host
	if plain := w.plain[host]; plain != (r.URL.Scheme == "http") {
		return nil, &tlsError{host: host, plain: plain}
	}
	repeatable := r.Body == nil || r.Body == http.NoBody
	budget := w.patience.RetryAfter
	pause := w.patience.Pause
	for try := 1; ; try++ {
		if wait := w.limits.left(host); wait > budget {
			return nil, &limitedError{host: host, wait: wait}
		} else if wait > 0 {
			budget -= wait
			if !sleep(r.Context(), wait) {
				return nil, r.Context().Err()
			}
		}
		answer, err := w.once(r)
		last := !repeatable || try == tries
		switch {
		case err != nil && (last || !passing(err)):
			return nil, err
		case err == nil && answer.StatusCode == http.StatusTooManyRequests:
			wait, told := retryAfter(answer, time.Now())
			drop(answer)
			if told {
				w.limits.hold(host, wait)
			}
			if last || !told || wait > budget {
				return nil, &limitedError{host: host, wait: wait}
			}
			continue // the limit is waited for at the top
		case err == nil && (last || !troubled(answer.StatusCode)):
			return answer, nil
		case err == nil:
			if wait, told := retryAfter(answer, time.Now()); told {
				if wait > budget {
					return answer, nil
				}
				budget -= wait
				pause = max(pause, wait)
			}
			drop(answer)
		}
		if !sleep(r.Context(), pause) {
			return nil, r.Context().Err()
		}
		pause *= 3
	}
}

// once sends a request once and watches that its answer keeps coming.
func (w *wire) once(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	watch := time.AfterFunc(w.patience.Answer, func() { cancel(errStalled) })
	answer, err := w.base.RoundTrip(r.WithContext(ctx))
	if err != nil {
		watch.Stop()
		if errors.Is(context.Cause(ctx), errStalled) && r.Context().Err() == nil {
			err = errStalled
		}
		cancel(nil)
		return nil, err
	}
	watch.Stop()
	answer.Body = &watchedBody{body: answer.Body, ctx: ctx, cancel: cancel, watch: watch, stall: w.patience.Stall}
	return answer, nil
}

// watchedBody ends a body whose bytes stop coming.
type watchedBody struct {
	body   io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	watch  *time.Timer
	stall  time.Duration
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.watch.Reset(b.stall)
	n, err := b.body.Read(p)
	b.watch.Stop()
	if err != nil && !errors.Is(err, io.EOF) && errors.Is(context.Cause(b.ctx), errStalled) {
		err = errStalled
	}
	return n, err
}

func (b *watchedBody) Close() error {
	b.watch.Stop()
	err := b.body.Close()
	b.cancel(nil)
	return err
}

var errStalled = errors.New("the registry stopped answering")

// tlsError is a request that would leave without TLS where that is not allowed, or with it where it was said not to.
type tlsError struct {
	host  string
	plain bool
}

func (e *tlsError) Error() string {
	if e.plain {
		return fmt.Sprintf("%s is spoken to by plain HTTP", e.host)
	}
	return fmt.Sprintf("plain HTTP to %s is not allowed", e.host)
}

// limitedError is a registry that wants fewer requests.
type limitedError struct {
	host string
	wait time.Duration // what it asked for; 0 when it did not say
}

func (e *limitedError) Error() string { return e.host + " answered 429 Too Many Requests" }

// limits remembers until when hosts want to be left alone.
type limits struct {
	mu    sync.Mutex
	until map[string]time.Time
}

func (l *limits) hold(host string, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until[host] = time.Now().Add(wait)
}

func (l *limits) left(host string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Until(l.until[host])
}

// retryAfter reads for how long an answer asks to be left alone, in seconds or as a date.
func retryAfter(answer *http.Response, now time.Time) (time.Duration, bool) {
	text := strings.TrimSpace(answer.Header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now)), true
	}
	return 0, false
}

// troubled reports whether an answer speaks of the server's trouble and not of the request.
func troubled(status int) bool {
	switch status {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// passing reports whether a failure on the way may be gone a moment later.
func passing(err error) bool {
	for _, known := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.ECONNREFUSED, syscall.EPIPE} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// drop lets go of an answer that nobody reads, so that its connection can serve again.
func drop(answer *http.Response) {
	_, _ = io.CopyN(io.Discard, answer.Body, 64<<10)
	_ = answer.Body.Close()
}

// sleep waits for d and reports false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
