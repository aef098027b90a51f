package pvesim

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// What the program of an application container does decides whether it is still there a moment later. Every
// row but the last was measured on a real server.
func TestProgramsThatEnd(t *testing.T) { // hazards B8
	const atOnce, never = "unable to get PID for CT 200 (not running?)", "startup for container '200' failed"
	for name, tc := range map[string]struct {
		files      map[string]string
		entrypoint string
		starts     string
		after      time.Duration // how long it runs; 0 for as long as it may
	}{
		"stays":               {map[string]string{"/run.sh": script("while :; do sleep 1; done")}, "", "OK", 0},
		"ends at once":        {map[string]string{"/run.sh": script("echo no", "exit 1")}, "", atOnce, 0},
		"ends at once, well":  {map[string]string{"/run.sh": script("exit 0")}, "", atOnce, 0},
		"ends after a while":  {map[string]string{"/run.sh": script("sleep 4", "exit 3")}, "", "OK", 4 * time.Second},
		"no script":           {map[string]string{"/run.sh": "\x7fELF exit 1"}, "", "OK", 0},
		"is not there":        {map[string]string{"/other": "x"}, "/gone.sh --flag", never, 0},
		"found by PATH":       {map[string]string{"/opt/bin/app": "x"}, "app --flag", "OK", 0},
		"not found by PATH":   {map[string]string{"/elsewhere/app": "x"}, "app", never, 0},
		"false":               {map[string]string{"/x": "x"}, "/bin/false", atOnce, 0},
		"several short naps":  {map[string]string{"/run.sh": script("sleep 0.5", "sleep 0.5", "exit 1")}, "", "OK", time.Second},
		"a file with no text": {map[string]string{"/run.sh": ""}, "", "OK", 0},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1700000000, 0)
			d := NewDemoWith(Options{Now: func() time.Time { return now }})
			c := newClient(t, d.Cluster, d.RootToken)
			must(d.AddTemplate("pve1", "local:vztmpl/app.tar", 1<<20, Template{Files: tc.files, OCI: &OCIImage{
				Entrypoint: []string{"/run.sh"}, Env: []string{"PATH=/opt/bin:/bin"},
			}}))
			c.ends("OK", "POST", "/nodes/pve1/lxc", "vmid=200", "ostemplate=local:vztmpl/app.tar", "rootfs=local-lvm:1", "ostype=unmanaged")
			if tc.entrypoint != "" {
				c.ok("PUT", web200+"/config", "entrypoint="+tc.entrypoint)
			}
			c.ends(tc.starts, "POST", web200+"/status/start")
			running := func(want bool) {
				t.Helper()
				if got := d.Running(200); got != want {
					t.Errorf("running: %v", got)
				}
			}
			running(tc.starts == "OK")
			if tc.starts != "OK" || tc.after == 0 {
				now = now.Add(24 * time.Hour)
				running(tc.starts == "OK")
				return
			}
			c.ok("PUT", web200+"/config", "env=LATER=1")
			now = now.Add(tc.after - time.Millisecond)
			running(true)
			now = now.Add(time.Millisecond)
			running(false)
			// it is stopped as any other is, and says nothing of why
			if got := d.Config(200)["env"]; got != "LATER=1" {
				t.Errorf("what was pending did not take effect: env %q", got)
			}
			if body := string(c.ok("GET", web200+"/status/current")); !strings.Contains(body, `"status":"stopped"`) || strings.Contains(body, "exit") {
				t.Errorf("status: %s", body)
			}
			if body := string(c.ok("GET", web200+"/interfaces")); body != "null" {
				t.Errorf("addresses of a stopped container: %s", body)
			}
			c.ends("OK", "POST", web200+"/status/start")
			running(true)
		})
	}
}

// A program writes into the volume that is mounted, and what it prints can be listened to.
func TestProgramsWriteIntoVolumes(t *testing.T) {
	var printed []string
	d := NewDemoWith(Options{Console: func(vmid int, line string) { printed = append(printed, itoa(vmid)+" "+line) }})
	c := newClient(t, d.Cluster, d.RootToken)
	must(d.AddTemplate("pve1", "local:vztmpl/app.tar", 1<<20, Template{
		Files: map[string]string{"/run.sh": script("cat /data/log", `echo "version 1" >> /data/log`, "cat /data/log", "echo ready")},
		OCI:   &OCIImage{Entrypoint: []string{"/run.sh"}},
	}))
	c.ends("OK", "POST", "/nodes/pve1/lxc", "vmid=200", "ostemplate=local:vztmpl/app.tar", "rootfs=local-lvm:1", "mp0=local-lvm:1,mp=/data", "ostype=unmanaged")
	c.ends("OK", "POST", web200+"/status/start")
	c.ends("OK", "POST", web200+"/status/stop")
	d.SetConfig(200, "mp0", d.VolumeOf(200, "mp0")+",mp=/data,ro=1")
	c.ends("OK", "POST", web200+"/status/start")
	volume, _ := d.Volume(d.VolumeOf(200, "mp0"))
	if volume.Content["/log"] != "version 1\n" {
		t.Errorf("the volume holds %q", volume.Content)
	}
	want := []string{"200 version 1", "200 ready", "200 version 1", "200 version 1", "200 ready"}
	if !slices.Equal(printed, want) {
		t.Errorf("printed %q", printed)
	}
}

// An archive that was uploaded carries its program with it.
func TestUploadedImagesBringTheirProgram(t *testing.T) {
	const manifest, config = "application/vnd.oci.image.manifest.v1+json", "application/vnd.oci.image.config.v1+json"
	tmpl := templateFrom("app.tar", ociArchive(manifest, config))
	if got := tmpl.Files["/app/run"]; got != "program" {
		t.Fatalf("the program is %q", got)
	}
	d := NewDemo()
	c := newClient(t, d.Cluster, d.RootToken)
	tmpl.Files["/app/run"] = script("exit 1")
	must(d.AddTemplate("pve1", "local:vztmpl/app.tar", 1<<20, *tmpl))
	c.ends("OK", "POST", "/nodes/pve1/lxc", "vmid=200", "ostemplate=local:vztmpl/app.tar", "rootfs=local-lvm:1", "ostype=unmanaged")
	c.ends("unable to get PID for CT 200 (not running?)", "POST", web200+"/status/start")
}
