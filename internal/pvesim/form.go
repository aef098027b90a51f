package pvesim

import (
	"net/url"
	"strings"
)

// parseForm reads a form or query in the order it was written, duplicates kept.
func parseForm(s string) ([]formPair, error) {
	var out []formPair
	for part := range strings.SplitSeq(s, "&") {
		if part == "" {
			continue
		}
		key, value, _ := strings.Cut(part, "=")
		k, err := url.QueryUnescape(key)
		if err != nil {
			return nil, err
		}
		v, err := url.QueryUnescape(value)
		if err != nil {
			return nil, err
		}
		out = append(out, formPair{k, v})
	}
	return out, nil
}
