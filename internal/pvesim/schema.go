package pvesim

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

//go:embed schema.json.gz
var schemaData []byte

// property is one parameter of a method, or one option of a property string.
type property struct {
	Type      string      `json:"t"`
	Format    string      `json:"f"`
	Parts     string      `json:"pf"`
	Pattern   string      `json:"re"`
	Enum      []string    `json:"en"`
	Max       *float64    `json:"max"`
	Min       *float64    `json:"min"`
	MaxLength *int        `json:"ml"`
	MinLength *int        `json:"nl"`
	Requires  string      `json:"rq"`
	Alias     string      `json:"al"`
	KeyAlias  string      `json:"ka"`
	Default   string      `json:"df"`
	Optional  looseBool   `json:"o"`
	IsDefault looseBool   `json:"dk"`
	Items     *property   `json:"it"`
	parts     *partFormat // of Parts
	match     func() *regexp.Regexp
}

// partFormat is the grammar of one kind of property string.
type partFormat struct {
	props map[string]*property
	// defaultKey is the option that may stand without its name.
	defaultKey string
}

// operation is one method of the API: an HTTP verb on a path template.
type operation struct {
	Method string               `json:"m"`
	Path   string               `json:"p"`
	Args   map[string]*property `json:"a"`
	// Permissions is Proxmox's declaration as it stands in its schema; empty means root@pam only.
	Permissions json.RawMessage `json:"perm"`
	NoToken     looseBool       `json:"noTok"`
	AnyArgs     looseBool       `json:"any"`
	// indexed holds the arguments that carry a number, "mp[n]" under "mp".
	indexed map[string]*property
	// key is "GET /nodes/{node}/lxc".
	key string
}

// looseBool reads 1 and "1" as true, as Proxmox's schema writes them.
type looseBool bool

// UnmarshalJSON implements json.Unmarshaler.
func (b *looseBool) UnmarshalJSON(data []byte) error {
	*b = string(data) == "1" || string(data) == "true" || string(data) == `"1"`
	return nil
}

// schema is the part of Proxmox's API description that the simulator knows.
type schema struct {
	Formats map[string]map[string]*property `json:"formats"`
	Methods []*operation                    `json:"methods"`
	parts   map[string]*partFormat
	byKey   map[string]*operation
}

var apiSchema = sync.OnceValue(loadSchema)

func loadSchema() *schema {
	zr, err := gzip.NewReader(bytes.NewReader(schemaData))
	if err != nil {
		panic(fmt.Sprintf("embedded API schema: %v", err))
	}
	s := &schema{parts: map[string]*partFormat{}, byKey: map[string]*operation{}}
	if err := json.NewDecoder(zr).Decode(s); err != nil {
		panic(fmt.Sprintf("embedded API schema: %v", err))
	}
	for id, props := range s.Formats {
		f := &partFormat{props: props}
		for k, p := range props {
			if p.IsDefault {
				f.defaultKey = k
			}
		}
		s.parts[id] = f
	}
	for _, f := range s.parts {
		for _, p := range f.props {
			s.prepare(p)
		}
	}
	for _, op := range s.Methods {
		op.key = op.Method + " " + op.Path
		s.byKey[op.key] = op
		op.indexed = map[string]*property{}
		for k, p := range op.Args {
			s.prepare(p)
			if base, ok := strings.CutSuffix(k, "[n]"); ok {
				op.indexed[base] = p
				delete(op.Args, k)
			}
		}
	}
	return s
}

func (s *schema) prepare(p *property) {
	p.parts = s.parts[p.Parts]
	if pattern := p.Pattern; pattern != "" {
		p.match = sync.OnceValue(func() *regexp.Regexp { return perlRegexp(pattern) })
	}
	if p.Items != nil {
		s.prepare(p.Items)
	}
}

var longRepeatRE = regexp.MustCompile(`\{0,\d{4,}\}`)

// perlRegexp anchors a pattern of the schema and turns Perl's flag notation into Go's. Repetitions of
// more than Go counts become unlimited.
func perlRegexp(p string) *regexp.Regexp {
	for _, r := range [][2]string{{"(?^:", "(?:"}, {"(?^i:", "(?i:"}, {"(?^u:", "(?:"}, {"{,", "{0,"}, {`\0`, `\x00`}} {
		p = strings.ReplaceAll(p, r[0], r[1])
	}
	p = longRepeatRE.ReplaceAllString(p, "*")
	return regexp.MustCompile("^(?s:" + p + ")$")
}

// operation finds a method by its template, "PUT /nodes/{node}/lxc/{vmid}/config". Nil if unknown.
func (s *schema) operation(key string) *operation { return s.byKey[key] }

// arg is the declaration of one argument, indexed ones included. Nil if there is none.
func (op *operation) arg(name string) *property {
	if p := op.Args[name]; p != nil {
		return p
	}
	base := strings.TrimRight(name, "0123456789")
	if base == name {
		return nil
	}
	p := op.indexed[base]
	if p == nil || !indexAllowed(op, base, name[len(base):]) {
		return nil
	}
	return p
}

// typed is a configuration value as JSON shows it: integers and booleans as numbers, everything
// else, decimal numbers included, as a string.
func (op *operation) typed(key, value string) any {
	if p := op.arg(key); p != nil && (p.Type == "integer" || p.Type == "boolean") {
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			return n
		}
	}
	return value
}

// indexAllowed knows how many of an indexed argument there are: the schema only says "[n]".
func indexAllowed(op *operation, base, digits string) bool {
	if len(digits) > 1 && digits[0] == '0' {
		return false
	}
	limit := 256
	qemu := strings.Contains(op.Path, "/qemu")
	switch base {
	case "net", "ipconfig":
		limit = 32
	case "ide", "serial", "virtiofs":
		limit = 4
		if base == "virtiofs" {
			limit = 10
		}
	case "sata":
		limit = 6
	case "scsi":
		limit = 31
	case "virtio", "hostpci":
		limit = 16
	case "usb":
		limit = 14
	case "parallel":
		limit = 3
	case "numa":
		limit = 8
	case "link":
		limit = 8
	case "mp", "dev", "unused":
		if qemu && base != "unused" {
			return false
		}
	}
	return atoi(digits) < limit
}
