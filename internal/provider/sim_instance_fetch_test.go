package provider

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
)

// Whatever goes wrong on the way from the registry to the storage goes wrong before anything is stopped, and says what it is.
func TestInstanceUpdateWhoseImageDoesNotArrive(t *testing.T) {
	t.Parallel()
	status := func(code int, header ...string) func(http.ResponseWriter, []byte) {
		return func(w http.ResponseWriter, _ []byte) {
			if len(header) == 2 {
				w.Header().Set(header[0], header[1])
			}
			w.WriteHeader(code)
		}
	}
	everyCLI(t, func(t *testing.T, c cli) {
		h := newHarbour(t, c)
		h.installed()
		h.write("main.tf", h.block("2"))
		before := h.world.Config(shopID)
		for _, trouble := range []struct {
			about string
			spoil func(http.ResponseWriter, []byte)
			fault *pvesim.Fault
			says  string
		}{
			{about: "a damaged layer", says: "damaged", spoil: func(w http.ResponseWriter, layer []byte) {
				layer[len(layer)/2] ^= 1
				_, _ = w.Write(layer)
			}},
			{about: "a layer that breaks off", says: "annot fetch", spoil: func(w http.ResponseWriter, layer []byte) {
				w.Header().Set("Content-Length", strconv.Itoa(len(layer)))
				_, _ = w.Write(layer[:len(layer)/2])
			}},
			{about: "too many requests", says: "429", spoil: status(http.StatusTooManyRequests, "Retry-After", "3600")},
			{about: "a registry that fails", says: "500", spoil: status(http.StatusInternalServerError)},
			{about: "a full storage", says: "No space left on device", fault: &pvesim.Fault{
				Kind: pvesim.FaultTaskFail, Method: "POST", Path: "/upload$", Text: "No space left on device",
			}},
			{about: "an upload that is refused", says: "disk is full", fault: &pvesim.Fault{
				Kind: pvesim.FaultStatus, Method: "POST", Path: "/upload$", Status: 500, Text: "disk is full",
			}},
			{about: "an upload that is cut off", says: "upload", fault: &pvesim.Fault{Kind: pvesim.FaultReset, Method: "POST", Path: "/upload$", Times: -1}},
		} {
			h.plan(2)
			h.shelf.spoiled(trouble.spoil)
			if trouble.fault != nil {
				h.server.Inject(*trouble.fault)
			}
			h.server.ResetRequests()
			began := time.Now()
			out := h.apply(1)
			h.server.ClearFaults()
			h.shelf.spoiled(nil)
			if !strings.Contains(out.flat(), trouble.says) {
				t.Errorf("%s: the output does not say %q:\n%s", trouble.about, trouble.says, out.text)
			}
			for _, r := range h.server.Requests() {
				if r.Mutates() && !strings.HasSuffix(r.Path, "/upload") {
					t.Errorf("%s: the server saw %s %s", trouble.about, r.Method, r.Path)
				}
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("%s: the apply took %s", trouble.about, took)
			}
			after := h.world.Config(shopID)
			for key, value := range before {
				if after[key] != value {
					t.Errorf("%s: %s = %q, was %q", trouble.about, key, after[key], value)
				}
			}
			if !h.world.Running(shopID) {
				t.Fatalf("%s: the container was stopped", trouble.about)
			}
		}
		h.plan(2)
		h.apply(0)
		h.plan(0)
	})
}
