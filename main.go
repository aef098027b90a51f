// The program terraform-provider-pvrx serves the provider to Terraform and OpenTofu.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/pvrx/terraform-provider-pvrx/internal/provider"
)

// version is set by the linker.
var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "serve for a debugger: print how the CLI attaches, and stay")
	flag.Parse()

	// When the CLI is killed, its end of our standard error goes with it, and the next log line would kill us in the middle
	// of an operation.
	signal.Ignore(syscall.SIGPIPE)

	pvrx := provider.New(version)
	if !*debug {
		go pvrx.ExitWithParent(time.Second, os.Exit)
	}
	err := providerserver.Serve(context.Background(), pvrx.Factory(), providerserver.ServeOpts{
		Address: provider.Address, ProtocolVersion: 6, Debug: *debug,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
