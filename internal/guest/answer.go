package guest

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// FromJSON reads the data of GET .../config. A value of a type that Proxmox does not send is an error that names the key.
func FromJSON(data map[string]json.RawMessage) (Config, error) {
	c := Config{Values: make(map[string]string, len(data))}
	for key, raw := range data {
		if key == "lxc" {
			if err := readPairs(raw, &c.Raw); err != nil {
				return Config{}, err
			}
			continue
		}
		text, err := scalarText(raw)
		if err != nil {
			return Config{}, fmt.Errorf("cannot read config key %s: %w", clip(key), err)
		}
		if key == "digest" {
			c.Digest = text
			continue
		}
		c.Values[key] = text
	}
	return c, nil
}

func readPairs(raw json.RawMessage, into *[][2]string) error {
	var pairs [][]string
	if err := json.Unmarshal(raw, &pairs); err != nil {
		return fmt.Errorf("cannot read config key lxc: not a list of pairs")
	}
	for _, pair := range pairs {
		if len(pair) != 2 {
			return fmt.Errorf("cannot read config key lxc: an entry has %d parts, not 2", len(pair))
		}
		*into = append(*into, [2]string{pair[0], pair[1]})
	}
	return nil
}

// scalarText returns a JSON string as it is, a boolean as 1 or 0, and a number in plain decimal.
func scalarText(raw json.RawMessage) (string, error) {
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return "", fmt.Errorf("not valid JSON")
	}
	switch v := value.(type) {
	case string:
		return v, nil
	case bool:
		if v {
			return "1", nil
		}
		return "0", nil
	case json.Number:
		return decimal(v.String())
	case nil:
		return "", fmt.Errorf("null is not a value that a config has")
	}
	return "", fmt.Errorf("neither text nor a number nor a boolean")
}

func decimal(text string) (string, error) {
	if !strings.ContainsAny(text, "eE") {
		return text, nil
	}
	const most = 1e60 // far above anything a config holds
	number, err := strconv.ParseFloat(text, 64)
	if err != nil || math.Abs(number) > most {
		return "", fmt.Errorf("number %s is out of range", clip(text))
	}
	return strconv.FormatFloat(number, 'f', -1, 64), nil
}
