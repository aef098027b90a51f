package provider

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
)

// death is a way in which the processes of an apply end too early.
type death uint8

const (
	interrupted      death = iota + 1 // Ctrl-C: the CLI waits for the provider
	interruptedTwice                  // Ctrl-C twice: the CLI kills the provider and goes
	providerKilled
	cliKilled // the provider is on its own
)

func (d death) String() string {
	switch d {
	case interrupted:
		return "interrupted"
	case interruptedTwice:
		return "interrupted twice"
	case providerKilled:
		return "provider killed"
	case cliKilled:
		return "CLI killed"
	}
	return "invalid"
}

// goesOn reports whether the provider lives and can finish or take back by itself.
func (d death) goesOn() bool { return d == interrupted || d == cliKilled }

// cut is a change of an uninterrupted run, at which processes can die.
type cut struct {
	stage  string
	change int  // its number in the run
	record bool // the stage is only recorded; else it is the stage's first effect
}

func (m cut) String() string {
	if m.record {
		return "record of " + m.stage
	}
	return m.stage
}

// lives is a reinstall of the demo container: the cuts at which it can be cut short, and the worlds it may end in.
type lives struct {
	cuts        []cut
	crossing    int // the number of the change that crosses the point of no return
	old, wished string
}

// worldly is what two ways to the same end have in common, parking guests and half-done things included: only notes carry
// ids and times, and the demo's own archive and VM the time they were made.
func (s *simulation) worldly() string {
	return s.world.Dump(pvesim.IgnoreKeys("description", "meta"), pvesim.IgnoreLines("vzdump-lxc-5001-"), pvesim.IgnoreIdentity())
}

// difference shows the lines that only one of two dumps has.
func difference(want, have string) string {
	var out strings.Builder
	for _, side := range []struct{ mark, text, other string }{{"- ", want, have}, {"+ ", have, want}} {
		for line := range strings.Lines(side.text) {
			if !strings.Contains("\n"+side.other, "\n"+line) {
				out.WriteString(side.mark + line)
			}
		}
	}
	return out.String()
}

// uninterrupted runs a reinstall to its end and lists what it changed, by stage.
func uninterrupted(t *testing.T, c cli) lives {
	t.Helper()
	s := simulate(t, c)
	s.imported()
	l := lives{old: s.worldly()}
	s.plan(2)
	s.apply(0)
	l.wished = s.worldly()
	stage, acted := "", true
	for _, r := range s.server.Requests() {
		if !r.Mutates() {
			continue
		}
		notes := false
		if text, set := r.Params["description"]; set && r.Method == "PUT" {
			notes = true
			if j := guest.ReadNotes(text).Journal; j != nil && j.Stage != stage {
				stage, acted = j.Stage, false
				l.cuts = append(l.cuts, cut{stage: stage, change: r.Mutation, record: stage != "claim"})
				continue
			}
		}
		if r.Method == "DELETE" && r.Path == "/nodes/pve1/lxc/5001" {
			l.crossing = r.Mutation
		}
		if !acted && !notes {
			acted = true
			l.cuts = append(l.cuts, cut{stage: stage, change: r.Mutation})
		}
	}
	if l.crossing == 0 {
		t.Fatal("the guest was never destroyed")
	}
	return l
}

// transcript collects what a running CLI prints.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *transcript) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *transcript) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// dying is one trace: an apply that is cut short, and the way to a clean end from another checkout.
type dying struct {
	*simulation
	f     *fates
	name  string
	lives lives
	at    cut
	how   death
	after bool // the change has its effect before the process dies, else it arrives afterwards
	state bool // the next checkout has the state
	kept  map[string]pvesim.Volume
}

// fates counts what a family of traces did.
type fates struct {
	mu                                  sync.Mutex
	traces, faults, checked, violations int
}

func (d *dying) violation(format string, args ...any) {
	d.t.Helper()
	d.f.mu.Lock()
	d.f.violations++
	d.f.mu.Unlock()
	d.t.Errorf("%s: %s", d.name, fmt.Sprintf(format, args...))
}

// check demands that every kept volume is the one that it was, whatever it is called and whoever has it.
func (d *dying) check(when string) {
	d.t.Helper()
	d.f.mu.Lock()
	d.f.checked += len(d.kept)
	d.f.mu.Unlock()
	for identity, was := range d.kept {
		now, there := d.world.VolumeByIdentity(identity)
		switch {
		case !there:
			d.violation("%s: %s was destroyed or copied", when, was.ID)
		case now.Digest() != was.Digest():
			d.violation("%s: %s holds something else than before", when, now.ID)
		}
	}
}

// run cuts the apply short, looks at what is left, and goes on from a fresh checkout.
func (d *dying) run() {
	d.apart()
	if d.state {
		d.inState(web, "web1")
		d.write("main.tf", web1Block())
	} else {
		d.imported()
	}
	d.kept = map[string]pvesim.Volume{}
	for _, id := range []string{d.world.VolumeOf(web, "mp0"), d.world.VolumeOf(web, "unused0"), d.world.VolumeOf(pvesim.DemoShared, "mp0")} {
		v := identity(d.t, d.simulation, id)
		d.kept[v.Identity] = v
	}
	d.plan(2)
	said := d.cutShort()
	d.check("after the death")
	d.left(said)
	d.continues(d.checkout())
	d.check("in the end")
	if now := d.worldly(); now != d.lives.wished {
		d.violation("the world is not as after an uninterrupted run:\n%s", difference(d.lives.wished, now))
	}
	if notes := guest.ReadNotes(d.world.Config(web)["description"]); notes.Journal != nil || notes.Contract == nil {
		d.violation("the notes are %q", d.world.Config(web)["description"])
	}
}

// cutShort applies, and ends the processes where it says. It returns when none of them lives.
func (d *dying) cutShort() (said string) {
	t := d.t
	t.Helper()
	entered, release := make(chan struct{}), make(chan struct{})
	kind := pvesim.FaultWorld
	if d.after {
		kind = pvesim.FaultWorldAfter
	}
	d.server.Inject(pvesim.Fault{Kind: kind, Mutation: d.at.change, World: func(*pvesim.Cluster) {
		close(entered)
		<-release
	}})
	var out transcript
	cmd := d.command("apply", "-no-color", "-input=false", "p")
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, 10*time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C goes to a whole group
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-entered:
	case err := <-ended:
		close(release)
		t.Fatalf("%s: the apply ended before its death came: %v\n%s", d.name, err, out.String())
	}
	switch d.how {
	case interrupted:
		d.interrupt(cmd, &out, "nterrupt received")
		time.Sleep(300 * time.Millisecond) // the CLI tells the provider after it told the user
		close(release)
	case interruptedTwice:
		d.interrupt(cmd, &out, "nterrupt received")
		d.interrupt(cmd, &out, "wo interrupts received")
	case providerKilled:
		for _, pid := range providers(t, d.dir) {
			if n, err := strconv.Atoi(pid); err == nil {
				_ = syscall.Kill(n, syscall.SIGKILL) // those that ended by themselves are as good
			}
		}
	case cliKilled:
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-ended; err == nil {
		d.violation("an apply that was cut short ended well:\n%s", out.String())
	}
	if d.how == cliKilled && len(providers(t, d.dir)) == 0 {
		d.violation("the provider died with its CLI")
	}
	if d.how != interrupted {
		close(release)
	}
	eventually(t, "the provider has ended by itself", func() bool { return len(providers(t, d.dir)) == 0 })
	d.world.Wait()
	if d.server.FaultsStruck() > 0 {
		d.f.mu.Lock()
		d.f.faults++
		d.f.mu.Unlock()
	}
	d.server.ClearFaults()
	return out.String()
}

// interrupt is Ctrl-C, and waits until the CLI says that it noticed.
func (d *dying) interrupt(cmd *exec.Cmd, out *transcript, says string) {
	d.t.Helper()
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
		d.t.Fatal(err)
	}
	eventually(d.t, "the CLI says "+says, func() bool { return strings.Contains(out.String(), says) })
}

// left judges the world that the death left behind: a provider that lived on must have finished or taken back everything.
func (d *dying) left(said string) {
	if !d.how.goesOn() {
		return
	}
	now := d.worldly()
	past := d.at.change >= d.lives.crossing
	switch {
	case past && now != d.lives.wished:
		d.violation("past the point of no return the operation was not finished:\n%s\n%s", difference(d.lives.wished, now), said)
	case now != d.lives.wished && now != d.lives.old:
		d.violation("the operation was neither finished nor taken back:\n%s\n%s", difference(d.lives.old, now), said)
	case now == d.lives.wished && !past && d.at.stage != "guard" && d.at.stage != "destroy":
		d.violation("it went on past the point of no return although it was stopped before:\n%s", said)
	}
	if notes := d.world.Config(web)["description"]; guest.ReadNotes(notes).Journal != nil {
		d.violation("a record is left: %q\n%s", notes, said)
	}
}

// checkout is the configuration in another folder, with the state that the dead CLI left, or without any.
func (d *dying) checkout() *workspace {
	d.t.Helper()
	w := newWorkspace(d.t, d.cli, d.env...)
	w.write("provider.tf", d.read("provider.tf"))
	if !d.state {
		return w
	}
	for _, name := range []string{"terraform.tfstate", "terraform.tfstate.backup"} {
		// A CLI that is interrupted twice can leave an empty state; the copy it made first is whole.
		if data, err := os.ReadFile(filepath.Join(d.dir, name)); err == nil && len(data) > 0 {
			w.write("terraform.tfstate", string(data))
			return w
		}
	}
	d.violation("no state is left")
	return w
}

var operationID = regexp.MustCompile(`op-5001-[0-9]{8}-[0-9a-f]{4}`)

// continues does what the plans say until there is nothing left to do.
func (d *dying) continues(w *workspace) {
	d.t.Helper()
	configure := func(arguments ...string) {
		text := web1Block(arguments...)
		if !d.state {
			text = importOf("web1", web) + text
		}
		w.write("main.tf", text)
	}
	configure()
	for range 5 {
		d.server.ResetRequests()
		out := w.try("plan", "-no-color", "-input=false", "-detailed-exitcode", "-out=p")
		d.untouched()
		switch out.code {
		case 0:
			return
		case 2:
			if d.how.goesOn() && strings.Contains(out.text, "reconcile") {
				d.violation("a provider that lived on left something to reconcile:\n%s", out.text)
			}
		default:
			open := operationID.FindString(out.text)
			if open == "" || !strings.Contains(out.text, "(needs_reconcile)") && !strings.Contains(out.text, "(operation_in_flight)") {
				d.violation("the plan names no operation to go on with:\n%s", out.text)
				return
			}
			configure(fmt.Sprintf("reconcile = { operation = %q, action = \"resume\" }", open))
			w.plan(2).says(d.t, "resume "+open)
		}
		w.apply(0)
		d.check("after an apply")
	}
	d.violation("the plan does not become empty:\n%s", w.last.text)
}

// TestFaultsProcesses ends the processes of an apply at every stage, in every way, and goes on with and without the state.
func TestFaultsProcesses(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("looks for processes in /proc, which only Linux has")
	}
	whole := os.Getenv("PVRX_FAULTS") == "all"
	everyCLI(t, func(t *testing.T, c cli) {
		l := uninterrupted(t, c)
		f := &fates{}
		t.Run("at", func(t *testing.T) {
			n := 0
			for _, at := range l.cuts {
				for how := interrupted; how <= cliKilled; how++ {
					for _, state := range []bool{true, false} {
						n++
						if !whole && !sampled(at, how, state) || whole && at.record == (n%4 < 2) && at.stage != "claim" {
							continue
						}
						d := &dying{f: f, lives: l, at: at, how: how, state: state, after: n%3 == 0}
						d.name = fmt.Sprintf("%s at the %s (change %d, after=%v, state=%v)", how, at, at.change, d.after, state)
						f.traces++
						t.Run(strings.ReplaceAll(d.name, " ", "_"), func(t *testing.T) {
							t.Parallel()
							d.simulation = simulate(t, c)
							d.run()
						})
					}
				}
			}
		})
		t.Logf("faults: processes that die, through %s: %d traces, %d faults injected, %d kept volumes checked, violations %d",
			c.name(), f.traces, f.faults, f.checked, f.violations)
		if f.faults < f.traces {
			t.Errorf("%d of %d deaths never came", f.traces-f.faults, f.traces)
		}
	})
}

// sampled picks the traces of an ordinary test run: each death on both sides of the point of no return.
func sampled(at cut, how death, state bool) bool {
	if at.record {
		return false
	}
	switch at.stage {
	case "park mp0":
		return state == (how == interrupted || how == providerKilled)
	case "create":
		return state == (how == interruptedTwice || how == cliKilled)
	}
	return false
}
