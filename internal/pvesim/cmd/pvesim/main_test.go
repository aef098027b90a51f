package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestServesUntilItsInputCloses(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.pem")
	stdin, hold := io.Pipe()
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- run(t.Context(), []string{"-cluster", "demo", "-ca", ca, "-registry", "-console", "-stdin-watch", "-ttl", "1m"}, stdin, in)
	}()
	told := map[string]string{}
	lines := bufio.NewScanner(out)
	for told["image_3"] == "" && lines.Scan() {
		k, v, _ := strings.Cut(lines.Text(), "=")
		told[k] = v
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, told["endpoint"]+"/api2/json/version", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"token", "root_token", "audit_token"} {
		req.Header.Set("Authorization", "PVEAPIToken="+told[name])
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", name, resp.Status)
		}
	}
	asked, err := http.NewRequestWithContext(t.Context(), http.MethodHead, "http://"+told["registry"]+"/v2/guestbook/manifests/2", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(asked)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK || told["image_2"] != told["registry"]+"/guestbook:2" {
		t.Errorf("image %s: %s", told["image_2"], resp.Status)
	}
	client.CloseIdleConnections()
	hold.Close()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it goes on although its input is closed")
	}
}

func TestStopsByItself(t *testing.T) {
	if err := run(context.Background(), []string{"-cluster", "empty", "-ttl", "1ms"}, strings.NewReader(""), io.Discard); err != nil {
		t.Error(err)
	}
}

func TestRefusesAnUnknownCluster(t *testing.T) {
	if err := run(t.Context(), []string{"-cluster", "nosuch"}, strings.NewReader(""), io.Discard); err == nil {
		t.Error("no error")
	}
}
