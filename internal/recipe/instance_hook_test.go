package recipe_test

import (
	"net/http"
	"sync"
)

// hooked does something once, right before the first request that is looked for.
type hooked struct {
	over http.RoundTripper
	when func(request string) bool
	do   func()
	once sync.Once
}

func (h *hooked) RoundTrip(req *http.Request) (*http.Response, error) {
	if h.when(req.Method + " " + req.URL.Path) {
		h.once.Do(h.do)
	}
	return h.over.RoundTrip(req)
}
