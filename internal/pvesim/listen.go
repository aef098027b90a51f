package pvesim

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// listener is the HTTPS side of a server. It speaks HTTP/1.1 itself, because net/http's server can
// neither send a reason phrase of its own nor close a connection instead of answering.
type listener struct {
	ln      net.Listener
	cert    []byte
	mu      sync.Mutex
	conns   map[net.Conn]bool
	closing bool
	done    sync.WaitGroup
}

// Start listens on 127.0.0.1 with a certificate made for the occasion, on a port of the system's
// choice, and gives the endpoint: https://127.0.0.1:PORT.
func (s *Server) Start() (endpoint string, err error) { return s.StartOn("127.0.0.1:0") }

// StartOn is Start with the address to listen on.
func (s *Server) StartOn(addr string) (endpoint string, err error) {
	cert, der, err := selfSigned()
	if err != nil {
		return "", fmt.Errorf("cannot make a certificate: %w", err)
	}
	ln, err := tls.Listen("tcp", addr, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"http/1.1"}})
	if err != nil {
		return "", fmt.Errorf("cannot listen on %s: %w", addr, err)
	}
	s.tcp = &listener{ln: ln, cert: der, conns: map[net.Conn]bool{}}
	s.tcp.done.Add(1)
	go s.serve(s.tcp)
	return "https://" + ln.Addr().String(), nil
}

// Close stops listening, closes every connection and waits for the requests under way.
func (s *Server) Close() {
	l := s.tcp
	if l == nil {
		return
	}
	l.mu.Lock()
	l.closing = true
	for c := range l.conns {
		c.Close()
	}
	l.mu.Unlock()
	l.ln.Close()
	l.done.Wait()
}

// CertificatePEM is the server's own certificate, which is its own authority too.
func (s *Server) CertificatePEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.tcp.cert})
}

// Fingerprint is the SHA-256 of the certificate on the form Proxmox shows: pairs of hex digits
// with colons.
func (s *Server) Fingerprint() string {
	sum := sha256.Sum256(s.tcp.cert)
	parts := make([]string, len(sum))
	for i, b := range sum {
		parts[i] = fmt.Sprintf("%02X", b)
	}
	return strings.Join(parts, ":")
}

func (s *Server) serve(l *listener) {
	defer l.done.Done()
	for {
		conn, err := l.ln.Accept()
		if err != nil {
			return
		}
		l.mu.Lock()
		if l.closing {
			conn.Close()
			l.mu.Unlock()
			return
		}
		l.conns[conn] = true
		l.done.Add(1)
		l.mu.Unlock()
		go func() {
			defer l.done.Done()
			s.talk(conn)
			conn.Close()
			l.mu.Lock()
			delete(l.conns, conn)
			l.mu.Unlock()
		}()
	}
}

// talk answers the requests of one connection until it ends or an answer is withheld.
func (s *Server) talk(conn net.Conn) {
	br := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(br)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				fmt.Fprintf(conn, "HTTP/1.1 400 bad request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
			}
			return
		}
		if strings.EqualFold(req.Header.Get("Expect"), "100-continue") {
			if _, err := io.WriteString(conn, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
				return
			}
		}
		r, err := s.answer(req, hangup(br))
		if err != nil {
			reset(conn)
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		if err := r.write(conn, req); err != nil {
			return
		}
		if req.Close {
			return
		}
	}
}

// reset makes the client see a connection that broke and not one that was closed in good order.
func reset(conn net.Conn) {
	if t, ok := conn.(*tls.Conn); ok {
		if tcp, ok := t.NetConn().(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
			_ = tcp.Close()
		}
	}
}

// hangup gives a channel that is closed when the client is gone. It reads from the connection to
// notice, so the connection is of no use for another request afterwards.
func hangup(br *bufio.Reader) func() <-chan struct{} {
	return func() <-chan struct{} {
		c := make(chan struct{})
		go func() {
			defer close(c)
			_, _ = br.Peek(1)
		}()
		return c
	}
}

func selfSigned() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	tmpl := x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "pvesim"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA:        true, BasicConstraintsValid: true,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, &tmpl, &tmpl, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, der, nil
}
