package proxmox

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	pve "github.com/luthermonson/go-proxmox"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// login puts an identity on requests. The client's own credentials are not used: after a 401 or 403 it would log in and send
// the request again, whatever the request does.
type login interface {
	// use hands over the client that a login may need for requests of its own.
	use(*pve.Client)
	// sign adds the identity to a request that is about to leave.
	sign(*http.Request) error
	// user returns whom Proxmox knows us as: "ci@pve!pvrx" or "root@pam".
	user() string
	// refused tells that the server did not accept the identity (401); true: asking again with a new one is worth it.
	refused() bool
	// secrets returns what must never be shown.
	secrets() []string
}

// tokenLogin is an API token.
type tokenLogin struct{ id, secret string }

func newTokenLogin(text string) (login, error) {
	id, secret, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(text), "PVEAPIToken="), "=")
	owner, name, named := strings.Cut(id, "!")
	if !ok || !named || name == "" || secret == "" || !strings.Contains(owner, "@") {
		return nil, errors.New("cannot read API token: want user@realm!tokenid=secret")
	}
	return &tokenLogin{id: id, secret: secret}, nil
}

func (t *tokenLogin) use(*pve.Client) {}

func (t *tokenLogin) sign(r *http.Request) error {
	r.Header.Set("Authorization", "PVEAPIToken="+t.id+"="+t.secret)
	return nil
}

func (t *tokenLogin) user() string      { return t.id }
func (t *tokenLogin) refused() bool     { return false }
func (t *tokenLogin) secrets() []string { return []string{t.secret} }

// ticketLife is how old a ticket may get before it is renewed; Proxmox lets it live for two hours.
const ticketLife = 90 * time.Minute

const ticketPath = "/access/ticket"

// ticketLogin is a user name and a password, and the ticket they buy.
type ticketLogin struct {
	username, password string
	now                func() time.Time
	client             *pve.Client

	mu           sync.Mutex
	ticket, csrf string
	since        time.Time
}

func (t *ticketLogin) use(c *pve.Client) { t.client = c }
func (t *ticketLogin) user() string      { return t.username }

func (t *ticketLogin) secrets() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return []string{t.password, t.ticket, t.csrf}
}

func (t *ticketLogin) refused() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ticket = ""
	return true
}

func (t *ticketLogin) sign(r *http.Request) error {
	if strings.HasSuffix(r.URL.Path, ticketPath) {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.renew(r.Context()); err != nil {
		return err
	}
	r.Header.Set("Cookie", "PVEAuthCookie="+t.ticket)
	if r.Method != http.MethodGet {
		r.Header.Set("CSRFPreventionToken", t.csrf)
	}
	return nil
}

// renew makes sure that there is a ticket that lives long enough. A living ticket buys a new one; else the password does.
func (t *ticketLogin) renew(ctx context.Context) error {
	age := t.now().Sub(t.since)
	if t.ticket != "" && age < ticketLife {
		return nil
	}
	if t.ticket != "" && t.buy(ctx, t.ticket) == nil {
		return nil
	}
	return t.buy(ctx, t.password)
}

func (t *ticketLogin) buy(ctx context.Context, password string) error {
	var answer struct {
		Username string `json:"username"`
		Ticket   string `json:"ticket"`
		CSRF     string `json:"CSRFPreventionToken"`
		NeedTFA  flag   `json:"NeedTFA"`
	}
	op := "log in as " + t.username
	err := t.client.Post(ctx, ticketPath, map[string]string{"username": t.username, "password": password}, &answer)
	switch {
	case err != nil:
		e := translate(err, question{op: op, reads: true})
		e.Words = hide(e.Words, []string{t.password, t.ticket})
		return e
	case bool(answer.NeedTFA) || strings.HasPrefix(answer.Ticket, "PVE:!tfa!"):
		return &Error{Op: op, Kind: guest.OutcomeDenied, Words: "Proxmox asks for a second factor, which cannot be given here; use an API token, or a user without one"}
	case answer.Ticket == "" || answer.CSRF == "":
		return &Error{Op: op, Kind: guest.OutcomeUnreachable, Words: "the answer holds no ticket"}
	}
	t.ticket, t.csrf, t.since = answer.Ticket, answer.CSRF, t.now()
	return nil
}
