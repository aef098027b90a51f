package provider

import (
	"os"
	"time"
)

// ExitWithParent ends the process when the CLI that started it is gone and no operation is at work. A killed CLI leaves its
// provider behind, which may be past a point of no return: it finishes that, and then nobody would ever stop it.
func (p *Provider) ExitWithParent(every time.Duration, exit func(code int)) {
	parent := os.Getppid()
	for range time.Tick(every) {
		if os.Getppid() != parent && p.Operations() == 0 {
			exit(0)
			return
		}
	}
}
