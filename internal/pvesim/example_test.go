package pvesim_test

import (
	"fmt"
	"io"
	"net/http"

	"github.com/pvrx/terraform-provider-pvrx/internal/pvesim"
)

// A test asks the server without any network, changes the world behind its back, and lets a request
// go wrong.
func Example() {
	demo := pvesim.NewDemo()
	srv := pvesim.NewServer(demo.Cluster)
	start := func() {
		req, err := http.NewRequest("POST", "https://pve1:8006/api2/json/nodes/pve1/lxc/5003/status/start", nil)
		if err != nil {
			panic(err)
		}
		req.Header.Set("Authorization", "PVEAPIToken="+demo.Token)
		resp, err := srv.Client().Do(req)
		if err != nil {
			fmt.Println("no answer; running:", demo.Running(5003))
			return
		}
		defer resp.Body.Close()
		if _, err := io.ReadAll(resp.Body); err != nil {
			panic(err)
		}
		fmt.Println(resp.Status)
	}
	demo.SetNodeOnline("pve1", false)
	start()
	demo.SetNodeOnline("pve1", true)
	srv.Inject(pvesim.Fault{Kind: pvesim.FaultLoseAnswer, Method: "POST"})
	start()
	start()
	fmt.Println(srv.Mutations(), "requests could have changed something")

	// Output:
	// 595 No route to host
	// no answer; running: true
	// 500 CT 5003 already running
	// 3 requests could have changed something
}
