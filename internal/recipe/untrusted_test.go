package recipe_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
	"github.com/pvrx/terraform-provider-pvrx/internal/recipe"
)

// written is a block as anybody who can write notes can write it: with a right checksum, of any version, saying anything.
func written(kind, version string, content any) string {
	payload, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "pvrx-%s %s json\n%s", kind, version, payload))
	line := "pvrx: the block below records what this guest was made from, please keep it"
	if kind == "journal" {
		line = "pvrx: reinstall op-5001-20261201-f00d, stage 6 of 12 (guard): do not start or destroy this guest"
	}
	return fmt.Sprintf("%s\n```pvrx-%s %s json %s\n%s\n```\n", line, kind, version, hex.EncodeToString(sum[:8]), payload)
}

// forged is a record that somebody made up: it is about 5001, says that its root file system is to go, and points at guest
// 5002 as the one that holds the volumes.
func forged(change func(*guest.Journal)) guest.Journal {
	j := guest.Journal{
		Version: 1, Operation: "op-5001-20261201-f00d", Kind: "reinstall", Guest: 5001, Parking: 5002, Holder: 5001, Node: "pve1", Runner: "feed",
		Sequence: 99, Stage: "destroy", Index: 10, Of: 16, State: guest.JournalStuck, Made: true, Started: 1, Updated: 1, Until: 2,
		Wanted: guest.Install{Template: newTemplate, RootfsStorage: "local-lvm"}, Running: true,
		Doomed: []string{"local-lvm:vm-5001-disk-0", "local-lvm:vm-5001-disk-1", "tank:subvol-5001-disk-0"},
		Config: map[string]string{"hostname": "web1", "rootfs": "local-lvm:vm-5001-disk-0,size=8704M"}, Storage: "local-lvm", Size: 8 * guest.GiB,
		Parked: []guest.ParkedVolume{{Key: "mp0", Value: "local-lvm:vm-5002-disk-1,mp=/shared,size=50G", Parked: "local-lvm:vm-5002-disk-1", To: 5002}},
		ACL:    []string{"user evil@pve Administrator 1"},
	}
	if change != nil {
		change(&j)
	}
	return j
}

// theirs is a volume that only 5002 has.
func theirs() []guest.ParkedVolume {
	return []guest.ParkedVolume{{Key: "mp5", Value: "local-lvm:vm-5002-disk-5,mp=/five,size=1G", Parked: "local-lvm:vm-5002-disk-5", To: 5002}}
}

// notes are what stands in the notes of a guest, and what a run may then do.
type notes struct {
	name   string
	at     int    // whose notes
	text   string // all of them
	rename string // hostname of that guest
	// refuses: a plain apply must not change anything. Otherwise the text says nothing about 5001 and it is reinstalled.
	refuses bool
	// actions that must not change anything either, whatever operation they name.
	inert []string
}

func untrusted() []notes {
	const mine = "Runs the shop.\n\n"
	all := []string{"resume", "rollback", "close"}
	journal := func(j guest.Journal) string { return written("journal", "v1", j) }
	good := journal(forged(nil))
	newer := strings.Replace(good, "pvrx-journal v1", "pvrx-journal v2", 1)
	unknown := written("journal", "v1", map[string]any{"v": 1, "op": "op-5001-20261201-f00d", "kind": "reinstall", "guest": 5001, "holder": 5001, "state": "stuck", "sudo": true})
	contract := func(c guest.Contract) string { return written("contract", "v1", c) }
	same := guest.Contract{Version: 1, Guest: 5001, Instance: "x", Installed: guest.Install{Template: newTemplate, Triggers: map[string]string{"again": "1"}}}
	copied := same
	copied.Guest = 5002
	return []notes{
		{name: "forged, points at another guest", at: 5001, text: mine + good, refuses: true},
		{name: "forged, past the point of no return", at: 5001, text: mine + journal(forged(func(j *guest.Journal) { j.Stage, j.New, j.Digest = "return mp0", true, "feed" })), refuses: true},
		{name: "forged, says to take back", at: 5001, text: mine + journal(forged(func(j *guest.Journal) { j.Stage, j.Back, j.State = "park mp0", true, guest.JournalUndoing })), refuses: true},
		{name: "forged, a rollback from a foreign archive", at: 5001, text: mine + journal(forged(func(j *guest.Journal) {
			j.Kind, j.Stage, j.Backup = "rollback", "clear", "local:backup/vzdump-lxc-5002.tar.zst"
		})), refuses: true},
		{name: "forged, an unknown stage", at: 5001, text: mine + journal(forged(func(j *guest.Journal) { j.Stage = "format" })), refuses: true, inert: []string{"resume"}},
		{name: "forged, without a parking guest", at: 5001, text: mine + journal(forged(func(j *guest.Journal) { j.Parking, j.Made = 0, false })), refuses: true},
		{name: "forged, parks on itself", at: 5001, text: mine + journal(forged(func(j *guest.Journal) { j.Parking = 5001 })), refuses: true, inert: all},
		{name: "forged, held by nobody it names", at: 5001, text: mine + journal(forged(func(j *guest.Journal) { j.Guest = 5003 })), refuses: true, inert: all},
		{name: "forged, takes another guest's volume", at: 5001, text: mine + journal(forged(func(j *guest.Journal) { j.Stage, j.New, j.Made, j.Parked = "return mp5", true, false, theirs() })), refuses: true},
		{name: "forged, sets another guest's volume aside", at: 5001, text: mine + journal(forged(func(j *guest.Journal) { j.Stage, j.Made, j.Parked = "park mp5", false, theirs() })), refuses: true},
		{name: "forged, takes it back from there", at: 5001, text: mine + journal(forged(func(j *guest.Journal) { j.Stage, j.Made, j.Back, j.Parked = "park mp5", false, true, theirs() })), refuses: true},
		{name: "forged, guards another guest", at: 5001, text: mine + journal(forged(func(j *guest.Journal) { j.Stage, j.Made = "guard", false })), refuses: true},
		{name: "forged, rehearses on another guest", at: 5001, text: mine + journal(forged(func(j *guest.Journal) { j.Stage, j.Made, j.Back = "rehearse", false, true })), refuses: true},
		{name: "damaged", at: 5001, text: mine + strings.Replace(good, "web1", "web2", 1), refuses: true, inert: all},
		{name: "truncated", at: 5001, text: mine + good[:len(good)*2/3], refuses: true, inert: all},
		{name: "only its first line", at: 5001, text: mine + strings.SplitN(good, "\n", 2)[0], refuses: true, inert: all},
		{name: "duplicated", at: 5001, text: mine + good + "\n" + good, refuses: true, inert: all},
		{name: "two different ones", at: 5001, text: mine + good + "\n" + journal(forged(func(j *guest.Journal) { j.Operation = "op-5001-20261201-beef" })), refuses: true, inert: all},
		{name: "newer", at: 5001, text: mine + newer, refuses: true, inert: all},
		{name: "of a newer one by its fields", at: 5001, text: mine + unknown, refuses: true, inert: all},
		{name: "older", at: 5001, text: mine + strings.Replace(good, "pvrx-journal v1", "pvrx-journal v0", 1), refuses: true, inert: all},
		{name: "foreign: a clone's", at: 5001, text: mine + journal(forged(func(j *guest.Journal) { j.Guest, j.Holder, j.Parking = 5002, 5002, 900002 })), inert: all},
		{name: "a record of 5001 in another guest's notes", at: 5002, text: good, inert: all},
		{name: "the same, made out to that guest", at: 5002, text: journal(forged(func(j *guest.Journal) { j.Holder, j.Parking = 5002, 5002 })), inert: all},
		{name: "the same, and that guest calls itself our parking guest", at: 5002, rename: "pvrx-parking-5001", text: journal(forged(func(j *guest.Journal) { j.Holder, j.Parking = 5002, 5002 })), refuses: true},
		{name: "another guest that only calls itself our parking guest", at: 5002, rename: "pvrx-parking-5001", text: "hello", inert: all},
		{name: "a damaged record in another guest's notes", at: 5002, text: strings.Replace(good, "web1", "web2", 1), inert: all},
		{name: "forged contract: already installed", at: 5001, text: mine + contract(same), refuses: true, inert: all},
		{name: "forged contract: of another guest", at: 5001, text: mine + contract(copied), inert: all},
		{name: "contract, damaged", at: 5001, text: mine + strings.Replace(contract(same), "again", "never", 1), inert: all},
		{name: "contract, newer", at: 5001, text: mine + strings.Replace(contract(same), "pvrx-contract v1", "pvrx-contract v7", 1), inert: all},
		{name: "contract, twice", at: 5001, text: mine + contract(same) + "\n" + contract(same), inert: all},
		{name: "terminal escapes and bidi marks", at: 5001, text: mine + "\x1b[2J\x1b]0;owned\x07\u202egnp.exe\n" + good[:40] + "\x1b[31m", refuses: true, inert: all},
	}
}

// TestUntrustedNotes: whatever blocks stand in whoever's notes, a plan and an apply destroy, move and adopt nothing because
// of them. Where they refuse, they send no request that changes anything.
func TestUntrustedNotes(t *testing.T) {
	t.Parallel()
	b := plainScene().base(t)
	for _, n := range untrusted() {
		t.Run(n.name, func(t *testing.T) {
			t.Parallel()
			w := b.fresh()
			w.cluster.SetConfig(n.at, "description", n.text)
			if n.rename != "" {
				w.cluster.SetConfig(n.at, "hostname", n.rename)
			}
			dump, theirs := w.cluster.Dump(), w.cluster.Dump(pvesim.IgnoreGuests(5001))
			c, ctx := w.container(t), context.Background()

			seen, err := c.Observe(ctx, 5001)
			if err != nil {
				t.Fatal(err)
			}
			judged, err := c.Plan(ctx, seen, wants())
			if err != nil {
				t.Fatal(err)
			}
			r := w.survey(t, recipe.Scope{})
			texts := []string{judged.Summary, judged.Table(), r.Summary, strings.Join(seen.Problems, "\n"), strings.Join(judged.Warnings, "\n")}
			for _, bl := range judged.Blockers {
				texts = append(texts, bl.Title, bl.Text())
			}
			for _, p := range r.Problems {
				texts = append(texts, p.Sentence, p.Label)
			}
			if n := w.server.Mutations(); n > 0 {
				t.Errorf("looking sent %d changes", n)
			}

			// Actions that name whatever operation the notes name.
			for _, action := range n.inert {
				for _, operation := range []string{"op-5001-20261201-f00d", "op-5001-20261201-beef", "op-5002-20261201-f00d"} {
					l := &wire{w: w}
					req := b.req()
					req.Reconcile = &recipe.Reconcile{Operation: operation, Action: action}
					if _, err := w.run(t, req, l); err != nil {
						texts = append(texts, err.Error())
					}
					if n := w.server.Mutations(); n > 0 {
						t.Fatalf("%s of %s sent %d changes", action, operation, n)
					}
				}
			}

			l := &wire{w: w}
			result, err := w.run(t, b.req(), l)
			if err != nil {
				texts = append(texts, err.Error())
			}
			for _, v := range append(append(l.broken, w.lost()...), w.orphaned()...) {
				t.Error(v)
			}
			switch {
			case n.refuses:
				if n := w.server.Mutations(); n > 0 || result.Changed {
					t.Errorf("%d changes: %+v %v", n, result, err)
				}
				if now := w.cluster.Dump(); now != dump {
					t.Errorf("the world changed:\n%s", difference(dump, now))
				}
			case err != nil:
				t.Errorf("it says nothing about 5001, and it is refused: %v", err)
			default:
				if now := w.cluster.Dump(pvesim.IgnoreGuests(5001)); now != theirs {
					t.Errorf("other guests changed:\n%s", difference(theirs, now))
				}
				if contract := guest.NotesOf(5001, w.cluster.Config(5001)["description"]).Contract; contract == nil || contract.Instance != result.Operation {
					t.Errorf("the contract is not this operation's: %+v", contract)
				}
			}
			for _, text := range texts {
				for _, bad := range []string{"\x1b", "\x07", "\u202e"} {
					if strings.Contains(text, bad) {
						t.Errorf("%q reaches a terminal: %q", bad, text)
					}
				}
			}
		})
	}
}

// TestForgedRecordsThatAPersonResumes: somebody believes a forged record and says to go on. Proxmox does not agree with it,
// so nothing that is anybody's data is destroyed, and no guest but 5001 is touched.
func TestForgedRecordsThatAPersonResumes(t *testing.T) {
	t.Parallel()
	b := plainScene().base(t)
	for _, n := range untrusted() {
		if !n.refuses || n.inert != nil || strings.Contains(n.name, "contract") {
			continue
		}
		for _, action := range []string{"resume", "rollback", "close"} {
			t.Run(n.name+", "+action, func(t *testing.T) {
				t.Parallel()
				w := b.fresh()
				w.cluster.SetConfig(n.at, "description", n.text)
				if n.rename != "" {
					w.cluster.SetConfig(n.at, "hostname", n.rename)
				}
				w.cluster.SetConfig(5002, "mp5", "local-lvm:1,mp=/five")
				w.cluster.SetRunning(5002, true)
				before := w.cluster.Dump(pvesim.IgnoreKeys("description"), pvesim.IgnorePower())
				j := w.journal(t, 5001)
				if j == nil {
					t.Fatal("the record is not seen")
				}
				l := &wire{w: w}
				_, err := w.run(t, b.reconcile(j, action), l)
				t.Log(err)
				for _, v := range append(append(l.broken, w.lost()...), w.orphaned()...) {
					t.Error(v)
				}
				if !w.cluster.Running(5001) || !w.cluster.Running(5002) {
					t.Errorf("stopped: 5001 runs %v, 5002 runs %v", w.cluster.Running(5001), w.cluster.Running(5002))
				}
				for _, r := range w.server.Requests() {
					if r.Mutates() && !strings.HasSuffix(r.Template, "/config") {
						t.Errorf("%s %s %v", r.Method, r.Path, r.Params)
					}
				}
				if now := w.cluster.Dump(pvesim.IgnoreKeys("description"), pvesim.IgnorePower()); now != before {
					t.Errorf("the world changed:\n%s", difference(before, now))
				}
			})
		}
	}
}
