package proxmox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

const startUPID = "UPID:pve1:00001234:00ABCDEF:6B0E58A5:vzstart:5001:ci@pve!pvrx:"

// taskServer answers a start with a UPID, and the questions about it as given.
func taskServer(upid string, status func(n int) answer, log string) func(sent) answer {
	n := 0
	return func(s sent) answer {
		switch {
		case s.Method == http.MethodPost:
			return data(`"` + upid + `"`)
		case strings.HasSuffix(s.Path, "/status"):
			n++
			return status(n)
		case strings.HasSuffix(s.Path, "/log"):
			return data(log)
		}
		return died("unexpected " + s.String())
	}
}

func stopped(exit string) answer {
	return data(fmt.Sprintf(`{"status":"stopped","exitstatus":%q}`, exit))
}

func TestTaskEnds(t *testing.T) {
	running := data(`{"status":"running"}`)
	for _, c := range []struct {
		name   string
		status func(n int) answer
		want   guest.Outcome // 0: success
		words  string
	}{
		{"OK after a while", func(n int) answer {
			if n < 4 {
				return running
			}
			return stopped("OK")
		}, 0, ""},
		{"warnings are success", func(int) answer { return stopped("WARNINGS: 1") }, 0, ""},
		{"failure", func(int) answer { return stopped("startup for container '5001' failed") }, guest.OutcomeFailed, "startup for container '5001' failed"},
		{"locked", func(int) answer { return stopped("CT is locked (backup)") }, guest.OutcomeLocked, "CT is locked (backup)"},
		{"flock", func(int) answer { return stopped("can't lock file '/run/lock/lxc/pve-config-5001.lock' - got timeout") }, guest.OutcomeLocked, ""},
		{"storage lock in the middle of the work", func(int) answer {
			return stopped("can't lock file '/var/lock/pve-manager/pve-storage-local' - got timeout")
		}, guest.OutcomeFailed, ""},
		{"cluster lock in the middle of the work", func(int) answer { return stopped("cfs-lock 'storage-x' error: got lock request timeout") }, guest.OutcomeFailed, ""},
		{"missing", func(int) answer { return stopped("Configuration file 'nodes/pve1/lxc/5001.conf' does not exist") }, guest.OutcomeMissing, ""},
		{"killed", func(int) answer { return stopped("unexpected status") }, guest.OutcomeUnknown, "without saying how"},
		{"no exit status", func(int) answer { return data(`{"status":"stopped"}`) }, guest.OutcomeUnknown, ""},
		{"gone", func(int) answer { return parameters(map[string]string{"upid": "no such task"}) }, guest.OutcomeUnknown, "no such task"},
		{"blind", func(int) answer { return answer{status: "595 Connection refused"} }, guest.OutcomeUnknown, "could not be read"},
		{"blind for a moment", func(n int) answer {
			if n < 8 {
				return answer{status: "596 Broken pipe"}
			}
			return stopped("OK")
		}, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, s := scripted(t, taskServer(startUPID, c.status, `[{"n":1,"t":"first"},{"n":2,"t":"WARN: look here"},{"n":3,"t":"TASK"}]`))
			err := h.Start(context.Background(), ct)
			if c.want == 0 {
				wantNoError(t, err)
			} else {
				wantOutcome(t, err, c.want)
				if !strings.Contains(err.Error(), c.words) {
					t.Errorf("%q lacks %q", err, c.words)
				}
				if c.want != guest.OutcomeLocked && !strings.Contains(err.Error(), startUPID) {
					t.Errorf("%q does not name the task", err)
				}
			}
			if n := s.count(""); c.want != guest.OutcomeLocked && n != 1 {
				t.Errorf("sent %d times", n)
			}
		})
	}
}

func TestWarningsAreReturned(t *testing.T) {
	upid := strings.ReplaceAll(startUPID, "vzstart", "vzcreate")
	h, _ := scripted(t, taskServer(upid, func(int) answer { return stopped("WARNINGS: 1") }, `[{"n":1,"t":"extracting"},{"n":2,"t":"WARN: skipping custom lxc options"},{"n":3,"t":"TASK WARNINGS: 1"}]`))
	warnings, err := h.CreateContainer(context.Background(), ct, map[string]string{"ostemplate": "local:vztmpl/d.tar.zst"})
	wantNoError(t, err)
	if len(warnings) != 1 || warnings[0] != "WARN: skipping custom lxc options" {
		t.Fatalf("%q", warnings)
	}
}

func TestFailedTaskKeepsTheLastLines(t *testing.T) {
	h, _ := scripted(t, taskServer(startUPID, func(int) answer { return stopped("it broke") }, `[{"n":1,"t":"a"},{"n":2,"t":"b\u0007"},{"n":3,"t":"TASK ERROR: it broke"}]`))
	err := h.Start(context.Background(), ct)
	var e *Error
	if !errors.As(err, &e) || strings.Join(e.Log, "|") != "a|b|TASK ERROR: it broke" {
		t.Fatalf("%v: %q", err, e.Log)
	}
}

// The node that a task runs on is the one in its name, whoever was asked.
func TestTaskIsFollowedOnTheNodeInItsName(t *testing.T) {
	upid := strings.Replace(startUPID, "pve1", "pve7", 1)
	h, s := scripted(t, taskServer(upid, func(int) answer { return stopped("OK") }, `[]`))
	wantNoError(t, h.Start(context.Background(), ct))
	for _, r := range s.all() {
		if strings.Contains(r.Path, "/tasks/") && !strings.HasPrefix(r.Path, "/nodes/pve7/tasks/") {
			t.Errorf("asked %s", r.Path)
		}
	}
}

func TestAnAnswerThatNamesNoTaskIsUnknown(t *testing.T) {
	for _, name := range []string{`"OK"`, `null`, `""`, `"UPID:short:"`, `{"a":1}`, `"UPID:pve1:00001234:00ABCDEF:6B0E58A5:vz/start:5001:u@pve:"`} {
		h, s := scripted(t, func(sent) answer { return data(name) })
		wantOutcome(t, h.Start(context.Background(), ct), guest.OutcomeUnknown)
		if s.count("") != 1 {
			t.Errorf("%s: sent %d times", name, s.count(""))
		}
	}
}

// lostServer loses the answer of every change; its task list shows what is given.
func lostServer(rows func() string) func(sent) answer {
	return func(s sent) answer {
		switch {
		case s.Method != http.MethodGet:
			return answer{broken: errCut}
		case strings.HasSuffix(s.Path, "/tasks"):
			return data(rows())
		case strings.HasSuffix(s.Path, "/status"):
			return stopped("OK")
		}
		return died("unexpected " + s.String())
	}
}

func row(kind, id, user string, started time.Time) string {
	return fmt.Sprintf(`{"upid":"UPID:pve1:00001234:00ABCDEF:%08X:%s:%s:%s:","status":"OK"}`, started.Unix(), kind, id, user)
}

func TestLostAnswerIsLookedUpAndNeverAskedAgain(t *testing.T) {
	const us = "ci@pve!pvrx"
	now := time.Now()
	for _, c := range []struct {
		name  string
		rows  []string
		found bool
	}{
		{"ours", []string{row("vzstart", "5001", us, now)}, true},
		{"ours among others", []string{
			row("vzstart", "5001", "other@pve!pvrx", now), row("vzstop", "5001", us, now), row("vzstart", "5002", us, now),
			row("vzstart", "5001", us, now.Add(-time.Hour)), row("vzstart", "5001", us, now),
		}, true},
		{"by HA", []string{row("hastart", "5001", us, now)}, true},
		{"listed twice", []string{row("vzstart", "5001", us, now), row("vzstart", "5001", us, now)}, true},
		{"none", nil, false},
		{"only an older one", []string{row("vzstart", "5001", us, now.Add(-time.Minute))}, false},
		{"two that fit", []string{row("vzstart", "5001", us, now), row("vzstart", "5001", us, now.Add(time.Second))}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			respond := lostServer(func() string { return "[" + strings.Join(c.rows, ",") + "]" })
			h, s := scripted(t, func(r sent) answer {
				if strings.HasSuffix(r.Path, "/status/current") {
					return data(`{"status":"running"}`)
				}
				return respond(r)
			})
			err := h.Start(context.Background(), ct)
			if c.found {
				wantNoError(t, err)
			} else {
				wantOutcome(t, err, guest.OutcomeUnknown)
			}
			if s.count("") != 1 {
				t.Fatalf("the request was sent %d times", s.count(""))
			}
		})
	}
}

// A task that is accounted for already is not taken for the one whose answer was lost.
func TestLostAnswerPassesOverTasksThatAreAccountedFor(t *testing.T) {
	only := row("vzstart", "5001", "ci@pve!pvrx", time.Now())
	h, _ := scripted(t, lostServer(func() string { return "[" + only + "]" }))
	wantNoError(t, h.Start(context.Background(), ct))
	wantOutcome(t, h.Start(context.Background(), ct), guest.OutcomeUnknown)
}

// The clocks of node and client differ; tasks are compared by the node's.
func TestFindTaskGoesByTheServersClock(t *testing.T) {
	now := time.Now()
	for _, ahead := range []time.Duration{-time.Hour, 0, time.Hour} {
		there := now.Add(ahead)
		h, s := scripted(t, func(r sent) answer {
			a := data("[" + row("vzdestroy", "5001", "ci@pve!pvrx", there) + "," + row("vzdestroy", "5001", "ci@pve!pvrx", there.Add(-5*time.Minute)) + "]")
			a.header = http.Header{"Date": {there.UTC().Format(http.TimeFormat)}}
			return a
		})
		_, err := h.Login(context.Background()) // any answer tells the time
		if err == nil {
			t.Fatal("the list is no version")
		}
		found, err := h.FindTask(context.Background(), "pve1", "vzdestroy", 5001, now.Unix())
		wantNoError(t, err)
		if !found.Found || !found.Good || found.Running {
			t.Errorf("ahead %s: %+v", ahead, found)
		}
		late, err := h.FindTask(context.Background(), "pve1", "vzdestroy", 5001, now.Unix()+60)
		wantNoError(t, err)
		if late.Found {
			t.Errorf("ahead %s: found a task from before", ahead)
		}
		query, err := url.ParseQuery(s.all()[1].Query)
		wantNoError(t, err)
		if query.Get("source") != "all" || query.Get("typefilter") != "vzdestroy" || query.Get("vmid") != "" {
			t.Errorf("asked %v", query)
		}
	}
}

func TestFindTaskFindsMovesByTheirSource(t *testing.T) {
	h, _ := scripted(t, func(sent) answer {
		return data("[" + row("move_volume", "5001-mp0>900000-mp0", "ci@pve!pvrx", time.Now()) + "]")
	})
	for id, want := range map[guest.VMID]bool{5001: true, 500: false, 900000: false} {
		found, err := h.FindTask(context.Background(), "pve1", "move_volume", id, time.Now().Unix())
		wantNoError(t, err)
		if found.Found != want {
			t.Errorf("%d: %+v", id, found)
		}
	}
}

// A cancellation does not abandon what is about to end, and says of what goes on that it goes on.
func TestCancellationGivesATaskItsGrace(t *testing.T) {
	for _, c := range []struct {
		name string
		ends bool
	}{{"ends in time", true}, {"goes on", false}} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			h, _ := scripted(t, taskServer(startUPID, func(n int) answer {
				if n == 2 {
					cancel()
				}
				if n > 4 && c.ends {
					return stopped("OK")
				}
				return data(`{"status":"running"}`)
			}, `[]`))
			err := h.Start(ctx, ct)
			if c.ends {
				wantNoError(t, err)
				return
			}
			wantOutcome(t, err, guest.OutcomeUnknown)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v does not say that it was cancelled", err)
			}
		})
	}
}

func TestCancelledBeforeSendingSendsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	h, s := scripted(t, func(sent) answer { return data("null") })
	wantOutcome(t, h.SetConfig(ctx, ct, map[string]string{"cores": "1"}, nil, ""), guest.OutcomeUnreachable)
	if len(s.all()) != 0 {
		t.Fatal("something was sent")
	}
}

func TestB1LocksAreWaitedForWithinPatience(t *testing.T) {
	tries := 0
	respond := func(sent) answer {
		if tries++; tries < 5 {
			return died("CT is locked (backup)")
		}
		return data("null")
	}
	h, _ := scripted(t, respond)
	waits := 0
	h.waiting = func(w Wait) {
		waits++
		if w.Words != "CT is locked (backup)" || w.Guest != ct {
			t.Errorf("%+v", w)
		}
	}
	wantNoError(t, h.SetConfig(context.Background(), ct, map[string]string{"cores": "1"}, nil, ""))
	if tries != 5 || waits != 1 {
		t.Errorf("%d tries, told %d times", tries, waits)
	}

	tries = -1000000
	impatient := guest.WithPatience(context.Background(), 0)
	wantOutcome(t, h.SetConfig(impatient, ct, map[string]string{"cores": "1"}, nil, ""), guest.OutcomeLocked)
	if tries != -999999 {
		t.Errorf("asked again without patience")
	}
}

// Under HA the task only queues the command; the guest's state is what counts.
func TestHATasksAreWaitedForByState(t *testing.T) {
	upid := strings.Replace(startUPID, "vzstart", "hastop", 1)
	looks := 0
	serve := taskServer(upid, func(int) answer { return stopped("OK") }, `[]`)
	h, _ := scripted(t, func(s sent) answer {
		if !strings.HasSuffix(s.Path, "/status/current") {
			return serve(s)
		}
		if looks++; looks < 4 {
			return data(`{"status":"running"}`)
		}
		return data(`{"status":"stopped"}`)
	})
	wantNoError(t, h.Stop(context.Background(), ct))
	if looks != 4 {
		t.Errorf("looked %d times", looks)
	}
	looks = -1000000
	wantOutcome(t, h.Stop(context.Background(), ct), guest.OutcomeUnknown)
}

func TestPowerIsIdempotent(t *testing.T) {
	h, _ := scripted(t, func(s sent) answer {
		if strings.HasSuffix(s.Path, "/start") {
			return died("CT 5001 already running")
		}
		return died("CT 5001 not running")
	})
	wantNoError(t, h.Start(context.Background(), ct))
	wantNoError(t, h.Stop(context.Background(), ct))
	wantNoError(t, h.Shutdown(context.Background(), ct, 5))
}

// A node's list of running tasks names one for a moment after its state says that it has ended. What was waited for here is
// not taken for somebody else's work.
func TestTaskThatEndedIsNotRunning(t *testing.T) {
	const other = "UPID:pve1:00001235:00ABCDEF:6B0E58A6:vzstart:5001:ci@pve!pvrx:"
	ask := taskServer(startUPID, func(int) answer { return stopped("OK") }, `[]`)
	h, _ := scripted(t, func(s sent) answer {
		if s.Method == http.MethodGet && strings.HasSuffix(s.Path, "/tasks") {
			return data(fmt.Sprintf(`[{"upid":%q},{"upid":%q}]`, startUPID, other))
		}
		return ask(s)
	})
	wantNoError(t, h.Start(context.Background(), ct))
	running, err := h.Tasks(context.Background(), "pve1")
	if err != nil || len(running) != 1 || running[0].UPID != other {
		t.Errorf("running: %v, %v", running, err)
	}
}
