package pvesim

import (
	"slices"
	"strings"
)

// call is one request on its way through a handler, with the cluster's lock held.
type call struct {
	srv *Server
	c   *Cluster
	who identity

	method, path string
	// op is the method's declaration, nil when there is no such method.
	op *operation
	// vars are the variables of the path, params everything: path, query and body.
	vars, params map[string]string
	// lists keeps every value of a parameter that was sent more than once.
	lists map[string][]string
	// boolParams names parameters that came as JSON booleans.
	boolParams map[string]bool
	// upload is the uploaded file, for the one route that takes one.
	upload *uploadedFile
	// fault is what the next task of this call is to suffer, nil for nothing.
	fault *Fault
}

func (k *call) param(name string) (string, bool) {
	v, ok := k.params[name]
	return v, ok
}

// str is a parameter's value, or "" when it was not sent.
func (k *call) str(name string) string { return k.params[name] }

func (k *call) has(name string) bool { _, ok := k.params[name]; return ok }

// flag is a boolean parameter.
func (k *call) flag(name string) bool { return isTrue(k.params[name]) }

func (k *call) node() string { return k.vars["node"] }

func (k *call) vmid() int { return atoi(k.vars["vmid"]) }

// all gives a list parameter's values, however it was sent.
func (k *call) all(name string) []string {
	if l := k.lists[name]; len(l) > 0 {
		return l
	}
	if v, ok := k.params[name]; ok {
		return []string{v}
	}
	return nil
}

func isTrue(s string) bool {
	switch strings.ToLower(s) {
	case "1", "on", "yes", "true":
		return true
	}
	return false
}

// listed is an answer with members beside data, such as the number of all rows.
type listed struct {
	data  any
	total int
}

type handler func(*call) (any, error)

type route struct {
	op     *operation
	allow  rule
	handle handler
}

// segment is one level of the routing tree.
type segment struct {
	fixed map[string]*segment
	// name of the variable that matches here, and whether it takes the rest of the path.
	name   string
	greedy bool
	next   *segment
	routes map[string]*route
}

// greedyVars are path variables whose values hold slashes.
var greedyVars = []string{"volume", "cidr", "poolid"}

type router struct{ root segment }

func (r *router) add(rt *route) {
	at := &r.root
	for part := range strings.SplitSeq(strings.Trim(rt.op.Path, "/"), "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			if at.next == nil {
				at.name, at.next = strings.TrimSuffix(name, "}"), &segment{}
				at.greedy = slices.Contains(greedyVars, at.name)
			}
			at = at.next
			continue
		}
		if at.fixed == nil {
			at.fixed = map[string]*segment{}
		}
		if at.fixed[part] == nil {
			at.fixed[part] = &segment{}
		}
		at = at.fixed[part]
	}
	if at.routes == nil {
		at.routes = map[string]*route{}
	}
	at.routes[rt.op.Method] = rt
}

// find gives the route and the path's variables, or nil when there is none.
func (r *router) find(method, path string) (*route, map[string]string) {
	vars := map[string]string{}
	at := &r.root
	rest := strings.Trim(path, "/")
	for rest != "" {
		part, tail, _ := strings.Cut(rest, "/")
		if s := at.fixed[part]; s != nil {
			at, rest = s, tail
			continue
		}
		if at.next == nil {
			return nil, nil
		}
		if at.greedy {
			part, tail = rest, ""
		}
		vars[at.name] = part
		at, rest = at.next, tail
	}
	rt := at.routes[method]
	if rt == nil {
		return nil, nil
	}
	return rt, vars
}

// route registers the handler of one method. Who may call it and with which parameters is what
// Proxmox's own schema says; a method that is not in the schema is a mistake here.
func (s *Server) route(method, tmpl string, h handler) {
	op := apiSchema().operation(method + " " + tmpl)
	if op == nil {
		panic("pvesim: no such method in the schema: " + method + " " + tmpl)
	}
	s.router.add(&route{op, parseRule(op), h})
}

// routes registers every method of the API that is simulated, one function a file.
func (s *Server) routes() {
	s.registerAuth()
	s.registerAccess()
	s.registerACL()
	s.registerPools()
	s.registerTasks()
	s.registerNodes()
	s.registerCluster()
	s.registerHA()
	s.registerJobs()
	s.registerSDN()
	s.registerStorage()
	s.registerLXC()
	s.registerFirewall()
	s.registerVzdump()
	s.registerQEMU()
}

// expand fills a path template's {variables} from the parameters.
func expand(path string, params map[string]string) string {
	if !strings.Contains(path, "{") {
		return path
	}
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if strings.HasPrefix(p, "{") {
			parts[i] = params[strings.Trim(p, "{}")]
		}
	}
	return strings.Join(parts, "/")
}
