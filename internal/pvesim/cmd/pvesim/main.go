// Command pvesim serves a simulated Proxmox VE cluster over HTTPS until it is told to stop.
//
// It prints what a client needs as lines of name=value on its standard output: endpoint, token,
// root_token, audit_token, username, password, fingerprint and, with -ca, ca. With -registry it serves
// images too, and prints registry, image_1, image_2 and image_3. With -console it prints what programs in
// application containers print, as lines of "console VMID: text".
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim/registry"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pvesim:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdin io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("pvesim", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:0", "address to listen on")
	cluster := flags.String("cluster", "demo", "which cluster to serve: demo or empty")
	latency := flags.Duration("latency", 0, "time added to every request")
	taskTime := flags.Duration("task-duration", 0, "how long every task takes")
	ca := flags.String("ca", "", "file to write the certificate to, as PEM")
	watch := flags.Bool("stdin-watch", false, "stop when standard input is closed")
	ttl := flags.Duration("ttl", time.Hour, "stop by itself after this time")
	dump := flags.Bool("dump", false, "print the whole cluster when stopping")
	images := flags.Bool("registry", false, "serve images of an application in three versions as well, over plain HTTP")
	console := flags.Bool("console", false, "print what programs in application containers print")
	if err := flags.Parse(args); err != nil {
		return err
	}
	out = &lines{to: out}
	opts := pvesim.Options{TaskDuration: *taskTime}
	if *console {
		opts.Console = func(vmid int, line string) { fmt.Fprintf(out, "console %d: %s\n", vmid, line) }
	}
	var demo *pvesim.Demo
	switch *cluster {
	case "demo":
		demo = pvesim.NewDemoWith(opts)
		// a container that is in no pool can only be told from one whose pool is hidden by who sees all pools
		demo.SetRights("pvrx@pve!demo", "/pool", "Pool.Audit")
	case "empty":
		c := pvesim.NewCluster(opts)
		c.AddStorage(pvesim.StorageSpec{ID: "local", Type: "dir", Content: []string{"images", "rootdir", "vztmpl", "backup", "iso", "import", "snippets"}})
		c.SetPassword("root@pam", "demo-password")
		token := c.AddToken("root@pam", "demo", nil)
		demo = &pvesim.Demo{Cluster: c, Token: token, RootToken: token, AuditToken: token, Username: "root@pam", Password: "demo-password"}
	default:
		return fmt.Errorf("unknown cluster %q: demo or empty", *cluster)
	}
	srv := pvesim.NewServer(demo.Cluster)
	srv.Latency = *latency
	endpoint, err := srv.StartOn(*listen)
	if err != nil {
		return err
	}
	defer srv.Close()
	for _, line := range [][2]string{
		{"endpoint", endpoint},
		{"token", demo.Token},
		{"root_token", demo.RootToken},
		{"audit_token", demo.AuditToken},
		{"username", demo.Username},
		{"password", demo.Password},
		{"fingerprint", srv.Fingerprint()},
	} {
		fmt.Fprintf(out, "%s=%s\n", line[0], line[1])
	}
	if *ca != "" {
		if err := os.WriteFile(*ca, srv.CertificatePEM(), 0o600); err != nil {
			return fmt.Errorf("cannot write the certificate: %w", err)
		}
		fmt.Fprintf(out, "ca=%s\n", *ca)
	}
	if *images {
		r, err := serveImages(ctx, out)
		if err != nil {
			return err
		}
		defer r.Close()
	}
	wait(ctx, *ttl, *watch, stdin)
	if *dump {
		fmt.Fprint(out, demo.Dump())
	}
	return nil
}

// lines lets several write to one output, a line at a time.
type lines struct {
	mu sync.Mutex
	to io.Writer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(p)
}

// serveImages starts a registry with the versions of the demo's application, the last of which is broken.
func serveImages(ctx context.Context, out io.Writer) (*registry.Registry, error) {
	r, err := registry.Start(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "registry=%s\n", r.Host())
	for _, version := range []string{"1", "2", "3"} {
		tag := "guestbook:" + version
		if _, err := r.Push(tag, registry.Guestbook(version)); err != nil {
			_ = r.Close()
			return nil, err
		}
		fmt.Fprintf(out, "image_%s=%s/%s\n", version, r.Host(), tag)
	}
	return r, nil
}

// wait returns when the context ends, the time is up, or whoever started the command is gone.
func wait(ctx context.Context, ttl time.Duration, watch bool, stdin io.Reader) {
	ctx, cancel := context.WithTimeout(ctx, ttl)
	defer cancel()
	if watch {
		go func() {
			// an error means that it is closed, too
			_, _ = io.Copy(io.Discard, stdin)
			cancel()
		}()
	}
	<-ctx.Done()
}
