package preview

import (
	"slices"
	"testing"

	"github.com/pvrx/terraform-provider-pvrx/internal/guest"
)

// instanceReason is one way to make a code fire on an application container whose update, or whose removal, is sound otherwise.
type instanceReason struct {
	reason

	removal bool
}

// installing turns the facts of an update into those of an install.
func installing(change func(f *Facts, w *Want)) func(f *Facts, w *Want) {
	return func(f *Facts, w *Want) {
		*f, *w = vaultInstall()
		change(f, w)
	}
}

func instanceReasons() []instanceReason {
	update := func(code Code, name string, change func(f *Facts, w *Want), also ...Code) instanceReason {
		return instanceReason{reason: reason{code: code, name: name, make: change, also: also}}
	}
	removal := func(code Code, name string, change func(f *Facts, w *Want), also ...Code) instanceReason {
		return instanceReason{reason: reason{code: code, name: name, make: change, also: also}, removal: true}
	}
	return slices.Concat(doorReasons(update, removal), wantReasons(update), sharedReasons(update, removal))
}

type makeReason = func(code Code, name string, change func(f *Facts, w *Want), also ...Code) instanceReason

// doorReasons are about whose container it is and how it differs from its contract.
func doorReasons(update, removal makeReason) []instanceReason {
	return []instanceReason{
		update(CodeNotAnInstance, "no contract", func(f *Facts, _ *Want) { f.Journal.Contract = nil }),
		update(CodeNotAnInstance, "reinstalled from a template", func(f *Facts, _ *Want) {
			f.contract(func(c *guest.Contract, _ *guest.Application) { c.Installed.Template = template })
			f.Journal.Contract.App = nil
		}),
		update(CodeNotAnInstance, "a damaged block", func(f *Facts, _ *Want) {
			f.Journal.Contract = nil
			f.Journal.Problems = []guest.Problem{{Kind: guest.ProblemNewer, Block: guest.BlockContract, Sentence: "the contract block in the notes cannot be used: a newer pvrx wrote it"}}
		}),
		update(CodeNotAnInstance, "another repository, unknown to state", func(_ *Facts, w *Want) {
			w.Instance.Create, w.Instance.Image.Repository = true, "ghcr.io/other/app"
		}),
		update(CodeNameMismatch, "another name, unknown to state", func(_ *Facts, w *Want) { w.Instance.Create, w.Name = true, "other" }),
		update(CodeNameMismatch, "a copy with another name", func(f *Facts, _ *Want) {
			copyOf6000(f)
			f.set("hostname", "other")
		}),
		update(CodeTargetInUse, "a copy, unknown to state", func(f *Facts, w *Want) {
			copyOf6000(f)
			w.Instance.Create = true
		}),
		update(CodeDuplicateIdentity, "a copy beside the original", func(f *Facts, _ *Want) {
			copyOf6000(f)
			f.Instances.Value = []OtherInstance{{VMID: 6000, ID: identity}}
		}),
		update(CodeDuplicateIdentity, "two originals", func(f *Facts, _ *Want) {
			f.Instances.Value = []OtherInstance{{VMID: 6000, ID: identity}, {VMID: 6001, ID: identity}}
		}),
		update(CodeGuestsUnseen, "a copy, and the original cannot be looked for", func(f *Facts, _ *Want) {
			copyOf6000(f)
			f.Instances = Known[[]OtherInstance]{Why: "CT 6000 could not be read"}
		}),
		update(CodeContractDiffers, "restored over itself", func(_ *Facts, w *Want) { w.Instance.Known, w.Instance.KnownAt = "op-6001-20261203-cccc", 1796000001 }),
		update(CodeContractDiffers, "rolled back to a snapshot", func(f *Facts, _ *Want) {
			f.set("env", environment("PATH=/usr/bin", "NGINX_VERSION=1.27", "TOKEN="+secret, guest.ContractVariable+"=op-6001-20261101-0000"))
		}),
		update(CodeContractDiffers, "no id in the environment", func(f *Facts, _ *Want) {
			f.set("env", environment("PATH=/usr/bin", "NGINX_VERSION=1.27", "TOKEN="+secret))
		}),
		update(CodeContractDiffers, "a key", func(f *Facts, _ *Want) { f.set("timezone", "host") }),
		update(CodeContractDiffers, "a volume is gone", func(f *Facts, _ *Want) { f.unset("mp0") }),
		update(CodeContractDiffers, "a volume is mounted elsewhere", func(f *Facts, w *Want) {
			f.set("mp0", "local-lvm:vm-6001-disk-1,mp=/elsewhere,backup=1,size=8G")
		}),
		update(CodeContractDiffers, "a volume by hand", func(f *Facts, _ *Want) {
			f.set("mp1", "local-lvm:vm-6001-disk-2,mp=/more,size=1G")
			f.stored("local-lvm:vm-6001-disk-2", 6001, guest.GiB)
		}),
		update(CodeContractDiffers, "a network of the contract", func(f *Facts, w *Want) {
			f.set("net0", "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:60:77,ip=dhcp,type=veth")
			delete(w.Instance.Settings, "net0")
			f.contract(func(_ *guest.Contract, app *guest.Application) { app.Set = nil })
		}),
		update(CodeContractDiffers, "the entrypoint", func(f *Facts, _ *Want) { f.set("entrypoint", "/bin/sh") }),
		update(CodeContractDiffers, "a variable by hand", func(f *Facts, _ *Want) { f.set("env", f.Guest.Config.Values["env"]+"\x00DEBUG=1") }),
		update(CodeContractDiffers, "a variable of the image is gone", func(f *Facts, _ *Want) {
			f.set("env", environment("PATH=/usr/bin", "TOKEN="+secret, guest.ContractVariable+"="+identity))
		}),
		removal(CodeContractDiffers, "another contract than state's", func(_ *Facts, w *Want) { w.Instance.Known = "op-6001-20261203-cccc" }),
		removal(CodeNotAnInstance, "no contract", func(f *Facts, _ *Want) { f.Journal.Contract = nil }),
		removal(CodeNotAnInstance, "a copy", func(f *Facts, _ *Want) { copyOf6000(f) }),
		removal(CodeNotAnInstance, "another repository", func(_ *Facts, w *Want) { w.Instance.Image.Repository = "ghcr.io/other/app" }),
		removal(CodeNameMismatch, "another name", func(_ *Facts, w *Want) { w.Name = "other" }),
		removal(CodeDeletionProtected, "protected", func(_ *Facts, w *Want) { w.Instance.Protected = true }),
	}
}

// wantReasons are about what the configuration asks for.
func wantReasons(update makeReason) []instanceReason {
	return []instanceReason{
		update(CodeGuestMissing, "gone since the last refresh", installing(func(_ *Facts, w *Want) { w.Instance.Create = false })),
		update(CodeNodeRequired, "nowhere", installing(func(f *Facts, w *Want) { f.Guest.Node, w.Instance.Node = "", "" })),
		update(CodeNodeOffline, "node away", installing(func(f *Facts, _ *Want) { f.NodeOnline = false })),
		update(CodeTargetInUse, "volumes of an earlier guest", installing(func(f *Facts, _ *Want) { f.stored("local-lvm:vm-6001-disk-7", 6001, guest.GiB) })),
		update(CodeNeedsReconcile, "an install that stopped", installing(func(f *Facts, _ *Want) {
			f.Elsewhere = &guest.Journal{Operation: "op-6001-20261201-dddd", Kind: "install", Guest: 6001, State: guest.JournalStuck, App: &guest.Deployment{}}
		})),
		update(CodeNeedsReconcile, "an install that left its container", func(f *Facts, w *Want) {
			w.Instance.Create = true
			f.Journal.Contract = nil
			f.Journal.Journal = &guest.Journal{Operation: "op-6001-20261201-dddd", Kind: "install", Guest: 6001, Holder: 6001, State: guest.JournalStuck, App: &guest.Deployment{}}
		}),
		update(CodeStorageAmbiguous, "two for rootfs", installing(func(f *Facts, _ *Want) { f.edit("tank", func(s *guest.Storage) { s.Content = []string{"rootdir"} }) })),
		update(CodeStorageAmbiguous, "two for archives", installing(func(f *Facts, _ *Want) { f.edit("tank", func(s *guest.Storage) { s.Content = []string{"vztmpl"} }) })),
		update(CodeStorageAmbiguous, "none for archives", installing(func(f *Facts, _ *Want) { f.edit("local", func(s *guest.Storage) { s.Content = nil }) })),
		update(CodeStorageUnavailable, "wanted rootfs storage", installing(func(_ *Facts, w *Want) { w.Rootfs.Storage = "nowhere" }), CodePrivileges),
		update(CodeStorageUnavailable, "wanted archive storage", func(_ *Facts, w *Want) { w.Instance.ArchiveStorage = "tank" }, CodePrivileges),
		update(CodeStorageUnavailable, "wanted volume storage", func(_ *Facts, w *Want) {
			w.Instance.Volumes["/log"] = VolumeWant{Storage: "tank", Size: guest.GiB}
		}),
		update(CodeImageUnresolvable, "registry down", func(_ *Facts, w *Want) {
			w.Instance.Image.Digest, w.Instance.Image.Why = "", "the registry does not answer"
		}),
		update(CodeImageUnresolvable, "registry down at install", installing(func(_ *Facts, w *Want) {
			w.Instance.Image.Digest, w.Instance.Image.Why = "", "429 Too Many Requests"
		})),
		update(CodeImageVolumeUnbacked, "a new VOLUME", func(_ *Facts, w *Want) { w.Instance.Image.Declared = []string{"/data", "/cache"} }),
		update(CodeNotesTooLong, "a long description at install", installing(func(_ *Facts, w *Want) {
			w.Instance.Settings["description"] = string(slices.Repeat([]rune{'ä'}, guest.NotesLimit-JournalBudget+1))
		})),
		update(CodeNotesTooLong, "a long description", func(_ *Facts, w *Want) {
			w.Instance.Settings["description"] = string(slices.Repeat([]rune{'ä'}, guest.NotesLimit-JournalBudget+1))
		}),
		update(CodeNotesTooLong, "a long description, nothing else", func(_ *Facts, w *Want) {
			w.Instance.Image.Digest = digestOld
			w.Instance.Settings["description"] = string(slices.Repeat([]rune{'ä'}, guest.NotesLimit-contractBudget+1))
		}),
		update(CodeNotesTooLong, "long notes of a copy", func(f *Facts, _ *Want) {
			copyOf6000(f)
			f.Journal.User = string(slices.Repeat([]rune{'ä'}, guest.NotesLimit-contractBudget+1))
		}),
		update(CodeVolumeShrink, "7 GiB", func(_ *Facts, w *Want) {
			w.Instance.Volumes["/data"] = VolumeWant{Size: 7 * guest.GiB, SizeText: "7GiB"}
		}),
		update(CodeVolumeStorage, "tank", func(_ *Facts, w *Want) { w.Instance.Volumes["/data"] = VolumeWant{Storage: "tank"} }),
		update(CodeVolumeUnconfigured, "left out", func(_ *Facts, w *Want) { w.Instance.Volumes = nil }),
		update(CodeSizeUnreadable, "a volume without a size", func(f *Facts, _ *Want) {
			f.stored("local-lvm:vm-6001-disk-1", 6001, 0)
			f.set("mp0", "local-lvm:vm-6001-disk-1,mp=/data,backup=1")
		}),
		update(CodeRootfsShrink, "2 GiB", func(_ *Facts, w *Want) { w.Rootfs.Size = 2 * guest.GiB }),
		update(CodeSpace, "parking guest and archive", func(f *Facts, _ *Want) { f.edit("local-lvm", func(s *guest.Storage) { s.Available = guest.GiB }) }),
		update(CodeSpace, "archive", func(f *Facts, _ *Want) { f.edit("local", func(s *guest.Storage) { s.Available = guest.MiB }) }),
		update(CodeNotRecreatable, "a host directory", func(_ *Facts, w *Want) { w.Instance.HostPaths = map[string]HostPath{"/media": {Source: "/srv/media"}} }),
		update(CodeNotRecreatable, "a device", func(_ *Facts, w *Want) { w.Instance.Devices = map[string]string{"dev0": "/dev/dri/renderD128"} }),
		update(CodeNotRecreatable, "a device at install", installing(func(_ *Facts, w *Want) { w.Instance.Devices = map[string]string{"dev0": "/dev/fuse"} })),
		update(CodeNotRecreatable, "features", func(_ *Facts, w *Want) { w.Instance.Settings["features"] = "nesting=1,fuse=1" }),
		update(CodeNotRecreatable, "a raw setting of somebody's", func(f *Facts, _ *Want) {
			f.Guest.Config.Raw = append(slices.Clone(f.Guest.Config.Raw), [2]string{"lxc.apparmor.profile", "unconfined"})
		}),
		update(CodeNotRecreatable, "a device no longer configured", func(f *Facts, _ *Want) {
			f.set("dev0", "/dev/fuse")
			f.contract(func(_ *guest.Contract, app *guest.Application) { app.Keys["dev0"] = "/dev/fuse" })
		}),
		update(CodeIDMapDiffers, "a privileged one", func(f *Facts, _ *Want) {
			f.set("unprivileged", "0")
			f.contract(func(_ *guest.Contract, app *guest.Application) { app.Keys["unprivileged"] = "0" })
		}, CodePrivileges),
		update(CodeEraseSpent, "the same volume again", func(f *Facts, w *Want) {
			w.Instance.Volumes = nil
			erase(w, "mp0", "local-lvm:vm-6001-disk-1")
			w.Spent = map[string]string{"mp0": "local-lvm:vm-6001-disk-1"}
		}),
	}
}

// sharedReasons are some of those that instances have in common with reinstalls: that each question is asked.
func sharedReasons(update, removal makeReason) []instanceReason {
	var all []instanceReason
	for _, add := range []makeReason{update, removal} {
		all = append(all,
			add(CodeProtected, "set", func(f *Facts, _ *Want) { f.set("protection", "1") }),
			add(CodeLocked, "backup", func(f *Facts, _ *Want) { f.set("lock", "backup") }),
			add(CodeTaskRunning, "a backup", func(f *Facts, _ *Want) { f.Tasks.Value = []Task{{Type: "vzdump", ID: "6001"}} }),
			add(CodeSnapshotsPresent, "one", func(f *Facts, _ *Want) { f.snapshot("daily") }),
			add(CodeHAManaged, "started", func(f *Facts, _ *Want) {
				f.HA.Value = HA{Managed: true, State: "started"}
				f.grant("/", "Sys.Console")
			}),
			add(CodeReplicated, "job", func(f *Facts, _ *Want) { f.Replicated.Value = true }),
			add(CodeProtectedBackup, "somebody's", func(f *Facts, _ *Want) {
				f.Backups.Value = []guest.StoredVolume{{ID: volumeID("pbs:backup/ct/6001/2026-11-01T00:00:00Z"), Protected: true}}
			}),
			add(CodeVolumeShared, "another guest", func(f *Facts, _ *Want) {
				f.Users[volumeID("local-lvm:vm-6001-disk-1")] = []User{{VMID: 6002, Kind: guest.KindContainer, Key: "mp4"}}
			}),
			add(CodeNotesTooLong, "long notes", func(f *Facts, _ *Want) { f.Journal.User = string(slices.Repeat([]rune{'ä'}, guest.NotesLimit)) }),
			add(CodePrivileges, "missing", func(f *Facts, _ *Want) { f.revoke("/vms/6001", "VM.Allocate") }),
			add(CodeDuplicate, "twice", func(f *Facts, _ *Want) { f.Duplicate = true }),
			add(CodeGuestWrongType, "a VM", func(f *Facts, _ *Want) { f.WrongType = true }),
			add(CodeOperationInFlight, "another run", func(f *Facts, _ *Want) {
				f.Elsewhere = &guest.Journal{Operation: "op-6001-20261201-dddd", Kind: "update", Guest: 6001, State: guest.JournalDoing, Until: f.Now + 60, App: &guest.Deployment{}}
			}),
		)
	}
	return append(all,
		update(CodePendingChanges, "somebody's", func(f *Facts, _ *Want) { f.Guest.Pending = []guest.Change{{Key: "timezone", Value: "host"}} }),
		update(CodeBackupWindow, "soon", func(f *Facts, _ *Want) { f.Jobs.Value = []BackupJob{{ID: "nightly", NextRun: f.Now + 60, All: true}} }),
		update(CodeParkingUnavailable, "none", func(f *Facts, _ *Want) { f.Parking = Parking{Why: "all in use"} }),
		update(CodePrivileges, "uploading", func(f *Facts, _ *Want) { f.revoke("/storage/local", "Datastore.AllocateTemplate") }),
		update(CodePrivileges, "the bridge", func(_ *Facts, w *Want) { w.Instance.Settings["net0"] = "name=eth0,bridge=vmbr9,ip=dhcp" }),
		update(CodePrivileges, "a reserved tag", func(f *Facts, w *Want) {
			f.RegisteredTags = []string{"dmz"}
			w.Instance.Settings["tags"] = "dmz;prod;web"
		}),
		update(CodePrivileges, "only through the guest", func(f *Facts, _ *Want) { delete(f.Privileges.Lasting["/vms/6001"], "VM.Allocate") }),
	)
}

// Every code fires when its reason is there and not otherwise, alone, and is waived by allow exactly when it may be.
func TestEveryInstanceCodeInBothDirections(t *testing.T) {
	t.Parallel()
	for _, r := range instanceReasons() {
		name := "update/"
		judge := Instance
		if r.removal {
			name, judge = "removal/", InstanceRemoval
		}
		t.Run(name+r.code.String()+"/"+r.name, func(t *testing.T) {
			t.Parallel()
			f, w := vaultUpdate()
			if p := judge(f, w); len(p.Blockers) > 0 {
				t.Fatalf("a sound one is blocked by %v", codesOf(p.Blockers))
			}
			r.make(&f, &w)
			want := append([]Code{r.code}, r.also...)
			slices.Sort(want)
			p := judge(f, w)
			wantOnly(t, p, want...)
			if p.Operation == 0 {
				t.Error("nothing seems due")
			}
			b := find(t, p.Blockers, r.code)
			if b.Title == "" || b.Found == "" || b.Remedy == "" || b.Subject == "" {
				t.Errorf("incomplete: %+v", b)
			}
			w.Allow = append(w.Allow, r.code.String())
			p = judge(f, w)
			blocked, waived := has(p.Blockers, r.code), has(p.Waived, r.code)
			if blocked == r.code.Waivable() || waived != r.code.Waivable() {
				t.Errorf("waivable %t: blocked %t, waived %t", r.code.Waivable(), blocked, waived)
			}
		})
	}
}

// Codes that facts on the edge must not raise.
func TestInstanceCodesStaySilent(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(f *Facts, w *Want){
		"ours, unknown to state": func(_ *Facts, w *Want) { w.Instance.Create = true },
		"two storages, one is used": func(f *Facts, _ *Want) {
			f.edit("tank", func(s *guest.Storage) { s.Content = []string{"rootdir", "vztmpl"} })
		},
		"a parent covers a VOLUME": func(_ *Facts, w *Want) { w.Instance.Image.Declared = []string{"/data/db", "/data/"} },
		"an old VOLUME, still uncovered": func(f *Facts, w *Want) {
			w.Instance.Image.Declared = []string{"/data", "/cache"}
			f.contract(func(_ *guest.Contract, app *guest.Application) { app.Declared = []string{"/data", "/cache/"} })
		},
		"an image that was not read": func(_ *Facts, w *Want) { w.Instance.Image.Read, w.Instance.Image.Declared = false, []string{"/cache"} },
		"a host directory, as root": func(f *Facts, w *Want) {
			f.Login.RootTicket = true
			w.Instance.HostPaths = map[string]HostPath{"/media": {Source: "/srv/media"}}
		},
		"the archives of others": func(f *Facts, _ *Want) {
			f.Instances.Value = []OtherInstance{{VMID: 6002, ID: "x", Archives: []string{archiveOld}}}
		},
		"others cannot be seen":        func(f *Facts, _ *Want) { f.Instances = Known[[]OtherInstance]{Why: "403"} },
		"no right to delete archives":  func(f *Facts, _ *Want) { f.revoke("/storage/local", "Datastore.Allocate") },
		"erase names a configured one": func(_ *Facts, w *Want) { erase(w, "mp0", "*") },
		"an unconfigured volume goes":  func(_ *Facts, w *Want) { w.Instance.Volumes = nil; erase(w, "mp0", "local-lvm:vm-6001-disk-1") },
		"an unconfigured one is gone":  func(f *Facts, w *Want) { w.Instance.Volumes = nil; f.unset("mp0") },
		"a raw setting, dropped": func(f *Facts, w *Want) {
			f.Guest.Config.Raw = append(slices.Clone(f.Guest.Config.Raw), [2]string{"lxc.a", "b"})
			w.Drop = []string{"lxc.a"}
		},
		"the same size in other units": func(_ *Facts, w *Want) { w.Instance.Volumes["/data"] = VolumeWant{Size: 8*guest.GiB - 1} },
		"a configured key differs":     func(f *Facts, w *Want) { f.set("features", "nesting=1"); w.Instance.Settings["features"] = "nesting=1" },
		"a configured variable differs": func(f *Facts, w *Want) {
			f.set("env", f.Guest.Config.Values["env"]+"\x00X=1")
			w.Instance.Environment["X"] = "2"
		},
		"state knows an older contract": func(_ *Facts, w *Want) { w.Instance.Known, w.Instance.KnownAt = "op-6001-20261001-0000", 1 },
		"rights through the pool at install": installing(func(f *Facts, w *Want) {
			w.Instance.Settings["pool"] = "apps"
			f.Privileges.Held["/pool/apps"], f.Privileges.Held["/vms/6001"] = f.Privileges.Held["/vms/6001"], nil
		}),
		"the environment cannot be read": func(f *Facts, _ *Want) { f.unset("env"); f.EnvSeen = false },
		"the environment is masked":      func(f *Facts, _ *Want) { f.set("env", hiddenEnvironment) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, w := vaultUpdate()
			change(&f, &w)
			wantOnly(t, Instance(f, w))
		})
	}
}
