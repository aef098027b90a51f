package proxmox

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

const testPassword = "correct horse battery"

func ticketAnswer(ticket string) answer {
	return data(`{"username":"root@pam","ticket":"` + ticket + `","CSRFPreventionToken":"CSRF-` + ticket + `"}`)
}

// ticketHost returns a host that logs in by password, and a way to let time pass.
func ticketHost(t *testing.T, respond func(sent) answer) (*Host, *script, func(time.Duration)) {
	t.Helper()
	s := &script{respond: respond}
	h := hostOver(t, s, func(s *Settings) { s.APIToken, s.Username, s.Password = "", "root", testPassword })
	now := time.Now()
	h.login.(*ticketLogin).now = func() time.Time { return now }
	return h, s, func(d time.Duration) { now = now.Add(d) }
}

func TestTokenIsSentAndNothingElse(t *testing.T) {
	h, s := scripted(t, func(sent) answer { return data("null") })
	wantNoError(t, h.SetConfig(context.Background(), ct, map[string]string{"cores": "1"}, nil, ""))
	r := s.all()[0]
	if r.Header.Get("Authorization") != "PVEAPIToken="+testToken || r.Header.Get("Cookie") != "" {
		t.Fatalf("%v", r.Header)
	}
}

func TestTicketIsBoughtOnceAndRenewedBeforeItDies(t *testing.T) {
	bought := 0
	h, s, pass := ticketHost(t, func(r sent) answer {
		if r.Path != ticketPath {
			return data("null")
		}
		bought++
		if r.Header.Get("Cookie") != "" || r.Params["username"] != "root@pam" {
			t.Errorf("login sent %v as %v", r.Header, r.Params["username"])
		}
		want := testPassword
		if bought == 2 {
			want = "PVE:T1"
		}
		if r.Params["password"] != want {
			t.Errorf("login %d does not use what it should", bought)
		}
		return ticketAnswer("PVE:T" + string(rune('0'+bought)))
	})
	change := func() sent {
		t.Helper()
		wantNoError(t, h.SetConfig(context.Background(), ct, map[string]string{"cores": "1"}, nil, ""))
		all := s.all()
		return all[len(all)-1]
	}
	change()
	pass(time.Hour)
	if r := change(); r.Header.Get("Cookie") != "PVEAuthCookie=PVE:T1" || r.Header.Get("CSRFPreventionToken") != "CSRF-PVE:T1" {
		t.Fatalf("%v", r.Header)
	}
	pass(50 * time.Minute)
	if r := change(); r.Header.Get("Cookie") != "PVEAuthCookie=PVE:T2" || bought != 2 {
		t.Fatalf("bought %d: %v", bought, r.Header)
	}
	login, err := h.Login(context.Background())
	_ = err // the scripted answer holds no version; who we are does not depend on it
	if login.Version != "" {
		t.Fatalf("%+v", login)
	}
}

func TestSecondFactorIsAnErrorThatSaysSo(t *testing.T) {
	for _, challenge := range []string{
		`{"username":"root@pam","ticket":"PVE:!tfa!%7B%7D:x","CSRFPreventionToken":"c","NeedTFA":1}`,
		`{"username":"root@pam","ticket":"PVE:!tfa!%7B%7D:x","CSRFPreventionToken":"c"}`,
	} {
		h, s, _ := ticketHost(t, func(sent) answer { return data(challenge) })
		_, err := h.Config(context.Background(), ct)
		wantOutcome(t, err, guest.OutcomeDenied)
		if !strings.Contains(err.Error(), "second factor") {
			t.Errorf("%v", err)
		}
		for _, r := range s.all() {
			if r.Path != ticketPath {
				t.Errorf("%s was sent without a login", r)
			}
		}
	}
}

func TestWrongPassword(t *testing.T) {
	h, _, _ := ticketHost(t, func(sent) answer { return answer{status: "401 authentication failure", body: `{"data":null}`} })
	_, err := h.Config(context.Background(), ct)
	wantOutcome(t, err, guest.OutcomeDenied)
	if !strings.Contains(err.Error(), "log in as root@pam") || !strings.Contains(err.Error(), "authentication failure") {
		t.Errorf("%v", err)
	}
}

// A change that was answered with 401 or 403 may not be sent again, whatever a new login would bring. A read may.
func TestNoChangeIsRepeatedAfterALogin(t *testing.T) {
	for _, status := range []string{"401 permission denied - invalid PVE ticket", "403 Permission check failed"} {
		refusals := 1
		h, s, _ := ticketHost(t, func(r sent) answer {
			switch {
			case r.Path == ticketPath:
				return ticketAnswer("PVE:T")
			case refusals > 0:
				refusals--
				return answer{status: status}
			}
			return data(`{"digest":"d"}`)
		})
		wantOutcome(t, h.SetConfig(context.Background(), ct, map[string]string{"cores": "1"}, nil, ""), guest.OutcomeDenied)
		if s.count(http.MethodPut) != 1 {
			t.Fatalf("%s: the change was sent %d times", status, s.count(http.MethodPut))
		}
		refusals = 1
		_, err := h.Config(context.Background(), ct)
		if repeated := strings.HasPrefix(status, "401"); repeated != (err == nil) {
			t.Errorf("%s: %v", status, err)
		}
	}
}

func TestSettingsAreChecked(t *testing.T) {
	good := Settings{Endpoints: []string{"https://pve1:8006/"}, APIToken: testToken}
	for name, spoil := range map[string]func(*Settings){
		"no endpoint":          func(s *Settings) { s.Endpoints = nil },
		"no scheme":            func(s *Settings) { s.Endpoints = []string{"pve1:8006"} },
		"secret in endpoint":   func(s *Settings) { s.Endpoints = []string{"https://u:topsecret@pve1:8006"} },
		"no login":             func(s *Settings) { s.APIToken = "" },
		"two logins":           func(s *Settings) { s.Username, s.Password = "root@pam", testPassword },
		"token without secret": func(s *Settings) { s.APIToken = "ci@pve!pvrx" },
		"token without realm":  func(s *Settings) { s.APIToken = "ci!pvrx=topsecret" },
		"token without name":   func(s *Settings) { s.APIToken = "ci@pve=topsecret" },
		"bad certificate":      func(s *Settings) { s.CACert = "not PEM" },
		"short fingerprint":    func(s *Settings) { s.Fingerprint = "AA:BB" },
		"odd fingerprint":      func(s *Settings) { s.Fingerprint = strings.Repeat("ZZ:", 31) + "ZZ" },
	} {
		s := good
		spoil(&s)
		_, err := Connect(context.Background(), s)
		if err == nil {
			t.Errorf("%s is accepted", name)
		} else if strings.Contains(err.Error(), "topsecret") {
			t.Errorf("%s: the error shows a secret: %v", name, err)
		}
	}
	bases, err := baseURLs([]string{"https://pve1:8006/", "", "https://pve2:8006/api2/json/", "https://proxy.test/pve"})
	wantNoError(t, err)
	if got := strings.Join(bases, " "); got != "https://pve1:8006/api2/json https://pve2:8006/api2/json https://proxy.test/pve/api2/json" {
		t.Error(got)
	}
}

// No secret is in an error, whatever Proxmox or the network repeats of a request; and the client prints nothing.
func TestSecretsStayOutOfErrors(t *testing.T) {
	const rootPassword, variable = "Sup3r-Geheim", "db-pa55word"
	secret := strings.SplitN(testToken, "=", 2)[1]
	echo := func(r sent) answer {
		var all []string
		for _, value := range r.Params {
			all = append(all, strings.ReplaceAll(value.(string), "\x00", " "))
		}
		all = append(all, r.Header.Get("Authorization"), r.Header.Get("Cookie"), r.Header.Get("CSRFPreventionToken"))
		return died("cannot use: " + strings.Join(all, " "))
	}
	params := map[string]string{"ostemplate": "local:vztmpl/x.tar.zst", "password": rootPassword}
	env := map[string]string{"env": "DB=" + variable + "\x00MODE=test"}

	output := captureOutput(t, func() {
		h, _ := scripted(t, echo)
		_, err := h.CreateContainer(context.Background(), ct, params)
		mustHide(t, err, rootPassword, secret)
		mustHide(t, h.SetConfig(context.Background(), ct, env, nil, ""), variable, secret)

		upid := strings.ReplaceAll(startUPID, "vzstart", "vzcreate")
		serve := taskServer(upid, func(int) answer { return stopped("chpasswd said " + rootPassword) }, `[{"n":1,"t":"set password `+rootPassword+`"}]`)
		h, _ = scripted(t, serve)
		_, err = h.CreateContainer(context.Background(), ct, params)
		mustHide(t, err, rootPassword)
		var e *Error
		if !errors.As(err, &e) || len(e.Log) == 0 {
			t.Fatalf("no log: %v", err)
		}
		for _, line := range e.Log {
			if strings.Contains(line, rootPassword) {
				t.Errorf("the log shows it: %q", line)
			}
		}

		byTicket, _, _ := ticketHost(t, func(r sent) answer {
			if r.Path == ticketPath {
				return ticketAnswer("PVE:T1CKET")
			}
			return echo(r)
		})
		mustHide(t, byTicket.SetConfig(context.Background(), ct, env, nil, ""), "PVE:T1CKET", testPassword)
		refusing, _, _ := ticketHost(t, echo)
		_, err = refusing.Config(context.Background(), ct)
		mustHide(t, err, testPassword)
	})
	if output != "" {
		t.Errorf("something was printed: %q", output)
	}
}

func mustHide(t *testing.T, err error, secrets ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for ; err != nil; err = unwrap(err) {
		for _, s := range secrets {
			if strings.Contains(err.Error(), s) {
				t.Errorf("%q shows %q", err, s)
			}
		}
	}
}

func unwrap(err error) error {
	if u, ok := err.(interface{ Unwrap() error }); ok {
		return u.Unwrap()
	}
	return nil
}

// captureOutput returns what is written to standard output and error meanwhile.
func captureOutput(t *testing.T, do func()) string {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "out")
	wantNoError(t, err)
	out, errOut := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = file, file
	defer func() { os.Stdout, os.Stderr = out, errOut }()
	do()
	text, err := os.ReadFile(file.Name())
	wantNoError(t, err)
	return string(text)
}
