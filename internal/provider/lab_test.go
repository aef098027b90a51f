package provider

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
)

// lab is a cluster that scenarios work in through Proxmox's API alone, so that they run on the simulated cluster and, with
// PVRX_TEST_ENDPOINT and its companions set, on a real one.
type lab struct {
	t      *testing.T
	client *http.Client

	endpoint, token, node, template string
	storages                        []string
	first, parkingFrom, parkingTo   int
	arguments                       string // of the provider block
	real                            bool
	world                           *pvesim.Cluster // nil on a real server
	image                           string          // volume id of content import, "" where there is none

	mu   sync.Mutex
	made []int
	vms  map[int]bool // which of the guests are VMs
}

// server names what a real server needs to be told.
var server = []string{"PVRX_TEST_ENDPOINT", "PVRX_TEST_API_TOKEN", "PVRX_TEST_NODE", "PVRX_TEST_STORAGES", "PVRX_TEST_TEMPLATE", "PVRX_TEST_VMIDS"}

// onServer reports whether scenarios shall run on a real server.
func onServer() bool { return os.Getenv("PVRX_TEST_ENDPOINT") != "" }

// newLab is the simulated cluster, or the real one when the environment names it.
func newLab(t *testing.T) *lab {
	t.Helper()
	if onServer() {
		return serverLab(t)
	}
	demo := pvesim.NewDemo()
	sim := pvesim.NewServer(demo.Cluster)
	endpoint, err := sim.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Close)
	demo.SetRights("pvrx@pve!demo", "/pool", "Pool.Audit")
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(sim.CertificatePEM())
	l := &lab{
		t: t, endpoint: endpoint, token: demo.Token, node: "pve1", template: pvesim.DemoTemplate13, world: demo.Cluster, image: pvesim.DemoImage,
		storages: []string{"local-lvm", "tank"}, first: 8100, parkingFrom: 8150, parkingTo: 8199,
		arguments: fmt.Sprintf("tls = { ca_certificate = %q }", sim.CertificatePEM()),
		client:    &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}},
	}
	t.Cleanup(l.clear)
	return l
}

// serverLab is the server that the environment names. Its tests take turns: they share a range of VMIDs.
func serverLab(t *testing.T) *lab {
	t.Helper()
	for _, name := range server {
		if os.Getenv(name) == "" {
			t.Fatalf("%s is not set: a real server needs %s", name, strings.Join(server, ", "))
		}
	}
	from, to, err := parseRange(os.Getenv("PVRX_TEST_VMIDS"))
	if err != nil || to-from < 3 {
		t.Fatalf("PVRX_TEST_VMIDS: want a range of at least four VMIDs: %v", err)
	}
	insecure := os.Getenv("PVRX_TEST_INSECURE") == "1"
	half := int(from+to) / 2
	l := &lab{
		t: t, real: true, endpoint: strings.TrimRight(os.Getenv("PVRX_TEST_ENDPOINT"), "/"), token: os.Getenv("PVRX_TEST_API_TOKEN"),
		node: os.Getenv("PVRX_TEST_NODE"), template: os.Getenv("PVRX_TEST_TEMPLATE"), storages: strings.Split(os.Getenv("PVRX_TEST_STORAGES"), ","),
		image: os.Getenv("PVRX_TEST_IMPORT_IMAGE"), first: int(from), parkingFrom: half + 1, parkingTo: int(to), arguments: fmt.Sprintf("tls = { insecure = %v }", insecure),
		client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: insecure}}},
	}
	turn.Lock()
	t.Cleanup(turn.Unlock)
	if there := l.guests(); len(there) > 0 {
		t.Fatalf("PVRX_TEST_VMIDS: guests %v are in the range; nothing is done to guests that the tests did not make, so choose an empty one", there)
	}
	t.Cleanup(l.clear)
	return l
}

// turn is held by the one test that works on a real server.
var turn sync.Mutex

// scenario runs a test in a lab with every CLI.
func scenario(t *testing.T, test func(l *lab, ws *workspace)) {
	t.Helper()
	everyCLI(t, func(t *testing.T, c cli) {
		l := newLab(t)
		p := New("test")
		env := attach(t, p)
		ws := newWorkspace(t, c, env)
		ws.write("provider.tf", fmt.Sprintf("provider \"pvrx\" {\n  endpoint = %q\n  api_token = %q\n  parking = { vmids = \"%d-%d\" }\n  %s\n}\n",
			l.endpoint, l.token, l.parkingFrom, l.parkingTo, l.arguments))
		test(l, ws)
	})
}

// call makes one request and waits for the task that it starts. The error holds Proxmox's words.
func (l *lab) call(method, path string, params map[string]string) (json.RawMessage, error) {
	form := url.Values{}
	for key, value := range params {
		form.Set(key, value)
	}
	address, body := l.endpoint+"/api2/json"+path, io.Reader(nil)
	if method == http.MethodGet || method == http.MethodDelete {
		address += "?" + form.Encode()
	} else {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(l.t.Context(), method, address, body)
	if l.t.Context().Err() != nil { // cleaning up
		req, err = http.NewRequest(method, address, body)
	}
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "PVEAPIToken="+l.token)
	if body != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer struct{ Data json.RawMessage }
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s %s: %s %s", method, path, resp.Status, data)
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if upid := word(answer.Data); strings.HasPrefix(upid, "UPID:") {
		return answer.Data, l.await(upid)
	}
	return answer.Data, nil
}

// await follows a task to its end.
func (l *lab) await(upid string) error {
	node := strings.Split(upid, ":")[1]
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		data, err := l.call(http.MethodGet, "/nodes/"+node+"/tasks/"+url.PathEscape(upid)+"/status", nil)
		if err != nil {
			return err
		}
		var status struct{ Status, Exitstatus string }
		if err := json.Unmarshal(data, &status); err != nil {
			return err
		}
		if status.Status == "stopped" {
			if status.Exitstatus == "OK" || strings.HasPrefix(status.Exitstatus, "WARNINGS") {
				return nil
			}
			return fmt.Errorf("task %s: %s", upid, status.Exitstatus)
		}
	}
	return fmt.Errorf("task %s does not end", upid)
}

// must is call for what the scenario cannot do without.
func (l *lab) must(method, path string, params map[string]string) json.RawMessage {
	l.t.Helper()
	data, err := l.call(method, path, params)
	if err != nil {
		l.t.Fatal(err)
	}
	return data
}

// container makes a container of the lab's template with a root file system of 1 GiB and a data volume of 1 GiB, and starts
// it. Keys are added to the request.
func (l *lab) container(name string, keys map[string]string) int {
	l.t.Helper()
	id := l.reserve()
	params := map[string]string{
		"vmid": strconv.Itoa(id), "hostname": name, "ostemplate": l.template, "rootfs": l.storages[0] + ":1", "unprivileged": "1",
		"mp0": l.storages[len(l.storages)-1] + ":1,mp=/srv/data,backup=1", "memory": "256", "swap": "64", "description": "made by a test\n",
	}
	maps.Copy(params, keys)
	l.must(http.MethodPost, "/nodes/"+l.node+"/lxc", params)
	l.must(http.MethodPost, l.path(id)+"/status/start", nil)
	return id
}

// reserve is a VMID of the lab's range for a guest that the scenario, or the provider for it, makes.
func (l *lab) reserve() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := l.first + len(l.made)
	l.made = append(l.made, id)
	return id
}

func (l *lab) path(id int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.vms[id] {
		return fmt.Sprintf("/nodes/%s/qemu/%d", l.node, id)
	}
	return fmt.Sprintf("/nodes/%s/lxc/%d", l.node, id)
}

// config is a guest's configuration without what changes by itself.
func (l *lab) config(id int) map[string]string {
	l.t.Helper()
	var raw map[string]any
	if err := json.Unmarshal(l.must(http.MethodGet, l.path(id)+"/config", map[string]string{"current": "1"}), &raw); err != nil {
		l.t.Fatal(err)
	}
	config := map[string]string{}
	for key, value := range raw {
		if key != "digest" {
			config[key] = fmt.Sprint(value)
		}
	}
	return config
}

// set changes keys of a guest.
func (l *lab) set(id int, keys map[string]string) {
	l.t.Helper()
	l.must(http.MethodPut, l.path(id)+"/config", keys)
}

// guests are the VMIDs of the lab's range that are in use.
func (l *lab) guests() (ids []int) {
	data, err := l.call(http.MethodGet, "/cluster/resources", map[string]string{"type": "vm"})
	if err != nil {
		l.t.Error(err)
		return nil
	}
	var rows []struct {
		VMID int
		Type string
	}
	if err := json.Unmarshal(data, &rows); err != nil {
		l.t.Error(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.vms = map[int]bool{}
	for _, row := range rows {
		if row.VMID >= l.first && row.VMID <= l.parkingTo {
			ids = append(ids, row.VMID)
			l.vms[row.VMID] = row.Type == "qemu"
		}
	}
	slices.Sort(ids)
	return ids
}

// clear removes all that a scenario made, and complains about what it should not have left. The range was empty before.
func (l *lab) clear() {
	for _, id := range l.guests() {
		if !slices.Contains(l.made, id) {
			l.t.Errorf("guest %d is left behind", id)
		}
		// Each may be refused when there is nothing to do; the destroy tells.
		_, _ = l.call(http.MethodPut, l.path(id)+"/config", map[string]string{"protection": "0"})
		_, _ = l.call(http.MethodPost, l.path(id)+"/status/stop", nil)
		if _, err := l.call(http.MethodDelete, l.path(id), map[string]string{"purge": "1"}); err != nil {
			l.t.Errorf("guest %d cannot be removed: %v", id, err)
		}
	}
}

// word is a JSON string, "" for anything else.
func word(data json.RawMessage) (text string) {
	if json.Unmarshal(data, &text) != nil {
		return ""
	}
	return text
}
