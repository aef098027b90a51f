package proxmox

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"
)

// baseTransport returns what carries requests, with the TLS settings applied.
func baseTransport(s Settings) (http.RoundTripper, error) {
	config, err := tlsConfig(s)
	if err != nil {
		return nil, err
	}
	if s.Transport != nil {
		return s.Transport, nil
	}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 8,
		// The server closes idle connections after a few seconds. A change sent into that moment would look lost.
		IdleConnTimeout: 2 * time.Second,
	}, nil
}

func tlsConfig(s Settings) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.CACert != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(s.CACert)) {
			return nil, errors.New("cannot read CA certificate: no PEM certificate in it")
		}
	}
	if s.Insecure {
		config.InsecureSkipVerify = true
	}
	if s.Fingerprint != "" {
		want, err := parseFingerprint(s.Fingerprint)
		if err != nil {
			return nil, err
		}
		// The pin takes the place of the chain check; it is compared on every connection, resumed ones included.
		config.InsecureSkipVerify = true
		config.VerifyConnection = func(state tls.ConnectionState) error { return checkPin(state, want) }
	}
	return config, nil
}

func parseFingerprint(text string) ([]byte, error) {
	raw, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(text), ":", ""))
	if err != nil || len(raw) != sha256.Size {
		return nil, errors.New("cannot read fingerprint: want the SHA-256 of the certificate, 32 bytes in hexadecimal")
	}
	return raw, nil
}

func checkPin(state tls.ConnectionState, want []byte) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("the server shows no certificate")
	}
	got := sha256.Sum256(state.PeerCertificates[0].Raw)
	if string(got[:]) != string(want) {
		return fmt.Errorf("the server's certificate has the fingerprint %s, not the one given", colons(got[:]))
	}
	return nil
}

func colons(raw []byte) string {
	parts := make([]string, len(raw))
	for i, b := range raw {
		parts[i] = fmt.Sprintf("%02X", b)
	}
	return strings.Join(parts, ":")
}

// watched passes requests on, notes the server's clock, and tells about requests that leave by a way that does not itself
// tell: whoever judges a failure must never take a request that may have been delivered for one that was not.
type watched struct {
	base  http.RoundTripper
	clock *clock
}

func (w *watched) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, network := w.base.(*http.Transport); !network {
		if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.WroteHeaders != nil {
			trace.WroteHeaders()
		}
	}
	sent := time.Now()
	answer, err := w.base.RoundTrip(r)
	if err == nil {
		w.clock.observe(answer.Header.Get("Date"), sent, time.Now())
	}
	return answer, err
}

// clock is the server's clock as far as its answers told: nodes and the machine that runs the provider may disagree.
type clock struct{ ahead atomic.Int64 } // nanoseconds that the server is ahead of us

func (c *clock) observe(date string, sent, received time.Time) {
	there, err := http.ParseTime(date)
	if err != nil {
		return
	}
	// The header has whole seconds. A difference that the exchange itself explains is none.
	switch {
	case there.Add(time.Second).Before(sent):
		c.ahead.Store(int64(there.Sub(sent)))
	case there.After(received):
		c.ahead.Store(int64(there.Sub(received)))
	default:
		c.ahead.Store(0)
	}
}

// there converts seconds since 1970 of our clock to the server's, rounded down.
func (c *clock) there(ours int64) int64 {
	ahead := time.Duration(c.ahead.Load())
	return ours + int64(ahead.Truncate(time.Second)/time.Second) - 1
}
