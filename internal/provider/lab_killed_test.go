package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// inside runs a command in a container, where PVRX_TEST_EXEC says how the node is reached ("ssh root@pve1"); "" where not.
// Proxmox's API has nothing that would look into a container.
func (l *lab) inside(id int, command string) string {
	l.t.Helper()
	reach := os.Getenv("PVRX_TEST_EXEC")
	if !l.real || reach == "" {
		return ""
	}
	args := append(strings.Fields(reach), "pct", "exec", strconv.Itoa(id), "--", "sh", "-c", "'"+command+"'")
	if !strings.HasPrefix(reach, "ssh ") {
		args[len(args)-1] = command // no second shell takes the quotes away
	}
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		l.t.Fatalf("%s in CT %d: %v\n%s", command, id, err, out)
	}
	return strings.TrimSpace(string(out))
}

// stored is what the storage says of the volume that a key of a guest names.
type stored struct {
	VolID  string
	Size   int64
	Format string
}

func (l *lab) stored(id int, key string) (found stored) {
	l.t.Helper()
	volume, _, _ := strings.Cut(l.config(id)[key], ",")
	storage, _, _ := strings.Cut(volume, ":")
	var rows []stored
	if err := json.Unmarshal(l.must(http.MethodGet, "/nodes/"+l.node+"/storage/"+storage+"/content", map[string]string{"vmid": strconv.Itoa(id)}), &rows); err != nil {
		l.t.Fatal(err)
	}
	for _, r := range rows {
		if r.VolID == volume {
			return r
		}
	}
	l.t.Fatalf("%s of guest %d names %q, which storage %s does not list", key, id, volume, storage)
	return found
}

// missing reports whether a guest is gone.
func (l *lab) missing(id int) bool {
	_, err := l.call(http.MethodGet, l.path(id)+"/config", nil)
	return err != nil && strings.Contains(err.Error(), "does not exist")
}

// TestScenarioKilledAfterTheDestroy kills the provider when it has destroyed the guest and not made the new one, and goes on
// from a checkout without state. What is in the data volume is looked at where PVRX_TEST_EXEC gives a way in.
func TestScenarioKilledAfterTheDestroy(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("looks for processes in /proc, which only Linux has")
	}
	if !onServer() {
		t.Skip("a real server takes long enough to be caught between destroy and create; on the simulated cluster TestFaultsProcesses stops it there, and everywhere else")
	}
	scenario(t, func(l *lab, ws *workspace) {
		id := l.container("pvrx-test-k", nil)
		l.inside(id, "echo the only copy > /srv/data/marker; touch /root/old-system")
		before, volume := l.config(id), l.stored(id, "mp0")
		ws.apart()
		ws.write("main.tf", l.labImport(id)+l.labBlock(id, "pvrx-test-k"))
		ws.plan(2)
		var out bytes.Buffer
		cmd := ws.command("apply", "-no-color", "-input=false", "p")
		cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, 10*time.Second
		if err := cmd.Start(); err != nil {
			l.t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for !l.missing(id) {
			select {
			case err := <-ended:
				l.t.Fatalf("it ended before the guest was destroyed: %v\n%s", err, out.String())
			case <-time.After(20 * time.Millisecond):
			}
		}
		for _, pid := range providers(l.t, ws.dir) {
			if n, err := strconv.Atoi(pid); err == nil {
				_ = syscall.Kill(n, syscall.SIGKILL) // it may have ended by itself, which the CLI then says
			}
		}
		if err := <-ended; err == nil {
			l.t.Fatalf("an apply whose provider was killed ended well:\n%s", out.String())
		}
		time.Sleep(10 * time.Second) // a create that was sent goes on by itself

		fresh := newWorkspace(l.t, ws.cli, ws.env...)
		fresh.write("provider.tf", ws.read("provider.tf"))
		fresh.write("main.tf", l.labImport(id)+l.labBlock(id, "pvrx-test-k"))
		said := fresh.plan(1)
		open := regexp.MustCompile(fmt.Sprintf(`op-%d-[0-9]{8}-[0-9a-f]{4}`, id)).FindString(said.text)
		if open == "" {
			l.t.Fatalf("the plan names no operation to go on with:\n%s", said.text)
		}
		fresh.write("main.tf", l.labImport(id)+l.labBlock(id, "pvrx-test-k", fmt.Sprintf("reconcile = { operation = %q, action = \"resume\" }", open)))
		fresh.plan(2).says(l.t, "resume "+open)
		fresh.apply(0)
		fresh.plan(0)
		l.sameBut(id, before)
		if now := l.stored(id, "mp0"); now.Size != volume.Size || now.Format != volume.Format {
			l.t.Errorf("the data volume is %+v and was %+v", now, volume)
		}
		if there := l.guests(); len(there) != 1 {
			l.t.Errorf("guests left: %v", there)
		}
		if os.Getenv("PVRX_TEST_EXEC") == "" {
			l.t.Log("PVRX_TEST_EXEC is not set: what is in the volume was not looked at")
			return
		}
		if got := l.inside(id, "cat /srv/data/marker"); got != "the only copy" {
			l.t.Errorf("the marker is %q", got)
		}
		if got := l.inside(id, "ls /root"); strings.Contains(got, "old-system") {
			l.t.Error("the root file system is the old one")
		}
	})
}
