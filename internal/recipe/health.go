package recipe

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// text is the probe as the record keeps it, "" for none.
func (h *Health) text() string {
	if h == nil {
		return ""
	}
	data, err := json.Marshal(h)
	if err != nil {
		return ""
	}
	return string(data)
}

// probe is the probe to ask: the configuration's, else the record's.
func (o *operation) probe() (*Health, error) {
	if o.req.Health != nil {
		return o.req.Health, nil
	}
	if o.j.Health == "" {
		return nil, nil
	}
	h := new(Health)
	if err := json.Unmarshal([]byte(o.j.Health), h); err != nil {
		return nil, fmt.Errorf("cannot read the health check in the record: %w", err)
	}
	return h, nil
}

// healthy asks the probe until it succeeds or its time ends. Health is what the probe says, never "running".
func (o *operation) healthy(ctx context.Context) error {
	h, err := o.probe()
	if err != nil {
		return err
	}
	if h == nil {
		return o.seenRunning(ctx)
	}
	if err := o.runningFor(ctx, h.RunningFor); err != nil {
		return err
	}
	limit := h.Timeout
	if limit <= 0 {
		limit = 2 * time.Minute
	}
	deadline := o.c.now().Add(limit)
	for tries := 0; ; tries++ {
		err := o.askProbe(ctx, *h)
		if err == nil {
			return nil
		}
		if len(o.j.HA) == 0 { // HA would start it again, nobody else does
			if stopped := o.seenRunning(ctx); errors.Is(stopped, errNotRunning) {
				return fmt.Errorf("not healthy: %w", stopped)
			}
		}
		if o.c.now().After(deadline) || tries > 10000 {
			return fmt.Errorf("not healthy within %s: %w", limit, err)
		}
		if slept := o.c.sleep(ctx, min(2*time.Second, waitFor(tries))); slept != nil {
			return errors.Join(err, slept)
		}
	}
}

// seenRunning is the health of a guest that nobody gave a probe for.
func (o *operation) seenRunning(ctx context.Context) error {
	running, _, err := o.host.Running(ctx, o.subject())
	if err == nil && !running {
		err = fmt.Errorf("%s %d %w", o.subject().Kind, o.subject().VMID, errNotRunning)
	}
	return err
}

var errNotRunning = errors.New("was started and does not run")

// runningFor watches the guest for a while: one that stops in that time is not healthy.
func (o *operation) runningFor(ctx context.Context, d time.Duration) error {
	until := o.c.now().Add(d)
	for d > 0 && o.c.now().Before(until) {
		if err := o.seenRunning(ctx); err != nil {
			return fmt.Errorf("not running for %s: %w", d, err)
		}
		if err := o.c.sleep(ctx, min(d, 5*time.Second)); err != nil {
			return err
		}
	}
	return o.seenRunning(ctx)
}

func (o *operation) askProbe(ctx context.Context, h Health) error {
	if h.Agent {
		if err := o.host.PingAgent(ctx, o.subject()); err != nil {
			return err
		}
		if h.TCP == 0 && h.SSH == 0 && h.HTTP == nil {
			return nil
		}
	}
	if h.TCP == 0 && h.SSH == 0 && h.HTTP == nil {
		return o.seenRunning(ctx)
	}
	host := h.Host
	if host == "" {
		var err error
		if host, err = o.address(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if h.TCP > 0 {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(h.TCP)))
		if err != nil {
			return err
		}
		return conn.Close()
	}
	if h.SSH > 0 {
		return askSSH(ctx, host, h.SSH)
	}
	if h.HTTP == nil {
		return nil
	}
	return askHTTP(ctx, host, *h.HTTP)
}

// askSSH waits for the line with which every SSH server begins.
func askSSH(ctx context.Context, host string, port int) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetReadDeadline(deadline); err != nil {
			return err
		}
	}
	line := make([]byte, 4)
	if _, err := io.ReadFull(conn, line); err != nil {
		return fmt.Errorf("%s:%d says no SSH banner: %w", host, port, err)
	}
	if string(line) != "SSH-" {
		return fmt.Errorf("%s:%d is no SSH server", host, port)
	}
	return nil
}

func askHTTP(ctx context.Context, host string, p HTTPProbe) error {
	scheme := "http"
	if p.TLS {
		scheme = "https"
	}
	url := scheme + "://" + net.JoinHostPort(host, strconv.Itoa(p.Port)) + "/" + strings.TrimPrefix(p.Path, "/")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	// A fresh guest has a certificate that nobody could know yet; the probe asks whether it answers, not who it is.
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}, //nolint:gosec // see above
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	_ = res.Body.Close()
	switch {
	case p.Status == 0 && res.StatusCode >= 200 && res.StatusCode < 400, p.Status == res.StatusCode:
		return nil
	}
	return fmt.Errorf("%s answers %s", url, res.Status)
}

// address is the guest's own address: what its interfaces say while it runs, else a static one from its configuration.
func (o *operation) address(ctx context.Context) (string, error) {
	addresses, err := o.host.Addresses(ctx, o.subject())
	if err == nil {
		networks, _ := guest.Config{Values: o.aim()}.Networks()
		for _, n := range networks {
			for mac, all := range addresses {
				if !strings.EqualFold(mac, n.MAC()) {
					continue
				}
				for _, a := range all {
					if ip := net.ParseIP(strings.Split(a, "/")[0]); ip != nil && !ip.IsLinkLocalUnicast() {
						return ip.String(), nil
					}
				}
			}
		}
	}
	networks, _ := guest.Config{Values: o.aim()}.Networks()
	for _, n := range networks {
		if ip, _, err := net.ParseCIDR(n.Options["ip"]); err == nil {
			return ip.String(), nil
		}
	}
	for _, key := range (guest.Config{Values: o.j.Config}).Keys() {
		if name, _, indexed := guest.SplitKey(key); !indexed || name != "ipconfig" {
			continue
		}
		for part := range strings.SplitSeq(o.j.Config[key], ",") {
			if ip, _, err := net.ParseCIDR(strings.TrimPrefix(part, "ip=")); err == nil {
				return ip.String(), nil // what cloud-init is told
			}
		}
	}
	return "", errors.Join(fmt.Errorf("%s %d has no address to probe yet; the probe's argument address would name one", o.guest.Kind, o.subject().VMID), err)
}
