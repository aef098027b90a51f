package pvesim

import (
	"path"
	"strconv"
	"strings"
	"time"
)

// programOf finds the text of a container's first program; there is false when it has none. Only what a
// template or an image brought along is known, so a root file system without any files has every program.
//
// What a program does is in its text: see runProgram. Anything that is no such text runs until it is
// stopped.
func programOf(conf config, content map[string]string) (text string, there bool) {
	words := strings.Fields(conf.kv["entrypoint"])
	if len(words) == 0 || words[0] == "/sbin/init" || words[0] == "/bin/sh" {
		return "", true
	}
	if path.Base(words[0]) == "false" {
		return script("exit 1"), true
	}
	if len(content) == 0 {
		return "", true
	}
	if path.IsAbs(words[0]) {
		text, there = content[words[0]]
		return text, there
	}
	for dir := range strings.SplitSeq(searchPath(conf.kv["env"]), ":") {
		if text, there = content[path.Join(dir, words[0])]; there {
			return text, true
		}
	}
	return "", false
}

func searchPath(env string) string {
	for v := range strings.SplitSeq(env, "\x00") {
		if dirs, ok := strings.CutPrefix(v, "PATH="); ok {
			return dirs
		}
	}
	return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
}

func script(lines ...string) string { return "#!/bin/sh\n" + strings.Join(lines, "\n") + "\n" }

// runProgram does what a program says, as far as the simulator understands it: of a shell script the lines
// "echo WORDS", "echo WORDS >> FILE", "cat FILE", "sleep SECONDS" and "exit STATUS". A program that comes to
// its exit ends, after as long as it slept; the container is then stopped, and nobody is told why. That a
// container whose program ends at once fails to start, and one whose program ends later does not, was
// measured; at which moment in between it changes is assumed to be the first sleep.
func (c *Cluster) runProgram(g *guest, text string) {
	g.ends = time.Time{}
	if !strings.HasPrefix(text, "#!") {
		return
	}
	var slept time.Duration
	for line := range strings.SplitSeq(text, "\n") {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch verb {
		case "echo":
			if words, file, ok := strings.Cut(rest, " >> "); ok {
				c.appendInside(g, strings.TrimSpace(file), unquoted(words)+"\n")
			} else {
				c.print(g, unquoted(rest))
			}
		case "cat":
			m, inside := lxcVolumePath(g.conf, strings.TrimSpace(rest))
			if v := c.volume(g.node, m.volume()); v != nil && v.content[inside] != "" {
				c.print(g, v.content[inside])
			}
		case "sleep":
			seconds, _ := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			slept += time.Duration(seconds * float64(time.Second))
		case "exit":
			if slept == 0 {
				c.powerOff(g)
				return
			}
			g.ends = c.now().Add(slept)
			return
		}
	}
}

func unquoted(words string) string { return strings.Trim(strings.TrimSpace(words), `"'`) }

func (c *Cluster) print(g *guest, text string) {
	if c.opts.Console == nil {
		return
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		c.opts.Console(g.vmid, line)
	}
}

// appendInside adds to a file as a program inside the container does. A mount that is read-only takes
// nothing.
func (c *Cluster) appendInside(g *guest, p, data string) {
	m, inside := lxcVolumePath(g.conf, p)
	if v := c.volume(g.node, m.volume()); v != nil && m.value("ro") != "1" {
		v.content[inside] += data
	}
}

// endPrograms stops the containers whose program has ended by itself.
func (c *Cluster) endPrograms(now time.Time) {
	for _, g := range c.guests {
		if g.running && !g.ends.IsZero() && !g.ends.After(now) {
			c.powerOff(g)
		}
	}
}
