package proxmox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	pve "github.com/luthermonson/go-proxmox"
)

// Settings say which cluster to talk to and as whom.
type Settings struct {
	// Endpoints are "https://host:8006" addresses of nodes of one cluster; the first is preferred, the others stand in.
	Endpoints []string
	// APIToken is "user@realm!tokenid=secret". Either it or Username and Password must be given.
	APIToken string
	// Username is "root@pam"; a name without a realm is taken to be of realm pam.
	Username, Password string
	// CACert holds PEM certificates to trust instead of the system's.
	CACert string
	// Fingerprint is the SHA-256 of the server's certificate, hexadecimal, colons allowed. It replaces all other checks.
	Fingerprint string
	// Insecure accepts any certificate.
	Insecure bool
	// UserAgent names the program to the server; "" leaves a default.
	UserAgent string
	// Pace says how patient to be.
	Pace Pace
	// Waiting, when set, is told of waits that a person may wonder about. It must not block.
	Waiting func(Wait)
	// Transport replaces the network: tests answer requests in the same process. TLS settings have no effect on it.
	Transport http.RoundTripper
}

// Connect prepares a Host. It checks the settings but sends nothing: the first request does.
func Connect(_ context.Context, s Settings) (*Host, error) {
	bases, err := baseURLs(s.Endpoints)
	if err != nil {
		return nil, err
	}
	h := &Host{pace: s.Pace.withDefaults(), clock: &clock{}, waiting: s.Waiting, seen: map[string]bool{}, over: map[string]bool{}}
	if h.login, err = newLogin(s); err != nil {
		return nil, err
	}
	base, err := baseTransport(s)
	if err != nil {
		return nil, err
	}
	agent := s.UserAgent
	if agent == "" {
		agent = "pvrx"
	}
	carrier := &http.Client{
		Transport: &watched{base: base, clock: h.clock},
		// A redirect is not an answer of the API, and following one could repeat a request.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	h.direct = direct{carrier: carrier, base: bases[0], agent: agent}
	options := []pve.Option{
		pve.WithHTTPClient(carrier),
		pve.WithUserAgent(agent),
		// The client's logger would print requests with their passwords.
		pve.WithLogger(silent{}),
		pve.WithRequestInterceptor(h.login.sign),
	}
	if len(bases) > 1 {
		options = append(options, pve.WithAdditionalEndpoints(bases[1:]...), pve.WithEndpointFailureThreshold(1))
	}
	h.client = pve.NewClient(bases[0], options...)
	h.login.use(h.client)
	return h, nil
}

// baseURLs turns endpoints as people write them into the API's base addresses.
func baseURLs(endpoints []string) ([]string, error) {
	var bases []string
	for _, text := range endpoints {
		if text == "" {
			continue
		}
		u, err := url.Parse(strings.TrimSpace(text))
		switch {
		case err != nil:
			return nil, errors.New("cannot read endpoint: not a URL such as https://pve1.example.org:8006")
		case u.User != nil:
			return nil, errors.New("cannot use endpoint: it must not carry a user name or password")
		case u.Scheme != "https" && u.Scheme != "http", u.Host == "":
			return nil, fmt.Errorf("cannot use endpoint %q: want a URL such as https://pve1.example.org:8006", text)
		}
		path := strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/api2/json")
		bases = append(bases, u.Scheme+"://"+u.Host+path+"/api2/json")
	}
	if len(bases) == 0 {
		return nil, errors.New("cannot connect: no endpoint is given")
	}
	return bases, nil
}

// newLogin chooses the way to log in.
func newLogin(s Settings) (login, error) {
	switch {
	case s.APIToken != "" && (s.Username != "" || s.Password != ""):
		return nil, errors.New("cannot log in: give either an API token or a user name and password, not both")
	case s.APIToken != "":
		return newTokenLogin(s.APIToken)
	case s.Username != "" && s.Password != "":
		user := s.Username
		if !strings.Contains(user, "@") {
			user += "@pam"
		}
		return &ticketLogin{username: user, password: s.Password, now: time.Now}, nil
	}
	return nil, errors.New("cannot log in: give an API token, or a user name and a password")
}

// silent is a logger that says nothing.
type silent struct{}

func (silent) Debugf(string, ...any) {}
func (silent) Infof(string, ...any)  {}
func (silent) Warnf(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
