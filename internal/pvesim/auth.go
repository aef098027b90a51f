package pvesim

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	rootUser = "root@pam"
	// ticketLife is how long a ticket is good for; Proxmox takes one half of it as a hint to renew.
	ticketLife = 2 * time.Hour
)

// identity is who makes a request.
type identity struct {
	// full is user@realm or user@realm!token; user and token are its parts.
	full, user, token string
}

// isRoot is true for a ticket of root@pam only: Proxmox compares the whole string, so a token of
// root is not root.
func (i identity) isRoot() bool { return i.full == rootUser }

func realmOf(user string) string {
	_, realm, _ := strings.Cut(user, "@")
	return realm
}

// authenticate finds out who asks. Open methods are answered without a login.
func (s *Server) authenticate(k *call, req *http.Request, open bool) error {
	if auth := req.Header.Get("Authorization"); auth != "" {
		if token, ok := strings.CutPrefix(auth, "PVEAPIToken="); ok {
			return k.loginToken(token)
		}
	}
	if open {
		return nil
	}
	var ticket string
	if c, err := req.Cookie("PVEAuthCookie"); err == nil {
		if ticket, err = url.QueryUnescape(c.Value); err != nil {
			ticket = c.Value
		}
		ticket = strings.ReplaceAll(ticket, " ", "+")
	}
	if ticket == "" {
		return unauthorized("No ticket")
	}
	user, ok := s.readTicket(ticket)
	if !ok || !k.c.access.enabled(user) {
		return unauthorized("permission denied - invalid PVE ticket")
	}
	isUpload := req.Method == http.MethodPost && strings.HasSuffix(k.path, "/upload")
	if req.Method != http.MethodGet && !isUpload {
		if req.Header.Get("CSRFPreventionToken") != s.csrf(user) {
			return unauthorized("Permission denied - invalid csrf token")
		}
	}
	k.who = identity{full: user, user: user}
	return nil
}

func (k *call) loginToken(text string) error {
	full, secret, ok := strings.Cut(text, "=")
	if !ok {
		full, secret, ok = strings.Cut(text, ":")
	}
	user, id, hasID := strings.Cut(full, "!")
	if !ok || !hasID {
		return unauthorized("Authentication failed!")
	}
	t := k.c.access.tokens[full]
	if t == nil || !hmac.Equal([]byte(t.secret), []byte(secret)) || !k.c.access.enabled(user) {
		return unauthorized("Authentication failed!")
	}
	if t.expire != 0 && t.expire < k.c.now().Unix() {
		return unauthorized("Authentication failed!")
	}
	k.who = identity{full: full, user: user, token: id}
	return nil
}

func (s *Server) sign(what string) string {
	m := hmac.New(sha256.New, s.secret)
	m.Write([]byte(what))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// ticket is Proxmox's form: a prefix, the user, the time in hex, a signature.
func (s *Server) ticket(user string, now time.Time) string {
	plain := fmt.Sprintf("PVE:%s:%08X", user, now.Unix())
	return plain + "::" + s.sign(plain)
}

func (s *Server) readTicket(ticket string) (user string, ok bool) {
	plain, sig, ok := strings.Cut(ticket, "::")
	parts := strings.Split(plain, ":")
	if !ok || len(parts) != 3 || parts[0] != "PVE" || sig != s.sign(plain) {
		return "", false
	}
	at, err := strconv.ParseInt(parts[2], 16, 64)
	age := s.c.now().Sub(time.Unix(at, 0))
	if err != nil || age > ticketLife || age < -5*time.Minute {
		return "", false
	}
	return parts[1], true
}

func (s *Server) csrf(user string) string { return "pvesim:" + s.sign("csrf "+user) }

func (s *Server) registerAuth() {
	s.route("POST", "/access/ticket", s.login)
	s.route("GET", "/access/ticket", func(*call) (any, error) { return nil, nil })
	s.route("GET", "/version", version)
}

// login checks a password and gives a ticket, or a challenge to a user with a second factor. An
// existing ticket in place of the password is renewed.
func (s *Server) login(k *call) (any, error) {
	name, password := k.str("username"), k.str("password")
	if !strings.Contains(name, "@") {
		realm := k.str("realm")
		if realm == "" {
			realm = "pam"
		}
		name += "@" + realm
	}
	u := k.c.access.users[name]
	failed := unauthorized("authentication failure")
	if u == nil || !u.enabled {
		return nil, failed
	}
	if renewed, ok := s.readTicket(password); ok && renewed == name {
		return s.loggedIn(k, name), nil
	}
	if challenge, ok := k.param("tfa-challenge"); ok {
		kind, code, _ := strings.Cut(password, ":")
		if challenge != s.challenge(name) || kind != "totp" || code != u.totp || u.totp == "" {
			return nil, failed
		}
		return s.loggedIn(k, name), nil
	}
	if u.password == "" || u.password != password {
		return nil, failed
	}
	if u.totp != "" {
		return map[string]any{
			"username": name, "ticket": s.challenge(name), "NeedTFA": 1,
			"CSRFPreventionToken": s.csrf(name), "cap": map[string]any{},
		}, nil
	}
	return s.loggedIn(k, name), nil
}

func (s *Server) challenge(user string) string {
	body, _ := json.Marshal(map[string]any{"totp": true, "recovery": "unavailable"})
	plain := "PVE:!tfa!" + url.QueryEscape(string(body)) + ":" + hex.EncodeToString([]byte(user))
	return plain + "::" + s.sign(plain)
}

func (s *Server) loggedIn(k *call, name string) any {
	return map[string]any{
		"username": name, "ticket": s.ticket(name, k.c.now()), "CSRFPreventionToken": s.csrf(name),
		"cap": map[string]any{"vms": map[string]any{}, "storage": map[string]any{}, "access": map[string]any{}, "nodes": map[string]any{}, "dc": map[string]any{}},
	}
}

func version(k *call) (any, error) {
	release := strings.Join(strings.Split(k.c.opts.Version, ".")[:2], ".")
	return map[string]any{"release": release, "repoid": "5a1e0000", "version": k.c.opts.Version}, nil
}
