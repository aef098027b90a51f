package pvesim

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func contentWorld(t *testing.T) *Cluster {
	c := NewCluster(Options{})
	c.AddStorage(StorageSpec{ID: "local", Type: "dir", Content: []string{"images", "rootdir", "vztmpl", "backup"}})
	c.AddStorage(StorageSpec{ID: "cts", Type: "lvmthin", Content: []string{"rootdir"}, Options: map[string]string{"vgname": "vg"}})
	c.AddContainer(ContainerSpec{VMID: 101, Config: map[string]string{"rootfs": "cts:1", "mp0": "local:1,mp=/data"}})
	c.AddContainer(ContainerSpec{VMID: 102, Config: map[string]string{"rootfs": "local:1"}})
	return c
}

func volids(t *testing.T, data json.RawMessage) []string {
	t.Helper()
	var rows []struct{ Volid string }
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range rows {
		out = append(out, r.Volid)
	}
	return out
}

// The disks of a guest that is gone count as images: where a storage is for containers only, nobody
// sees them until a container has that number again.
func TestC4OrphansAreInvisibleOnContainerStorages(t *testing.T) {
	c := contentWorld(t)
	k := newClient(t, c, c.AddToken("root@pam", "all", nil))
	list := func() []string { return volids(t, k.ok("GET", "/nodes/pve1/storage/cts/content", "vmid=101")) }
	if got := list(); !slices.Equal(got, []string{"cts:vm-101-disk-0"}) {
		t.Fatalf("with its owner: %v", got)
	}
	c.RemoveGuest(101)
	if err := c.AddVolume("pve1", "cts:vm-101-disk-0", mib); err != nil {
		t.Fatal(err)
	}
	if got := list(); len(got) != 0 {
		t.Errorf("without its owner: %v", got)
	}
	c.AddContainer(ContainerSpec{VMID: 101, Config: map[string]string{"rootfs": "local:1"}})
	if got := list(); !slices.Equal(got, []string{"cts:vm-101-disk-0"}) {
		t.Errorf("with a new owner: %v", got)
	}
}

func TestContentIsFilteredByRights(t *testing.T) {
	c := contentWorld(t)
	for _, tc := range []struct {
		rights map[string][]string
		want   []string
	}{
		{map[string][]string{"/storage/local": {"Datastore.AllocateSpace"}}, nil},
		{map[string][]string{"/storage/local": {"Datastore.Audit"}}, nil},
		{map[string][]string{"/storage/local": {"Datastore.Audit"}, "/vms/102": {"VM.Config.Disk"}}, []string{"local:102/vm-102-disk-0.raw"}},
		{map[string][]string{"/storage/local": {"Datastore.Allocate", "Datastore.Audit"}}, []string{"local:101/vm-101-disk-0.raw", "local:102/vm-102-disk-0.raw"}},
	} {
		k := newClient(t, c, c.AddToken("someone@pve", fmt.Sprintf("t%d", len(tc.rights)+10*len(tc.want)), tc.rights))
		if got := volids(t, k.ok("GET", "/nodes/pve1/storage/local/content")); !slices.Equal(got, tc.want) {
			t.Errorf("%v: saw %v, want %v", tc.rights, got, tc.want)
		}
	}
}

func TestStoragesThatCannotBeUsed(t *testing.T) {
	c := contentWorld(t)
	c.AddStorage(StorageSpec{ID: "off", Type: "dir", Disabled: true})
	c.AddStorage(StorageSpec{ID: "gone", Type: "nfs", Unreachable: true})
	c.AddStorage(StorageSpec{ID: "unmounted", Type: "dir", Unreachable: true})
	c.AddStorage(StorageSpec{ID: "there", Type: "dir", Nodes: []string{"pve9"}})
	k := newClient(t, c, c.AddToken("root@pam", "all", nil))
	for id, text := range map[string]string{
		"off":       "storage 'off' is disabled",
		"gone":      "storage 'gone' is not online",
		"unmounted": "unable to activate storage 'unmounted' - directory is expected to be a mount point but is not mounted: '/srv/unmounted'",
		"there":     "storage 'there' is not available on node 'pve1'",
		"no":        "storage 'no' does not exist",
	} {
		k.refused(500, text, "GET", "/nodes/pve1/storage/"+id+"/content")
	}
	var st struct{ Enabled, Active int }
	if err := json.Unmarshal(k.ok("GET", "/nodes/pve1/storage/gone/status"), &st); err != nil || st.Enabled != 1 || st.Active != 0 {
		t.Errorf("a storage that does not answer: %+v, %v", st, err)
	}
}

// Proxmox reads an upload's fields in one order and loses what comes in another.
func TestUploadFieldOrder(t *testing.T) {
	file := []byte("not really a template")
	sum := sha256.Sum256(file)
	values := map[string]string{"content": "vztmpl", "checksum-algorithm": "sha256", "checksum": hex.EncodeToString(sum[:])}
	for _, tc := range []struct {
		order  string
		status int
	}{
		{"content checksum-algorithm checksum", 200},
		{"content checksum checksum-algorithm", 400},
		{"checksum-algorithm content checksum", 400},
		{"checksum content checksum-algorithm", 400},
		{"checksum checksum-algorithm content", 400},
		{"checksum-algorithm checksum content", 400},
		{"content", 200},
	} {
		c := contentWorld(t)
		k := newClient(t, c, c.AddToken("root@pam", "all", nil))
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		for f := range strings.FieldsSeq(tc.order) {
			if err := w.WriteField(f, values[f]); err != nil {
				t.Fatal(err)
			}
		}
		part, err := w.CreateFormFile("filename", "dir/new image.tar")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := part.Write(file); err != nil {
			t.Fatal(err)
		}
		w.Close()
		req := k.request("POST", "/nodes/pve1/storage/local/upload")
		req.Body = http.NoBody
		req, err = http.NewRequestWithContext(t.Context(), "POST", req.URL.String(), &b)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "PVEAPIToken="+k.token)
		req.Header.Set("Content-Type", w.FormDataContentType())
		resp, err := k.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, resp); got.status != tc.status {
			t.Errorf("%s: %d %s %v", tc.order, got.status, got.reason, got.errors)
		}
		if _, ok := c.Volume("local:vztmpl/new_image.tar"); ok != (tc.status == 200) {
			t.Errorf("%s: the file is there: %v", tc.order, ok)
		}
	}
}

func TestBackupsAreProtectedAndPruned(t *testing.T) {
	c := contentWorld(t)
	c.AddStorage(StorageSpec{ID: "bk", Type: "dir", Content: []string{"backup"}, Options: map[string]string{"max-protected-backups": "1", "prune-backups": "keep-last=1"}})
	first := c.Backup(101, "bk", "one\ntwo", false)
	second := c.Backup(101, "bk", "", false)
	k := newClient(t, c, c.AddToken("root@pam", "all", nil))
	k.ok("PUT", "/nodes/pve1/storage/bk/content/"+first, "protected=1")
	k.refused(500, "The number of protected backups per guest is limited to 1 on storage 'bk'", "PUT", "/nodes/pve1/storage/bk/content/"+second, "protected=1")
	var rows []struct {
		Volid, Notes string
		Protected    int
	}
	if err := json.Unmarshal(k.ok("GET", "/nodes/pve1/storage/bk/content"), &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2 || rows[0].Protected+rows[1].Protected != 1 {
		t.Fatalf("listed %+v", rows)
	}
	for _, r := range rows {
		if r.Volid == first && r.Notes != "one" {
			t.Errorf("the list shows notes %q", r.Notes)
		}
	}
	if exit := k.task("DELETE", "/nodes/pve1/storage/bk/content/"+first); exit != "cannot remove protected volume 'backup/"+strings.TrimPrefix(first, "bk:backup/")+"' on 'bk'" {
		t.Errorf("deleting a protected backup: %s", exit)
	}
	third := c.Backup(101, "bk", "", false)
	if exit := k.task("DELETE", "/nodes/pve1/storage/bk/prunebackups"); exit != "OK" {
		t.Fatal(exit)
	}
	if got := volids(t, k.ok("GET", "/nodes/pve1/storage/bk/content")); !slices.Contains(got, first) || slices.Contains(got, second) || !slices.Contains(got, third) {
		t.Errorf("after pruning: %v", got)
	}
}
