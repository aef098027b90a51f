package preview

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// everything is all text of a preview.
func everything(p Preview) string {
	var text strings.Builder
	fmt.Fprintln(&text, p.Summary, p.Operation, p.Precondition)
	fmt.Fprintln(&text, p.Table(), p.Fates(), p.Erased(), p.AlsoLost)
	for _, b := range slices.Concat(p.Blockers, p.Waived) {
		fmt.Fprintln(&text, b.Title, b.Text(), b.Subject, b.Attribute)
	}
	for _, c := range p.Changes {
		fmt.Fprintln(&text, c.What, c.From, c.To, c.Takes)
	}
	for _, v := range p.Volumes {
		fmt.Fprintln(&text, v.Key, v.Volume, v.Path, v.Reason)
	}
	fmt.Fprintln(&text, p.Warnings, string(p.Acknowledged.Encode()))
	return text.String()
}

// strange draws facts and wishes that are odd in every way that decides.
func strange(t *rapid.T) (Facts, Want) {
	f, w := vault()
	chance := rapid.Bool()
	text := rapid.StringMatching(`[a-z/=,:0-9@\x1b\x00]{0,12}`)
	if chance.Draw(t, "install") {
		f, w = vaultInstall()
	}
	f.Presence = rapid.SampledFrom([]guest.Presence{0, guest.PresenceUnknown, guest.Absent, guest.Present, guest.Present, guest.Present}).Draw(t, "presence")
	f.WrongType, f.EnvSeen, f.Guest.Running = chance.Draw(t, "wrong type") && chance.Draw(t, "really"), chance.Draw(t, "env seen"), chance.Draw(t, "running")
	f.Instances.OK, f.Login.RootTicket, f.NodeOnline = chance.Draw(t, "instances"), chance.Draw(t, "root"), chance.Draw(t, "online")
	if f.Guest.Config.Values == nil {
		f.Guest.Config.Values = map[string]string{}
	}
	for range rapid.IntRange(0, 3).Draw(t, "odd keys") {
		key := rapid.SampledFrom([]string{"mp0", "mp1", "mp2", "rootfs", "net0", "net1", "dev0", "entrypoint", "features", "foo", "unused0", "hostname", "env", "tags", "lock", "protection"}).Draw(t, "key")
		f.set(key, text.Draw(t, "value"))
	}
	if chance.Draw(t, "a key goes") {
		f.unset(rapid.SampledFrom([]string{"mp0", "rootfs", "net0", "env", "entrypoint", "hostname"}).Draw(t, "gone"))
	}
	switch rapid.IntRange(0, 5).Draw(t, "contract") {
	case 0:
		f.Journal.Contract = nil
	case 1:
		f.Journal.Contract = &guest.Contract{Guest: 6001}
	case 2:
		if f.Journal.Contract != nil {
			copyOf6000(&f)
		}
	case 3:
		if f.Journal.Contract != nil {
			f.contract(func(_ *guest.Contract, app *guest.Application) { *app = guest.Application{} })
		}
	}
	if chance.Draw(t, "pending") {
		f.Guest.Pending = []guest.Change{{Key: rapid.SampledFrom([]string{"env", "mp0", "features", "net0"}).Draw(t, "waits"), Value: text.Draw(t, "to"), Delete: chance.Draw(t, "delete")}}
	}
	if chance.Draw(t, "snapshot") {
		f.snapshot("daily")
	}
	if chance.Draw(t, "newer") {
		newer(&w)
	}
	if chance.Draw(t, "unresolved") {
		w.Instance.Image.Digest, w.Instance.Image.Why = "", text.Draw(t, "why")
	}
	w.Instance.Create, w.Adopt, w.Instance.Started = chance.Draw(t, "create"), chance.Draw(t, "adopt"), chance.Draw(t, "started")
	if chance.Draw(t, "no volumes") {
		w.Instance.Volumes = nil
	}
	if chance.Draw(t, "more volumes") {
		w.Instance.Volumes = map[string]VolumeWant{"/" + text.Draw(t, "path"): {Storage: text.Draw(t, "storage"), Size: guest.Bytes(rapid.Int64().Draw(t, "size"))}}
	}
	if chance.Draw(t, "erase") {
		erase(&w, "mp0", rapid.SampledFrom([]string{"*", "local-lvm:vm-6001-disk-1", "x:y"}).Draw(t, "consent"))
	}
	if chance.Draw(t, "host") {
		w.Instance.HostPaths, w.Instance.Devices = map[string]HostPath{"/m": {Source: "/" + text.Draw(t, "source")}}, map[string]string{"dev0": text.Draw(t, "device")}
	}
	if chance.Draw(t, "under way") {
		w.Operation = "op-6001-20261201-7777"
	}
	if chance.Draw(t, "nothing asked") {
		w.Instance = nil
	}
	return f, w
}

// Whatever the facts are there is an answer: every volume has fates, everything that is shown is one harmless line, and
// asking twice says the same.
func TestInstanceIsTotal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f, w := strange(t)
		for name, judge := range map[string]func(Facts, Want) Preview{"due": Instance, "removal": InstanceRemoval} {
			p := judge(f, w)
			if everything(p) != everything(judge(f, w)) {
				t.Fatalf("%s: two answers", name)
			}
			if !strings.HasPrefix(p.Summary, "CT 6001") {
				t.Fatalf("summary %q", p.Summary)
			}
			for _, v := range p.Volumes {
				if v.Data.String() == "invalid" || v.Mount.String() == "invalid" || v.Reason == "" {
					t.Fatalf("%s: %s has no fate: %+v", name, v.Key, v)
				}
			}
			for _, line := range slices.Concat(p.Warnings, []string{p.Summary}) {
				if strings.ContainsFunc(line, unicode.IsControl) {
					t.Fatalf("%q holds control characters", line)
				}
			}
			for _, b := range p.Blockers {
				if b.Title == "" || b.Found == "" || b.Remedy == "" || strings.ContainsFunc(b.Title+b.Text(), unicode.IsControl) {
					t.Fatalf("%+v", b)
				}
			}
			for _, c := range p.Changes {
				if c.Takes.String() == "invalid" || strings.ContainsFunc(c.What+c.From+c.To, unicode.IsControl) {
					t.Fatalf("%+v", c)
				}
			}
		}
		NeedsInstance(f, w)
		NeedsInstanceRemoval(f, w)
		InstanceWork(f, w)
		InstanceStorages(f, w)
		AdoptedContract(f, w)
	})
}

// When nothing blocks, every volume that the container owns is still there afterwards, but for the root file system of an
// update, what erase names, and a removal.
func TestInstancePreservesVolumes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f, w := strange(t)
		p := Instance(f, w)
		if len(p.Blockers) > 0 {
			return
		}
		for _, v := range p.Volumes {
			switch {
			case v.Data != DataErased && v.Data != DataUnknown:
			case v.Key == "rootfs" && p.Operation == OpUpdate:
			case w.Erase[v.Key] == v.Volume || w.Erase[v.Key] == "*":
				if w.Instance != nil && slices.ContainsFunc(slices.Collect(maps.Keys(w.Instance.Volumes)), func(path string) bool { return samePath(path, v.Path) }) {
					t.Fatalf("%s is configured and erased", v.Key)
				}
			default:
				t.Fatalf("%s: %s is %s (%s)", p.Operation, v.Key, v.Data, v.Reason)
			}
		}
	})
}

// A container that is what its contract and its configuration say needs nothing, whatever tolerated keys it has.
func TestInstanceWithoutDifferenceIsLeftAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f, w := vault()
		for _, key := range []string{"swap", "cpulimit", "cpuunits", "onboot", "startup", "net1", "net7"} {
			if rapid.Bool().Draw(t, key) {
				f.set(key, rapid.StringMatching(`[1-9][0-9]{0,4}`).Draw(t, "value"))
			}
		}
		f.set("description", rapid.StringMatching(`[ -~]{0,40}`).Draw(t, "notes"))
		if rapid.Bool().Draw(t, "unused") {
			f.set("unused0", "local-lvm:vm-6001-disk-9")
			f.stored("local-lvm:vm-6001-disk-9", 6001, guest.GiB)
		}
		w.Adopt, w.Instance.Create = rapid.Bool().Draw(t, "adopt"), rapid.Bool().Draw(t, "create")
		p := Instance(f, w)
		if p.Operation != 0 || len(p.Blockers) > 0 || len(p.Changes) > 0 {
			t.Fatalf("%q", p.Summary)
		}
	})
}

// No value of an environment, live, wanted, pending or of a snapshot, is in anything that is shown.
func TestInstanceShowsNoSecret(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f, w := strange(t)
		value := rapid.StringMatching(`sEcReT[a-z]{4,12}`)
		if env := f.Guest.Config.Values["env"]; env != "" {
			f.set("env", strings.ReplaceAll(env, secret, value.Draw(t, "live"))+"\x00BY_HAND="+value.Draw(t, "by hand"))
		}
		f.Guest.Pending = append(f.Guest.Pending, guest.Change{Key: "env", Value: environment("TOKEN="+value.Draw(t, "waits"), guest.ContractVariable+"="+identity)})
		if w.Instance != nil {
			w.Instance.Environment = map[string]string{"TOKEN": value.Draw(t, "wanted"), "OTHER": value.Draw(t, "other"), guest.ContractVariable: value.Draw(t, "forged")}
			w.Instance.Entrypoint = "/app --token=" + value.Draw(t, "argument")
		}
		f.set("entrypoint", "/app --token="+value.Draw(t, "old argument"))
		for _, p := range []Preview{Instance(f, w), InstanceRemoval(f, w)} {
			if text := everything(p); strings.Contains(text, "sEcReT") {
				t.Fatalf("%s", text)
			}
		}
	})
}

// Rights that are asked about are those that are judged: with all of NeedsInstance granted none is missing.
func TestNeedsInstanceAreEnough(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f, w := strange(t)
		f.Privileges = Privileges{OK: true}
		for _, n := range slices.Concat(NeedsInstance(f, w), NeedsInstanceRemoval(f, w)) {
			f.grant(n.Paths[0], n.Privileges[0])
		}
		for _, p := range []Preview{Instance(f, w), InstanceRemoval(f, w)} {
			for _, b := range p.Blockers {
				if b.Code == CodePrivileges && b.Subject != "tags" {
					t.Fatalf("%s", b.Found)
				}
			}
		}
	})
}
