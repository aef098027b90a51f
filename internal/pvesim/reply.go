package pvesim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// header is what goes above the body.
func (r reply) header() http.Header {
	h := http.Header{}
	h.Set("Server", "pve-api-daemon/3.0")
	h.Set("Cache-Control", "max-age=0")
	if len(r.body) > 0 {
		h.Set("Content-Type", "application/json;charset=UTF-8")
	}
	return h
}

// response makes the reply an HTTP answer whose status line carries Proxmox's words.
func (r reply) response(req *http.Request) *http.Response {
	return &http.Response{
		Status: strconv.Itoa(r.status) + " " + statusText(r.reason), StatusCode: r.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: r.header(), Body: io.NopCloser(bytes.NewReader(r.body)), ContentLength: int64(len(r.body)),
		Request: req,
	}
}

// write sends the reply down a connection.
func (r reply) write(w io.Writer, req *http.Request) error {
	resp := r.response(req)
	defer resp.Body.Close()
	return resp.Write(w)
}

// statusText is a reason phrase that can stand in a status line.
func statusText(s string) string {
	if i := strings.IndexAny(s, "\r\n"); i >= 0 {
		s = s[:i]
	}
	return s
}

func mustJSON(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("pvesim: answer that is no JSON: %v", err))
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

func errorReply(err error) reply {
	e := asAPIError(err)
	out := reply{status: e.status, reason: firstLine(e.text)}
	if e.bare {
		return out
	}
	message := e.text
	if !e.exact && !strings.HasSuffix(message, "\n") {
		message += "\n"
	}
	env := map[string]any{"data": nil, "message": message}
	if len(e.fields) > 0 {
		env["errors"] = e.fields
	}
	out.body = mustJSON(env)
	return out
}
