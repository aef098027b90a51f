package pvesim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// readParams collects the parameters of query and body.
func (k *call) readParams(req *http.Request) error {
	k.params, k.lists, k.boolParams = map[string]string{}, map[string][]string{}, map[string]bool{}
	query, err := parseForm(req.URL.RawQuery)
	if err != nil {
		return &apiError{status: http.StatusBadRequest, text: "bad request", bare: true}
	}
	k.addForm(query)
	typ, _, _ := strings.Cut(req.Header.Get("Content-Type"), ";")
	if typ == "multipart/form-data" && strings.HasSuffix(k.path, "/upload") {
		return k.readUpload(req)
	}
	var body []byte
	if req.Body != nil {
		if body, err = io.ReadAll(io.LimitReader(req.Body, maxBody+1)); err != nil {
			return &apiError{status: http.StatusBadRequest, text: "bad request", bare: true}
		}
	}
	if len(body) == 0 {
		return nil
	}
	if req.Method == http.MethodGet || req.Method == http.MethodDelete {
		return &apiError{status: http.StatusNotImplemented, text: fmt.Sprintf("Unexpected content for method '%s'", req.Method)}
	}
	if len(body) > maxBody {
		return &apiError{status: http.StatusNotImplemented, text: "for data too large"}
	}
	switch typ {
	case "application/json":
		return k.addJSON(body)
	case "application/x-www-form-urlencoded", "":
		form, err := parseForm(string(body))
		if err != nil {
			return &apiError{status: http.StatusBadRequest, text: "bad request", bare: true}
		}
		k.addForm(form)
		return nil
	default:
		return &apiError{status: http.StatusNotImplemented, text: fmt.Sprintf("upload Content-Type '%s' not implemented", typ)}
	}
}

type formPair struct{ key, value string }

func (k *call) addForm(form []formPair) {
	for _, p := range form {
		k.lists[p.key] = append(k.lists[p.key], p.value)
	}
	for key, vals := range k.lists {
		k.params[key] = strings.Join(vals, "\x00")
	}
}

func (k *call) addJSON(body []byte) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var m map[string]any
	if err := dec.Decode(&m); err != nil {
		return &apiError{status: http.StatusBadRequest, text: "bad request", bare: true}
	}
	for key, v := range m {
		switch v := v.(type) {
		case string:
			k.params[key] = v
		case json.Number:
			k.params[key] = v.String()
		case bool:
			k.params[key] = "0"
			if v {
				k.params[key] = "1"
			}
			k.boolParams[key] = true
		case []any:
			for _, e := range v {
				k.lists[key] = append(k.lists[key], fmt.Sprint(e))
			}
			k.params[key] = strings.Join(k.lists[key], "\x00")
		default:
			return paramError(key, "got unexpected value")
		}
	}
	return nil
}

// checkJSONTypes refuses a JSON boolean where the schema wants anything but a boolean.
func (k *call) checkJSONTypes() error {
	for name := range k.boolParams {
		if p := k.op.arg(name); p != nil && p.Type != "boolean" {
			return paramError(name, fmt.Sprintf("type check ('%s') failed - got '%s'", p.Type, k.params[name]))
		}
	}
	return nil
}
