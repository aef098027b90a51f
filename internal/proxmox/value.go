package proxmox

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Proxmox is loose with types: the same field may come as a number, as text, or not at all. These types take either.

// words is text, however it came.
type words string

// UnmarshalJSON takes text, numbers and booleans; numbers keep their digits.
func (w *words) UnmarshalJSON(raw []byte) error {
	switch s := string(raw); {
	case s == "null":
		*w = ""
	case s == "true":
		*w = "1"
	case s == "false":
		*w = "0"
	case strings.HasPrefix(s, `"`):
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return err
		}
		*w = words(text)
	case strings.HasPrefix(s, "{"), strings.HasPrefix(s, "["):
		return fmt.Errorf("a single value was expected, not %.40s", s)
	default:
		*w = words(s)
	}
	return nil
}

// whole is a whole number, however it came; missing and empty are 0.
type whole int64

// UnmarshalJSON takes numbers and their text; a fraction is cut off.
func (n *whole) UnmarshalJSON(raw []byte) error {
	var text words
	if err := text.UnmarshalJSON(raw); err != nil {
		return err
	}
	if text == "" {
		*n = 0
		return nil
	}
	if value, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		*n = whole(value)
		return nil
	}
	value, ok := new(big.Float).SetPrec(128).SetString(string(text))
	if !ok {
		return fmt.Errorf("a number was expected, not %.40q", string(text))
	}
	cut, _ := value.Int64()
	*n = whole(cut)
	return nil
}

// flag is a boolean, however it came; missing is false.
type flag bool

// UnmarshalJSON takes 1, "1", true and their opposites.
func (f *flag) UnmarshalJSON(raw []byte) error {
	var text words
	if err := text.UnmarshalJSON(raw); err != nil {
		return err
	}
	switch strings.ToLower(string(text)) {
	case "1", "yes", "on", "true":
		*f = true
	case "0", "no", "off", "false", "":
		*f = false
	default:
		return fmt.Errorf("yes or no was expected, not %.40q", string(text))
	}
	return nil
}

// fields is an object of single values as text by key. Objects and lists inside are kept as JSON.
type fields map[string]string

// UnmarshalJSON reads the object.
func (f *fields) UnmarshalJSON(raw []byte) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		return err
	}
	*f = make(fields, len(object))
	for key, value := range object {
		var text words
		if err := text.UnmarshalJSON(value); err != nil {
			text = words(value)
		}
		if string(value) != "null" {
			(*f)[key] = string(text)
		}
	}
	return nil
}

// scalar writes a decoded JSON text, number or boolean.
func scalar(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case bool:
		if v {
			return "1"
		}
		return "0"
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}
